//===- Schedule.cpp - A trace as a flat list of steps ---------------------===//
//
//   %v = permute(%x)             a place: another name of %x's bytes
//   %a = mm(%v, %w)              step 0: kernel, two reads, one write
//   %b = cuda_graph(%a) {        region [1, 3)
//     %c = relu(%a)              step 1
//     %d = exp(%c)               step 2
//     return(%d)
//   }
//   del %a                       nothing: liveness is found from the steps
//   return(%b)                   %d's storage is a result
//
// Bodies of regions are put in line: a value is a place wherever it is named.
//
//===----------------------------------------------------------------------===//

#include "Schedule.h"

#include "RegionBuffers.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Liveness.h"
#include "rondo/ir/StorageRoots.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringMap.h"

using namespace rondo;

namespace {

class Lowering {
public:
  Lowering(const TracePair &pair, Side side, const LoweringContext &context)
      : trace_(pair.trace(side)), context_(context), roots_(trace_), places_(trace_.numValues()) {
    schedule_.side = side;
  }

  llvm::Expected<Schedule> run() {
    addArguments();
    lowerBody(Trace::topBody());
    if (diagnostics_.hasErrors())
      return diagnostics_.takeError();
    if (const Op *end = trace_.terminator())
      addResults(*end);
    finishLifetimes();
    for (ScheduledRegion &region : schedule_.regions)
      if (llvm::Error error = planBuffers(schedule_, region, policies_, context_.costs))
        return error;
    collectWrittenInputs();
    if (diagnostics_.hasErrors())
      return diagnostics_.takeError();
    return std::move(schedule_);
  }

private:
  //===--- Arguments ------------------------------------------------------===//

  void addArguments() {
    for (unsigned i = 0; i < trace_.arguments().size(); ++i) {
      ValueId value = trace_.arguments()[i];
      SavedId link = trace_.savedArgument(i);
      if (schedule_.side == Side::Backward && link)
        addSavedArgument(value, link);
      else
        addInput(value);
    }
  }

  void addInput(ValueId value) {
    const Type &type = trace_.type(value);
    ParameterInfo info{trace_.name(value).str(), trace_.valuePath(value).str(), type,
                       trace_.tags(value)};
    Place &place = places_[value.index()];
    if (const ScalarType *scalar = type.asScalar()) {
      place.scalar = addScalar(scalar->kind);
    } else if (std::optional<uint32_t> storage = addStorage(value, Space::Argument)) {
      PlannedStorage &planned = schedule_.storages[*storage];
      planned.index = schedule_.inputs.size();
      planned.begin = 0;
      planned.end = ~0u;
      planned.isStatic = roots_.isStatic(value);
      place.storage = *storage;
    }
    schedule_.inputs.push_back(std::move(info));
    schedule_.inputPlaces.push_back(place);
  }

  /// A value of the forward: in the backward it is the same bytes.
  void addSavedArgument(ValueId value, SavedId link) {
    const Schedule &forward = *context_.forward;
    auto saved =
        llvm::find_if(forward.saved, [&](const SavedPlan &plan) { return plan.id == link; });
    assert(saved != forward.saved.end() && "the verifier checks links");
    Place &place = places_[value.index()];
    const Place &source = saved->value.place;
    if (source.isScalar()) {
      place.scalar = addScalar(forward.scalarKinds[source.scalar]);
      unsigned position =
          llvm::find(forward.savedScalars, unsigned(source.scalar)) - forward.savedScalars.begin();
      schedule_.scalarsFromSaved.push_back({unsigned(place.scalar), position});
      return;
    }
    auto [found, isNew] = fromForward_.try_emplace(source.storage, 0);
    if (isNew) {
      found->second = schedule_.storages.size();
      PlannedStorage storage = forward.storages[source.storage];
      if (storage.space == Space::Argument) {
        storage.space = Space::Saved;
        storage.index = llvm::find(forward.savedArguments, uint32_t(source.storage)) -
                        forward.savedArguments.begin();
      } else if (storage.space == Space::Results) {
        storage.space = Space::ForwardResults;
        storage.index = source.storage;
      }
      storage.isForwards = !storage.isCallers();
      storage.begin = 0;
      storage.end = context_.consumesSaved && storage.space == Space::Slab ? 0 : ~0u;
      storage.takesOver = -1;
      schedule_.storages.push_back(std::move(storage));
    }
    place.storage = found->second;
    place.byteOffset = source.byteOffset;
    if (roots_.isStatic(value))
      schedule_.storages[place.storage].isStatic = true;
  }

  int32_t addScalar(ScalarKind kind) {
    schedule_.scalarKinds.push_back(kind);
    return int32_t(schedule_.scalarKinds.size() - 1);
  }

  //===--- Storages -------------------------------------------------------===//

  std::optional<unsigned> deviceIndex(Device device) const {
    for (unsigned i = 0; i < context_.devices.size(); ++i)
      if (context_.devices[i]->device() == device)
        return i;
    return std::nullopt;
  }

  static std::optional<uint64_t> bytesOf(const Type &type) {
    if (type.asRNGState())
      return sizeof(RNGState);
    const TensorType *tensor = type.asTensor();
    if (!tensor || tensor->hasSymbols())
      return std::nullopt;
    return stridedExtentBytes(tensor->dtype, constantDims(tensor->shape),
                              constantDims(tensor->strides));
  }

  /// A new storage for `value`; nothing after an error.
  std::optional<uint32_t> addStorage(ValueId value, Space space) {
    const Type &type = trace_.type(value);
    if (type.asOpaque()) {
      diagnostics_.error(locationOf(value), "value '" + nameOf(value) + "' has type " + type.str() +
                                                ": programs hold no values of opaque types");
      return std::nullopt;
    }
    std::optional<uint64_t> bytes = bytesOf(type);
    if (!bytes) {
      diagnostics_.error(locationOf(value), "value '" + nameOf(value) + "' has type " + type.str() +
                                                ", which has no size: the pipeline must "
                                                "specialise the pair");
      return std::nullopt;
    }
    std::optional<unsigned> device = deviceIndex(*type.device());
    if (!device) {
      diagnostics_.error(locationOf(value),
                         "value '" + nameOf(value) + "' is on " + deviceName(*type.device()) +
                             ", which is not among the program's devices: " + deviceList());
      return std::nullopt;
    }
    PlannedStorage storage;
    storage.space = space;
    storage.device = *device;
    storage.bytes = *bytes;
    storage.name = nameOf(value);
    schedule_.storages.push_back(std::move(storage));
    return schedule_.storages.size() - 1;
  }

  std::string deviceList() const {
    std::string text;
    for (const DeviceRef &device : context_.devices)
      text += (text.empty() ? "" : ", ") + deviceName(device->device());
    return text;
  }

  std::string nameOf(ValueId value) const {
    if (!trace_.name(value).empty())
      return "%" + trace_.name(value).str();
    std::string text;
    llvm::raw_string_ostream(text) << value;
    return text;
  }

  Location locationOf(ValueId value) const {
    OpId op = trace_.definingOp(value);
    return op && trace_.op(op).location() ? *trace_.op(op).location() : Location();
  }

  //===--- Ops ------------------------------------------------------------===//

  void lowerBody(BodyId body) {
    for (OpId id : trace_.ops(body)) {
      const Op &op = trace_.op(id);
      if (op.spec().terminator)
        continue;
      if (op.spec().bodies == BodyKind::Region && op.name() != core::fusedOp)
        lowerRegion(op);
      else if (op.spec().bodies == BodyKind::If || op.spec().bodies == BodyKind::While)
        error(op, "the runtime does not run it: it has bodies that are chosen at run time");
      else if (!op.spec().launches)
        lowerSilentOp(op);
      else
        lowerKernel(op);
    }
  }

  void lowerRegion(const Op &op) {
    BodyId body = op.bodies().front();
    for (auto [argument, operand] : llvm::zip(trace_.arguments(body), op.operands()))
      places_[argument.index()] = operand ? places_[operand.index()] : Place();
    bool isGraph = op.name() == core::cudaGraphOp;
    ScheduledRegion region;
    region.begin = schedule_.steps.size();
    lowerBody(body);
    region.end = schedule_.steps.size();
    if (const Op *end = trace_.terminator(body))
      for (auto [result, value] : llvm::zip(op.results(), end->operands()))
        places_[result.index()] = value ? places_[value.index()] : Place();
    if (!isGraph || region.begin == region.end)
      return;
    if (const Attribute *id = op.attribute("region"))
      region.id = id->asInt().value_or(0);
    region.numOps = trace_.ops(body).size() - 1;
    region.uid = schedule_.regions.size();
    region.domain = op.domain();
    addPolicies(op, region);
    schedule_.regions.push_back(std::move(region));
  }

  /// Remembers what the attribute `inputs` says of the caller's storages; of `auto`, nothing.
  void addPolicies(const Op &op, const ScheduledRegion &region) {
    const Attribute *attribute = op.attribute("inputs");
    const Attribute::List *list = attribute ? attribute->asList() : nullptr;
    for (unsigned i = 0; list && i < list->size() && i < op.operands().size(); ++i) {
      ValueId operand = op.operand(i);
      const std::string *policy = (*list)[i].asString();
      if (!operand || !policy || !places_[operand.index()].isTensor())
        continue;
      for (BufferPolicy known : {BufferPolicy::Static, BufferPolicy::Patched, BufferPolicy::Copied})
        if (*policy == bufferPolicyName(known))
          policies_[{region.uid, uint32_t(places_[operand.index()].storage)}] = known;
    }
  }

  /// Views name places, `constant` a number, `empty` bytes.
  void lowerSilentOp(const Op &op) {
    Effects effects = getEffects(trace_, op.id());
    for (unsigned i = 0; i < op.results().size(); ++i) {
      ValueId result = op.result(i);
      Place &place = places_[result.index()];
      llvm::SmallVector<unsigned, 1> viewed = effects.viewedBy(i);
      if (!viewed.empty()) {
        place = viewPlace(op, i, op.operand(viewed.front()));
      } else if (const ScalarType *scalar = trace_.type(result).asScalar()) {
        place.scalar = addScalar(scalar->kind);
        schedule_.constants.push_back({unsigned(place.scalar), constantSlot(op, scalar->kind)});
      } else if (std::optional<uint32_t> storage = addStorage(result, Space::Arena)) {
        place.storage = *storage;
      }
    }
  }

  Place viewPlace(const Op &op, unsigned result, ValueId viewed) const {
    Place place = places_[viewed.index()];
    const TensorType *type = trace_.type(op.result(result)).asTensor();
    if (!type || !place.isTensor())
      return place;
    int64_t bytes = viewOffset(trace_, op.id(), result).value() * dtypeSize(type->dtype);
    place.byteOffset = op.spec().countsFromStorageStart ? bytes : place.byteOffset + bytes;
    return place;
  }

  static Slot constantSlot(const Op &op, ScalarKind kind) {
    Slot slot;
    const Attribute *value = op.attribute("value");
    double number = value ? value->asNumber().value_or(0) : 0;
    if (kind == ScalarKind::F64)
      slot.f64 = number;
    else if (kind == ScalarKind::I64)
      slot.i64 = value ? value->asInt().value_or(0) : 0;
    else
      slot.boolean = value && value->asBool() ? *value->asBool() : number != 0;
    return slot;
  }

  void lowerKernel(const Op &op) {
    const Executor *executor = findExecutor(op);
    if (!executor)
      return;
    Step step;
    step.text = textOf(op);
    Effects effects = getEffects(trace_, op.id());
    for (ValueId operand : op.operands())
      step.operands.push_back(operand ? places_[operand.index()] : Place());
    for (unsigned i = 0; i < op.results().size(); ++i)
      step.results.push_back(resultPlace(op, i, effects));
    if (!chooseDevice(op, step))
      return;
    addAccesses(op, effects, step);
    addResources(op, effects, step);
    if (uint64_t bytes = op.claim()->workspaceBytes)
      addWorkspace(bytes, step);
    if (diagnostics_.hasErrors())
      return;
    llvm::Expected<KernelRef> kernel =
        executor->compile(trace_, op.id(), context_.devices[step.device]);
    if (!kernel) {
      error(op, errorText(kernel.takeError()));
      return;
    }
    step.kernel = std::move(*kernel);
    schedule_.steps.push_back(std::move(step));
  }

  const Executor *findExecutor(const Op &op) {
    if (!op.claim()) {
      error(op, "no executor claims it: the pipeline needs an execution transform");
      return nullptr;
    }
    for (const Executor *executor : context_.executors)
      if (executor->name() == op.claim()->executor)
        return executor;
    error(op, "it is claimed by executor '" + op.claim()->executor +
                  "', which is not among those given to compile");
    return nullptr;
  }

  Place resultPlace(const Op &op, unsigned i, const Effects &effects) {
    ValueId result = op.result(i);
    Place &place = places_[result.index()];
    llvm::SmallVector<unsigned, 1> viewed = effects.viewedBy(i);
    if (!viewed.empty())
      place = viewPlace(op, i, op.operand(viewed.front()));
    else if (const ScalarType *scalar = trace_.type(result).asScalar())
      place.scalar = addScalar(scalar->kind);
    else if (std::optional<uint32_t> storage = addStorage(result, Space::Arena))
      place.storage = *storage;
    return place;
  }

  /// The first of the program's devices that the op touches.
  bool chooseDevice(const Op &op, Step &step) {
    std::optional<unsigned> first, last;
    auto add = [&](const Place &place) {
      if (!place.isTensor())
        return;
      unsigned device = schedule_.storages[place.storage].device;
      first = std::min(first.value_or(device), device);
      last = std::max(last.value_or(device), device);
    };
    llvm::for_each(step.operands, add);
    llvm::for_each(step.results, add);
    if (const Attribute *attribute = op.attribute("device"); attribute && !first)
      if (const Device *device = attribute->asDevice())
        first = last = deviceIndex(*device);
    step.device = first.value_or(0);
    step.crossesDevices = first && *first != *last;
    return true;
  }

  void addAccesses(const Op &op, const Effects &effects, Step &step) {
    for (unsigned i : effects.reads)
      addAccess(op, step.operands[i], op.operand(i), false, step);
    for (unsigned i : effects.writes)
      addAccess(op, step.operands[i], op.operand(i), true, step);
    for (unsigned i = 0; i < op.results().size(); ++i)
      if (effects.viewedBy(i).empty())
        addAccess(op, step.results[i], op.result(i), true, step);
  }

  void addAccess(const Op &op, const Place &place, ValueId value, bool isWrite, Step &step) {
    if (!place.isTensor())
      return;
    std::optional<uint64_t> bytes = bytesOf(trace_.type(value));
    uint64_t begin = place.byteOffset, end = begin + bytes.value_or(0);
    if (begin == end)
      return;
    if (end > schedule_.storages[place.storage].bytes) {
      error(op, "value '" + nameOf(value) + "' reaches beyond the " +
                    llvm::Twine(schedule_.storages[place.storage].bytes) + " bytes of '" +
                    schedule_.storages[place.storage].name + "'");
      return;
    }
    step.accesses.push_back({uint32_t(place.storage), begin, end, isWrite, isDense(value)});
  }

  /// True if a value, whose sizes are known, has no bytes between its elements.
  bool isDense(ValueId value) const {
    const TensorType *type = trace_.type(value).asTensor();
    return !type || int64_t(*bytesOf(*type)) == type->numBytes().value();
  }

  void addResources(const Op &op, const Effects &effects, Step &step) {
    for (const ResourceEffect &effect : effects.resources) {
      if (effect.kind == ResourceKind::Generator) {
        if (step.device != 0)
          error(op, "generators are on the program's first device, the op is not");
        step.generators.push_back(
            generators_.try_emplace(effect.name, generators_.size()).first->second);
        if (schedule_.generators.size() < generators_.size())
          schedule_.generators.push_back(effect.name.str());
      }
      std::string name = (resourceKindName(effect.kind) + " " + effect.name).str();
      unsigned number = resources_.try_emplace(name, resources_.size()).first->second;
      step.resources.push_back({number, effect.writes});
    }
  }

  void addWorkspace(uint64_t bytes, Step &step) {
    PlannedStorage storage;
    storage.device = step.device;
    storage.bytes = bytes;
    storage.name = "workspace of " + step.text;
    step.workspace = schedule_.storages.size();
    step.accesses.push_back({uint32_t(step.workspace), 0, bytes, true});
    schedule_.storages.push_back(std::move(storage));
  }

  std::string textOf(const Op &op) const {
    std::string text = ("'" + op.name() + "' op").str();
    if (!op.modulePath().empty())
      text += " of module " + op.modulePath().str();
    if (op.location() && op.location()->isKnown())
      text += " at " + op.location()->str();
    return text;
  }

  void error(const Op &op, const llvm::Twine &message) {
    diagnostics_.error(op.location() ? *op.location() : Location(),
                       "'" + op.name() + "' op: " + message);
  }

  //===--- Results --------------------------------------------------------===//

  void addResults(const Op &end) {
    for (unsigned i = 0; i < end.operands().size(); ++i)
      if (!isSaved(i))
        addResult(end.operand(i));
    for (unsigned i = 0; i < end.operands().size(); ++i)
      if (isSaved(i))
        addSaved(end.operand(i), trace_.savedReturn(i));
  }

  bool isSaved(unsigned i) const {
    return schedule_.side == Side::Forward && trace_.savedReturn(i).isValid();
  }

  void addResult(ValueId value) {
    ResultPlan plan;
    ParameterInfo info;
    info.isMissing = !value;
    if (value) {
      info = {trace_.name(value).str(), {}, trace_.type(value), trace_.tags(value), false};
      plan = planOf(value);
      outlive(plan.place, Space::Results);
    }
    schedule_.results.push_back(std::move(info));
    schedule_.resultPlans.push_back(std::move(plan));
  }

  ResultPlan planOf(ValueId value) const {
    ResultPlan plan;
    plan.place = places_[value.index()];
    if (std::optional<TensorType> type = tensorTypeOf(trace_.type(value)))
      plan.layout = TensorLayout::get(*type);
    else if (const ScalarType *scalar = trace_.type(value).asScalar())
      plan.scalarKind = scalar->kind;
    return plan;
  }

  void addSaved(ValueId value, SavedId id) {
    Place place = places_[value.index()];
    if (place.isScalar()) {
      if (!llvm::is_contained(schedule_.savedScalars, unsigned(place.scalar)))
        schedule_.savedScalars.push_back(place.scalar);
    } else if (place.isTensor()) {
      outlive(place, Space::Slab);
      schedule_.savesResults |= schedule_.storages[place.storage].space == Space::Results;
      if (schedule_.storages[place.storage].space == Space::Argument &&
          !llvm::is_contained(schedule_.savedArguments, uint32_t(place.storage)))
        schedule_.savedArguments.push_back(place.storage);
    }
    schedule_.saved.push_back({id, {}, planOf(value)});
  }

  /// A storage that the call made and that lives on goes to `space`, unless it is there already.
  void outlive(const Place &place, Space space) {
    if (!place.isTensor())
      return;
    PlannedStorage &storage = schedule_.storages[place.storage];
    if (storage.space == Space::Arena)
      storage.space = space;
    storage.end = ~0u;
  }

  //===--- Lifetimes ------------------------------------------------------===//

  void finishLifetimes() {
    for (uint32_t i = 0; i < schedule_.steps.size(); ++i) {
      for (const Access &access : schedule_.steps[i].accesses) {
        PlannedStorage &storage = schedule_.storages[access.storage];
        storage.begin = std::min(storage.begin, i);
        storage.end = std::max(storage.end, i);
      }
    }
    for (PlannedStorage &storage : schedule_.storages)
      if (storage.begin == ~0u) // never touched
        storage.begin = storage.end == ~0u ? 0 : storage.end;
  }

  void collectWrittenInputs() {
    llvm::SmallSetVector<uint32_t, 4> written;
    for (const Step &step : schedule_.steps)
      for (const Access &access : step.accesses)
        if (access.isWrite && schedule_.storages[access.storage].isCallers())
          written.insert(access.storage);
    schedule_.writtenInputs.assign(written.begin(), written.end());
    for (uint32_t storage : written)
      schedule_.storages[storage].isWritten = true;
  }

  const Trace &trace_;
  const LoweringContext &context_;
  const StorageRoots roots_;
  DiagnosticList diagnostics_;
  Schedule schedule_;
  std::vector<Place> places_;                      ///< by value
  llvm::DenseMap<uint32_t, uint32_t> fromForward_; ///< storages of the forward: ours
  BufferPolicies policies_;
  llvm::StringMap<unsigned> generators_, resources_;
};

} // namespace

std::vector<bool> rondo::findTakenOver(const Schedule &schedule) {
  std::vector<bool> isTaken(schedule.storages.size(), false);
  for (const PlannedStorage &storage : schedule.storages)
    if (storage.takesOver >= 0)
      isTaken[storage.takesOver] = true;
  return isTaken;
}

void rondo::findDeadStorages(Schedule &schedule) {
  schedule.deadAfter.assign(schedule.steps.size(), {});
  const std::vector<bool> isTaken = findTakenOver(schedule);
  for (uint32_t i = 0; i < schedule.storages.size(); ++i) {
    const PlannedStorage &storage = schedule.storages[i];
    if (!storage.isCallers() && !isTaken[i] && storage.bytes != 0 &&
        storage.end < schedule.steps.size())
      schedule.deadAfter[storage.end].push_back(i);
  }
}

std::optional<TensorType> rondo::tensorTypeOf(const Type &type) {
  if (const TensorType *tensor = type.asTensor())
    return *tensor;
  if (const RNGStateType *state = type.asRNGState())
    return TensorType(DType::I64, {2}, state->device);
  return std::nullopt;
}

llvm::Expected<Schedule> rondo::lower(const TracePair &pair, Side side,
                                      const LoweringContext &context) {
  llvm::Expected<Schedule> schedule = Lowering(pair, side, context).run();
  if (!schedule || side == Side::Backward || !pair.hasBackward())
    return schedule;
  llvm::DenseMap<SavedId, ValueId> arguments;
  for (const SavedLink &link : pair.saved())
    arguments[link.id] = link.backward;
  for (SavedPlan &saved : schedule->saved)
    saved.name = pair.backward().name(arguments.lookup(saved.id)).str();
  return schedule;
}
