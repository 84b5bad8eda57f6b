//===- Lexer.cpp - Tokens of the text form ----------------------------------===//

#include "Lexer.h"

#include "rondo/ir/Attribute.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/raw_ostream.h"

using namespace rondo;

static bool isNameHead(char c) {
  return llvm::isAlpha(c) || c == '_';
}
static bool isNameTail(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$';
}
static bool isPunctuation(char c) {
  return c && llvm::StringRef("()[]{}<>,:;=+-*@#!^").contains(c);
}
/// Bytes that stand nowhere outside of strings and comments.
static bool isUnexpected(char c) {
  return !isNameTail(c) && !isPunctuation(c) && c != '"' && c != '%' && c != '/' && c != ' ' &&
         c != '\t' && c != '\r' && c != '\n';
}

bool rondo::isIdentifier(llvm::StringRef name) {
  return !name.empty() && isNameHead(name.front()) && llvm::all_of(name, isNameTail);
}

//===----------------------------------------------------------------------===//
// Tokens in messages
//===----------------------------------------------------------------------===//

/// `text` for a message: cut to a line's worth, whole UTF-8 sequences, control bytes escaped.
static std::string excerpt(llvm::StringRef text, char quote) {
  constexpr size_t maxLength = 40;
  bool cut = text.size() > maxLength;
  if (cut) {
    size_t length = maxLength;
    while (length > maxLength - 4 && (uint8_t(text[length]) & 0xC0) == 0x80)
      --length;
    text = text.take_front(length);
  }
  std::string out(1, quote);
  for (char c : text) {
    if (uint8_t(c) < 0x20 || c == 0x7F)
      out += "\\x" + llvm::toHex(llvm::StringRef(&c, 1));
    else
      out += c;
  }
  return out + (cut ? "..." : "") + quote;
}

std::string rondo::describe(const Token &token) {
  switch (token.kind) {
  case TokenKind::EndOfFile:
    return "end of file";
  case TokenKind::String:
    return "string " + excerpt(token.text, '"');
  default:
    return excerpt(token.text, '\'');
  }
}

/// Names the first of some bytes that stand outside of a string.
static std::string unexpectedBytesMessage(llvm::StringRef text) {
  if (text.empty())
    return "unexpected byte";
  uint8_t byte = text[0];
  if (byte >= 0x20 && byte < 0x7F)
    return "unexpected character " + excerpt(text.take_front(1), '\'');
  if (byte >= 0x80) {
    unsigned length = llvm::getNumBytesForUTF8(byte);
    const auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.data());
    if (length <= text.size() && llvm::isLegalUTF8Sequence(begin, begin + length))
      return "unexpected character " + excerpt(text.take_front(length), '\'');
    return "invalid UTF-8: byte 0x" + llvm::utohexstr(byte);
  }
  return "unexpected control byte 0x" + llvm::toHex(text.take_front(1));
}

std::string rondo::tokenErrorMessage(const Token &token) {
  switch (token.error) {
  case TokenError::UnterminatedString:
    return "string is not closed on its line";
  case TokenError::BadEscape:
    return "unknown escape " + excerpt(token.text, '\'') +
           " in a string; there are \\\" \\\\ \\n \\t \\xHH";
  case TokenError::BadNumber:
    return "malformed number " + excerpt(token.text, '\'');
  case TokenError::BadValueName:
    return "malformed value name " + excerpt(token.text, '\'') +
           "; '%' is followed by digits, or by a letter or '_' and letters, digits, '_', '.', '$'";
  case TokenError::UnexpectedBytes:
  case TokenError::None:
    break;
  }
  return unexpectedBytesMessage(token.text);
}

llvm::StringRef rondo::stringContent(const Token &token, llvm::SmallVectorImpl<char> &buffer) {
  if (!token.hasEscapes)
    return token.text;
  buffer.clear();
  llvm::StringRef rest = token.text;
  while (!rest.empty()) {
    size_t backslash = std::min(rest.find('\\'), rest.size());
    buffer.append(rest.begin(), rest.begin() + backslash);
    rest = rest.drop_front(backslash);
    if (rest.empty())
      break;
    char kind = rest[1];
    if (kind == 'x') {
      buffer.push_back(char(llvm::hexDigitValue(rest[2]) * 16 + llvm::hexDigitValue(rest[3])));
      rest = rest.drop_front(4);
      continue;
    }
    buffer.push_back(kind == 'n' ? '\n' : kind == 't' ? '\t' : kind);
    rest = rest.drop_front(2);
  }
  return {buffer.data(), buffer.size()};
}

//===----------------------------------------------------------------------===//
// Lexer
//===----------------------------------------------------------------------===//

void Lexer::skipBlanks() {
  while (current_ != end_) {
    if (*current_ == '\n') {
      lineStart_ = ++current_;
      ++line_;
      startsLine_ = true;
    } else if (*current_ == ' ' || *current_ == '\t' || *current_ == '\r') {
      ++current_;
    } else if (*current_ == '/' && current_ + 1 != end_ && current_[1] == '/') {
      current_ = std::find(current_, end_, '\n');
    } else {
      return;
    }
  }
}

Token Lexer::make(TokenKind kind, const char *begin) const {
  Token token;
  token.kind = kind;
  token.startsLine = startsLine_;
  token.line = line_;
  token.column = uint32_t(begin - lineStart_) + 1;
  token.text = llvm::StringRef(begin, current_ - begin);
  return token;
}

Token Lexer::fault(TokenError error, const char *place, const char *begin) const {
  Token token = make(TokenKind::Invalid, begin);
  token.error = error;
  token.column = uint32_t(place - lineStart_) + 1;
  return token;
}

Token Lexer::lex() {
  skipBlanks();
  Token token;
  if (current_ == end_) {
    token = make(TokenKind::EndOfFile, current_);
  } else if (const char *begin = current_; isNameHead(*begin)) {
    current_ = std::find_if_not(begin, end_, isNameTail);
    token = make(TokenKind::Identifier, begin);
  } else if (llvm::isDigit(*begin)) {
    token = lexNumber();
  } else if (*begin == '"') {
    token = lexString();
  } else if (*begin == '%') {
    token = lexValue();
  } else if (isPunctuation(*begin)) {
    ++current_;
    token = make(TokenKind::Punctuation, begin);
  } else {
    token = lexUnexpected();
  }
  startsLine_ = false;
  return token;
}

Token Lexer::lexNumber() {
  const char *begin = current_;
  auto skipDigits = [&] {
    const char *from = current_;
    current_ = std::find_if_not(current_, end_, [](char c) { return llvm::isDigit(c); });
    return current_ != from;
  };
  bool isWellFormed = skipDigits();
  TokenKind kind = TokenKind::Integer;
  if (current_ != end_ && *current_ == '.') {
    kind = TokenKind::Float;
    ++current_;
    isWellFormed = skipDigits();
  }
  if (isWellFormed && current_ != end_ && (*current_ == 'e' || *current_ == 'E')) {
    kind = TokenKind::Float;
    ++current_;
    if (current_ != end_ && (*current_ == '+' || *current_ == '-'))
      ++current_;
    isWellFormed = skipDigits();
  }
  const char *rest = std::find_if_not(current_, end_, isNameTail);
  isWellFormed &= rest == current_;
  current_ = rest;
  return isWellFormed ? make(kind, begin) : fault(TokenError::BadNumber, begin, begin);
}

Token Lexer::lexString() {
  const char *quote = current_++;
  const char *begin = current_;
  bool hasEscapes = false;
  llvm::StringRef badEscape;
  while (current_ != end_ && *current_ != '"' && *current_ != '\n') {
    if (*current_++ != '\\')
      continue;
    hasEscapes = true;
    const char *escape = current_ - 1;
    llvm::StringRef rest(current_, end_ - current_);
    if (rest.empty() || rest[0] == '\n')
      break;
    if (rest[0] == 'x' && rest.size() >= 3 && llvm::isHexDigit(rest[1]) &&
        llvm::isHexDigit(rest[2])) {
      current_ += 3;
      continue;
    }
    ++current_;
    if (llvm::StringRef("\"\\nt").contains(rest[0]))
      continue;
    while (current_ != end_ && (uint8_t(*current_) & 0xC0) == 0x80)
      ++current_;
    if (badEscape.empty())
      badEscape = llvm::StringRef(escape, current_ - escape);
  }
  if (current_ == end_ || *current_ != '"')
    return fault(TokenError::UnterminatedString, quote, quote);
  Token token = make(TokenKind::String, begin);
  token.column = uint32_t(quote - lineStart_) + 1;
  token.hasEscapes = hasEscapes;
  ++current_;
  if (!badEscape.empty()) {
    token = fault(TokenError::BadEscape, badEscape.begin(), quote);
    token.text = badEscape;
  }
  return token;
}

Token Lexer::lexValue() {
  const char *begin = current_++;
  bool isNumbered = current_ != end_ && llvm::isDigit(*current_);
  const char *rest = std::find_if_not(current_, end_, isNameTail);
  bool isWellFormed = isNumbered
                          ? std::all_of(current_, rest, [](char c) { return llvm::isDigit(c); })
                          : rest != current_ && isNameHead(*current_);
  current_ = rest;
  return isWellFormed ? make(TokenKind::Value, begin)
                      : fault(TokenError::BadValueName, begin, begin);
}

Token Lexer::lexUnexpected() {
  // Bytes that belong to no token are one fault together: a binary file is not a million errors. A
  // lone '/' is among them.
  const char *begin = current_++;
  current_ = std::find_if_not(current_, end_, isUnexpected);
  return fault(TokenError::UnexpectedBytes, begin, begin);
}
