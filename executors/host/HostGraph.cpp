//===- HostGraph.cpp - Graphs of the host ---------------------------------===//

#include "HostGraph.h"

#include "HostGraphExec.h"

#include "llvm/ADT/BitVector.h"

#include <algorithm>

using namespace rondo;

HostGraph::~HostGraph() {
  device_->captures().graphDestroyed(*this);
}

llvm::Expected<GraphNodeId> HostGraph::addKernel(const KernelLaunch &launch,
                                                 llvm::ArrayRef<GraphNodeId> dependencies) {
  return addChecked(problemOfKernel(launch), HostCommand::kernel(launch), launch.parameters,
                    dependencies);
}

llvm::Expected<GraphNodeId> HostGraph::addFill(void *destination, FillValue value, size_t bytes,
                                               llvm::ArrayRef<GraphNodeId> dependencies) {
  return addChecked(problemOfFill(destination, value, bytes),
                    HostCommand::fill(destination, value, bytes), {}, dependencies);
}

llvm::Expected<GraphNodeId> HostGraph::addCopy(void *destination, const void *source, size_t bytes,
                                               llvm::ArrayRef<GraphNodeId> dependencies) {
  return addChecked(problemOfCopy(destination, source, bytes),
                    HostCommand::copy(destination, source, bytes), {}, dependencies);
}

llvm::Expected<GraphNodeId> HostGraph::addEmpty(llvm::ArrayRef<GraphNodeId> dependencies) {
  return addChecked("", HostCommand(), {}, dependencies);
}

llvm::Expected<GraphNodeId> HostGraph::addGather(llvm::ArrayRef<CopyPiece> pieces,
                                                 llvm::ArrayRef<GraphNodeId> dependencies) {
  if (std::string problem = problemOfGather(pieces); !problem.empty())
    return device_->invalidArgument(problem);
  HostGather gather(pieces);
  return addKernel(gather.launch(), dependencies);
}

llvm::Expected<GraphNodeId> HostGraph::addChecked(llvm::StringRef problem,
                                                  const HostCommand &command,
                                                  llvm::ArrayRef<std::byte> parameters,
                                                  llvm::ArrayRef<GraphNodeId> dependencies) {
  if (!problem.empty())
    return device_->invalidArgument(problem);
  if (llvm::Error error = checkDependencies(dependencies))
    return error;
  return add(command, parameters, dependencies);
}

llvm::Error HostGraph::checkDependencies(llvm::ArrayRef<GraphNodeId> dependencies) const {
  for (GraphNodeId node : dependencies)
    if (!node || node.index() >= numNodes())
      return device_->invalidArgument("expected dependencies below n" + llvm::Twine(numNodes()) +
                                      ", given " +
                                      (node ? "n" + llvm::Twine(node.index()) : "none"));
  return llvm::Error::success();
}

GraphNodeId HostGraph::add(const HostCommand &command, llvm::ArrayRef<std::byte> parameters,
                           llvm::ArrayRef<GraphNodeId> dependencies) {
  unite(dependencies_.emplace_back(), dependencies);
  commands_.add(command, parameters);
  return GraphNodeId(numNodes() - 1);
}

bool HostGraph::isReached(llvm::ArrayRef<GraphNodeId> nodes,
                          llvm::ArrayRef<GraphNodeId> from) const {
  if (std::includes(from.begin(), from.end(), nodes.begin(), nodes.end()))
    return true;
  llvm::BitVector reached(numNodes());
  for (GraphNodeId node : from)
    reached.set(node.index());
  for (size_t i = numNodes(); i-- > 0;)
    if (reached[i])
      for (GraphNodeId dependency : dependencies_[i])
        reached.set(dependency.index());
  return llvm::all_of(nodes, [&](GraphNodeId node) { return reached[node.index()]; });
}

void HostGraph::unite(llvm::SmallVectorImpl<GraphNodeId> &nodes, llvm::ArrayRef<GraphNodeId> more) {
  for (GraphNodeId node : more) {
    auto *place = llvm::lower_bound(nodes, node);
    if (place == nodes.end() || *place != node)
      nodes.insert(place, node);
  }
}

llvm::Expected<GraphNodeParameters> HostGraph::parameters(GraphNodeId node) {
  if (!node || node.index() >= numNodes())
    return device_->invalidArgument("expected a node below n" + llvm::Twine(numNodes()) +
                                    ", given " + (node ? "n" + llvm::Twine(node.index()) : "none"));
  const HostCommand &command = commands_[node.index()];
  GraphNodeParameters result;
  result.kind = command.kind;
  result.kernel = {reinterpret_cast<const void *>(command.function), command.grid, command.block,
                   command.sharedBytes, commands_.parameters(node.index())};
  result.destination = command.destination;
  result.source = command.source;
  result.bytes = command.bytes;
  result.value = command.value;
  return result;
}

llvm::Expected<std::unique_ptr<GraphExec>> HostGraph::instantiate() {
  if (llvm::Error error = device_->captures().refuseUnsafe("instantiate"))
    return error;
  return std::make_unique<HostGraphExec>(device_, commands_, dependencies_, kept_);
}
