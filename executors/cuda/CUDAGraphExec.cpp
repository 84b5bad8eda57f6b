//===- CUDAGraphExec.cpp - Instantiated graphs of a GPU -------------------===//

#include "CUDAGraphExec.h"

#include "CUDAGather.h"
#include "CUDAStream.h"

#include <cstring>

using namespace rondo;
using namespace rondo::cuda;

llvm::Expected<std::unique_ptr<GraphExec>>
CUDAGraphExec::create(std::unique_ptr<CUDAGraphNodes> graph) {
  CUDADevice &device = *graph->device;
  cudaGraphExec_t exec = nullptr;
  if (llvm::Error error = device.run("cudaGraphInstantiate",
                                     [&] { return cudaGraphInstantiate(&exec, graph->graph, 0); }))
    return error;
  std::unique_ptr<CUDAGraphExec> result(new CUDAGraphExec(std::move(graph), exec));
  if (result->template_->nodes.empty())
    return result;
  // The first launch then costs what every launch does.
  CUDARelaxedScope relaxed(device.driver());
  cudaStream_t stream = device.memory().ownStream();
  if (llvm::Error error =
          device.run("cudaGraphUpload", [&] { return cudaGraphUpload(exec, stream); }))
    return error;
  if (llvm::Error error =
          device.run("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(stream); }))
    return error;
  return result;
}

CUDAGraphExec::CUDAGraphExec(std::unique_ptr<CUDAGraphNodes> graph, cudaGraphExec_t exec)
    : origin_(std::move(graph)), exec_(exec) {
  useTemplate(origin_);
}

void CUDAGraphExec::useTemplate(std::shared_ptr<CUDAGraphNodes> graph) {
  if (template_ && template_ != graph) // launches of what it was are in flight
    for (std::shared_ptr<void> &resource : template_->kept)
      if (!llvm::is_contained(graph->kept, resource))
        graph->kept.push_back(resource);
  template_ = std::move(graph);
  isKeeping_ = !template_->kept.empty();
  changes_.assign(template_->nodes.size(), {});
  firstParameter_.clear();
  size_t numParameters = 0;
  for (const CUDAGraphNodes::Node &node : template_->nodes) {
    firstParameter_.push_back(numParameters);
    numParameters += node.parameterBytes;
  }
  parameters_.resize(numParameters);
}

/// CUDA keeps the exec until the launches in flight are done; what it kept is for others after
/// that.
CUDAGraphExec::~CUDAGraphExec() {
  template_->device->cleanUp("cudaGraphExecDestroy", [&] { return cudaGraphExecDestroy(exec_); });
  if (lastTail_)
    llvm::consumeError(lastTail_->synchronize());
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

llvm::Error CUDAGraphExec::launch(Stream &stream) {
  if (&stream.device() == template_->device.get())
    if (auto &cudaStream = static_cast<CUDAStream &>(stream);
        cudaStream.captureStatus() != CaptureStatus::None)
      return launchInCapture(cudaStream);
  return launchUncaptured(stream);
}

llvm::Error CUDAGraphExec::launchUncaptured(Stream &stream) {
  CUDADevice &device = *template_->device;
  if (&stream.device() != &device)
    return device.invalidArgument("expected a stream of this device to launch an exec on, given "
                                  "one of " +
                                  deviceName(stream.device().device()));
  auto &cudaStream = static_cast<CUDAStream &>(stream);
  if (LLVM_UNLIKELY(isKeeping_))
    lastTail_ = cudaStream.tail();
  return device.run("cuGraphLaunch",
                    [&] { return device.driver().cuGraphLaunch(exec_, cudaStream.handle()); });
}

llvm::Error CUDAGraphExec::launchInCapture(CUDAStream &stream) {
  if (llvm::Error error = stream.checkCapture())
    return error;
  if (template_->nodes.empty())
    return llvm::Error::success();
  if (llvm::Error error = applyChanges())
    return error;
  for (const std::shared_ptr<void> &resource : template_->kept)
    stream.keep(resource);
  return stream.addToCapture(template_->graph);
}

llvm::Error CUDAGraphExec::applyChanges() {
  for (auto [node, change] : llvm::zip(template_->nodes, changes_)) {
    if (!change.isPending)
      continue;
    if (llvm::Error error = apply(node, change))
      return error;
    change.isPending = false;
  }
  return llvm::Error::success();
}

/// With the node's elements, unless the memory is not of whole ones.
static cudaMemsetParams fillOf(const CUDAGraphNodes::Node &node, void *destination, FillValue value,
                               size_t bytes) {
  bool fits = FillValue::fits(destination, bytes, node.elementBytes);
  return fillParameters(destination, value, bytes, fits ? node.elementBytes : value.elementBytes());
}

llvm::Error CUDAGraphExec::apply(const CUDAGraphNodes::Node &node, const Change &change) {
  CUDADevice &device = *template_->device;
  if (node.kind == GraphNodeKind::Kernel) {
    CUDAKernelCommand command(change.launch, node.form);
    return device.run("cuGraphKernelNodeSetParams", [&] {
      return device.driver().cuGraphKernelNodeSetParams(node.handle, &command.node());
    });
  }
  if (node.kind == GraphNodeKind::Fill) {
    cudaMemsetParams parameters = fillOf(node, change.destination, change.value, change.bytes);
    return device.run("cudaGraphMemsetNodeSetParams",
                      [&] { return cudaGraphMemsetNodeSetParams(node.handle, &parameters); });
  }
  return device.run("cudaGraphMemcpyNodeSetParams1D", [&] {
    return cudaGraphMemcpyNodeSetParams1D(node.handle, change.destination, change.source,
                                          change.bytes, cudaMemcpyDefault);
  });
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

llvm::Error CUDAGraphExec::refuse(GraphNodeId node, const llvm::Twine &expected,
                                  const llvm::Twine &given) const {
  return template_->device->invalidArgument("node n" + llvm::Twine(node.index()) + " expects " +
                                            expected + ", given " + given);
}

llvm::Error CUDAGraphExec::check(GraphNodeId node, llvm::StringRef problem,
                                 GraphNodeKind kind) const {
  if (!problem.empty())
    return template_->device->invalidArgument(problem);
  if (llvm::Error error = template_->checkNode(node))
    return error;
  const CUDAGraphNodes::Node &own = template_->nodes[node.index()];
  if (own.kind != kind)
    return refuse(node, "parameters of a " + graphNodeKindName(own.kind),
                  "those of a " + graphNodeKindName(kind));
  if (own.problem)
    return template_->device->invalidArgument("node n" + llvm::Twine(node.index()) + " " +
                                              own.problem + ", whose parameters cannot be set");
  return llvm::Error::success();
}

llvm::Error CUDAGraphExec::checkBytes(GraphNodeId node, size_t bytes) const {
  bool isNoBytes = template_->nodes[node.index()].isNoBytes;
  if (isNoBytes == (bytes == 0))
    return llvm::Error::success();
  return refuse(node, isNoBytes ? "no bytes" : "bytes", llvm::Twine(bytes));
}

llvm::Error CUDAGraphExec::setKernel(GraphNodeId node, const KernelLaunch &launch) {
  if (llvm::Error error = check(node, problemOfKernel(launch), GraphNodeKind::Kernel))
    return error;
  const CUDAGraphNodes::Node &own = template_->nodes[node.index()];
  if (own.function != launch.function)
    return refuse(node, "its own kernel", "another");
  if (own.parameterBytes != launch.parameters.size())
    return refuse(node, llvm::Twine(own.parameterBytes) + " bytes of parameters",
                  llvm::Twine(launch.parameters.size()));
  CUDADevice &device = *template_->device;
  CUDAKernelCommand command(launch, own.form);
  if (llvm::Error error = device.run("cuGraphExecKernelNodeSetParams", [&] {
        return device.driver().cuGraphExecKernelNodeSetParams(exec_, originOf(node),
                                                              &command.node());
      }))
    return error;
  noteKernel(node.index(), launch);
  return llvm::Error::success();
}

void CUDAGraphExec::noteKernel(size_t node, const KernelLaunch &launch) {
  std::byte *block = parameters_.data() + firstParameter_[node];
  if (!launch.parameters.empty())
    std::memcpy(block, launch.parameters.data(), launch.parameters.size());
  Change &change = changes_[node];
  change.isPending = true;
  change.launch = launch;
  change.launch.parameters = {block, launch.parameters.size()};
}

llvm::Error CUDAGraphExec::setFill(GraphNodeId node, void *destination, FillValue value,
                                   size_t bytes) {
  if (llvm::Error error =
          check(node, problemOfFill(destination, value, bytes), GraphNodeKind::Fill))
    return error;
  if (llvm::Error error = checkBytes(node, bytes))
    return error;
  if (!bytes)
    return llvm::Error::success();
  const CUDAGraphNodes::Node &own = template_->nodes[node.index()];
  if (value.elementBytes() > own.elementBytes)
    return refuse(node,
                  "elements of at most " + llvm::Twine(own.elementBytes) + " bytes to fill with",
                  llvm::Twine(value.elementBytes()));
  cudaMemsetParams parameters = fillOf(own, destination, value, bytes);
  if (llvm::Error error = template_->device->run("cudaGraphExecMemsetNodeSetParams", [&] {
        return cudaGraphExecMemsetNodeSetParams(exec_, originOf(node), &parameters);
      }))
    return error;
  changes_[node.index()] = {true, {}, destination, nullptr, bytes, value};
  return llvm::Error::success();
}

llvm::Error CUDAGraphExec::setCopy(GraphNodeId node, void *destination, const void *source,
                                   size_t bytes) {
  if (llvm::Error error =
          check(node, problemOfCopy(destination, source, bytes), GraphNodeKind::Copy))
    return error;
  if (llvm::Error error = checkBytes(node, bytes))
    return error;
  if (!bytes)
    return llvm::Error::success();
  if (llvm::Error error = template_->device->run("cudaGraphExecMemcpyNodeSetParams1D", [&] {
        return cudaGraphExecMemcpyNodeSetParams1D(exec_, originOf(node), destination, source, bytes,
                                                  cudaMemcpyDefault);
      }))
    return error;
  changes_[node.index()] = {true, {}, destination, source, bytes, FillValue()};
  return llvm::Error::success();
}

llvm::Error CUDAGraphExec::setGather(GraphNodeId node, llvm::ArrayRef<CopyPiece> pieces) {
  if (llvm::Error error = template_->checkNode(node))
    return error;
  const CUDAGraphNodes::Node &own = template_->nodes[node.index()];
  if (own.pieces.empty())
    return refuse(node, "parameters of a " + graphNodeKindName(own.kind), "those of a gather");
  if (std::string problem = problemOfGather(pieces, own.pieces); !problem.empty())
    return template_->device->invalidArgument(problem);
  CUDAGather gather(pieces);
  return setKernel(node, gather.launch(own.function));
}

//===----------------------------------------------------------------------===//
// The parameters of another graph
//===----------------------------------------------------------------------===//

llvm::Error CUDAGraphExec::checkSameNodes(const CUDAGraphNodes &graph) const {
  size_t numNodes = template_->nodes.size();
  if (graph.nodes.size() != numNodes)
    return template_->device->invalidArgument("expected a graph of " + llvm::Twine(numNodes) +
                                              " nodes to update an exec to, given one of " +
                                              llvm::Twine(graph.nodes.size()));
  for (size_t i = 0; i < numNodes; ++i) {
    const CUDAGraphNodes::Node &own = template_->nodes[i], &other = graph.nodes[i];
    GraphNodeId node(i);
    if (own.kind != other.kind)
      return refuse(node, "parameters of a " + graphNodeKindName(own.kind),
                    "those of a " + graphNodeKindName(other.kind));
    if (own.isNoBytes != other.isNoBytes)
      return refuse(node, own.isNoBytes ? "no bytes" : "bytes", own.isNoBytes ? "some" : "none");
    if (own.function != other.function)
      return refuse(node, "its own kernel", "another");
    if (template_->dependencies(node) != graph.dependencies(node))
      return refuse(node, "its own dependencies", "others");
  }
  return llvm::Error::success();
}

/// Why CUDA refused to update a node.
static llvm::StringRef updateProblem(cudaGraphExecUpdateResult result) {
  switch (result) {
  case cudaGraphExecUpdateErrorTopologyChanged:
    return "its own dependencies, given others";
  case cudaGraphExecUpdateErrorNodeTypeChanged:
    return "parameters of its own kind, given those of another";
  case cudaGraphExecUpdateErrorFunctionChanged:
  case cudaGraphExecUpdateErrorUnsupportedFunctionChange:
    return "its own kernel, given another";
  case cudaGraphExecUpdateErrorAttributesChanged:
    return "its own attributes, given others";
  default:
    return "parameters that CUDA can change, given others";
  }
}

/// Names the node of `graph` for which CUDA refused the update, if it was for one.
llvm::Error CUDAGraphExec::explainUpdate(const CUDAGraphNodes &graph,
                                         const cudaGraphExecUpdateResultInfo &info,
                                         llvm::Error error) const {
  if (deviceErrorKind(error) == DeviceErrorKind::Lost || info.result == cudaGraphExecUpdateSuccess)
    return error;
  CUDAGraphNodes::Ids refused = graph.ids(info.errorNode);
  if (refused.empty())
    return llvm::handleErrors(std::move(error), [](const DeviceError &why) {
      return makeDeviceError(DeviceErrorKind::InvalidArgument, why.text());
    });
  llvm::consumeError(std::move(error));
  return template_->device->invalidArgument("node n" + llvm::Twine(refused.front().index()) +
                                            " expects " + updateProblem(info.result));
}

llvm::Error CUDAGraphExec::update(const Graph &graph) {
  CUDADevice &device = *template_->device;
  const auto *cudaGraph = dynamic_cast<const CUDAGraph *>(&graph);
  if (!cudaGraph || cudaGraph->nodes()->device.get() != &device)
    return device.invalidArgument("expected a graph of this device to update an exec to, given one "
                                  "of another");
  llvm::Expected<std::unique_ptr<CUDAGraphNodes>> nodes = cudaGraph->nodes()->clone();
  if (!nodes)
    return nodes.takeError();
  if (llvm::Error error = checkSameNodes(**nodes))
    return error;
  CUDARelaxedScope relaxed(device.driver());
  cudaGraphExecUpdateResultInfo info = {};
  if (llvm::Error error = device.run("cudaGraphExecUpdate", [&] {
        return cudaGraphExecUpdate(exec_, (*nodes)->graph, &info);
      }))
    return explainUpdate(**nodes, info, std::move(error));
  useTemplate(std::move(*nodes));
  return llvm::Error::success();
}
