//===- Kernel.h - An op made ready to run -----------------------*- C++ -*-===//
//
// An executor turns an op with concrete types into a kernel, once. From then on only addresses and
// host scalars vary from run to run.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/DeviceAPI.h"

namespace rondo {

/// Eight bytes that one operand or result of a run consists of.
union Slot {
  void *address = nullptr; ///< of a tensor's first element, or of an RNG state; null when absent
  int64_t i64;
  double f64;
  bool boolean;
};
static_assert(sizeof(Slot) == 8);

/// The state of a generator, and an RNG state value: as it lies in memory of the device.
struct RNGState {
  uint64_t seed = 0;
  uint64_t offset = 0; ///< in elements drawn
};

/// What one run of a kernel works on. Slots are by position, as in the op. A tensor result that is
/// a new name of an operand's storage has that operand's address; other results are memory to
/// write, which no operand shares unless the kernel allows it (Kernel::canReuse). For a scalar
/// result the address is that of the Slot in host memory that receives the scalar. Borrowed for the
/// call.
struct KernelArgs {
  llvm::ArrayRef<Slot> operands;
  llvm::ArrayRef<Slot> results;
  /// As many bytes as the op's claim asks for, aligned to 256; null if none.
  void *workspace = nullptr;
  /// Of each generator that the op names in its effects, in that order.
  llvm::ArrayRef<RNGState *> generators;
};

/// Immutable; `enqueue` may be called from several threads with different arguments.
class Kernel {
public:
  virtual ~Kernel();

  /// Puts the op's work into `sink`, in order, and returns without waiting. The commands, their
  /// number and kinds depend on nothing but the addresses and scalars in `args`; the same arguments
  /// give the same commands. Allocates no device memory. Touches no bytes but those of its
  /// operands, results and workspace.
  ///
  /// What needs the host to see data calls `sink.synchronize()`, and its op's claim is not
  /// capturable.
  virtual llvm::Error enqueue(CommandSink &sink, const KernelArgs &args) const = 0;

  /// May fresh tensor result `result` have the address of tensor operand `operand`, which nothing
  /// needs after this run? Only if both have the same number of bytes, each of which is read before
  /// it is written. Other operands are elsewhere, or it may have theirs, too.
  virtual bool canReuse(unsigned operand, unsigned result) const;
};

using KernelRef = std::shared_ptr<const Kernel>;

} // namespace rondo
