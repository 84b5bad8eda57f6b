//===- HostExecutor.h - Ops on the CPU --------------------------*- C++ -*-===//
//
// The executor `host`: kernels for the core ops, and a table to which anybody adds their own:
//
//   HostExecutor host;
//   cantFail(host.add({.op = "mylib.twice", .make = [](const OpContext &op) {
//     return HostKernelFn([](const HostArgs &args) {
//       ... args.operand(0).as<float>() ... args.result(0).as<float>() ...
//     });
//   }}));
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/Executor.h"
#include "rondo/executors/Tensor.h"

#include "llvm/ADT/StringMap.h"

namespace rondo {

/// Operands and results of one run, typed. Borrowed for the call.
class HostArgs {
public:
  /// `operands` and `results` have an entry for each of `raw`; `present` says which operands the op
  /// lists.
  HostArgs(llvm::ArrayRef<TensorRef> operands, llvm::ArrayRef<TensorRef> results,
           llvm::ArrayRef<bool> present, const KernelArgs &raw)
      : operands_(operands), results_(results), present_(present), raw_(raw) {}

  unsigned numOperands() const { return operands_.size(); }
  unsigned numResults() const { return results_.size(); }
  /// False for an optional operand that was left out.
  bool has(unsigned i) const { return i < present_.size() && present_[i]; }
  /// Of a tensor operand that is there.
  const TensorRef &operand(unsigned i) const { return operands_[i]; }
  /// An operand that is a host scalar: which member of the slot counts is for its type to say.
  Slot scalar(unsigned i) const { return raw_.operands[i]; }
  const RNGState &rng(unsigned i) const {
    return *static_cast<const RNGState *>(raw_.operands[i].address);
  }
  const TensorRef &result(unsigned i = 0) const { return results_[i]; }
  /// The slot that receives a scalar result.
  Slot &scalarResult(unsigned i = 0) const { return *static_cast<Slot *>(raw_.results[i].address); }
  RNGState &rngResult(unsigned i = 0) const {
    return *static_cast<RNGState *>(raw_.results[i].address);
  }
  /// The state of the i-th generator that the op names in its effects.
  RNGState &generator(unsigned i = 0) const { return *raw_.generators[i]; }
  void *workspace() const { return raw_.workspace; }

private:
  llvm::ArrayRef<TensorRef> operands_, results_;
  llvm::ArrayRef<bool> present_;
  const KernelArgs &raw_;
};

/// Computes results from operands. Called from one thread per run, several runs at a time.
using HostKernelFn = std::function<void(const HostArgs &)>;

/// How the host runs a kind of op.
struct HostKernelSpec {
  std::string op;
  /// Makes the function for concrete types and attributes; `op` is borrowed for the call. Errors: a
  /// message without a location ("expects …").
  std::function<llvm::Expected<HostKernelFn>(const OpContext &op)> make;
  /// Whether it can run an op with these types; null: whatever `make` succeeds for.
  std::function<ClaimAnswer(const OpContext &op)> claim = nullptr;
  /// Bytes of workspace; null: none.
  std::function<uint64_t(const OpContext &op)> workspaceBytes = nullptr;
  /// The host looks at data that the device makes (item, print): it is synchronised before the
  /// function runs, and the op cannot be captured.
  bool synchronises = false;
};

/// Claims the ops in its table, on any host device. Adding is for one thread, before use.
class HostExecutor : public Executor {
public:
  /// With kernels for the core ops, under the name `host`.
  HostExecutor();
  /// With no kernels, under a name of its own.
  explicit HostExecutor(llvm::StringRef name) : name_(name.str()) {}

  /// Adds a kernel, in place of one for the same op. Errors: no name or no `make`.
  llvm::Error add(HostKernelSpec spec);
  const HostKernelSpec *find(llvm::StringRef op) const;

  llvm::StringRef name() const override { return name_; }
  ClaimAnswer claim(const Trace &trace, OpId op) const override;
  llvm::Expected<KernelRef> compile(const Trace &trace, OpId op,
                                    const DeviceRef &device) const override;

private:
  std::string name_;
  llvm::StringMap<HostKernelSpec> kernels_;
};

} // namespace rondo
