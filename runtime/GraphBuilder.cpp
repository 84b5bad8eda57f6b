//===- GraphBuilder.cpp - A region becomes a graph ------------------------===//
//
// Steps go to the graph in program order, each behind those it has to wait for: the ones that
// touched its bytes last. What counts is bytes after memory planning, so that two values which
// share memory are ordered though no data flows between them. Inputs that may be anywhere are
// copied into planned memory by nodes whose pointers are changed before each launch; those that the
// region writes are copied back.
//
//   copy x -> x'         (in: source patched)
//   step 0: mm(x', w)    w static: its address is in the node
//   step 1: add_(x', …)
//   copy x' -> x         (out: destination patched)
//
//===----------------------------------------------------------------------===//

#include "GraphBuilder.h"

#include "HazardTracker.h"
#include "OrderChecker.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

std::byte *Bases::address(const PlannedStorage &storage) const {
  switch (storage.space) {
  case Space::Argument:
    return arguments[storage.index].address;
  case Space::Saved:
    return saved[storage.index];
  case Space::Arena:
    return arena[storage.device] + storage.offset;
  case Space::Slab:
    return slab[storage.device] + storage.offset;
  case Space::Results:
    return results[storage.device] + storage.offset;
  case Space::ForwardResults:
    return forwardResults[storage.device] + storage.offset;
  }
  return nullptr;
}

StepArgs::StepArgs(const Schedule &schedule, const Step &step, const Bases &bases, Slot *scalars,
                   const llvm::DenseMap<uint32_t, uint32_t> *staged) {
  auto addressOf = [&](uint32_t storage) {
    if (staged)
      if (auto found = staged->find(storage); found != staged->end())
        storage = found->second;
    return bases.address(schedule.storages[storage]);
  };
  for (const Place &place : step.operands) {
    Slot &slot = operands_.emplace_back();
    if (place.isTensor())
      slot.address = addressOf(place.storage) + place.byteOffset;
    else if (place.isScalar())
      slot = scalars[place.scalar];
  }
  for (const Place &place : step.results) {
    Slot &slot = results_.emplace_back();
    if (place.isTensor())
      slot.address = addressOf(place.storage) + place.byteOffset;
    else if (place.isScalar())
      slot.address = &scalars[place.scalar];
  }
  if (step.workspace >= 0)
    workspace_ = addressOf(step.workspace);
  for (unsigned generator : step.generators)
    generators_.push_back(bases.generators[generator]);
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

const GraphEntry::Static *GraphEntry::findMoved(const Schedule &schedule,
                                                const Bases &bases) const {
  for (const Static &input : statics)
    if (bases.address(schedule.storages[input.storage]) != input.address)
      return &input;
  return nullptr;
}

llvm::Error GraphEntry::launch(Stream &stream, const Schedule &schedule, const Bases &bases) {
  // The calls of one lane are the only ones that count here.
  uses.store(uses.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  for (Copy &copy : copies) {
    std::byte *address = bases.address(schedule.storages[copy.storage]);
    if (address == copy.address)
      continue;
    if (copy.in)
      if (llvm::Error error = exec->setCopy(copy.in, copy.staging, address, copy.bytes))
        return error;
    if (copy.out)
      if (llvm::Error error = exec->setCopy(copy.out, address, copy.staging, copy.bytes))
        return error;
    copy.address = address;
  }
  return exec->launchUncaptured(stream);
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

namespace {

/// Adds what a kernel submits to a graph, one node behind the other.
class GraphSink : public CommandSink {
public:
  GraphSink(DeviceRef device, Graph &graph) : device_(std::move(device)), graph_(graph) {}

  /// Dependencies of what comes next; afterwards, the nodes that nothing waits for yet.
  llvm::SmallVector<GraphNodeId, 4> frontier;

  DeviceAPI &device() override { return *device_; }
  llvm::Error launch(const KernelLaunch &launch) override {
    return advance(graph_.addKernel(launch, frontier));
  }
  llvm::Error fill(void *destination, uint8_t value, size_t bytes) override {
    return advance(graph_.addFill(destination, value, bytes, frontier));
  }
  llvm::Error copy(void *destination, const void *source, size_t bytes) override {
    return advance(graph_.addCopy(destination, source, bytes, frontier));
  }
  llvm::Error synchronize() override {
    return makeDeviceError(DeviceErrorKind::NotCapturable,
                           "it waits for the device, which is not possible in a graph");
  }
  /// A short capture of what the library submits.
  llvm::Error call(llvm::function_ref<llvm::Error(Stream &)> submit) override {
    if (!stream_) {
      llvm::Expected<std::unique_ptr<Stream>> made = device_->createStream();
      if (!made)
        return made.takeError();
      stream_ = std::move(*made);
    }
    if (llvm::Error error =
            stream_->beginCaptureToGraph(graph_, frontier, CaptureMode::ThreadLocal))
      return error;
    llvm::Error error = submit(*stream_);
    bool wasValid = stream_->captureStatus() == CaptureStatus::Active;
    llvm::SmallVector<GraphNodeId, 4> last;
    llvm::Error endError = stream_->endCaptureToGraph(last);
    if (error) { // the first is the one that matters
      llvm::consumeError(std::move(endError));
      return error;
    }
    if (endError && wasValid) // what it submitted is to blame, not another thread
      return makeDeviceError(DeviceErrorKind::NotCapturable, llvm::toString(std::move(endError)));
    if (endError)
      return endError;
    frontier.assign(last.begin(), last.end());
    return llvm::Error::success();
  }

private:
  llvm::Error advance(llvm::Expected<GraphNodeId> node) {
    if (!node)
      return node.takeError();
    frontier.assign(1, *node);
    return llvm::Error::success();
  }

  DeviceRef device_;
  Graph &graph_;
  std::unique_ptr<Stream> stream_;
};

class GraphBuilder {
public:
  GraphBuilder(const DeviceRef &device, const Schedule &schedule, const ScheduledRegion &region,
               const Bases &bases, llvm::ArrayRef<Slot> scalars, bool check, BuildFailure &failure)
      : device_(device), schedule_(schedule), region_(region), bases_(bases),
        scalars_(scalars.begin(), scalars.end()), check_(check), failure_(failure),
        entry_(std::make_shared<GraphEntry>()) {}

  llvm::Expected<GraphEntryRef> run() {
    llvm::Expected<std::unique_ptr<Graph>> graph = device_->createGraph();
    if (!graph)
      return graph.takeError();
    entry_->graph = std::move(*graph);
    GraphSink sink(device_, *entry_->graph);
    if (llvm::Error error = addCopiesIn(sink))
      return error;
    for (uint32_t i = region_.begin; i < region_.end; ++i)
      if (llvm::Error error = addStep(sink, i))
        return error;
    if (llvm::Error error = addCopiesOut(sink))
      return error;
    for (uint32_t storage : region_.staticInputs)
      entry_->statics.push_back({storage, bases_.address(schedule_.storages[storage])});
    if (check_)
      if (llvm::Error error = checkOrder(*entry_->graph, touched_))
        return error;
    llvm::Expected<std::unique_ptr<GraphExec>> exec = entry_->graph->instantiate();
    if (!exec)
      return exec.takeError();
    entry_->exec = std::move(*exec);
    return entry_;
  }

private:
  struct Bytes {
    uint64_t begin, end;
    bool isWrite;
  };

  /// Adds what `submit` puts into the sink behind all that touched `bytes` before.
  llvm::Error add(GraphSink &sink, llvm::ArrayRef<Bytes> bytes,
                  llvm::function_ref<llvm::Error()> submit) {
    llvm::SmallVector<uint32_t, 8> dependencies;
    for (const Bytes &range : bytes)
      hazards_.depend(range.begin, range.end, range.isWrite, dependencies);
    llvm::sort(dependencies);
    dependencies.erase(std::unique(dependencies.begin(), dependencies.end()), dependencies.end());
    sink.frontier.clear();
    for (uint32_t node : dependencies)
      sink.frontier.push_back(GraphNodeId(node));
    size_t first = entry_->graph->numNodes();
    if (llvm::Error error = submit())
      return error;
    size_t end = entry_->graph->numNodes();
    if (first == end) // it submitted nothing
      return llvm::Error::success();
    if (sink.frontier.size() != 1) {
      llvm::Expected<GraphNodeId> join = entry_->graph->addEmpty(sink.frontier);
      if (!join)
        return join.takeError();
      sink.frontier.assign(1, *join);
    }
    for (const Bytes &range : bytes) {
      hazards_.note(range.begin, range.end, range.isWrite, sink.frontier.front().index());
      if (check_)
        touched_.push_back(
            {GraphNodeId(first), sink.frontier.front(), range.begin, range.end, range.isWrite});
    }
    return llvm::Error::success();
  }

  static Bytes bytesAt(const void *address, size_t bytes, bool isWrite) {
    uint64_t begin = reinterpret_cast<uintptr_t>(address);
    return {begin, begin + bytes, isWrite};
  }

  llvm::Error addCopiesIn(GraphSink &sink) {
    for (const ScheduledRegion::Copied &input : region_.copied) {
      const PlannedStorage &storage = schedule_.storages[input.storage];
      GraphEntry::Copy copy{input.storage,
                            bases_.address(schedule_.storages[input.staging]),
                            storage.bytes,
                            {},
                            {},
                            bases_.address(storage)};
      staged_[input.storage] = input.staging;
      if (input.isRead && copy.bytes != 0) {
        auto submit = [&] { return sink.copy(copy.staging, copy.address, copy.bytes); };
        if (llvm::Error error = add(sink, bytesAt(copy.staging, copy.bytes, true), submit))
          return error;
        copy.in = sink.frontier.front();
        entry_->copiedBytes += copy.bytes;
      }
      entry_->copies.push_back(copy);
    }
    return llvm::Error::success();
  }

  llvm::Error addCopiesOut(GraphSink &sink) {
    for (size_t i = 0; i < region_.copied.size(); ++i) {
      GraphEntry::Copy &copy = entry_->copies[i];
      if (!region_.copied[i].isWritten || copy.bytes == 0)
        continue;
      auto submit = [&] { return sink.copy(copy.address, copy.staging, copy.bytes); };
      if (llvm::Error error = add(sink, bytesAt(copy.staging, copy.bytes, false), submit))
        return error;
      copy.out = sink.frontier.front();
      entry_->copiedBytes += copy.bytes;
    }
    return llvm::Error::success();
  }

  std::byte *stagedAddress(uint32_t storage) const {
    auto found = staged_.find(storage);
    return bases_.address(schedule_.storages[found == staged_.end() ? storage : found->second]);
  }

  llvm::Error addStep(GraphSink &sink, uint32_t index) {
    const Step &step = schedule_.steps[index];
    if (llvm::any_of(step.results, [](const Place &place) { return place.isScalar(); })) {
      failure_.step = index;
      return makeDeviceError(DeviceErrorKind::NotCapturable,
                             "it makes a host scalar, which a graph would freeze");
    }
    llvm::SmallVector<Bytes, 8> bytes;
    for (const Access &access : step.accesses)
      bytes.push_back(bytesAt(stagedAddress(access.storage) + access.begin,
                              access.end - access.begin, access.isWrite));
    // Resources lie where no memory is.
    for (const auto &[resource, isWrite] : step.resources)
      bytes.push_back({~uint64_t(0) - 2 - resource, ~uint64_t(0) - 1 - resource, isWrite});
    StepArgs args(schedule_, step, bases_, scalars_.data(), &staged_);
    auto submit = [&] { return step.kernel->enqueue(sink, args.args()); };
    size_t first = entry_->graph->numNodes();
    if (llvm::Error error = add(sink, bytes, submit)) {
      failure_.step = index;
      return error;
    }
    entry_->kernels.push_back(step.kernel);
    if (first < entry_->graph->numNodes())
      entry_->nodes.push_back({GraphNodeId(first), step.text});
    return schedule_.deadAfter.empty() ? llvm::Error::success() : addPoison(sink, index);
  }

  /// Overwrites what is dead after step `index`.
  llvm::Error addPoison(GraphSink &sink, uint32_t index) {
    for (uint32_t i : schedule_.deadAfter[index]) {
      const PlannedStorage &storage = schedule_.storages[i];
      bool isCopiedBack = llvm::any_of(region_.copied, [&](const ScheduledRegion::Copied &input) {
        return input.staging == i && input.isWritten;
      });
      if (isCopiedBack)
        continue;
      std::byte *address = bases_.address(storage);
      auto submit = [&] { return sink.fill(address, 0xff, storage.bytes); };
      if (llvm::Error error = add(sink, bytesAt(address, storage.bytes, true), submit))
        return error;
    }
    return llvm::Error::success();
  }

  const DeviceRef &device_;
  const Schedule &schedule_;
  const ScheduledRegion &region_;
  const Bases &bases_;
  std::vector<Slot> scalars_;
  const bool check_;
  BuildFailure &failure_;
  GraphEntryRef entry_;
  HazardTracker hazards_;
  llvm::DenseMap<uint32_t, uint32_t> staged_;
  std::vector<TouchedBytes> touched_;
};

} // namespace

llvm::Expected<GraphEntryRef> rondo::buildGraph(const DeviceRef &device, const Schedule &schedule,
                                                const ScheduledRegion &region, const Bases &bases,
                                                llvm::ArrayRef<Slot> scalars, bool check,
                                                BuildFailure &failure) {
  llvm::Expected<GraphEntryRef> entry =
      GraphBuilder(device, schedule, region, bases, scalars, check, failure).run();
  if (entry)
    return entry;
  std::optional<DeviceErrorKind> kind;
  llvm::Error error = entry.takeError();
  kind = deviceErrorKind(error);
  failure.message = errorText(std::move(error));
  std::string where = failure.step ? schedule.steps[*failure.step].text + ": " : std::string();
  return makeDeviceError(kind.value_or(DeviceErrorKind::NotCapturable),
                         where + "cannot be captured: " + failure.message);
}
