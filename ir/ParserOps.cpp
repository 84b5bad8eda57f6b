//===- ParserOps.cpp - Single ops from text ---------------------------------===//
//
//   op ::= [results '='] name '(' operands ')' ['{' attributes '}'] annotation* body*
//
// A '{' opens attributes or a body. It opens attributes where it comes directly after ')' and is
// followed by '}' or by a name that no '(' follows; a body's first op has its operands there.
//
//===----------------------------------------------------------------------===//

#include "Parser.h"

#include "rondo/ir/Text.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

bool Parser::readOp(BodyId body) {
  OpDraft draft;
  draft.place = token();
  if (!readOpHead(draft, body == Trace::topBody())) {
    for (const ValueDraft &result : draft.results)
      define(result.name, ValueId());
    return false;
  }
  OpId op = createOp(body, draft);
  while (at('{')) {
    if (isAtAttributes() && !peek().is('}'))
      return fail(peek(), "attributes come directly after the operands");
    if (!readBody(op))
      return false;
  }
  return true;
}

/// All of an op but its bodies.
bool Parser::readOpHead(OpDraft &draft, bool isInTopBody) {
  if (at(TokenKind::Value) && !readResults(draft)) {
    scope().isIncomplete = true;
    return false;
  }
  return readOpName(draft) && readOperands(draft, isInTopBody) &&
         (!isAtAttributes() || readAttributes(draft)) && readAnnotations(draft);
}

bool Parser::readResults(OpDraft &draft) {
  do {
    if (!readValueDraft(draft.results.emplace_back(), /*maySave=*/false))
      return false;
  } while (consumeIf(','));
  return expect('=', "or ',' after the type of a result");
}

bool Parser::readOpName(OpDraft &draft) {
  if (!at(TokenKind::Identifier) && !at(TokenKind::String))
    return failExpected(draft.results.empty() ? "an op" : "the name of an op");
  llvm::SmallString<32> buffer;
  llvm::StringRef name = at(TokenKind::String) ? stringContent(token(), buffer) : token().text;
  if (name.empty())
    return fail(token(), "the name of an op is empty");
  draft.spec = registry().lookup(name);
  if (!draft.spec)
    draft.spec = trace().opaqueSpec(name);
  next();
  return true;
}

bool Parser::readOperands(OpDraft &draft, bool isInTopBody) {
  if (!expect('(', "and the operands of '" + draft.spec->name + "'"))
    return false;
  while (!at(')')) {
    if (!draft.operands.empty() && !expect(',', "or ')' after an operand"))
      return false;
    if (at(TokenKind::Value))
      draft.operands.push_back(lookUp(token()));
    else if (atWord("none"))
      draft.operands.push_back(ValueId());
    else
      return failExpected("a value or 'none'");
    next();
    if (!atWord("saved"))
      continue;
    if (!isInTopBody || !draft.spec->terminator)
      return fail(token(), "only arguments of a trace and operands of its 'return' can be saved");
    SavedMark mark{unsigned(draft.operands.size() - 1), SavedId()};
    if (!readSaved(mark.id, draft_->returnPlaces))
      return false;
    draft.saved.push_back(mark);
  }
  next(); // ')'
  return true;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

bool Parser::isAtAttributes() const {
  if (!at('{'))
    return false;
  Token first = peek(1);
  if (first.is('}'))
    return true;
  return (first.is(TokenKind::Identifier) || first.is(TokenKind::String)) && !peek(2).is('(');
}

bool Parser::readAttributes(OpDraft &draft) {
  next(); // '{'
  llvm::SmallVector<std::pair<llvm::StringRef, Token>, 4> names;
  while (!at('}')) {
    if (!names.empty() && !expect(',', "or '}' after an attribute"))
      return false;
    const Token place = token();
    if (!at(TokenKind::Identifier) && !at(TokenKind::String))
      return failExpected("the name of an attribute");
    llvm::StringRef name = place.text;
    if (place.hasEscapes) {
      llvm::SmallString<32> buffer;
      name = trace().intern(stringContent(place, buffer));
    }
    next();
    if (!expect('=', "after the name of an attribute"))
      return false;
    std::optional<Attribute> value = readAttribute();
    if (!value)
      return false;
    names.push_back({name, place});
    draft.attributes.push_back({name, std::move(*value)});
  }
  next(); // '}'
  return names.size() < 2 || checkAttributeNames(names);
}

bool Parser::checkAttributeNames(llvm::ArrayRef<std::pair<llvm::StringRef, Token>> names) {
  llvm::SmallVector<unsigned, 8> order(names.size());
  for (unsigned i = 0; i < order.size(); ++i)
    order[i] = i;
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return names[a].first < names[b].first; });
  bool isUnique = true;
  for (unsigned i = 1; i < order.size(); ++i) {
    const auto &[name, place] = names[order[i]];
    const auto &[previousName, previousPlace] = names[order[i - 1]];
    if (name == previousName)
      isUnique = fail(place, "duplicate attribute '" + name + "'", locationOf(previousPlace),
                      "previous one here");
  }
  return isUnique;
}

//===----------------------------------------------------------------------===//
// Annotations
//===----------------------------------------------------------------------===//

/// True at a known annotation, and at what seems to be meant as one: another word on the line of
/// the op that is not followed by operands.
bool Parser::isAtAnnotation() const {
  if (!at(TokenKind::Identifier))
    return false;
  if (llvm::is_contained(annotationWords, token().text))
    return true;
  if (token().startsLine)
    return false;
  if (!peek(1).is('('))
    return true;
  Token inside = peek(2);
  return inside.is(TokenKind::String) ||
         (inside.is(TokenKind::Identifier) && inside.text != "none");
}

bool Parser::readAnnotations(OpDraft &draft) {
  llvm::SmallVector<llvm::StringRef, 5> seen;
  while (isAtAnnotation()) {
    const Token word = token();
    if (!llvm::is_contained(annotationWords, word.text))
      return fail(word,
                  "unknown annotation " + describe(word) + didYouMean(word.text, annotationWords));
    if (llvm::is_contained(seen, word.text))
      return fail(word, "'" + word.text + "' is given twice");
    seen.push_back(word.text);
    next();
    bool isFine = word.text == "module"   ? readString(draft.modulePath, "the path of a module")
                  : word.text == "loc"    ? readLocation(draft)
                  : word.text == "claim"  ? readClaim(draft)
                  : word.text == "fusion" ? readFusionRecord(draft)
                                          : readDomainUse(draft);
    if (!isFine)
      return false;
  }
  return true;
}

/// '(' file [':' line [':' column]] [',' path] ')'
bool Parser::readLocation(OpDraft &draft) {
  Location &location = draft.location.emplace();
  if (!expect('(', "after 'loc'") || !readString(location.file, "a file name"))
    return false;
  if (consumeIf(':') && !readUnsigned(location.line, "a line number"))
    return false;
  if (consumeIf(':') && !readUnsigned(location.column, "a column number"))
    return false;
  if (consumeIf(',') && !readString(location.path, "a path in the file"))
    return false;
  return expect(')', "after a location");
}

/// '(' executor {',' ('uncapturable' | 'why' string | 'workspace' integer)} ')'
bool Parser::readClaim(OpDraft &draft) {
  static constexpr llvm::StringRef words[] = {"uncapturable", "why", "workspace"};
  Claim &claim = draft.claim.emplace();
  if (!expect('(', "after 'claim'") || !readString(claim.executor, "the name of an executor"))
    return false;
  llvm::SmallVector<llvm::StringRef, 3> seen;
  while (consumeIf(',')) {
    const Token word = token();
    if (!at(TokenKind::Identifier))
      return failExpected("'uncapturable', 'why' or 'workspace'");
    if (!llvm::is_contained(words, word.text))
      return fail(word,
                  "unknown word " + describe(word) + " in a claim" + didYouMean(word.text, words));
    if (llvm::is_contained(seen, word.text))
      return fail(word, "'" + word.text + "' is given twice");
    seen.push_back(word.text);
    next();
    bool isFine = true;
    if (word.text == "uncapturable")
      claim.capturable = false;
    else if (word.text == "why")
      isFine = readString(claim.why, "a reason");
    else
      isFine = readUnsigned(claim.workspaceBytes, "a number of bytes");
    if (!isFine)
      return false;
  }
  return expect(')', "or ',' in a claim");
}

/// '(' ('yes' | 'no') ',' decider [',' reason] ')'
bool Parser::readFusionRecord(OpDraft &draft) {
  static constexpr llvm::StringRef verdicts[] = {"yes", "no"};
  FusionRecord &record = draft.fusionRecord.emplace();
  if (!expect('(', "after 'fusion'"))
    return false;
  const Token verdict = token();
  if (!at(TokenKind::Identifier) || !llvm::is_contained(verdicts, verdict.text))
    return failExpected("'yes' or 'no'");
  record.captured = verdict.text == "yes";
  next();
  if (!expect(',', "and who decided"))
    return false;
  const Token decider = token();
  if (!at(TokenKind::Identifier))
    return failExpected("who decided");
  std::optional<FusionDecider> known = parseFusionDecider(decider.text);
  if (!known) {
    llvm::SmallVector<llvm::StringRef, 4> names;
    for (FusionDecider each : {FusionDecider::Legality, FusionDecider::Executor,
                               FusionDecider::Policy, FusionDecider::Region})
      names.push_back(fusionDeciderName(each));
    return fail(decider, "unknown decider " + describe(decider) + didYouMean(decider.text, names));
  }
  record.decider = *known;
  next();
  if (consumeIf(',') && !readString(record.reason, "a reason"))
    return false;
  return expect(')', "after a verdict");
}

bool Parser::readDomainUse(OpDraft &draft) {
  uint32_t number;
  if (!expect('#', "and a number after 'domain'"))
    return false;
  Token place = token();
  if (!readUnsigned(number, "the number of a domain"))
    return false;
  auto it = domains_.find(number);
  if (it == domains_.end())
    return fail(place, "unknown domain #" + llvm::Twine(number));
  draft.domain = it->second.domain;
  return true;
}

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

OpId Parser::createOp(BodyId body, OpDraft &draft) {
  OpInit init;
  init.spec = draft.spec;
  init.operands = std::move(draft.operands);
  init.attributes = std::move(draft.attributes);
  OpId op = trace().createOp(std::move(init));
  for (const ValueDraft &result : draft.results) {
    ValueId value = trace().addResult(op, *result.type);
    applyDraft(value, result);
    define(result.name, value);
  }
  trace().append(body, op);
  if (!draft.modulePath.empty())
    trace().setModulePath(op, draft.modulePath);
  bool isExplicit = draft.location.has_value();
  trace().setLocation(op, isExplicit ? std::move(*draft.location) : locationOf(draft.place),
                      isExplicit);
  if (draft.claim)
    trace().setClaim(op, *draft.claim);
  if (draft.fusionRecord)
    trace().setFusionRecord(op, *draft.fusionRecord);
  if (draft.domain)
    trace().setDomain(op, draft.domain);
  // Of several, the last one counts: it is the one that ends the trace.
  if (draft.spec->terminator && body == Trace::topBody())
    draft_->returns = std::move(draft.saved);
  return op;
}
