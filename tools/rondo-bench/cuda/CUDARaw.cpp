//===- CUDARaw.cpp - CUDA's own API ---------------------------------------===//

#include "Raw.h"

#include <chrono>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

using namespace rondo;

static llvm::Error check(cudaError_t result, const char *call) {
  if (result == cudaSuccess)
    return llvm::Error::success();
  return makeDeviceError(DeviceErrorKind::Launch, llvm::Twine(call) + ": " +
                                                      cudaGetErrorName(result) + ", " +
                                                      cudaGetErrorString(result));
}
static llvm::Error check(CUresult result, const char *call) {
  if (result == CUDA_SUCCESS)
    return llvm::Error::success();
  return makeDeviceError(DeviceErrorKind::Launch,
                         llvm::Twine(call) + ": CUresult " + llvm::Twine(int(result)));
}

/// A function of the driver, as of CUDA 12.0. Errors: the driver lacks it.
template <typename Function> static llvm::Error load(const char *name, Function &function) {
  void *found = nullptr;
  cudaDriverEntryPointQueryResult status;
  if (llvm::Error error = check(
          cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &status), name))
    return error;
  if (status != cudaDriverEntryPointSuccess || !found)
    return makeDeviceError(DeviceErrorKind::InvalidArgument,
                           llvm::Twine("the driver has no ") + name);
  function = reinterpret_cast<Function>(found);
  return llvm::Error::success();
}

namespace {

/// The parameter block of a launch, as the driver takes it.
class ExtraParameters {
public:
  explicit ExtraParameters(const KernelLaunch &launch)
      : size_(launch.parameters.size()), extra_{CU_LAUNCH_PARAM_BUFFER_POINTER,
                                                const_cast<std::byte *>(launch.parameters.data()),
                                                CU_LAUNCH_PARAM_BUFFER_SIZE, &size_,
                                                CU_LAUNCH_PARAM_END} {}
  void **get() { return extra_; }

private:
  size_t size_;
  void *extra_[5];
};

struct RawGraph {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ~RawGraph() {
    if (exec)
      cudaGraphExecDestroy(exec);
    if (graph)
      cudaGraphDestroy(graph);
  }
};

class CUDARaw : public RawAPI {
public:
  ~CUDARaw() override {
    for (cudaEvent_t event : events_)
      if (event)
        cudaEventDestroy(event);
    if (stream_)
      cudaStreamDestroy(stream_);
  }

  llvm::Error prepare(int index) {
    if (llvm::Error error = check(cudaSetDevice(index), "cudaSetDevice"))
      return error;
    for (cudaEvent_t &event : events_)
      if (llvm::Error error = check(cudaEventCreate(&event), "cudaEventCreate"))
        return error;
    if (llvm::Error error = check(cudaStreamCreate(&stream_), "cudaStreamCreate"))
      return error;
    if (llvm::Error error = load("cuLaunchKernel", launchKernel_))
      return error;
    return load("cuGraphAddKernelNode", addKernelNode_);
  }

  llvm::StringRef graphLaunchName() const override { return "cudaGraphLaunch"; }
  llvm::Error launch(GraphExec &exec, Stream &stream) override {
    return check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(exec.nativeHandle()),
                                 static_cast<cudaStream_t>(stream.nativeHandle())),
                 "cudaGraphLaunch");
  }

  llvm::StringRef kernelLaunchName() const override { return "cuLaunchKernel"; }
  llvm::Error launch(const KernelLaunch &launch, Stream &stream) override {
    ExtraParameters extra(launch);
    return check(launchKernel_(functionOf(launch), launch.grid[0], launch.grid[1], launch.grid[2],
                               launch.block[0], launch.block[1], launch.block[2],
                               launch.sharedBytes, static_cast<CUstream>(stream.nativeHandle()),
                               nullptr, extra.get()),
                 "cuLaunchKernel");
  }

  llvm::Expected<std::optional<ChainTimes>>
  buildChain(llvm::ArrayRef<KernelLaunch> launches) override {
    using Clock = std::chrono::steady_clock;
    RawGraph raw;
    if (llvm::Error error = check(cudaGraphCreate(&raw.graph, 0), "cudaGraphCreate"))
      return error;
    auto begin = Clock::now();
    CUgraphNode last = nullptr;
    for (const KernelLaunch &launch : launches)
      if (llvm::Error error = addNode(raw.graph, launch, last))
        return error;
    auto added = Clock::now();
    if (llvm::Error error =
            check(cudaGraphInstantiate(&raw.exec, raw.graph, 0), "cudaGraphInstantiate"))
      return error;
    if (llvm::Error error = check(cudaGraphUpload(raw.exec, stream_), "cudaGraphUpload"))
      return error;
    if (llvm::Error error = check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"))
      return error;
    std::chrono::duration<double> add = added - begin, instantiate = Clock::now() - added;
    return ChainTimes{add.count(), instantiate.count()};
  }

  llvm::Error startClock(Stream &stream) override { return record(events_[0], stream); }
  llvm::Expected<std::optional<double>> stopClock(Stream &stream) override {
    if (llvm::Error error = record(events_[1], stream))
      return error;
    if (llvm::Error error = check(cudaEventSynchronize(events_[1]), "cudaEventSynchronize"))
      return error;
    float milliseconds = 0;
    if (llvm::Error error = check(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]),
                                  "cudaEventElapsedTime"))
      return error;
    return milliseconds * 1e-3;
  }

  llvm::Expected<std::optional<uint64_t>> freeMemory() override {
    size_t free = 0, total = 0;
    if (llvm::Error error = check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"))
      return error;
    return free;
  }

private:
  static CUfunction functionOf(const KernelLaunch &launch) {
    return static_cast<CUfunction>(const_cast<void *>(launch.function));
  }

  static llvm::Error record(cudaEvent_t event, Stream &stream) {
    return check(cudaEventRecord(event, static_cast<cudaStream_t>(stream.nativeHandle())),
                 "cudaEventRecord");
  }

  /// Adds a node behind `last`, and makes it the last.
  llvm::Error addNode(CUgraph graph, const KernelLaunch &launch, CUgraphNode &last) {
    ExtraParameters extra(launch);
    CUDA_KERNEL_NODE_PARAMS parameters = {};
    parameters.func = functionOf(launch);
    parameters.gridDimX = launch.grid[0];
    parameters.gridDimY = launch.grid[1];
    parameters.gridDimZ = launch.grid[2];
    parameters.blockDimX = launch.block[0];
    parameters.blockDimY = launch.block[1];
    parameters.blockDimZ = launch.block[2];
    parameters.sharedMemBytes = launch.sharedBytes;
    parameters.extra = extra.get();
    CUgraphNode dependency = last;
    return check(addKernelNode_(&last, graph, &dependency, dependency ? 1 : 0, &parameters),
                 "cuGraphAddKernelNode");
  }

  PFN_cuLaunchKernel_v4000 launchKernel_ = nullptr;
  PFN_cuGraphAddKernelNode_v12000 addKernelNode_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t events_[2] = {};
};

} // namespace

llvm::Expected<std::unique_ptr<RawAPI>> rondo::createCUDARaw(const DeviceAPI &device) {
  auto raw = std::make_unique<CUDARaw>();
  if (llvm::Error error = raw->prepare(device.device().index))
    return error;
  return std::unique_ptr<RawAPI>(std::move(raw));
}
