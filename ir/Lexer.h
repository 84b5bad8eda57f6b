//===- Lexer.h - Tokens of the text form ------------------------*- C++ -*-===//
//
// Cuts the text form of traces (docs/trace-format.md) into tokens. Tokens are slices of the text;
// nothing is copied. Any bytes are accepted: what is no token comes out as one `Invalid` token that
// says why, and lexing goes on behind it.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace rondo {

enum class TokenKind : uint8_t {
  EndOfFile,
  Invalid,
  Identifier,  ///< a letter or '_', then letters, digits, '_', '.', '$'
  Integer,     ///< digits
  Float,       ///< digits with a '.' between digits, an exponent, or both
  String,      ///< in double quotes, on one line
  Value,       ///< '%' and a name or digits
  Punctuation, ///< one character
};

/// Why a token is `Invalid`.
enum class TokenError : uint8_t {
  None,
  UnexpectedBytes,
  UnterminatedString,
  BadEscape,
  BadNumber,
  BadValueName,
};

struct Token {
  TokenKind kind = TokenKind::EndOfFile;
  TokenError error = TokenError::None;
  bool startsLine = false; ///< nothing but white space and comments before it on its line
  bool hasEscapes = false; ///< of a String
  /// 1-based; the column counts bytes. Of an Invalid token: the place of the fault.
  uint32_t line = 1;
  uint32_t column = 1;
  /// The slice of the source. Of a String: what is between the quotes, escapes as written.
  llvm::StringRef text;

  bool is(TokenKind other) const { return kind == other; }
  bool is(char punctuation) const {
    return kind == TokenKind::Punctuation && text[0] == punctuation;
  }
  bool isWord(llvm::StringRef word) const { return kind == TokenKind::Identifier && text == word; }
};

/// The token for a message: `'add'`, `string "text"`, `end of file`. Long ones are cut.
std::string describe(const Token &token);
/// What is wrong with an Invalid token.
std::string tokenErrorMessage(const Token &token);
/// The content of a String token: the slice itself, or, where it has escapes, `buffer`.
llvm::StringRef stringContent(const Token &token, llvm::SmallVectorImpl<char> &buffer);

/// What may follow the attributes of an op. As names of ops these stand in quotes.
inline constexpr llvm::StringRef annotationWords[] = {"module", "loc", "claim", "fusion", "domain"};

/// True if `name` lexes as one Identifier.
bool isIdentifier(llvm::StringRef name);

/// Cheap to copy: a copy is a way to look ahead. `text` must outlive it and its tokens.
class Lexer {
public:
  explicit Lexer(llvm::StringRef text)
      : current_(text.begin()), end_(text.end()), lineStart_(text.begin()) {}

  /// The next token; EndOfFile again and again at the end.
  Token lex();

private:
  void skipBlanks();
  Token make(TokenKind kind, const char *begin) const;
  Token fault(TokenError error, const char *place, const char *begin) const;
  Token lexNumber();
  Token lexString();
  Token lexValue();
  Token lexUnexpected();

  const char *current_;
  const char *end_;
  const char *lineStart_;
  uint32_t line_ = 1;
  bool startsLine_ = true;
};

} // namespace rondo
