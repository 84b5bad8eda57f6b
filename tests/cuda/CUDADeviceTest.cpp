//===- CUDADeviceTest.cpp - What only a GPU has ---------------------------===//

#include "CUDADeviceTesting.h"

#include "rondo/host/HostDevice.h"

#include <gmock/gmock.h>

#include <cuda_runtime_api.h>

#include <thread>

using namespace rondo;

namespace {

template <typename T> T ok(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  ADD_FAILURE() << llvm::toString(value.takeError());
  return T();
}
void ok(llvm::Error error) {
  EXPECT_EQ(outcome(std::move(error)), "success");
}

class CUDADeviceTest : public testing::Test {
protected:
  void SetUp() override {
    device = cudaTestDevice();
    if (!device)
      GTEST_SKIP() << "no device";
    kernels = loadTestKernels(*device);
    add1 = kernels.add1;
    ok(device->synchronize());
  }

  /// Device memory for `int[n]`, all bytes 0, freed with the last reference.
  std::shared_ptr<int> zeros(size_t n = 1) {
    size_t bytes = n * sizeof(int);
    auto *data = static_cast<int *>(ok(device->allocate(bytes)));
    auto s = ok(device->createStream());
    ok(s->fill(data, 0, bytes));
    ok(s->synchronize());
    return {data, [device = device, bytes](int *data) { device->deallocate(data, bytes); }};
  }
  int read(const std::shared_ptr<int> &data) {
    int result = -1;
    auto s = ok(device->createStream());
    ok(s->copy(&result, data.get(), sizeof(int)));
    ok(s->synchronize());
    return result;
  }
  static size_t freeBytes() {
    size_t free = 0, total = 0;
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    return free;
  }

  DeviceRef device;
  CUDATestKernels kernels = {};
  const void *add1 = nullptr;
};

/// A stream of CUDA's own that is borrowed.
class BorrowedStreamTest : public CUDADeviceTest {
protected:
  void SetUp() override {
    CUDADeviceTest::SetUp();
    if (!device)
      return;
    ASSERT_EQ(cudaStreamCreateWithFlags(&raw, cudaStreamNonBlocking), cudaSuccess);
    stream = ok(borrowCUDAStream(device, raw));
  }
  void TearDown() override {
    stream.reset();
    if (raw) {
      EXPECT_EQ(cudaStreamDestroy(raw), cudaSuccess);
    }
  }

  cudaStream_t raw = nullptr;
  std::unique_ptr<Stream> stream;
};

} // namespace

//===----------------------------------------------------------------------===//
// Which device
//===----------------------------------------------------------------------===//

/// Where there is no GPU, asking for one says why and what to do.
TEST(CUDADeviceCount, NoneIsExplained) {
  EXPECT_TRUE(isCUDABuilt());
  llvm::Expected<unsigned> count = countCUDADevices();
  if (count) {
    EXPECT_GT(*count, 0u);
    return;
  }
  std::string text = llvm::toString(count.takeError());
  EXPECT_THAT(text,
              testing::MatchesRegex("invalid argument: no CUDA device: .+; use the host device"));
  EXPECT_EQ(llvm::toString(createCUDADevice(0).takeError()), text);
}

/// A device that does not exist is an error that says how many there are.
TEST_F(CUDADeviceTest, IndexTooLarge) {
  unsigned count = ok(countCUDADevices());
  llvm::Expected<DeviceRef> none = createCUDADevice(count);
  ASSERT_FALSE(none);
  EXPECT_EQ(llvm::toString(none.takeError()),
            "invalid argument: no CUDA device cuda:" + std::to_string(count) +
                ": the number of devices is " + std::to_string(count));
}

/// A device says which it is.
TEST_F(CUDADeviceTest, Description) {
  EXPECT_EQ(device->device(), Device::cuda(0));
  EXPECT_NE(device->description(), "");
}

/// Work goes to the device it is for whichever is current in the thread, another or none, and that
/// stays current.
TEST_F(CUDADeviceTest, CurrentDeviceDoesNotMatter) {
  std::thread([&] {
    if (ok(countCUDADevices()) > 1) {
      EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    }
    int before = -1, after = -1;
    EXPECT_EQ(cudaGetDevice(&before), cudaSuccess);
    {
      DeviceRef own = ok(createCUDADevice(0));
      auto p = zeros();
      cudaPointerAttributes attributes = {};
      EXPECT_TRUE(own->canAccess(p.get()));
      auto s = ok(device->createStream());
      auto e = ok(device->createEvent());
      ok(s->launch(PackedLaunch(add1, p.get())));
      ok(s->beginCapture(CaptureMode::ThreadLocal));
      ok(s->launch(PackedLaunch(add1, p.get())));
      auto graph = ok(s->endCapture());
      EXPECT_EQ(graph->numNodes(), 1u);
      auto exec = ok(graph->instantiate());
      ok(exec->setKernel(GraphNodeId(0), PackedLaunch(add1, p.get())));
      ok(exec->launch(*s));
      ok(s->record(*e));
      ok(e->synchronize());
      EXPECT_EQ(read(p), 2);
      ok(device->synchronize());
      device->trim();
      EXPECT_EQ(cudaGetDevice(&after), cudaSuccess);
      EXPECT_EQ(before, after);
      EXPECT_EQ(cudaPointerGetAttributes(&attributes, p.get()), cudaSuccess);
      EXPECT_EQ(attributes.device, 0);
    }
  }).join();
}

/// Objects of two devices, also on one GPU, do not mix.
TEST_F(CUDADeviceTest, DevicesDoNotMix) {
  DeviceRef other = ok(createCUDADevice(0));
  auto s = ok(device->createStream());
  auto event = ok(other->createEvent());
  auto graph = ok(other->createGraph());
  auto exec = ok(graph->instantiate());
  EXPECT_EQ(outcome(s->record(*event)), "invalid argument");
  EXPECT_EQ(outcome(s->wait(*event)), "invalid argument");
  EXPECT_EQ(outcome(exec->launch(*s)), "invalid argument");
  EXPECT_EQ(outcome(exec->update(*ok(device->createGraph()))), "invalid argument");
  EXPECT_EQ(outcome(s->beginCaptureToGraph(*graph, {}, CaptureMode::ThreadLocal)),
            "invalid argument");
  ok(s->beginCapture(CaptureMode::ThreadLocal));
  EXPECT_EQ(outcome(s->wait(*event)), "invalid argument");
  EXPECT_EQ(outcome(s->endCapture()), "capture invalidated");
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// A kernel gets as many bytes of parameters as it takes.
TEST_F(CUDADeviceTest, ParameterBytes) {
  auto p = zeros();
  auto s = ok(device->createStream());
  PackedLaunch tooMany(add1, p.get(), int64_t(0)), tooFew(add1, int(0));
  auto graph = ok(device->createGraph());
  for (const PackedLaunch *launch : {&tooMany, &tooFew}) {
    EXPECT_EQ(outcome(s->launch(*launch)), "invalid argument");
    EXPECT_EQ(outcome(graph->addKernel(*launch, {})), "invalid argument");
    ok(s->beginCapture(CaptureMode::ThreadLocal));
    EXPECT_EQ(outcome(s->launch(*launch)), "invalid argument");
    EXPECT_EQ(outcome(s->endCapture()), "capture invalidated");
  }
  ok(s->synchronize());
  EXPECT_EQ(read(p), 0);
}

/// What is no kernel for the device cannot be loaded, and the device goes on.
TEST_F(CUDADeviceTest, LoadFunctionRefuses) {
  DeviceRef host = createHostDevice();
  const void *symbol = testKernelSymbols().add1;
  EXPECT_EQ(outcome(cuda::loadFunction(*host, symbol)), "invalid argument");
  static const int noKernel = 0;
  std::string text = llvm::toString(cuda::loadFunction(*device, &noKernel).takeError());
  EXPECT_THAT(text, testing::AllOf(testing::StartsWith("launch failed: cuda:0: "),
                                   testing::HasSubstr("built for sm_"),
                                   testing::HasSubstr(device->description())));
  EXPECT_EQ(outcome(cuda::loadFunction(*device, symbol, 1 << 30)), "launch failed");
  ok(cuda::loadFunction(*device, symbol, 64 * 1024));
  ok(device->synchronize());
}

/// A node that was added without bytes has the kind it was added as, and never has any.
TEST_F(CUDADeviceTest, NodesWithoutBytes) {
  auto p = zeros(2);
  auto graph = ok(device->createGraph());
  GraphNodeId fill = ok(graph->addFill(nullptr, 1, 0, {}));
  GraphNodeId copy = ok(graph->addCopy(nullptr, nullptr, 0, fill));
  GraphNodeId some = ok(graph->addFill(p.get(), 1, 4, copy));
  EXPECT_EQ(graph->kind(fill), GraphNodeKind::Fill);
  EXPECT_EQ(graph->kind(copy), GraphNodeKind::Copy);
  auto exec = ok(graph->instantiate());
  ok(exec->setFill(fill, p.get(), 1, 0));
  ok(exec->setCopy(copy, p.get(), p.get(), 0));
  EXPECT_EQ(outcome(exec->setFill(fill, p.get(), 1, 4)), "invalid argument");
  EXPECT_EQ(outcome(exec->setCopy(copy, p.get(), p.get() + 1, 4)), "invalid argument");
  EXPECT_EQ(outcome(exec->setFill(some, p.get(), 1, 0)), "invalid argument");
  auto s = ok(device->createStream());
  ok(exec->launch(*s));
  ok(s->synchronize());
  EXPECT_EQ(read(p), 0x01010101);
}

/// An exec in a capture has the parameters of that time, of every kind of node and each time anew.
TEST_F(CUDADeviceTest, ChangedExecInCapture) {
  auto p = zeros(8);
  auto s = ok(device->createStream());
  auto graph = ok(device->createGraph());
  GraphNodeId fill = ok(graph->addFill(p.get(), 1, 4, {}));
  GraphNodeId add = ok(graph->addKernel(PackedLaunch(add1, p.get()), fill));
  GraphNodeId copy = ok(graph->addCopy(p.get() + 1, p.get(), 4, add));
  auto exec = ok(graph->instantiate());
  ok(s->beginCapture(CaptureMode::ThreadLocal));
  for (int i = 1; i <= 3; ++i) {
    int *at = p.get() + 2 * i;
    ok(exec->setFill(fill, at, uint8_t(i), 4));
    ok(exec->setKernel(add, PackedLaunch(add1, at)));
    ok(exec->setCopy(copy, at + 1, at, 4));
    ok(exec->launch(*s));
  }
  auto outer = ok(s->endCapture());
  EXPECT_EQ(outer->numNodes(), 3u);
  ok(ok(outer->instantiate())->launch(*s));
  ok(s->synchronize());
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(read({p, p.get() + i}), i < 2 ? 0 : 0x01010101 * (i / 2) + 1) << i;
}

/// While a stream is being captured its work ends where the capture began, and when it is gone that
/// can still be waited for.
TEST_F(CUDADeviceTest, TailOfCapturedStream) {
  auto p = zeros();
  auto flag = createTestFlag(*device);
  auto a = ok(device->createStream()), b = ok(device->createStream());
  std::shared_ptr<StreamTail> tail = a->tail();
  ok(a->launch(PackedLaunch(kernels.waitFlag, flag.get())));
  ok(a->launch(PackedLaunch(add1, p.get())));
  ok(a->beginCapture(CaptureMode::Relaxed));
  ok(a->launch(PackedLaunch(add1, p.get())));
  ok(tail->orderBefore(*b));
  EXPECT_EQ(b->captureStatus(), CaptureStatus::None);
  ok(b->launch(PackedLaunch(add1, p.get())));
  EXPECT_FALSE(ok(b->query()));
  flag->store(1);
  ok(b->synchronize());
  EXPECT_EQ(read(p), 2);
  EXPECT_EQ(ok(a->endCapture())->numNodes(), 1u);
  a.reset();
  ok(tail->orderBefore(*b));
  ok(tail->synchronize());
}

//===----------------------------------------------------------------------===//
// Nodes that a library made
//===----------------------------------------------------------------------===//

/// Captures what `submit` does to a stream of CUDA's own.
static std::unique_ptr<Graph> captureCalls(DeviceAPI &device,
                                           llvm::function_ref<cudaError_t(cudaStream_t)> submit) {
  auto s = ok(device.createStream());
  ok(s->beginCapture(CaptureMode::ThreadLocal));
  EXPECT_EQ(submit(static_cast<cudaStream_t>(s->nativeHandle())), cudaSuccess);
  return ok(s->endCapture());
}

/// Sets node 0, a kernel with one parameter, as it was read but for `pointer`.
static void setPointer(Graph &graph, GraphExec &exec, void *pointer) {
  GraphNodeParameters parameters = ok(graph.parameters(GraphNodeId(0)));
  std::vector<std::byte> block = parameters.kernel.parameters.vec();
  ASSERT_EQ(block.size(), sizeof(pointer));
  std::memcpy(block.data(), &pointer, sizeof(pointer));
  parameters.kernel.parameters = block;
  ok(exec.set(GraphNodeId(0), parameters));
}

/// A kernel that CUDA's runtime launched can be read and set, in execs and their captures.
TEST_F(CUDADeviceTest, KernelOfTheRuntime) {
  auto p = zeros(2);
  int *at = p.get();
  auto graph = captureCalls(*device, [&](cudaStream_t stream) {
    void *arguments[] = {&at};
    return cudaLaunchKernel(testKernelSymbols().add1, dim3(1), dim3(1), arguments, 0, stream);
  });
  ASSERT_EQ(graph->numNodes(), 1u);
  GraphNodeParameters parameters = ok(graph->parameters(GraphNodeId(0)));
  ASSERT_EQ(parameters.kernel.parameters.size(), sizeof(at));
  EXPECT_EQ(std::memcmp(parameters.kernel.parameters.data(), &at, sizeof(at)), 0);
  auto exec = ok(graph->instantiate());
  setPointer(*graph, *exec, p.get() + 1);
  auto s = ok(device->createStream());
  ok(exec->launch(*s));
  ok(s->beginCapture(CaptureMode::ThreadLocal));
  ok(exec->launch(*s));
  ok(ok(ok(s->endCapture())->instantiate())->launch(*s));
  ok(s->synchronize());
  EXPECT_EQ(read(p), 0);
  EXPECT_EQ(read({p, p.get() + 1}), 2);
}

/// A kernel that was captured with clusters has them when its parameters were set, in execs and
/// their captures.
TEST_F(CUDADeviceTest, ClustersStay) {
  int major = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), cudaSuccess);
  if (major < 9)
    GTEST_SKIP() << "no clusters";
  auto p = zeros(2);
  int *at = p.get();
  auto graph = captureCalls(*device, [&](cudaStream_t stream) {
    cudaLaunchAttribute clusters = {};
    clusters.id = cudaLaunchAttributeClusterDimension;
    clusters.val.clusterDim.x = 2;
    clusters.val.clusterDim.y = clusters.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(4);
    config.blockDim = dim3(1);
    config.stream = stream;
    config.attrs = &clusters;
    config.numAttrs = 1;
    void *arguments[] = {&at};
    return cudaLaunchKernelExC(&config, testKernelSymbols().clusterSize, arguments);
  });
  auto exec = ok(graph->instantiate());
  setPointer(*graph, *exec, p.get() + 1);
  auto s = ok(device->createStream());
  ok(exec->launch(*s));
  ok(s->synchronize());
  EXPECT_EQ(read(p), 0);
  EXPECT_EQ(read({p, p.get() + 1}), 2);
  ok(s->fill(p.get() + 1, 0, 4));
  ok(s->beginCapture(CaptureMode::ThreadLocal));
  ok(exec->launch(*s));
  ok(ok(ok(s->endCapture())->instantiate())->launch(*s));
  ok(s->synchronize());
  EXPECT_EQ(read({p, p.get() + 1}), 2);
}

/// What is not plain is captured and runs, and says what it is when it is to be read or set.
TEST_F(CUDADeviceTest, NodesThatAreNotPlain) {
  auto p = zeros(64);
  auto *bytes = reinterpret_cast<uint8_t *>(p.get());
  auto graph = captureCalls(*device, [&](cudaStream_t stream) {
    if (cudaError_t error = cudaMemset2DAsync(bytes, 64, 1, 4, 2, stream))
      return error;
    if (cudaError_t error =
            cudaMemcpy2DAsync(bytes + 128, 64, bytes, 64, 4, 2, cudaMemcpyDefault, stream))
      return error;
    return cudaLaunchHostFunc(
        stream, [](void *) {}, nullptr);
  });
  ASSERT_EQ(graph->numNodes(), 3u);
  const char *expected[] = {"node n0 is a fill in two dimensions",
                            "node n1 is a copy in several dimensions",
                            "node n2 is no kernel, fill, copy or empty node"};
  for (unsigned i = 0; i < 3; ++i)
    EXPECT_THAT(llvm::toString(graph->parameters(GraphNodeId(i)).takeError()),
                testing::HasSubstr(expected[i]));
  auto exec = ok(graph->instantiate());
  EXPECT_THAT(llvm::toString(exec->setFill(GraphNodeId(0), bytes, 1, 4)),
              testing::HasSubstr(expected[0]));
  EXPECT_THAT(llvm::toString(exec->setCopy(GraphNodeId(1), bytes + 8, bytes, 4)),
              testing::HasSubstr(expected[1]));
  auto s = ok(device->createStream());
  ok(exec->launch(*s));
  ok(s->synchronize());
  for (int i : {0, 16, 32, 48})
    EXPECT_EQ(read({p, p.get() + i}), 0x01010101) << i;
}

/// What CUDA itself refuses to update is an error that names the node, and the exec is as before.
TEST_F(CUDADeviceTest, UpdateThatCUDARefuses) {
  auto p = zeros(64);
  auto capture = [&](size_t width) {
    return captureCalls(*device, [&](cudaStream_t stream) {
      return cudaMemset2DAsync(p.get(), 64, 1, width, 2, stream);
    });
  };
  auto exec = ok(capture(4)->instantiate());
  std::string text = llvm::toString(exec->update(*capture(8)));
  EXPECT_THAT(text, testing::StartsWith("invalid argument: "));
  EXPECT_THAT(text, testing::HasSubstr("node n0 expects parameters"));
  auto s = ok(device->createStream());
  ok(exec->launch(*s));
  ok(s->synchronize());
  EXPECT_EQ(read(p), 0x01010101);
  EXPECT_EQ(read({p, p.get() + 1}), 0);
}

//===----------------------------------------------------------------------===//
// Streams of somebody else
//===----------------------------------------------------------------------===//

/// Work of the owner and of the borrower is in one order, and the stream stays when the borrower
/// goes.
TEST_F(BorrowedStreamTest, OneOrder) {
  auto p = zeros();
  EXPECT_EQ(stream->nativeHandle(), raw);
  EXPECT_EQ(cudaMemsetAsync(p.get(), 1, 4, raw), cudaSuccess);
  ok(stream->launch(PackedLaunch(add1, p.get())));
  EXPECT_EQ(ok(borrowCUDAStream(device, raw))->id(), stream->id());
  stream.reset();
  int result = 0;
  EXPECT_EQ(cudaMemcpyAsync(&result, p.get(), 4, cudaMemcpyDefault, raw), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(raw), cudaSuccess);
  EXPECT_EQ(result, 0x01010102);
}

/// What is submitted while the owner captures becomes part of the capture, memory that is given
/// back meanwhile stays out of it, and the borrower cannot end it.
TEST_F(BorrowedStreamTest, OwnersCapture) {
  auto p = zeros(), memory = zeros();
  for (bool end : {false, true}) {
    ASSERT_EQ(cudaStreamBeginCapture(raw, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(stream->captureStatus(), CaptureStatus::Active);
    EXPECT_EQ(outcome(stream->beginCapture(CaptureMode::Relaxed)), "invalid argument");
    ok(stream->launch(PackedLaunch(add1, p.get())));
    memory.reset();
    if (end) {
      EXPECT_EQ(outcome(stream->endCapture()), "invalid argument");
    }
    cudaGraph_t graph = nullptr;
    size_t numNodes = 0;
    EXPECT_EQ(cudaStreamEndCapture(raw, &graph),
              end ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    cudaGetLastError();
    if (end)
      continue;
    EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &numNodes), cudaSuccess);
    EXPECT_EQ(numNodes, 1u);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  EXPECT_EQ(read(p), 0);
  zeros();
  EXPECT_EQ(device->memoryUse().bytes, sizeof(int)) << "what was given back is not back";
}

/// Memory that is given back is not used again before work on a borrowed stream is done, also when
/// the borrower has gone.
TEST_F(BorrowedStreamTest, WorkOutlivesBorrower) {
  auto memory = zeros();
  auto flag = createTestFlag(*device);
  ok(stream->launch(PackedLaunch(kernels.waitFlag, flag.get())));
  ok(stream->launch(PackedLaunch(add1, memory.get())));
  stream.reset();
  memory.reset();
  auto next = zeros();
  auto s = ok(device->createStream());
  ok(s->fill(next.get(), 7, sizeof(int)));
  ok(s->synchronize());
  flag->store(1);
  EXPECT_EQ(cudaStreamSynchronize(raw), cudaSuccess);
  EXPECT_EQ(read(next), 0x07070707);
}

/// A stream of another kind of device cannot be borrowed for one.
TEST_F(BorrowedStreamTest, OtherDevice) {
  EXPECT_EQ(outcome(borrowCUDAStream(createHostDevice(), raw)), "invalid argument");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Memory that is given back is kept for the next who asks, until the device is trimmed.
TEST_F(CUDADeviceTest, TrimGivesBack) {
  const size_t bytes = size_t(256) << 20;
  device->deallocate(ok(device->allocate(bytes)), bytes);
  ok(device->synchronize());
  size_t kept = freeBytes();
  device->trim();
  EXPECT_GE(freeBytes(), kept + bytes);
}

/// Allocating and giving back again and again, in other sizes and with work on it, costs nothing in
/// the end.
TEST_F(CUDADeviceTest, CyclesDoNotLeak) {
  auto cycle = [&](size_t n) {
    auto p = zeros(n);
    auto s = ok(device->createStream());
    ok(s->launch(PackedLaunch(add1, p.get())));
  };
  auto level = [&] {
    device->trim();
    return freeBytes();
  };
  cycle(1);
  size_t first = level();
  for (size_t i = 0; i < 1000; ++i)
    cycle((i * 977) % 100'000 + 1);
  EXPECT_GE(level(), first);
  EXPECT_EQ(device->memoryUse().bytes, 0u);
}

/// Kernels can use pinned memory of the host, not pageable memory.
TEST_F(CUDADeviceTest, CanAccess) {
  int pageable = 0;
  void *pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 64), cudaSuccess);
  EXPECT_FALSE(device->canAccess(&pageable));
  EXPECT_TRUE(device->canAccess(pinned));
  EXPECT_TRUE(device->canAccess(zeros().get()));
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// An error that the device survives does not stay for others to find.
TEST_F(CUDADeviceTest, ErrorsAreCleared) {
  auto s = ok(device->createStream());
  KernelLaunch launch = PackedLaunch(add1, static_cast<int *>(nullptr));
  launch.block = {2048, 1, 1};
  EXPECT_NE(outcome(s->launch(launch)), "success");
  ok(s->beginCapture(CaptureMode::ThreadLocal));
  EXPECT_EQ(outcome(s->synchronize()), "not capturable");
  EXPECT_EQ(outcome(s->endCapture()), "capture invalidated");
  EXPECT_EQ(outcome(device->allocate(size_t(1) << 50)), "out of memory");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  ok(device->synchronize());
}

/// Uses everything of a device after a kernel wrote to an address that is none. Returns what is not
/// as it must be, or nothing.
static std::string useLostDevice(DeviceRef device, const CUDATestKernels &kernels) {
  void *data = ok(device->allocate(64));
  auto s = ok(device->createStream());
  auto e = ok(device->createEvent());
  auto graph = ok(device->createGraph());
  PackedLaunch add(kernels.add1, data);
  GraphNodeId node = ok(graph->addKernel(add, {}));
  auto exec = ok(graph->instantiate());
  ok(s->launch(PackedLaunch(kernels.writeToAddress, uint64_t(16))));
  std::string first = llvm::toString(s->synchronize());
  if (first.find("device lost: cuda:0: cudaStreamSynchronize: ") ||
      first.find("(cudaErrorIllegalAddress)") == std::string::npos)
    return "the first error is '" + first + "'";
  llvm::SmallVector<GraphNodeId, 2> last;
  llvm::Error later[] = {s->synchronize(),
                         s->launch(add),
                         s->launch(KernelLaunch()),
                         s->fill(data, 0, 64),
                         s->fill(data, 0, 0),
                         s->record(*e),
                         s->wait(*e),
                         s->query().takeError(),
                         s->beginCapture(CaptureMode::Global),
                         s->endCapture().takeError(),
                         s->endCaptureToGraph(last),
                         e->query().takeError(),
                         e->synchronize(),
                         graph->addKernel(add, {}).takeError(),
                         graph->addEmpty({}).takeError(),
                         graph->addGather(CopyPiece{data, data, 0}, {}).takeError(),
                         graph->parameters(node).takeError(),
                         graph->instantiate().takeError(),
                         exec->launch(*s),
                         exec->setKernel(node, add),
                         exec->update(*graph),
                         device->synchronize(),
                         device->allocate(64).takeError(),
                         device->createStream().takeError(),
                         device->createEvent().takeError(),
                         device->createGraph().takeError()};
  std::string problem;
  for (llvm::Error &error : later)
    if (std::string text = llvm::toString(std::move(error)); text != first)
      problem += "call " + std::to_string(&error - later) + ": '" + text + "'\n";
  device->deallocate(data, 64);
  device->trim();
  return problem;
}

/// After an illegal address every call returns that error, and destructors are quiet.
TEST_F(CUDADeviceTest, LostDevice) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe"; // a process without a context to inherit
  EXPECT_EXIT(
      {
        std::string problem = useLostDevice(std::move(device), kernels);
        std::cerr << problem;
        std::exit(problem.empty() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "^$");
}
