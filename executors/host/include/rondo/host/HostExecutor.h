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

#include "rondo/executors/KernelTable.h"

namespace rondo {

/// Operands and results of one run, typed. Borrowed for the call.
class HostArgs : public TypedArgs {
public:
  using TypedArgs::TypedArgs;

  const RNGState &rng(unsigned i) const { return *TypedArgs::rng(i); }
  RNGState &rngResult(unsigned i = 0) const { return *TypedArgs::rngResult(i); }
  RNGState &generator(unsigned i = 0) const { return *TypedArgs::generator(i); }
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
  /// Each element of a result is made of the operands' elements at its position, and written after
  /// they are read: a result may take over the memory of an operand that has its layout.
  bool isElementwise = false;
};

/// Claims the ops in its table, on any host device. Adding is for one thread, before use.
class HostExecutor : public Executor {
public:
  /// With kernels for the core ops, under the name `host`.
  HostExecutor();
  /// With no kernels, under a name of its own.
  explicit HostExecutor(llvm::StringRef name) : name_(name.str()) {}

  /// Adds a kernel, in place of one for the same op. Errors: no name or no `make`.
  llvm::Error add(HostKernelSpec spec) { return kernels_.add(std::move(spec), "host"); }
  const HostKernelSpec *find(llvm::StringRef op) const { return kernels_.find(op); }

  llvm::StringRef name() const override { return name_; }
  ClaimAnswer claim(const Trace &trace, OpId op) const override;
  llvm::Expected<KernelRef> compile(const Trace &trace, OpId op,
                                    const DeviceRef &device) const override;

private:
  std::string name_;
  KernelTable<HostKernelSpec> kernels_;
};

} // namespace rondo
