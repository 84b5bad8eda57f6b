//===- PassManager.cpp - Runs a pipeline of passes --------------------------===//
//
// First the order of the whole pipeline is checked against what its passes declare, then the pair
// is verified, then the passes run, each followed by a look at what it did: the observers, the
// comparison of texts if it says that nothing changed, the verifier.
//
//===----------------------------------------------------------------------===//

#include "rondo/passes/PassManager.h"

#include "PipelineText.h"

#include "rondo/ir/Text.h"
#include "rondo/ir/Verifier.h"

#include <chrono>

using namespace rondo;

PassManager::PassManager() {
#ifdef NDEBUG
  checkUnchanged_ = false;
#else
  checkUnchanged_ = true;
#endif
}

PassManager &PassManager::add(std::unique_ptr<Pass> pass) {
  assert(pass && "no pass");
  passes_.push_back(std::move(pass));
  return *this;
}

static std::string passText(const Pass &pass) {
  std::string text = pass.name().str();
  if (std::string options = pass.optionsText(); !options.empty())
    text += "{" + options + "}";
  return text;
}

std::string PassManager::pipelineText() const {
  std::string text;
  for (const std::unique_ptr<Pass> &pass : passes_)
    text += (text.empty() ? "" : ",") + passText(*pass);
  return text;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

namespace {

/// Walks a pipeline with the properties that hold before each pass.
class OrderCheck {
public:
  using Passes = llvm::ArrayRef<std::unique_ptr<Pass>>;

  /// `everywhere`: what all traces have at the start. `somewhere`: what at least one has.
  OrderCheck(Passes passes, TraceProperties everywhere, TraceProperties somewhere)
      : passes_(passes), everywhere_(everywhere), somewhere_(somewhere) {}

  llvm::Error run() {
    for (size_t i = 0; i < passes_.size(); ++i) {
      PassProperties declared = passes_[i]->properties();
      for (TraceProperties property : allTraceProperties) {
        if (any(property & declared.requires_ & ~everywhere_))
          reportMissing(i, property);
        if (any(property & declared.forbids & somewhere_))
          reportForbidden(i, property);
      }
      everywhere_ = (everywhere_ & ~declared.clears) | declared.sets;
      somewhere_ = (somewhere_ & ~declared.clears) | declared.sets;
    }
    return diagnostics_.takeError();
  }

private:
  /// The last pass before `end` that sets or clears `property`, or null.
  const Pass *lastToChange(size_t end, TraceProperties property) const {
    while (end-- > 0) {
      PassProperties declared = passes_[end]->properties();
      if (any(property & (declared.sets | declared.clears)))
        return passes_[end].get();
    }
    return nullptr;
  }

  const Pass *firstToSet(size_t begin, TraceProperties property) const {
    for (; begin < passes_.size(); ++begin)
      if (any(property & passes_[begin]->properties().sets))
        return passes_[begin].get();
    return nullptr;
  }

  void reportMissing(size_t i, TraceProperties property) {
    const Pass *clearedBy = lastToChange(i, property);
    Diagnostic &error = report(i, "requires", property,
                               clearedBy ? "which pass '" + clearedBy->name() + "' clears"
                                         : llvm::Twine("which no pass before it sets"));
    if (const Pass *later = firstToSet(i + 1, property))
      error.note({}, "pass '" + later->name() + "' sets it, but comes later");
  }

  void reportForbidden(size_t i, TraceProperties property) {
    const Pass *setBy = lastToChange(i, property);
    report(i, "forbids", property,
           setBy ? "which pass '" + setBy->name() + "' sets"
                 : llvm::Twine("which the trace has from the start"));
  }

  Diagnostic &report(size_t i, llvm::StringRef rule, TraceProperties property,
                     const llvm::Twine &reason) {
    Diagnostic &error = diagnostics_.error({pipelineFile.str(), 0, 0, {}},
                                           "pass '" + passes_[i]->name() + "' " + rule + " '" +
                                               tracePropertyName(property) + "', " + reason);
    error.snippet = snippet(i);
    return error;
  }

  /// The pipeline's text with a caret under pass `i`.
  std::string snippet(size_t i) const {
    std::string text;
    size_t offset = 0;
    for (size_t k = 0; k < passes_.size(); ++k) {
      if (k > 0)
        text += ",";
      if (k == i)
        offset = text.size();
      text += passText(*passes_[k]);
    }
    return pipelineSnippet(text, offset);
  }

  Passes passes_;
  TraceProperties everywhere_, somewhere_;
  DiagnosticList diagnostics_;
};

} // namespace

llvm::Error PassManager::checkOrder(TraceProperties initial) const {
  return OrderCheck(passes_, initial, initial).run();
}

llvm::Error PassManager::checkOrder(const TracePair &pair) const {
  TraceProperties forward = pair.forward().properties();
  TraceProperties backward = pair.hasBackward() ? pair.backward().properties() : forward;
  return OrderCheck(passes_, forward & backward, forward | backward).run();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

namespace {

class Stopwatch {
public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

} // namespace

/// Puts an error that says `headline` before the verifier's own. Success stays success.
static llvm::Error explainFault(llvm::Error fault, const llvm::Twine &headline) {
  return llvm::handleErrors(std::move(fault), [&](const DiagnosticError &error) -> llvm::Error {
    std::vector<Diagnostic> diagnostics(1);
    diagnostics.front().message = headline.str();
    llvm::append_range(diagnostics, error.diagnostics());
    return llvm::make_error<DiagnosticError>(std::move(diagnostics));
  });
}

static std::string textOf(const TracePair &pair) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(pair, os);
  return os.str();
}

/// The first line in which the texts differ, with its number.
static llvm::Error explainChange(const Pass &pass, llvm::StringRef before, llvm::StringRef after) {
  size_t line = 1;
  std::pair<llvm::StringRef, llvm::StringRef> was, is;
  for (;; ++line, before = was.second, after = is.second) {
    was = before.split('\n');
    is = after.split('\n');
    if (was.first != is.first || before.empty() || after.empty())
      break;
  }
  Diagnostic error;
  error.message = ("pass '" + pass.name() + "' said that it left the traces unchanged, but line " +
                   llvm::Twine(line) + " of their text differs")
                      .str();
  error.note({}, "before: " + was.first);
  error.note({}, "after: " + is.first);
  return llvm::make_error<DiagnosticError>(std::vector<Diagnostic>{std::move(error)});
}

static void updateProperties(Trace &trace, PassProperties declared) {
  trace.setProperties((trace.properties() & ~declared.clears) | declared.sets);
}

void PassManager::notify(const Pass &pass, const TracePair &pair, bool isBefore) const {
  for (const Observer &observer : observers_)
    observer(pass, pair, isBefore);
}

llvm::Error PassManager::verifyAfter(const Pass &pass, const TracePair &pair) {
  if (!verify_)
    return llvm::Error::success();
  Stopwatch watch;
  llvm::Error fault = verify(pair);
  timings_.back().verifySeconds = watch.seconds();
  return explainFault(std::move(fault), "pass '" + pass.name() + "' broke the rules of the IR");
}

llvm::Error PassManager::runPass(Pass &pass, TracePair &pair) {
  notify(pass, pair, /*isBefore=*/true);
  std::string before = checkUnchanged_ ? textOf(pair) : std::string();

  timings_.emplace_back();
  timings_.back().pass = pass.name().str();
  Stopwatch watch;
  llvm::Expected<PassResult> result = pass.run(pair, diagnostics_);
  timings_.back().seconds = watch.seconds();
  if (!result)
    return result.takeError();
  if (diagnostics_.hasErrors())
    return diagnostics_.takeError();
  timings_.back().changed = *result == PassResult::Changed;

  if (checkUnchanged_ && *result == PassResult::Unchanged)
    if (std::string after = textOf(pair); after != before)
      return explainChange(pass, before, after);
  updateProperties(pair.forward(), pass.properties());
  if (pair.hasBackward())
    updateProperties(pair.backward(), pass.properties());
  notify(pass, pair, /*isBefore=*/false);
  return verifyAfter(pass, pair);
}

llvm::Expected<TracePair> PassManager::run(TracePair pair) {
  timings_.clear();
  diagnostics_.take();
  if (llvm::Error error = checkOrder(pair))
    return error;
  if (verify_)
    if (llvm::Error error = explainFault(
            verify(pair), "the traces break the rules of the IR before the first pass"))
      return error;
  for (const std::unique_ptr<Pass> &pass : passes_)
    if (llvm::Error error = runPass(*pass, pair))
      return error;
  return pair;
}
