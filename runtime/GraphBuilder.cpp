//===- GraphBuilder.cpp - A region becomes a graph ------------------------===//
//
// Steps go to the graph in program order, each behind those it has to wait for: the ones that
// touched its bytes last. What counts is planned bytes, so that two values which share memory are
// ordered though no data flows between them, and so that the order holds wherever the caller's
// buffers are: two of them share no bytes if one is written.
//
//   copy x -> x'         (in: source changed before a launch)
//   step 0: mm(x', w)    w: its address is in the node, and changed if it moves
//   step 1: add_(x', …)
//   copy x' -> x         (out: destination changed)
//
//===----------------------------------------------------------------------===//

#include "GraphBuilder.h"

#include "BufferChoice.h"
#include "GraphSink.h"
#include "HazardTracker.h"
#include "OrderChecker.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

std::byte *Bases::address(uint32_t number) const {
  if (!relocations.empty())
    if (auto found = relocations.find(number); found != relocations.end())
      return found->second;
  const PlannedStorage &storage = schedule->storages[number];
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

StepArgs::StepArgs(const Step &step, const Bases &bases, Slot *scalars,
                   const llvm::DenseMap<uint32_t, uint32_t> *staged) {
  auto addressOf = [&](uint32_t storage) {
    if (staged)
      if (auto found = staged->find(storage); found != staged->end())
        storage = found->second;
    return bases.address(storage);
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
// Building
//===----------------------------------------------------------------------===//

/// Where a storage's bytes lie for the order of nodes: planned bytes by their offsets, others in
/// ranges of their own.
static uint64_t orderAddress(const Schedule &schedule, uint32_t number) {
  const PlannedStorage &storage = schedule.storages[number];
  if (storage.isCallers() || storage.space == Space::ForwardResults)
    return uint64_t(1) << 62 | uint64_t(number) << 40;
  return uint64_t(storage.space) << 56 | storage.offset;
}

namespace {

class GraphBuilder {
public:
  GraphBuilder(const GraphRequest &request, GraphEntry &entry, BuildFailure &failure)
      : request_(request), schedule_(request.schedule), region_(request.region),
        bases_(request.bases), scalars_(request.scalars.begin(), request.scalars.end()),
        failure_(failure), entry_(entry) {}

  /// Makes the graph of the entry, without an exec.
  llvm::Error run() {
    llvm::Expected<std::unique_ptr<Graph>> graph = request_.device->createGraph();
    if (!graph)
      return graph.takeError();
    entry_.graph = std::move(*graph);
    GraphSink sink(request_.device, *entry_.graph, request_.maxBytes);
    if (llvm::Error error = addCopiesIn(sink))
      return error;
    for (uint32_t i = region_.begin; i < region_.end; ++i)
      if (llvm::Error error = addStep(sink, i))
        return error;
    if (llvm::Error error = addCopiesOut(sink))
      return error;
    entry_.hasCalls = sink.hasCalls();
    for (const RegionBuffer &buffer : region_.buffers)
      if (buffer.policy != BufferPolicy::Copied)
        entry_.buffers.push_back({buffer.storage, bases_.address(buffer.storage)});
    for (unsigned scalar : region_.scalars)
      entry_.scalars.push_back({scalar, uint64_t(scalars_[scalar].i64)});
    return request_.check ? checkOrder(*entry_.graph, touched_) : llvm::Error::success();
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
    size_t first = entry_.graph->numNodes();
    if (llvm::Error error = submit())
      return error;
    size_t end = entry_.graph->numNodes();
    if (first == end) // it submitted nothing
      return llvm::Error::success();
    if (sink.frontier.size() != 1) {
      llvm::Expected<GraphNodeId> join = entry_.graph->addEmpty(sink.frontier);
      if (!join)
        return join.takeError();
      sink.frontier.assign(1, *join);
    }
    for (const Bytes &range : bytes) {
      hazards_.note(range.begin, range.end, range.isWrite, sink.frontier.front().index());
      if (request_.check)
        touched_.push_back(
            {GraphNodeId(first), sink.frontier.front(), range.begin, range.end, range.isWrite});
    }
    return llvm::Error::success();
  }

  Bytes bytesOf(uint32_t storage, uint64_t begin, uint64_t end, bool isWrite) const {
    uint64_t address = orderAddress(schedule_, storage);
    return {address + begin, address + end, isWrite};
  }
  Bytes allOf(uint32_t storage, bool isWrite) const {
    return bytesOf(storage, 0, schedule_.storages[storage].bytes, isWrite);
  }

  //===--- Copies ---------------------------------------------------------===//

  llvm::Error addCopiesIn(GraphSink &sink) {
    llvm::SmallVector<unsigned, 8> small, large;
    for (const RegionBuffer &buffer : region_.buffers) {
      if (buffer.policy != BufferPolicy::Copied)
        continue;
      staged_[buffer.storage] = buffer.staging;
      size_t bytes = schedule_.storages[buffer.storage].bytes;
      if (buffer.isRead && bytes != 0) {
        (bytes <= gatheredBytes ? small : large).push_back(entry_.copies.size());
        entry_.copiedBytes += bytes;
      }
      entry_.copies.push_back({buffer.storage,
                               buffer.staging,
                               bytes,
                               {},
                               {},
                               bases_.address(buffer.storage),
                               bases_.address(buffer.staging)});
    }
    while (small.size() == 1 || small.size() > DeviceAPI::maxCopyPieces)
      large.push_back(small.pop_back_val());
    if (!small.empty())
      if (llvm::Error error = addGather(sink, small))
        return error;
    for (unsigned i : large)
      if (llvm::Error error = addCopyIn(sink, entry_.copies[i]))
        return error;
    return llvm::Error::success();
  }

  llvm::Error addCopyIn(GraphSink &sink, GraphEntry::Copy &copy) {
    auto submit = [&] { return sink.copy(copy.stagingAddress, copy.address, copy.bytes); };
    if (llvm::Error error = add(sink, allOf(copy.staging, true), submit))
      return error;
    copy.in = sink.frontier.front();
    return llvm::Error::success();
  }

  llvm::Error addGather(GraphSink &sink, llvm::ArrayRef<unsigned> copies) {
    llvm::SmallVector<Bytes, 8> bytes;
    llvm::SmallVector<CopyPiece, 8> pieces;
    for (unsigned i : copies) {
      const GraphEntry::Copy &copy = entry_.copies[i];
      bytes.push_back(allOf(copy.staging, true));
      pieces.push_back({copy.stagingAddress, copy.address, copy.bytes});
    }
    auto submit = [&] { return sink.gather(pieces); };
    if (llvm::Error error = add(sink, bytes, submit))
      return error;
    entry_.gather = {sink.frontier.front(), {copies.begin(), copies.end()}};
    return llvm::Error::success();
  }

  llvm::Error addCopiesOut(GraphSink &sink) {
    for (GraphEntry::Copy &copy : entry_.copies) {
      if (!isWritten(copy.storage) || copy.bytes == 0)
        continue;
      auto submit = [&] { return sink.copy(copy.address, copy.stagingAddress, copy.bytes); };
      if (llvm::Error error = add(sink, allOf(copy.staging, false), submit))
        return error;
      copy.out = sink.frontier.front();
      entry_.copiedBytes += copy.bytes;
    }
    return llvm::Error::success();
  }

  /// Does the region write the caller's storage `storage`?
  bool isWritten(uint32_t storage) const {
    return llvm::any_of(region_.buffers, [&](const RegionBuffer &buffer) {
      return buffer.storage == storage && buffer.isWritten;
    });
  }

  //===--- Steps ----------------------------------------------------------===//

  uint32_t stagedAs(uint32_t storage) const {
    auto found = staged_.find(storage);
    return found == staged_.end() ? storage : found->second;
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
      bytes.push_back(bytesOf(stagedAs(access.storage), access.begin, access.end, access.isWrite));
    // Resources lie where no memory is.
    for (const auto &[resource, isWrite] : step.resources)
      bytes.push_back({~uint64_t(0) - 2 - resource, ~uint64_t(0) - 1 - resource, isWrite});
    StepArgs args(step, bases_, scalars_.data(), &staged_);
    auto submit = [&] { return step.kernel->enqueue(sink, args.args()); };
    size_t first = entry_.graph->numNodes();
    if (llvm::Error error = add(sink, bytes, submit)) {
      failure_.step = index;
      return error;
    }
    entry_.kernels.push_back(step.kernel);
    if (first < entry_.graph->numNodes())
      entry_.nodes.push_back({GraphNodeId(first), index, step.text});
    return schedule_.deadAfter.empty() ? llvm::Error::success() : addPoison(sink, index);
  }

  /// Overwrites what is dead after step `index`.
  llvm::Error addPoison(GraphSink &sink, uint32_t index) {
    for (uint32_t i : schedule_.deadAfter[index]) {
      bool isCopiedBack = llvm::any_of(entry_.copies, [&](const GraphEntry::Copy &copy) {
        return copy.staging == i && isWritten(copy.storage);
      });
      if (isCopiedBack)
        continue;
      auto submit = [&] { return sink.fill(bases_.address(i), 0xff, schedule_.storages[i].bytes); };
      if (llvm::Error error = add(sink, allOf(i, true), submit))
        return error;
    }
    return llvm::Error::success();
  }

  const GraphRequest &request_;
  const Schedule &schedule_;
  const ScheduledRegion &region_;
  const Bases &bases_;
  std::vector<Slot> scalars_;
  BuildFailure &failure_;
  GraphEntry &entry_;
  HazardTracker hazards_;
  llvm::DenseMap<uint32_t, uint32_t> staged_;
  std::vector<TouchedBytes> touched_;
};

} // namespace

llvm::Error rondo::buildNodes(const GraphRequest &request, GraphEntry &entry,
                              BuildFailure &failure) {
  llvm::Error error = GraphBuilder(request, entry, failure).run();
  if (!error)
    return error;
  DeviceErrorKind kind = deviceErrorKind(error).value_or(DeviceErrorKind::NotCapturable);
  failure.message = errorText(std::move(error));
  std::string where =
      failure.step ? request.schedule.steps[*failure.step].text + ": " : std::string();
  return makeDeviceError(kind, where + "cannot be captured: " + failure.message);
}

static llvm::Error instantiate(GraphEntry &entry, BuildFailure &failure) {
  llvm::Expected<std::unique_ptr<GraphExec>> exec = entry.graph->instantiate();
  if (exec) {
    entry.exec = std::move(*exec);
    return llvm::Error::success();
  }
  llvm::Error error = exec.takeError();
  DeviceErrorKind kind = deviceErrorKind(error).value_or(DeviceErrorKind::NotCapturable);
  failure.message = errorText(std::move(error));
  return makeDeviceError(kind, "cannot be captured: " + failure.message);
}

llvm::Expected<GraphEntryRef> rondo::buildGraph(const GraphRequest &request,
                                                BuildFailure &failure) {
  auto entry = std::make_shared<GraphEntry>();
  if (llvm::Error error = buildNodes(request, *entry, failure))
    return error;
  if (llvm::Error error = instantiate(*entry, failure))
    return error;
  if (llvm::Error error = entry->explain(request)) {
    if (deviceErrorKind(error) != DeviceErrorKind::OutOfMemory)
      return error;
    llvm::consumeError(std::move(error)); // to be tried again when something moves
  }
  return entry;
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

uint64_t GraphEntry::valueOf(unsigned source, const Bases &bases,
                             llvm::ArrayRef<Slot> slots) const {
  if (source < buffers.size())
    return asWord(bases.address(buffers[source].storage));
  return uint64_t(slots[scalars[source - buffers.size()].number].i64);
}

uint64_t GraphEntry::heldValue(unsigned source) const {
  return source < buffers.size() ? asWord(buffers[source].address)
                                 : scalars[source - buffers.size()].bits;
}

void GraphEntry::findChanged(const Bases &bases, llvm::ArrayRef<Slot> slots,
                             llvm::SmallVectorImpl<unsigned> &changed) const {
  for (unsigned i = 0; i < numSources(); ++i)
    if (valueOf(i, bases, slots) != heldValue(i))
      changed.push_back(i);
}

llvm::StringRef GraphEntry::problemOfChange(unsigned source, const Bases &bases,
                                            llvm::ArrayRef<Slot> slots) const {
  if (source < buffers.size() && problem(source).empty() &&
      (valueOf(source, bases, slots) - heldValue(source)) % addressUnit_ != 0)
    return "a kernel depends on its address modulo 256";
  return problem(source);
}

llvm::Expected<size_t> GraphEntry::patch(const Bases &bases, llvm::ArrayRef<Slot> slots,
                                         llvm::ArrayRef<unsigned> sources) {
  changes_.clear();
  for (unsigned source : sources)
    changes_.push_back({source, valueOf(source, bases, slots)});
  llvm::Expected<size_t> numNodes = patches_->patch(*exec, changes_);
  if (!numNodes)
    return numNodes;
  for (unsigned source : sources) {
    if (source < buffers.size())
      buffers[source].address = bases.address(buffers[source].storage);
    else
      scalars[source - buffers.size()].bits = valueOf(source, bases, slots);
  }
  return numNodes;
}

llvm::Error GraphEntry::rebuild(const GraphRequest &request, BuildFailure &failure) {
  GraphEntry fresh;
  if (llvm::Error error = buildNodes(request, fresh, failure))
    return error;
  if (llvm::Error error = fresh.explain(request)) {
    if (deviceErrorKind(error) != DeviceErrorKind::OutOfMemory)
      return error;
    llvm::consumeError(std::move(error));
  }
  if (llvm::Error error = exec->update(*fresh.graph)) {
    llvm::consumeError(std::move(error)); // other nodes: an exec of its own
    if (llvm::Error instantiateError = instantiate(fresh, failure))
      return instantiateError;
    exec = std::move(fresh.exec);
  }
  kernels = std::move(fresh.kernels);
  buffers = std::move(fresh.buffers);
  scalars = std::move(fresh.scalars);
  copies = std::move(fresh.copies);
  gather = std::move(fresh.gather);
  nodes = std::move(fresh.nodes);
  graph = std::move(fresh.graph);
  patches_ = std::move(fresh.patches_);
  addressUnit_ = fresh.addressUnit_;
  isVerified = false;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

/// True if one of its sides is elsewhere than the nodes have it.
bool GraphEntry::move(Copy &copy, const Bases &bases) {
  std::byte *address = bases.address(copy.storage), *staging = bases.address(copy.staging);
  if (address == copy.address && staging == copy.stagingAddress)
    return false;
  copy.moves += address != copy.address;
  copy.address = address;
  copy.stagingAddress = staging;
  return true;
}

llvm::Error GraphEntry::pointCopies(const Bases &bases) {
  bool hasMoved = false;
  for (Copy &copy : copies) {
    if (!move(copy, bases))
      continue;
    hasMoved = true;
    if (copy.in)
      if (llvm::Error error = exec->setCopy(copy.in, copy.stagingAddress, copy.address, copy.bytes))
        return error;
    if (copy.out)
      if (llvm::Error error =
              exec->setCopy(copy.out, copy.address, copy.stagingAddress, copy.bytes))
        return error;
  }
  if (!hasMoved || !gather)
    return llvm::Error::success();
  llvm::SmallVector<CopyPiece, DeviceAPI::maxCopyPieces> pieces;
  for (unsigned i : gather->copies)
    pieces.push_back({copies[i].stagingAddress, copies[i].address, copies[i].bytes});
  return exec->setGather(gather->node, pieces);
}

llvm::Error GraphEntry::launch(Stream &stream, const Bases &bases) {
  // The calls of one lane are the only ones that count here.
  uses.store(uses.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (!copies.empty())
    if (llvm::Error error = pointCopies(bases))
      return error;
  return exec->launchUncaptured(stream);
}

void GraphEntry::takeSettled(llvm::SmallVectorImpl<uint32_t> &settled) {
  if (copies.empty() || ++launches_ < watchedLaunches)
    return;
  launches_ = 0;
  for (Copy &copy : copies)
    if (std::exchange(copy.moves, 0) <= fewMoves)
      settled.push_back(copy.storage);
}
