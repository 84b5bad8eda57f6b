//===- CUDAGraphExec.h - Instantiated graphs of a GPU -----------*- C++ -*-===//
//
// CUDA changes the parameters of an exec, but launches none on a stream in capture. So an exec has
// a template besides, a graph of its own that can be added to another as one node. Changes of
// parameters go to CUDA's exec at once, are noted, and go to the template when it is needed:
//
//   setKernel, setFill, setCopy, setGather  -->  cudaGraphExec_t  -->  launch
//            |
//            +-->  changes  -->  template  -->  launch in capture
//
// An update goes to CUDA's exec, too, and makes a copy of the other graph the template. CUDA knows
// the nodes of an exec by those of the graph that it was made of, its origin, which therefore
// stays.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "CUDAGraph.h"

namespace rondo::cuda {

class CUDAStream;

class CUDAGraphExec : public GraphExec {
public:
  static llvm::Expected<std::unique_ptr<GraphExec>> create(std::unique_ptr<CUDAGraphNodes> graph);
  ~CUDAGraphExec() override;

  void *nativeHandle() const override { return exec_; }
  llvm::Error launch(Stream &stream) override;
  llvm::Error launchUncaptured(Stream &stream) override;
  llvm::Error setKernel(GraphNodeId node, const KernelLaunch &launch) override;
  /// A fill or copy that was added with no bytes keeps none, and another keeps some.
  llvm::Error setFill(GraphNodeId node, void *destination, FillValue value, size_t bytes) override;
  llvm::Error setCopy(GraphNodeId node, void *destination, const void *source,
                      size_t bytes) override;
  llvm::Error setGather(GraphNodeId node, llvm::ArrayRef<CopyPiece> pieces) override;
  llvm::Error update(const Graph &graph) override;

private:
  /// The parameters that a node was last set to, of which the template may not know.
  struct Change {
    bool isPending = false;
    KernelLaunch launch; ///< of a kernel; the parameters lie in parameters_
    void *destination = nullptr;
    const void *source = nullptr;
    size_t bytes = 0;
    FillValue value;
  };

  CUDAGraphExec(std::unique_ptr<CUDAGraphNodes> graph, cudaGraphExec_t exec);
  /// Makes `graph`, which has the parameters of the exec, the template.
  void useTemplate(std::shared_ptr<CUDAGraphNodes> graph);
  cudaGraphNode_t originOf(GraphNodeId node) const { return origin_->nodes[node.index()].handle; }
  llvm::Error check(GraphNodeId node, llvm::StringRef problem, GraphNodeKind kind) const;
  llvm::Error checkBytes(GraphNodeId node, size_t bytes) const;
  llvm::Error refuse(GraphNodeId node, const llvm::Twine &expected, const llvm::Twine &given) const;
  /// Refuses a graph whose nodes are not those of the template.
  llvm::Error checkSameNodes(const CUDAGraphNodes &graph) const;
  llvm::Error explainUpdate(const CUDAGraphNodes &graph, const cudaGraphExecUpdateResultInfo &info,
                            llvm::Error error) const;
  void noteKernel(size_t node, const KernelLaunch &launch);
  llvm::Error launchInCapture(CUDAStream &stream);
  llvm::Error applyChanges();
  llvm::Error apply(const CUDAGraphNodes::Node &node, const Change &change);

  std::shared_ptr<CUDAGraphNodes> origin_, template_;
  bool isKeeping_ = false;               ///< does the template keep anything?
  std::shared_ptr<StreamTail> lastTail_; ///< where it was launched last, if it is keeping
  cudaGraphExec_t exec_;
  std::vector<Change> changes_; ///< by node
  std::vector<std::byte> parameters_;
  std::vector<size_t> firstParameter_; ///< by node, in parameters_
};

} // namespace rondo::cuda
