//===- CuDNNPlan.cpp - An attention that cuDNN is ready to run ------------===//

#include "CuDNNPlan.h"

#include "rondo/executors/ErrorText.h"

#include "rondo/ir/Diagnostic.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;
using namespace rondo::cuda;

/// More is not worth it: our own backward needs next to nothing.
static constexpr uint64_t mostWorkspace = uint64_t(1) << 30;

//===----------------------------------------------------------------------===//
// Making a plan
//===----------------------------------------------------------------------===//

/// What is known of versions and GPUs beyond what the library says itself. Empty if nothing speaks
/// against the attention.
static std::string knownLimit(const CuDNNHandle &handle, const FusedAttention &attention) {
  if (!attention.isBackward)
    return {};
  // On other GPUs the same graph is computed with sums in any order.
  if (handle.computeCapabilityMajor() != 9)
    return "gives the same gradients in every run on GPUs of compute capability 9 alone";
  if (handle.library().version() <= 91500 && attention.keys() % 128 != 0)
    return "9.15.0 and older has wrong gradients unless the number of keys is a multiple of 128";
  if (attention.queries() == 1 && attention.keys() == 1)
    return "has no gradients for one query and one key";
  return {};
}

llvm::Expected<std::shared_ptr<const CuDNNPlan>>
CuDNNPlan::create(const std::shared_ptr<const CuDNNHandle> &handle,
                  const FusedAttention &attention) {
  if (std::string limit = knownLimit(*handle, attention); !limit.empty())
    return makeError("cuDNN " + limit);
  std::shared_ptr<CuDNNPlan> plan(new CuDNNPlan(handle));
  if (llvm::Error error =
          handle->run("making a plan of cuDNN", [&] { return plan->initialize(attention); }))
    return error;
  if (plan->workspaceBytes() > mostWorkspace)
    return makeError("cuDNN needs " + llvm::Twine(plan->workspaceBytes() >> 20) +
                     " MiB of workspace");
  return std::shared_ptr<const CuDNNPlan>(std::move(plan));
}

llvm::Error CuDNNPlan::initialize(const FusedAttention &attention) {
  addAttention(graph_, attention);
  cudnnBackendDescriptor_t graph = graph_.finalize();
  if (llvm::Error error = graph_.descriptors().takeError())
    return error;
  return choose(graph);
}

/// The configurations that cuDNN proposes for `graph`, best first; made in `descriptors`.
static std::vector<cudnnBackendDescriptor_t> proposals(CuDNNDescriptors &descriptors,
                                                       cudnnBackendDescriptor_t graph,
                                                       cudnnBackendHeurMode_t mode) {
  cudnnBackendDescriptor_t heuristics = descriptors.create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  descriptors.set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  descriptors.set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  descriptors.finalize(heuristics);
  auto results = [&](std::vector<cudnnBackendDescriptor_t> &into) {
    return descriptors.getRaw(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                              CUDNN_TYPE_BACKEND_DESCRIPTOR, int64_t(into.size()), into.data());
  };
  std::vector<cudnnBackendDescriptor_t> configurations;
  configurations.resize(size_t(results(configurations)));
  for (cudnnBackendDescriptor_t &configuration : configurations)
    configuration = descriptors.create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  if (!configurations.empty())
    configurations.resize(size_t(results(configurations)));
  return configurations;
}

llvm::Error CuDNNPlan::choose(cudnnBackendDescriptor_t graph) {
  std::string why;
  auto note = [&](llvm::Error error) {
    std::string text = errorText(std::move(error));
    if (why.find(text) == std::string::npos)
      why += (why.empty() ? "" : "; ") + text;
  };
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    std::vector<cudnnBackendDescriptor_t> configurations = proposals(descriptors_, graph, mode);
    if (llvm::Error error = descriptors_.takeError()) {
      note(std::move(error));
      continue;
    }
    for (cudnnBackendDescriptor_t configuration : configurations) {
      llvm::Error error = tryConfiguration(configuration);
      if (!error)
        return llvm::Error::success();
      note(std::move(error));
    }
  }
  return makeError(why.empty() ? "cuDNN has no engine for it" : why);
}

llvm::Error CuDNNPlan::tryConfiguration(cudnnBackendDescriptor_t configuration) {
  CuDNNDescriptors made(descriptors_.sharedHandle());
  cudnnBackendDescriptor_t engine = made.create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  made.getRaw(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
              &engine);
  auto numerics = made.get<cudnnBackendNumericalNote_t>(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                        CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  auto behaviour = made.get<cudnnBackendBehaviorNote_t>(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                        CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  if (llvm::Error error = made.takeError())
    return error;
  if (llvm::is_contained(numerics, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC))
    return makeError("cuDNN's engine gives other bits in every run");
  if (!llvm::is_contained(behaviour, CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API))
    return makeError("cuDNN's engine is not made for CUDA graphs");
  cudnnBackendDescriptor_t plan = made.create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  made.set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, made.handle().get());
  made.set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  made.finalize(plan);
  auto bytes = made.get<int64_t>(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1);
  if (llvm::Error error = made.takeError())
    return error;
  if (bytes.size() != 1 || bytes.front() < 0)
    return makeError("cuDNN does not say how much workspace it needs");
  plan_ = plan;
  planBytes_ = llvm::alignTo(uint64_t(bytes.front()), DeviceAPI::allocationAlignment);
  chosen_.emplace(std::move(made));
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Running it
//===----------------------------------------------------------------------===//

uint64_t CuDNNPlan::workspaceBytes() const {
  return planBytes_ + graph_.workspaceBytes();
}

void *CuDNNPlan::addressOf(const CuDNNBinding &binding, const KernelArgs &args) const {
  switch (binding.source) {
  case CuDNNBinding::Operand:
    return args.operands[binding.index].address;
  case CuDNNBinding::Result:
    return args.results[binding.index].address;
  case CuDNNBinding::Workspace:
    return static_cast<std::byte *>(args.workspace) + planBytes_ + binding.offset;
  case CuDNNBinding::Scalar: // the library only reads it
    return const_cast<float *>(&binding.scalar);
  }
  llvm_unreachable("a source of tensors");
}

std::string CuDNNPlan::findMisaligned(const KernelArgs &args) const {
  for (const CuDNNBinding &binding : graph_.bindings()) {
    bool isResult = binding.source == CuDNNBinding::Result;
    if (!isResult && binding.source != CuDNNBinding::Operand)
      continue;
    if (reinterpret_cast<uintptr_t>(addressOf(binding, args)) % DeviceAPI::minAlignment != 0)
      return (isResult ? "result #" : "operand #") + std::to_string(binding.index);
  }
  return {};
}

llvm::Error CuDNNPlan::execute(const std::shared_ptr<const CuDNNHandle> &handle,
                               cudaStream_t stream, const KernelArgs &args) const {
  llvm::SmallVector<void *, 12> addresses;
  llvm::SmallVector<int64_t, 12> ids;
  for (const CuDNNBinding &binding : graph_.bindings()) {
    addresses.push_back(addressOf(binding, args));
    ids.push_back(binding.id);
  }
  void *workspace = args.workspace;
  return handle->run("cudnnBackendExecute", [&]() -> llvm::Error {
    const CuDNNLibrary &library = handle->library();
    CuDNNDescriptors made(handle);
    cudnnBackendDescriptor_t pack = made.create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    made.setRaw(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    made.setRaw(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                int64_t(addresses.size()), addresses.data());
    made.setAll<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
    made.finalize(pack);
    if (llvm::Error error = made.takeError())
      return error;
    if (llvm::Error error =
            library.check(library.setStream(handle->get(), stream), "cudnnSetStream"))
      return error;
    return library.check(library.execute(handle->get(), plan_, pack), "cudnnBackendExecute");
  });
}
