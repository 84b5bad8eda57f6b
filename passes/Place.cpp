//===- Place.cpp - A pair on another device -------------------------------===//
//
//   %r: rng@cuda:0 = generator_read() {device = cuda:0}
//   %y: f32[8]@cuda:0, %m: bool[8]@cuda:0 = dropout(%x, %r) {p = 0.5}
//
// becomes
//
//   %r: rng = generator_read() {device = host}
//   %y: f32[8], %m: bool[8] = dropout(%x, %r) {p = 0.5}
//
// Devices stand in types and in attributes; both are replaced one by one, in all bodies of both
// traces. An op that makes something of nothing and names no device makes it on the host: it gets
// the attribute when the host moves. A copy between devices that are one afterwards stays a copy.
//
//===----------------------------------------------------------------------===//

#include "rondo/passes/Passes.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

namespace {

class PlacePass : public PairPass {
public:
  explicit PlacePass(PlaceOptions options) : options_(options) {}

  llvm::StringRef name() const override { return "place"; }
  /// Claims were made for the devices as they were.
  PassProperties properties() const override { return {.forbids = TraceProperties::Claimed}; }

  std::string optionsText() const override {
    std::string text;
    if (options_.from)
      text += "from=" + quotePipelineValue(deviceName(*options_.from));
    if (options_.to != Device::host())
      text += (text.empty() ? "to=" : " to=") + quotePipelineValue(deviceName(options_.to));
    return text;
  }

protected:
  llvm::Expected<PassResult> runOnPair(TracePair &pair, DiagnosticList &) override {
    if (options_.from == options_.to)
      return makeError("expected two devices, got " + deviceName(options_.to) + " twice");
    bool changed = runOnTrace(pair.forward());
    if (pair.hasBackward())
      changed |= runOnTrace(pair.backward());
    return changed ? PassResult::Changed : PassResult::Unchanged;
  }

private:
  bool moves(Device device) const {
    return device != options_.to && (options_.from ? device == *options_.from : !device.isHost());
  }

  bool runOnTrace(Trace &trace) const;
  bool moveValues(Trace &trace, llvm::ArrayRef<ValueId> values) const;
  bool moveAttributes(Trace &trace, const Op &op) const;
  bool moveAttribute(Attribute &attribute) const;

  PlaceOptions options_;
};

} // namespace

bool PlacePass::runOnTrace(Trace &trace) const {
  bool changed = moveValues(trace, trace.arguments());
  forEachOp(trace, [&](const Op &op) {
    changed |= moveAttributes(trace, op);
    changed |= moveValues(trace, op.results());
    for (BodyId body : op.bodies())
      changed |= moveValues(trace, trace.arguments(body));
  });
  return changed;
}

bool PlacePass::moveValues(Trace &trace, llvm::ArrayRef<ValueId> values) const {
  bool changed = false;
  for (ValueId value : values) {
    const Type &type = trace.type(value);
    if (!type.device() || !moves(*type.device()))
      continue;
    if (const TensorType *tensor = type.asTensor())
      trace.setType(value, TensorType(tensor->dtype, tensor->shape, tensor->strides, options_.to));
    else
      trace.setType(value, RNGStateType{options_.to});
    changed = true;
  }
  return changed;
}

/// Returns the name of an attribute of `op` that is left out and that would name the host if it
/// were there; empty if there is none.
static llvm::StringRef impliedHost(const Trace &trace, const Op &op) {
  if (llvm::any_of(op.operands(),
                   [&](ValueId value) { return value && trace.type(value).device().has_value(); }))
    return {};
  for (const AttributeSpec &spec : op.spec().attributes)
    if (spec.kind == AttributeKind::Device && !op.attribute(spec.name))
      return spec.name;
  return {};
}

bool PlacePass::moveAttributes(Trace &trace, const Op &op) const {
  bool changed = false;
  // A copy: setting an attribute changes the list.
  for (NamedAttribute &attribute : op.attributes().vec()) {
    if (!moveAttribute(attribute.value))
      continue;
    trace.setAttribute(op.id(), attribute.name, std::move(attribute.value));
    changed = true;
  }
  llvm::StringRef implied = moves(Device::host()) ? impliedHost(trace, op) : llvm::StringRef();
  if (implied.empty())
    return changed;
  trace.setAttribute(op.id(), implied, options_.to);
  return true;
}

/// Replaces the devices in an attribute, lists included. Returns true if there were any.
bool PlacePass::moveAttribute(Attribute &attribute) const {
  if (const Device *device = attribute.asDevice()) {
    if (!moves(*device))
      return false;
    attribute = options_.to;
    return true;
  }
  const Attribute::List *list = attribute.asList();
  if (!list)
    return false;
  Attribute::List moved = *list;
  bool changed = false;
  for (Attribute &element : moved)
    changed |= moveAttribute(element);
  if (changed)
    attribute = std::move(moved);
  return changed;
}

std::unique_ptr<Pass> rondo::createPlacePass(PlaceOptions options) {
  return std::make_unique<PlacePass>(options);
}
