//===- JSONWriter.cpp - Writes traces as JSON -----------------------------===//
//
// Writes as it walks: nothing but the numbers of unnamed values and the text of types already seen
// is kept, so that a trace of a million ops needs little memory. One argument and one op a line:
//
//   {
//     "schema_version": 1,
//     "name": "step",
//     "domains": [],
//     "forward": {
//       "name": "forward",
//       "properties": [],
//       "arguments": [
//         {"name": "x", "type": {"kind": "tensor", "dtype": "f32", "shape": [8], "strides": [1],
//         "device": "host"}}
//       ],
//       "ops": [
//         {"op": "relu", "operands": ["x"], "results": [{"name": 0, "type": ...}]},
//         {"op": "return", "operands": [0], "results": []}
//       ]
//     }
//   }
//
// Keys come in a fixed order; what is empty is left out unless a reader asks for it.
// docs/trace.schema.json describes every key.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/JSON.h"

#include "JSONString.h"

#include "llvm/ADT/DenseMap.h"

#include <cmath>

using namespace rondo;

namespace {

/// Domains of a pair in the order of their first use.
class DomainTable {
public:
  explicit DomainTable(const TracePair &pair) {
    collect(pair.forward());
    if (pair.hasBackward())
      collect(pair.backward());
  }
  llvm::ArrayRef<const CaptureDomain *> domains() const { return domains_; }
  unsigned index(const CaptureDomain *domain) const { return indices_.lookup(domain); }

private:
  void collect(const Trace &trace) {
    forEachOp(trace, [&](const Op &op) {
      const CaptureDomain *domain = op.domain();
      if (domain && indices_.try_emplace(domain, unsigned(domains_.size())).second)
        domains_.push_back(domain);
    });
  }

  std::vector<const CaptureDomain *> domains_;
  llvm::DenseMap<const CaptureDomain *, unsigned> indices_;
};

/// Puts the separators between the items of an array or object on one line.
class Commas {
public:
  explicit Commas(llvm::raw_ostream &os, llvm::StringRef separator = ", ")
      : os_(os), separator_(separator) {}
  void next() {
    if (!isFirst_)
      os_ << separator_;
    isFirst_ = false;
  }

private:
  llvm::raw_ostream &os_;
  llvm::StringRef separator_;
  bool isFirst_ = true;
};

class TraceWriter {
public:
  TraceWriter(const Trace &trace, const DomainTable &domains, bool marksReturn,
              llvm::raw_ostream &os)
      : trace_(trace), domains_(domains), marksReturn_(marksReturn), os_(os),
        numbers_(trace.numValues()) {}

  /// The object of the trace; its first line is not indented, the others are by `indent` at least.
  void write(unsigned indent);

private:
  /// The number of an unnamed value, and the body in which it has it.
  struct Number {
    BodyId body;
    uint32_t number = 0;
  };
  /// The body being written and how many unnamed values it has so far.
  struct Scope {
    BodyId body;
    uint32_t numUnnamed = 0;
  };

  void writeBody(BodyId body, unsigned indent);
  void writeArgument(ValueId value, unsigned index, Scope &scope);
  void writeOp(const Op &op, Scope &scope, unsigned indent);
  void writeOperands(const Op &op, const Scope &scope);
  void writeAnnotations(const Op &op);
  void writeDefinition(ValueId value, Scope &scope);
  void writeReference(ValueId value, const Scope &scope);
  void writeType(const Type *type);

  const Trace &trace_;
  const DomainTable &domains_;
  bool marksReturn_; ///< whether the operands of the top `return` may be saved for the backward
  llvm::raw_ostream &os_;
  std::vector<Number> numbers_;
  llvm::DenseMap<const Type *, std::string> types_;
};

} // namespace

static void newLine(llvm::raw_ostream &os, unsigned indent) {
  os << '\n';
  os.indent(indent);
}

static void writeStrings(llvm::raw_ostream &os, llvm::ArrayRef<llvm::StringRef> words) {
  Commas commas(os);
  os << '[';
  for (llvm::StringRef word : words) {
    commas.next();
    writeJSONString(os, word);
  }
  os << ']';
}

//===--- Types and attributes ---------------------------------------------===//

static void writeDim(llvm::raw_ostream &os, const Dim &dim) {
  if (std::optional<int64_t> constant = dim.asConstant())
    os << *constant;
  else
    writeJSONString(os, dim.str());
}

static void writeDims(llvm::raw_ostream &os, llvm::ArrayRef<Dim> dims) {
  Commas commas(os);
  os << '[';
  for (const Dim &dim : dims) {
    commas.next();
    writeDim(os, dim);
  }
  os << ']';
}

static void writeTensorType(llvm::raw_ostream &os, const TensorType &type) {
  os << R"({"kind": "tensor", "dtype": ")" << dtypeName(type.dtype) << R"(", "shape": )";
  writeDims(os, type.shape);
  os << R"(, "strides": )";
  writeDims(os, type.strides);
  os << R"(, "device": ")" << deviceName(type.device) << R"("})";
}

static void writeTypeObject(llvm::raw_ostream &os, const Type &type) {
  if (const TensorType *tensor = type.asTensor()) {
    writeTensorType(os, *tensor);
  } else if (const ScalarType *scalar = type.asScalar()) {
    os << R"({"kind": "scalar", "dtype": ")" << scalarKindName(scalar->kind) << R"("})";
  } else if (const RNGStateType *state = type.asRNGState()) {
    os << R"({"kind": "rng", "device": ")" << deviceName(state->device) << R"("})";
  } else if (const OpaqueType *opaque = type.asOpaque()) {
    os << R"({"kind": "opaque", "name": )";
    writeJSONString(os, opaque->name);
    if (!opaque->parameters.empty()) {
      os << R"(, "parameters": )";
      writeJSONString(os, opaque->parameters);
    }
    os << '}';
  }
}

static void writeFloat(llvm::raw_ostream &os, double value) {
  const char *quote = std::isfinite(value) ? "" : "\"";
  os << R"({"float": )" << quote;
  printDouble(os, value);
  os << quote << '}';
}

static void writeAttribute(llvm::raw_ostream &os, const Attribute &attribute) {
  switch (attribute.kind()) {
  case Attribute::Kind::None:
    os << "null";
    return;
  case Attribute::Kind::Bool:
    os << (*attribute.asBool() ? "true" : "false");
    return;
  case Attribute::Kind::Int:
    if (std::optional<int64_t> constant = attribute.asInt()) {
      os << *constant;
      return;
    }
    os << R"({"symbolic": )";
    writeDim(os, *attribute.asDim());
    os << '}';
    return;
  case Attribute::Kind::Float:
    writeFloat(os, *attribute.asFloat());
    return;
  case Attribute::Kind::String:
    writeJSONString(os, *attribute.asString());
    return;
  case Attribute::Kind::DType:
    os << R"({"dtype": ")" << dtypeName(*attribute.asDType()) << R"("})";
    return;
  case Attribute::Kind::Device:
    os << R"({"device": ")" << deviceName(*attribute.asDevice()) << R"("})";
    return;
  case Attribute::Kind::List: {
    Commas commas(os);
    os << '[';
    for (const Attribute &element : *attribute.asList()) {
      commas.next();
      writeAttribute(os, element);
    }
    os << ']';
    return;
  }
  }
}

//===--- Values -----------------------------------------------------------===//

void TraceWriter::writeType(const Type *type) {
  auto [it, isNew] = types_.try_emplace(type);
  if (isNew) {
    llvm::raw_string_ostream text(it->second);
    writeTypeObject(text, *type);
    text.flush();
  }
  os_ << it->second;
}

/// An argument or result, without the closing brace.
void TraceWriter::writeDefinition(ValueId value, Scope &scope) {
  os_ << R"({"name": )";
  if (trace_.name(value).empty()) {
    numbers_[value.index()] = {scope.body, scope.numUnnamed};
    os_ << scope.numUnnamed++;
  } else {
    writeJSONString(os_, trace_.name(value));
  }
  os_ << R"(, "type": )";
  writeType(&trace_.type(value));
  if (any(trace_.tags(value))) {
    llvm::SmallVector<llvm::StringRef, 4> tags;
    for (ValueTags tag : allValueTags) {
      if (any(trace_.tags(value) & tag))
        tags.push_back(valueTagName(tag));
    }
    os_ << R"(, "tags": )";
    writeStrings(os_, tags);
  }
  if (!trace_.valuePath(value).empty()) {
    os_ << R"(, "path": )";
    writeJSONString(os_, trace_.valuePath(value));
  }
}

/// A value that has neither a name nor a number in this body is -1: no valid trace has one, but
/// those who look for a fault may write any.
void TraceWriter::writeReference(ValueId value, const Scope &scope) {
  bool exists = value && value.index() < numbers_.size();
  if (!value)
    os_ << "null";
  else if (exists && !trace_.name(value).empty())
    writeJSONString(os_, trace_.name(value));
  else if (exists && numbers_[value.index()].body == scope.body)
    os_ << numbers_[value.index()].number;
  else
    os_ << -1;
}

void TraceWriter::writeArgument(ValueId value, unsigned index, Scope &scope) {
  writeDefinition(value, scope);
  if (scope.body == Trace::topBody()) {
    if (SavedId saved = trace_.savedArgument(index))
      os_ << R"(, "saved": )" << saved.index();
  }
  os_ << '}';
}

//===--- Ops --------------------------------------------------------------===//

void TraceWriter::writeOperands(const Op &op, const Scope &scope) {
  const Op *terminator = trace_.terminator();
  bool mayBeSaved = marksReturn_ && terminator == &op;
  Commas commas(os_);
  os_ << R"(, "operands": [)";
  for (unsigned i = 0; i < op.operands().size(); ++i) {
    commas.next();
    SavedId saved = mayBeSaved ? trace_.savedReturn(i) : SavedId();
    if (saved)
      os_ << R"({"value": )";
    writeReference(op.operand(i), scope);
    if (saved)
      os_ << R"(, "saved": )" << saved.index() << '}';
  }
  os_ << ']';
}

void TraceWriter::writeAnnotations(const Op &op) {
  if (!op.modulePath().empty()) {
    os_ << R"(, "module": )";
    writeJSONString(os_, op.modulePath());
  }
  if (const Location *location = op.location(); location && op.hasExplicitLocation()) {
    os_ << R"(, "location": {"file": )";
    writeJSONString(os_, location->file);
    os_ << R"(, "line": )" << location->line << R"(, "column": )" << location->column;
    if (!location->path.empty()) {
      os_ << R"(, "path": )";
      writeJSONString(os_, location->path);
    }
    os_ << '}';
  }
  if (const Claim *claim = op.claim()) {
    os_ << R"(, "claim": {"executor": )";
    writeJSONString(os_, claim->executor);
    os_ << R"(, "capturable": )" << (claim->capturable ? "true" : "false");
    if (!claim->why.empty()) {
      os_ << R"(, "why": )";
      writeJSONString(os_, claim->why);
    }
    if (claim->workspaceBytes)
      os_ << R"(, "workspace_bytes": )" << claim->workspaceBytes;
    os_ << '}';
  }
  if (const FusionRecord *record = op.fusionRecord()) {
    os_ << R"(, "fusion": {"captured": )" << (record->captured ? "true" : "false")
        << R"(, "decider": ")" << fusionDeciderName(record->decider) << '"';
    if (!record->reason.empty()) {
      os_ << R"(, "reason": )";
      writeJSONString(os_, record->reason);
    }
    os_ << '}';
  }
  if (op.domain())
    os_ << R"(, "domain": )" << domains_.index(op.domain());
}

void TraceWriter::writeOp(const Op &op, Scope &scope, unsigned indent) {
  os_ << R"({"op": )";
  writeJSONString(os_, op.name());
  writeOperands(op, scope);
  if (!op.attributes().empty()) {
    Commas commas(os_);
    os_ << R"(, "attributes": {)";
    for (const NamedAttribute &attribute : op.attributes()) {
      commas.next();
      writeJSONString(os_, attribute.name);
      os_ << ": ";
      writeAttribute(os_, attribute.value);
    }
    os_ << '}';
  }
  Commas commas(os_);
  os_ << R"(, "results": [)";
  for (ValueId result : op.results()) {
    commas.next();
    writeDefinition(result, scope);
    os_ << '}';
  }
  os_ << ']';
  writeAnnotations(op);
  if (!op.bodies().empty()) {
    Commas bodyCommas(os_);
    os_ << R"(, "bodies": [)";
    for (BodyId body : op.bodies()) {
      bodyCommas.next();
      os_ << '{';
      writeBody(body, indent + 2);
      newLine(os_, indent);
      os_ << '}';
    }
    os_ << ']';
  }
  os_ << '}';
}

/// The arguments and ops of `body`, each key on a line of its own.
void TraceWriter::writeBody(BodyId body, unsigned indent) {
  Scope scope{body};
  // Closes an array whose items were on lines of their own.
  auto close = [&](bool isEmpty) {
    if (!isEmpty)
      newLine(os_, indent);
    os_ << ']';
  };
  newLine(os_, indent);
  os_ << R"("arguments": [)";
  Commas argumentCommas(os_, ",");
  llvm::ArrayRef<ValueId> arguments = trace_.arguments(body);
  for (unsigned i = 0; i < arguments.size(); ++i) {
    argumentCommas.next();
    newLine(os_, indent + 2);
    writeArgument(arguments[i], i, scope);
  }
  close(arguments.empty());
  os_ << ',';
  newLine(os_, indent);
  os_ << R"("ops": [)";
  Commas opCommas(os_, ",");
  for (OpId op : trace_.ops(body)) {
    if (trace_.isErased(op))
      continue;
    opCommas.next();
    newLine(os_, indent + 2);
    writeOp(trace_.op(op), scope, indent + 2);
  }
  close(trace_.ops(body).empty());
}

void TraceWriter::write(unsigned indent) {
  os_ << '{';
  newLine(os_, indent + 2);
  os_ << R"("name": )";
  writeJSONString(os_, trace_.name());
  os_ << ',';
  newLine(os_, indent + 2);
  os_ << R"("properties": )";
  llvm::SmallVector<llvm::StringRef, 4> properties;
  for (TraceProperties property : allTraceProperties) {
    if (trace_.has(property))
      properties.push_back(tracePropertyName(property));
  }
  writeStrings(os_, properties);
  os_ << ',';
  writeBody(Trace::topBody(), indent + 2);
  newLine(os_, indent);
  os_ << '}';
}

//===--- Pairs ------------------------------------------------------------===//

void rondo::writeJSON(const TracePair &pair, llvm::raw_ostream &os) {
  DomainTable domains(pair);
  os << "{\n  \"schema_version\": " << jsonSchemaVersion << ",\n  \"name\": ";
  writeJSONString(os, pair.name());
  os << ",\n  \"domains\": [";
  Commas commas(os);
  for (const CaptureDomain *domain : domains.domains()) {
    commas.next();
    os << R"({"name": )";
    writeJSONString(os, domain->name());
    os << '}';
  }
  os << "],\n  \"forward\": ";
  TraceWriter(pair.forward(), domains, /*marksReturn=*/true, os).write(2);
  if (pair.hasBackward()) {
    os << ",\n  \"backward\": ";
    TraceWriter(pair.backward(), domains, /*marksReturn=*/false, os).write(2);
  }
  os << "\n}\n";
}
