//===- Call.cpp - One call of a program -----------------------------------===//
//
// The path of a replay, from the lease of what a call needs to its results. Steps run in order; a
// region is one launch of its graph where there is one (CallRegions.cpp where there is none).
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

llvm::Error Call::run(BlockRef &slab, llvm::SmallVectorImpl<Value> &results) {
  if (isCaptured_)
    if (llvm::Error error = checkCapturable())
      return error;
  if (llvm::Error error = lease(slab))
    return error;
  setBases();
  llvm::Error error = acquire();
  if (!error)
    error = alignArguments();
  if (!error)
    error = runSteps();
  if (!error)
    error = copyBackAligned();
  // What was submitted uses the blocks, also after an error.
  if (llvm::Error releaseError = release()) {
    if (error)
      llvm::consumeError(std::move(releaseError));
    else
      error = std::move(releaseError);
  }
  if (error)
    return error;
  if (side_ == Side::Forward && !variant_.noSlab)
    fillSaved();
  giveResults(results);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Leases
//===----------------------------------------------------------------------===//

llvm::Error Call::lease(BlockRef &slab) {
  std::unique_lock<std::mutex> lock(program_.mutex_);
  lane_ = program_.leaseLane(lock, stream_);
  isTransient_ = variant_.isTransient;
  std::unique_ptr<Frame> &frame = lane_->frames[{variant_.uid, unsigned(side_)}];
  if (!frame)
    frame = std::make_unique<Frame>();
  frame_ = frame.get();
  if (llvm::Error error = bind(slab.get()))
    return error;
  if (llvm::Error error = program_.prepareLane(*lane_, schedule_, isTransient_))
    return error;
  if (side_ == Side::Forward && !variant_.noSlab) {
    llvm::Expected<BlockRef> block =
        program_.leaseBlock(variant_.slabs, schedule_.slabBytes, stream_, false);
    if (!block)
      return block.takeError();
    slab = std::move(*block);
  }
  if (needsResults()) {
    llvm::Expected<BlockRef> block =
        program_.leaseBlock(plan_.results, schedule_.resultBytes, stream_, true);
    if (!block)
      return block.takeError();
    results_ = std::move(*block);
  }
  frame_->useRegions(plan_.regions);
  slab_ = variant_.noSlab ? variant_.noSlab.get() : slab.get();
  if (isCaptured_)
    keepForCapture();
  return llvm::Error::success();
}

llvm::Error Call::bind(const Block *saved) {
  if (llvm::Error error = bindArguments(schedule_, inputs_, bound()))
    return error;
  if (isCaptured_ && !bound().misaligned.empty())
    return makeError(text(bound().misaligned.front()) +
                     ": while the stream is being captured its address has to be a multiple of " +
                     llvm::Twine(DeviceAPI::minAlignment) + " bytes");
  if (side_ == Side::Backward && !schedule_.writtenInputs.empty())
    if (llvm::Error error = checkSavedOverlaps(*saved))
      return error;
  if (!outputs_.empty())
    if (llvm::Error error = placeOutputs(
            schedule_, inputs_, outputs_, [&](auto visit) { forEachSaved(saved, visit); }, placed_))
      return error;
  if (program_.options_.onStaticMove == StaticMove::Error)
    return checkStatics();
  return llvm::Error::success();
}

bool Call::needsResults() const {
  return placed_.empty() || schedule_.hasTemporariesInResults ||
         llvm::any_of(schedule_.resultPlans, [&](const ResultPlan &plan) {
           return plan.place.isTensor() &&
                  schedule_.storages[plan.place.storage].space == Space::Results &&
                  !findPlaced(placed_, plan.place.storage);
         });
}

void Call::keepForCapture() const {
  auto kept = std::make_unique<Retired>();
  for (BlockRef block : {lane_->arena, BlockRef(slab_), results_, slab_->forwardResults})
    if (block)
      kept->blocks.push_back(std::move(block));
  for (const Step &step : schedule_.steps)
    kept->kernels.push_back(step.kernel);
  if (!schedule_.generators.empty())
    kept->generators = program_.options_.generators;
  program_.keepForCapture(stream_, std::move(kept));
}

llvm::Error Call::acquire() {
  if (isCaptured_)
    return llvm::Error::success();
  for (Block *block : blocks())
    if (llvm::Error error = block->lastUse().acquire(stream_))
      return error;
  if (schedule_.generators.empty())
    return llvm::Error::success();
  return generatorUse_.begin(*program_.options_.generators, stream_);
}

llvm::Error Call::release() {
  if (isCaptured_)
    return llvm::Error::success();
  llvm::Error error = llvm::Error::success();
  for (Block *block : blocks())
    if (llvm::Error releaseError = program_.releaseUse(*block, stream_))
      error = llvm::joinErrors(std::move(error), std::move(releaseError));
  if (llvm::Error endError = generatorUse_.end())
    error = llvm::joinErrors(std::move(error), std::move(endError));
  return error;
}

llvm::SmallVector<Block *, 4> Call::blocks() const {
  llvm::SmallVector<Block *, 4> blocks = {lane_->arena.get()};
  if (results_)
    blocks.push_back(results_.get());
  if (!variant_.noSlab)
    blocks.push_back(slab_);
  if (side_ == Side::Backward && slab_->forwardResults)
    blocks.push_back(slab_->forwardResults.get());
  return blocks;
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

void Call::setBases() {
  bases_.schedule = &schedule_;
  bases_.arguments = bound().arguments;
  bases_.generators = plan_.generators;
  if (side_ == Side::Backward) {
    setSavedAddresses();
    for (const auto &[scalar, position] : schedule_.scalarsFromSaved)
      bound().scalars[scalar] = slab_->savedScalars[position];
  }
  bases_.saved = frame_->saved;
  for (unsigned i = 0; i < program_.devices_.size(); ++i) {
    bases_.arena.push_back(lane_->arena->base(i));
    bases_.slab.push_back(slab_->base(i));
    bases_.results.push_back(results_ ? results_->base(i) : nullptr);
    bases_.forwardResults.push_back(side_ == Side::Backward && slab_->forwardResults
                                        ? slab_->forwardResults->base(i)
                                        : nullptr);
  }
  for (const PlacedResult &result : placed_)
    bases_.relocations[result.storage] = result.tensor.data;
  if (side_ == Side::Backward && !slab_->savedPlaced.empty())
    for (uint32_t i = 0; i < schedule_.storages.size(); ++i)
      if (schedule_.storages[i].space == Space::ForwardResults)
        if (const PlacedResult *result =
                findPlaced(slab_->savedPlaced, schedule_.storages[i].index))
          bases_.relocations[i] = result->tensor.data;
}

void Call::setSavedAddresses() {
  llvm::SmallVectorImpl<std::byte *> &known = frame_->saved;
  bool isSame = known.size() == slab_->savedTensors.size();
  known.resize(slab_->savedTensors.size());
  for (size_t i = 0; i < known.size(); ++i) {
    isSame &= known[i] == slab_->savedTensors[i].data;
    known[i] = slab_->savedTensors[i].data;
  }
  if (!isSame)
    ++bound().version;
}

llvm::Error Call::alignArguments() {
  for (unsigned i : bound().misaligned) {
    const Tensor &tensor = *inputs_[i].asTensor();
    llvm::Expected<StorageRef> copy =
        Storage::allocate(deviceOf(schedule_.inputPlaces[i]), tensor.extentBytes());
    if (!copy)
      return copy.takeError();
    if (llvm::Error error = stream_.copy((*copy)->data(), tensor.data(), tensor.extentBytes()))
      return error;
    bound().arguments[i].address = (*copy)->data();
    aligned_.push_back(std::move(*copy));
  }
  return llvm::Error::success();
}

llvm::Error Call::copyBackAligned() {
  for (unsigned i : bound().misaligned) {
    if (!schedule_.storages[schedule_.inputPlaces[i].storage].isWritten)
      continue;
    const Tensor &tensor = *inputs_[i].asTensor();
    if (llvm::Error error =
            stream_.copy(tensor.data(), bound().arguments[i].address, tensor.extentBytes()))
      return error;
  }
  return llvm::Error::success();
}

const DeviceRef &Call::deviceOf(const Place &place) const {
  return program_.devices_[schedule_.storages[place.storage].device];
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

llvm::Error Call::runSteps() {
  bool isEager = isCaptured_ || program_.isEager_;
  const std::vector<ScheduledRegion> &regions = *frame_->regions;
  auto region = regions.begin();
  for (uint32_t i = 0; i < schedule_.steps.size();) {
    while (region != regions.end() && region->begin < i)
      ++region;
    bool isRegion = region != regions.end() && region->begin == i;
    if (isRegion && !isEager && !isTransient_ && !region->isEager) {
      if (llvm::Error error = runRegion(*region))
        return error;
      i = region->end;
      continue;
    }
    if (isRegion && !isEager)
      region->cache->countEagerRun();
    if (llvm::Error error = runStep(i++))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error Call::runStep(uint32_t index) {
  const Step &step = schedule_.steps[index];
  Stream &stream = step.device == 0 ? stream_ : *lane_->streams[step.device];
  StepArgs args(step, bases_, bound().scalars.data());
  llvm::Error error = step.kernel->enqueue(stream, args.args());
  if (!error && (step.crossesDevices || step.device != 0))
    error = stream.synchronize();
  if (!error && !schedule_.deadAfter.empty())
    error = poison(index, stream);
  return error ? inStep(step, std::move(error)) : llvm::Error::success();
}

llvm::Error Call::poison(uint32_t index, Stream &stream) {
  for (uint32_t i : schedule_.deadAfter[index]) {
    const PlannedStorage &storage = schedule_.storages[i];
    if (storage.device == schedule_.steps[index].device)
      if (llvm::Error error = stream.fill(bases_.address(i), 0xff, storage.bytes))
        return error;
  }
  return llvm::Error::success();
}

llvm::Error Call::inStep(const Step &step, llvm::Error error) {
  std::optional<DeviceErrorKind> kind = deviceErrorKind(error);
  std::string text = step.text + ": " + errorText(std::move(error));
  return kind ? makeDeviceError(*kind, text) : makeError(text);
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

llvm::Error Call::runRegion(const ScheduledRegion &region) {
  GraphKey key = keyOf(region);
  Frame::Recent &recent = frame_->recentOf(region);
  GraphEntryRef entry = findEntry(region, key, recent);
  if (!entry)
    return runFirst(region);
  llvm::Expected<bool> follows = follow(region, key, *entry, recent);
  if (!follows)
    return follows.takeError();
  if (!*follows)
    return program_.options_.onCaptureFailure == CaptureFailure::Error ? captureError()
                                                                       : runEagerly(region);
  region.cache->countReplay(entry->copiedBytes);
  if (llvm::Error error = entry->launch(stream_, bases_))
    return error;
  llvm::SmallVector<uint32_t, 4> settled;
  entry->takeSettled(settled);
  if (!settled.empty())
    program_.stopCopying(variant_, side_, region.uid, settled);
  return llvm::Error::success();
}

GraphKey Call::keyOf(const ScheduledRegion &region) const {
  GraphKey key;
  key.program = variant_.uid;
  key.region = region.uid;
  key.lane = lane_->arena->id();
  key.slab = region.usesSlab ? slab_->id() : 0;
  if (region.facts->isTiedToResults) {
    key.results = region.usesResults && results_ ? results_->id() : 0;
    key.forwardResults =
        region.usesForwardResults && slab_->forwardResults ? slab_->forwardResults->id() : 0;
  }
  for (unsigned i = 0; i < region.scalars.size(); ++i)
    if (region.facts->isKeyed(i))
      key.scalars.push_back(uint64_t(bound().scalars[region.scalars[i]].i64));
  return key;
}

GraphEntryRef Call::findEntry(const ScheduledRegion &region, const GraphKey &key,
                              Frame::Recent &recent) {
  if (recent.key == key)
    if (GraphEntryRef entry = recent.entry.lock())
      return entry;
  GraphEntryRef entry = region.cache->lookup(key);
  if (entry) {
    recent = Frame::Recent();
    recent.key = key;
    recent.entry = entry;
  }
  return entry;
}

llvm::Expected<bool> Call::follow(const ScheduledRegion &region, const GraphKey &key,
                                  GraphEntry &entry, Frame::Recent &recent) {
  if (recent.isUpToDate(bound(), bases_) && entry.scalars.empty())
    return true;
  llvm::SmallVector<unsigned, 4> changed;
  entry.findChanged(bases_, bound().scalars, changed);
  if (!changed.empty())
    if (llvm::Expected<bool> isRight = update(region, key, entry, changed); !isRight || !*isRight)
      return isRight;
  recent.note(bound(), bases_);
  return true;
}

llvm::Error Call::runEagerly(const ScheduledRegion &region) {
  region.cache->countEagerRun();
  for (uint32_t i = region.begin; i < region.end; ++i)
    if (llvm::Error error = runStep(i))
      return error;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void Call::fillSaved() {
  slab_->program = variant_.uid;
  if (schedule_.savesResults)
    slab_->forwardResults = results_;
  for (const PlacedResult &result : placed_)
    if (llvm::any_of(schedule_.saved, [&](const SavedPlan &saved) {
          return saved.value.place.storage == int32_t(result.storage);
        }))
      slab_->savedPlaced.push_back(result);
  for (uint32_t storage : schedule_.savedArguments) {
    unsigned input = schedule_.storages[storage].index;
    const Tensor &tensor = *inputs_[input].asTensor();
    auto copy = llvm::find(bound().misaligned, input);
    if (copy == bound().misaligned.end())
      slab_->savedTensors.push_back({tensor.storage(), tensor.data()});
    else // kernels of the backward may assume an aligned address, too
      slab_->savedTensors.push_back(
          {aligned_[copy - bound().misaligned.begin()], bound().arguments[input].address});
  }
  for (unsigned scalar : schedule_.savedScalars)
    slab_->savedScalars.push_back(bound().scalars[scalar]);
}

void Call::giveResults(llvm::SmallVectorImpl<Value> &results) const {
  ValueSource source{schedule_, program_.devices_, inputs_, slab_, results_.get(), placed_};
  for (const ResultPlan &plan : schedule_.resultPlans)
    results.push_back(source.value(plan, bound().scalars));
}

//===----------------------------------------------------------------------===//
// Entry
//===----------------------------------------------------------------------===//

llvm::Error ProgramImpl::call(Variant &variant, Side side, Stream &stream,
                              llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Tensor> outputs,
                              llvm::SmallVectorImpl<Value> &results, BlockRef &slab) {
  if (&stream.device() != devices_.front().get())
    return makeError("the stream is of device " + deviceName(stream.device().device()) +
                     ", expected one of this program's device " +
                     deviceName(devices_.front()->device()));
  CaptureStatus capture = stream.captureStatus();
  if (capture == CaptureStatus::Invalidated)
    return makeDeviceError(DeviceErrorKind::CaptureInvalidated,
                           "the stream's capture is invalid: end it first");
  bool isCaptured = capture != CaptureStatus::None;
  auto run = [&](llvm::ArrayRef<Value> arguments) {
    return Call(*this, variant, side, stream, arguments, outputs, isCaptured).run(slab, results);
  };
  if (variant.padding.inputs.empty())
    return run(inputs);
  return PaddedCall(*this, variant, stream, isCaptured).run(inputs, outputs, results, run);
}

llvm::Error ProgramImpl::forward(Stream &stream, llvm::ArrayRef<Value> inputs,
                                 llvm::ArrayRef<Tensor> outputs,
                                 llvm::SmallVectorImpl<Value> &results, SavedState *saved) {
  results.clear();
  if (saved)
    *saved = SavedState();
  VariantRef specialised; // what there is without symbols stays
  if (!symbols_.empty()) {
    llvm::Expected<VariantRef> variant = variantFor(inputs);
    if (!variant)
      return variant.takeError();
    specialised = std::move(*variant);
  }
  Variant &variant = specialised ? *specialised : *latest_;
  SavedState state;
  if (llvm::Error error =
          call(variant, Side::Forward, stream, inputs, outputs, results, state.block_)) {
    results.clear();
    return error;
  }
  if (saved && hasBackward_)
    *saved = std::move(state);
  return llvm::Error::success();
}

llvm::Error ProgramImpl::backward(Stream &stream, SavedState &saved, llvm::ArrayRef<Value> inputs,
                                  llvm::ArrayRef<Tensor> outputs,
                                  llvm::SmallVectorImpl<Value> &results) {
  results.clear();
  llvm::Expected<VariantRef> variant = variantOf(saved);
  if (!variant)
    return variant.takeError();
  llvm::Error error =
      call(**variant, Side::Backward, stream, inputs, outputs, results, saved.block_);
  if (error)
    results.clear();
  return error;
}
