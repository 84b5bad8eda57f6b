//===- Pass.h - A step of a pipeline ----------------------------*- C++ -*-===//
//
// A pass is run on a pair of traces. A `TracePass` sees one trace at a time, forward first; a
// `PairPass` sees both. Each declares which trace properties it requires, forbids, sets and clears,
// so that the PassManager can check a whole pipeline before anything runs.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/TracePair.h"

#include "llvm/Support/Error.h"

namespace rondo {

/// Did the pass change anything? A pass that says `Unchanged` must have left every byte of the text
/// form as it was; debug builds check that.
enum class PassResult : uint8_t { Unchanged, Changed };

/// What must hold before a pass, and what holds after it. The PassManager updates the properties of
/// the traces by what `sets` and `clears` say; a pass does not touch them.
struct PassProperties {
  TraceProperties requires_ = TraceProperties::None; ///< of both traces
  TraceProperties forbids = TraceProperties::None;   ///< in either trace
  TraceProperties sets = TraceProperties::None;
  TraceProperties clears = TraceProperties::None;
};

/// Base of TracePass and PairPass. A pass may be run on many pairs, one after another; it is not
/// thread-safe unless it says so.
class Pass {
public:
  virtual ~Pass();

  /// As it is written in a pipeline: `cuda-graph`. Constant.
  virtual llvm::StringRef name() const = 0;
  virtual PassProperties properties() const { return {}; }
  /// Options as they would be written in a pipeline (`partition=dataflow min-ops=4`), defaults left
  /// out. Values that are free text go through quotePipelineValue.
  virtual std::string optionsText() const { return {}; }
  /// Runs on `pair`. Warnings and remarks go to `diagnostics`; an error there fails the pass like
  /// one that is returned. On an error the pair may be in any state: the PassManager gives it back
  /// to nobody.
  virtual llvm::Expected<PassResult> run(TracePair &pair, DiagnosticList &diagnostics) = 0;
};

/// A pass on one trace at a time: the forward, then the backward if there is one. An error on the
/// forward ends it.
class TracePass : public Pass {
public:
  llvm::Expected<PassResult> run(TracePair &pair, DiagnosticList &diagnostics) final;

protected:
  virtual llvm::Expected<PassResult> runOnTrace(Trace &trace, Side side,
                                                DiagnosticList &diagnostics) = 0;
};

/// A pass on both traces at once; the backward may be missing.
class PairPass : public Pass {
public:
  llvm::Expected<PassResult> run(TracePair &pair, DiagnosticList &diagnostics) final {
    return runOnPair(pair, diagnostics);
  }

protected:
  virtual llvm::Expected<PassResult> runOnPair(TracePair &pair, DiagnosticList &diagnostics) = 0;
};

/// `text` as a value in a pipeline: as it is where it may stand bare, else in quotes.
std::string quotePipelineValue(llvm::StringRef text);

} // namespace rondo
