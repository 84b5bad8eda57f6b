//===- Printer.cpp - Traces as text -----------------------------------------===//
//
//   pair @step {
//     forward @forward(%x: f32[8]) claimed {
//       %y: f32[8] = relu(%x) claim("host")
//       return(%y)
//     }
//   }
//
// The grammar is in docs/trace-format.md. Printing is one pass over a trace after another that
// numbers the values without a name; it prints broken traces, too, for those who look for the
// fault.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/Text.h"

#include "Lexer.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

/// A line of arguments that would be longer is cut into one line per argument.
static constexpr unsigned maxColumns = 100;

namespace {

using DomainNumbers = llvm::DenseMap<const CaptureDomain *, unsigned>;

class TracePrinter {
public:
  TracePrinter(const Trace &trace, llvm::raw_ostream &os, PrintOptions options,
               const DomainNumbers &domains)
      : trace_(trace), os_(os), options_(options), domains_(domains) {}

  /// `word @name(...) {...}`. `domains` are declared inside.
  void printTrace(llvm::StringRef word, unsigned indent, llvm::ArrayRef<CaptureDomain *> domains);
  /// One op, on one line.
  void printOpLine(const Op &op);

private:
  void numberBody(BodyId body);
  void numberValue(ValueId value, uint32_t &next);

  void printArguments(BodyId body, llvm::StringRef before, llvm::StringRef after, unsigned indent);
  void printOps(BodyId body, unsigned indent);
  void printOp(const Op &op, unsigned indent);
  void printHead(const Op &op);
  void printAttributes(const Op &op);
  bool needsEmptyAttributes(const Op &op) const;
  void printAnnotations(const Op &op);
  void printBody(BodyId body, unsigned indent);
  void printDefinition(llvm::raw_ostream &os, ValueId value);
  void printValue(llvm::raw_ostream &os, ValueId value);

  const Trace &trace_;
  llvm::raw_ostream &os_;
  const PrintOptions options_;
  const DomainNumbers &domains_;
  /// Per value without name: its number, or `unnumbered`.
  std::vector<uint32_t> numbers_;
  static constexpr uint32_t unnumbered = ~uint32_t(0);
};

} // namespace

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// An identifier as it is, other text in quotes.
static void printName(llvm::raw_ostream &os, llvm::StringRef name) {
  if (isIdentifier(name))
    os << name;
  else
    printQuoted(os, name);
}

/// Words that would be read as an annotation of the op before stand in quotes.
static void printOpName(llvm::raw_ostream &os, llvm::StringRef name) {
  if (llvm::is_contained(annotationWords, name))
    printQuoted(os, name);
  else
    printName(os, name);
}

void TracePrinter::numberValue(ValueId value, uint32_t &next) {
  if (value && value.index() < numbers_.size() && trace_.name(value).empty())
    numbers_[value.index()] = next++;
}

/// Each body counts from 0: arguments, then results in program order.
void TracePrinter::numberBody(BodyId body) {
  uint32_t next = 0;
  for (ValueId argument : trace_.arguments(body))
    numberValue(argument, next);
  for (OpId id : trace_.ops(body)) {
    if (trace_.isErased(id))
      continue;
    for (ValueId result : trace_.op(id).results())
      numberValue(result, next);
    for (BodyId nested : trace_.op(id).bodies())
      numberBody(nested);
  }
}

void TracePrinter::printValue(llvm::raw_ostream &os, ValueId value) {
  if (!value) {
    os << "none";
    return;
  }
  bool exists = value.index() < trace_.numValues();
  if (exists && !trace_.name(value).empty())
    os << '%' << trace_.name(value);
  else if (exists && value.index() < numbers_.size() && numbers_[value.index()] != unnumbered)
    os << '%' << numbers_[value.index()];
  else
    os << "%?" << value.index(); // of a detached op or not there at all: does not parse
}

void TracePrinter::printDefinition(llvm::raw_ostream &os, ValueId value) {
  printValue(os, value);
  os << ": " << trace_.type(value);
  ValueTags tags = trace_.tags(value);
  for (ValueTags single : allValueTags)
    if (any(tags & single))
      os << ' ' << valueTagName(single);
  if (llvm::StringRef path = trace_.valuePath(value); !path.empty()) {
    os << " path ";
    printQuoted(os, path);
  }
}

//===----------------------------------------------------------------------===//
// Traces and bodies
//===----------------------------------------------------------------------===//

static void printDomains(llvm::raw_ostream &os, llvm::ArrayRef<CaptureDomain *> domains,
                         unsigned indent) {
  for (size_t i = 0; i < domains.size(); ++i) {
    os.indent(indent) << "domain #" << i << ' ';
    printQuoted(os, domains[i]->name());
    os << '\n';
  }
}

void TracePrinter::printTrace(llvm::StringRef word, unsigned indent,
                              llvm::ArrayRef<CaptureDomain *> domains) {
  numbers_.assign(trace_.numValues(), unnumbered);
  numberBody(Trace::topBody());

  std::string before, after = ")";
  llvm::raw_string_ostream beforeStream(before);
  beforeStream << word << " @";
  printName(beforeStream, trace_.name());
  beforeStream << '(';
  for (TraceProperties single : allTraceProperties)
    if (trace_.has(single))
      after += (" " + tracePropertyName(single)).str();
  after += " {";
  os_.indent(indent);
  printArguments(Trace::topBody(), beforeStream.str(), after, indent);
  printDomains(os_, domains, indent + 2);
  printOps(Trace::topBody(), indent + 2);
  os_.indent(indent) << "}\n";
}

/// On one line if they fit. The line of `before` is begun already.
void TracePrinter::printArguments(BodyId body, llvm::StringRef before, llvm::StringRef after,
                                  unsigned indent) {
  llvm::SmallVector<std::string, 0> texts;
  size_t columns = indent + before.size() + after.size();
  for (ValueId argument : trace_.arguments(body)) {
    llvm::raw_string_ostream os(texts.emplace_back());
    printDefinition(os, argument);
    SavedId saved =
        body == Trace::topBody() ? trace_.savedArgument(trace_.index(argument)) : SavedId();
    if (saved)
      os << " saved " << saved;
    os.flush();
    columns += texts.back().size() + (texts.size() > 1 ? 2 : 0);
  }
  os_ << before;
  if (columns <= maxColumns) {
    llvm::interleaveComma(texts, os_);
  } else {
    for (size_t i = 0; i < texts.size(); ++i)
      (os_ << '\n').indent(indent + 2) << texts[i] << (i + 1 < texts.size() ? "," : "");
    (os_ << '\n').indent(indent);
  }
  os_ << after << '\n';
}

void TracePrinter::printBody(BodyId body, unsigned indent) {
  os_ << " {\n";
  if (!trace_.arguments(body).empty()) {
    os_.indent(indent);
    printArguments(body, "^(", "):", indent);
  }
  printOps(body, indent + 2);
  os_.indent(indent) << '}';
}

void TracePrinter::printOps(BodyId body, unsigned indent) {
  for (OpId id : trace_.ops(body)) {
    if (trace_.isErased(id))
      continue;
    os_.indent(indent);
    printOp(trace_.op(id), indent);
    os_ << '\n';
  }
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

void TracePrinter::printOp(const Op &op, unsigned indent) {
  printHead(op);
  printAnnotations(op);
  for (BodyId body : op.bodies())
    printBody(body, indent);
}

void TracePrinter::printOpLine(const Op &op) {
  // Only the names that the op can see are needed. A value without name is numbered within its
  // body; those before the op suffice.
  bool needsNumbers =
      llvm::any_of(llvm::concat<const ValueId>(op.operands(), op.results()), [&](ValueId value) {
        return value && value.index() < trace_.numValues() && trace_.name(value).empty();
      });
  if (needsNumbers) {
    numbers_.assign(trace_.numValues(), unnumbered);
    uint32_t next = 0;
    if (op.body()) {
      for (ValueId argument : trace_.arguments(op.body()))
        numberValue(argument, next);
      for (OpId id : trace_.ops(op.body())) {
        if (trace_.isErased(id))
          continue;
        for (ValueId result : trace_.op(id).results())
          numberValue(result, next);
        if (id == op.id())
          break;
      }
    }
  }
  printHead(op);
  for (size_t i = 0; i < op.bodies().size(); ++i)
    os_ << " {...}";
}

/// Results, name, operands, attributes.
void TracePrinter::printHead(const Op &op) {
  for (ValueId result : op.results()) {
    if (result != op.results().front())
      os_ << ", ";
    printDefinition(os_, result);
  }
  if (!op.results().empty())
    os_ << " = ";
  printOpName(os_, op.name());
  os_ << '(';
  bool isReturn = op.spec().terminator && op.body() == Trace::topBody();
  for (unsigned i = 0; i < op.operands().size(); ++i) {
    if (i != 0)
      os_ << ", ";
    printValue(os_, op.operand(i));
    if (SavedId saved = isReturn ? trace_.savedReturn(i) : SavedId())
      os_ << " saved " << saved;
  }
  os_ << ')';
  if (!op.attributes().empty())
    printAttributes(op);
  else if (needsEmptyAttributes(op))
    os_ << " {}";
}

void TracePrinter::printAttributes(const Op &op) {
  os_ << " {";
  for (const NamedAttribute &attribute : op.attributes()) {
    if (&attribute != op.attributes().begin())
      os_ << ", ";
    printName(os_, attribute.name);
    os_ << " = " << attribute.value;
  }
  os_ << '}';
}

/// True if `{}` for no attributes must be printed, so that an empty first body is not taken for it.
bool TracePrinter::needsEmptyAttributes(const Op &op) const {
  if (op.bodies().empty())
    return false;
  BodyId first = op.bodies().front();
  return trace_.arguments(first).empty() && trace_.ops(first).empty();
}

void TracePrinter::printAnnotations(const Op &op) {
  if (options_.annotations && !op.modulePath().empty()) {
    os_ << " module ";
    printQuoted(os_, op.modulePath());
  }
  if (op.location() && op.hasExplicitLocation()) {
    const Location &location = *op.location();
    os_ << " loc(";
    printQuoted(os_, location.file);
    if (location.line || location.column)
      os_ << ':' << location.line << ':' << location.column;
    if (!location.path.empty()) {
      os_ << ", ";
      printQuoted(os_, location.path);
    }
    os_ << ')';
  }
  if (const Claim *claim = op.claim(); claim && options_.annotations) {
    os_ << " claim(";
    printQuoted(os_, claim->executor);
    if (!claim->capturable)
      os_ << ", uncapturable";
    if (!claim->why.empty()) {
      os_ << ", why ";
      printQuoted(os_, claim->why);
    }
    if (claim->workspaceBytes)
      os_ << ", workspace " << claim->workspaceBytes;
    os_ << ')';
  }
  if (const FusionRecord *record = op.fusionRecord(); record && options_.annotations) {
    os_ << " fusion(" << (record->captured ? "yes" : "no") << ", "
        << fusionDeciderName(record->decider);
    if (!record->reason.empty()) {
      os_ << ", ";
      printQuoted(os_, record->reason);
    }
    os_ << ')';
  }
  if (auto it = domains_.find(op.domain()); it != domains_.end())
    os_ << " domain #" << it->second;
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

/// Numbers the domains that `trace` names, by first appearance.
static void collectDomains(const Trace &trace, DomainNumbers &numbers,
                           llvm::SmallVectorImpl<CaptureDomain *> &domains) {
  forEachOp(trace, [&](const Op &op) {
    if (CaptureDomain *domain = op.domain())
      if (numbers.try_emplace(domain, domains.size()).second)
        domains.push_back(domain);
  });
}

void rondo::print(const Trace &trace, llvm::raw_ostream &os, const PrintOptions &options) {
  DomainNumbers numbers;
  llvm::SmallVector<CaptureDomain *, 4> domains;
  collectDomains(trace, numbers, domains);
  TracePrinter(trace, os, options, numbers).printTrace("trace", 0, domains);
}

void rondo::print(const TracePair &pair, llvm::raw_ostream &os, const PrintOptions &options) {
  DomainNumbers numbers;
  llvm::SmallVector<CaptureDomain *, 4> domains;
  collectDomains(pair.forward(), numbers, domains);
  if (pair.hasBackward())
    collectDomains(pair.backward(), numbers, domains);

  os << "pair @";
  printName(os, pair.name());
  os << " {\n";
  printDomains(os, domains, 2);
  TracePrinter(pair.forward(), os, options, numbers).printTrace("forward", 2, {});
  if (pair.hasBackward())
    TracePrinter(pair.backward(), os, options, numbers).printTrace("backward", 2, {});
  os << "}\n";
}

void rondo::printOp(const Trace &trace, OpId op, llvm::raw_ostream &os) {
  DomainNumbers numbers;
  TracePrinter(trace, os, PrintOptions(), numbers).printOpLine(trace.op(op));
}
