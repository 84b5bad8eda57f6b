//===- TokenReader.cpp - Walking over tokens and reporting faults -----------===//

#include "TokenReader.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

Token TokenReader::peek(unsigned distance) const {
  Lexer ahead = lexer_;
  Token token = token_;
  for (unsigned i = 0; i < distance; ++i)
    token = ahead.lex();
  return token;
}

void TokenReader::next() {
  if (at(TokenKind::Punctuation)) {
    char c = token_.text[0];
    depth_.braces += (c == '{') - (c == '}');
    depth_.parens += (c == '(' || c == '[') - (c == ')' || c == ']');
  }
  if (!atEnd())
    token_ = lexer_.lex();
}

bool TokenReader::consumeIf(char punctuation) {
  if (!at(punctuation))
    return false;
  next();
  return true;
}

bool TokenReader::consumeWord(llvm::StringRef word) {
  if (!atWord(word))
    return false;
  next();
  return true;
}

//===----------------------------------------------------------------------===//
// Expectations
//===----------------------------------------------------------------------===//

bool TokenReader::expect(char punctuation, const llvm::Twine &where) {
  if (consumeIf(punctuation))
    return true;
  return failExpected("'" + llvm::Twine(punctuation) + "' " + where);
}

bool TokenReader::readUnsigned(uint64_t &result, const llvm::Twine &what, uint64_t max) {
  if (!at(TokenKind::Integer))
    return failExpected(what);
  if (token_.text.getAsInteger(10, result) || result > max)
    return fail(token_, what + " is at most " + llvm::Twine(max));
  next();
  return true;
}

bool TokenReader::readUnsigned(uint32_t &result, const llvm::Twine &what, uint32_t max) {
  uint64_t wide = 0;
  if (!readUnsigned(wide, what, uint64_t(max)))
    return false;
  result = uint32_t(wide);
  return true;
}

bool TokenReader::readString(std::string &result, const llvm::Twine &what) {
  if (!at(TokenKind::String))
    return failExpected(what + " in double quotes");
  llvm::SmallString<64> buffer;
  result = stringContent(token_, buffer).str();
  next();
  return true;
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

bool TokenReader::fail(const Token &place, const llvm::Twine &message) {
  return fail(place, message, Location(), "");
}

bool TokenReader::fail(const Token &place, const llvm::Twine &message, const Location &notePlace,
                       const llvm::Twine &note) {
  bool isEnd = place.is(TokenKind::EndOfFile);
  if (isFull() || (isEnd && reportedEnd_))
    return false;
  reportedEnd_ |= isEnd;
  Diagnostic &diagnostic = place.is(TokenKind::Invalid)
                               ? diagnostics_.error(locationOf(place), tokenErrorMessage(place))
                               : diagnostics_.error(locationOf(place), message);
  if (!note.isTriviallyEmpty() && !place.is(TokenKind::Invalid))
    diagnostic.note(notePlace, note);
  source_.addSnippets(diagnostic);
  if (isFull()) {
    token_.kind = TokenKind::EndOfFile;
    token_.text = {};
  }
  return false;
}

bool TokenReader::failExpected(const llvm::Twine &what) {
  return fail(token_, "expected " + what + ", found " + describe(token_));
}

/// True at what begins an op with results: a value and ':', first on their line.
bool TokenReader::startsDefinition() const {
  return token_.startsLine && at(TokenKind::Value) && peek().is(':');
}

void TokenReader::skipToNextOp(Depth base) {
  // An op begins a line, outside of the brackets of the op before it. Where a bracket was left
  // open, a definition at the beginning of a line is taken for the next op all the same: operands
  // and attributes hold none. Bodies do, so those are skipped as a whole.
  int32_t faultyBraces = depth_.braces;
  while (!atEnd()) {
    bool isOutside = depth_.braces == base.braces;
    bool isInDict = faultyBraces > base.braces && depth_.braces == faultyBraces;
    bool mayBeginOp = at(TokenKind::Value) || at(TokenKind::Identifier) || at(TokenKind::String);
    if (isOutside && at('}'))
      break;
    if (isOutside && token_.startsLine && mayBeginOp && depth_.parens <= base.parens)
      break;
    if ((isOutside || isInDict) && startsDefinition())
      break;
    next();
  }
  depth_ = base;
}

void TokenReader::skipToWord(Depth base, llvm::ArrayRef<llvm::StringRef> words) {
  while (!atEnd()) {
    bool isOutside = depth_.braces <= base.braces;
    if (isOutside && at('}'))
      break;
    if (isOutside && at(TokenKind::Identifier) && llvm::is_contained(words, token_.text))
      break;
    next();
  }
  depth_ = base;
}

bool TokenReader::skipToOpenBrace(Depth base) {
  while (!atEnd() && !at('{') && !at('}'))
    next();
  depth_ = base;
  return at('{');
}
