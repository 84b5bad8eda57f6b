//===- CUDAGraphExec.cpp - Instantiated graphs of a GPU -------------------===//

#include "CUDAGraphExec.h"

#include "CUDACommands.h"
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
    : template_(std::move(graph)), exec_(exec), changes_(template_->nodes.size()) {
  size_t numParameters = 0;
  for (const CUDAGraphNodes::Node &node : template_->nodes) {
    firstParameter_.push_back(numParameters);
    numParameters += node.parameterBytes;
  }
  parameters_.resize(numParameters);
}

/// CUDA keeps the exec until the launches in flight are done.
CUDAGraphExec::~CUDAGraphExec() {
  template_->device->cleanUp("cudaGraphExecDestroy", [&] { return cudaGraphExecDestroy(exec_); });
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
  return device.run("cudaGraphLaunch", [&] { return cudaGraphLaunch(exec_, cudaStream.handle()); });
}

llvm::Error CUDAGraphExec::launchInCapture(CUDAStream &stream) {
  if (llvm::Error error = stream.checkCapture())
    return error;
  if (template_->nodes.empty())
    return llvm::Error::success();
  if (llvm::Error error = applyChanges())
    return error;
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

llvm::Error CUDAGraphExec::apply(const CUDAGraphNodes::Node &node, const Change &change) {
  CUDADevice &device = *template_->device;
  if (node.kind == GraphNodeKind::Kernel) {
    CUDAKernelCommand command(change.launch);
    return device.run("cuGraphKernelNodeSetParams", [&] {
      return device.driver().cuGraphKernelNodeSetParams(node.handle, &command.node());
    });
  }
  if (node.kind == GraphNodeKind::Fill) {
    cudaMemsetParams parameters = fillParameters(change.destination, change.value, change.bytes);
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
  size_t numNodes = template_->nodes.size();
  if (!node || node.index() >= numNodes)
    return template_->device->invalidArgument("expected a node below n" + llvm::Twine(numNodes) +
                                              ", given " +
                                              (node ? "n" + llvm::Twine(node.index()) : "none"));
  GraphNodeKind ofNode = template_->nodes[node.index()].kind;
  if (ofNode != kind)
    return refuse(node, "parameters of a " + graphNodeKindName(ofNode),
                  "those of a " + graphNodeKindName(kind));
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
  CUDAKernelCommand command(launch);
  if (llvm::Error error = device.run("cuGraphExecKernelNodeSetParams", [&] {
        return device.driver().cuGraphExecKernelNodeSetParams(exec_, own.handle, &command.node());
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

llvm::Error CUDAGraphExec::setFill(GraphNodeId node, void *destination, uint8_t value,
                                   size_t bytes) {
  if (llvm::Error error = check(node, problemOfFill(destination, bytes), GraphNodeKind::Fill))
    return error;
  if (llvm::Error error = checkBytes(node, bytes))
    return error;
  if (!bytes)
    return llvm::Error::success();
  cudaMemsetParams parameters = fillParameters(destination, value, bytes);
  cudaGraphNode_t handle = template_->nodes[node.index()].handle;
  if (llvm::Error error = template_->device->run("cudaGraphExecMemsetNodeSetParams", [&] {
        return cudaGraphExecMemsetNodeSetParams(exec_, handle, &parameters);
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
  cudaGraphNode_t handle = template_->nodes[node.index()].handle;
  if (llvm::Error error = template_->device->run("cudaGraphExecMemcpyNodeSetParams1D", [&] {
        return cudaGraphExecMemcpyNodeSetParams1D(exec_, handle, destination, source, bytes,
                                                  cudaMemcpyDefault);
      }))
    return error;
  changes_[node.index()] = {true, {}, destination, source, bytes, 0};
  return llvm::Error::success();
}
