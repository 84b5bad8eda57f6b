//===- TableClaimSource.h - Claims from a table -----------------*- C++ -*-===//
//
// Says what an executor will do without having one: for tools that show a partition, for tests, and
// for an embedder whose executor is elsewhere.
//
//   TableClaimSource source("host");
//   source.set("relu", ClaimAnswer::accept())
//       .set("item", ClaimAnswer::acceptUncapturable("waits for the device"))
//       .setDevices({DeviceKind::CUDA});
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/Claim.h"
#include "rondo/ir/OpRegistry.h"

#include "llvm/ADT/StringMap.h"

#include <optional>

namespace rondo {

/// A claim source that looks up the op's name, after its devices and dtypes. No groups.
class TableClaimSource : public ClaimSource {
public:
  /// `otherwise` is the answer for an op that is not in the table.
  explicit TableClaimSource(llvm::StringRef name,
                            ClaimAnswer otherwise = ClaimAnswer::decline("it is not in the table"));

  /// Sets or replaces the answer for ops named `op`.
  TableClaimSource &set(llvm::StringRef op, ClaimAnswer answer);
  /// Declines every op with an operand or a result on another kind of device. Default: all are
  /// fine.
  TableClaimSource &setDevices(llvm::ArrayRef<DeviceKind> devices);
  /// Declines every op with a tensor operand or result of another dtype. Default: all are fine.
  TableClaimSource &setDTypes(llvm::ArrayRef<DType> dtypes);

  llvm::StringRef name() const override { return name_; }
  ClaimAnswer claim(const Trace &trace, OpId op) const override;

private:
  std::string name_;
  ClaimAnswer otherwise_;
  llvm::StringMap<ClaimAnswer> answers_;
  std::optional<llvm::SmallVector<DeviceKind, 2>> devices_;
  std::optional<llvm::SmallVector<DType, 4>> dtypes_;
};

/// Stands for an executor that has every kernel, as source `host`: accepts every op of `registry`,
/// capturable unless it synchronises with the host, whatever its devices and dtypes; declines
/// opaque ops. An op with bodies is accepted as such: what can be captured is for the ops in them
/// to say.
TableClaimSource makeHostClaimTable(const OpRegistry &registry);

} // namespace rondo
