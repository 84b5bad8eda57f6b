//===- CUDAExecutor.h - Ops on a GPU ----------------------------*- C++ -*-===//
//
// The executor `cuda`: kernels for the core ops, and a table to which anybody adds their own:
//
//   struct Params { const float *x; float *y; int64_t n; };
//   __global__ void twice(Params p) { ... }                          // in a .cu file
//
//   CUDAExecutor cuda;
//   cantFail(cuda.add({.op = "mylib.twice", .make = [](const OpContext &op) {
//     CUDAKernelFn kernel;
//     kernel.functions = {{twiceSymbol()}};                          // (const void *)&twice
//     kernel.enqueue = [](const CUDAWork &work, const TypedArgs &args) {
//       const TensorRef &x = args.operand(0);
//       Params params{x.as<float>(), args.result().as<float>(), x.numElements()};
//       return work.launch(0, {.grid = {blocksFor(params.n, 256)}, .block = {256}}, params);
//     };
//     return kernel;
//   }}));
//
// Only in a build with CUDA (isCUDABuilt).
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/KernelTable.h"

#include <type_traits>

namespace rondo {

/// A `__global__` function of the program that has one parameter, a struct, passed by value.
struct CUDAFunction {
  const void *symbol = nullptr;
  uint32_t sharedBytes = 0; ///< most dynamic shared memory that a launch asks for
};

struct CUDASizes {
  uint32_t x = 1, y = 1, z = 1;
};
/// How many blocks and threads; dynamic shared memory in bytes.
struct CUDAGrid {
  CUDASizes grid, block;
  uint32_t sharedBytes = 0;
};

/// Blocks for `count` pieces of work, `perBlock` each, as many as a grid has at most in its first
/// dimension: kernels loop with a stride of the grid.
constexpr uint32_t blocksFor(int64_t count, int64_t perBlock) {
  int64_t blocks = (count + perBlock - 1) / perBlock;
  return uint32_t(blocks < 1 ? 1 : blocks > 0x7fffffff ? 0x7fffffff : blocks);
}

/// Where one run of a kernel puts its work. Borrowed for the call.
class CUDAWork {
public:
  CUDAWork(CommandSink &sink, llvm::ArrayRef<const void *> functions)
      : sink_(sink), functions_(functions) {}

  /// For fills, copies and library calls.
  CommandSink &sink() const { return sink_; }
  /// Launches the kernel's i-th function.
  template <typename Params>
  llvm::Error launch(unsigned i, const CUDAGrid &grid, const Params &params) const {
    static_assert(std::is_trivially_copyable_v<Params>);
    KernelLaunch launch;
    launch.function = functions_[i];
    launch.grid = {grid.grid.x, grid.grid.y, grid.grid.z};
    launch.block = {grid.block.x, grid.block.y, grid.block.z};
    launch.sharedBytes = grid.sharedBytes;
    launch.parameters = {reinterpret_cast<const std::byte *>(&params), sizeof(Params)};
    return sink_.launch(launch);
  }

private:
  CommandSink &sink_;
  llvm::ArrayRef<const void *> functions_;
};

/// An op with concrete types and attributes, made ready for any GPU.
struct CUDAKernelFn {
  /// What `enqueue` launches. Loaded onto a device before.
  llvm::SmallVector<CUDAFunction, 2> functions;
  /// Puts one run into the sink, as Kernel::enqueue.
  std::function<llvm::Error(const CUDAWork &work, const TypedArgs &args)> enqueue;
  uint64_t workspaceBytes = 0;
};

/// How a GPU runs a kind of op.
struct CUDAKernelSpec {
  std::string op;
  /// Makes the kernel for concrete types and attributes; needs no device; `op` is borrowed for the
  /// call. Errors: a message without a location ("expects …"): the op is not claimed.
  std::function<llvm::Expected<CUDAKernelFn>(const OpContext &op)> make;
  /// The host looks at data that the device makes (item, print): the op cannot be captured.
  bool synchronises = false;
  /// Operands and results may be in memory of the host, too.
  bool movesBetweenDevices = false;
  /// Each element of a result is made of the operands' elements at its position, and written after
  /// they are read: a result may take over the memory of an operand that has its layout.
  bool isElementwise = false;
};

/// Claims the ops in its table, on any CUDA device. Adding is for one thread, before use.
class CUDAExecutor : public Executor {
public:
  /// With kernels for the core ops, under the name `cuda`.
  CUDAExecutor();
  /// With no kernels, under a name of its own.
  explicit CUDAExecutor(llvm::StringRef name) : name_(name.str()) {}

  /// Adds a kernel, in place of one for the same op. Errors: no name or no `make`.
  llvm::Error add(CUDAKernelSpec spec) { return kernels_.add(std::move(spec), "CUDA"); }
  const CUDAKernelSpec *find(llvm::StringRef op) const { return kernels_.find(op); }

  llvm::StringRef name() const override { return name_; }
  ClaimAnswer claim(const Trace &trace, OpId op) const override;
  llvm::Expected<KernelRef> compile(const Trace &trace, OpId op,
                                    const DeviceRef &device) const override;

private:
  std::string name_;
  KernelTable<CUDAKernelSpec> kernels_;
};

} // namespace rondo
