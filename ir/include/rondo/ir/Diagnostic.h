//===- Diagnostic.h - Located messages about bad input ----------*- C++ -*-===//
//
// Bad input is answered with diagnostics: located, many rather than the first only, with notes.
// They are collected in a `DiagnosticList`; where a function returns `llvm::Error`, a
// `DiagnosticError` carries them.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rondo {

/// Where something came from: a file and a 1-based line and column, or a file and a JSON pointer,
/// or an op in memory.
struct Location {
  std::string file;
  uint32_t line = 0;   ///< 0: unknown
  uint32_t column = 0; ///< 0: unknown
  /// A JSON pointer (`/forward/ops/3`) or, for a trace that was built in memory, the text of the
  /// op.
  std::string path;

  bool isKnown() const { return !file.empty() || line || !path.empty(); }
  /// `gpt.trace:14:9`, `step.json:/forward/ops/3`, or empty when unknown.
  std::string str() const;
  friend bool operator==(const Location &, const Location &) = default;
};

enum class Severity : uint8_t { Error, Warning, Note };

struct Diagnostic {
  Severity severity = Severity::Error;
  Location location;
  std::string message; ///< starts lower-case, no full stop
  /// The source line and, under it, a caret; empty when there is no text to point into.
  std::string snippet;
  std::vector<Diagnostic> notes;

  /// Attaches a note and returns this diagnostic.
  Diagnostic &note(Location location, const llvm::Twine &message);
  /// `gpt.trace:14:9: error: message`, then the snippet, then the notes, each on its own line(s).
  void print(llvm::raw_ostream &os) const;
  std::string str() const;
};

/// Collects diagnostics. After `limit` errors further diagnostics are dropped, and so are warnings
/// after `limit` warnings, so that hostile input cannot fill memory. Dropped errors are counted.
class DiagnosticList {
public:
  explicit DiagnosticList(size_t limit = 100) : limit_(limit) {}

  /// The reference is valid until the next call; writing to a dropped diagnostic is harmless.
  Diagnostic &error(Location location, const llvm::Twine &message);
  Diagnostic &warning(Location location, const llvm::Twine &message);
  /// Says what was done; nothing is wrong. Printed as a note; counts as a warning for the limit.
  Diagnostic &remark(Location location, const llvm::Twine &message);

  bool hasErrors() const { return errors_ != 0; }
  size_t numErrors() const { return errors_; }
  bool isFull() const { return errors_ >= limit_; }
  const std::vector<Diagnostic> &diagnostics() const { return diagnostics_; }
  /// Moves out what was collected; the list is empty and without errors afterwards.
  std::vector<Diagnostic> take();
  /// Everything collected, then how many errors were dropped, if any.
  void print(llvm::raw_ostream &os) const;
  /// Success when there are no errors, else a DiagnosticError that takes what was collected; when
  /// errors were dropped, its last diagnostic says how many.
  llvm::Error takeError();

private:
  Diagnostic &add(Severity severity, Location location, const llvm::Twine &message);
  std::optional<Diagnostic> summaryOfDropped() const;

  size_t limit_;
  size_t errors_ = 0;
  size_t warnings_ = 0;
  std::vector<Diagnostic> diagnostics_;
  Diagnostic dropped_; // what `error` refers to beyond the limit
};

/// An `llvm::Error` that carries diagnostics. Its message is their text, without a trailing
/// newline.
class DiagnosticError : public llvm::ErrorInfo<DiagnosticError> {
public:
  static char ID; // LLVM's way to tell error classes apart

  explicit DiagnosticError(std::vector<Diagnostic> diagnostics)
      : diagnostics_(std::move(diagnostics)) {}
  const std::vector<Diagnostic> &diagnostics() const { return diagnostics_; }
  void log(llvm::raw_ostream &os) const override;
  /// `std::errc::invalid_argument`.
  std::error_code convertToErrorCode() const override;

private:
  std::vector<Diagnostic> diagnostics_;
};

/// A DiagnosticError with one error.
llvm::Error makeError(Location location, const llvm::Twine &message);
inline llvm::Error makeError(const llvm::Twine &message) {
  return makeError(Location(), message);
}

/// " (did you mean 'x'?)" for the candidate nearest to `name` by edit distance, or empty when none
/// is near.
std::string didYouMean(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> candidates);

} // namespace rondo
