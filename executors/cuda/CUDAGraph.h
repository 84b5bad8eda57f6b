//===- CUDAGraph.h - Graphs of a GPU ----------------------------*- C++ -*-===//

#pragma once

#include "CUDACommands.h"

#include "llvm/ADT/DenseMap.h"

namespace rondo::cuda {

/// A cudaGraph_t with its nodes in the order in which they were added. A graph has it, and a
/// capture to the graph, which may outlive the graph.
struct CUDAGraphNodes {
  using Handles = llvm::SmallVector<cudaGraphNode_t, 4>;
  using Ids = llvm::SmallVector<GraphNodeId, 4>;

  struct Node {
    cudaGraphNode_t handle = nullptr;
    GraphNodeKind kind = GraphNodeKind::Other;
    /// A fill or copy of no bytes, which is an empty node for CUDA.
    bool isNoBytes = false;
    const void *function = nullptr;  ///< of a kernel
    size_t parameterBytes = 0;       ///< of the function
    CUDAKernelForm form = {};        ///< of a kernel
    unsigned elementBytes = 1;       ///< of what a fill writes again and again
    std::vector<size_t> pieces = {}; ///< bytes of each piece of a gather; else empty
    /// Why its parameters can be neither read nor set, as what it is; or null.
    const char *problem = nullptr;
  };

  /// Takes `graph` over, of whose nodes it knows none yet.
  CUDAGraphNodes(std::shared_ptr<CUDADevice> device, cudaGraph_t graph)
      : device(std::move(device)), graph(graph) {}
  ~CUDAGraphNodes();
  CUDAGraphNodes(const CUDAGraphNodes &) = delete;
  CUDAGraphNodes &operator=(const CUDAGraphNodes &) = delete;

  GraphNodeId append(const Node &node);
  /// Appends the nodes that a capture has added.
  llvm::Error appendNew();
  /// A copy that nobody else changes, with the same numbers.
  llvm::Expected<std::unique_ptr<CUDAGraphNodes>> clone() const;

  /// Each once, in the order of the ids, by which CUDA pairs the nodes of graphs. Errors:
  /// InvalidArgument if one of them is not a node of this graph.
  llvm::Expected<Handles> handles(llvm::ArrayRef<GraphNodeId> ids) const;
  /// Sorted.
  Ids ids(llvm::ArrayRef<cudaGraphNode_t> handles) const;
  /// Direct dependencies, sorted.
  Ids dependencies(GraphNodeId node) const;
  /// Errors: InvalidArgument if it is not a node of this graph.
  llvm::Error checkNode(GraphNodeId node) const;

  std::shared_ptr<CUDADevice> device;
  cudaGraph_t graph;
  std::vector<Node> nodes;
  bool isCaptured = false; ///< is there a capture to it?
  CUDAKept kept;           ///< what it keeps alive

private:
  llvm::Expected<Node> describe(cudaGraphNode_t handle) const;

  llvm::DenseMap<cudaGraphNode_t, GraphNodeId> ids_;
};

class CUDAGraph : public Graph {
public:
  explicit CUDAGraph(std::shared_ptr<CUDAGraphNodes> nodes) : nodes_(std::move(nodes)) {}

  DeviceAPI &device() override { return *nodes_->device; }
  llvm::Expected<GraphNodeId> addKernel(const KernelLaunch &launch,
                                        llvm::ArrayRef<GraphNodeId> dependencies) override;
  llvm::Expected<GraphNodeId> addFill(void *destination, FillValue value, size_t bytes,
                                      llvm::ArrayRef<GraphNodeId> dependencies) override;
  llvm::Expected<GraphNodeId> addCopy(void *destination, const void *source, size_t bytes,
                                      llvm::ArrayRef<GraphNodeId> dependencies) override;
  llvm::Expected<GraphNodeId> addEmpty(llvm::ArrayRef<GraphNodeId> dependencies) override;
  llvm::Expected<GraphNodeId> addGather(llvm::ArrayRef<CopyPiece> pieces,
                                        llvm::ArrayRef<GraphNodeId> dependencies) override;

  size_t numNodes() const override { return nodes_->nodes.size(); }
  GraphNodeKind kind(GraphNodeId node) const override { return nodes_->nodes[node.index()].kind; }
  llvm::SmallVector<GraphNodeId, 4> dependencies(GraphNodeId node) const override {
    return nodes_->dependencies(node);
  }
  llvm::Expected<GraphNodeParameters> parameters(GraphNodeId node) override;
  llvm::Expected<std::unique_ptr<GraphExec>> instantiate() override;

  const std::shared_ptr<CUDAGraphNodes> &nodes() const { return nodes_; }

private:
  /// Adds a node by the call `name` after checked dependencies.
  using AddNode =
      llvm::function_ref<cudaError_t(cudaGraphNode_t *, const cudaGraphNode_t *, size_t)>;
  llvm::Expected<GraphNodeId> add(CUDAGraphNodes::Node node, llvm::StringRef name,
                                  llvm::ArrayRef<GraphNodeId> dependencies, AddNode add);
  llvm::Expected<GraphNodeId> addNoBytes(GraphNodeKind kind,
                                         llvm::ArrayRef<GraphNodeId> dependencies);

  std::shared_ptr<CUDAGraphNodes> nodes_;
  std::vector<std::byte> parameters_; ///< of the kernel that was read last
};

} // namespace rondo::cuda
