//===- CoreOpsTable.cpp - How the core ops are written down ---------------===//

#include "CoreOpsTable.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <limits>

using namespace rondo;

/// The parts of a list separated by ", ".
static llvm::SmallVector<llvm::StringRef, 8> listed(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef, 8> parts;
  text.split(parts, ", ", /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  return parts;
}

OpDef::OpDef(llvm::StringRef name, llvm::StringRef summary) {
  spec_.name = name.str();
  spec_.summary = summary.str();
  spec_.results = {"out"};
}

OpDef &OpDef::in(llvm::StringRef operands) {
  for (llvm::StringRef part : listed(operands)) {
    auto [name, kind] = part.split(':');
    OperandSpec operand;
    operand.arity = name.consume_back("?")   ? Arity::Optional
                    : name.consume_back("*") ? Arity::Variadic
                                             : Arity::Required;
    operand.name = name.str();
    operand.kind = llvm::StringSwitch<OperandKind>(kind)
                       .Case("number", OperandKind::TensorOrScalar)
                       .Case("scalar", OperandKind::Scalar)
                       .Case("rng", OperandKind::RNGState)
                       .Case("any", OperandKind::Any)
                       .Default(OperandKind::Tensor);
    spec_.operands.push_back(std::move(operand));
  }
  return *this;
}

OpDef &OpDef::out(llvm::StringRef results) {
  spec_.results.clear();
  for (llvm::StringRef name : listed(results))
    spec_.results.push_back(name.str());
  return *this;
}

OpDef &OpDef::variadicOut(llvm::StringRef results) {
  spec_.variadicResults = true;
  return out(results);
}

OpDef &OpDef::attr(llvm::StringRef name, AttributeKind kind) {
  spec_.attributes.push_back({name.str(), kind, /*required=*/true, {}});
  return *this;
}

OpDef &OpDef::attr(llvm::StringRef name, AttributeKind kind, Attribute defaultValue) {
  spec_.attributes.push_back({name.str(), kind, /*required=*/false, std::move(defaultValue)});
  return *this;
}

OpDef &OpDef::optional(llvm::StringRef name, AttributeKind kind) {
  return attr(name, kind, Attribute());
}

OpDef &OpDef::sliceAttributes() {
  return attr("dim", AttributeKind::Int, 0)
      .attr("start", AttributeKind::Int, 0)
      .attr("end", AttributeKind::Int, std::numeric_limits<int64_t>::max())
      .attr("step", AttributeKind::Int, 1);
}

OpDef &OpDef::pointwise(PointwiseRule rule) {
  return infer([rule](Inference &in) { return inferPointwise(in, rule); },
               DevicePolicy::HostScalars);
}

OpDef &OpDef::viewOffset(llvm::Expected<Dim> (*fn)(const Inference &, unsigned)) {
  spec_.viewOffset = [fn](const OpContext &op, unsigned result) -> Dim {
    llvm::SmallVector<Type, 0> results; // of an Inference; nothing is inferred
    llvm::Expected<Dim> offset = fn(Inference(op, results), result);
    if (offset)
      return std::move(*offset);
    llvm::consumeError(offset.takeError());
    return Dim::overflow();
  };
  return *this;
}

OpDef &OpDef::verify(VerifyFn check) {
  if (!spec_.verify) {
    spec_.verify = std::move(check);
    return *this;
  }
  spec_.verify = [first = std::move(spec_.verify), second = std::move(check)](const OpContext &op) {
    llvm::Error error = first(op);
    return error ? std::move(error) : second(op);
  };
  return *this;
}

OpDef &OpDef::oneOf(llvm::StringRef attribute, std::vector<std::string> values) {
  return verify(
      [name = attribute.str(), values = std::move(values)](const OpContext &op) -> llvm::Error {
        llvm::StringRef given = op.stringAttribute(name);
        for (const std::string &value : values)
          if (given == value)
            return llvm::Error::success();
        std::string choices;
        for (size_t i = 0; i < values.size(); ++i)
          choices += (i == 0 ? "'" : i + 1 < values.size() ? ", '" : " or '") + values[i] + "'";
        return expects("attribute '" + name + "' to be " + choices + ", got '" + given + "'");
      });
}

OpDef &OpDef::between(llvm::StringRef attribute, double low, double high) {
  return verify([name = attribute.str(), low, high](const OpContext &op) -> llvm::Error {
    const Attribute *given = op.attribute(name);
    std::optional<double> value = given ? given->asNumber() : std::nullopt;
    if (!value || (*value >= low && *value <= high)) // false for nan
      return llvm::Error::success();
    bool bounded = std::isfinite(high);
    return expects("attribute '" + name + "' to be " +
                   (bounded ? "in [" + Attribute(low).str() + ", " + Attribute(high).str() + "]"
                            : "at least " + Attribute(int64_t(low)).str()) +
                   ", got " + given->str());
  });
}

OpDef &OpDef::atLeast(llvm::StringRef attribute, double low) {
  return between(attribute, low, HUGE_VAL);
}

OpDef &OpDef::noLaunch() {
  spec_.launches = false;
  return *this;
}

OpDef &OpDef::countsFromStorageStart() {
  spec_.countsFromStorageStart = true;
  return *this;
}

OpDef &OpDef::noReads() {
  spec_.readsOperands = false;
  return *this;
}

OpDef &OpDef::viewOfFirst() {
  spec_.views = {{0, 0}};
  return noLaunch().noReads();
}

OpDef &OpDef::allViewsOfFirst() {
  spec_.allResultsViewFirst = true;
  return noLaunch().noReads();
}

OpDef &OpDef::renames(std::vector<ViewEffect> names) {
  spec_.writes.clear();
  for (ViewEffect name : names)
    spec_.writes.push_back(name.operand);
  spec_.views = std::move(names);
  return *this;
}

OpDef &OpDef::random() {
  spec_.random = true;
  return *this;
}

OpDef &OpDef::draws(DrawsFn fn) {
  spec_.draws = std::move(fn);
  return *this;
}

OpDef &OpDef::commutative() {
  spec_.commutative = true;
  return *this;
}

OpDef &OpDef::terminator() {
  spec_.terminator = true;
  return *this;
}

OpDef &OpDef::bodies(BodyKind kind) {
  spec_.bodies = kind;
  return *this;
}

OpDef &OpDef::resource(ResourceKind kind, bool writes) {
  spec_.resources.push_back({kind, {}, writes});
  return *this;
}

OpDef &OpDef::namedResource(ResourceKind kind, llvm::StringRef attribute, bool writes) {
  return effects([kind, name = attribute.str(), writes](const OpContext &op, Effects &effects) {
    effects.addResource({kind, op.stringAttribute(name), writes});
  });
}

OpDef &OpDef::effects(EffectsFn effects) {
  spec_.effects = std::move(effects);
  return *this;
}

void OpTable::add(OpDef &def) {
  error_ = llvm::joinErrors(std::move(error_), registry_.registerOp(def.take()));
}
