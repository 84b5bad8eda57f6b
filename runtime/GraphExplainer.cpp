//===- GraphExplainer.cpp - Finds what words of a graph are the call's ----===//
//
// Builds the graph of an entry again, with everything of the call elsewhere or another, and lets a
// PatchTable compare. Nothing is executed.
//
//===----------------------------------------------------------------------===//

#include "GraphBuilder.h"

#include "rondo/executors/DeviceError.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace rondo;

/// Builds the graph of an entry twice more and compares.
class GraphEntry::Explainer {
public:
  Explainer(GraphEntry &entry, const GraphRequest &request)
      : entry_(entry), request_(request),
        slack_(std::max<uint64_t>(entry.buffers.size(), 64) * 4 * DeviceAPI::allocationAlignment) {}

  llvm::Error run() {
    if (llvm::Error error = makeRoom(2 * slack_))
      return error;
    llvm::Error error = explainInRoom();
    if (deviceErrorKind(error) != DeviceErrorKind::InvalidArgument)
      return error;
    llvm::consumeError(std::move(error));
    isSpread_ = true;
    if (llvm::Error roomError = makeRoom(spreadBytes()))
      return roomError;
    return explainInRoom();
  }

private:
  /// InvalidArgument if a library likes nothing of how the buffers lie.
  llvm::Error explainInRoom() {
    // The last ways take more graphs, and are for kernels whose parameters have noise in them, or
    // depend on the alignment of their buffers.
    size_t leastProblems = ~size_t(0);
    llvm::Error refusal = llvm::Error::success();
    for (Probing probing : {Probing::Plain, Probing::Controlled, Probing::Congruent}) {
      if (probing == Probing::Plain && entry_.hasCalls)
        continue; // libraries leave pointers to their own structs in what they submit
      llvm::Expected<PatchTable> table = explain(probing);
      if (!table && isRefusal(table)) {
        llvm::consumeError(std::exchange(refusal, table.takeError()));
        continue;
      }
      if (!table) {
        llvm::consumeError(std::move(refusal));
        return table.takeError();
      }
      size_t numProblems = 0;
      for (unsigned i = 0; i < entry_.buffers.size(); ++i)
        numProblems += !table->problem(i).empty();
      if (numProblems < leastProblems) {
        leastProblems = numProblems;
        entry_.patches_ = std::move(*table);
        entry_.addressUnit_ = probing == Probing::Congruent ? DeviceAPI::allocationAlignment
                                                            : DeviceAPI::minAlignment;
      }
      if (numProblems == 0)
        break;
    }
    if (entry_.patches_)
      llvm::consumeError(std::exchange(refusal, llvm::Error::success()));
    return refusal;
  }

  /// Controlled: with the control of PatchProbe. Congruent: so, and every address is changed by
  /// multiples of 256 bytes.
  enum class Probing { Plain, Controlled, Congruent };

  llvm::Expected<PatchTable> explain(Probing probing) {
    // A scalar may decide what is submitted; then the buffers have to be explained for its value.
    llvm::SmallVector<bool, 4> isFixed;
    for (const Scalar &scalar : entry_.scalars)
      isFixed.push_back(kindOf(scalar) == ScalarKind::Bool); // has no third value
    for (;;) {
      llvm::Expected<PatchTable> table = compare(probing, isFixed);
      bool canRetry = llvm::is_contained(isFixed, false);
      if (!table && !(canRetry && isAboutValues(table)))
        return table;
      llvm::SmallVector<bool, 4> isAtFault(isFixed.size(), !table);
      for (unsigned i = 0; table && i < isFixed.size(); ++i)
        isAtFault[i] = !table->problem(entry_.buffers.size() + i).empty();
      if (!table)
        llvm::consumeError(table.takeError());
      bool isNew = false;
      for (unsigned i = 0; i < isFixed.size(); ++i)
        isNew |= isAtFault[i] && !std::exchange(isFixed[i], true);
      if (!isNew)
        return table;
    }
  }

  ScalarKind kindOf(const Scalar &scalar) const {
    return request_.schedule.scalarKinds[scalar.number];
  }

  static bool isOfKind(llvm::Expected<PatchTable> &expected, DeviceErrorKind kind) {
    llvm::Error error = expected.takeError();
    bool result = deviceErrorKind(error) == kind;
    expected = std::move(error);
    return result;
  }
  /// Was a kernel given a value that it does not take?
  static bool isAboutValues(llvm::Expected<PatchTable> &expected) {
    return isOfKind(expected, DeviceErrorKind::NotCapturable);
  }
  /// Did a library look at its arguments and not like that they overlap?
  static bool isRefusal(llvm::Expected<PatchTable> &expected) {
    return isOfKind(expected, DeviceErrorKind::InvalidArgument);
  }

  //===--- Addresses ------------------------------------------------------===//
  // The room is memory that is there, as libraries and drivers may ask about it. Nothing is done to
  // it, so the buffers may overlap, and reach beyond it: what matters is that their addresses
  // differ by unlike amounts. Only if that is refused there is room for all, spread out.

  llvm::Error makeRoom(uint64_t bytes) {
    room_.reset();
    llvm::Expected<StorageRef> room = Storage::allocate(request_.device, bytes);
    if (!room)
      return room.takeError();
    room_ = std::move(*room);
    return llvm::Error::success();
  }

  uint64_t bytesOf(const Buffer &buffer) const {
    return request_.schedule.storages[buffer.storage].bytes;
  }
  static constexpr uint64_t mostGap = 16; ///< between buffers that are spread, in units

  uint64_t spreadBytes() const {
    uint64_t bytes = slack_; // fills and copies reach as far
    for (const Buffer &buffer : entry_.buffers)
      bytes += bytesOf(buffer) + (mostGap + 2) * DeviceAPI::allocationAlignment;
    return bytes;
  }

  /// A buffer's address is changed by multiples of this. Temporaries among results, a library's
  /// workspace for one, begin where the plan lets them begin.
  uint64_t unitOf(const Buffer &buffer, Probing probing) const {
    const PlannedStorage &storage = request_.schedule.storages[buffer.storage];
    bool isPlanned = storage.space == Space::Results && storage.end != ~0u;
    return isPlanned || probing == Probing::Congruent ? DeviceAPI::allocationAlignment
                                                      : DeviceAPI::minAlignment;
  }

  /// Offsets into the room, by buffer.
  std::vector<uint64_t> drawOffsets(Probing probing) {
    return isSpread_ ? drawSpreadOffsets(probing) : drawAnyOffsets(probing);
  }

  /// Each is another, also than those drawn before.
  std::vector<uint64_t> drawAnyOffsets(Probing probing) {
    std::vector<uint64_t> offsets;
    while (offsets.size() < entry_.buffers.size()) {
      uint64_t unit = unitOf(entry_.buffers[offsets.size()], probing);
      uint64_t offset = random_() % (slack_ / unit) * unit;
      if (drawn_.insert(offset).second)
        offsets.push_back(offset);
    }
    return offsets;
  }

  /// One behind the other, in any order.
  std::vector<uint64_t> drawSpreadOffsets(Probing probing) {
    std::vector<uint32_t> order(entry_.buffers.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    std::vector<uint64_t> offsets(order.size());
    uint64_t end = 0;
    for (uint32_t i : order) {
      uint64_t unit = unitOf(entry_.buffers[i], probing);
      offsets[i] = end + random_() % mostGap * unit;
      end = llvm::alignTo(offsets[i] + bytesOf(entry_.buffers[i]) + unit,
                          DeviceAPI::allocationAlignment);
    }
    return offsets;
  }

  /// The table with the scalars perturbed that are not fixed; a fixed one has a problem.
  llvm::Expected<PatchTable> compare(Probing probing, llvm::ArrayRef<bool> isFixed) {
    std::array<Bases, 3> bases = {request_.bases, request_.bases, request_.bases};
    std::array<std::vector<Slot>, 3> slots;
    slots.fill({request_.scalars.begin(), request_.scalars.end()});
    std::vector<PatchSource> sources;
    drawn_.clear();
    const std::array<std::vector<uint64_t>, 2> offsets = {drawOffsets(probing),
                                                          drawOffsets(probing)};
    for (size_t b = 0; b < entry_.buffers.size(); ++b) {
      const Buffer &buffer = entry_.buffers[b];
      PatchSource source{PatchSource::Address, {asWord(buffer.address)}};
      bases[0].relocations[buffer.storage] = buffer.address;
      for (unsigned i = 1; i < 3; ++i) {
        uint64_t unit = unitOf(buffer, probing);
        uint64_t residue = unit > DeviceAPI::minAlignment ? asWord(buffer.address) % unit : 0;
        std::byte *address = room_->data() + offsets[i - 1][b] + residue;
        bases[i].relocations[buffer.storage] = address;
        source.values[i] = asWord(address);
      }
      sources.push_back(source);
    }
    for (unsigned k = 0; k < entry_.scalars.size(); ++k) {
      const Scalar &scalar = entry_.scalars[k];
      bool isDouble = kindOf(scalar) == ScalarKind::F64;
      PatchSource source{isDouble ? PatchSource::Double : PatchSource::Integer, {scalar.bits}};
      slots[0][scalar.number].i64 = int64_t(scalar.bits);
      for (unsigned i = 1; i < 3; ++i) {
        Slot slot;
        if (isDouble)
          slot.f64 = 1 + double(random_() >> 11) * 0x1p-53;
        else
          slot.i64 = int64_t(random_() % 1000 + 1000 * i + 3);
        source.values[i] = uint64_t(slot.i64);
        if (!isFixed[k])
          slots[i][scalar.number] = slot;
      }
      sources.push_back(source);
    }
    // One after the other, so that what is left on the stack from call to call is the same.
    bool isControlled = probing != Probing::Plain;
    std::array<GraphEntry, 3> probes;
    for (unsigned i = isControlled ? 0 : 1; i < 3; ++i) {
      BuildFailure failure;
      if (llvm::Error error =
              buildNodes({request_.device, request_.schedule, request_.region, bases[i], slots[i],
                          /*check=*/false, /*maxBytes=*/i == 0 ? ~size_t(0) : size_t(slack_)},
                         probes[i], failure))
        return error;
    }
    llvm::SmallVector<GraphNodeId, 8> ofCopies = nodesOfCopies();
    auto uses = [&](GraphNodeId node, llvm::function_ref<void(unsigned)> visit) {
      forEachSource(node, visit);
    };
    llvm::Expected<PatchTable> table =
        PatchTable::explain({{entry_.graph.get(), probes[1].graph.get(), probes[2].graph.get()},
                             sources,
                             ofCopies,
                             uses,
                             slack_,
                             probes[0].graph.get()});
    for (unsigned k = 0; table && k < isFixed.size(); ++k)
      if (isFixed[k])
        table->refuse(entry_.buffers.size() + k, "what is submitted depends on it");
    return table;
  }

  llvm::SmallVector<GraphNodeId, 8> nodesOfCopies() const {
    llvm::SmallVector<GraphNodeId, 8> nodes;
    if (entry_.gather)
      nodes.push_back(entry_.gather->node);
    for (const Copy &copy : entry_.copies)
      for (GraphNodeId node : {copy.in, copy.out})
        if (node)
          nodes.push_back(node);
    llvm::sort(nodes);
    return nodes;
  }

  /// What the step uses that `node` belongs to.
  void forEachSource(GraphNodeId node, llvm::function_ref<void(unsigned)> visit) const {
    auto next = llvm::upper_bound(
        entry_.nodes, node, [](GraphNodeId id, const StepNodes &step) { return id < step.node; });
    assert(next != entry_.nodes.begin() && "a node of no step");
    const Step &step = request_.schedule.steps[std::prev(next)->step];
    for (unsigned i = 0; i < entry_.buffers.size(); ++i)
      if (llvm::any_of(step.accesses, [&](const Access &access) {
            return access.storage == entry_.buffers[i].storage;
          }))
        visit(i);
    for (unsigned k = 0; k < entry_.scalars.size(); ++k)
      if (llvm::any_of(step.operands, [&](const Place &place) {
            return place.scalar == int32_t(entry_.scalars[k].number);
          }))
        visit(entry_.buffers.size() + k);
  }

  GraphEntry &entry_;
  const GraphRequest &request_;
  const uint64_t slack_; ///< addresses lie in so many bytes, and memory reaches as far beyond
  StorageRef room_;
  bool isSpread_ = false;
  llvm::DenseSet<uint64_t> drawn_;
  std::mt19937_64 random_;
};

llvm::Error GraphEntry::explain(const GraphRequest &request) {
  if (patches_)
    return llvm::Error::success();
  return Explainer(*this, request).run();
}
