//===- Arguments.cpp - Values for the arguments of a program --------------===//

#include "support/Arguments.h"

#include "rondo/executors/FloatSemantics.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace rondo;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// The element of `dtype` at `data`; integers beyond 2^53 are rounded.
static double readElement(DType dtype, const std::byte *data) {
  uint64_t bits = 0;
  unsigned size = dtypeSize(dtype);
  std::memcpy(&bits, data, size); // little-endian
  if (const llvm::fltSemantics *semantics = floatSemantics(dtype)) {
    llvm::APFloat value(*semantics, llvm::APInt(size * 8, bits));
    bool losesInfo = false;
    value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return value.convertToDouble();
  }
  if (dtype == DType::Bool || dtype == DType::U8 || !isInteger(dtype))
    return double(bits & 0xff);
  return double(int64_t(bits << (64 - size * 8)) >> (64 - size * 8));
}

static void writeElement(DType dtype, double value, std::byte *data) {
  unsigned size = dtypeSize(dtype);
  uint64_t bits = uint64_t(int64_t(value));
  if (dtype == DType::F32) { // the most frequent by far
    float number = float(value);
    std::memcpy(data, &number, sizeof number);
    return;
  }
  if (const llvm::fltSemantics *semantics = floatSemantics(dtype)) {
    llvm::APFloat number(value);
    bool losesInfo = false;
    number.convert(*semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    bits = number.bitcastToAPInt().getZExtValue();
  }
  std::memcpy(data, &bits, size);
}

static std::vector<double> elements(const Tensor &tensor) {
  std::vector<double> values(tensor.numElements());
  unsigned size = dtypeSize(tensor.dtype());
  forEachElement(tensor.shape(), tensor.strides(), [&](int64_t i, int64_t offset) {
    values[i] = readElement(tensor.dtype(), tensor.data() + offset * size);
  });
  return values;
}

double rondo::relativeError(const Tensor &a, const Tensor &b) {
  if (a.shape() != b.shape())
    return INFINITY;
  std::vector<double> x = elements(a), y = elements(b);
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

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

namespace {

/// Puts values into arguments, each where it was if it is static.
class Filler {
public:
  Filler(const Program &program, Side side, llvm::ArrayRef<DeviceRef> devices, Stream &stream,
         std::vector<Value> &arguments)
      : devices_(devices), stream_(stream), arguments_(arguments), isFirst_(arguments.empty()) {
    arguments_.resize(program.inputs(side).size());
  }

  void set(unsigned i, Value value) { arguments_[i] = std::move(value); }

  /// `source` is a row-major host tensor with the dtype and shape of `type`.
  llvm::Error set(unsigned i, const TensorType &type, bool isStatic, const Tensor &source) {
    Tensor tensor;
    if (isStatic && !isFirst_) {
      tensor = *arguments_[i].asTensor();
    } else {
      llvm::Expected<Tensor> made = Tensor::empty(deviceOf(type), type);
      if (!made)
        return made.takeError();
      tensor = std::move(*made);
    }
    std::vector<std::byte> bytes(tensor.extentBytes());
    unsigned size = dtypeSize(type.dtype);
    forEachElement(tensor.shape(), tensor.strides(), [&](int64_t element, int64_t offset) {
      std::memcpy(bytes.data() + offset * size, source.data() + element * size, size);
    });
    if (llvm::Error error = stream_.copy(tensor.data(), bytes.data(), bytes.size()))
      return error;
    arguments_[i] = std::move(tensor);
    return stream_.synchronize();
  }

  llvm::Error setState(unsigned i, Device device, RNGState state) {
    Tensor source(Storage::borrow(&state, sizeof state, Device::host()), 0, DType::I64, {2}, {1});
    return set(i, TensorType(DType::I64, {2}, device), false, source);
  }

private:
  const DeviceRef &deviceOf(const TensorType &type) const {
    for (const DeviceRef &device : devices_)
      if (device->device() == type.device)
        return device;
    return devices_.front();
  }

  llvm::ArrayRef<DeviceRef> devices_;
  Stream &stream_;
  std::vector<Value> &arguments_;
  const bool isFirst_;
};

} // namespace

llvm::Error rondo::fillRecorded(const Program &program, Side side, const RecordedValues &values,
                                llvm::ArrayRef<DeviceRef> devices, Stream &stream,
                                std::vector<Value> &arguments) {
  Filler filler(program, side, devices, stream, arguments);
  llvm::ArrayRef<ParameterInfo> infos = program.inputs(side);
  for (unsigned i = 0; i < infos.size(); ++i) {
    const ParameterInfo &info = infos[i];
    if (const RNGStateType *state = info.type.asRNGState()) { // PyTorch's are its own
      if (llvm::Error error = filler.setState(i, state->device, {}))
        return error;
      continue;
    }
    const Tensor *recorded = values.input(side, info.name);
    if (!recorded && side == Side::Forward)
      recorded = values.saved(info.name);
    const TensorType *type = info.type.asTensor();
    if (!recorded || !type)
      return makeError("no value is recorded for argument '" + info.name + "' of the " +
                       sideName(side));
    if (recorded->dtype() != type->dtype ||
        recorded->shape() != llvm::ArrayRef<int64_t>(constantDims(type->shape)))
      return makeError("argument '" + info.name + "' of the " + sideName(side) + ": expected " +
                       info.type.str() + ", the recorded value is " +
                       Value(*recorded).description());
    if (llvm::Error error = filler.set(i, *type, any(info.tags & staticTags), *recorded))
      return error;
  }
  return llvm::Error::success();
}

static Value unitScalar(ScalarKind kind) {
  switch (kind) {
  case ScalarKind::I64:
    return Value(int64_t(1));
  case ScalarKind::F64:
    return Value(1.0);
  case ScalarKind::Bool:
    return Value(true);
  }
  return Value();
}

llvm::Error rondo::fillRandom(const Program &program, Side side, uint64_t seed,
                              llvm::ArrayRef<DeviceRef> devices, Stream &stream,
                              std::vector<Value> &arguments,
                              llvm::function_ref<double(const ParameterInfo &)> scaleOf) {
  std::mt19937_64 random(seed * 2 + unsigned(side));
  Filler filler(program, side, devices, stream, arguments);
  llvm::ArrayRef<ParameterInfo> infos = program.inputs(side);
  for (unsigned i = 0; i < infos.size(); ++i) {
    const ParameterInfo &info = infos[i];
    const TensorType *type = info.type.asTensor();
    if (const ScalarType *scalar = info.type.asScalar()) {
      filler.set(i, unitScalar(scalar->kind));
    } else if (const RNGStateType *state = info.type.asRNGState()) {
      if (llvm::Error error = filler.setState(i, state->device, {seed, 0}))
        return error;
    } else if (!type || type->hasSymbols()) {
      return makeError("there is no random value for argument '" + info.name + "' of type " +
                       info.type.str());
    } else {
      TensorType dense(type->dtype, type->shape);
      std::vector<std::byte> bytes(dense.numBytes().value());
      unsigned size = dtypeSize(type->dtype);
      double scale = scaleOf ? scaleOf(info) : 1;
      for (size_t at = 0; at < bytes.size(); at += size) {
        double unit = double(random() >> 11) / double(uint64_t(1) << 53);
        if (type->dtype == DType::BF16) { // toward zero: any number will do
          float number = float(scale * (2 * unit - 1));
          std::memcpy(bytes.data() + at, reinterpret_cast<std::byte *>(&number) + 2, size);
          continue;
        }
        writeElement(type->dtype,
                     isFloat(type->dtype) ? scale * (2 * unit - 1) : double(unit < 0.5),
                     bytes.data() + at);
      }
      Tensor source(Storage::borrow(bytes.data(), bytes.size(), Device::host()), 0, type->dtype,
                    constantDims(dense.shape), constantDims(dense.strides));
      if (llvm::Error error = filler.set(i, *type, any(info.tags & staticTags), source))
        return error;
    }
  }
  return llvm::Error::success();
}
