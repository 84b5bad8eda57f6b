//===- TokenReader.h - Walking over tokens and reporting faults -*- C++ -*-===//
//
// What the readers of the text form share: the current token, looking ahead, located errors with
// carets, and getting back in step after an error.
//
// Functions that may fail return false after reporting why; callers pass the false on to a place
// that can resynchronise. Once the list of diagnostics is full the reader acts as if the text ended
// there, which ends every loop.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Lexer.h"
#include "SourceText.h"

#include <limits>

namespace rondo {

class TokenReader {
public:
  /// `source` and `diagnostics` must outlive the reader.
  TokenReader(const SourceText &source, DiagnosticList &diagnostics)
      : source_(source), diagnostics_(diagnostics), lexer_(source.text()), token_(lexer_.lex()) {}

protected:
  //===--- Tokens ---------------------------------------------------------===//

  const Token &token() const { return token_; }
  bool at(TokenKind kind) const { return token_.is(kind); }
  bool at(char punctuation) const { return token_.is(punctuation); }
  bool atWord(llvm::StringRef word) const { return token_.isWord(word); }
  bool atEnd() const { return at(TokenKind::EndOfFile); }
  /// The token `distance` after the current one. Lexes again: for a token or two.
  Token peek(unsigned distance = 1) const;
  void next();
  bool consumeIf(char punctuation);
  bool consumeWord(llvm::StringRef word);

  //===--- Expectations ---------------------------------------------------===//

  /// `where` completes "expected ')' ", such as "after the operands".
  bool expect(char punctuation, const llvm::Twine &where);
  /// Reads digits up to `max`. `what` names it: "a line number".
  bool readUnsigned(uint64_t &result, const llvm::Twine &what,
                    uint64_t max = std::numeric_limits<uint64_t>::max());
  bool readUnsigned(uint32_t &result, const llvm::Twine &what,
                    uint32_t max = std::numeric_limits<uint32_t>::max());
  bool readString(std::string &result, const llvm::Twine &what);

  //===--- Faults ---------------------------------------------------------===//

  /// Reports an error and returns false. Where `place` is an Invalid token, what is wrong with that
  /// token is reported instead. The end of the file is reported once.
  bool fail(const Token &place, const llvm::Twine &message);
  /// The same with a note.
  bool fail(const Token &place, const llvm::Twine &message, const Location &notePlace,
            const llvm::Twine &note);
  /// "expected <what>, found <the current token>".
  bool failExpected(const llvm::Twine &what);
  /// True if so many errors were reported that reading stopped.
  bool isFull() const { return diagnostics_.isFull(); }

  /// How many brackets of each kind are open before the current token.
  struct Depth {
    int32_t braces = 0;
    int32_t parens = 0; ///< round and square ones
  };
  Depth depth() const { return depth_; }
  /// After an error in something that began at depth `base`: goes to where the next op seems to
  /// begin, or to the '}' that closes what surrounds it.
  void skipToNextOp(Depth base);
  /// Goes to the next of `words` or '}' at depth `base`.
  void skipToWord(Depth base, llvm::ArrayRef<llvm::StringRef> words);
  /// Goes to the next brace; returns true at '{'.
  bool skipToOpenBrace(Depth base);

  Location locationOf(const Token &place) const {
    return source_.location(place.line, place.column);
  }

private:
  bool startsDefinition() const;

  const SourceText &source_;
  DiagnosticList &diagnostics_;
  Lexer lexer_;
  Token token_;
  Depth depth_;
  bool reportedEnd_ = false;
};

} // namespace rondo
