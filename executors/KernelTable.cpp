//===- KernelTable.cpp - Executors that look kernels up -------------------===//

#include "rondo/executors/KernelTable.h"

using namespace rondo;

std::optional<ClaimAnswer> rondo::claimWithoutKernel(const OpView &op,
                                                     llvm::function_ref<bool(Device)> isOurs,
                                                     llvm::StringRef devices) {
  if (std::string why = findForeignType(op, isOurs, devices); !why.empty())
    return ClaimAnswer::decline(std::move(why));
  const OpSpec &spec = op.op().spec();
  if (spec.isView() || spec.bodies == BodyKind::Region)
    return ClaimAnswer::accept();
  if (spec.bodies != BodyKind::None)
    return ClaimAnswer::decline("it has bodies that are chosen at run time, which programs do not "
                                "run");
  return std::nullopt;
}
