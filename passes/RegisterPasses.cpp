//===- RegisterPasses.cpp - The passes that come with Rondo, by name --------===//
//
// The one table of names, summaries and options. `rondo-opt --list-passes` prints it.
//
//===----------------------------------------------------------------------===//

#include "rondo/passes/CUDAGraphTransform.h"
#include "rondo/passes/PassRegistry.h"
#include "rondo/passes/Passes.h"
#include "rondo/passes/Rematerialise.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

using MadePass = llvm::Expected<std::unique_ptr<Pass>>;

static PassInfo withoutOptions(llvm::StringRef name, llvm::StringRef summary,
                               std::unique_ptr<Pass> (*create)()) {
  return {name.str(), summary.str(), {}, [create](const PassOptions &) -> MadePass {
            return create();
          }};
}

/// The device that option `name` names; nothing if it is left out.
static llvm::Expected<std::optional<Device>> getDevice(const PassOptions &options,
                                                       llvm::StringRef name) {
  if (!options.has(name))
    return std::nullopt;
  const std::string &text = options.values().find(name.str())->second;
  if (std::optional<Device> device = parseDevice(text))
    return device;
  return options.error(name, "is '" + text + "', expected a device such as 'cuda:0' or 'host'");
}

/// Puts the value into `target`, or the error into `error` unless there is one already.
template <typename T, typename Target>
static void take(llvm::Expected<T> value, Target &target, llvm::Error &error) {
  if (value)
    target = std::move(*value);
  else
    error = llvm::joinErrors(std::move(error), value.takeError());
}

//===----------------------------------------------------------------------===//
// specialise
//===----------------------------------------------------------------------===//

static MadePass makeSpecialise(const PassOptions &options) {
  SymbolBindings bindings;
  for (const auto &[symbol, text] : options.values()) {
    if (!Dim::isSymbolName(symbol))
      return options.error(symbol, "is not a name that a symbol can have");
    llvm::Expected<int64_t> value = options.getInt(symbol, 0, 0, INT64_MAX);
    if (!value)
      return value.takeError();
    bindings[symbol] = *value;
  }
  return createSpecialisePass(std::move(bindings));
}

//===----------------------------------------------------------------------===//
// place
//===----------------------------------------------------------------------===//

static MadePass makePlace(const PassOptions &text) {
  PlaceOptions options;
  std::optional<Device> to;
  llvm::Error error = llvm::Error::success();
  take(getDevice(text, "from"), options.from, error);
  take(getDevice(text, "to"), to, error);
  if (error)
    return error;
  options.to = to.value_or(Device::host());
  if (options.from == options.to)
    return text.error("from", "is '" + deviceName(options.to) + "', as 'to' is");
  return createPlacePass(options);
}

//===----------------------------------------------------------------------===//
// accumulate-gradients
//===----------------------------------------------------------------------===//

static MadePass makeAccumulateGradients(const PassOptions &text) {
  AccumulateGradientsOptions options;
  std::string first;
  llvm::Error error = llvm::Error::success();
  take(text.getList("gradients"), options.gradients, error);
  take(text.getChoice("first-microbatch", "none", {"none", "flag"}), first, error);
  if (error)
    return error;
  if (first == "flag")
    options.firstMicrobatch = FirstMicrobatch::Flag;
  return createAccumulateGradientsPass(std::move(options));
}

//===----------------------------------------------------------------------===//
// use-generator
//===----------------------------------------------------------------------===//

static MadePass makeUseGenerator(const PassOptions &text) {
  UseGeneratorOptions options;
  llvm::Error error = llvm::Error::success();
  take(text.getString("generator", options.generator), options.generator, error);
  take(text.getString("path", ""), options.path, error);
  if (error)
    return error;
  if (options.generator.empty())
    return text.error("generator", "is empty, expected the name of a generator");
  return createUseGeneratorPass(std::move(options));
}

//===----------------------------------------------------------------------===//
// rematerialise
//===----------------------------------------------------------------------===//

static MadePass makeRematerialise(const PassOptions &text) {
  constexpr RecomputeRemarks remarks[] = {RecomputeRemarks::None, RecomputeRemarks::Summary,
                                          RecomputeRemarks::Values};
  llvm::SmallVector<llvm::StringRef, 3> names;
  for (RecomputeRemarks single : remarks)
    names.push_back(recomputeRemarksName(single));
  RematerialiseOptions options;
  int64_t budget = 0;
  std::string chosen;
  llvm::Error error = llvm::Error::success();
  take(text.getInt("budget", 0, 0, INT64_MAX), budget, error);
  take(text.getChoice("remarks", recomputeRemarksName(options.remarks), names), chosen, error);
  if (error)
    return error;
  if (text.has("budget"))
    options.budget = budget;
  options.remarks = remarks[llvm::find(names, chosen) - names.begin()];
  return createRematerializationPass(options);
}

//===----------------------------------------------------------------------===//
// execution
//===----------------------------------------------------------------------===//

using Sources = std::vector<const ClaimSource *>;

static MadePass makeExecution(const Sources &sources, const PassOptions &options) {
  llvm::Expected<std::vector<std::string>> names = options.getList("executors");
  if (!names)
    return names.takeError();
  if (!options.has("executors"))
    return createExecutionTransform(sources);

  llvm::SmallVector<llvm::StringRef, 4> known;
  for (const ClaimSource *source : sources)
    known.push_back(source->name());
  Sources chosen;
  for (llvm::StringRef name : *names) {
    auto it = llvm::find(known, name);
    if (it == known.end())
      return options.error("executors",
                           "names '" + name + "', which is no executor" + didYouMean(name, known));
    const ClaimSource *source = sources[it - known.begin()];
    if (llvm::is_contained(chosen, source))
      return options.error("executors", "names '" + name + "' twice");
    chosen.push_back(source);
  }
  return createExecutionTransform(std::move(chosen));
}

//===----------------------------------------------------------------------===//
// cuda-graph
//===----------------------------------------------------------------------===//

static std::vector<PassOptionInfo> describeGraphOptions() {
  CUDAGraphOptions defaults;
  return {
      {"partition", "consecutive",
       "'consecutive' keeps program order; 'dataflow' moves ops for as few regions as possible"},
      {"min-ops", std::to_string(defaults.minOps),
       "least number of ops that launch something in a region"},
      {"max-peak-growth", Attribute(defaults.maxPeakGrowth).str(),
       "how much 'dataflow' may raise the liveness peak, as a fraction"},
      {"device", "", "the device whose ops are captured; default: the first that is no host"},
      {"inputs", inputPolicyName(defaults.inputs).str(),
       "how inputs that may be anywhere reach a graph: 'patched', 'copied', 'static', or 'auto', "
       "by "
       "cost"},
      {"deny", "", "names of ops to leave out, such as 'embedding+softmax'"},
      {"strict", "false", "an op left out for another reason than policy is an error"},
      {"name", defaults.name, "name of the capture domain in dumps"},
  };
}

static llvm::Expected<InputPolicy> getInputPolicy(const PassOptions &text, InputPolicy fallback) {
  constexpr InputPolicy policies[] = {InputPolicy::Auto, InputPolicy::Static, InputPolicy::Copied,
                                      InputPolicy::Patched};
  llvm::SmallVector<llvm::StringRef, 4> names;
  for (InputPolicy policy : policies)
    names.push_back(inputPolicyName(policy));
  llvm::Expected<std::string> name = text.getChoice("inputs", inputPolicyName(fallback), names);
  if (!name)
    return name.takeError();
  return policies[llvm::find(names, *name) - names.begin()];
}

static MadePass makeCUDAGraph(const PassOptions &text) {
  CUDAGraphOptions options;
  std::string partition;
  int64_t minOps = 0;
  llvm::Error error = llvm::Error::success();
  take(text.getChoice("partition", "consecutive", {"consecutive", "dataflow"}), partition, error);
  take(text.getInt("min-ops", options.minOps, 0, UINT32_MAX), minOps, error);
  take(text.getNumber("max-peak-growth", options.maxPeakGrowth, 0), options.maxPeakGrowth, error);
  take(getDevice(text, "device"), options.device, error);
  take(getInputPolicy(text, options.inputs), options.inputs, error);
  if (text.has("deny"))
    take(text.getList("deny"), options.deny, error);
  take(text.getBool("strict", options.strict), options.strict, error);
  take(text.getString("name", options.name), options.name, error);
  if (error)
    return error;
  options.partition = partition == "dataflow" ? Partition::Dataflow : Partition::Consecutive;
  options.minOps = minOps;
  return std::make_unique<CUDAGraphTransform>(std::move(options));
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

llvm::Error rondo::registerPasses(PassRegistry &registry,
                                  llvm::ArrayRef<const ClaimSource *> sources) {
  PassInfo specialise{"specialise",
                      "replaces symbols by the numbers that the options give (B=8 S=128)",
                      {},
                      makeSpecialise};
  specialise.acceptsAnyOption = true;
  PassInfo infos[] = {
      withoutOptions("canonicalise", "composes views, removes views and casts that change nothing",
                     createCanonicalisePass),
      withoutOptions("dce", "removes ops that nothing needs, the backward's first",
                     createDeadCodeEliminationPass),
      withoutOptions("cse", "merges ops that compute the same",
                     createCommonSubexpressionEliminationPass),
      std::move(specialise),
      {"place",
       "moves values and device attributes to another device",
       {{"from", "", "the device to leave; default: every one that is no host"},
        {"to", "host", "the device to go to"}},
       makePlace},
      {"use-generator",
       "lets the random ops of a module draw from another generator",
       {{"generator", UseGeneratorOptions().generator, "the generator to draw from"},
        {"path", "", "the module's path, such as 'blocks.0'; default: all ops"}},
       makeUseGenerator},
      withoutOptions("feed-masks", "makes the masks of dropout arguments", createFeedMasksPass),
      {"accumulate-gradients",
       "adds gradients to buffers that are arguments of the backward",
       {{"gradients", "",
         "results, parameters or modules by name, such as 'l.0+w'; default: all parameters"},
        {"first-microbatch", "none",
         "'flag': a bool on the device says that buffers are overwritten"}},
       makeAccumulateGradients},
      {"rematerialise",
       "computes again in the backward what is tagged or in a checkpoint, or does not fit a budget",
       {{"budget", "", "bytes that the forward may save; default: as much as the tags leave"},
        {"remarks", "summary",
         "'summary' of bytes and work, 'values' with each that is recomputed, or 'none'"}},
       makeRematerialise},
      {"execution",
       "lets every op be claimed by the first executor that accepts it",
       {{"executors", "", "names in order of priority, such as 'a+b'; default: all"}},
       [sources = sources.vec()](const PassOptions &options) {
         return makeExecution(sources, options);
       }},
      {"cuda-graph", "puts ops into regions that are captured once and replayed",
       describeGraphOptions(), makeCUDAGraph},
      withoutOptions("del", "ends every name after its last use", createDelPass),
  };
  for (PassInfo &info : infos)
    if (llvm::Error error = registry.registerPass(std::move(info)))
      return error;
  return llvm::Error::success();
}
