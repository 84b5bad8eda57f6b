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
  /// Called before (`isBefore`) and after every pass.
  using Observer = std::function<void(const Pass &pass, const TracePair &pair, bool isBefore)>;

  PassManager &add(std::unique_ptr<Pass> pass);
  llvm::ArrayRef<std::unique_ptr<Pass>> passes() const { return passes_; }

  /// Verify before the first and after every pass (default: yes).
  void setVerify(bool verify) { verify_ = verify; }
  /// Compare the text form around every pass that says `Unchanged` (default: in builds without
  /// NDEBUG).
  void setCheckUnchanged(bool check) { checkUnchanged_ = check; }
  void addObserver(Observer observer) { observers_.push_back(std::move(observer)); }

  /// Would the pipeline run on a pair whose traces have these properties? Looks at declared
  /// properties only, before anything runs. Errors: says which pass breaks which rule, and which
  /// earlier pass set what it forbids.
  llvm::Error checkOrder(TraceProperties initial) const;

  /// Runs every pass. The pair is moved in and given back only when all passes succeeded, with its
  /// properties updated. Errors: that of checkOrder (nothing ran), of the verifier (names the
  /// pass), or of the pass itself.
  llvm::Expected<TracePair> run(TracePair pair);

  /// Warnings and remarks of the last run.
  const DiagnosticList &diagnostics() const { return diagnostics_; }
  /// One entry a pass, of the last run.
  llvm::ArrayRef<PassTiming> timings() const { return timings_; }

  /// The pipeline as text; parsePipeline reads it back.
  std::string pipelineText() const;

private:
  llvm::Error runPass(Pass &pass, TracePair &pair);

  std::vector<std::unique_ptr<Pass>> passes_;
  std::vector<Observer> observers_;
  std::vector<PassTiming> timings_;
  DiagnosticList diagnostics_;
  bool verify_ = true;
#ifdef NDEBUG
  bool checkUnchanged_ = false;
#else
  bool checkUnchanged_ = true;
#endif
};

} // namespace rondo
