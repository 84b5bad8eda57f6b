//===- KernelBench.cpp - Kernels one by one, and graphs of them -----------===//

#include "Bench.h"

#include "rondo/ir/Text.h"
#include "rondo/passes/PassManager.h"
#include "rondo/passes/Passes.h"

#include <chrono>

using namespace rondo;

namespace {

/// Keeps the launches that a kernel submits.
class LaunchRecorder : public CommandSink {
public:
  explicit LaunchRecorder(DeviceAPI &device) : device_(device) {}

  /// Valid while this lives.
  llvm::ArrayRef<KernelLaunch> launches() const { return launches_; }

  DeviceAPI &device() override { return device_; }
  llvm::Error launch(const KernelLaunch &launch) override {
    blocks_.push_back(std::make_unique<Block>());
    blocks_.back()->bytes.assign(launch.parameters.begin(), launch.parameters.end());
    launches_.push_back(launch);
    launches_.back().parameters = blocks_.back()->bytes;
    return llvm::Error::success();
  }
  llvm::Error fill(void *, uint8_t, size_t) override { return refuse(); }
  llvm::Error copy(void *, const void *, size_t) override { return refuse(); }
  llvm::Error call(llvm::function_ref<llvm::Error(Stream &)>) override { return refuse(); }
  llvm::Error synchronize() override { return refuse(); }

private:
  struct Block {
    std::vector<std::byte> bytes;
  };
  static llvm::Error refuse() { return makeError("the kernel submits more than launches"); }

  DeviceAPI &device_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<KernelLaunch> launches_;
};

/// The kernel of `add` on two vectors of 64 elements.
class AddKernel {
public:
  llvm::Error prepare(const BenchSetup &setup) {
    std::string vector = "f32[64]@" + deviceName(setup.device->device());
    llvm::Expected<TracePair> pair =
        parsePair("trace @t(%a: " + vector + ", %b: " + vector + ") {\n%y: " + vector +
                      " = add(%a, %b)\nreturn(%y)\n}",
                  "add", setup.registry);
    if (!pair)
      return pair.takeError();
    PassManager manager;
    std::vector<const ClaimSource *> sources(setup.executors.begin(), setup.executors.end());
    manager.add(createExecutionTransform(std::move(sources)));
    llvm::Expected<TracePair> claimed = manager.run(std::move(*pair));
    if (!claimed)
      return claimed.takeError();
    const Trace &trace = claimed->forward();
    OpId op = trace.ops().front();
    for (const Executor *executor : setup.executors) {
      if (executor->name() != trace.op(op).claim()->executor)
        continue;
      llvm::Expected<KernelRef> kernel = executor->compile(trace, op, setup.device);
      if (!kernel)
        return kernel.takeError();
      kernel_ = std::move(*kernel);
    }
    llvm::Expected<StorageRef> memory = Storage::allocate(setup.device, 3 * 256);
    if (!memory)
      return memory.takeError();
    memory_ = std::move(*memory);
    for (unsigned i = 0; i < 2; ++i)
      operands_[i].address = memory_->data() + i * 256;
    results_[0].address = memory_->data() + 2 * 256;
    return llvm::Error::success();
  }

  llvm::Error enqueue(CommandSink &sink) const {
    return kernel_->enqueue(sink, {operands_, results_, nullptr, {}});
  }
  llvm::Error clear(Stream &stream) const { return stream.fill(memory_->data(), 0, 3 * 256); }

private:
  KernelRef kernel_;
  StorageRef memory_;
  Slot operands_[2], results_[1];
};

} // namespace

llvm::Error rondo::benchEager(const BenchSetup &setup, std::vector<Figure> &figures) {
  AddKernel kernel;
  if (llvm::Error error = kernel.prepare(setup))
    return error;
  LaunchRecorder recorder(*setup.device);
  if (llvm::Error error = kernel.enqueue(recorder))
    return error;
  llvm::Expected<std::unique_ptr<ChainProgram>> made = ChainProgram::create(setup);
  if (!made)
    return made.takeError();
  ChainProgram &chain = **made;
  Stream &stream = chain.stream();
  if (llvm::Error error = kernel.clear(stream))
    return error;
  chain.program().setEager(true);

  auto raw = [&]() -> llvm::Error {
    for (const KernelLaunch &launch : recorder.launches())
      if (llvm::Error error = setup.raw.launch(launch, stream))
        return error;
    return llvm::Error::success();
  };
  llvm::Expected<std::vector<double>> times = medianTimes(
      setup, {{[&] { return kernel.enqueue(stream); }}, {raw}, {[&] { return chain.call(); }}},
      [&] { return stream.synchronize(); });
  if (!times)
    return times.takeError();
  double baseline = (*times)[1] * 1e6;
  std::string name = setup.raw.kernelLaunchName().str();
  figures.push_back(
      {"eager", "Kernel::enqueue of add, CPU time", "us", (*times)[0] * 1e6, baseline, name});
  figures.push_back({"eager", "op of an eager Program::forward, CPU time", "us",
                     (*times)[2] * 1e6 / ChainProgram::numKernels, baseline, name});
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

/// A graph of `launches`, one behind the other, through the device.
static llvm::Expected<RawAPI::ChainTimes> buildChain(DeviceAPI &device,
                                                     llvm::ArrayRef<KernelLaunch> launches) {
  using Clock = std::chrono::steady_clock;
  llvm::Expected<std::unique_ptr<Graph>> graph = device.createGraph();
  if (!graph)
    return graph.takeError();
  auto begin = Clock::now();
  llvm::SmallVector<GraphNodeId, 1> last;
  for (const KernelLaunch &launch : launches) {
    llvm::Expected<GraphNodeId> node = (*graph)->addKernel(launch, last);
    if (!node)
      return node.takeError();
    last.assign(1, *node);
  }
  auto added = Clock::now();
  llvm::Expected<std::unique_ptr<GraphExec>> exec = (*graph)->instantiate();
  if (!exec)
    return exec.takeError();
  std::chrono::duration<double> add = added - begin, instantiate = Clock::now() - added;
  return RawAPI::ChainTimes{add.count(), instantiate.count()};
}

/// Making a graph of many kernels through the device and through the raw API.
static llvm::Error benchGraphs(const BenchSetup &setup, std::vector<Figure> &figures) {
  constexpr unsigned numNodes = 256;
  AddKernel kernel;
  if (llvm::Error error = kernel.prepare(setup))
    return error;
  LaunchRecorder recorder(*setup.device);
  for (unsigned i = 0; i < numNodes; ++i)
    if (llvm::Error error = kernel.enqueue(recorder))
      return error;
  std::vector<double> add, instantiate, rawAdd, rawInstantiate;
  for (unsigned round = 0; round <= setup.rounds; ++round) {
    llvm::Expected<RawAPI::ChainTimes> times = buildChain(*setup.device, recorder.launches());
    if (!times)
      return times.takeError();
    llvm::Expected<std::optional<RawAPI::ChainTimes>> raw =
        setup.raw.buildChain(recorder.launches());
    if (!raw)
      return raw.takeError();
    if (round == 0)
      continue;
    add.push_back(times->add);
    instantiate.push_back(times->instantiate);
    if (*raw) {
      rawAdd.push_back((*raw)->add);
      rawInstantiate.push_back((*raw)->instantiate);
    }
  }
  auto push = [&](const char *what, std::vector<double> times, std::vector<double> raw) {
    double scale = 1e6 / double(recorder.launches().size());
    Figure figure{"capture", what, "us", medianOf(std::move(times)) * scale};
    if (!raw.empty()) {
      figure.baseline = medianOf(std::move(raw)) * scale;
      figure.baselineName = "raw";
    }
    figures.push_back(std::move(figure));
  };
  push("Graph::addKernel, per node", std::move(add), std::move(rawAdd));
  push("Graph::instantiate, per node", std::move(instantiate), std::move(rawInstantiate));
  return llvm::Error::success();
}

llvm::Error rondo::benchCapture(const BenchSetup &setup, std::vector<Figure> &figures) {
  if (llvm::Error error = benchGraphs(setup, figures))
    return error;
  llvm::Expected<std::unique_ptr<ChainProgram>> made = ChainProgram::create(setup);
  if (!made)
    return made.takeError();
  ChainProgram &chain = **made;
  size_t numNodes = 0;
  if (llvm::Expected<GraphExec *> exec = chain.exec(numNodes); !exec)
    return exec.takeError();
  BenchSetup once = setup;
  once.calls = 1;
  auto isEager = [&](bool eager) {
    return [&chain, eager] {
      chain.program().setEager(eager);
      if (!eager)
        chain.forgetGraph();
      return llvm::Error::success();
    };
  };
  auto call = [&] { return chain.call(); };
  llvm::Expected<std::vector<double>> times = medianTimes(
      once, {{call, isEager(false)}, {call, isEager(true)}}, [&] { return chain.settle(); });
  if (!times)
    return times.takeError();
  figures.push_back({"capture", "capture of a region, per node", "us",
                     ((*times)[0] - (*times)[1]) * 1e6 / double(numNodes)});
  return llvm::Error::success();
}
