//===- ValueSource.cpp - Tensors of planned memory ------------------------===//

#include "ProgramImpl.h"

using namespace rondo;

static Value scalarValue(ScalarKind kind, Slot slot) {
  switch (kind) {
  case ScalarKind::I64:
    return Value(slot.i64);
  case ScalarKind::F64:
    return Value(slot.f64);
  case ScalarKind::Bool:
    return Value(slot.boolean);
  }
  return Value();
}

Value ValueSource::value(const ResultPlan &plan, llvm::ArrayRef<Slot> scalars) const {
  if (plan.place.isTensor())
    return tensor(plan);
  if (plan.place.isScalar())
    return scalarValue(plan.scalarKind, scalars[plan.place.scalar]);
  return Value();
}

Tensor ValueSource::tensor(const ResultPlan &plan) const {
  const PlannedStorage &planned = schedule.storages[plan.place.storage];
  StorageRef storage;
  int64_t offset = plan.place.byteOffset;
  auto inBlock = [&](const Block &block) {
    storage = block.storage(planned.device);
    offset += planned.offset;
  };
  auto inTensor = [&](const SavedTensor &tensor) {
    storage = tensor.storage;
    offset += tensor.data - storage->data();
  };
  auto inSaved = [&](unsigned index) { inTensor(slab->savedTensors[index]); };
  switch (planned.space) {
  case Space::Argument:
    if (inputs.empty()) { // of a saved state: the argument is among what it saved
      inSaved(llvm::find(schedule.savedArguments, uint32_t(plan.place.storage)) -
              schedule.savedArguments.begin());
    } else {
      const Tensor &tensor = *inputs[planned.index].asTensor();
      storage = tensor.storage();
      offset += tensor.byteOffset();
    }
    break;
  case Space::Saved:
    inSaved(planned.index);
    break;
  case Space::Slab:
    inBlock(*slab);
    break;
  case Space::ForwardResults:
    if (const PlacedResult *elsewhere = findPlaced(slab->savedPlaced, planned.index))
      inTensor(elsewhere->tensor);
    else
      inBlock(*slab->forwardResults);
    break;
  case Space::Arena: // nothing that outlives a call is there
  case Space::Results:
    if (const PlacedResult *elsewhere = findPlaced(placed, plan.place.storage))
      inTensor(elsewhere->tensor);
    else
      inBlock(*results);
    break;
  }
  if (!storage) // no elements, so no bytes
    storage = Storage::borrow(nullptr, 0, devices[planned.device]->device());
  return Tensor(std::move(storage), offset, plan.layout);
}

llvm::Expected<std::vector<SavedValue>> ProgramImpl::savedValues(const SavedState &saved) const {
  llvm::Expected<VariantRef> variant = variantOf(saved);
  if (!variant)
    return variant.takeError();
  const Schedule &schedule = (*variant)->forward.schedule;
  const Block &slab = *saved.block_;
  llvm::SmallVector<Slot, 16> scalars(schedule.scalarKinds.size());
  for (unsigned i = 0; i < schedule.savedScalars.size(); ++i)
    scalars[schedule.savedScalars[i]] = slab.savedScalars[i];
  ValueSource source{schedule, devices_, {}, &slab, slab.forwardResults.get(), slab.savedPlaced};
  std::vector<SavedValue> values;
  for (const SavedPlan &plan : schedule.saved)
    values.push_back({plan.name, source.value(plan.value, scalars)});
  return values;
}
