//===- Parser.cpp - Pairs, traces and bodies from text ----------------------===//

#include "Parser.h"

#include "rondo/ir/Text.h"
#include "rondo/ir/Verifier.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

/// The names of every item of `all`, and then `more`.
template <typename T>
static llvm::SmallVector<llvm::StringRef, 8> namesOf(llvm::ArrayRef<T> all,
                                                     llvm::StringRef (*nameOf)(T),
                                                     llvm::ArrayRef<llvm::StringRef> more = {}) {
  llvm::SmallVector<llvm::StringRef, 8> names;
  for (T item : all)
    names.push_back(nameOf(item));
  names.append(more.begin(), more.end());
  return names;
}

//===----------------------------------------------------------------------===//
// Pairs and traces
//===----------------------------------------------------------------------===//

std::optional<TracePair> Parser::readPairText() {
  static constexpr llvm::StringRef words[] = {"pair", "trace"};
  if (consumeWord("pair")) {
    std::optional<TracePair> pair = readPair();
    return pair && expectEnd("the pair") ? std::move(pair) : std::nullopt;
  }
  if (atWord("trace")) {
    std::optional<Trace> trace = readTraceText();
    if (!trace)
      return std::nullopt;
    TracePair pair(std::move(*trace));
    // Marks again what the trace has: the pair counts ids.
    if (const Op *ret = pair.forward().terminator())
      for (unsigned i = 0; i < ret->operands().size(); ++i)
        if (SavedId id = pair.forward().savedReturn(i))
          pair.markSavedReturn(i, id);
    return pair;
  }
  std::string hint = at(TokenKind::Identifier) ? didYouMean(token().text, words) : "";
  fail(token(), "expected 'pair' or 'trace', found " + describe(token()) + hint);
  return std::nullopt;
}

/// A trace's saved marks are changed by a pair only: `trace` goes through two of them.
template <typename Marks>
static Trace withSavedMarks(Trace trace, const Marks &returns, const Marks &arguments) {
  if (!arguments.empty()) {
    Trace other(trace.registry());
    TracePair pair(std::move(other), std::move(trace));
    for (auto [index, id] : arguments)
      pair.markSavedArgument(index, id);
    trace = std::move(pair.backward());
  }
  if (!returns.empty()) {
    TracePair pair(std::move(trace));
    for (auto [index, id] : returns)
      pair.markSavedReturn(index, id);
    trace = std::move(pair.forward());
  }
  return trace;
}

std::optional<Trace> Parser::readTraceText() {
  if (!consumeWord("trace")) {
    failExpected("'trace'");
    return std::nullopt;
  }
  TraceDraft draft(registry());
  if (!readTrace(draft) || !expectEnd("the trace"))
    return std::nullopt;
  return withSavedMarks(std::move(draft.trace), draft.returns, draft.arguments);
}

std::optional<TracePair> Parser::readPair() {
  static constexpr llvm::StringRef words[] = {"domain", "forward", "backward"};
  std::string name;
  Depth base = depth();
  if (readName(name, "the pair") && !at('{'))
    failExpected("'{' after the name of the pair");
  bool isAtWord = at(TokenKind::Identifier) && llvm::is_contained(words, token().text);
  if (!isAtWord && !skipToOpenBrace(base))
    return std::nullopt;
  Token open = token();
  consumeIf('{');

  std::optional<TraceDraft> forward, backward;
  while (!at('}') && !atEnd()) {
    Depth inside = depth();
    Token word = token();
    if (atWord("domain")) {
      if (!readDomain())
        skipToWord(inside, words);
    } else if (atWord("forward") || atWord("backward")) {
      bool isForward = atWord("forward");
      std::optional<TraceDraft> &draft = isForward ? forward : backward;
      if (draft)
        fail(word, "the pair has two traces '" + word.text + "'");
      else if (!isForward && !forward)
        fail(word, "'backward' comes after 'forward'");
      next();
      if (!readTrace(draft.emplace(registry())))
        skipToWord(inside, words);
    } else {
      std::string hint = at(TokenKind::Identifier) ? didYouMean(word.text, words) : "";
      fail(word, "expected 'domain', 'forward', 'backward' or '}', found " + describe(word) + hint);
      next();
      skipToWord(inside, words);
    }
  }
  if (!at('}')) {
    fail(token(), "expected '}' at the end of the pair, found " + describe(token()),
         locationOf(open), "the pair begins here");
    return std::nullopt;
  }
  if (!forward)
    fail(token(), "the pair has no 'forward'");
  next();
  if (!forward)
    return std::nullopt;

  // `saved` on the other ends has no meaning in a pair, and the verifier says so.
  auto finished = [](TraceDraft &draft) {
    return withSavedMarks(std::move(draft.trace), draft.returns, draft.arguments);
  };
  TracePair pair =
      backward ? TracePair(finished(*forward), finished(*backward)) : TracePair(finished(*forward));
  pair.setName(name);
  for (SavedMark mark : forward->returns)
    pair.markSavedReturn(mark.index, mark.id);
  if (backward)
    for (SavedMark mark : backward->arguments)
      pair.markSavedArgument(mark.index, mark.id);
  return pair;
}

bool Parser::readDomain() {
  next(); // 'domain'
  uint32_t number;
  std::string name;
  if (!expect('#', "and a number after 'domain'"))
    return false;
  Token place = token();
  if (!readUnsigned(number, "the number of a domain"))
    return false;
  bool isNamed = readString(name, "the name of a domain");
  auto [it, isNew] =
      domains_.try_emplace(number, Domain{CaptureDomain::create(name), locationOf(place)});
  if (!isNew)
    return fail(place, "redefinition of domain #" + llvm::Twine(number), it->second.place,
                "previous definition here");
  return isNamed;
}

bool Parser::readName(std::string &name, const llvm::Twine &what) {
  if (!expect('@', "and the name of " + what))
    return false;
  if (at(TokenKind::String))
    return readString(name, "the name of " + what);
  if (!at(TokenKind::Identifier))
    return failExpected("the name of " + what + " after '@'");
  name = token().text.str();
  next();
  return true;
}

bool Parser::readTrace(TraceDraft &draft) {
  draft_ = &draft;
  openScope();
  Depth base = depth();
  if (!readTraceHeader(draft)) {
    scope().isIncomplete = true;
    if (!skipToOpenBrace(base)) {
      scopes_.pop_back();
      return false;
    }
  }
  Token open = token();
  next(); // '{'
  while (atWord("domain") && peek().is('#')) {
    Depth inside = depth();
    if (!readDomain())
      skipToNextOp(inside);
  }
  bool isClosed = readOps(Trace::topBody(), open);
  closeScope();
  return isClosed;
}

/// Up to the '{', which is left.
bool Parser::readTraceHeader(TraceDraft &draft) {
  std::string name;
  if (!readName(name, "the trace"))
    return false;
  draft.trace.setName(name);
  if (!readArguments(Trace::topBody()) || !readProperties(draft.trace))
    return false;
  if (!at('{'))
    return failExpected("'{' or a property of the trace");
  return true;
}

bool Parser::readProperties(Trace &trace) {
  while (at(TokenKind::Identifier)) {
    const TraceProperties *property =
        llvm::find_if(allTraceProperties, [&](TraceProperties single) {
          return tracePropertyName(single) == token().text;
        });
    if (property == std::end(allTraceProperties)) {
      std::string hint =
          didYouMean(token().text, namesOf<TraceProperties>(allTraceProperties, tracePropertyName));
      return fail(token(), "unknown property " + describe(token()) + hint);
    }
    if (trace.has(*property))
      return fail(token(), "property " + describe(token()) + " is given twice");
    trace.setProperties(trace.properties() | *property);
    next();
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Arguments and bodies
//===----------------------------------------------------------------------===//

bool Parser::readArguments(BodyId body) {
  bool isTop = body == Trace::topBody();
  if (!expect('(', "before the arguments"))
    return false;
  while (!at(')')) {
    if (!trace().arguments(body).empty() && !expect(',', "or ')' after an argument"))
      return false;
    ValueDraft draft;
    if (!readValueDraft(draft, isTop)) {
      define(draft.name, ValueId());
      return false;
    }
    ValueId value = trace().addArgument(body, *draft.type);
    applyDraft(value, draft);
    define(draft.name, value);
    if (draft.saved)
      draft_->arguments.push_back({trace().index(value), draft.saved});
  }
  next(); // ')'
  return true;
}

/// What follows a value's name is the same for arguments and results.
bool Parser::readValueDraft(ValueDraft &draft, bool maySave) {
  draft.name = token();
  if (!at(TokenKind::Value))
    return failExpected("a value");
  next();
  if (!expect(':', "and the type of '" + draft.name.text + "'"))
    return false;
  draft.type = readType();
  if (!draft.type)
    return false;
  while (at(TokenKind::Identifier))
    if (!readValueWord(draft, maySave))
      return false;
  return true;
}

/// A tag, `path` or `saved`.
bool Parser::readValueWord(ValueDraft &draft, bool maySave) {
  static constexpr llvm::StringRef otherWords[] = {"path", "saved"};
  const Token word = token();
  if (word.text == "path") {
    if (!draft.path.empty())
      return fail(word, "'path' is given twice");
    next();
    return readString(draft.path, "the path of '" + draft.name.text + "'");
  }
  if (word.text == "saved") {
    if (!maySave)
      return fail(word, "only arguments of a trace and operands of its 'return' can be saved");
    if (draft.saved)
      return fail(word, "'saved' is given twice");
    return readSaved(draft.saved, draft_->argumentPlaces);
  }
  const ValueTags *tag = llvm::find_if(
      allValueTags, [&](ValueTags single) { return valueTagName(single) == word.text; });
  if (tag == std::end(allValueTags)) {
    std::string hint =
        didYouMean(word.text, namesOf<ValueTags>(allValueTags, valueTagName, otherWords));
    return fail(word, "unknown tag " + describe(word) + hint);
  }
  if (any(draft.tags & *tag))
    return fail(word, "tag " + describe(word) + " is given twice");
  draft.tags = draft.tags | *tag;
  next();
  return true;
}

void Parser::applyDraft(ValueId value, const ValueDraft &draft) {
  if (llvm::StringRef name = draft.name.text.drop_front(); Trace::isValueName(name))
    trace().setName(value, name);
  trace().setTags(value, draft.tags);
  if (!draft.path.empty())
    trace().setValuePath(value, draft.path);
}

bool Parser::readSaved(SavedId &id, llvm::DenseMap<uint32_t, Location> &places) {
  next(); // 'saved'
  uint32_t number;
  if (!expect('#', "and a number after 'saved'"))
    return false;
  Token place = token();
  if (!readUnsigned(number, "a saved id", TracePair::maxSavedId - 1))
    return false;
  auto [it, isNew] = places.try_emplace(number, locationOf(place));
  if (!isNew)
    return fail(place, "saved id #" + llvm::Twine(number) + " is used twice on one side",
                it->second, "previous use here");
  id = SavedId(number);
  return true;
}

bool Parser::readBody(OpId parent) {
  Token open = token();
  if (scopes_.size() > maxNesting)
    return fail(open, "bodies are nested more than " + llvm::Twine(maxNesting) + " deep");
  Depth base = depth();
  next(); // '{'
  BodyId body = trace().addBody(parent);
  openScope();
  if (consumeIf('^') && !(readArguments(body) && expect(':', "after the arguments of a body"))) {
    scope().isIncomplete = true;
    skipToNextOp({base.braces + 1, base.parens});
  }
  bool isClosed = readOps(body, open);
  closeScope();
  return isClosed;
}

/// Reads to the '}' that closes what `open` opened, and over it.
bool Parser::readOps(BodyId body, const Token &open) {
  while (!at('}') && !atEnd()) {
    Depth base = depth();
    const char *begin = token().text.data();
    if (readOp(body))
      continue;
    if (token().text.data() == begin)
      next(); // what begins no op at all
    skipToNextOp(base);
  }
  if (consumeIf('}'))
    return true;
  return fail(token(), "expected an op or '}', found " + describe(token()), locationOf(open),
              "'{' is here");
}

//===----------------------------------------------------------------------===//
// Scopes
//===----------------------------------------------------------------------===//

void Parser::define(const Token &name, ValueId value) {
  if (!name.is(TokenKind::Value))
    return;
  auto [it, isNew] =
      scope().definitions.try_emplace(name.text, Definition{value, name.line, name.column});
  if (!isNew) {
    Token previous;
    previous.line = it->second.line;
    previous.column = it->second.column;
    fail(name, "redefinition of value '" + name.text + "'", locationOf(previous),
         "previous definition here");
  }
}

ValueId Parser::lookUp(const Token &name) {
  Scope &current = scope();
  auto it = current.definitions.find(name.text);
  if (it != current.definitions.end())
    return it->second.value;
  // What to say of it is known at the end of the body.
  constexpr size_t enough = 100;
  if (current.unresolved.size() < enough)
    current.unresolved.push_back(name);
  return ValueId();
}

void Parser::closeScope() {
  if (!scope().unresolved.empty() && !scope().isIncomplete) {
    using Entry = std::pair<std::pair<uint32_t, uint32_t>, llvm::StringRef>;
    std::vector<Entry> byPlace;
    for (const auto &[name, definition] : scope().definitions)
      byPlace.push_back({{definition.line, definition.column}, name});
    llvm::sort(byPlace);
    // Comparing with each of very many names would take long; the last ones are as good as any.
    constexpr size_t enough = 10000;
    std::vector<llvm::StringRef> candidates;
    for (size_t i = byPlace.size() - std::min(byPlace.size(), enough); i < byPlace.size(); ++i)
      candidates.push_back(byPlace[i].second);
    for (const Token &use : scope().unresolved)
      reportUndefined(use, candidates);
  }
  scopes_.pop_back();
}

void Parser::reportUndefined(const Token &use, llvm::ArrayRef<llvm::StringRef> candidates) {
  auto placeIn = [&](const Scope &where) -> std::optional<Location> {
    auto it = where.definitions.find(use.text);
    if (it == where.definitions.end())
      return std::nullopt;
    Token place;
    place.line = it->second.line;
    place.column = it->second.column;
    return locationOf(place);
  };
  if (std::optional<Location> later = placeIn(scope())) {
    fail(use, "value '" + use.text + "' is used before its definition", *later, "defined here");
    return;
  }
  for (const Scope &outer : llvm::reverse(llvm::ArrayRef<Scope>(scopes_).drop_back())) {
    if (std::optional<Location> place = placeIn(outer)) {
      fail(use, "value '" + use.text + "' is not visible here: a body sees its arguments only",
           *place, "defined outside of the body here");
      return;
    }
  }
  bool isNumbered = !Trace::isValueName(use.text.drop_front());
  fail(use, "use of undefined value '" + use.text + "'" +
                (isNumbered ? std::string() : didYouMean(use.text, candidates)));
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

/// The diagnostics in the order of the text. Uses of undefined values are found late.
static llvm::Error takeSorted(DiagnosticList &diagnostics) {
  bool isCutShort = diagnostics.isFull();
  std::vector<Diagnostic> sorted = diagnostics.take();
  llvm::stable_sort(sorted, [](const Diagnostic &a, const Diagnostic &b) {
    return std::pair(a.location.line, a.location.column) <
           std::pair(b.location.line, b.location.column);
  });
  if (isCutShort) {
    sorted.emplace_back();
    sorted.back().message = "too many errors: the rest of the text was not read";
  }
  return llvm::make_error<DiagnosticError>(std::move(sorted));
}

/// Verifies what was read, if it was, and returns it or what is wrong with it.
template <typename T>
static llvm::Expected<T> finish(std::optional<T> result, const SourceText &source,
                                DiagnosticList &diagnostics) {
  if (diagnostics.hasErrors())
    return takeSorted(diagnostics);
  verify(*result, diagnostics);
  if (!diagnostics.hasErrors())
    return std::move(*result);
  llvm::Error error = diagnostics.takeError();
  std::vector<Diagnostic> faults;
  llvm::handleAllErrors(std::move(error), [&](const DiagnosticError &collected) {
    faults = collected.diagnostics();
  });
  for (Diagnostic &fault : faults)
    source.addSnippets(fault);
  return llvm::make_error<DiagnosticError>(std::move(faults));
}

llvm::Expected<TracePair> rondo::parsePair(llvm::StringRef text, llvm::StringRef file,
                                           const OpRegistry &registry) {
  DiagnosticList diagnostics;
  SourceText source(text, file);
  return finish(Parser(source, diagnostics, registry).readPairText(), source, diagnostics);
}

llvm::Expected<Trace> rondo::parseTrace(llvm::StringRef text, llvm::StringRef file,
                                        const OpRegistry &registry) {
  DiagnosticList diagnostics;
  SourceText source(text, file);
  return finish(Parser(source, diagnostics, registry).readTraceText(), source, diagnostics);
}
