//===- BufferCosts.cpp - What it costs to hand over a buffer --------------===//
//
// Costs are differences: a graph of small nodes is replayed as it is, with some of its nodes
// changed before every launch, with copies of few and of many bytes added. What counts is the time
// from the first launch to the end of the last, which is what the caller sees, be it the CPU's or
// the device's.
//
//===----------------------------------------------------------------------===//

#include "rondo/runtime/BufferCosts.h"

#include "rondo/executors/Tensor.h"

#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <chrono>

using namespace rondo;

llvm::StringRef rondo::bufferPolicyName(BufferPolicy policy) {
  switch (policy) {
  case BufferPolicy::Static:
    return "static";
  case BufferPolicy::Patched:
    return "patched";
  case BufferPolicy::Copied:
    return "copied";
  }
  return "";
}

namespace {

class CostProbe {
public:
  CostProbe(const DeviceRef &device, bool withByte) : device_(device), withByte_(withByte) {}

  llvm::Expected<BufferCosts> run() {
    if (llvm::Error error = prepare())
      return error;
    BufferCosts costs;
    double plain = 0, patched = 0, copies = 0, gathers = 0, large = 0;
    struct Trial {
      Added added;
      unsigned patches;
      double &seconds;
    };
    for (const Trial &trial :
         {Trial{Added::Nothing, 0, plain}, Trial{Added::Nothing, numPatched, patched},
          Trial{Added::Copies, 0, copies}, Trial{Added::Gathers, 0, gathers},
          Trial{Added::LargeCopy, 0, large}}) {
      if (trial.added == Added::LargeCopy && !withByte_)
        continue;
      llvm::Expected<double> seconds = measure(trial.added, trial.patches);
      if (!seconds)
        return seconds.takeError();
      trial.seconds = *seconds;
    }
    auto perUnit = [&](double seconds, double units) {
      return std::max((seconds - plain) / units, leastCost);
    };
    costs.patchedNode = perUnit(patched, numPatched);
    costs.copyNode = perUnit(copies, numAdded);
    costs.gatherNode = perUnit(gathers, numAdded);
    if (withByte_)
      costs.byte = std::max(large - plain - costs.copyNode, 0.0) / double(largeBytes);
    return costs;
  }

private:
  static constexpr unsigned numNodes = 32, numPatched = 16, numAdded = 8, numReplays = 4,
                            numTrials = 3;
  /// Two large ones are more than caches hold.
  static constexpr size_t smallBytes = 256, largeBytes = 32 << 20;
  static constexpr double leastCost = 1e-8; ///< below what can be measured

  enum class Added { Nothing, Copies, Gathers, LargeCopy };

  llvm::Error prepare() {
    llvm::Expected<std::unique_ptr<Stream>> stream = device_->createStream();
    if (!stream)
      return stream.takeError();
    stream_ = std::move(*stream);
    half_ = withByte_ ? largeBytes : 2 * numNodes * smallBytes;
    llvm::Expected<StorageRef> memory = Storage::allocate(device_, 2 * half_);
    if (!memory)
      return memory.takeError();
    memory_ = std::move(*memory);
    return stream_->fill(memory_->data(), 0, memory_->bytes());
  }

  std::byte *source(size_t node = 0) const { return memory_->data() + node * smallBytes; }
  std::byte *destination(size_t node = 0) const { return source(node) + half_; }

  /// Adds one node behind the last.
  llvm::Error add(Graph &graph, Added kind, size_t node, size_t bytes) {
    llvm::SmallVector<GraphNodeId, 1> last;
    if (graph.numNodes() != 0)
      last.push_back(GraphNodeId(graph.numNodes() - 1));
    CopyPiece piece{destination(node), source(node), bytes};
    llvm::Expected<GraphNodeId> added =
        kind == Added::Gathers ? graph.addGather(piece, last)
                               : graph.addCopy(piece.destination, piece.source, piece.bytes, last);
    return added ? llvm::Error::success() : added.takeError();
  }

  /// Seconds of one replay, of `patches` nodes changed before each.
  llvm::Expected<double> measure(Added added, unsigned patches) {
    llvm::Expected<std::unique_ptr<Graph>> graph = device_->createGraph();
    if (!graph)
      return graph.takeError();
    for (unsigned i = 0; i < numNodes; ++i)
      if (llvm::Error error = add(**graph, Added::Gathers, i, smallBytes))
        return error;
    unsigned more = added == Added::Nothing ? 0 : added == Added::LargeCopy ? 1 : numAdded;
    for (unsigned i = 0; i < more; ++i)
      if (llvm::Error error =
              add(**graph, added, i, added == Added::LargeCopy ? largeBytes : smallBytes))
        return error;
    llvm::Expected<std::unique_ptr<GraphExec>> exec = (*graph)->instantiate();
    if (!exec)
      return exec.takeError();
    double best = 1e9;
    for (unsigned trial = 0; trial < numTrials; ++trial) {
      llvm::Expected<double> seconds = replay(**exec, patches);
      if (!seconds)
        return seconds.takeError();
      best = std::min(best, *seconds / numReplays);
    }
    return best;
  }

  llvm::Expected<double> replay(GraphExec &exec, unsigned patches) {
    if (llvm::Error error = stream_->synchronize())
      return error;
    auto begin = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < numReplays; ++i) {
      for (unsigned node = 0; node < patches; ++node) { // to where it was not the time before
        CopyPiece piece{destination(node), source(node + i % 2 * numNodes), smallBytes};
        if (llvm::Error error = exec.setGather(GraphNodeId(node), piece))
          return error;
      }
      if (llvm::Error error = exec.launch(*stream_))
        return error;
    }
    if (llvm::Error error = stream_->synchronize())
      return error;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  const DeviceRef device_;
  const bool withByte_;
  size_t half_ = 0; ///< of the memory: sources, then destinations
  std::unique_ptr<Stream> stream_;
  StorageRef memory_;
};

} // namespace

llvm::Expected<BufferCosts> rondo::measureBufferCosts(const DeviceRef &device, bool withByte) {
  return CostProbe(device, withByte).run();
}
