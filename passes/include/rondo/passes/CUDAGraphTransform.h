//===- CUDAGraphTransform.h - Cuts traces into capturable regions -*- C++ -*-===//
//
// Runs after the execution transform and before the del pass. Reads claims and effects, asks the
// policy (three virtuals), and wraps runs of ops in `cuda_graph` ops that the runtime captures once
// and replays:
//
//   %a: f32[8, 8]@cuda:0 = mm(%x, %w) claim("cublas")
//   %b: f32[8, 8]@cuda:0 = relu(%a) claim("cuda")
//   %i: i64 = item(%n) claim("cuda", uncapturable)
//   return(%b, %i)
//
// becomes
//
//   %b: f32[8, 8]@cuda:0 = cuda_graph(%x, %w) {inputs = ["auto", "static"], region = 0} domain #0 {
//   ^(%x: f32[8, 8]@cuda:0, %w: f32[8, 8]@cuda:0):
//     %a: f32[8, 8]@cuda:0 = mm(%x, %w) claim("cublas") fusion(yes, policy)
//     %b: f32[8, 8]@cuda:0 = relu(%a) claim("cuda") fusion(yes, policy)
//     return(%b)
//   }
//   %i: i64 = item(%n) claim("cuda", uncapturable) fusion(no, legality, "synchronises with the
//   host") return(%b, %i)
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/passes/Pass.h"

#include "rondo/ir/StorageRoots.h"

namespace rondo {

/// May it go into a region? `return true`, `return false`, `return deny("why")`, or `return
/// must()`.
class FusionVerdict {
public:
  enum class Answer : uint8_t { Deny, Allow, Must };

  FusionVerdict(bool allowed) : answer_(allowed ? Answer::Allow : Answer::Deny) {} // implicit
  FusionVerdict(const char *) = delete; // would silently be `true`; say deny("why")
  FusionVerdict(Answer answer, std::string reason) : answer_(answer), reason_(std::move(reason)) {}

  Answer answer() const { return answer_; }
  bool isDenied() const { return answer_ == Answer::Deny; }
  const std::string &reason() const { return reason_; }

private:
  Answer answer_;
  std::string reason_;
};
inline FusionVerdict allow(std::string why = {}) {
  return {FusionVerdict::Answer::Allow, std::move(why)};
}
inline FusionVerdict deny(std::string why) {
  return {FusionVerdict::Answer::Deny, std::move(why)};
}
/// If the op is not legal in a region, the transform fails and names it.
inline FusionVerdict must(std::string why = {}) {
  return {FusionVerdict::Answer::Must, std::move(why)};
}

/// What `canFuse` is asked about. Borrowed for the call.
struct FusionQuery {
  const Trace &trace;
  const Op &op;
  const Claim &claim;
  const Effects &effects;
  const StorageRoots &roots;
  Side side;

  llvm::StringRef modulePath() const { return op.modulePath(); }
  OpId id() const { return op.id(); }
};

/// How an input of a region reaches its graph.
enum class InputPolicy : uint8_t {
  Auto,    ///< chosen by measured cost
  Static,  ///< the address is the same on every call; checked on every call
  Copied,  ///< copied into the graph's own memory
  Patched, ///< the pointer is changed in the instantiated graph
};
/// `auto`, `static`, `copied`, `patched`: the words of the attribute `inputs`.
llvm::StringRef inputPolicyName(InputPolicy policy);

/// What `inputPolicy` is asked about: one operand of a region about to be made. Borrowed for the
/// call.
struct InputQuery {
  const Trace &trace;
  ValueId value; ///< the operand, outside of the region
  const Type &type;
  ValueTags tags; ///< of the value and its storage roots
  bool isStatic;  ///< what the transform found: parameter, buffer, static, or saved by a region of
                  ///< the forward
  bool isWritten; ///< the region writes it in place
  unsigned consumers; ///< ops in the region that use it
  Side side;
};

/// What `keepRegion` is asked about. Borrowed for the call.
struct RegionQuery {
  const Trace &trace;
  llvm::ArrayRef<OpId> ops; ///< in the order they will run
  unsigned launches;        ///< how many of them launch something
  Side side;
};

/// Which ops may share a region.
enum class Partition : uint8_t {
  Consecutive, ///< program order is kept; regions are the maximal runs of fusible ops
  Dataflow,    ///< ops move across others where data and effects allow; as few regions as possible
};

struct CUDAGraphOptions {
  Partition partition = Partition::Consecutive;
  /// Least number of ops that launch something in a region worth a graph.
  unsigned minOps = 2;
  /// Bound on the growth of the liveness peak by `Dataflow`, as a fraction of the peak in program
  /// order. When moving ops would exceed it, the trace is partitioned as by `Consecutive`, with a
  /// warning.
  double maxPeakGrowth = 0.1;
  /// The device whose ops are captured. Default: the first device other than a host in the trace,
  /// else the host.
  std::optional<Device> device;
  /// What the default `inputPolicy` answers for an input that may be anywhere.
  InputPolicy inputs = InputPolicy::Auto;
  /// Names of ops that the default `canFuse` denies: to find out which op a graph suffers from.
  std::vector<std::string> deny;
  /// Any op that is left out of a region for another reason than policy is an error.
  bool strict = false;
  /// Names the capture domain in dumps.
  std::string name = "cuda-graph";
};

/// The transform. Subclass it to say what may be fused. One transform owns one capture domain:
/// graphs are cached per transform, never globally. May run on any number of pairs, one thread at a
/// time.
class CUDAGraphTransform : public PairPass {
public:
  explicit CUDAGraphTransform(CUDAGraphOptions options = {});

  /// The identity under which the runtime caches this transform's graphs.
  const CaptureDomain &domain() const { return *domain_; }
  const CUDAGraphOptions &options() const { return options_; }

  llvm::StringRef name() const override { return "cuda-graph"; }
  PassProperties properties() const final;
  std::string optionsText() const override;

protected:
  /// Policy. May this op go into a region? Pure: same query, same answer; asked once per claimed
  /// op, in program order, forward before backward. An op that is not legal in a region stays out
  /// whatever the answer; `must` makes that an error.
  virtual FusionVerdict canFuse(const FusionQuery &query) const;
  /// Policy. How does this input reach the region's graph? Default: `Static` where the transform
  /// knows that its address stays, else `options.inputs`.
  virtual InputPolicy inputPolicy(const InputQuery &query) const;
  /// Policy. Is the region worth a graph? Default: at least `options.minOps` ops that launch
  /// something.
  virtual FusionVerdict keepRegion(const RegionQuery &query) const;

  llvm::Expected<PassResult> runOnPair(TracePair &pair, DiagnosticList &diagnostics) final;

private:
  friend class CUDAGraphRewriter;

  CUDAGraphOptions options_;
  CaptureDomainRef domain_;
};

} // namespace rondo
