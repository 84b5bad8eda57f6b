//===- RunOp.h - One op, run by the host executor ---------------*- C++ -*-===//

#pragma once

#include "rondo/executors/Value.h"
#include "rondo/host/HostDevice.h"
#include "rondo/host/HostExecutor.h"
#include "rondo/ir/CoreOps.h"
#include "rondo/ir/TraceBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace rondo {

/// Memory of the test, filled with 0xFF.
inline StorageRef poisonedStorage(size_t bytes) {
  auto *data = static_cast<std::byte *>(::operator new(bytes + 1, std::align_val_t(256)));
  std::memset(data, 0xff, bytes + 1);
  return Storage::borrow(data, bytes, Device::host(),
                         [data] { ::operator delete(data, std::align_val_t(256)); });
}

/// A tensor with the layout of `type` and poisoned elements.
inline Tensor poisonedTensor(const TensorType &type) {
  auto shape = constantDims(type.shape), strides = constantDims(type.strides);
  return Tensor(poisonedStorage(stridedExtentBytes(type.dtype, shape, strides)), 0, type.dtype,
                shape, strides);
}

/// Runs what is launched at once, in this thread.
class ImmediateSink : public CommandSink {
public:
  DeviceAPI &device() override { abort(); }
  llvm::Error launch(const KernelLaunch &launch) override {
    reinterpret_cast<HostFunction>(const_cast<void *>(launch.function))(launch.parameters.data());
    ++numLaunches;
    return llvm::Error::success();
  }
  llvm::Error fill(void *destination, uint8_t value, size_t bytes) override {
    std::memset(destination, value, bytes);
    return llvm::Error::success();
  }
  llvm::Error copy(void *destination, const void *source, size_t bytes) override {
    std::memcpy(destination, source, bytes);
    return llvm::Error::success();
  }
  llvm::Error call(llvm::function_ref<llvm::Error(Stream &)>) override { abort(); }
  llvm::Error synchronize() override { return llvm::Error::success(); }

  unsigned numLaunches = 0;
};

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

/// Runs `op` on `operands` and gives its results: fresh ones poisoned before, new names of an
/// operand's storage with the operand's memory. `state` is that of every generator and of a result
/// that is an RNG state. `resultTypes` replace the inferred ones (other strides) unless empty.
/// Anything wrong is an error of the test.
inline std::vector<Value> runOp(llvm::StringRef op, std::vector<OperandInit> operands,
                                llvm::ArrayRef<AttributeInit> attributes = {},
                                RNGState *state = nullptr, llvm::ArrayRef<Type> resultTypes = {}) {
  OpRegistry registry;
  cantFail(registerCoreOps(registry));
  TraceBuilder builder(registry);
  std::vector<ValueId> values;
  std::vector<Slot> slots;
  for (const OperandInit &operand : operands) {
    Slot slot;
    std::optional<Type> type;
    if (operand.rng) {
      type = Type(RNGStateType{});
      slot.address = operand.rng;
    } else if (const Tensor *tensor = operand.value.asTensor()) {
      type = Type(tensor->type());
      slot.address = tensor->data();
    } else if (const int64_t *value = operand.value.asInt()) {
      type = Type(ScalarKind::I64);
      slot.i64 = *value;
    } else if (const double *value = operand.value.asFloat()) {
      type = Type(ScalarKind::F64);
      slot.f64 = *value;
    } else if (const bool *value = operand.value.asBool()) {
      type = Type(ScalarKind::Bool);
      slot.boolean = *value;
    }
    values.push_back(type ? builder.argument("x", *type) : ValueId());
    slots.push_back(slot);
  }
  auto made = resultTypes.empty() ? builder.ops(op, values, attributes)
                                  : builder.opWithTypes(op, values, resultTypes, attributes);
  OpId id = builder.lastOp();
  builder.returnValues(made);
  llvm::Expected<Trace> trace = std::move(builder).finish();
  if (!trace) {
    ADD_FAILURE() << llvm::toString(trace.takeError());
    return {};
  }
  HostExecutor executor;
  ClaimAnswer answer = executor.claim(*trace, id);
  if (!answer.accepted) {
    ADD_FAILURE() << op.str() << ": " << answer.why;
    return {};
  }
  llvm::Expected<KernelRef> kernel = executor.compile(*trace, id, nullptr);
  if (!kernel) {
    ADD_FAILURE() << llvm::toString(kernel.takeError());
    return {};
  }
  Effects effects = getEffects(*trace, id);
  std::vector<Value> results;
  std::vector<Slot> resultSlots, scalars(made.size());
  for (unsigned i = 0; i < made.size(); ++i) {
    auto viewed = effects.viewedBy(i);
    Slot slot;
    if (!viewed.empty()) {
      results.push_back(operands[viewed.front()].value);
      slot = slots[viewed.front()];
    } else if (const TensorType *type = trace->type(made[i]).asTensor()) {
      results.emplace_back(poisonedTensor(*type));
      slot.address = results.back().asTensor()->data();
    } else if (trace->type(made[i]).asRNGState()) {
      results.emplace_back();
      slot.address = state;
    } else {
      results.emplace_back();
      slot.address = &scalars[i];
    }
    resultSlots.push_back(slot);
  }
  std::vector<RNGState *> generators;
  for (const ResourceEffect &effect : effects.resources)
    if (effect.kind == ResourceKind::Generator)
      generators.push_back(state);
  std::vector<std::byte> workspace(answer.workspaceBytes + 1);
  KernelArgs args{slots, resultSlots, workspace.data(), generators};
  ImmediateSink sink;
  if (llvm::Error error = (*kernel)->enqueue(sink, args))
    ADD_FAILURE() << llvm::toString(std::move(error));
  for (unsigned i = 0; i < made.size(); ++i) {
    if (const ScalarType *type = trace->type(made[i]).asScalar()) {
      switch (type->kind) {
      case ScalarKind::I64:
        results[i] = Value(scalars[i].i64);
        break;
      case ScalarKind::F64:
        results[i] = Value(scalars[i].f64);
        break;
      case ScalarKind::Bool:
        results[i] = Value(scalars[i].boolean);
        break;
      }
    }
  }
  return results;
}

} // namespace rondo
