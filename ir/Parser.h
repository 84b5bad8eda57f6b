//===- Parser.h - Traces from text ------------------------------*- C++ -*-===//
//
// Recursive descent over the grammar of docs/trace-format.md. Parser.cpp reads pairs, traces and
// bodies, ParserOps.cpp single ops.
//
// After an error the parser goes on at the next op, so that one run reports what it can. Values
// whose definition was faulty are known by name all the same, and where even the names were lost
// the body counts as incomplete: neither leads to errors about undefined values.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "LiteralReader.h"

#include "rondo/ir/TracePair.h"

#include "llvm/ADT/DenseMap.h"

namespace rondo {

class Parser : public LiteralReader {
public:
  Parser(const SourceText &source, DiagnosticList &diagnostics, const OpRegistry &registry)
      : LiteralReader(source, diagnostics, registry) {}

  /// Each reads the whole text. Nothing if there were errors.
  std::optional<TracePair> readPairText();
  std::optional<Trace> readTraceText();

private:
  /// `saved #id` at the operand or argument of that index.
  struct SavedMark {
    unsigned index;
    SavedId id;
  };
  /// A trace and what TracePair keeps in it.
  struct TraceDraft {
    explicit TraceDraft(const OpRegistry &registry) : trace(registry) {}
    Trace trace;
    llvm::SmallVector<SavedMark, 0> returns, arguments;
    /// Where each id was seen, to find doubles.
    llvm::DenseMap<uint32_t, Location> returnPlaces, argumentPlaces;
  };

  /// Invalid while the op that defines the value is faulty.
  struct Definition {
    ValueId value;
    uint32_t line = 0;
    uint32_t column = 0;
  };
  /// The names of one body, '%' included.
  struct Scope {
    llvm::DenseMap<llvm::StringRef, Definition> definitions;
    std::vector<Token> unresolved; ///< uses without a definition before them
    bool isIncomplete = false;     ///< the names of some values were lost to errors
  };

  /// The name of a result or argument, and what follows it.
  struct ValueDraft {
    Token name;
    std::optional<Type> type;
    ValueTags tags = ValueTags::None;
    std::string path;
    SavedId saved;
  };
  struct OpDraft {
    Token place;
    llvm::SmallVector<ValueDraft, 2> results;
    const OpSpec *spec = nullptr;
    llvm::SmallVector<ValueId, 4> operands;
    llvm::SmallVector<SavedMark, 0> saved;
    llvm::SmallVector<std::pair<llvm::StringRef, Attribute>, 4> attributes;
    std::string modulePath;
    std::optional<Location> location;
    std::optional<Claim> claim;
    std::optional<FusionRecord> fusionRecord;
    CaptureDomainRef domain;
  };

  //===--- Parser.cpp -----------------------------------------------------===//

  std::optional<TracePair> readPair();
  bool readDomain();
  bool readTrace(TraceDraft &draft);
  bool readTraceHeader(TraceDraft &draft);
  bool readName(std::string &name, const llvm::Twine &what);
  bool readProperties(Trace &trace);
  bool readArguments(BodyId body);
  bool readBody(OpId parent);
  bool readOps(BodyId body, const Token &open);

  bool readValueDraft(ValueDraft &draft, bool maySave);
  bool readValueWord(ValueDraft &draft, bool maySave);
  bool readSaved(SavedId &id, llvm::DenseMap<uint32_t, Location> &places);
  void applyDraft(ValueId value, const ValueDraft &draft);

  void openScope() { scopes_.emplace_back(); }
  void closeScope();
  Scope &scope() { return scopes_.back(); }
  void define(const Token &name, ValueId value);
  ValueId lookUp(const Token &name);
  void reportUndefined(const Token &use, llvm::ArrayRef<llvm::StringRef> candidates);

  //===--- ParserOps.cpp --------------------------------------------------===//

  bool readOp(BodyId body);
  bool readOpHead(OpDraft &draft, bool isInTopBody);
  bool readResults(OpDraft &draft);
  bool readOpName(OpDraft &draft);
  bool readOperands(OpDraft &draft, bool isInTopBody);
  bool isAtAttributes() const;
  bool readAttributes(OpDraft &draft);
  bool checkAttributeNames(llvm::ArrayRef<std::pair<llvm::StringRef, Token>> names);
  bool isAtAnnotation() const;
  bool readAnnotations(OpDraft &draft);
  bool readLocation(OpDraft &draft);
  bool readClaim(OpDraft &draft);
  bool readFusionRecord(OpDraft &draft);
  bool readDomainUse(OpDraft &draft);
  OpId createOp(BodyId body, OpDraft &draft);

  Trace &trace() { return draft_->trace; }

  TraceDraft *draft_ = nullptr; ///< what is being read
  std::vector<Scope> scopes_;
  struct Domain {
    CaptureDomainRef domain;
    Location place;
  };
  llvm::DenseMap<uint32_t, Domain> domains_;
};

} // namespace rondo
