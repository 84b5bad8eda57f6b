//===- JSONReader.cpp - Reads traces from JSON ----------------------------===//
//
// The text is parsed into a JSONDocument, which is walked once, in the order of the text. Reading
// goes on after an error, with values of a stand-in type where it must, so that one run reports
// many; what was read without errors is verified. Names are looked up in the scope of their body
// only. Whatever the text holds, nothing crashes: nesting is bounded, and what the functions of
// Trace assert is checked here.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/JSON.h"

#include "JSONCursor.h"
#include "JSONLiterals.h"
#include "JSONScope.h"
#include "LiteralReader.h"

#include "rondo/ir/Verifier.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

namespace {

/// What both traces of a pair share.
struct Context {
  const OpRegistry &registry;
  DiagnosticList &diagnostics;
  JSONLiterals literals;
  std::vector<CaptureDomainRef> domains;
};

/// Reads one trace of a pair.
class TraceReader {
public:
  TraceReader(Context &context, Side side)
      : context_(context), side_(side), trace_(context.registry) {}

  void read(JSONCursor cursor);
  /// What was read. Once.
  Trace takeTrace() { return std::move(trace_); }

  /// One end of a saved link: position of the operand or argument, and the link.
  using SavedMark = std::pair<unsigned, SavedId>;
  llvm::ArrayRef<SavedMark> savedMarks() const { return savedMarks_; }

private:
  void readProperties(JSONCursor cursor);
  void readBody(JSONCursor cursor, BodyId body, const JSONScope *parent, unsigned depth);
  void readArgument(JSONCursor cursor, BodyId body, JSONScope &scope);
  void readOp(JSONCursor cursor, BodyId body, JSONScope &scope, unsigned depth);

  const OpSpec *readSpec(JSONCursor op);
  void readOperands(JSONCursor op, JSONScope &scope, OpInit &init, bool mayBeSaved);
  ValueId readOperand(JSONCursor cursor, unsigned index, JSONScope &scope, bool mayBeSaved);
  void readAttributes(JSONCursor op, OpInit &init);
  void readResults(JSONCursor cursor, OpId op, JSONScope &scope);
  void readAnnotations(JSONCursor cursor, OpId op);
  void readLocation(JSONCursor cursor, OpId op);
  void readClaim(JSONCursor cursor, OpId op);
  void readFusionRecord(JSONCursor cursor, OpId op);
  void readDomain(JSONCursor cursor, OpId op);
  void readBodies(JSONCursor cursor, OpId op, const JSONScope &scope, unsigned depth);

  Type readValueType(JSONCursor cursor);
  llvm::StringRef readValueName(JSONCursor cursor, JSONScope &scope);
  ValueTags readTags(JSONCursor cursor);
  void define(JSONCursor cursor, ValueId value, JSONScope &scope);
  void readDetails(JSONCursor cursor, ValueId value, JSONScope &scope);
  void readSaved(JSONCursor cursor, unsigned index);
  void reportUnresolved(llvm::ArrayRef<JSONCursor> uses, const JSONScope &scope);

  Context &context_;
  const Side side_;
  Trace trace_;
  std::vector<SavedMark> savedMarks_;
  llvm::DenseMap<uint32_t, JSONCursor> savedPlaces_; ///< where each id was seen
  std::vector<JSONCursor> unresolved_; ///< uses of what is not defined above, in this body
};

} // namespace

//===--- Values -----------------------------------------------------------===//

Type TraceReader::readValueType(JSONCursor cursor) {
  std::optional<JSONCursor> member = cursor.require("type");
  std::optional<Type> type = member ? context_.literals.readType(*member) : std::nullopt;
  return type ? std::move(*type) : Type(ScalarKind::I64);
}

/// Empty for a value that has a number instead.
llvm::StringRef TraceReader::readValueName(JSONCursor cursor, JSONScope &scope) {
  std::optional<JSONCursor> member = cursor.require("name");
  std::optional<llvm::StringRef> name = member ? member->asString() : std::nullopt;
  bool isNumber = member && member->kind() == JSONKind::Int;
  if (isNumber && member->expectUnsigned(JSONScope::maxNumber))
    return {};
  if (name && Trace::isValueName(*name))
    return *name;
  scope.isIncomplete = true;
  if (name)
    member->error("malformed value name " + quoteForMessage(*name));
  else if (member && !isNumber)
    member->error("expected a name, or a number for an unnamed value, got " +
                  jsonKindName(member->kind()));
  return {};
}

ValueTags TraceReader::readTags(JSONCursor cursor) {
  ValueTags tags = ValueTags::None;
  std::optional<JSONCursor> member = cursor.find("tags");
  if (!member || !member->expectArray())
    return tags;
  llvm::SmallVector<llvm::StringRef, 4> names;
  for (ValueTags tag : allValueTags)
    names.push_back(valueTagName(tag));
  for (JSONCursor element : member->elements()) {
    std::optional<size_t> index = element.expectWord("a tag", names);
    if (!index)
      continue;
    if (any(tags & allValueTags[*index]))
      element.error("tag '" + names[*index] + "' is given twice");
    tags = tags | allValueTags[*index];
  }
  return tags;
}

/// `cursor` is the argument or result.
void TraceReader::define(JSONCursor cursor, ValueId value, JSONScope &scope) {
  std::optional<JSONCursor> name = cursor.find("name");
  if (!name)
    return;
  if (const JSONScope::Definition *previous = scope.define(*name, value))
    name->error("redefinition of value " + JSONScope::describe(*name))
        .note(previous->where.location(), "previous definition here");
}

/// `cursor` is the id; `index` that of the argument or operand.
void TraceReader::readSaved(JSONCursor cursor, unsigned index) {
  std::optional<uint64_t> id = cursor.expectUnsigned(TracePair::maxSavedId - 1);
  if (!id)
    return;
  savedMarks_.emplace_back(index, SavedId(uint32_t(*id)));
  auto [it, isNew] = savedPlaces_.try_emplace(uint32_t(*id), cursor);
  if (!isNew)
    cursor.error("saved id " + llvm::Twine(*id) + " is used twice on one side")
        .note(it->second.location(), "previous use here");
}

/// What an argument and a result both may have.
void TraceReader::readDetails(JSONCursor cursor, ValueId value, JSONScope &scope) {
  define(cursor, value, scope);
  trace_.setTags(value, readTags(cursor));
  if (std::optional<JSONCursor> path = cursor.find("path"))
    trace_.setValuePath(value, context_.literals.readString(*path).value_or(""));
}

void TraceReader::readArgument(JSONCursor cursor, BodyId body, JSONScope &scope) {
  if (!cursor.expectObject({"name", "type", "tags", "path", "saved"})) {
    scope.isIncomplete = true;
    return;
  }
  unsigned index = trace_.arguments(body).size();
  Type type = readValueType(cursor);
  ValueId value = trace_.addArgument(body, type, readValueName(cursor, scope));
  readDetails(cursor, value, scope);
  std::optional<JSONCursor> saved = cursor.find("saved");
  if (!saved)
    return;
  if (side_ == Side::Backward && body == Trace::topBody())
    readSaved(*saved, index);
  else
    saved->error("only arguments of the backward can be saved");
}

void TraceReader::readResults(JSONCursor cursor, OpId op, JSONScope &scope) {
  std::optional<JSONCursor> results = cursor.require("results");
  if (!results || !results->expectArray()) {
    scope.isIncomplete = true;
    return;
  }
  for (JSONCursor result : results->elements()) {
    if (!result.expectObject({"name", "type", "tags", "path"})) {
      scope.isIncomplete = true;
      continue;
    }
    Type type = readValueType(result);
    readDetails(result, trace_.addResult(op, type, readValueName(result, scope)), scope);
  }
}

//===--- Ops --------------------------------------------------------------===//

/// The spec of the op that `op` names; of no particular op after an error.
const OpSpec *TraceReader::readSpec(JSONCursor op) {
  std::optional<JSONCursor> member = op.require("op");
  std::optional<llvm::StringRef> name =
      member ? context_.literals.readString(*member) : std::nullopt;
  if (name && name->empty())
    member->error("expected the name of an op, got an empty string");
  if (!name || name->empty())
    return trace_.opaqueSpec("unknown");
  const OpSpec *spec = context_.registry.lookup(*name);
  return spec ? spec : trace_.opaqueSpec(*name);
}

/// A name, a number, or null where an optional operand is absent; the `return` of the forward may
/// say that the value is saved: `{"value": "x", "saved": 0}`.
ValueId TraceReader::readOperand(JSONCursor cursor, unsigned index, JSONScope &scope,
                                 bool mayBeSaved) {
  if (cursor.isNull())
    return ValueId();
  JSONCursor name = cursor;
  if (cursor.isObject()) {
    if (!mayBeSaved) {
      cursor.error("only operands of the forward's 'return' can be saved");
      return ValueId();
    }
    cursor.expectObject({"value", "saved"});
    std::optional<JSONCursor> value = cursor.require("value");
    if (std::optional<JSONCursor> saved = cursor.require("saved"))
      readSaved(*saved, index);
    if (!value)
      return ValueId();
    name = *value;
  }
  if (const JSONScope::Definition *definition = scope.find(name))
    return definition->value;
  if (name.kind() == JSONKind::Int) {
    if (!name.expectUnsigned(JSONScope::maxNumber))
      return ValueId();
  } else if (name.kind() != JSONKind::String) {
    name.error("expected the name or number of a value, or null, got " + jsonKindName(name.kind()));
    return ValueId();
  }
  unresolved_.push_back(name);
  return ValueId();
}

void TraceReader::readOperands(JSONCursor op, JSONScope &scope, OpInit &init, bool mayBeSaved) {
  std::optional<JSONCursor> operands = op.require("operands");
  if (!operands || !operands->expectArray())
    return;
  for (JSONCursor operand : operands->elements())
    init.operands.push_back(readOperand(operand, init.operands.size(), scope, mayBeSaved));
}

void TraceReader::readAttributes(JSONCursor op, OpInit &init) {
  std::optional<JSONCursor> attributes = op.find("attributes");
  if (!attributes || !attributes->expectObject())
    return;
  for (JSONCursor attribute : attributes->elements()) {
    if (std::optional<Attribute> value = context_.literals.readAttribute(attribute))
      init.attributes.emplace_back(context_.literals.readKey(attribute), std::move(*value));
  }
}

void TraceReader::readLocation(JSONCursor cursor, OpId op) {
  if (!cursor.expectObject({"file", "line", "column", "path"}))
    return;
  constexpr uint64_t max = std::numeric_limits<uint32_t>::max();
  std::optional<JSONCursor> file = cursor.require("file"), line = cursor.require("line"),
                            column = cursor.require("column"), path = cursor.find("path");
  Location location;
  if (file)
    location.file = context_.literals.readString(*file).value_or("").str();
  if (line)
    location.line = uint32_t(line->expectUnsigned(max).value_or(0));
  if (column)
    location.column = uint32_t(column->expectUnsigned(max).value_or(0));
  if (path)
    location.path = context_.literals.readString(*path).value_or("").str();
  trace_.setLocation(op, std::move(location), /*isExplicit=*/true);
}

void TraceReader::readClaim(JSONCursor cursor, OpId op) {
  if (!cursor.expectObject({"executor", "capturable", "why", "workspace_bytes"}))
    return;
  Claim claim;
  if (std::optional<JSONCursor> executor = cursor.require("executor"))
    claim.executor = context_.literals.readString(*executor).value_or("").str();
  if (std::optional<JSONCursor> capturable = cursor.require("capturable"))
    claim.capturable = capturable->expectBool().value_or(true);
  if (std::optional<JSONCursor> why = cursor.find("why"))
    claim.why = context_.literals.readString(*why).value_or("").str();
  if (std::optional<JSONCursor> workspace = cursor.find("workspace_bytes"))
    claim.workspaceBytes = workspace->expectUnsigned().value_or(0);
  trace_.setClaim(op, claim);
}

void TraceReader::readFusionRecord(JSONCursor cursor, OpId op) {
  if (!cursor.expectObject({"captured", "decider", "reason"}))
    return;
  FusionRecord record;
  if (std::optional<JSONCursor> captured = cursor.require("captured"))
    record.captured = captured->expectBool().value_or(false);
  constexpr FusionDecider deciders[] = {FusionDecider::Legality, FusionDecider::Executor,
                                        FusionDecider::Policy, FusionDecider::Region};
  llvm::SmallVector<llvm::StringRef, 4> names;
  for (FusionDecider decider : deciders)
    names.push_back(fusionDeciderName(decider));
  if (std::optional<JSONCursor> decider = cursor.require("decider"))
    record.decider = deciders[decider->expectWord("who decided", names).value_or(0)];
  if (std::optional<JSONCursor> reason = cursor.find("reason"))
    record.reason = context_.literals.readString(*reason).value_or("").str();
  trace_.setFusionRecord(op, record);
}

void TraceReader::readDomain(JSONCursor cursor, OpId op) {
  std::optional<uint64_t> index = cursor.expectUnsigned();
  if (!index)
    return;
  if (*index < context_.domains.size())
    trace_.setDomain(op, context_.domains[*index]);
  else
    cursor.error("there is no domain " + llvm::Twine(*index) + ": 'domains' has " +
                 llvm::Twine(context_.domains.size()));
}

void TraceReader::readAnnotations(JSONCursor cursor, OpId op) {
  if (std::optional<JSONCursor> module = cursor.find("module")) {
    if (std::optional<llvm::StringRef> path = context_.literals.readString(*module))
      trace_.setModulePath(op, *path);
  }
  if (std::optional<JSONCursor> location = cursor.find("location"))
    readLocation(*location, op);
  else
    trace_.setLocation(op, cursor.location(), /*isExplicit=*/false);
  if (std::optional<JSONCursor> claim = cursor.find("claim"))
    readClaim(*claim, op);
  if (std::optional<JSONCursor> fusion = cursor.find("fusion"))
    readFusionRecord(*fusion, op);
  if (std::optional<JSONCursor> domain = cursor.find("domain"))
    readDomain(*domain, op);
}

void TraceReader::readBodies(JSONCursor cursor, OpId op, const JSONScope &scope, unsigned depth) {
  if (depth == maxNesting) {
    cursor.error("bodies are nested more than " + llvm::Twine(maxNesting) + " deep");
    return;
  }
  for (unsigned i = 0; i < cursor.size(); ++i) {
    if (cursor[i].expectObject({"arguments", "ops"}))
      readBody(cursor[i], trace_.op(op).bodies()[i], &scope, depth + 1);
  }
}

void TraceReader::readOp(JSONCursor cursor, BodyId body, JSONScope &scope, unsigned depth) {
  if (!cursor.expectObject({"op", "operands", "attributes", "results", "module", "location",
                            "claim", "fusion", "domain", "bodies"})) {
    scope.isIncomplete = true;
    return;
  }
  OpInit init;
  init.spec = readSpec(cursor);
  bool mayBeSaved = side_ == Side::Forward && body == Trace::topBody() && init.spec->terminator;
  readOperands(cursor, scope, init, mayBeSaved);
  readAttributes(cursor, init);
  std::optional<JSONCursor> bodies = cursor.find("bodies");
  if (bodies && bodies->expectArray())
    init.numBodies = bodies->size();
  OpId op = trace_.createOp(std::move(init));
  trace_.append(body, op);
  readResults(cursor, op, scope);
  readAnnotations(cursor, op);
  if (bodies)
    readBodies(*bodies, op, scope, depth);
}

//===--- Bodies and traces ------------------------------------------------===//

void TraceReader::reportUnresolved(llvm::ArrayRef<JSONCursor> uses, const JSONScope &scope) {
  for (JSONCursor use : uses) {
    if (context_.diagnostics.isFull())
      return;
    std::string value = JSONScope::describe(use);
    if (const JSONScope::Definition *later = scope.find(use))
      use.error("value " + value + " is used before its definition")
          .note(later->where.location(), "defined here");
    else if (const JSONScope::Definition *outer = scope.findOutside(use))
      use.error("value " + value + " is not visible here: a body sees its arguments only")
          .note(outer->where.location(), "defined outside of the body here");
    else if (!scope.isIncomplete)
      use.error("use of undefined value " + value + scope.suggestion(use));
  }
}

void TraceReader::readBody(JSONCursor cursor, BodyId body, const JSONScope *parent,
                           unsigned depth) {
  JSONScope scope(parent);
  size_t firstUnresolved = unresolved_.size();
  std::optional<JSONCursor> arguments = cursor.require("arguments");
  if (arguments && arguments->expectArray()) {
    for (JSONCursor argument : arguments->elements())
      readArgument(argument, body, scope);
  } else {
    scope.isIncomplete = true;
  }
  std::optional<JSONCursor> ops = cursor.require("ops");
  if (ops && ops->expectArray()) {
    for (JSONCursor op : ops->elements()) {
      if (context_.diagnostics.isFull())
        break;
      readOp(op, body, scope, depth);
    }
  }
  reportUnresolved(llvm::ArrayRef<JSONCursor>(unresolved_).drop_front(firstUnresolved), scope);
  unresolved_.erase(unresolved_.begin() + firstUnresolved, unresolved_.end());
}

void TraceReader::readProperties(JSONCursor cursor) {
  if (!cursor.expectArray())
    return;
  TraceProperties properties = TraceProperties::None;
  llvm::SmallVector<llvm::StringRef, 4> names;
  for (TraceProperties property : allTraceProperties)
    names.push_back(tracePropertyName(property));
  for (JSONCursor element : cursor.elements()) {
    std::optional<size_t> index = element.expectWord("a property of a trace", names);
    if (!index)
      continue;
    if (any(properties & allTraceProperties[*index]))
      element.error("property '" + names[*index] + "' is given twice");
    properties = properties | allTraceProperties[*index];
  }
  trace_.setProperties(properties);
}

void TraceReader::read(JSONCursor cursor) {
  if (!cursor.expectObject({"name", "properties", "arguments", "ops"}))
    return;
  if (std::optional<JSONCursor> member = cursor.require("name")) {
    if (std::optional<llvm::StringRef> name = context_.literals.readString(*member))
      trace_.setName(*name);
  }
  if (std::optional<JSONCursor> properties = cursor.find("properties"))
    readProperties(*properties);
  readBody(cursor, Trace::topBody(), /*parent=*/nullptr, /*depth=*/0);
}

//===--- Pairs ------------------------------------------------------------===//

static void readDomains(JSONCursor cursor, Context &context) {
  if (!cursor.expectArray())
    return;
  for (JSONCursor domain : cursor.elements()) {
    std::optional<llvm::StringRef> name;
    if (domain.expectObject({"name"})) {
      if (std::optional<JSONCursor> member = domain.require("name"))
        name = context.literals.readString(*member);
    }
    context.domains.push_back(CaptureDomain::create(name.value_or("")));
  }
}

/// Returns false, with an error, if this reader cannot know what the other keys mean.
static bool checkVersion(JSONCursor root) {
  if (!root.expectObject())
    return false;
  std::optional<JSONCursor> version = root.require("schema_version");
  if (!version || !version->expectUnsigned())
    return false;
  if (version->asInt() == jsonSchemaVersion)
    return true;
  version->error("schema version " + llvm::Twine(*version->asUnsigned()) +
                 " is not supported: this reader reads version " + llvm::Twine(jsonSchemaVersion));
  return false;
}

static std::optional<TracePair> readPair(JSONCursor root, Context &context) {
  if (!checkVersion(root))
    return std::nullopt;
  root.expectObject({"schema_version", "name", "domains", "forward", "backward"});
  if (std::optional<JSONCursor> domains = root.find("domains"))
    readDomains(*domains, context);
  std::optional<JSONCursor> name = root.require("name"), forward = root.require("forward"),
                            backward = root.find("backward");
  std::optional<llvm::StringRef> pairName =
      name ? context.literals.readString(*name) : std::nullopt;
  if (!forward)
    return std::nullopt;

  TraceReader forwardReader(context, Side::Forward), backwardReader(context, Side::Backward);
  forwardReader.read(*forward);
  if (backward)
    backwardReader.read(*backward);
  TracePair pair = backward ? TracePair(forwardReader.takeTrace(), backwardReader.takeTrace())
                            : TracePair(forwardReader.takeTrace());
  if (pairName)
    pair.setName(*pairName);
  for (auto [operand, id] : forwardReader.savedMarks())
    pair.markSavedReturn(operand, id);
  for (auto [argument, id] : backwardReader.savedMarks())
    pair.markSavedArgument(argument, id);
  return pair;
}

/// What was found while reading, which stops at ops once the list is full.
static llvm::Error takeReadErrors(DiagnosticList &diagnostics) {
  bool isCutShort = diagnostics.isFull();
  std::vector<Diagnostic> errors = diagnostics.take();
  if (isCutShort)
    errors.emplace_back().message = "too many errors: the rest of the file was not read";
  return llvm::make_error<DiagnosticError>(std::move(errors));
}

/// Places in the file what the verifier says of a trace as a whole, which it calls by its name.
static void locateInFile(Diagnostic &diagnostic, const TracePair &pair, llvm::StringRef file) {
  Location &location = diagnostic.location;
  if (location.file.empty()) {
    bool isForward = location.path == ("@" + pair.forward().name()).str();
    bool isBackward = pair.hasBackward() && location.path == ("@" + pair.backward().name()).str();
    location.file = file.str();
    location.path = isForward == isBackward ? "" : isForward ? "/forward" : "/backward";
  }
  for (Diagnostic &note : diagnostic.notes)
    locateInFile(note, pair, file);
}

static llvm::Error verifyRead(const TracePair &pair, llvm::StringRef file,
                              DiagnosticList &diagnostics) {
  verify(pair, diagnostics);
  return llvm::handleErrors(diagnostics.takeError(),
                            [&](const DiagnosticError &error) -> llvm::Error {
                              std::vector<Diagnostic> errors = error.diagnostics();
                              for (Diagnostic &diagnostic : errors)
                                locateInFile(diagnostic, pair, file);
                              return llvm::make_error<DiagnosticError>(std::move(errors));
                            });
}

llvm::Expected<TracePair> rondo::readJSON(llvm::StringRef text, llvm::StringRef file,
                                          const OpRegistry &registry) {
  DiagnosticList diagnostics;
  std::optional<JSONDocument> document = JSONDocument::parse(text, file, diagnostics);
  if (!document)
    return takeReadErrors(diagnostics);
  Context context{registry, diagnostics, JSONLiterals(registry), {}};
  std::optional<TracePair> pair = readPair(document->root(), context);
  if (diagnostics.hasErrors())
    return takeReadErrors(diagnostics);
  if (llvm::Error error = verifyRead(*pair, file, diagnostics))
    return error;
  return std::move(*pair);
}
