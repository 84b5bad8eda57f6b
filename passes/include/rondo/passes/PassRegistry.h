//===- PassRegistry.h - Passes by name, pipelines as text -------*- C++ -*-===//
//
// A pipeline is written
//
//   dce, cse, execution{executors=host}, cuda-graph{partition=dataflow min-ops=2}, del
//
//   pipeline := [ pass { "," pass } ]
//   pass     := name [ "{" { name "=" value } "}" ]
//   name     := letters, digits, '_', '-', '.'
//   value    := letters, digits, '_', '-', '.', '+', ':', '/'  |  a text in double quotes
//
// White space may stand between any two of these and must stand between options. In quotes, a
// backslash escapes '"', '\', 'n', 't' and 'xHH'.
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
  /// `inf` is a number here, `nan` is not.
  llvm::Expected<double> getNumber(llvm::StringRef name, double fallback, double least) const;
  /// `true` or `false`.
  llvm::Expected<bool> getBool(llvm::StringRef name, bool fallback) const;
  /// One of `choices`; the error suggests the nearest.
  llvm::Expected<std::string> getChoice(llvm::StringRef name, llvm::StringRef fallback,
                                        llvm::ArrayRef<llvm::StringRef> choices) const;
  /// `a+b+c`; empty when the option is absent or its text is empty.
  llvm::Expected<std::vector<std::string>> getList(llvm::StringRef name) const;
  const std::map<std::string, std::string> &values() const { return values_; }

  /// An error about option `name`: "option 'name' " and then `message`, at the option's value if
  /// the options came from a pipeline text.
  llvm::Error error(llvm::StringRef name, const llvm::Twine &message) const;
  /// Where the value of option `name` was written; for the parser.
  void setOrigin(llvm::StringRef name, Location location, std::string snippet);

private:
  const std::string *find(llvm::StringRef name) const;

  struct Origin {
    Location location;
    std::string snippet;
  };
  std::map<std::string, std::string> values_;
  std::map<std::string, Origin> origins_;
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
  /// Errors without a location get that of the pass in the pipeline text.
  std::function<llvm::Expected<std::unique_ptr<Pass>>(const PassOptions &)> create;
  /// `create` looks at the names of the options itself.
  bool acceptsAnyOption = false;
};

/// The passes a pipeline text may name. The caller owns it and fills it; nothing registers itself.
class PassRegistry {
public:
  /// Errors: the name, or that of an option, is taken or cannot be written in a pipeline; there is
  /// no `create`.
  llvm::Error registerPass(PassInfo info);
  /// Valid until the next registration.
  const PassInfo *lookup(llvm::StringRef name) const;
  /// In the order of registration.
  llvm::ArrayRef<PassInfo> passes() const { return passes_; }

  /// Appends the passes of `pipeline` to `manager`; after an error it is as before. An empty
  /// pipeline is fine. Errors: located by column in the pipeline text (`<pipeline>:1:5`), with a
  /// caret; unknown passes and options suggest the nearest name. Several at once, the first error
  /// of form ends it.
  llvm::Error parsePipeline(llvm::StringRef pipeline, PassManager &manager) const;

private:
  std::vector<PassInfo> passes_;
};

class ClaimSource;

/// Registers every pass that comes with Rondo. `execution` chooses among `sources` by name, in the
/// order that its option `executors` gives (default: all, in the order given here); they must
/// outlive the passes. Errors: a name is taken.
llvm::Error registerPasses(PassRegistry &registry, llvm::ArrayRef<const ClaimSource *> sources);

} // namespace rondo
