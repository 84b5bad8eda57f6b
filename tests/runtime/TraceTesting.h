//===- TraceTesting.h - Programs of recorded traces -------------*- C++ -*-===//

#pragma once

#include "support/TestPaths.h"

#include "rondo/executors/RecordedValues.h"
#include "rondo/host/HostDevice.h"
#include "rondo/host/HostExecutor.h"
#include "rondo/ir/CoreOps.h"
#include "rondo/ir/ImportFX.h"
#include "rondo/ir/Text.h"
#include "rondo/passes/PassRegistry.h"
#include "rondo/passes/Passes.h"
#include "rondo/runtime/Program.h"

#include "llvm/Support/MemoryBuffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace rondo {

/// With these, what is chosen, and kept, does not depend on how fast the machine is just now.
inline ProgramOptions steadyOptions() {
  ProgramOptions options;
  options.costs = BufferCosts();
  return options;
}

/// A registry with the core ops.
struct CoreRegistry : OpRegistry {
  CoreRegistry() { cantFail(registerCoreOps(*this)); }
};

/// Where programs run: a device, and who executes ops, in the order in which they are asked.
struct RunTarget {
  DeviceRef device;
  std::vector<const Executor *> executors;
};

/// A pipeline that runs `text` with `executors` as the sources of claims. Borrows them.
inline Pipeline pipelineOf(std::string text, std::vector<const Executor *> executors) {
  return [text, executors](TracePair pair,
                           const SymbolBindings &bindings) -> llvm::Expected<TracePair> {
    if (!bindings.empty())
      if (llvm::Error error = specialise(pair, bindings))
        return error;
    PassRegistry passes;
    std::vector<const ClaimSource *> sources(executors.begin(), executors.end());
    if (llvm::Error error = registerPasses(passes, sources))
      return error;
    PassManager manager;
    if (llvm::Error error = passes.parsePipeline(text, manager))
      return error;
    return manager.run(std::move(pair));
  };
}
inline Pipeline pipelineOf(std::string text, const Executor &executor) {
  return pipelineOf(std::move(text), std::vector<const Executor *>{&executor});
}
inline constexpr llvm::StringLiteral usualPipeline =
    "dce,cse,canonicalise,execution,cuda-graph,del";

/// A row-major copy in memory of the host, after what `stream`, which is of the tensor's device,
/// was given before.
inline Tensor onHost(const Tensor &tensor, Stream &stream) {
  return cantFail(copyTo(createHostDevice(), tensor, stream));
}

/// Bytes of a tensor on the host in row-major order.
inline std::vector<std::byte> bytesOf(const Tensor &tensor) {
  size_t size = dtypeSize(tensor.dtype());
  std::vector<std::byte> bytes(tensor.numElements() * size);
  forEachElement(tensor.shape(), tensor.strides(), [&](int64_t i, int64_t offset) {
    std::memcpy(bytes.data() + i * size, tensor.data() + offset * size, size);
  });
  return bytes;
}

/// Elements of a tensor on the host as doubles, in row-major order.
inline std::vector<double> doublesOf(const Tensor &tensor) {
  std::vector<std::byte> bytes = bytesOf(tensor);
  std::vector<double> values(tensor.numElements());
  for (size_t i = 0; i < values.size(); ++i) {
    auto read = [&](auto value) {
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      return value;
    };
    switch (tensor.dtype()) {
    case DType::F32:
      values[i] = read(float());
      break;
    case DType::F64:
      values[i] = read(double());
      break;
    case DType::BF16: {
      uint32_t word = uint32_t(read(uint16_t())) << 16;
      float value;
      std::memcpy(&value, &word, 4);
      values[i] = value;
      break;
    }
    case DType::I64:
      values[i] = double(read(int64_t()));
      break;
    case DType::I32:
      values[i] = read(int32_t());
      break;
    default:
      values[i] = read(uint8_t());
    }
  }
  return values;
}

/// ‖a − b‖ / ‖b‖ over all elements of tensors on the host; infinite where shapes differ or a is not
/// finite and b is.
inline double relativeError(const Tensor &a, const Tensor &b) {
  if (a.shape() != b.shape())
    return INFINITY;
  std::vector<double> x = doublesOf(a), y = doublesOf(b);
  double difference = 0, norm = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) {
      norm += std::isfinite(y[i]) ? y[i] * y[i] : 0;
      continue;
    }
    if (!std::isfinite(x[i]) || !std::isfinite(y[i]))
      return INFINITY;
    difference += (x[i] - y[i]) * (x[i] - y[i]);
    norm += y[i] * y[i];
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

/// Two regions, with an op between them that the host waits for; the second takes a host scalar.
inline constexpr llvm::StringLiteral twoRegionsWithRate = R"(
trace @t(%x: f32[2], %lr: f64) {
  %a: f32[2] = neg(%x)
  %b: f32[2] = add(%a, %a)
  %s: f32[] = sum(%b)
  %i: f64 = item(%s)
  %c: f32[2] = mul(%b, %lr)
  %d: f32[2] = neg(%c)
  return(%d, %i)
})";

/// A recorded trace, prepared, with its values.
struct Sample {
  TracePair pair;
  RecordedValues values;
};

/// The pass that moves recorded traces to `device`.
inline std::string placementOn(Device device) {
  return "place{to=" + deviceName(device) + "}";
}

inline llvm::Expected<Sample> loadSample(llvm::StringRef name, const OpRegistry &registry,
                                         llvm::StringRef preparation = "place") {
  std::string base = testDataDir() + "/traces/" + name.str();
  auto text = llvm::MemoryBuffer::getFile(base + ".json");
  if (!text)
    return makeError("cannot read " + base + ".json");
  std::vector<FXOutput> outputs;
  llvm::Expected<TracePair> pair =
      importFX((*text)->getBuffer(), base + ".json", registry, &outputs);
  if (!pair)
    return pair.takeError();
  PassRegistry passes;
  if (llvm::Error error = registerPasses(passes, {}))
    return error;
  PassManager manager;
  if (llvm::Error error = passes.parsePipeline(preparation, manager))
    return error;
  llvm::Expected<TracePair> placed = manager.run(std::move(*pair));
  if (!placed)
    return placed.takeError();
  llvm::Expected<RecordedValues> values = RecordedValues::open(base + ".safetensors", outputs);
  if (!values)
    return values.takeError();
  return Sample{std::move(*placed), std::move(*values)};
}

/// A new tensor of `type` on the device of `stream`, with the values of `source`, which is
/// row-major and on the host.
inline Tensor laidOut(Stream &stream, const TensorType &type, const Tensor &source) {
  Tensor tensor = cantFail(Tensor::empty(stream.device().shared_from_this(), type));
  std::vector<std::byte> bytes(tensor.extentBytes());
  size_t size = dtypeSize(type.dtype);
  forEachElement(tensor.shape(), tensor.strides(), [&](int64_t i, int64_t offset) {
    std::memcpy(bytes.data() + offset * size, source.data() + i * size, size);
  });
  cantFail(stream.copy(tensor.data(), bytes.data(), bytes.size()));
  cantFail(stream.synchronize());
  return tensor;
}

/// The recorded arguments of one side, in new memory of the device of `stream`. Masks that were fed
/// are looked up among what was saved; states of generators are all 0.
inline llvm::Expected<std::vector<Value>> inputsOf(const Program &program, Side side,
                                                   const RecordedValues &values, Stream &stream) {
  int64_t zeros[2] = {};
  const Tensor state(Storage::borrow(zeros, sizeof zeros, Device::host()), 0, DType::I64, {2}, {1});
  std::vector<Value> inputs;
  for (const ParameterInfo &info : program.inputs(side)) {
    if (info.type.asRNGState()) {
      inputs.push_back(laidOut(stream, TensorType(DType::I64, {2}), state));
      continue;
    }
    const Tensor *recorded = values.input(side, info.name);
    if (!recorded)
      recorded = values.saved(info.name);
    const TensorType *type = info.type.asTensor();
    if (!recorded || !type)
      return makeError("no value was recorded for '" + info.name + "'");
    inputs.push_back(laidOut(stream, *type, *recorded));
  }
  return inputs;
}

} // namespace rondo
