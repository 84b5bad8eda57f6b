//===- CUDAGraph.cpp - Graphs of a GPU ------------------------------------===//

#include "CUDAGraph.h"

#include "CUDAFunctions.h"
#include "CUDAGather.h"
#include "CUDAGraphExec.h"
#include "CUDANodeParameters.h"

#include <algorithm>

using namespace rondo;
using namespace rondo::cuda;

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

CUDAGraphNodes::~CUDAGraphNodes() {
  device->cleanUp("cudaGraphDestroy", [&] { return cudaGraphDestroy(graph); });
}

GraphNodeId CUDAGraphNodes::append(const Node &node) {
  GraphNodeId id(nodes.size());
  nodes.push_back(node);
  ids_[node.handle] = id;
  return id;
}

/// CUDA gives the nodes in the order in which they were added.
llvm::Error CUDAGraphNodes::appendNew() {
  size_t count = 0;
  if (llvm::Error error = device->run("cudaGraphGetNodes",
                                      [&] { return cudaGraphGetNodes(graph, nullptr, &count); }))
    return error;
  if (count == nodes.size())
    return llvm::Error::success();
  llvm::SmallVector<cudaGraphNode_t, 16> all(count);
  if (llvm::Error error = device->run("cudaGraphGetNodes",
                                      [&] { return cudaGraphGetNodes(graph, all.data(), &count); }))
    return error;
  for (cudaGraphNode_t handle : all) {
    if (ids_.count(handle))
      continue;
    llvm::Expected<Node> node = describe(handle);
    if (!node)
      return node.takeError();
    append(*node);
  }
  return llvm::Error::success();
}

static GraphNodeKind kindOf(cudaGraphNodeType type) {
  switch (type) {
  case cudaGraphNodeTypeKernel:
    return GraphNodeKind::Kernel;
  case cudaGraphNodeTypeMemset:
    return GraphNodeKind::Fill;
  case cudaGraphNodeTypeMemcpy:
    return GraphNodeKind::Copy;
  case cudaGraphNodeTypeEmpty:
    return GraphNodeKind::Empty;
  case cudaGraphNodeTypeConditional:
    return GraphNodeKind::Conditional;
  default:
    return GraphNodeKind::Other;
  }
}

llvm::Expected<CUDAGraphNodes::Node> CUDAGraphNodes::describe(cudaGraphNode_t handle) const {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  if (llvm::Error error =
          device->run("cudaGraphNodeGetType", [&] { return cudaGraphNodeGetType(handle, &type); }))
    return error;
  Node node{.handle = handle, .kind = kindOf(type)};
  if (llvm::Error error = describeNode(*device, node))
    return error;
  return node;
}

llvm::Expected<std::unique_ptr<CUDAGraphNodes>> CUDAGraphNodes::clone() const {
  cudaGraph_t copy = nullptr;
  if (llvm::Error error =
          device->run("cudaGraphClone", [&] { return cudaGraphClone(&copy, graph); }))
    return error;
  auto result = std::make_unique<CUDAGraphNodes>(device, copy);
  result->kept = kept;
  for (Node node : nodes) {
    cudaGraphNode_t original = node.handle;
    if (llvm::Error error = device->run("cudaGraphNodeFindInClone", [&] {
          return cudaGraphNodeFindInClone(&node.handle, original, copy);
        }))
      return error;
    result->append(node);
  }
  return result;
}

llvm::Expected<CUDAGraphNodes::Handles>
CUDAGraphNodes::handles(llvm::ArrayRef<GraphNodeId> ids) const {
  for (GraphNodeId id : ids)
    if (!id || id.index() >= nodes.size())
      return device->invalidArgument("expected dependencies below n" + llvm::Twine(nodes.size()) +
                                     ", given " + (id ? "n" + llvm::Twine(id.index()) : "none"));
  Ids sorted(ids.begin(), ids.end());
  llvm::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  Handles result;
  for (GraphNodeId id : sorted)
    result.push_back(nodes[id.index()].handle);
  return result;
}

CUDAGraphNodes::Ids CUDAGraphNodes::ids(llvm::ArrayRef<cudaGraphNode_t> handles) const {
  Ids result;
  for (cudaGraphNode_t handle : handles)
    if (auto id = ids_.find(handle); id != ids_.end())
      result.push_back(id->second);
  llvm::sort(result);
  return result;
}

CUDAGraphNodes::Ids CUDAGraphNodes::dependencies(GraphNodeId node) const {
  const CUDADriver &driver = device->driver();
  cudaGraphNode_t handle = nodes[node.index()].handle;
  Handles found;
  llvm::SmallVector<CUgraphEdgeData, 4> edges;
  size_t count = 0;
  llvm::Error error = device->run("cuGraphNodeGetDependencies", [&] {
    CUresult result = driver.cuGraphNodeGetDependencies(handle, nullptr, nullptr, &count);
    if (result != CUDA_SUCCESS || !count)
      return result;
    found.resize(count);
    edges.resize(count);
    return driver.cuGraphNodeGetDependencies(handle, found.data(), edges.data(), &count);
  });
  if (error) {
    llvm::consumeError(std::move(error)); // the device is lost
    return {};
  }
  return ids(found);
}

llvm::Error CUDAGraphNodes::checkNode(GraphNodeId node) const {
  if (node && node.index() < nodes.size())
    return llvm::Error::success();
  return device->invalidArgument("expected a node below n" + llvm::Twine(nodes.size()) +
                                 ", given " + (node ? "n" + llvm::Twine(node.index()) : "none"));
}

//===----------------------------------------------------------------------===//
// Adding
//===----------------------------------------------------------------------===//

llvm::Expected<GraphNodeId> CUDAGraph::add(CUDAGraphNodes::Node node, llvm::StringRef name,
                                           llvm::ArrayRef<GraphNodeId> dependencies, AddNode add) {
  llvm::Expected<CUDAGraphNodes::Handles> handles = nodes_->handles(dependencies);
  if (!handles)
    return handles.takeError();
  if (llvm::Error error = nodes_->device->run(
          name, [&] { return add(&node.handle, handles->data(), handles->size()); }))
    return error;
  return nodes_->append(node);
}

llvm::Expected<GraphNodeId> CUDAGraph::addKernel(const KernelLaunch &launch,
                                                 llvm::ArrayRef<GraphNodeId> dependencies) {
  CUDADevice &device = *nodes_->device;
  if (llvm::StringRef problem = problemOfKernel(launch); !problem.empty())
    return device.invalidArgument(problem);
  if (device.isLost())
    return device.lostError();
  CUDAGraphNodes::Node node{.kind = GraphNodeKind::Kernel, .function = launch.function};
  node.form.function = asFunction(launch.function);
  node.parameterBytes = parameterBytesOf(device, launch.function);
  if (launch.parameters.size() != node.parameterBytes)
    return device.invalidArgument(
        problemOfParameters(node.parameterBytes, launch.parameters.size()));
  CUDAKernelCommand command(launch);
  return add(node, "cuGraphAddKernelNode", dependencies,
             [&](cudaGraphNode_t *added, const cudaGraphNode_t *after, size_t count) {
               return asRuntimeResult(device.driver().cuGraphAddKernelNode(
                   added, nodes_->graph, after, count, &command.node()));
             });
}

llvm::Expected<GraphNodeId> CUDAGraph::addFill(void *destination, FillValue value, size_t bytes,
                                               llvm::ArrayRef<GraphNodeId> dependencies) {
  if (llvm::StringRef problem = problemOfFill(destination, value, bytes); !problem.empty())
    return nodes_->device->invalidArgument(problem);
  if (!bytes)
    return addNoBytes(GraphNodeKind::Fill, dependencies);
  unsigned elementBytes = value.elementBytes();
  cudaMemsetParams parameters = fillParameters(destination, value, bytes, elementBytes);
  return add({.kind = GraphNodeKind::Fill, .elementBytes = elementBytes}, "cudaGraphAddMemsetNode",
             dependencies, [&](cudaGraphNode_t *added, const cudaGraphNode_t *after, size_t count) {
               return cudaGraphAddMemsetNode(added, nodes_->graph, after, count, &parameters);
             });
}

llvm::Expected<GraphNodeId> CUDAGraph::addCopy(void *destination, const void *source, size_t bytes,
                                               llvm::ArrayRef<GraphNodeId> dependencies) {
  if (llvm::StringRef problem = problemOfCopy(destination, source, bytes); !problem.empty())
    return nodes_->device->invalidArgument(problem);
  if (!bytes)
    return addNoBytes(GraphNodeKind::Copy, dependencies);
  return add({.kind = GraphNodeKind::Copy}, "cudaGraphAddMemcpyNode1D", dependencies,
             [&](cudaGraphNode_t *added, const cudaGraphNode_t *after, size_t count) {
               return cudaGraphAddMemcpyNode1D(added, nodes_->graph, after, count, destination,
                                               source, bytes, cudaMemcpyDefault);
             });
}

llvm::Expected<GraphNodeId> CUDAGraph::addEmpty(llvm::ArrayRef<GraphNodeId> dependencies) {
  return addNoBytes(GraphNodeKind::Empty, dependencies);
}

llvm::Expected<GraphNodeId> CUDAGraph::addNoBytes(GraphNodeKind kind,
                                                  llvm::ArrayRef<GraphNodeId> dependencies) {
  return add({.kind = kind, .isNoBytes = true}, "cudaGraphAddEmptyNode", dependencies,
             [&](cudaGraphNode_t *added, const cudaGraphNode_t *after, size_t count) {
               return cudaGraphAddEmptyNode(added, nodes_->graph, after, count);
             });
}

llvm::Expected<GraphNodeId> CUDAGraph::addGather(llvm::ArrayRef<CopyPiece> pieces,
                                                 llvm::ArrayRef<GraphNodeId> dependencies) {
  if (std::string problem = problemOfGather(pieces); !problem.empty())
    return nodes_->device->invalidArgument(problem);
  llvm::Expected<const void *> function = loadFunction(*nodes_->device, pieceCopyKernel());
  if (!function)
    return function.takeError();
  CUDAGather gather(pieces);
  llvm::Expected<GraphNodeId> node = addKernel(gather.launch(*function), dependencies);
  if (node)
    for (const CopyPiece &piece : pieces)
      nodes_->nodes[node->index()].pieces.push_back(piece.bytes);
  return node;
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

llvm::Expected<GraphNodeParameters> CUDAGraph::parameters(GraphNodeId node) {
  if (llvm::Error error = nodes_->checkNode(node))
    return error;
  const CUDAGraphNodes::Node &own = nodes_->nodes[node.index()];
  if (own.problem)
    return nodes_->device->invalidArgument("node n" + llvm::Twine(node.index()) + " " +
                                           own.problem + ", whose parameters cannot be read");
  return readNode(*nodes_->device, own, parameters_);
}

llvm::Expected<std::unique_ptr<GraphExec>> CUDAGraph::instantiate() {
  llvm::Expected<std::unique_ptr<CUDAGraphNodes>> nodes = nodes_->clone();
  if (!nodes)
    return nodes.takeError();
  return CUDAGraphExec::create(std::move(*nodes));
}
