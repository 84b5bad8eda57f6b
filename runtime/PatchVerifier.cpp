//===- PatchVerifier.cpp - Does a patched graph do what it should? --------===//
//
//   eagerly    on copies A of the buffers  ->  bytes expected
//   restore    what the region changed in planned memory and generators
//   the graph  patched to copies B         ->  the same bytes, and the buffers themselves untouched
//   restore    and patch back
//
//===----------------------------------------------------------------------===//

#include "PatchVerifier.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace rondo;

namespace {

class PatchVerifier {
public:
  PatchVerifier(const GraphRequest &request, GraphEntry &entry, Stream &stream)
      : request_(request), schedule_(request.schedule), region_(request.region), entry_(entry),
        stream_(stream), scalars_(request.scalars.begin(), request.scalars.end()) {}

  llvm::Error run() {
    collect();
    Bases eager = request_.bases, patched = request_.bases;
    Snapshot before, expected, given;
    if (llvm::Error error = read(request_.bases, before))
      return error;
    if (llvm::Error error = copyBuffers(eager, 0, before))
      return error;
    if (llvm::Error error = copyBuffers(patched, entry_.addressUnit(), before))
      return error;
    if (llvm::Error error = runEagerly(eager))
      return error;
    if (llvm::Error error = read(eager, expected))
      return error;
    if (llvm::Error error = restore(before))
      return error;
    if (llvm::Error error = replay(patched))
      return error;
    if (llvm::Error error = read(patched, given))
      return error;
    if (llvm::Error error = compare(expected, given, "the patched graph gives other bits for "))
      return error;
    if (llvm::Error error = restore(before))
      return error;
    if (llvm::Error error = point(request_.bases))
      return error;
    Snapshot after;
    if (llvm::Error error = read(request_.bases, after))
      return error;
    return compare(before, after, "the patched graph writes at the old address of ");
  }

private:
  /// Contents of storages and generators.
  struct Snapshot {
    std::vector<std::vector<std::byte>> storages, generators;
  };

  /// What a run changes: the caller's buffers and results, and planned memory.
  void collect() {
    for (const RegionBuffer &buffer : region_.buffers)
      storages_.insert(buffer.storage);
    numBuffers_ = storages_.size();
    for (unsigned i = 0; i < entry_.buffers.size(); ++i)
      if (!entry_.problem(i).empty())
        unpatchable_.insert(entry_.buffers[i].storage);
    for (uint32_t i = region_.begin; i < region_.end; ++i)
      for (const Access &access : schedule_.steps[i].accesses)
        storages_.insert(access.storage);
    for (const RegionBuffer &buffer : region_.buffers)
      if (buffer.policy == BufferPolicy::Copied)
        storages_.insert(buffer.staging);
  }

  uint64_t bytesOf(unsigned i) const { return schedule_.storages[storages_[i]].bytes; }

  llvm::Error read(const Bases &bases, Snapshot &snapshot) {
    for (unsigned i = 0; i < storages_.size(); ++i) {
      std::vector<std::byte> &bytes = snapshot.storages.emplace_back(bytesOf(i));
      if (llvm::Error error = stream_.copy(bytes.data(), bases.address(storages_[i]), bytes.size()))
        return error;
    }
    for (RNGState *state : bases.generators) {
      std::vector<std::byte> &bytes = snapshot.generators.emplace_back(sizeof(RNGState));
      if (llvm::Error error = stream_.copy(bytes.data(), state, bytes.size()))
        return error;
    }
    return stream_.synchronize();
  }

  /// What the graph uses wherever the call is: planned memory, generators, what cannot be patched.
  llvm::Error restore(const Snapshot &before) {
    for (unsigned i = 0; i < storages_.size(); ++i) {
      if (i < numBuffers_ && !unpatchable_.contains(storages_[i]))
        continue;
      if (llvm::Error error = stream_.copy(request_.bases.address(storages_[i]),
                                           before.storages[i].data(), bytesOf(i)))
        return error;
    }
    for (auto [state, bytes] : llvm::zip(request_.bases.generators, before.generators))
      if (llvm::Error error = stream_.copy(state, bytes.data(), bytes.size()))
        return error;
    return stream_.synchronize();
  }

  /// Lets `bases` name copies of the buffers, `shift` bytes, at most 256, behind where memory of
  /// their own has the alignment that they have.
  llvm::Error copyBuffers(Bases &bases, size_t shift, const Snapshot &before) {
    for (unsigned i = 0; i < numBuffers_; ++i) {
      constexpr size_t unit = DeviceAPI::allocationAlignment;
      size_t offset = asWord(request_.bases.address(storages_[i])) % unit + shift;
      llvm::Expected<StorageRef> copy = Storage::allocate(request_.device, bytesOf(i) + 2 * unit);
      if (!copy)
        return copy.takeError();
      bases.relocations[storages_[i]] = (*copy)->data() + offset;
      if (llvm::Error error =
              stream_.copy((*copy)->data() + offset, before.storages[i].data(), bytesOf(i)))
        return error;
      memory_.push_back(std::move(*copy));
    }
    return stream_.synchronize();
  }

  llvm::Error runEagerly(const Bases &bases) {
    for (uint32_t i = region_.begin; i < region_.end; ++i) {
      const Step &step = schedule_.steps[i];
      StepArgs args(step, bases, scalars_.data());
      if (llvm::Error error = step.kernel->enqueue(stream_, args.args()))
        return error;
    }
    return llvm::Error::success();
  }

  llvm::Error point(const Bases &bases) {
    llvm::SmallVector<unsigned, 8> changed, patchable;
    entry_.findChanged(bases, scalars_, changed);
    for (unsigned i : changed)
      if (entry_.problem(i).empty())
        patchable.push_back(i);
    return entry_.patch(bases, scalars_, patchable).takeError();
  }

  llvm::Error replay(const Bases &bases) {
    Bases reachable = bases;
    for (const GraphEntry::Buffer &buffer : entry_.buffers)
      if (unpatchable_.contains(buffer.storage))
        reachable.relocations[buffer.storage] = buffer.address;
    if (llvm::Error error = point(reachable))
      return error;
    return entry_.launch(stream_, reachable);
  }

  bool isCompared(unsigned i) const {
    // In what is dead kernels may leave anything.
    return schedule_.storages[storages_[i]].end >= region_.end &&
           !unpatchable_.contains(storages_[i]);
  }

  llvm::Error compare(const Snapshot &a, const Snapshot &b, llvm::StringRef what) const {
    for (unsigned i = 0; i < storages_.size(); ++i)
      if (isCompared(i) && a.storages[i] != b.storages[i])
        return makeError("region " + llvm::Twine(region_.id) + ": " + what +
                         schedule_.storages[storages_[i]].name);
    if (a.generators != b.generators)
      return makeError("region " + llvm::Twine(region_.id) + ": " + what + "a generator");
    return llvm::Error::success();
  }

  const GraphRequest &request_;
  const Schedule &schedule_;
  const ScheduledRegion &region_;
  GraphEntry &entry_;
  Stream &stream_;
  std::vector<Slot> scalars_;
  llvm::SetVector<uint32_t> storages_; ///< buffers first
  size_t numBuffers_ = 0;
  llvm::SmallDenseSet<uint32_t, 8> unpatchable_;
  std::vector<StorageRef> memory_;
};

} // namespace

llvm::Error rondo::verifyPatches(const GraphRequest &request, GraphEntry &entry, Stream &stream) {
  return PatchVerifier(request, entry, stream).run();
}
