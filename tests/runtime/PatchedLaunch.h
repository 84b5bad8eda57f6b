//===- PatchedLaunch.h - Kernels that were captured elsewhere ---*- C++ -*-===//
//
// The proof that pointers in captured kernels can be changed: a kernel is captured with all its
// memory at three sets of probe addresses, the graph is patched to the addresses of the run, and
// what it does there must be, bit for bit, what the kernel does eagerly. Nothing may happen to the
// memory at the probe addresses.
//
// The graphs are built and explained as a program does it (GraphBuilder.cpp): the first one is to
// run, the others, among them a control at the addresses of the first, are rehearsals. A kernel
// that looks at the alignment of its memory is captured again, at addresses that are as far from a
// multiple of 256 as those of the run.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "GraphSink.h"
#include "PatchTable.h"

#include "support/RunOp.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <ostream>
#include <random>
#include <set>

namespace rondo {

/// An OpLauncher. Counts what it did.
class PatchedLaunch {
public:
  struct Counts {
    unsigned launches = 0;    ///< by a patched graph
    unsigned congruent = 0;   ///< among them, at addresses that are congruent modulo 256
    unsigned eager = 0;       ///< of kernels that cannot be captured
    unsigned unexplained = 0; ///< of kernels with words that are not understood
    unsigned nodes = 0;       ///< that were patched

    friend std::ostream &operator<<(std::ostream &os, const Counts &counts) {
      return os << counts.launches << " calls patched and bit-equal, " << counts.congruent
                << " of them at congruent addresses only, " << counts.nodes << " nodes, "
                << counts.unexplained << " not explained, " << counts.eager << " not capturable";
    }
  };

  explicit PatchedLaunch(DeviceRef device) : device_(std::move(device)) {}

  const Counts &counts() const { return counts_; }

  llvm::Error launch(const Kernel &kernel, const KernelArgs &args,
                     llvm::ArrayRef<llvm::ArrayRef<std::byte>> memory, Stream &stream) {
    std::string problem;
    for (uint64_t unit : {DeviceAPI::minAlignment, DeviceAPI::allocationAlignment}) {
      llvm::Expected<Probes> probes = place(memory, unit);
      if (!probes)
        return probes.takeError();
      llvm::Expected<Graphs> graphs = captureAll(kernel, args, memory, *probes);
      if (!graphs) {
        llvm::Error error = graphs.takeError();
        if (deviceErrorKind(error) == DeviceErrorKind::InvalidArgument &&
            unit != DeviceAPI::allocationAlignment) { // it may want more than 16 bytes
          problem = llvm::toString(std::move(error));
          continue;
        }
        if (deviceErrorKind(error) != DeviceErrorKind::NotCapturable)
          return error;
        llvm::consumeError(std::move(error));
        ++counts_.eager;
        return kernel.enqueue(stream, args);
      }
      llvm::Expected<PatchTable> table = explain(*graphs, *probes);
      if (!table)
        return table.takeError();
      problem = problemOf(*table, memory.size());
      if (!problem.empty())
        continue;
      counts_.congruent += unit == DeviceAPI::allocationAlignment;
      llvm::Expected<std::unique_ptr<GraphExec>> exec = graphs->front()->instantiate();
      if (!exec)
        return exec.takeError();
      return compare(kernel, args, memory, stream, **exec, *table, *probes->room);
    }
    ++counts_.unexplained;
    return makeError("not patchable: " + problem);
  }

private:
  using Contents = std::vector<std::vector<std::byte>>;
  /// The one that is launched, two with the memory elsewhere, and the control.
  using Graphs = std::array<std::unique_ptr<Graph>, 4>;
  struct Probes {
    StorageRef room;
    std::vector<PatchSource> sources; ///< of each block of memory
  };

  /// Addresses that differ from those of the run by multiples of `unit`. In no graph do blocks
  /// overlap, which some libraries refuse.
  llvm::Expected<Probes> place(llvm::ArrayRef<llvm::ArrayRef<std::byte>> memory, uint64_t unit) {
    Probes probes{nullptr, std::vector<PatchSource>(memory.size())};
    std::vector<size_t> order(memory.size());
    std::iota(order.begin(), order.end(), 0);
    uint64_t most = 0;
    do {
      for (unsigned graph = 0; graph < 3; ++graph) {
        std::shuffle(order.begin(), order.end(), random_);
        uint64_t end = 0;
        for (size_t i : order) {
          uint64_t first =
              end + random_() % 64 * DeviceAPI::allocationAlignment + random_() % 16 * unit;
          end = llvm::alignTo(first + memory[i].size() + unit, DeviceAPI::allocationAlignment);
          probes.sources[i].values[graph] = first;
        }
        most = std::max(most, end);
      }
    } while (!canBeTold(probes.sources));
    llvm::Expected<StorageRef> room = Storage::allocate(device_, most + 2 * unit);
    if (!room)
      return room.takeError();
    probes.room = std::move(*room);
    for (size_t i = 0; i < memory.size(); ++i)
      for (uint64_t &value : probes.sources[i].values)
        value += asWord(probes.room->data()) + asWord(memory[i].data()) % unit;
    return probes;
  }

  /// Does each block change in its own way, and by more than what is left of an address modulo its
  /// alignment?
  static bool canBeTold(llvm::ArrayRef<PatchSource> sources) {
    constexpr int64_t least = DeviceAPI::allocationAlignment;
    std::set<std::pair<int64_t, int64_t>> changes;
    return llvm::all_of(sources, [&](const PatchSource &source) {
      int64_t first = int64_t(source.values[1] - source.values[0]),
              second = int64_t(source.values[2] - source.values[0]);
      return std::abs(first) >= least && std::abs(second) >= least && first != second &&
             changes.insert({first, second}).second;
    });
  }

  llvm::Expected<Graphs> captureAll(const Kernel &kernel, const KernelArgs &args,
                                    llvm::ArrayRef<llvm::ArrayRef<std::byte>> memory,
                                    const Probes &probes) {
    Graphs graphs;
    for (auto [graph, number, isRehearsal] :
         {std::tuple(0u, 0u, false), {3u, 0u, true}, {1u, 1u, true}, {2u, 2u, true}}) {
      llvm::Expected<std::unique_ptr<Graph>> captured =
          capture(kernel, args, memory, probes.sources, number, isRehearsal);
      if (!captured)
        return captured.takeError();
      graphs[graph] = std::move(*captured);
    }
    return graphs;
  }

  static llvm::Expected<PatchTable> explain(const Graphs &graphs, const Probes &probes) {
    auto uses = [&](GraphNodeId, llvm::function_ref<void(unsigned)> visit) {
      for (unsigned i = 0; i < probes.sources.size(); ++i)
        visit(i);
    };
    PatchProbe probe{{graphs[0].get(), graphs[1].get(), graphs[2].get()}, probes.sources, {}, uses};
    probe.control = graphs[3].get();
    return PatchTable::explain(probe);
  }

  /// Why a block cannot be patched; empty if all can.
  static std::string problemOf(const PatchTable &table, unsigned numBlocks) {
    for (unsigned i = 0; i < numBlocks; ++i)
      if (!table.problem(i).empty())
        return table.problem(i).str();
    return "";
  }

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
                                                 unsigned number, bool isRehearsal) {
    auto moved = [&](void *address) -> void * {
      auto *at = static_cast<std::byte *>(address);
      // What is empty may lie at the end of its block; another block may begin there.
      for (int room : {0, 1})
        for (size_t i = 0; i < memory.size() && at; ++i)
          if (at >= memory[i].begin() && at < memory[i].end() + room)
            return reinterpret_cast<std::byte *>(probes[i].values[number]) +
                   (at - memory[i].begin());
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
    GraphSink sink(device_, **graph,
                   isRehearsal ? std::optional<size_t>(~size_t(0)) : std::nullopt);
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
