//===- DeviceConformance.h - What every device must do ----------*- C++ -*-===//
//
// One suite of tests for all devices. A test of a device describes how to make it and where to find
// three kernels, and instantiates `DeviceConformance`, `DeviceCaptureConformance`,
// `DeviceNodesConformance` and, if work of the device runs beside the calls that submit it,
// `DeviceInFlightConformance`, each in the header of its name. Device memory is only touched
// through streams.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "support/DeviceTesting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

namespace rondo {

/// Each runs as one thread. Parameters in order, each at its natural alignment.
enum class TestKernel {
  Add1,     ///< (int *p): *p += 1
  Axpy,     ///< (float a, const float *x, float *y, int n): y[i] += a * x[i] for i < n
  WaitFlag, ///< (const int *flag): returns when *flag is not 0
};

struct ConformanceTarget {
  std::string name; ///< of the instantiation: letters and digits
  /// Null if there is no such device here: then the tests are skipped.
  std::function<DeviceRef()> createDevice;
  std::function<const void *(DeviceAPI &, TestKernel)> kernel;
  /// An int, 0, that a kernel sees the host write to. Only for asynchronous devices.
  std::function<std::shared_ptr<std::atomic<int>>(DeviceAPI &)> createFlag;
};

inline void PrintTo(const ConformanceTarget &target, std::ostream *os) {
  *os << target.name;
}
inline std::string conformanceName(const testing::TestParamInfo<ConformanceTarget> &info) {
  return info.param.name;
}

/// A device and what the tests say about it in a word.
class DeviceConformance : public testing::TestWithParam<ConformanceTarget> {
protected:
  using Nodes = llvm::SmallVector<GraphNodeId, 4>;

  void SetUp() override {
    device = GetParam().createDevice();
    if (!device)
      GTEST_SKIP() << "no device";
  }

  template <typename T> static T ok(llvm::Expected<T> value) {
    if (value)
      return std::move(*value);
    ADD_FAILURE() << llvm::toString(value.takeError());
    return T();
  }
  static void ok(llvm::Error error) { EXPECT_EQ(outcome(std::move(error)), "success"); }

  std::unique_ptr<Stream> stream() { return ok(device->createStream()); }
  std::unique_ptr<Event> event() { return ok(device->createEvent()); }

  /// Device memory for `T[n]`, all bytes 0, freed with the last reference.
  template <typename T = int> std::shared_ptr<T> zeros(size_t n = 1) {
    size_t bytes = n * sizeof(T);
    T *data = static_cast<T *>(ok(device->allocate(bytes)));
    auto s = stream();
    ok(s->fill(data, 0, bytes));
    ok(s->synchronize());
    return {data, [device = device, bytes](T *data) { device->deallocate(data, bytes); }};
  }
  template <typename T> std::vector<T> read(const std::shared_ptr<T> &data, size_t n) {
    std::vector<T> result(n);
    auto s = stream();
    ok(s->copy(result.data(), data.get(), n * sizeof(T)));
    ok(s->synchronize());
    return result;
  }
  int read(const std::shared_ptr<int> &data) { return read(data, 1)[0]; }

  PackedLaunch add1(const std::shared_ptr<int> &p) { return kernel(TestKernel::Add1, p.get()); }
  template <typename... Args> PackedLaunch kernel(TestKernel which, Args... args) {
    return PackedLaunch(GetParam().kernel(*device, which), args...);
  }

  DeviceRef device;
};

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Memory is aligned to 256 bytes, disjoint, and counted while it lives.
TEST_P(DeviceConformance, Memory) {
  const std::vector<size_t> sizes = {4097, 1, 255, 256};
  const size_t total = 4609;
  MemoryUse before = device->memoryUse();
  std::map<uintptr_t, size_t> blocks;
  for (size_t bytes : sizes) {
    auto address = reinterpret_cast<uintptr_t>(ok(device->allocate(bytes)));
    EXPECT_EQ(address % DeviceAPI::allocationAlignment, 0u);
    EXPECT_TRUE(device->canAccess(reinterpret_cast<void *>(address)));
    blocks[address] = bytes;
  }
  ASSERT_EQ(blocks.size(), sizes.size());
  for (auto block = blocks.begin(), next = std::next(block); next != blocks.end(); ++block, ++next)
    EXPECT_LE(block->first + block->second, next->first);
  MemoryUse during = device->memoryUse();
  EXPECT_EQ(during.bytes, before.bytes + total);
  EXPECT_EQ(during.allocations, before.allocations + sizes.size());
  for (auto [address, bytes] : blocks)
    device->deallocate(reinterpret_cast<void *>(address), bytes);
  EXPECT_EQ(device->memoryUse().bytes, before.bytes);
  EXPECT_GE(device->memoryUse().peakBytes, before.bytes + total);
  device->resetPeak();
  EXPECT_EQ(device->memoryUse().peakBytes, before.bytes);
}

/// No bytes are null, count for nothing and can be given back; null is no memory of the device.
TEST_P(DeviceConformance, NoMemory) {
  MemoryUse before = device->memoryUse();
  EXPECT_EQ(ok(device->allocate(0)), nullptr);
  device->deallocate(nullptr, 0);
  EXPECT_EQ(device->memoryUse().allocations, before.allocations);
  EXPECT_FALSE(device->canAccess(nullptr));
}

/// More than there can be is OutOfMemory, costs nothing, and the device goes on.
TEST_P(DeviceConformance, OutOfMemory) {
  MemoryUse before = device->memoryUse();
  for (size_t bytes : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX - 255})
    EXPECT_EQ(outcome(device->allocate(bytes)), "out of memory");
  EXPECT_EQ(device->memoryUse().bytes, before.bytes);
  EXPECT_EQ(device->memoryUse().peakBytes, before.peakBytes);
  EXPECT_EQ(read(zeros()), 0);
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

/// What is submitted to a stream happens in that order.
TEST_P(DeviceConformance, StreamKeepsOrder) {
  auto p = zeros(2);
  auto s = stream();
  int result[2] = {};
  ok(s->fill(p.get(), 1, sizeof(int)));
  ok(s->launch(add1(p)));
  ok(s->copy(p.get() + 1, p.get(), sizeof(int)));
  ok(s->launch(add1(p)));
  ok(s->copy(result, p.get(), sizeof(result)));
  ok(s->synchronize());
  EXPECT_THAT(result, testing::ElementsAre(0x01010103, 0x01010102));
  EXPECT_TRUE(ok(s->query()));
}

/// A kernel gets parameters of several types as they were when it was submitted.
TEST_P(DeviceConformance, ParametersAreCopied) {
  auto x = zeros<float>(3), y = zeros<float>(3);
  const float ones[] = {1, 2, 3};
  auto s = stream();
  ok(s->copy(x.get(), ones, sizeof(ones)));
  PackedLaunch axpy = kernel(TestKernel::Axpy, 2.0f, x.get(), y.get(), 2);
  ok(s->launch(axpy));
  axpy.scribble();
  ok(s->synchronize());
  EXPECT_THAT(read(y, 3), testing::ElementsAre(2, 4, 0));
}

/// Work with wrong arguments is refused and the stream goes on; no bytes need no memory.
TEST_P(DeviceConformance, WrongArguments) {
  auto p = zeros();
  auto s = stream();
  KernelLaunch noFunction, noThreads = add1(p);
  noThreads.block[1] = 0;
  EXPECT_EQ(outcome(s->launch(noFunction)), "invalid argument");
  EXPECT_EQ(outcome(s->launch(noThreads)), "invalid argument");
  EXPECT_EQ(outcome(s->fill(nullptr, 0, 1)), "invalid argument");
  EXPECT_EQ(outcome(s->copy(nullptr, p.get(), 1)), "invalid argument");
  EXPECT_EQ(outcome(s->copy(p.get(), nullptr, 1)), "invalid argument");
  ok(s->fill(nullptr, 0, 0));
  ok(s->copy(nullptr, nullptr, 0));
  ok(s->launch(add1(p)));
  ok(s->synchronize());
  EXPECT_EQ(read(p), 1);
}

/// Ids of streams are not used again, also not after a stream is gone.
TEST_P(DeviceConformance, StreamIds) {
  std::set<uint64_t> ids;
  auto kept = stream();
  ids.insert(kept->id());
  for (int i = 0; i < 10; ++i)
    ids.insert(stream()->id());
  EXPECT_EQ(ids.size(), 11u);
}

/// An event that was never recorded is in the past, for streams and for the host.
TEST_P(DeviceConformance, EventNeverRecorded) {
  auto e = event();
  auto s = stream();
  EXPECT_TRUE(ok(e->query()));
  ok(e->synchronize());
  ok(s->wait(*e));
  ok(s->synchronize());
}

/// Through an event one stream sees what another did, and so does the host.
TEST_P(DeviceConformance, EventBetweenStreams) {
  auto p = zeros();
  auto a = stream(), b = stream();
  auto e = event();
  for (int i = 0; i < 20; ++i) {
    ok(a->launch(add1(p)));
    ok(a->record(*e));
    ok(b->wait(*e));
    ok(b->launch(add1(p)));
    ok(b->record(*e));
    ok(a->wait(*e));
  }
  ok(e->synchronize());
  EXPECT_TRUE(ok(e->query()));
  EXPECT_EQ(read(p), 40);
}

/// `call` hands out the stream itself and passes on its error.
TEST_P(DeviceConformance, Call) {
  auto p = zeros();
  auto s = stream();
  Stream *given = nullptr;
  ok(s->call([&](Stream &inner) {
    given = &inner;
    return inner.launch(add1(p));
  }));
  EXPECT_EQ(given, s.get());
  EXPECT_EQ(outcome(s->call([](Stream &inner) { return inner.fill(nullptr, 0, 1); })),
            "invalid argument");
  ok(s->synchronize());
  EXPECT_EQ(read(p), 1);
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

/// A graph tells its nodes, their kinds and dependencies, sorted and each once.
TEST_P(DeviceConformance, GraphNodes) {
  auto p = zeros(2);
  auto graph = ok(device->createGraph());
  EXPECT_EQ(&graph->device(), device.get());
  GraphNodeId fill = ok(graph->addFill(p.get(), 0, 4, {}));
  GraphNodeId copy = ok(graph->addCopy(p.get() + 1, p.get(), 4, fill));
  GraphNodeId add = ok(graph->addKernel(add1(p), {copy, fill, copy}));
  GraphNodeId empty = ok(graph->addEmpty(add));
  ASSERT_EQ(graph->numNodes(), 4u);
  EXPECT_EQ(graph->kind(fill), GraphNodeKind::Fill);
  EXPECT_EQ(graph->kind(copy), GraphNodeKind::Copy);
  EXPECT_EQ(graph->kind(add), GraphNodeKind::Kernel);
  EXPECT_EQ(graph->kind(empty), GraphNodeKind::Empty);
  EXPECT_EQ(graph->dependencies(fill), Nodes());
  EXPECT_EQ(graph->dependencies(add), Nodes({fill, copy}));
  EXPECT_EQ(graph->dependencies(empty), Nodes({add}));
}

/// Wrong arguments and dependencies that are no nodes add nothing.
TEST_P(DeviceConformance, GraphRefusesNodes) {
  auto p = zeros();
  auto graph = ok(device->createGraph());
  GraphNodeId first = ok(graph->addEmpty({}));
  for (GraphNodeId wrong : {GraphNodeId(1), GraphNodeId(99), GraphNodeId()}) {
    EXPECT_EQ(outcome(graph->addKernel(add1(p), {first, wrong})), "invalid argument");
    EXPECT_EQ(outcome(graph->addFill(p.get(), 0, 4, wrong)), "invalid argument");
    EXPECT_EQ(outcome(graph->addCopy(p.get(), p.get(), 0, wrong)), "invalid argument");
    EXPECT_EQ(outcome(graph->addEmpty(wrong)), "invalid argument");
  }
  EXPECT_EQ(outcome(graph->addKernel(KernelLaunch(), first)), "invalid argument");
  EXPECT_EQ(outcome(graph->addFill(nullptr, 0, 4, first)), "invalid argument");
  EXPECT_EQ(outcome(graph->addCopy(p.get(), nullptr, 4, first)), "invalid argument");
  EXPECT_EQ(graph->numNodes(), 1u);
}

/// An exec runs its nodes after their dependencies at every launch, also when the graph has changed
/// or gone; a graph without nodes does nothing.
TEST_P(DeviceConformance, ExecIsIndependentOfGraph) {
  auto p = zeros(2);
  auto s = stream();
  auto graph = ok(device->createGraph());
  ok(ok(graph->instantiate())->launch(*s));
  PackedLaunch launch = add1(p);
  GraphNodeId add = ok(graph->addKernel(launch, {}));
  launch.scribble();
  GraphNodeId copy = ok(graph->addCopy(p.get() + 1, p.get(), 4, add));
  auto exec = ok(graph->instantiate());
  ok(graph->addFill(p.get(), 7, 8, copy));
  auto longer = ok(graph->instantiate());
  graph.reset();
  for (int i = 1; i <= 3; ++i) {
    ok(exec->launch(*s));
    ok(s->synchronize());
    EXPECT_THAT(read(p, 2), testing::ElementsAre(i, i));
  }
  ok(longer->launch(*s));
  ok(s->synchronize());
  EXPECT_THAT(read(p, 2), testing::ElementsAre(0x07070707, 0x07070707));
}

/// Parameters of nodes of every kind can be changed, for the launches after.
TEST_P(DeviceConformance, ExecPatch) {
  auto p = zeros(4);
  auto s = stream();
  auto graph = ok(device->createGraph());
  GraphNodeId fill = ok(graph->addFill(p.get(), 1, 4, {}));
  GraphNodeId add = ok(graph->addKernel(add1(p), fill));
  GraphNodeId copy = ok(graph->addCopy(p.get() + 1, p.get(), 4, add));
  auto exec = ok(graph->instantiate());
  ok(exec->launch(*s));
  ok(exec->setFill(fill, p.get() + 2, 2, 2));
  ok(exec->setKernel(add, kernel(TestKernel::Add1, p.get() + 2)));
  ok(exec->setCopy(copy, p.get() + 3, p.get() + 2, 4));
  ok(exec->launch(*s));
  ok(s->synchronize());
  EXPECT_THAT(read(p, 4), testing::ElementsAre(0x01010102, 0x01010102, 0x0203, 0x0203));
}

/// A change to another kind of node, another kernel, more parameters or no node at all is refused
/// and changes nothing.
TEST_P(DeviceConformance, ExecRefusesPatch) {
  auto p = zeros(2);
  auto s = stream();
  auto graph = ok(device->createGraph());
  GraphNodeId add = ok(graph->addKernel(add1(p), {}));
  GraphNodeId fill = ok(graph->addFill(p.get() + 1, 0, 4, {}));
  auto exec = ok(graph->instantiate());
  PackedLaunch other = kernel(TestKernel::Add1, p.get() + 1);
  EXPECT_EQ(outcome(exec->setKernel(fill, other)), "invalid argument");
  EXPECT_EQ(outcome(exec->setFill(add, p.get(), 1, 4)), "invalid argument");
  EXPECT_EQ(outcome(exec->setCopy(fill, p.get(), p.get() + 1, 4)), "invalid argument");
  EXPECT_EQ(outcome(exec->setKernel(add, kernel(TestKernel::WaitFlag, p.get()))),
            "invalid argument");
  EXPECT_EQ(outcome(exec->setKernel(add, kernel(TestKernel::Add1, p.get() + 1, int64_t(0)))),
            "invalid argument");
  EXPECT_EQ(outcome(exec->setKernel(GraphNodeId(2), other)), "invalid argument");
  EXPECT_EQ(outcome(exec->setFill(GraphNodeId(), p.get(), 1, 4)), "invalid argument");
  EXPECT_EQ(outcome(exec->setFill(fill, nullptr, 1, 4)), "invalid argument");
  ok(exec->launch(*s));
  ok(s->synchronize());
  EXPECT_THAT(read(p, 2), testing::ElementsAre(1, 0));
}

/// Objects of a device may be destroyed in any order, after the device and with work in flight.
TEST_P(DeviceConformance, DestructionInAnyOrder) {
  enum { OfStream, OfEvent, OfGraph, OfExec, NumObjects };
  std::vector<int> order = {OfStream, OfEvent, OfGraph, OfExec};
  do {
    auto p = zeros();
    auto s = stream();
    auto e = event();
    auto graph = ok(device->createGraph());
    ok(graph->addKernel(add1(p), {}));
    auto exec = ok(graph->instantiate());
    for (int i = 0; i < 10; ++i)
      ok(exec->launch(*s));
    ok(s->record(*e));
    device.reset();
    for (int object : order) {
      if (object == OfStream)
        s.reset();
      if (object == OfEvent)
        e.reset();
      if (object == OfGraph)
        graph.reset();
      if (object == OfExec)
        exec.reset();
    }
    p.reset();
    device = GetParam().createDevice();
  } while (std::next_permutation(order.begin(), order.end()));
}

} // namespace rondo
