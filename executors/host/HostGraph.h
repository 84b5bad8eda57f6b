//===- HostGraph.h - Graphs and execs of the host ---------------*- C++ -*-===//
//
// A graph is a list of commands with dependencies. A node can only depend on nodes that were added
// before it, so that the order of addition is a topological one.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "HostDeviceImpl.h"
#include "HostGraphCommands.h"

namespace rondo {

class HostGraph : public Graph {
public:
  using Dependencies = llvm::SmallVector<GraphNodeId, 4>;

  explicit HostGraph(std::shared_ptr<HostDevice> device) : device_(std::move(device)) {}
  ~HostGraph() override;

  DeviceAPI &device() override { return *device_; }
  llvm::Expected<GraphNodeId> addKernel(const KernelLaunch &launch,
                                        llvm::ArrayRef<GraphNodeId> dependencies) override;
  llvm::Expected<GraphNodeId> addFill(void *destination, FillValue value, size_t bytes,
                                      llvm::ArrayRef<GraphNodeId> dependencies) override;
  llvm::Expected<GraphNodeId> addCopy(void *destination, const void *source, size_t bytes,
                                      llvm::ArrayRef<GraphNodeId> dependencies) override;
  llvm::Expected<GraphNodeId> addEmpty(llvm::ArrayRef<GraphNodeId> dependencies) override;
  llvm::Expected<GraphNodeId> addGather(llvm::ArrayRef<CopyPiece> pieces,
                                        llvm::ArrayRef<GraphNodeId> dependencies) override;

  size_t numNodes() const override { return commands_.size(); }
  GraphNodeKind kind(GraphNodeId node) const override { return commands_[node.index()].kind; }
  Dependencies dependencies(GraphNodeId node) const override { return dependencies_[node.index()]; }
  llvm::Expected<GraphNodeParameters> parameters(GraphNodeId node) override;
  llvm::Expected<std::unique_ptr<GraphExec>> instantiate() override;

  const HostCommandList &commands() const { return commands_; }
  bool isOf(const HostDevice &device) const { return device_.get() == &device; }
  /// InvalidArgument if one of them is not a node of this graph.
  llvm::Error checkDependencies(llvm::ArrayRef<GraphNodeId> dependencies) const;
  /// Adds a node with valid arguments.
  GraphNodeId add(const HostCommand &command, llvm::ArrayRef<std::byte> parameters,
                  llvm::ArrayRef<GraphNodeId> dependencies);
  /// Is each of `nodes` one of `from` or a node that one of them depends on, directly or not?
  bool isReached(llvm::ArrayRef<GraphNodeId> nodes, llvm::ArrayRef<GraphNodeId> from) const;

  /// What it keeps alive, and everything that is made of it.
  using Kept = std::vector<std::shared_ptr<void>>;
  void keep(const Kept &resources) {
    kept_.insert(kept_.end(), resources.begin(), resources.end());
  }
  const Kept &kept() const { return kept_; }

  /// Adds `more` to `nodes`, which is and stays sorted and without duplicates.
  static void unite(llvm::SmallVectorImpl<GraphNodeId> &nodes, llvm::ArrayRef<GraphNodeId> more);

private:
  llvm::Expected<GraphNodeId> addChecked(llvm::StringRef problem, const HostCommand &command,
                                         llvm::ArrayRef<std::byte> parameters,
                                         llvm::ArrayRef<GraphNodeId> dependencies);

  std::shared_ptr<HostDevice> device_;
  HostCommandList commands_;
  std::vector<Dependencies> dependencies_;
  Kept kept_;
};

} // namespace rondo
