//===- TableClaimSource.cpp - Claims from a table ---------------------------===//

#include "rondo/passes/TableClaimSource.h"

#include "rondo/ir/Trace.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

TableClaimSource::TableClaimSource(llvm::StringRef name, ClaimAnswer otherwise)
    : name_(name.str()), otherwise_(std::move(otherwise)) {}

TableClaimSource &TableClaimSource::set(llvm::StringRef op, ClaimAnswer answer) {
  answers_[op] = std::move(answer);
  return *this;
}

TableClaimSource &TableClaimSource::setDevices(llvm::ArrayRef<DeviceKind> devices) {
  devices_.emplace(devices.begin(), devices.end());
  return *this;
}

TableClaimSource &TableClaimSource::setDTypes(llvm::ArrayRef<DType> dtypes) {
  dtypes_.emplace(dtypes.begin(), dtypes.end());
  return *this;
}

ClaimAnswer TableClaimSource::claim(const Trace &trace, OpId id) const {
  const Op &op = trace.op(id);
  auto values = llvm::concat<const ValueId>(op.operands(), op.results());
  for (ValueId value : values) {
    if (!value)
      continue;
    const Type &type = trace.type(value);
    std::optional<Device> device = type.device();
    if (devices_ && device && !llvm::is_contained(*devices_, device->kind))
      return ClaimAnswer::decline("it does not run on " + deviceName(*device));
    if (dtypes_ && type.isTensor() && !llvm::is_contained(*dtypes_, type.asTensor()->dtype))
      return ClaimAnswer::decline("it has no kernel for " +
                                  dtypeName(type.asTensor()->dtype).str());
  }
  auto answer = answers_.find(op.name());
  return answer == answers_.end() ? otherwise_ : answer->getValue();
}

TableClaimSource rondo::makeHostClaimTable(const OpRegistry &registry) {
  TableClaimSource source("host", ClaimAnswer::decline("the registry does not know the op"));
  for (const std::unique_ptr<OpSpec> &spec : registry.ops()) {
    bool synchronises = llvm::any_of(spec->resources, [](const ResourceEffect &effect) {
      return effect.kind == ResourceKind::Host;
    });
    source.set(spec->name, synchronises
                               ? ClaimAnswer::acceptUncapturable("it synchronises with the host")
                               : ClaimAnswer::accept());
  }
  return source;
}
