//===- Diagnostic.cpp - Located messages about bad input ------------------===//

#include "rondo/ir/Diagnostic.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <system_error>

namespace rondo {

std::string Location::str() const {
  std::string text;
  auto addPart = [&](const llvm::Twine &part) {
    if (!text.empty())
      text += ':';
    text += part.str();
  };
  if (!file.empty())
    addPart(file);
  if (line)
    addPart(llvm::Twine(line));
  if (line && column)
    addPart(llvm::Twine(column));
  if (!path.empty())
    addPart(path);
  return text;
}

static llvm::StringRef severityName(Severity severity) {
  switch (severity) {
  case Severity::Error:
    return "error";
  case Severity::Warning:
    return "warning";
  case Severity::Note:
    return "note";
  }
  llvm_unreachable("no such severity");
}

static Diagnostic makeDiagnostic(Severity severity, Location location, const llvm::Twine &message) {
  Diagnostic diagnostic;
  diagnostic.severity = severity;
  diagnostic.location = std::move(location);
  diagnostic.message = message.str();
  return diagnostic;
}

Diagnostic &Diagnostic::note(Location location, const llvm::Twine &message) {
  notes.push_back(makeDiagnostic(Severity::Note, std::move(location), message));
  return *this;
}

void Diagnostic::print(llvm::raw_ostream &os) const {
  if (location.isKnown())
    os << location.str() << ": ";
  os << severityName(severity) << ": " << message << '\n';
  if (!snippet.empty()) {
    os << snippet;
    if (snippet.back() != '\n')
      os << '\n';
  }
  for (const Diagnostic &note : notes)
    note.print(os);
}

std::string Diagnostic::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return os.str();
}

Diagnostic &DiagnosticList::add(Severity severity, Location location, const llvm::Twine &message) {
  Diagnostic diagnostic = makeDiagnostic(severity, std::move(location), message);
  bool isError = severity == Severity::Error;
  size_t &count = isError ? errors_ : warnings_;
  if (count++ >= limit_ || (!isError && isFull())) {
    dropped_ = std::move(diagnostic);
    return dropped_;
  }
  diagnostics_.push_back(std::move(diagnostic));
  return diagnostics_.back();
}

Diagnostic &DiagnosticList::error(Location location, const llvm::Twine &message) {
  return add(Severity::Error, std::move(location), message);
}

Diagnostic &DiagnosticList::warning(Location location, const llvm::Twine &message) {
  return add(Severity::Warning, std::move(location), message);
}

Diagnostic &DiagnosticList::remark(Location location, const llvm::Twine &message) {
  return add(Severity::Note, std::move(location), message);
}

std::optional<Diagnostic> DiagnosticList::summaryOfDropped() const {
  if (errors_ <= limit_)
    return std::nullopt;
  size_t count = errors_ - limit_;
  return makeDiagnostic(Severity::Error, Location(),
                        "too many errors: " + llvm::Twine(count) +
                            (count == 1 ? " more is not shown" : " more are not shown"));
}

std::vector<Diagnostic> DiagnosticList::take() {
  errors_ = warnings_ = 0;
  return std::exchange(diagnostics_, {});
}

void DiagnosticList::print(llvm::raw_ostream &os) const {
  for (const Diagnostic &diagnostic : diagnostics_)
    diagnostic.print(os);
  if (std::optional<Diagnostic> summary = summaryOfDropped())
    summary->print(os);
}

llvm::Error DiagnosticList::takeError() {
  if (!hasErrors())
    return llvm::Error::success();
  if (std::optional<Diagnostic> summary = summaryOfDropped())
    diagnostics_.push_back(std::move(*summary));
  return llvm::make_error<DiagnosticError>(take());
}

char DiagnosticError::ID = 0;

void DiagnosticError::log(llvm::raw_ostream &os) const {
  std::string text;
  llvm::raw_string_ostream textStream(text);
  for (const Diagnostic &diagnostic : diagnostics_)
    diagnostic.print(textStream);
  os << llvm::StringRef(textStream.str()).rtrim('\n');
}

std::error_code DiagnosticError::convertToErrorCode() const {
  return std::make_error_code(std::errc::invalid_argument);
}

llvm::Error makeError(Location location, const llvm::Twine &message) {
  std::vector<Diagnostic> diagnostics;
  diagnostics.push_back(makeDiagnostic(Severity::Error, std::move(location), message));
  return llvm::make_error<DiagnosticError>(std::move(diagnostics));
}

/// Edit distance, or nothing when it is above `limit`. Equal but for case counts as 1.
static std::optional<unsigned> nearness(llvm::StringRef name, llvm::StringRef candidate,
                                        unsigned limit) {
  if (name.equals_insensitive(candidate))
    return 1;
  size_t difference =
      std::max(name.size(), candidate.size()) - std::min(name.size(), candidate.size());
  if (difference > limit)
    return std::nullopt;
  unsigned distance = name.edit_distance(candidate, /*AllowReplacements=*/true, limit);
  return distance <= limit ? std::optional(distance) : std::nullopt;
}

std::string didYouMean(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> candidates) {
  // One edit for each three letters, as in Clang. No name that long is a typing error.
  constexpr size_t longestName = 256;
  if (name.empty() || name.size() > longestName)
    return {};
  unsigned limit = (name.size() + 2) / 3;
  llvm::StringRef best;
  for (llvm::StringRef candidate : candidates) {
    if (candidate == name)
      continue;
    std::optional<unsigned> distance = nearness(name, candidate, limit);
    if (!distance)
      continue;
    best = candidate;
    if (*distance <= 1)
      break;
    limit = *distance - 1; // only a nearer one is better: of equals the first is suggested
  }
  return best.empty() ? std::string() : (" (did you mean '" + best + "'?)").str();
}

} // namespace rondo
