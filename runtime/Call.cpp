//===- Call.cpp - One call of a program -----------------------------------===//
//
// Steps run in order; a region is one launch of its graph where there is one. The first call of an
// entry builds its graph, which executes nothing, and then runs the region eagerly, as that call.
//
//===----------------------------------------------------------------------===//

#include "PatchVerifier.h"
#include "ProgramImpl.h"

#include "llvm/ADT/STLExtras.h"

#include <chrono>

using namespace rondo;

namespace rondo {

class Call {
public:
  Call(ProgramImpl &program, Variant &variant, Side side, Stream &stream,
       llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Tensor> outputs, bool isCaptured)
      : program_(program), variant_(variant), side_(side), plan_(variant.side(side)),
        schedule_(plan_.schedule), stream_(stream), inputs_(inputs), outputs_(outputs),
        isCaptured_(isCaptured) {}
  ~Call() {
    if (lane_)
      program_.returnLane(*lane_);
  }

  llvm::Error run(BlockRef &slab, llvm::SmallVectorImpl<Value> &results) {
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

private:
  std::string text(unsigned input) const {
    return argumentText(schedule_.inputs[input], input, side_);
  }

  BoundArguments &bound() { return frame_->bound; }
  const BoundArguments &bound() const { return frame_->bound; }

  /// Binds the arguments; `saved` is what a backward is given.
  llvm::Error bind(const Block *saved) {
    if (llvm::Error error = bindArguments(schedule_, inputs_, bound()))
      return error;
    if (isCaptured_ && !bound().misaligned.empty())
      return makeError(text(bound().misaligned.front()) +
                       ": while the stream is being captured its address has to be a multiple of " +
                       llvm::Twine(DeviceAPI::minAlignment) + " bytes");
    if (side_ == Side::Backward)
      if (llvm::Error error = checkSavedOverlaps(*saved))
        return error;
    if (!outputs_.empty())
      if (llvm::Error error = placeOutputs(
              schedule_, inputs_, outputs_, [&](auto visit) { forEachSaved(saved, visit); },
              placed_))
        return error;
    return checkStatics();
  }

  /// Calls `visit` with what a backward is given by its forward.
  void forEachSaved(const Block *slab,
                    llvm::function_ref<void(const std::string &, ByteRange)> visit) const {
    if (side_ == Side::Forward)
      return;
    for (const PlannedStorage &storage : schedule_.storages)
      if (const std::byte *begin = savedAddress(*slab, storage))
        visit(storage.name, {begin, size_t(storage.bytes)});
  }

  /// What is saved is an argument of the backward, too: none of its inputs may share bytes with it
  /// if one of the two is written.
  llvm::Error checkSavedOverlaps(const Block &slab) const {
    if (schedule_.writtenInputs.empty())
      return llvm::Error::success();
    for (uint32_t i = 0; i < schedule_.storages.size(); ++i) {
      const PlannedStorage &saved = schedule_.storages[i];
      const std::byte *begin = savedAddress(slab, saved);
      if (!begin)
        continue;
      auto isShared = [&](const std::byte *other, size_t bytes, bool isWritten) {
        return (saved.isWritten || isWritten) && bytes != 0 && other < begin + saved.bytes &&
               begin < other + bytes;
      };
      for (unsigned input = 0; input < inputs_.size(); ++input) {
        const Place &place = schedule_.inputPlaces[input];
        if (!place.isTensor())
          continue;
        const Tensor &tensor = *inputs_[input].asTensor();
        if (isShared(tensor.data(), tensor.extentBytes(),
                     schedule_.storages[place.storage].isWritten))
          return makeError(text(input) + ": it shares memory with what is saved for '" +
                           saved.name + "', and one of them is written");
      }
      for (uint32_t k = 0; k < i; ++k) {
        const PlannedStorage &other = schedule_.storages[k];
        if (const std::byte *at = savedAddress(slab, other);
            at && isShared(at, other.bytes, other.isWritten))
          return makeError("what is saved for '" + saved.name + "' and for '" + other.name +
                           "' shares memory, and one of them is written");
      }
    }
    return llvm::Error::success();
  }

  /// Where `storage` is if it holds bytes that are saved in `slab`, else null.
  static const std::byte *savedAddress(const Block &slab, const PlannedStorage &storage) {
    if (storage.bytes == 0)
      return nullptr;
    if (storage.space == Space::Saved)
      return slab.savedTensors[storage.index].data;
    if (storage.space == Space::Slab && storage.isForwards)
      return slab.base(storage.device) + storage.offset;
    if (storage.space == Space::ForwardResults) {
      if (const PlacedResult *placed = findPlaced(slab.savedPlaced, storage.index))
        return placed->tensor.data;
      return slab.forwardResults->base(storage.device) + storage.offset;
    }
    return nullptr;
  }

  //===--- Leases ---------------------------------------------------------===//

  /// Under the lock, once a call. Nothing is allocated for arguments that do not fit.
  llvm::Error lease(BlockRef &slab) {
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

  /// What the caller's graph uses of the program.
  void keepForCapture() const {
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

  /// A capture holds neither what another device does nor what the host waits for.
  llvm::Error checkCapturable() const {
    for (const Step &step : schedule_.steps)
      if (step.crossesDevices || step.device != 0)
        return inStep(step, makeDeviceError(DeviceErrorKind::NotCapturable,
                                            "the host waits for what is done on several devices, "
                                            "which is not capturable"));
    return llvm::Error::success();
  }

  /// False if the caller gave memory for all that would lie in a set of results.
  bool needsResults() const {
    return placed_.empty() || schedule_.hasTemporariesInResults ||
           llvm::any_of(schedule_.resultPlans, [&](const ResultPlan &plan) {
             return plan.place.isTensor() &&
                    schedule_.storages[plan.place.storage].space == Space::Results &&
                    !findPlaced(placed_, plan.place.storage);
           });
  }

  /// With StaticMove::Error: are static arguments where they were at the first call?
  llvm::Error checkStatics() {
    if (program_.options_.onStaticMove != StaticMove::Error)
      return llvm::Error::success();
    bool isFirst = plan_.staticAddresses.empty();
    plan_.staticAddresses.resize(inputs_.size());
    for (unsigned i = 0; i < inputs_.size(); ++i) {
      const Place &place = schedule_.inputPlaces[i];
      if (!place.isTensor() || !schedule_.storages[place.storage].isStatic)
        continue;
      std::byte *&known = plan_.staticAddresses[i];
      if (isFirst)
        known = bound().arguments[i].address;
      else if (known != bound().arguments[i].address)
        return makeError(text(i) + " is static, but its storage is another than at the first call");
    }
    return llvm::Error::success();
  }

  /// Nothing to wait for while the caller captures: the caller orders what is captured.
  llvm::Error acquire() {
    if (isCaptured_)
      return llvm::Error::success();
    for (Block *block : blocks())
      if (llvm::Error error = block->lastUse().acquire(stream_))
        return error;
    if (schedule_.generators.empty())
      return llvm::Error::success();
    return generatorUse_.begin(*program_.options_.generators, stream_);
  }

  llvm::Error release() {
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

  llvm::SmallVector<Block *, 4> blocks() const {
    llvm::SmallVector<Block *, 4> blocks = {lane_->arena.get()};
    if (results_)
      blocks.push_back(results_.get());
    if (!variant_.noSlab)
      blocks.push_back(slab_);
    if (side_ == Side::Backward && slab_->forwardResults)
      blocks.push_back(slab_->forwardResults.get());
    return blocks;
  }

  //===--- Addresses ------------------------------------------------------===//

  void setBases() {
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

  void setSavedAddresses() {
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

  /// Copies arguments below the minimum alignment to where kernels can use them.
  llvm::Error alignArguments() {
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

  llvm::Error copyBackAligned() {
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

  const DeviceRef &deviceOf(const Place &place) const {
    return program_.devices_[schedule_.storages[place.storage].device];
  }

  //===--- Steps ----------------------------------------------------------===//

  llvm::Error runSteps() {
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

  llvm::Error runStep(uint32_t index) {
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

  llvm::Error poison(uint32_t index, Stream &stream) {
    for (uint32_t i : schedule_.deadAfter[index]) {
      const PlannedStorage &storage = schedule_.storages[i];
      if (storage.device == schedule_.steps[index].device)
        if (llvm::Error error = stream.fill(bases_.address(i), 0xff, storage.bytes))
          return error;
    }
    return llvm::Error::success();
  }

  static llvm::Error inStep(const Step &step, llvm::Error error) {
    std::optional<DeviceErrorKind> kind = deviceErrorKind(error);
    std::string text = step.text + ": " + errorText(std::move(error));
    return kind ? makeDeviceError(*kind, text) : makeError(text);
  }

  //===--- Regions --------------------------------------------------------===//

  llvm::Error runRegion(const ScheduledRegion &region) {
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

  /// Builds the graph, and runs the region eagerly as this call.
  llvm::Error runFirst(const ScheduledRegion &region) {
    GraphEntryRef entry;
    llvm::Expected<bool> isBuilt = captured(region, [&] { return build(region, entry); });
    if (!isBuilt) {
      forgetGraph(region);
      return isBuilt.takeError();
    }
    if (!*isBuilt && program_.options_.onCaptureFailure == CaptureFailure::Error)
      return captureError();
    if (llvm::Error error = call(hooks().beforeWarmUp, region)) {
      forgetGraph(region);
      return error;
    }
    llvm::Error error = runEagerly(region);
    llvm::Error hookError = call(hooks().afterWarmUp, region, !error);
    if (!error)
      return hookError;
    llvm::consumeError(std::move(hookError));
    return error;
  }

  /// A later call begins as the first one did.
  void forgetGraph(const ScheduledRegion &region) const {
    region.cache->eraseIf([key = keyOf(region)](const GraphKey &other) { return other == key; });
  }

  const RegionHooks &hooks() const { return program_.options_.hooks; }

  template <typename Hook, typename... Args>
  llvm::Error call(const Hook &hook, const ScheduledRegion &region, Args... args) const {
    if (!hook)
      return llvm::Error::success();
    return hook({side_, region.id, region.numOps, program_.devices_.front()->device()}, args...);
  }

  /// Does `capture`, which returns whether it succeeded, between the hooks. Errors: of a hook.
  llvm::Expected<bool> captured(const ScheduledRegion &region,
                                llvm::function_ref<bool()> capture) const {
    if (llvm::Error error = call(hooks().beforeCapture, region))
      return error;
    bool succeeded = capture();
    if (llvm::Error error = call(hooks().afterCapture, region, succeeded))
      return error;
    return succeeded;
  }

  GraphRequest requestFor(const ScheduledRegion &region) const {
    return {program_.devices_.front(),    schedule_, region, bases_, bound().scalars,
            program_.options_.checkGraphs};
  }

  /// Lets the graph of `entry` hold buffers and scalars as they are in this call. False if that
  /// failed, as a capture may.
  llvm::Expected<bool> follow(const ScheduledRegion &region, const GraphKey &key, GraphEntry &entry,
                              Frame::Recent &recent) {
    if (recent.isUpToDate(bound(), bases_) && entry.scalars.empty())
      return true;
    llvm::SmallVector<unsigned, 4> changed;
    entry.findChanged(bases_, bound().scalars, changed);
    if (!changed.empty()) {
      llvm::Expected<bool> isPatched = patch(region, entry, changed);
      if (!isPatched)
        return isPatched;
      if (!*isPatched) {
        llvm::Expected<bool> isRight =
            captured(region, [&] { return recapture(region, key, entry); });
        if (!isRight)
          forgetGraph(region);
        if (!isRight || !*isRight)
          return isRight;
      }
    }
    recent.note(bound(), bases_);
    return true;
  }

  /// Finds out what words of the graph are what, unless that is known. False if that failed, as a
  /// capture may.
  llvm::Expected<bool> explain(const ScheduledRegion &region, GraphEntry &entry) {
    if (entry.isExplained())
      return true;
    std::optional<llvm::Error> error;
    llvm::Expected<bool> isExplained = captured(region, [&] {
      error.emplace(entry.explain(requestFor(region)));
      return !*error;
    });
    if (!isExplained) {
      forgetGraph(region);
      if (error)
        llvm::consumeError(std::move(*error));
      return isExplained;
    }
    if (*isExplained)
      return true;
    std::optional<DeviceErrorKind> kind = deviceErrorKind(*error);
    if (kind != DeviceErrorKind::OutOfMemory && kind != DeviceErrorKind::CaptureInvalidated &&
        kind != DeviceErrorKind::NotCapturable)
      return std::move(*error);
    llvm::consumeError(std::move(*error));
    return false;
  }

  /// False if one of the sources cannot be patched.
  llvm::Expected<bool> patch(const ScheduledRegion &region, GraphEntry &entry,
                             llvm::ArrayRef<unsigned> changed) {
    llvm::Expected<bool> isExplained = explain(region, entry);
    if (!isExplained || !*isExplained)
      return isExplained;
    bool canPatch = true;
    for (unsigned source : changed) {
      llvm::StringRef problem = entry.problemOfChange(source, bases_, bound().scalars);
      if (problem.empty())
        continue;
      canPatch = false;
      if (source < entry.buffers.size())
        program_.remarkUnpatchable(variant_, region,
                                   schedule_.storages[entry.buffers[source].storage].name, problem);
    }
    if (!canPatch)
      return false;
    if (program_.options_.verifyPatches && !std::exchange(entry.isVerified, true))
      if (llvm::Error error = verifyPatches(requestFor(region), entry, stream_))
        return error;
    llvm::Expected<size_t> nodes = entry.patch(bases_, bound().scalars, changed);
    if (!nodes)
      return nodes.takeError();
    region.cache->countPatch(*nodes);
    return true;
  }

  /// Notes what graphs of `region` cannot follow: they are found by it from now on.
  void noteFacts(const ScheduledRegion &region, const GraphEntry &entry) const {
    for (unsigned i = 0; i < entry.buffers.size(); ++i) {
      Space space = schedule_.storages[entry.buffers[i].storage].space;
      if ((space == Space::Results || space == Space::ForwardResults) &&
          (!entry.isExplained() || !entry.problem(i).empty()))
        region.facts->isTiedToResults = true;
    }
    for (unsigned i = 0; i < entry.scalars.size(); ++i)
      if (!entry.isExplained() || !entry.problem(entry.buffers.size() + i).empty())
        region.facts->setKeyed(i);
  }

  /// The graph cannot follow by changed pointers: it is captured where everything is now.
  bool recapture(const ScheduledRegion &region, const GraphKey &key, GraphEntry &entry) {
    region.cache->countRecapture();
    BuildFailure failure;
    llvm::Error error = entry.rebuild(requestFor(region), failure);
    if (!error)
      return true;
    region.cache->countFailure();
    failure_ = llvm::toString(std::move(error));
    region.cache->eraseIf([&](const GraphKey &other) { return other == key; });
    return false;
  }

  /// Of a capture that failed.
  llvm::Error captureError() const {
    return makeDeviceError(DeviceErrorKind::NotCapturable, failure_);
  }

  GraphKey keyOf(const ScheduledRegion &region) const {
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

  static GraphEntryRef findEntry(const ScheduledRegion &region, const GraphKey &key,
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

  /// Builds and caches the graph of `region`. False if that failed. Unless that is an error of the
  /// call, or another thread or a want of memory was to blame, it is remarked upon and the region
  /// changed for later calls.
  bool build(const ScheduledRegion &region, GraphEntryRef &entry) {
    auto begin = std::chrono::steady_clock::now();
    for (unsigned attempt = 0;; ++attempt) {
      BuildFailure failure;
      llvm::Expected<GraphEntryRef> made = buildGraph(requestFor(region), failure);
      if (made) {
        entry = std::move(*made);
        noteFacts(region, *entry);
        GraphKey key = keyOf(region);
        std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        region.cache->insert(key, entry, took.count());
        Frame::Recent &recent = frame_->recentOf(region);
        recent.key = key;
        recent.entry = entry;
        recent.note(bound(), bases_);
        return true;
      }
      region.cache->countFailure();
      llvm::Error error = made.takeError();
      std::optional<DeviceErrorKind> kind = deviceErrorKind(error);
      failure_ = llvm::toString(std::move(error));
      bool isOutOfMemory = kind == DeviceErrorKind::OutOfMemory;
      bool isPassing = isOutOfMemory || kind == DeviceErrorKind::CaptureInvalidated;
      if (isPassing && attempt == 0) {
        if (isOutOfMemory)
          program_.trim();
        continue;
      }
      isPassing = isPassing && program_.isStillPassing(variant_, region.uid);
      if (!isPassing && program_.options_.onCaptureFailure != CaptureFailure::Error)
        program_.replaceRegion(variant_, side_, region.uid,
                               isOutOfMemory ? std::nullopt : failure.step, failure_);
      return false;
    }
  }

  llvm::Error runEagerly(const ScheduledRegion &region) {
    region.cache->countEagerRun();
    for (uint32_t i = region.begin; i < region.end; ++i)
      if (llvm::Error error = runStep(i))
        return error;
    return llvm::Error::success();
  }

  //===--- Results --------------------------------------------------------===//

  void fillSaved() {
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

  void giveResults(llvm::SmallVectorImpl<Value> &results) const {
    ValueSource source{schedule_, program_.devices_, inputs_, slab_, results_.get(), placed_};
    for (const ResultPlan &plan : schedule_.resultPlans)
      results.push_back(source.value(plan, bound().scalars));
  }

  ProgramImpl &program_;
  Variant &variant_;
  const Side side_;
  SidePlan &plan_;
  const Schedule &schedule_;
  Stream &stream_;
  llvm::ArrayRef<Value> inputs_;
  llvm::ArrayRef<Tensor> outputs_; ///< empty, or by result

  const bool isCaptured_;    ///< the stream, by the caller
  bool isTransient_ = false; ///< the variant
  Lane *lane_ = nullptr;
  Frame *frame_ = nullptr; ///< of the lane
  BlockRef results_;       ///< null if the caller gave memory for all of them
  llvm::SmallVector<PlacedResult, 1> placed_;
  Block *slab_ = nullptr; ///< the variant's, or the saved state's, which the caller holds
  Bases bases_;
  llvm::SmallVector<StorageRef, 1> aligned_;
  Generators::Use generatorUse_;
  std::string failure_;
};

} // namespace rondo

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
