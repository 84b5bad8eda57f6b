//===- HostGraphExec.cpp - Instantiated graphs of the host ----------------===//

#include "HostGraphExec.h"

#include "HostStream.h"

using namespace rondo;

//===----------------------------------------------------------------------===//
// Order of nodes
//===----------------------------------------------------------------------===//

HostExecOrder::HostExecOrder(llvm::ArrayRef<HostGraph::Dependencies> dependencies,
                             std::optional<uint64_t> seed)
    : numNodes_(dependencies.size()), state_(seed) {
  if (!seed)
    return;
  successors_.resize(numNodes_);
  for (size_t i = 0; i < numNodes_; ++i) {
    numDependencies_.push_back(dependencies[i].size());
    for (GraphNodeId dependency : dependencies[i])
      successors_[dependency.index()].push_back(i);
  }
  numWaitingFor_.reserve(numNodes_);
  ready_.reserve(numNodes_);
}

void HostExecOrder::forEach(llvm::function_ref<void(size_t)> run) {
  if (!state_) {
    for (size_t i = 0; i < numNodes_; ++i)
      run(i);
    return;
  }
  numWaitingFor_ = numDependencies_;
  ready_.clear();
  for (size_t i = 0; i < numNodes_; ++i)
    if (!numWaitingFor_[i])
      ready_.push_back(i);
  while (!ready_.empty()) {
    std::swap(ready_[draw(ready_.size())], ready_.back());
    uint32_t node = ready_.back();
    ready_.pop_back();
    run(node);
    for (uint32_t successor : successors_[node])
      if (--numWaitingFor_[successor] == 0)
        ready_.push_back(successor);
  }
}

/// A number below `bound`, which is below 2^32. The generator is SplitMix64 (Steele, Lea, Flood:
/// Fast splittable pseudorandom number generators, OOPSLA 2014).
size_t HostExecOrder::draw(size_t bound) {
  return size_t(((splitMix64(*state_) >> 32) * bound) >> 32);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

HostGraphExec::HostGraphExec(std::shared_ptr<HostDevice> device, const HostCommandList &commands,
                             std::vector<HostGraph::Dependencies> dependencies,
                             HostGraph::Kept kept)
    : device_(std::move(device)), kept_(std::move(kept)), dependencies_(std::move(dependencies)),
      order_(dependencies_, device_->drawOrderSeed()) {
  current_ = snapshots_.emplace_back(std::make_unique<HostExecSnapshot>(commands)).get();
}

HostGraphExec::~HostGraphExec() {
  launches_->waitForAll();
}

llvm::Error HostGraphExec::launch(Stream &stream) {
  if (&stream.device() != device_.get())
    return device_->invalidArgument("expected a stream of this device to launch an exec on, given "
                                    "one of " +
                                    deviceName(stream.device().device()));
  return static_cast<HostStream &>(stream).launchExec(*this);
}

HostExecLaunch HostGraphExec::submit() {
  ++current_->launches;
  return {this, current_, {launches_, launches_->submit()}};
}

void HostGraphExec::run(const HostExecLaunch &launch) {
  launch.point.timeline->wait(launch.point.point - 1);
  order_.forEach([&](size_t node) { launch.snapshot->commands.run(node); });
  --launch.snapshot->launches;
  launch.point.timeline->complete(launch.point.point); // from here on the exec may be gone
}

void HostGraphExec::addTo(HostGraph &graph, llvm::SmallVectorImpl<GraphNodeId> &frontier) const {
  size_t numNodes = dependencies_.size(), first = graph.numNodes();
  if (!numNodes)
    return;
  graph.keep(kept_);
  llvm::SmallVector<bool, 16> isLast(numNodes, true);
  HostGraph::Dependencies moved;
  for (size_t i = 0; i < numNodes; ++i) {
    moved.clear();
    for (GraphNodeId dependency : dependencies_[i]) {
      isLast[dependency.index()] = false;
      moved.push_back(GraphNodeId(first + dependency.index()));
    }
    graph.add(current_->commands[i], current_->commands.parameters(i),
              moved.empty() ? llvm::ArrayRef<GraphNodeId>(frontier) : moved);
  }
  frontier.clear();
  for (size_t i = 0; i < numNodes; ++i)
    if (isLast[i])
      frontier.push_back(GraphNodeId(first + i));
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

llvm::Error HostGraphExec::setKernel(GraphNodeId node, const KernelLaunch &launch) {
  return setCommand(node, problemOfKernel(launch), HostCommand::kernel(launch), launch.parameters);
}

llvm::Error HostGraphExec::setFill(GraphNodeId node, void *destination, FillValue value,
                                   size_t bytes) {
  return setCommand(node, problemOfFill(destination, value, bytes),
                    HostCommand::fill(destination, value, bytes), {});
}

llvm::Error HostGraphExec::setCopy(GraphNodeId node, void *destination, const void *source,
                                   size_t bytes) {
  return setCommand(node, problemOfCopy(destination, source, bytes),
                    HostCommand::copy(destination, source, bytes), {});
}

llvm::Error HostGraphExec::setGather(GraphNodeId node, llvm::ArrayRef<CopyPiece> pieces) {
  if (llvm::Error error = checkNode(node))
    return error;
  const HostCommandList &commands = current_->commands;
  size_t index = node.index();
  if (!HostGather::isGather(commands[index]))
    return refuse(index, "parameters of a " + graphNodeKindName(commands[index].kind),
                  "those of a gather");
  auto sizes = HostGather::sizes(commands.parameters(index).data());
  if (std::string problem = problemOfGather(pieces, sizes); !problem.empty())
    return device_->invalidArgument(problem);
  HostGather gather(pieces);
  return setKernel(node, gather.launch());
}

llvm::Error HostGraphExec::checkNode(GraphNodeId node) const {
  size_t numNodes = dependencies_.size();
  if (node && node.index() < numNodes)
    return llvm::Error::success();
  return device_->invalidArgument("expected a node below n" + llvm::Twine(numNodes) + ", given " +
                                  (node ? "n" + llvm::Twine(node.index()) : "none"));
}

llvm::Error HostGraphExec::refuse(size_t node, const llvm::Twine &expected,
                                  const llvm::Twine &given) const {
  return device_->invalidArgument("node n" + llvm::Twine(node) + " expects " + expected +
                                  ", given " + given);
}

llvm::Error HostGraphExec::checkCommand(size_t node, const HostCommand &command) const {
  const HostCommand &own = current_->commands[node];
  if (own.kind != command.kind)
    return refuse(node, "parameters of a " + graphNodeKindName(own.kind),
                  "those of a " + graphNodeKindName(command.kind));
  if (own.function != command.function)
    return refuse(node, "its own kernel", "another");
  return llvm::Error::success();
}

llvm::Error HostGraphExec::setCommand(GraphNodeId node, llvm::StringRef problem,
                                      const HostCommand &command,
                                      llvm::ArrayRef<std::byte> parameters) {
  if (!problem.empty())
    return device_->invalidArgument(problem);
  if (llvm::Error error = checkNode(node))
    return error;
  size_t index = node.index();
  if (llvm::Error error = checkCommand(index, command))
    return error;
  const HostCommandList &commands = current_->commands;
  if (parameters.size() > commands.parameterRoom(index))
    return refuse(index,
                  "at most " + llvm::Twine(commands.parameterRoom(index)) + " bytes of parameters",
                  llvm::Twine(parameters.size()));
  if (command.value.elementBytes() > commands.elementRoom(index))
    return refuse(index,
                  "elements of at most " + llvm::Twine(commands.elementRoom(index)) +
                      " bytes to fill with",
                  llvm::Twine(command.value.elementBytes()));
  writableSnapshot().commands.replace(index, command, parameters);
  return llvm::Error::success();
}

llvm::Error HostGraphExec::update(const Graph &graph) {
  const auto *hostGraph = dynamic_cast<const HostGraph *>(&graph);
  if (!hostGraph || !hostGraph->isOf(*device_))
    return device_->invalidArgument("expected a graph of this device to update an exec to, given "
                                    "one of another");
  size_t numNodes = dependencies_.size();
  if (graph.numNodes() != numNodes)
    return device_->invalidArgument("expected a graph of " + llvm::Twine(numNodes) +
                                    " nodes to update an exec to, given one of " +
                                    llvm::Twine(graph.numNodes()));
  for (size_t i = 0; i < numNodes; ++i) {
    if (llvm::Error error = checkCommand(i, hostGraph->commands()[i]))
      return error;
    if (hostGraph->dependencies(GraphNodeId(i)) != dependencies_[i])
      return refuse(i, "its own dependencies", "others");
  }
  writableSnapshot().commands = hostGraph->commands();
  for (const std::shared_ptr<void> &resource : hostGraph->kept())
    if (!llvm::is_contained(kept_, resource))
      kept_.push_back(resource);
  return llvm::Error::success();
}

/// The current snapshot, or a copy that becomes the current one if launches refer to it.
HostExecSnapshot &HostGraphExec::writableSnapshot() {
  if (!current_->launches)
    return *current_;
  auto isFree = [](const std::unique_ptr<HostExecSnapshot> &snapshot) {
    return !snapshot->launches;
  };
  if (auto free = llvm::find_if(snapshots_, isFree); free != snapshots_.end()) {
    (*free)->commands = current_->commands;
    current_ = free->get();
  } else {
    current_ =
        snapshots_.emplace_back(std::make_unique<HostExecSnapshot>(current_->commands)).get();
  }
  return *current_;
}
