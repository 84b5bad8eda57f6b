//===- PatchedLaunch.h - Kernels that were captured elsewhere ---*- C++ -*-===//
//
// The proof that pointers in captured kernels can be changed: a kernel is captured with all its
// memory at three sets of probe addresses, the graph is patched to the addresses of the run, and
// what it does there must be, bit for bit, what the kernel does eagerly. Nothing may happen to the
// memory at the probe addresses.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "GraphSink.h"
#include "PatchTable.h"

#include "support/RunOp.h"

#include <cstring>
#include <random>
#include <set>

namespace rondo {

/// An OpLauncher. Counts what it did.
class PatchedLaunch {
public:
  struct Counts {
    unsigned launches = 0;    ///< by a patched graph
    unsigned eager = 0;       ///< of kernels that cannot be captured
    unsigned unexplained = 0; ///< of kernels with words that are not understood
    unsigned nodes = 0;       ///< that were patched
  };

  explicit PatchedLaunch(DeviceRef device) : device_(std::move(device)) {}

  const Counts &counts() const { return counts_; }

  llvm::Error launch(const Kernel &kernel, const KernelArgs &args,
                     llvm::ArrayRef<llvm::ArrayRef<std::byte>> memory, Stream &stream) {
    size_t most = 0;
    for (llvm::ArrayRef<std::byte> block : memory)
      most = std::max(most, block.size());
    llvm::Expected<StorageRef> room = Storage::allocate(device_, most + slack);
    if (!room)
      return room.takeError();
    std::vector<PatchSource> probes(memory.size());
    std::set<size_t> drawn; // no two addresses are the same
    for (PatchSource &probe : probes)
      for (uint64_t &address : probe.values) {
        size_t offset = random_() % (slack / 16) * 16;
        while (!drawn.insert(offset).second)
          offset = random_() % (slack / 16) * 16;
        address = asWord((*room)->data() + offset);
      }
    std::array<std::unique_ptr<Graph>, 3> graphs;
    for (unsigned i = 0; i < 3; ++i) {
      llvm::Expected<std::unique_ptr<Graph>> graph = capture(kernel, args, memory, probes, i);
      if (!graph) {
        llvm::Error error = graph.takeError();
        if (deviceErrorKind(error) != DeviceErrorKind::NotCapturable)
          return error;
        llvm::consumeError(std::move(error));
        ++counts_.eager;
        return kernel.enqueue(stream, args);
      }
      graphs[i] = std::move(*graph);
    }
    auto uses = [&](GraphNodeId, llvm::function_ref<void(unsigned)> visit) {
      for (unsigned i = 0; i < memory.size(); ++i)
        visit(i);
    };
    llvm::Expected<PatchTable> table = PatchTable::explain(
        {{graphs[0].get(), graphs[1].get(), graphs[2].get()}, probes, {}, uses});
    if (!table)
      return table.takeError();
    for (unsigned i = 0; i < memory.size(); ++i)
      if (!table->problem(i).empty()) {
        ++counts_.unexplained;
        return makeError("not patchable: " + table->problem(i));
      }
    llvm::Expected<std::unique_ptr<GraphExec>> exec = graphs[0]->instantiate();
    if (!exec)
      return exec.takeError();
    return compare(kernel, args, memory, stream, **exec, *table, **room);
  }

private:
  static constexpr size_t slack = 1 << 16;
  using Contents = std::vector<std::vector<std::byte>>;

  llvm::Error compare(const Kernel &kernel, const KernelArgs &args,
                      llvm::ArrayRef<llvm::ArrayRef<std::byte>> memory, Stream &stream,
                      GraphExec &exec, PatchTable &table, const Storage &room) {
    Contents before, expected, given;
    if (llvm::Error error = read(memory, stream, before))
      return error;
    if (llvm::Error error = kernel.enqueue(stream, args))
      return error;
    if (llvm::Error error = read(memory, stream, expected))
      return error;
    for (size_t i = 0; i < memory.size(); ++i)
      if (llvm::Error error = stream.copy(const_cast<std::byte *>(memory[i].data()),
                                          before[i].data(), memory[i].size()))
        return error;
    constexpr std::byte untouched{0x5a};
    if (llvm::Error error = stream.fill(room.data(), uint8_t(untouched), room.bytes()))
      return error;
    std::vector<PatchTable::Change> changes;
    for (unsigned i = 0; i < memory.size(); ++i)
      changes.push_back({i, asWord(memory[i].data())});
    llvm::Expected<size_t> nodes = table.patch(exec, changes);
    if (!nodes)
      return nodes.takeError();
    ++counts_.launches;
    counts_.nodes += *nodes;
    if (llvm::Error error = exec.launch(stream))
      return error;
    if (llvm::Error error = read(memory, stream, given))
      return error;
    for (size_t i = 0; i < memory.size(); ++i)
      if (given[i] != expected[i] && memory[i].data() != args.workspace)
        return makeError("the patched kernel gives other bits");
    Contents probe;
    llvm::ArrayRef<std::byte> all(room.data(), room.bytes());
    if (llvm::Error error = read(all, stream, probe))
      return error;
    if (!llvm::all_of(probe[0], [&](std::byte byte) { return byte == untouched; }))
      return makeError("the patched kernel writes at the addresses of its capture");
    return llvm::Error::success();
  }

  static llvm::Error read(llvm::ArrayRef<llvm::ArrayRef<std::byte>> memory, Stream &stream,
                          Contents &contents) {
    for (llvm::ArrayRef<std::byte> block : memory) {
      contents.emplace_back(block.size());
      if (llvm::Error error = stream.copy(contents.back().data(), block.data(), block.size()))
        return error;
    }
    return stream.synchronize();
  }

  /// The graph of a run whose memory is at the probe addresses `number`.
  llvm::Expected<std::unique_ptr<Graph>> capture(const Kernel &kernel, const KernelArgs &args,
                                                 llvm::ArrayRef<llvm::ArrayRef<std::byte>> memory,
                                                 llvm::ArrayRef<PatchSource> probes,
                                                 unsigned number) {
    auto moved = [&](void *address) -> void * {
      auto *at = static_cast<std::byte *>(address);
      for (size_t i = 0; i < memory.size(); ++i)
        if (at >= memory[i].begin() && at <= memory[i].end() && at != nullptr)
          return reinterpret_cast<std::byte *>(probes[i].values[number]) + (at - memory[i].begin());
      return address;
    };
    std::vector<Slot> operands(args.operands.begin(), args.operands.end()),
        results(args.results.begin(), args.results.end());
    for (std::vector<Slot> *slots : {&operands, &results})
      for (Slot &slot : *slots)
        slot.address = moved(slot.address);
    std::vector<RNGState *> generators;
    for (RNGState *generator : args.generators)
      generators.push_back(static_cast<RNGState *>(moved(generator)));
    llvm::Expected<std::unique_ptr<Graph>> graph = device_->createGraph();
    if (!graph)
      return graph;
    GraphSink sink(device_, **graph);
    if (llvm::Error error =
            kernel.enqueue(sink, {operands, results, moved(args.workspace), generators}))
      return error;
    return graph;
  }

  DeviceRef device_;
  std::mt19937 random_;
  Counts counts_;
};

} // namespace rondo
