//===- FXMapFactories.cpp - ATen's factories and random ops -----------------===//

#include "FXCall.h"
#include "FXOpMapping.h"

using namespace rondo;
using namespace rondo::fx;

/// The type of what a factory makes; null when the call fails. The recorded result says dtype and
/// device, whether they were given or follow from a tensor; sizes that are given must be numbers.
static const TensorType *made(Call &call) {
  call.ignore("self dtype device pin_memory memory_format");
  llvm::StringRef layout = call.name("layout");
  const TensorType *type = call.recorded();
  bool sizesFit =
      call.isAbsent("size") || (type && asConstants(type->shape) == call.integers("size"));
  if ((layout.empty() || layout == "torch.strided") && type && sizesFit && !call.failed())
    return type;
  call.fail();
  return nullptr;
}

static AttributeList madeAttributes(const TensorType &type) {
  return {
      {"shape", llvm::ArrayRef<Dim>(type.shape)}, {"dtype", type.dtype}, {"device", type.device}};
}

static void fill(Call &call, llvm::StringRef core, std::optional<Attribute> value) {
  const TensorType *type = made(call);
  if (!type)
    return;
  AttributeList attributes = madeAttributes(*type);
  if (value)
    attributes.emplace_back("value", std::move(*value));
  call.emit(core, {}, attributes);
}

/// 0 or 1 as a number of the dtype that is made.
static Attribute unit(Call &call, bool isOne) {
  const TensorType *type = call.recorded();
  if (type && type->dtype == DType::Bool)
    return isOne;
  return type && isFloat(type->dtype) ? Attribute(double(isOne)) : Attribute(int(isOne));
}

void rondo::fx::lowerFull(Call &call, llvm::StringRef core) {
  fill(call, core, call.number("fill_value"));
}
void rondo::fx::lowerZeros(Call &call, llvm::StringRef core) {
  fill(call, core, unit(call, false));
}
void rondo::fx::lowerOnes(Call &call, llvm::StringRef core) {
  fill(call, core, unit(call, true));
}
void rondo::fx::lowerEmpty(Call &call, llvm::StringRef core) {
  fill(call, core, std::nullopt);
}

void rondo::fx::lowerArange(Call &call, llvm::StringRef core) {
  AttributeList attributes;
  for (llvm::StringRef bound : {"start", "end", "step"})
    if (std::optional<Attribute> number = call.optionalNumber(bound))
      attributes.emplace_back(bound, *number);
  const TensorType *type = made(call);
  if (!type)
    return;
  attributes.emplace_back("dtype", type->dtype);
  attributes.emplace_back("device", type->device);
  call.emit(core, {}, attributes);
}

void rondo::fx::lowerEye(Call &call, llvm::StringRef core) {
  AttributeList attributes{{"n", call.integer("n")}};
  if (!call.isAbsent("m"))
    attributes.emplace_back("m", call.integer("m"));
  const TensorType *type = made(call);
  if (!type)
    return;
  attributes.emplace_back("dtype", type->dtype);
  attributes.emplace_back("device", type->device);
  call.emit(core, {}, attributes);
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

/// One random number for each element of `type`.
static std::pair<ValueId, int64_t> drawFor(Call &call, const TensorType &type) {
  return call.draw(type.device, type.numElements().asConstant().value_or(0));
}

void rondo::fx::lowerDrawn(Call &call, llvm::StringRef core) {
  AttributeList bounds;
  for (llvm::StringRef bound : {"low", "high"})
    if (!call.isAbsent(bound))
      bounds.emplace_back(bound, call.integer(bound));
  const TensorType *type = made(call);
  if (!type)
    return;
  auto [state, offset] = drawFor(call, *type);
  AttributeList attributes{
      {"shape", llvm::ArrayRef<Dim>(type->shape)}, {"dtype", type->dtype}, {"offset", offset}};
  attributes.append(bounds);
  call.emit(core, {state}, attributes);
}

void rondo::fx::lowerBernoulli(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  auto [state, offset] = drawFor(call, call.type(self));
  call.emit(core, {self, state}, {{"offset", offset}});
}

void rondo::fx::lowerMultinomial(Call &call, llvm::StringRef core) {
  ValueId self = call.tensor("self");
  int64_t count = call.integer("num_samples");
  bool replacement = call.boolean("replacement");
  const TensorType *type = call.recorded();
  if (!type)
    return call.fail();
  auto [state, offset] = drawFor(call, *type);
  call.emit(core, {self, state}, {{"n", count}, {"replacement", replacement}, {"offset", offset}});
}

void rondo::fx::lowerDropout(Call &call, llvm::StringRef core) {
  ValueId input = call.tensor("input");
  Attribute p = call.number("p");
  // Without training it is the input itself and a mask of ones.
  if (!call.boolean("train", true))
    return call.fail();
  auto [state, offset] = drawFor(call, call.type(input));
  call.emit(core, {input, state}, {{"p", p}, {"offset", offset}});
}

void rondo::fx::lowerDropoutBackward(Call &call, llvm::StringRef core) {
  call.emit(core, {call.tensor("grad_output"), call.tensor("mask")},
            {{"scale", call.number("scale")}});
}
