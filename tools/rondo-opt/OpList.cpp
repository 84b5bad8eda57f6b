//===- OpList.cpp - Lists of ops and passes ---------------------------------===//

#include "OpList.h"

#include "llvm/ADT/StringExtras.h"

using namespace rondo;

static std::string operandsText(const OpSpec &spec) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::ListSeparator separator;
  for (const OperandSpec &operand : spec.operands) {
    os << separator << operand.name;
    if (operand.arity != Arity::Required)
      os << (operand.arity == Arity::Optional ? "?" : "*");
    if (operand.kind != OperandKind::Tensor)
      os << ": " << operandKindName(operand.kind);
  }
  os.flush();
  return text;
}

static std::string attributesText(const OpSpec &spec) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::ListSeparator separator;
  for (const AttributeSpec &attribute : spec.attributes) {
    bool isOptional = !attribute.required && attribute.defaultValue.isNone();
    os << separator << attribute.name << (isOptional ? "?: " : ": ")
       << attributeKindName(attribute.kind);
    if (!attribute.defaultValue.isNone())
      os << " = " << attribute.defaultValue;
  }
  os.flush();
  return text;
}

static std::string resultsText(const OpSpec &spec) {
  std::string text = llvm::join(spec.results, ", ");
  if (spec.variadicResults)
    text += "*";
  return text;
}

/// What a reader wants to know of an op's effects, in a few words.
static std::string effectsText(const OpSpec &spec) {
  llvm::SmallVector<std::string, 4> words;
  if (spec.bodies != BodyKind::None)
    words.push_back("as its bodies");
  if (spec.isView())
    words.push_back("view");
  for (unsigned i : spec.writes)
    words.push_back("writes " + spec.operands[i].name);
  for (const ResourceEffect &resource : spec.resources)
    words.push_back(
        (llvm::Twine(resource.writes ? "writes " : "reads ") + resourceKindName(resource.kind))
            .str());
  if (spec.effects)
    words.push_back("by attribute");
  if (spec.random)
    words.push_back("random");
  if (!spec.launches && !spec.isView() && spec.bodies == BodyKind::None)
    words.push_back("launches nothing");
  return llvm::join(words, ", ");
}

void rondo::listOps(const OpRegistry &registry, llvm::raw_ostream &os) {
  for (const std::unique_ptr<OpSpec> &spec : registry.ops()) {
    os << spec->name << '(' << operandsText(*spec) << ')';
    if (!spec->attributes.empty())
      os << " {" << attributesText(*spec) << '}';
    if (std::string results = resultsText(*spec); !results.empty())
      os << " -> " << results;
    if (std::string effects = effectsText(*spec); !effects.empty())
      os << "  [" << effects << ']';
    os << "\n    " << spec->summary << '\n';
  }
}

/// One cell; what Markdown would take for markup is escaped.
static void printCell(llvm::raw_ostream &os, llvm::StringRef text) {
  os << ' ';
  for (char c : text) {
    if (c == '*' || c == '|')
      os << '\\';
    os << c;
  }
  os << (text.empty() ? "|" : " |");
}

void rondo::listOpsAsMarkdown(const OpRegistry &registry, llvm::raw_ostream &os) {
  os << "| op | operands | attributes | results | effects | summary |\n"
     << "|---|---|---|---|---|---|\n";
  for (const std::unique_ptr<OpSpec> &spec : registry.ops()) {
    os << '|';
    for (const std::string &cell :
         {"`" + spec->name + "`", operandsText(*spec), attributesText(*spec), resultsText(*spec),
          effectsText(*spec), spec->summary})
      printCell(os, cell);
    os << '\n';
  }
}

void rondo::listPasses(const PassRegistry &registry, llvm::raw_ostream &os) {
  for (const PassInfo &pass : registry.passes()) {
    os << pass.name << "\n    " << pass.summary << '\n';
    for (const PassOptionInfo &option : pass.options) {
      os << "    " << option.name;
      if (!option.defaultText.empty())
        os << '=' << option.defaultText;
      os << ": " << option.summary << '\n';
    }
  }
}
