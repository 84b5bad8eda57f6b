//===- FXMapPointwise.cpp - ATen's pointwise ops and reductions -------------===//

#include "FXCall.h"
#include "FXOpMapping.h"

using namespace rondo;
using namespace rondo::fx;

void rondo::fx::lowerOperands(Call &call, llvm::StringRef core) {
  call.emit(core, call.allTensors());
}

/// Adds `value` under `name` if there is one.
static void addIfGiven(AttributeList &attributes, llvm::StringRef name,
                       std::optional<Attribute> value) {
  if (value)
    attributes.emplace_back(name, std::move(*value));
}

//===----------------------------------------------------------------------===//
// Element by element
//===----------------------------------------------------------------------===//

void rondo::fx::lowerBinary(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  auto [other, scalar] = call.operandOrNumber("other");
  AttributeList attributes;
  addIfGiven(attributes, "scalar", scalar);
  addIfGiven(attributes, "alpha", call.optionalNumber("alpha"));
  call.emit(core, {self, other}, attributes);
}

void rondo::fx::lowerGelu(Call &call, llvm::StringRef core) {
  call.emit(core, {call.tensor("self")}, {{"approximate", call.string("approximate", "none")}});
}

void rondo::fx::lowerGeluBackward(Call &call, llvm::StringRef core) {
  call.emit(core, {call.tensor("grad_output"), call.tensor("self")},
            {{"approximate", call.string("approximate", "none")}});
}

void rondo::fx::lowerLeakyRelu(Call &call, llvm::StringRef core) {
  AttributeList attributes;
  addIfGiven(attributes, "slope", call.optionalNumber("negative_slope"));
  call.emit(core, {call.tensor("self")}, attributes);
}

void rondo::fx::lowerLeakyReluBackward(Call &call, llvm::StringRef core) {
  if (call.boolean("self_is_result"))
    return call.fail();
  call.emit(core, {call.tensor("grad_output"), call.tensor("self")},
            {{"slope", call.number("negative_slope")}});
}

void rondo::fx::lowerSoftplus(Call &call, llvm::StringRef core) {
  AttributeList attributes;
  addIfGiven(attributes, "beta", call.optionalNumber("beta"));
  addIfGiven(attributes, "threshold", call.optionalNumber("threshold"));
  call.emit(core, {call.tensor("self")}, attributes);
}

void rondo::fx::lowerClamp(Call &call, llvm::StringRef core) {
  AttributeList attributes;
  addIfGiven(attributes, "min", call.optionalNumber("min"));
  addIfGiven(attributes, "max", call.optionalNumber("max"));
  call.emit(core, {call.tensor("self")}, attributes);
}

void rondo::fx::lowerMaskedFill(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self"), mask = call.tensor("mask");
  auto [value, scalar] = call.operandOrNumber("value");
  AttributeList attributes;
  addIfGiven(attributes, "scalar", scalar);
  call.emit(core, {self, mask, value}, attributes);
}

void rondo::fx::lowerAddc(Call &call, llvm::StringRef core) {
  AttributeList attributes;
  addIfGiven(attributes, "value", call.optionalNumber("value"));
  call.emit(core, {call.tensor("self"), call.tensor("tensor1"), call.tensor("tensor2")},
            attributes);
}

void rondo::fx::lowerLerp(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self"), end = call.tensor("end");
  auto [weight, scalar] = call.operandOrNumber("weight");
  AttributeList attributes;
  addIfGiven(attributes, "scalar", scalar);
  call.emit(core, {self, end, weight}, attributes);
}

void rondo::fx::lowerThresholdBackward(Call &call, llvm::StringRef core) {
  call.emit(core, {call.tensor("grad_output"), call.tensor("self")},
            {{"threshold", call.number("threshold")}});
}

/// `_to_copy` changes the dtype, the device, both, or only the place in memory.
void rondo::fx::lowerToCopy(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  call.ignore("pin_memory non_blocking");
  if (llvm::StringRef layout = call.name("layout"); !layout.empty() && layout != "torch.strided")
    return call.fail();
  llvm::StringRef format = call.name("memory_format");
  if (!format.empty() && format != "torch.preserve_format")
    return call.fail();
  const TensorType &from = call.type(self);
  DType dtype = call.dtype("dtype").value_or(from.dtype);
  Device device = call.device("device").value_or(from.device);
  bool isCast = dtype != from.dtype, isMove = device != from.device;
  if (isCast && isMove)
    self = call.emitValue(core, {self}, {{"dtype", dtype}});
  if (isMove)
    return call.emit("to_device", {self}, {{"device", device}});
  if (isCast)
    return call.emit(core, {self}, {{"dtype", dtype}});
  call.emit("clone", {self}, {{"contiguous", call.type(self).isContiguous()}});
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

void rondo::fx::lowerReduction(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  AttributeList attributes;
  // Without dimensions, or with an empty list of them, it reduces all.
  if (!call.isAbsent("dim"))
    attributes.emplace_back("dims",
                            llvm::ArrayRef<int64_t>(call.dims("dim", call.type(self).rank())));
  attributes.emplace_back("keepdim", call.boolean("keepdim"));
  if (std::optional<DType> dtype = call.dtype("dtype"))
    attributes.emplace_back("dtype", *dtype);
  addIfGiven(attributes, "correction", call.optionalNumber("correction"));
  addIfGiven(attributes, "p", call.optionalNumber("ord"));
  call.emit(core, {self}, attributes);
}

void rondo::fx::lowerArgExtremum(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  AttributeList attributes{{"keepdim", call.boolean("keepdim")}};
  if (!call.isAbsent("dim"))
    attributes.emplace_back("dim", call.dim("dim", call.type(self).rank()));
  call.emit(core, {self}, attributes);
}

/// The softmaxes and cumulative ops. `half_to_float` asks for f32.
void rondo::fx::lowerAlongDim(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  AttributeList attributes{{"dim", call.dim("dim", call.type(self).rank())}};
  if (std::optional<DType> dtype = call.dtype("dtype"))
    attributes.emplace_back("dtype", *dtype);
  if (call.boolean("half_to_float"))
    attributes.emplace_back("dtype", DType::F32);
  call.emit(core, {self}, attributes);
}

void rondo::fx::lowerSoftmaxBackward(Call &call, llvm::StringRef core) {
  ValueId grad = call.tensor("grad_output"), output = call.tensor("output");
  AttributeList attributes{{"dim", call.dim("dim", call.type(output).rank())}};
  std::optional<DType> dtype = call.dtype("input_dtype");
  if (dtype && *dtype != call.type(grad).dtype)
    attributes.emplace_back("dtype", *dtype);
  call.emit(core, {grad, output}, attributes);
}
