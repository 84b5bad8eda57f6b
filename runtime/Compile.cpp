//===- Compile.cpp - From a pair to a program -----------------------------===//

#include "MemoryPlan.h"
#include "ProgramImpl.h"
#include "RegionBuffers.h"

#include "llvm/ADT/STLExtras.h"

#include <chrono>

using namespace rondo;

static std::vector<ParameterInfo> inputsOf(const Trace &trace, Side side) {
  std::vector<ParameterInfo> infos;
  for (unsigned i = 0; i < trace.arguments().size(); ++i) {
    ValueId value = trace.arguments()[i];
    if (side == Side::Forward || !trace.savedArgument(i))
      infos.push_back({trace.name(value).str(), trace.valuePath(value).str(), trace.type(value),
                       trace.tags(value), false});
  }
  return infos;
}

static std::vector<ParameterInfo> resultsOf(const Trace &trace, Side side) {
  std::vector<ParameterInfo> infos;
  const Op *end = trace.terminator();
  for (unsigned i = 0; end && i < end->operands().size(); ++i) {
    if (side == Side::Forward && trace.savedReturn(i))
      continue;
    ParameterInfo info;
    if (ValueId value = end->operand(i))
      info = {trace.name(value).str(), {}, trace.type(value), trace.tags(value), false};
    else
      info.isMissing = true;
    infos.push_back(std::move(info));
  }
  return infos;
}

ProgramImpl::ProgramImpl(TracePair pair, llvm::ArrayRef<DeviceRef> devices,
                         llvm::ArrayRef<const Executor *> executors, Pipeline pipeline,
                         ProgramOptions options)
    : devices_(devices.begin(), devices.end()), executors_(executors.begin(), executors.end()),
      pipeline_(std::move(pipeline)), options_(std::move(options)),
      hasBackward_(pair.hasBackward()), pair_(std::move(pair)),
      ownDomain_(CaptureDomain::create("program")), variants_(options_.maxVariants) {
  for (Side side : {Side::Forward, Side::Backward}) {
    if (side == Side::Backward && !hasBackward_)
      continue;
    const Trace &trace = pair_->trace(side);
    inputs_[unsigned(side)] = inputsOf(trace, side);
    results_[unsigned(side)] = resultsOf(trace, side);
  }
  llvm::SmallVector<std::string, 4> symbols;
  for (const ParameterInfo &info : inputs_[0])
    info.type.collectSymbols(symbols);
  symbols_.assign(symbols.begin(), symbols.end());
  llvm::sort(symbols_);
  symbols_.erase(std::unique(symbols_.begin(), symbols_.end()), symbols_.end());
  if (!options_.generators && !devices_.empty())
    options_.generators = std::make_shared<Generators>(devices_.front());
  options_.maxLanes = std::max(options_.maxLanes, 1u);
}

/// What was submitted needs the kernels. Every call uses the arena of its lane.
ProgramImpl::~ProgramImpl() {
  auto retired = std::make_shared<Retired>();
  retired->devices = devices_;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    waitForLane(lock, [&] {
      return llvm::none_of(lanes_, [](const auto &lane) { return lane->isBusy.load(); });
    });
    for (const auto &lane : lanes_) {
      llvm::append_range(retired->awaited, lane->arenas);
      for (std::unique_ptr<Stream> &stream : lane->streams)
        if (stream)
          retired->streams.push_back(std::move(stream));
    }
  }
  for (const auto &cache : caches_)
    cache->eraseIf([&](const GraphKey &key) { return bool(variants_.find(key.program)); },
                   retired->entries);
  variants_.takeAll(retired->variants);
  retired->variants.push_back(std::move(latest_));
  retire(std::move(retired));
}

llvm::Error ProgramImpl::prepare() {
  if (devices_.empty() || llvm::is_contained(devices_, nullptr))
    return makeError("a program needs a device");
  if (!pipeline_)
    return makeError("a program needs a pipeline");
  for (size_t i = 0; i < devices_.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (devices_[i]->device() == devices_[k]->device())
        return makeError("device " + deviceName(devices_[i]->device()) + " is given twice");
  if (options_.consumeSaved && options_.verifyPatches)
    return makeError(
        "'consumeSaved' and 'verifyPatches' exclude each other: to verify, regions run "
        "twice on what is saved");
  if (llvm::Error error = checkBuckets(options_, symbols_, inputs_[0], results_[0], hasBackward_,
                                       devices_.front()->device()))
    return error;
  if (!symbols_.empty())
    return llvm::Error::success();
  llvm::Expected<VariantRef> variant = makeVariant({});
  if (!variant)
    return variant.takeError();
  latest_ = *variant;
  variants_.insert({}, std::move(*variant), 0);
  pair_.reset();
  return llvm::Error::success();
}

llvm::Expected<VariantRef> ProgramImpl::variantFor(llvm::ArrayRef<Value> inputs) {
  llvm::Expected<SymbolBindings> bindings = bindSymbols(inputs_[0], Side::Forward, inputs);
  if (!bindings)
    return bindings.takeError();
  if (llvm::Error error = roundUpToBuckets(options_, *bindings))
    return error;
  std::vector<int64_t> sizes;
  for (const std::string &symbol : symbols_)
    sizes.push_back(bindings->lookup(symbol));
  // One thread compiles at a time; the others go on calling what is compiled.
  std::unique_lock<std::mutex> compiling(compileMutex_, std::defer_lock);
  for (bool mayCompile : {false, true}) {
    if (mayCompile)
      compiling.lock();
    std::lock_guard<std::mutex> lock(mutex_);
    if (VariantRef variant = variants_.visit(sizes)) {
      latest_ = variant;
      return variant;
    }
  }
  return compileVariant(*bindings, sizes);
}

llvm::Expected<VariantRef> ProgramImpl::variantOf(const SavedState &saved) const {
  if (!hasBackward_)
    return makeError("the program has no backward");
  if (!saved.isValid())
    return makeError("the SavedState is empty: it was consumed, or no forward filled it");
  if (symbols_.empty() && latest_->uid == saved.block_->program)
    return latest_; // the only one
  std::lock_guard<std::mutex> lock(mutex_);
  if (VariantRef variant = variants_.find(saved.block_->program)) // which the state keeps there
    return variant;
  return makeError("the SavedState is of another program");
}

/// Compiles the pair for `bindings`, which are `sizes`, and lets go of what is too much then.
llvm::Expected<VariantRef> ProgramImpl::compileVariant(const SymbolBindings &bindings,
                                                       const std::vector<int64_t> &sizes) {
  auto begin = std::chrono::steady_clock::now();
  llvm::Expected<VariantRef> variant = makeVariant(bindings);
  if (!variant)
    return variant.takeError();
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::vector<VariantRef> surplus;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    variants_.insert(sizes, *variant, took.count());
    latest_ = *variant;
    if (latest_->isTransient)
      remarkOnStorm();
    variants_.takeSurplus(surplus);
    for (const VariantRef &gone : surplus)
      forget(*gone);
  }
  if (surplus.empty())
    return variant;
  // What was submitted needs the kernels, and blocks of the variant know where that was.
  auto retired = std::make_shared<Retired>();
  retired->devices = devices_;
  for (const VariantRef &gone : surplus)
    for (const BlockPool *pool : gone->pools())
      llvm::append_range(retired->awaited, pool->blocks());
  retired->variants = std::move(surplus);
  retire(std::move(retired));
  return variant;
}

void ProgramImpl::remarkOnStorm() {
  if (std::exchange(hasRemarkedOnStorm_, true))
    return;
  auto text = [](uint64_t number) { return std::to_string(number); };
  remarks_.push_back(
      "warning: a storm of sizes: " + text(variants_.numNewLately()) +
      " of the last 64 calls brought sizes that the program is not compiled for, " +
      text(variants_.numNew()) + " since it was made, and it keeps " +
      text(variants_.maxVariants()) +
      ": calls with new sizes run eagerly, without graphs, until the sizes come again; round sizes "
      "up to a few, or raise ProgramOptions::maxVariants");
}

//===----------------------------------------------------------------------===//
// Variants that go
//===----------------------------------------------------------------------===//

/// Lets go of what there is beside `variant` itself, which no call uses.
void ProgramImpl::forget(const Variant &variant) {
  for (const auto &cache : caches_)
    cache->eraseIf([&](const GraphKey &key) { return key.program == variant.uid; });
  for (const auto &lane : lanes_)
    for (Side side : {Side::Forward, Side::Backward})
      lane->frames.erase({variant.uid, unsigned(side)});
  for (uint32_t region = 0; region < variant.nextRegion; ++region) {
    remarked_.erase({variant.uid, region});
    passingFailures_.erase({variant.uid, region});
  }
  dropUnusedCaches(variant);
}

static bool usesCache(const Variant &variant, const std::shared_ptr<GraphCache> &cache) {
  auto isIn = [&](const ScheduledRegion &region) { return region.cache == cache; };
  return llvm::any_of(variant.forward.schedule.regions, isIn) ||
         (variant.backward && llvm::any_of(variant.backward->schedule.regions, isIn));
}

/// Lets go of the caches that only `variant` used, but for what they counted: a pipeline may make a
/// transform, and so a domain, for each variant.
void ProgramImpl::dropUnusedCaches(const Variant &variant) {
  llvm::erase_if(caches_, [&](const std::shared_ptr<GraphCache> &cache) {
    bool isUnused = usesCache(variant, cache);
    variants_.forEach([&](const Variant &other) { isUnused &= !usesCache(other, cache); });
    if (!isUnused)
      return false;
    CacheCounters counters = cache->counters();
    counters.entries = counters.bytes = 0;
    pastCounters_ += counters;
    return true;
  });
}

//===----------------------------------------------------------------------===//
// Making a variant
//===----------------------------------------------------------------------===//

/// A number that no other variant of the process has.
static uint64_t nextVariant() {
  static std::atomic<uint64_t> next = 1;
  return next.fetch_add(1);
}

llvm::Expected<VariantRef> ProgramImpl::makeVariant(const SymbolBindings &bindings) {
  llvm::Expected<TracePair> pair = pipeline_(pair_->clone(), bindings);
  if (!pair)
    return pair.takeError();
  if (pair->hasBackward() != hasBackward_)
    return makeError("the pipeline gave or took the backward");
  auto variant = std::make_shared<Variant>();
  variant->uid = nextVariant();
  LoweringContext context{devices_, executors_, nullptr,
                          [&](bool withByte) { return costs(withByte); }, options_.consumeSaved};
  for (Side side : {Side::Forward, Side::Backward}) {
    if (side == Side::Backward && !hasBackward_)
      continue;
    llvm::Expected<Schedule> schedule = lower(*pair, side, context);
    if (!schedule)
      return schedule.takeError();
    if (llvm::Error error = checkSignature(*schedule, bindings))
      return error;
    planMemory(*schedule, devices_.size());
    addResultBuffers(*schedule);
    SidePlan &plan = side == Side::Forward ? variant->forward : variant->backward.emplace();
    plan.schedule = std::move(*schedule);
    if (llvm::Error error = finishSide(plan, *variant))
      return error;
    context.forward = &variant->forward.schedule;
  }
  llvm::Expected<Padding> padding =
      planPadding(options_, variant->forward.schedule, inputs_[0], results_[0], devices_);
  if (!padding)
    return padding.takeError();
  variant->padding = std::move(*padding);
  llvm::ArrayRef<uint64_t> slabBytes = variant->forward.schedule.slabBytes;
  if (!hasBackward_ && llvm::all_of(slabBytes, [](uint64_t bytes) { return bytes == 0; })) {
    llvm::Expected<BlockRef> none = createBlock(slabBytes);
    if (!none)
      return none.takeError();
    variant->noSlab = std::move(*none);
  }
  return variant;
}

llvm::Expected<BufferCosts> ProgramImpl::costs(bool withByte) {
  if (options_.costs)
    return *options_.costs;
  if (!costs_ || (withByte && costs_->byte == 0)) {
    llvm::Expected<BufferCosts> measured = measureBufferCosts(devices_.front(), withByte);
    if (!measured)
      return measured;
    costs_ = *measured;
  }
  return *costs_;
}

/// Strides of fresh results are for passes to choose.
static bool isSameResult(const Type &a, const Type &b) {
  const TensorType *x = a.asTensor(), *y = b.asTensor();
  if (!x || !y)
    return a == b;
  return x->dtype == y->dtype && x->shape == y->shape && x->device == y->device;
}

llvm::Error ProgramImpl::checkSignature(const Schedule &schedule,
                                        const SymbolBindings &bindings) const {
  unsigned side = unsigned(schedule.side);
  auto changed = [&](const llvm::Twine &what) {
    return makeError("the pipeline changed what the " + sideName(schedule.side) +
                     " takes or gives: " + what);
  };
  if (schedule.inputs.size() != inputs_[side].size() ||
      schedule.results.size() != results_[side].size())
    return changed(llvm::Twine(inputs_[side].size()) + " arguments and " +
                   llvm::Twine(results_[side].size()) + " results became " +
                   llvm::Twine(schedule.inputs.size()) + " and " +
                   llvm::Twine(schedule.results.size()));
  for (unsigned i = 0; i < schedule.inputs.size(); ++i) {
    Type before = inputs_[side][i].type.substitute(bindings);
    if (before != schedule.inputs[i].type)
      return changed("argument #" + llvm::Twine(i) + " '%" + inputs_[side][i].name + "' had type " +
                     before.str() + ", now it has " + schedule.inputs[i].type.str());
  }
  for (unsigned i = 0; i < schedule.results.size(); ++i) {
    const ParameterInfo &old = results_[side][i], &now = schedule.results[i];
    Type before = old.type.substitute(bindings);
    if (old.isMissing != now.isMissing || (!old.isMissing && !isSameResult(before, now.type)))
      return changed("result #" + llvm::Twine(i) + " was " +
                     (old.isMissing ? "missing" : before.str()) + ", now it is " +
                     (now.isMissing ? "missing" : now.type.str()));
  }
  return llvm::Error::success();
}

llvm::Error ProgramImpl::finishSide(SidePlan &plan, Variant &variant) {
  Schedule &schedule = plan.schedule;
  if (options_.poison)
    findDeadStorages(schedule);
  for (const std::string &name : schedule.generators) {
    llvm::Expected<RNGState *> state = options_.generators->state(name);
    if (!state)
      return state.takeError();
    plan.generators.push_back(*state);
  }
  for (ScheduledRegion &region : schedule.regions) {
    region.uid = variant.nextRegion++;
    for (const RegionBuffer &buffer : region.buffers) // by policy, if not by tag
      schedule.storages[buffer.storage].isStatic |= buffer.policy == BufferPolicy::Static;
    if (!region.domain)
      region.domain = ownDomain_;
    region.cache = GraphCache::of(*region.domain, *devices_.front());
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!llvm::is_contained(caches_, region.cache))
        caches_.push_back(region.cache);
    }
    for (uint32_t i = region.begin; i < region.end; ++i)
      region.isEager |= schedule.steps[i].device != 0 || schedule.steps[i].crossesDevices;
  }
  plan.regions = std::make_shared<const std::vector<ScheduledRegion>>(schedule.regions);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

CacheCounters ProgramImpl::counters() const {
  std::lock_guard<std::mutex> lock(mutex_);
  CacheCounters sum = pastCounters_;
  for (const auto &cache : caches_)
    sum += cache->counters();
  return sum;
}

std::vector<EntryStatistics> ProgramImpl::graphs() const {
  std::vector<EntryStatistics> all;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto &cache : caches_)
    for (EntryStatistics &entry : cache->entries())
      all.push_back(std::move(entry));
  return all;
}

void ProgramImpl::forEachGraph(llvm::function_ref<void(Graph &, GraphExec &)> visit) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto &cache : caches_)
    cache->forEachGraph(visit);
}

std::vector<RegionInfo> ProgramImpl::regions() const {
  std::vector<RegionInfo> infos;
  std::lock_guard<std::mutex> lock(mutex_);
  for (Side side : {Side::Forward, Side::Backward}) {
    if (!latest_ || (side == Side::Backward && !latest_->backward))
      continue;
    const SidePlan &plan = latest_->side(side);
    for (const ScheduledRegion &region : *plan.regions) {
      RegionInfo info{side, region.id, region.numOps, {}, 0};
      for (const RegionBuffer &buffer : region.buffers) {
        const PlannedStorage &storage = plan.schedule.storages[buffer.storage];
        if (!storage.isCallers())
          continue;
        info.buffers.push_back({storage.name, buffer.policy, buffer.why, storage.bytes,
                                buffer.consumers, buffer.isWritten});
        if (buffer.policy == BufferPolicy::Copied)
          info.copiedBytes +=
              storage.bytes * (unsigned(buffer.isRead) + unsigned(buffer.isWritten));
      }
      infos.push_back(std::move(info));
    }
  }
  return infos;
}

MemoryInfo ProgramImpl::memory(Side side) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!latest_ || (side == Side::Backward && !latest_->backward))
    return {};
  return latest_->side(side).schedule.memory;
}

MemoryPlanInfo ProgramImpl::memoryPlan(Side side) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!latest_ || (side == Side::Backward && !latest_->backward))
    return {};
  return describeMemory(latest_->side(side).schedule);
}

std::vector<std::string> ProgramImpl::takeRemarks() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(remarks_, {});
}
