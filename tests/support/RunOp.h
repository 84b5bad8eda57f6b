//===- RunOp.h - One op, run on a device ------------------------*- C++ -*-===//
//
// How tests run one op. Operands and results are tensors of the host, whatever the device: their
// storages are copied to memory of the device, and back when the op is done.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/Executor.h"
#include "rondo/executors/Value.h"
#include "rondo/ir/CoreOps.h"
#include "rondo/ir/TraceBuilder.h"

namespace rondo {

/// Gives a kernel's work to `stream`. `memory` is all that the addresses in `args` can lie in.
using OpLauncher =
    std::function<llvm::Error(const Kernel &kernel, const KernelArgs &args,
                              llvm::ArrayRef<llvm::ArrayRef<std::byte>> memory, Stream &stream)>;

/// Who runs ops: the first of `executors` that claims one, on `device`. Borrows the executors.
struct OpTarget {
  DeviceRef device;
  std::vector<const Executor *> executors;
  OpLauncher launch = nullptr; ///< null: the kernel's work goes to the stream as it is
  /// Fresh results lie where an operand does, if the kernel allows that (Kernel::canReuse).
  bool reusesOperands = false;
};
/// The executor `host` on a host device whose work runs in the call that submits it.
const OpTarget &hostOpTarget();

/// The core ops.
const OpRegistry &coreOps();

/// Memory of the test, filled with 0xFF.
StorageRef poisonedStorage(size_t bytes);
/// A tensor with the layout of `type` and poisoned elements, in memory of the test.
Tensor poisonedTensor(const TensorType &type);

/// An operand: a tensor (its strides become those of the operand's type), a host scalar, an RNG
/// state, or nothing.
struct OperandInit {
  OperandInit(Value value) : value(std::move(value)) {}
  OperandInit(Tensor tensor) : value(std::move(tensor)) {}
  OperandInit(RNGState &rng) : rng(&rng) {}
  OperandInit() = default;
  Value value;
  RNGState *rng = nullptr;
};

/// What an op gave.
struct OpResults {
  /// Fresh tensors are poisoned before; new names of an operand's storage are that operand's value.
  /// Nothing for an RNG state.
  std::vector<Value> values;
  /// Of results that are RNG states, by the number of the result.
  std::vector<RNGState> states;
};

/// Runs `op` on `operands`, changes those that it writes, and gives its results. `state` is that of
/// every generator. `resultTypes` replace the inferred ones (other strides) unless empty; their
/// devices are those of `target`. Errors: an invalid op, no executor that claims it, an error of
/// the device, and bytes that changed beside operands that are written, results and workspace.
llvm::Expected<OpResults> runOpOn(const OpTarget &target, llvm::StringRef op,
                                  llvm::ArrayRef<OperandInit> operands,
                                  llvm::ArrayRef<AttributeInit> attributes = {},
                                  RNGState *state = nullptr, llvm::ArrayRef<Type> resultTypes = {});

} // namespace rondo
