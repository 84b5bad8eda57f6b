//===- PassRegistry.h - Passes by name, pipelines as text -------*- C++ -*-===//
//
// A pipeline is written `dce,cse,execution{executors=host},cuda-graph{partition=dataflow
// min-ops=2},del`.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/passes/PassManager.h"

#include <map>

namespace rondo {

/// Options of one pass in a pipeline: text by name. Getters give the default when an option is
/// absent and an error that names the option when its text does not fit.
class PassOptions {
public:
  PassOptions() = default;
  explicit PassOptions(std::map<std::string, std::string> values) : values_(std::move(values)) {}

  bool has(llvm::StringRef name) const { return values_.count(name.str()); }
  llvm::Expected<std::string> getString(llvm::StringRef name, llvm::StringRef fallback) const;
  llvm::Expected<int64_t> getInt(llvm::StringRef name, int64_t fallback, int64_t least,
                                 int64_t most) const;
  llvm::Expected<double> getNumber(llvm::StringRef name, double fallback, double least) const;
  llvm::Expected<bool> getBool(llvm::StringRef name, bool fallback) const;
  /// One of `choices`; the error suggests the nearest.
  llvm::Expected<std::string> getChoice(llvm::StringRef name, llvm::StringRef fallback,
                                        llvm::ArrayRef<llvm::StringRef> choices) const;
  /// `a+b+c`.
  llvm::Expected<std::vector<std::string>> getList(llvm::StringRef name) const;
  const std::map<std::string, std::string> &values() const { return values_; }

private:
  std::map<std::string, std::string> values_;
};

struct PassOptionInfo {
  std::string name;
  std::string defaultText;
  std::string summary;
};

/// How to make a pass from its options.
struct PassInfo {
  std::string name;
  std::string summary;
  std::vector<PassOptionInfo> options;
  std::function<llvm::Expected<std::unique_ptr<Pass>>(const PassOptions &)> create;
};

/// The passes a pipeline text may name. The caller owns it and fills it; nothing registers itself.
class PassRegistry {
public:
  /// Errors: the name is taken.
  llvm::Error registerPass(PassInfo info);
  const PassInfo *lookup(llvm::StringRef name) const;
  /// In the order of registration.
  llvm::ArrayRef<PassInfo> passes() const { return passes_; }

  /// Appends the passes of `pipeline` to `manager`. Errors: located by column in the pipeline text,
  /// with a caret; unknown passes and options suggest the nearest name.
  llvm::Error parsePipeline(llvm::StringRef pipeline, PassManager &manager) const;

private:
  std::vector<PassInfo> passes_;
};

class ClaimSource;

/// Registers every pass that comes with Rondo. `execution` chooses among `sources` by name, in the
/// order that its option `executors` gives (default: all, in the order given here); they must
/// outlive the passes.
llvm::Error registerPasses(PassRegistry &registry, llvm::ArrayRef<const ClaimSource *> sources);

} // namespace rondo
