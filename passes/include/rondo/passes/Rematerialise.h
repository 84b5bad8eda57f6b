//===- Rematerialise.h - Computing again rather than saving -----*- C++ -*-===//
//
//   class MyRecomputation : public RematerializationPass {
//   protected:
//     double cost(const Trace &trace, const Op &op) const override {
//       return op.name() == "mylib.scan" ? 1e9 : RematerializationPass::cost(trace, op);
//     }
//   };
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/passes/Pass.h"

#include <optional>

namespace rondo {

/// What the pass says of what it did.
enum class RecomputeRemarks : uint8_t {
  None,
  Summary, ///< one remark: bytes before and after, work added
  Values,  ///< with a note for every value that is no longer saved
};
/// `none`, `summary`, `values`.
llvm::StringRef recomputeRemarksName(RecomputeRemarks remarks);

struct RematerialiseOptions {
  /// Bytes that the forward may save, as `RematerialiseReport` counts them. Absent: only what is
  /// tagged, or in a `checkpoint`, is recomputed.
  std::optional<int64_t> budget;
  RecomputeRemarks remarks = RecomputeRemarks::Summary;
};

/// Bytes saved, and what that costs. Work has the unit of `RematerializationPass::cost`.
struct RecomputePoint {
  int64_t savedBytes = 0;
  double work = 0; ///< of the ops that the backward does again
};

/// A value that was saved and is recomputed.
struct RecomputedValue {
  std::string name;      ///< in the forward
  bool isTagged = false; ///< by the user; else chosen for the budget
};

/// What one run did. Bytes are those of the storages that are saved, each counted once, without
/// what is there anyway: arguments of the forward and what the caller gets. A symbolic size counts
/// as 0.
struct RematerialiseReport {
  RecomputePoint before, after;
  double forwardWork = 0;              ///< of all ops of the forward
  unsigned numOps = 0;                 ///< that the backward does again
  std::vector<RecomputedValue> values; ///< in the order of the forward's `return`
  /// What was chosen for the budget, step by step; the first point is what tags ask for. Bytes
  /// fall and work does not. A greater budget never takes more work.
  std::vector<RecomputePoint> curve;

  /// Work added, as a fraction of the forward's.
  double share() const { return forwardWork > 0 ? after.work / forwardWork : 0; }
};

/// The cost of an op in bytes of memory traffic: operands and results once each. An op that
/// multiplies matrices counts its floating-point operations, at `flopsPerByte` for a byte, if that
/// is more. 0 for what launches nothing (views, host constants). Symbolic sizes count as 1. An op
/// with bodies costs what is in them.
double estimateOpCost(const Trace &trace, const Op &op);
/// Of an H200: 989 TFLOP/s of dense bf16 at 4.8 TB/s (NVIDIA's data sheet).
inline constexpr double flopsPerByte = 206;

/// `rematerialise`, `rematerialise{budget=1048576 remarks=values}`: values that the forward saved
/// are computed again in the backward. `checkpoint` ops of the forward are dissolved; what they
/// made is recomputed, but for what the rest of the forward uses or the caller gets. Forbids
/// `Claimed`, `HasRegions` and `HasDels`. Twice changes nothing.
///
/// Producers are cloned into the backward, each once, in the forward's order, right before the
/// first use, transitively up to values that are saved anyway, arguments, and values that are not
/// tagged, which are saved from now on. Views and constants are made again. A state of a generator
/// is saved, and a random op keeps its offset: it draws the same numbers.
///
/// With a budget, values are then chosen one by one, by the least work for a byte freed, until
/// what is saved fits, or nothing more can be recomputed (a warning).
///
/// Errors, located at the op, of a value that is tagged: its producer writes in place, is a
/// collective, waits for the host, has unknown effects, uses another resource, or draws random
/// numbers without a state or an offset; or reads a storage that is written afterwards, in the
/// forward or in the backward. A value that is not tagged is saved instead. Also: a budget, and a
/// saved value of symbolic size.
class RematerializationPass : public PairPass {
public:
  explicit RematerializationPass(RematerialiseOptions options = {}) : options_(options) {}

  llvm::StringRef name() const override { return "rematerialise"; }
  PassProperties properties() const override;
  std::string optionsText() const override;

  const RematerialiseOptions &options() const { return options_; }
  /// Of the last run that succeeded.
  const RematerialiseReport &report() const { return report_; }

protected:
  /// Policy. The cost of computing `op`, at least 0, in any unit. Pure. Default: estimateOpCost.
  virtual double cost(const Trace &trace, const Op &op) const { return estimateOpCost(trace, op); }

  llvm::Expected<PassResult> runOnPair(TracePair &pair, DiagnosticList &diagnostics) override;

private:
  RematerialiseOptions options_;
  RematerialiseReport report_;
};

std::unique_ptr<Pass> createRematerializationPass(RematerialiseOptions options = {});

} // namespace rondo
