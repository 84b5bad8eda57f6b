//===- HostGraphExec.h - Instantiated graphs of the host --------*- C++ -*-===//
//
// The commands of an exec are a snapshot. A launch refers to the snapshot of its time; a change of
// parameters while a launch refers to the current one goes to a copy, which becomes the current
// one. Snapshots that no launch refers to are used again, so that in the steady state nothing is
// allocated.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "HostDeviceImpl.h"
#include "HostGraph.h"

namespace rondo {

/// The parameters of all nodes at one time.
struct HostExecSnapshot {
  HostCommandList commands;
  std::atomic<unsigned> launches = 0; ///< submitted and not done

  explicit HostExecSnapshot(const HostCommandList &commands) : commands(commands) {}
};

/// In which order launches run the nodes.
class HostExecOrder {
public:
  /// Without a seed the order of addition.
  HostExecOrder(llvm::ArrayRef<HostGraph::Dependencies> dependencies, std::optional<uint64_t> seed);
  /// Calls `run` with the number of every node, in an order that is drawn anew for every call: each
  /// time, each of the nodes whose dependencies have run is equally likely to be the next.
  void forEach(llvm::function_ref<void(size_t)> run);

private:
  size_t draw(size_t bound);

  size_t numNodes_;
  std::optional<uint64_t> state_; ///< of the random numbers
  std::vector<std::vector<uint32_t>> successors_;
  std::vector<uint32_t> numDependencies_, numWaitingFor_, ready_;
};

class HostGraphExec;

/// One launch that was submitted.
struct HostExecLaunch {
  HostGraphExec *exec = nullptr;
  HostExecSnapshot *snapshot = nullptr;
  HostWorkPoint point; ///< of the exec's launches
};

class HostGraphExec : public GraphExec {
public:
  HostGraphExec(std::shared_ptr<HostDevice> device, const HostCommandList &commands,
                std::vector<HostGraph::Dependencies> dependencies, HostGraph::Kept kept);
  ~HostGraphExec() override;

  llvm::Error launch(Stream &stream) override;
  llvm::Error setKernel(GraphNodeId node, const KernelLaunch &launch) override;
  llvm::Error setFill(GraphNodeId node, void *destination, FillValue value, size_t bytes) override;
  llvm::Error setCopy(GraphNodeId node, void *destination, const void *source,
                      size_t bytes) override;
  llvm::Error setGather(GraphNodeId node, llvm::ArrayRef<CopyPiece> pieces) override;
  llvm::Error update(const Graph &graph) override;

  /// Submits a launch, which then must be run.
  HostExecLaunch submit();
  /// Waits for the launches that were submitted before, runs the nodes in this thread, and lets go
  /// of the exec.
  void run(const HostExecLaunch &launch);
  /// Adds the nodes to a graph after `frontier`, which becomes the last of them.
  void addTo(HostGraph &graph, llvm::SmallVectorImpl<GraphNodeId> &frontier) const;

private:
  llvm::Error setCommand(GraphNodeId node, llvm::StringRef problem, const HostCommand &command,
                         llvm::ArrayRef<std::byte> parameters);
  llvm::Error checkNode(GraphNodeId node) const;
  llvm::Error refuse(size_t node, const llvm::Twine &expected, const llvm::Twine &given) const;
  /// Is `command` one that the node can have?
  llvm::Error checkCommand(size_t node, const HostCommand &command) const;
  HostExecSnapshot &writableSnapshot();

  std::shared_ptr<HostDevice> device_;
  HostGraph::Kept kept_; ///< of all graphs that it was made of or updated to
  std::vector<HostGraph::Dependencies> dependencies_;
  std::vector<std::unique_ptr<HostExecSnapshot>> snapshots_;
  HostExecSnapshot *current_;
  std::shared_ptr<HostTimeline> launches_ = std::make_shared<HostTimeline>();
  HostExecOrder order_; ///< of the launch that runs
};

} // namespace rondo
