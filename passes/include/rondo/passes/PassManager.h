//===- PassManager.h - Runs a pipeline of passes ----------------*- C++ -*-===//

#pragma once

#include "rondo/passes/Pass.h"

#include "llvm/ADT/SmallVector.h"

#include <functional>
#include <memory>

namespace rondo {

struct PassTiming {
  std::string pass;
  double seconds = 0;       ///< wall clock, the pass alone
  double verifySeconds = 0; ///< wall clock, verifying after it
  bool changed = false;
};

/// Owns passes and runs them in order. One thread at a time.
class PassManager {
public:
  /// Called before (`isBefore`) and after every pass. After a pass the properties are updated and
  /// the verifier has not looked yet, so that a dump shows what it then complains about; after a
  /// pass that failed there is no call.
  using Observer = std::function<void(const Pass &pass, const TracePair &pair, bool isBefore)>;

  PassManager();

  PassManager &add(std::unique_ptr<Pass> pass);
  llvm::ArrayRef<std::unique_ptr<Pass>> passes() const { return passes_; }

  /// Verify before the first and after every pass (default: yes).
  void setVerify(bool verify) { verify_ = verify; }
  /// Compare the text form around every pass that says `Unchanged` (default: if the library was
  /// built without NDEBUG).
  void setCheckUnchanged(bool check) { checkUnchanged_ = check; }
  /// Observers are called in the order in which they were added.
  void addObserver(Observer observer) { observers_.push_back(std::move(observer)); }

  /// Would the pipeline run on traces that have these properties? Looks at declared properties
  /// only, before anything runs. Errors: one for every rule that is broken: which pass, which rule,
  /// which earlier pass set what it forbids (or that the trace has it from the start), or which
  /// later one sets what it requires.
  llvm::Error checkOrder(TraceProperties initial) const;
  /// The same for a pair: what is required must hold for both traces, what is forbidden for none.
  llvm::Error checkOrder(const TracePair &pair) const;

  /// Runs every pass. The pair is moved in and given back only when all passes succeeded, with its
  /// properties updated. Errors: that of checkOrder (nothing ran), of the verifier (its first
  /// diagnostic names the pass), of a pass that said `Unchanged` and was not, or of the pass itself
  /// as it is.
  llvm::Expected<TracePair> run(TracePair pair);

  /// Warnings and remarks of the last run.
  const DiagnosticList &diagnostics() const { return diagnostics_; }
  /// One entry for each pass of the last run that was started, in order.
  llvm::ArrayRef<PassTiming> timings() const { return timings_; }

  /// The pipeline as text; parsePipeline reads it back.
  std::string pipelineText() const;

private:
  llvm::Error runPass(Pass &pass, TracePair &pair);
  llvm::Error verifyAfter(const Pass &pass, const TracePair &pair);
  void notify(const Pass &pass, const TracePair &pair, bool isBefore) const;

  std::vector<std::unique_ptr<Pass>> passes_;
  std::vector<Observer> observers_;
  std::vector<PassTiming> timings_;
  DiagnosticList diagnostics_;
  bool verify_ = true;
  bool checkUnchanged_;
};

} // namespace rondo
