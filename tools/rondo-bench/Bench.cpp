//===- Bench.cpp - What benchmarks share ----------------------------------===//

#include "Bench.h"

#include "support/Arguments.h"

#include "rondo/ir/Text.h"
#include "rondo/passes/CUDAGraphTransform.h"
#include "rondo/passes/PassManager.h"
#include "rondo/passes/Passes.h"

#include "llvm/ADT/StringExtras.h"

#include <chrono>

using namespace rondo;

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

double rondo::medianOf(std::vector<double> values) {
  if (values.empty())
    return 0;
  llvm::sort(values);
  return values[values.size() / 2];
}

llvm::Expected<std::vector<double>> rondo::medianTimes(const BenchSetup &setup,
                                                       llvm::ArrayRef<Contestant> contestants,
                                                       llvm::function_ref<llvm::Error()> settle) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::vector<double>> times(contestants.size());
  std::vector<double> spent(contestants.size(), 0);
  for (unsigned round = 0; round <= setup.rounds; ++round) {
    for (size_t i = 0; i < contestants.size(); ++i) {
      size_t which = (i + round) % contestants.size();
      if (round > 1 && spent[which] > setup.mostSeconds)
        continue;
      const Contestant &contestant = contestants[which];
      if (contestant.before)
        if (llvm::Error error = contestant.before())
          return error;
      auto begin = Clock::now();
      for (unsigned call = 0; call < setup.calls; ++call)
        if (llvm::Error error = contestant.call())
          return error;
      std::chrono::duration<double> time = Clock::now() - begin;
      spent[which] += time.count();
      if (llvm::Error error = settle())
        return error;
      if (round > 0) // the first warms up
        times[which].push_back(time.count() / setup.calls);
    }
  }
  std::vector<double> medians;
  for (std::vector<double> &all : times)
    medians.push_back(medianOf(std::move(all)));
  return medians;
}

//===----------------------------------------------------------------------===//
// ChainProgram
//===----------------------------------------------------------------------===//

/// The trace, each op on the result of the one before:
///
///   %k0 = addcmul(%p0, %p1, %p2)                                57 of these, with 115 inputs
///   %k1 = addcmul(%k0, %p3, %p4)
///   %k5 = layer_norm_backward(%k4, %p11, …) {mask = [true, false, false], …}
///                                                               7 of these, with 35 inputs
static std::string chainText(Device device) {
  const std::string suffix = device == Device::host() ? "" : "@" + deviceName(device),
                    vector = "f32[64]" + suffix, one = "f32[1]" + suffix;
  std::string inputs, body, returned, last;
  unsigned numInputs = 0;
  auto input = [&](const std::string &type) {
    std::string name = "%p" + std::to_string(numInputs++);
    inputs += (inputs.empty() ? "" : ", ") + name + ": " + type + " static";
    return name;
  };
  for (unsigned i = 0; i < ChainProgram::numKernels; ++i) {
    std::vector<std::string> operands = {i == 0 ? input(vector) : last};
    bool isWide = i % 9 == 5;
    for (const std::string &type :
         isWide ? std::vector{vector, one, one, vector, vector} : std::vector{vector, vector})
      operands.push_back(input(type));
    last = "%k" + std::to_string(i);
    body += last + ": " + vector + " = " + (isWide ? "layer_norm_backward(" : "addcmul(") +
            llvm::join(operands, ", ") + ")";
    if (isWide)
      body += " {normalized_shape = [64], mask = [true, false, false]}";
    body += "\n";
    if (i % 16 == 15)
      returned += (returned.empty() ? "" : ", ") + last;
  }
  return "trace @chain(" + inputs + ") {\n" + body + "return(" + returned + ")\n}";
}

llvm::Expected<std::unique_ptr<ChainProgram>> ChainProgram::create(const BenchSetup &setup) {
  std::unique_ptr<ChainProgram> chain(new ChainProgram());
  chain->device_ = setup.device;
  llvm::Expected<TracePair> pair =
      parsePair(chainText(setup.device->device()), "chain", setup.registry);
  if (!pair)
    return pair.takeError();
  auto manager = std::make_shared<PassManager>();
  std::vector<const ClaimSource *> sources(setup.executors.begin(), setup.executors.end());
  auto transform = std::make_unique<CUDAGraphTransform>();
  chain->transform_ = transform.get();
  manager->add(createExecutionTransform(std::move(sources)))
      .add(std::move(transform))
      .add(createDelPass());
  llvm::Expected<Program> program = compile(
      std::move(*pair), setup.device, setup.executors,
      [manager](TracePair pair, const SymbolBindings &) { return manager->run(std::move(pair)); });
  if (!program)
    return program.takeError();
  chain->program_.emplace(std::move(*program));

  std::vector<RegionInfo> regions = chain->program_->regions();
  if (regions.size() != 1 || regions[0].buffers.size() != numInputs ||
      regions[0].count(BufferPolicy::Static) != numInputs ||
      chain->program_->results().size() != numResults)
    return makeError(
        "the chain is not one region of " + llvm::Twine(numInputs) +
        " static inputs: " + llvm::Twine(regions.size()) + " regions, " +
        llvm::Twine(regions.empty() ? 0 : regions[0].buffers.size()) + " inputs, of which " +
        llvm::Twine(regions.empty() ? 0 : regions[0].count(BufferPolicy::Static)) + " are static");
  llvm::Expected<std::unique_ptr<Stream>> stream = setup.device->createStream();
  if (!stream)
    return stream.takeError();
  chain->stream_ = std::move(*stream);
  if (llvm::Error error = fillRandom(*chain->program_, Side::Forward, 1, setup.device,
                                     *chain->stream_, chain->inputs_))
    return error;
  if (llvm::Error error = chain->call()) // captures
    return error;
  if (llvm::Error error = chain->settle())
    return error;
  return chain;
}

llvm::Error ChainProgram::call() {
  llvm::Error error = program_->forward(*stream_, inputs_, results_);
  results_.clear();
  return error;
}

std::shared_ptr<GraphCache> ChainProgram::cache() const {
  return GraphCache::find(transform_->domain(), *device_);
}

llvm::Expected<GraphExec *> ChainProgram::exec(size_t &numNodes) const {
  GraphExec *found = nullptr;
  if (std::shared_ptr<GraphCache> graphs = cache())
    graphs->forEachGraph([&](Graph &graph, GraphExec &exec) {
      found = &exec;
      numNodes = graph.numNodes();
    });
  if (!found)
    return makeError("the chain has no graph");
  return found;
}

void ChainProgram::forgetGraph() {
  if (std::shared_ptr<GraphCache> graphs = cache())
    graphs->reset();
}
