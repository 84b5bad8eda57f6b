//===- Claim.h - Who executes an op -----------------------------*- C++ -*-===//
//
// The joint between the IR and whatever executes it. A `ClaimSource` (an executor, or a table in a
// test) is asked whether it takes an op; the answer, a `Claim`, is stored per op in the trace,
// printed and parsed. ExecutionTransform writes claims, CUDAGraphTransform reads nothing else. An
// embedder may set them itself.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/Ids.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rondo {

class Trace;

/// Who executes an op, and whether that may happen while a stream is being captured.
struct Claim {
  std::string executor;
  bool capturable = true;
  std::string why; ///< why it is not capturable, or a remark; may be empty
  uint64_t workspaceBytes = 0;

  friend bool operator==(const Claim &, const Claim &) = default;
};

/// What a source says of one op: a claim, or why not.
struct ClaimAnswer {
  bool accepted = false;
  bool capturable = true;
  std::string why;
  uint64_t workspaceBytes = 0;

  static ClaimAnswer accept(uint64_t workspaceBytes = 0) {
    return {true, true, {}, workspaceBytes};
  }
  static ClaimAnswer acceptUncapturable(std::string why) {
    return {true, false, std::move(why), 0};
  }
  static ClaimAnswer decline(std::string why) { return {false, false, std::move(why), 0}; }
};

/// Ops that one executor wants to run as one kernel, in program order.
struct GroupClaim {
  std::vector<OpId> ops;
  ClaimAnswer answer;
};

/// Something that can execute ops. Pure: the same op gives the same answer. Called from the thread
/// that runs the pass.
class ClaimSource {
public:
  virtual ~ClaimSource();

  /// The name that claims carry, e.g. `host`, `cublas`. Constant.
  virtual llvm::StringRef name() const = 0;
  /// Can this source execute `op` (its dtypes, shapes, strides, devices, attributes)?
  virtual ClaimAnswer claim(const Trace &trace, OpId op) const = 0;
  /// Groups of ops in `body` that this source would rather run as one. Groups must not overlap;
  /// those that are not convex or not legal are ignored. By default there are none.
  virtual void claimGroups(const Trace &trace, BodyId body, std::vector<GroupClaim> &groups) const;
};

} // namespace rondo
