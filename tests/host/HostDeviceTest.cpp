//===- HostDeviceTest.cpp - What only the host device does ----------------===//
//
// What every device does is tested by the conformance suite (HostDeviceConformanceTest.cpp).
//
//===----------------------------------------------------------------------===//

#include "rondo/host/HostDevice.h"

#include "support/DeviceTesting.h"
#include "support/Sanitizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <new>
#include <set>
#include <thread>

using namespace rondo;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

//===----------------------------------------------------------------------===//
// Counting allocations
//===----------------------------------------------------------------------===//

static std::atomic<size_t> numHeapAllocations = 0;

#if !RONDO_IS_SANITIZED
__attribute__((noinline)) void *operator new(size_t bytes) {
  ++numHeapAllocations;
  if (void *data = std::malloc(bytes ? bytes : 1))
    return data;
  std::abort();
}
__attribute__((noinline)) void operator delete(void *data) noexcept {
  std::free(data);
}
__attribute__((noinline)) void operator delete(void *data, size_t) noexcept {
  std::free(data);
}
#endif

namespace {

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

using Order = std::vector<int>;

/// (Order *order, int id): appends `id`.
void appendKernel(const std::byte *parameters) {
  auto *words = reinterpret_cast<const uintptr_t *>(parameters);
  reinterpret_cast<Order *>(words[0])->push_back(int(words[1]));
}

/// (size_t *misaligned, ...): counts calls with a parameter block that is not aligned to 16 bytes.
void alignmentKernel(const std::byte *parameters) {
  auto *words = reinterpret_cast<const uintptr_t *>(parameters);
  *reinterpret_cast<size_t *>(words[0]) += reinterpret_cast<uintptr_t>(parameters) % 16 != 0;
  *reinterpret_cast<size_t *>(words[1]) += 1;
}

/// (int *p, ...): adds up the bytes after the pointer.
void sumKernel(const std::byte *parameters) {
  int *p = nullptr;
  size_t bytes = 0;
  std::memcpy(&p, parameters, sizeof(p));
  std::memcpy(&bytes, parameters + sizeof(p), sizeof(bytes));
  for (size_t i = 16; i < bytes; ++i)
    *p += int(parameters[i]);
}

enum class Gate { Closed, Reached, Open };

void waitFor(std::atomic<Gate> &gate, Gate state) {
  while (gate != state)
    std::this_thread::yield();
}

/// (atomic<Gate> *gate): says that it is there and returns when the gate is open.
void gateKernel(const std::byte *parameters) {
  auto *gate = *reinterpret_cast<std::atomic<Gate> *const *>(parameters);
  *gate = Gate::Reached;
  waitFor(*gate, Gate::Open);
}

template <typename... Args> PackedLaunch packed(HostFunction function, Args... args) {
  return PackedLaunch(reinterpret_cast<const void *>(function), args...);
}
PackedLaunch append(Order &order, uintptr_t id) {
  return packed(&appendKernel, &order, id);
}

/// Runs `body` on inline and asynchronous devices with otherwise the same options.
template <typename Body> void onBothDevices(HostDeviceOptions options, Body body) {
  for (bool asynchronous : {false, true}) {
    SCOPED_TRACE(asynchronous ? "asynchronous" : "inline");
    options.asynchronous = asynchronous;
    body(createHostDevice(options));
  }
}

std::string text(llvm::Error error) {
  return llvm::toString(std::move(error));
}
template <typename T> std::string text(llvm::Expected<T> value) {
  return text(value.takeError());
}

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

/// A device says what it is; streams of the host have no native handle, and ids of their own in the
/// whole process.
TEST(HostDevice, Description) {
  HostDeviceOptions options;
  options.index = 5;
  DeviceRef device = createHostDevice(options), other = createHostDevice();
  EXPECT_EQ(device->device(), (Device{DeviceKind::Host, 5}));
  EXPECT_EQ(other->device(), Device::host());
  EXPECT_EQ(device->description(), "host");
  auto s = cantFail(device->createStream()), t = cantFail(other->createStream());
  EXPECT_EQ(&s->device(), device.get());
  EXPECT_EQ(s->nativeHandle(), nullptr);
  EXPECT_NE(s->id(), t->id());
  int onStack = 0;
  EXPECT_TRUE(device->canAccess(&onStack));
}

/// An allocation beyond the limit fails and says why; up to the limit it does not.
TEST(HostDevice, MemoryLimit) {
  HostDeviceOptions options;
  options.memoryLimit = 1000;
  DeviceRef device = createHostDevice(options);
  void *most = cantFail(device->allocate(999));
  EXPECT_EQ(text(device->allocate(2)),
            "out of memory: host:0: cannot allocate 2 bytes, 999 are in use and the limit is 1000");
  void *last = cantFail(device->allocate(1));
  EXPECT_EQ(outcome(device->allocate(1)), "out of memory");
  device->deallocate(most, 999);
  most = cantFail(device->allocate(999));
  EXPECT_EQ(device->memoryUse().bytes, 1000u);
  EXPECT_EQ(device->memoryUse().allocations, 3u);
  device->deallocate(most, 999);
  device->deallocate(last, 1);
}

/// The hook sees every allocation and release before it happens, and no refused one.
TEST(HostDevice, MemoryHook) {
  std::vector<int64_t> seen;
  HostDeviceOptions options;
  options.memoryLimit = 100;
  options.memoryHook = [&](int64_t bytes) { seen.push_back(bytes); };
  DeviceRef device = createHostDevice(options);
  void *a = cantFail(device->allocate(10)), *b = cantFail(device->allocate(20));
  EXPECT_EQ(outcome(device->allocate(71)), "out of memory");
  EXPECT_EQ(cantFail(device->allocate(0)), nullptr);
  device->deallocate(a, 10);
  device->deallocate(b, 20);
  EXPECT_THAT(seen, ElementsAre(10, 20, -10, -20));
}

/// With poison, memory is full of 0xFF when it is allocated and when it is about to be freed;
/// without, its content is left alone.
TEST(HostDevice, Poison) {
  for (bool poison : {false, true}) {
    unsigned char *data = nullptr;
    std::vector<int> atRelease;
    HostDeviceOptions options;
    options.poison = poison;
    options.memoryHook = [&](int64_t bytes) {
      if (bytes < 0)
        atRelease.assign(data, data - bytes);
    };
    DeviceRef device = createHostDevice(options);
    data = static_cast<unsigned char *>(cantFail(device->allocate(3)));
    if (poison) {
      EXPECT_THAT(std::vector<int>(data, data + 3), ElementsAre(0xff, 0xff, 0xff));
    }
    std::memset(data, 7, 3);
    device->deallocate(data, 3);
    EXPECT_THAT(atRelease, testing::Each(poison ? 0xff : 7));
    EXPECT_EQ(atRelease.size(), 3u);
  }
}

/// Memory given back during captures is released, once, when the last of those that forbid it has
/// ended.
TEST(HostDevice, ReleaseIsPutOff) {
  std::vector<int64_t> seen;
  HostDeviceOptions options;
  options.memoryHook = [&](int64_t bytes) { seen.push_back(bytes); };
  DeviceRef device = createHostDevice(options);
  auto a = cantFail(device->createStream()), b = cantFail(device->createStream()),
       relaxed = cantFail(device->createStream());
  void *data = cantFail(device->allocate(8));
  cantFail(relaxed->beginCapture(CaptureMode::Relaxed));
  cantFail(a->beginCapture(CaptureMode::Global));
  cantFail(b->beginCapture(CaptureMode::Global));
  device->deallocate(data, 8);
  cantFail(a->endCapture());
  EXPECT_THAT(seen, ElementsAre(8));
  cantFail(b->endCapture());
  EXPECT_THAT(seen, ElementsAre(8, -8));
  cantFail(relaxed->endCapture());
  EXPECT_EQ(seen.size(), 2u);
}

/// Events, graphs and streams of another device are refused.
TEST(HostDevice, ObjectsOfAnotherDevice) {
  DeviceRef device = createHostDevice(), other = createHostDevice();
  auto s = cantFail(device->createStream()), otherStream = cantFail(other->createStream());
  auto otherEvent = cantFail(other->createEvent());
  auto otherGraph = cantFail(other->createGraph());
  auto exec = cantFail(cantFail(device->createGraph())->instantiate());
  EXPECT_EQ(outcome(s->record(*otherEvent)), "invalid argument");
  EXPECT_EQ(outcome(s->wait(*otherEvent)), "invalid argument");
  EXPECT_EQ(outcome(s->beginCaptureToGraph(*otherGraph, {}, CaptureMode::Global)),
            "invalid argument");
  EXPECT_EQ(outcome(exec->launch(*otherStream)), "invalid argument");
  EXPECT_EQ(s->captureStatus(), CaptureStatus::None);
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// Every kernel sees a parameter block aligned to 16 bytes: on a stream, in an exec, after a
/// change, whatever the sizes and wherever the caller had it.
TEST(HostDevice, ParametersAreAligned) {
  onBothDevices({}, [](DeviceRef device) {
    size_t misaligned = 0, calls = 0;
    auto s = cantFail(device->createStream());
    auto graph = cantFail(device->createGraph());
    alignas(16) std::byte buffer[80] = {};
    std::vector<KernelLaunch> launches;
    for (size_t bytes = 16; bytes < 40; ++bytes) {
      KernelLaunch launch;
      launch.function = reinterpret_cast<const void *>(&alignmentKernel);
      std::byte *block = buffer + bytes % 16;
      uintptr_t words[] = {reinterpret_cast<uintptr_t>(&misaligned),
                           reinterpret_cast<uintptr_t>(&calls)};
      std::memcpy(block, words, sizeof(words));
      launch.parameters = {block, bytes};
      cantFail(s->launch(launch));
      cantFail(graph->addKernel(launch, {}));
    }
    auto exec = cantFail(graph->instantiate());
    cantFail(exec->launch(*s));
    cantFail(exec->setKernel(GraphNodeId(3), packed(&alignmentKernel, &misaligned, &calls)));
    cantFail(exec->launch(*s));
    cantFail(s->synchronize());
    EXPECT_EQ(misaligned, 0u);
    EXPECT_EQ(calls, 3u * 24);
  });
}

/// Large parameter blocks arrive whole.
TEST(HostDevice, LargeParameters) {
  onBothDevices({}, [](DeviceRef device) {
    auto s = cantFail(device->createStream());
    int sum = 0;
    std::vector<std::byte> block(100000, std::byte(1));
    const uintptr_t words[] = {reinterpret_cast<uintptr_t>(&sum), block.size()};
    std::memcpy(block.data(), words, sizeof(words));
    KernelLaunch launch;
    launch.function = reinterpret_cast<const void *>(&sumKernel);
    launch.parameters = block;
    cantFail(s->launch(launch));
    cantFail(s->beginCapture(CaptureMode::Relaxed));
    cantFail(s->launch(launch));
    auto exec = cantFail(cantFail(s->endCapture())->instantiate());
    cantFail(exec->launch(*s));
    cantFail(s->synchronize());
    EXPECT_EQ(sum, 2 * (100000 - 16));
  });
}

/// A kernel's parameters may become fewer and, up to what they were at first, more again.
TEST(HostDevice, FewerParameters) {
  DeviceRef device = createHostDevice();
  auto s = cantFail(device->createStream());
  auto graph = cantFail(device->createGraph());
  Order order;
  GraphNodeId node = cantFail(graph->addKernel(packed(&appendKernel, &order, size_t(1), 0), {}));
  auto exec = cantFail(graph->instantiate());
  cantFail(exec->setKernel(node, packed(&appendKernel, &order, size_t(2))));
  cantFail(exec->launch(*s));
  cantFail(exec->setKernel(node, packed(&appendKernel, &order, size_t(3), 0)));
  cantFail(exec->launch(*s));
  EXPECT_EQ(outcome(exec->setKernel(node, packed(&appendKernel, &order, size_t(3), 0, 0))),
            "invalid argument");
  EXPECT_THAT(order, ElementsAre(2, 3));
}

/// Parameters that were read are aligned to 16 bytes, as a kernel sees them, and as many as the
/// kernel was added with.
TEST(HostDevice, ReadParameters) {
  DeviceRef device = createHostDevice();
  auto graph = cantFail(device->createGraph());
  Order order;
  for (size_t id = 0; id < 3; ++id)
    cantFail(graph->addKernel(append(order, id), {}));
  for (size_t id = 0; id < 3; ++id) {
    KernelLaunch launch = cantFail(graph->parameters(GraphNodeId(id))).kernel;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(launch.parameters.data()) % 16, 0u);
    EXPECT_EQ(launch.parameters.size(), 16u);
    appendKernel(launch.parameters.data());
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

/// An exec is only updated to a graph of its own device.
TEST(HostDevice, UpdateOfAnotherDevice) {
  DeviceRef device = createHostDevice(), other = createHostDevice();
  auto exec = cantFail(cantFail(device->createGraph())->instantiate());
  cantFail(exec->update(*cantFail(device->createGraph())));
  EXPECT_EQ(outcome(exec->update(*cantFail(other->createGraph()))), "invalid argument");
}

//===----------------------------------------------------------------------===//
// Allocations
//===----------------------------------------------------------------------===//

/// In the steady state work inline, launches and changes of execs, and events allocate nothing,
/// while adding a node does.
TEST(HostDevice, NoAllocationsInline) {
  if (RONDO_IS_SANITIZED)
    GTEST_SKIP() << "allocations are not counted under this sanitizer";
  for (std::optional<uint64_t> seed : {std::optional<uint64_t>(), std::optional<uint64_t>(3)}) {
    HostDeviceOptions options;
    options.randomOrderSeed = seed;
    DeviceRef device = createHostDevice(options);
    auto s = cantFail(device->createStream()), t = cantFail(device->createStream());
    auto e = cantFail(device->createEvent());
    auto graph = cantFail(device->createGraph());
    size_t misaligned = 0, calls = 0;
    PackedLaunch small = packed(&alignmentKernel, &misaligned, &calls);
    std::vector<std::byte> block(4000);
    KernelLaunch large = small;
    std::memcpy(block.data(), large.parameters.data(), large.parameters.size());
    large.parameters = block;
    for (int i = 0; i < 50; ++i)
      cantFail(graph->addKernel(large, {}));
    CopyPiece piece = {block.data() + 300, block.data() + 100, 100};
    GraphNodeId gather = cantFail(graph->addGather(piece, {}));
    auto exec = cantFail(graph->instantiate());
    auto work = [&] {
      cantFail(s->launch(small));
      cantFail(s->launch(large));
      cantFail(s->fill(block.data() + 100, 1, 100));
      cantFail(s->copy(block.data() + 200, block.data() + 100, 100));
      cantFail(exec->setKernel(GraphNodeId(7), large));
      cantFail(exec->setGather(gather, piece));
      cantFail(exec->launch(*s));
      cantFail(exec->update(*graph));
      cantFail(s->record(*e));
      cantFail(t->wait(*e));
      cantFail(t->synchronize());
    };
    work();
    size_t before = numHeapAllocations;
    for (int i = 0; i < 20; ++i)
      work();
    EXPECT_EQ(numHeapAllocations, before);
    EXPECT_EQ(calls, 21u * 52);
    for (int i = 0; i < 50; ++i)
      cantFail(graph->addKernel(large, {}));
    EXPECT_GT(numHeapAllocations, before);
  }
}

/// The same holds for the queue of an asynchronous stream once it has been as long before, and for
/// changes of an exec of which as many launches have been in flight before.
TEST(HostDevice, NoAllocationsAsynchronous) {
  if (RONDO_IS_SANITIZED)
    GTEST_SKIP() << "allocations are not counted under this sanitizer";
  HostDeviceOptions options;
  options.asynchronous = true;
  DeviceRef device = createHostDevice(options);
  auto s = cantFail(device->createStream());
  auto graph = cantFail(device->createGraph());
  size_t misaligned = 0, calls = 0;
  PackedLaunch launch = packed(&alignmentKernel, &misaligned, &calls);
  GraphNodeId node = cantFail(graph->addKernel(launch, {}));
  auto exec = cantFail(graph->instantiate());
  auto round = [&] {
    std::atomic<Gate> gate = Gate::Closed;
    cantFail(s->launch(launch)); // so that the queue's two batches take turns
    cantFail(s->synchronize());
    cantFail(s->launch(packed(&gateKernel, &gate)));
    waitFor(gate, Gate::Reached);
    for (int i = 0; i < 5; ++i) {
      cantFail(s->launch(launch));
      cantFail(exec->setKernel(node, launch));
      cantFail(exec->launch(*s));
    }
    gate = Gate::Open;
    cantFail(s->synchronize());
  };
  for (int i = 0; i < 10; ++i)
    round();
  size_t before = numHeapAllocations;
  for (int i = 0; i < 10; ++i)
    round();
  EXPECT_EQ(numHeapAllocations, before);
  EXPECT_EQ(calls, 20u * 11);
}

//===----------------------------------------------------------------------===//
// Order of nodes
//===----------------------------------------------------------------------===//

/// The orders in which `numLaunches` launches of one exec run a graph of `dependencies.size()`
/// nodes; `execs` others are instantiated before.
std::vector<Order> ordersOf(std::optional<uint64_t> seed,
                            const std::vector<std::vector<uint32_t>> &dependencies, int numLaunches,
                            int execs = 0) {
  HostDeviceOptions options;
  options.randomOrderSeed = seed;
  DeviceRef device = createHostDevice(options);
  auto s = cantFail(device->createStream());
  auto graph = cantFail(device->createGraph());
  Order order;
  for (size_t i = 0; i < dependencies.size(); ++i) {
    llvm::SmallVector<GraphNodeId, 4> ids;
    for (uint32_t dependency : dependencies[i])
      ids.push_back(GraphNodeId(dependency));
    cantFail(graph->addKernel(append(order, i), ids));
  }
  for (int i = 0; i < execs; ++i)
    cantFail(graph->instantiate());
  auto exec = cantFail(graph->instantiate());
  std::vector<Order> orders;
  for (int i = 0; i < numLaunches; ++i) {
    order.clear();
    cantFail(exec->launch(*s));
    orders.push_back(order);
  }
  return orders;
}

/// Two diamonds that share no node but the first.
const std::vector<std::vector<uint32_t>> diamond = {{}, {0}, {0}, {1, 2}, {0}};

/// Without a seed nodes run in the order in which they were added.
TEST(HostDevice, OrderOfAddition) {
  for (const Order &order : ordersOf(std::nullopt, diamond, 5))
    EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
}

/// With a seed every order that respects the dependencies comes up, and no other.
TEST(HostDevice, RandomOrderIsTopological) {
  std::set<Order> seen;
  for (const Order &order : ordersOf(1, diamond, 1000)) {
    ASSERT_EQ(order.size(), diamond.size());
    std::vector<bool> done(diamond.size());
    for (int node : order) {
      EXPECT_FALSE(done[node]);
      for (uint32_t dependency : diamond[node])
        EXPECT_TRUE(done[dependency]);
      done[node] = true;
    }
    seen.insert(order);
  }
  // n1, n2 in either order before n3; n4 in one of the four places after n0
  EXPECT_EQ(seen.size(), 8u);
}

/// Each ready node is equally likely to be the next.
TEST(HostDevice, RandomOrderIsUniform) {
  std::map<Order, int> count;
  for (const Order &order : ordersOf(1, {{}, {}, {}}, 6000))
    ++count[order];
  ASSERT_EQ(count.size(), 6u);
  for (const auto &[order, n] : count)
    EXPECT_THAT(n, testing::AllOf(testing::Gt(900), testing::Lt(1100)));
}

/// The orders follow from the seed and the number of the exec.
TEST(HostDevice, RandomOrderIsReproducible) {
  std::vector<Order> orders = ordersOf(1, diamond, 50);
  EXPECT_EQ(orders, ordersOf(1, diamond, 50));
  EXPECT_NE(orders, ordersOf(2, diamond, 50));
  EXPECT_NE(orders, ordersOf(1, diamond, 50, /*execs=*/1));
}

//===----------------------------------------------------------------------===//
// Capture
//===----------------------------------------------------------------------===//

/// The nodes of an exec launched in a capture keep their dependencies, the first of them come after
/// what was captured before, and what comes next waits for the last of them.
TEST(HostDevice, NodesOfExecInCapture) {
  DeviceRef device = createHostDevice();
  auto s = cantFail(device->createStream());
  auto graph = cantFail(device->createGraph());
  GraphNodeId a = cantFail(graph->addEmpty({}));
  GraphNodeId b = cantFail(graph->addEmpty({}));
  cantFail(graph->addEmpty({a, b}));
  cantFail(graph->addEmpty(b));
  auto exec = cantFail(graph->instantiate());
  int x = 0;
  cantFail(s->beginCapture(CaptureMode::ThreadLocal));
  cantFail(s->fill(&x, 0, 4));
  cantFail(exec->launch(*s));
  cantFail(s->fill(&x, 1, 4));
  auto outer = cantFail(s->endCapture());
  std::vector<std::vector<uint32_t>> dependencies;
  for (size_t i = 0; i < outer->numNodes(); ++i) {
    dependencies.emplace_back();
    for (GraphNodeId node : outer->dependencies(GraphNodeId(i)))
      dependencies.back().push_back(node.index());
  }
  EXPECT_THAT(dependencies, ElementsAre(ElementsAre(), ElementsAre(0), ElementsAre(0),
                                        ElementsAre(1, 2), ElementsAre(2), ElementsAre(3, 4)));
}

/// A graph that is destroyed while it is captured to takes the capture with it, and nothing else.
TEST(HostDevice, GraphDestroyedInCapture) {
  DeviceRef device = createHostDevice();
  auto s = cantFail(device->createStream());
  int x = 0;
  for (int round = 0; round < 2; ++round) {
    auto graph = cantFail(device->createGraph());
    llvm::SmallVector<GraphNodeId, 2> last;
    cantFail(s->beginCaptureToGraph(*graph, {}, CaptureMode::Global));
    cantFail(s->fill(&x, 0, 4));
    graph.reset();
    EXPECT_EQ(outcome(s->fill(&x, 0, 4)), "capture invalidated");
    EXPECT_THAT(text(s->endCaptureToGraph(last)), HasSubstr("graph of the capture was destroyed"));
    EXPECT_TRUE(last.empty());
    cantFail(s->fill(&x, 1, 4));
    EXPECT_EQ(x, 0x01010101);
  }
}

/// Errors name the device and what was wrong.
TEST(HostDevice, ErrorTexts) {
  using Scene = std::pair<DeviceRef, Stream *>;
  const std::pair<const char *, std::function<std::string(const Scene &)>> cases[] = {
      {"'synchronize' on a stream that is being captured",
       [](const Scene &s) { return text(s.second->synchronize()); }},
      {"'query' on a stream that is being captured",
       [](const Scene &s) { return text(s.second->query()); }},
      {"'synchronize' of the device while a stream is being captured",
       [](const Scene &s) { return text(s.first->synchronize()); }},
      {"'allocate' while a capture forbids it",
       [](const Scene &s) { return text(s.first->allocate(1)); }},
      {"'query' of an event that was recorded in a capture",
       [](const Scene &s) {
         auto e = cantFail(s.first->createEvent());
         cantFail(s.second->record(*e));
         return text(e->query());
       }},
      {"expected a kernel, given a null function",
       [](const Scene &s) { return text(s.second->launch(KernelLaunch())); }},
  };
  HostDeviceOptions options;
  options.index = 2;
  for (const auto &[message, call] : cases) {
    DeviceRef device = createHostDevice(options);
    auto s = cantFail(device->createStream());
    cantFail(s->beginCapture(CaptureMode::Global));
    EXPECT_THAT(call({device, s.get()}), HasSubstr(std::string(": host:2: ") + message));
    EXPECT_EQ(text(s->endCapture()),
              std::string("capture invalidated: host:2: the capture is invalid: ") + message);
  }
}

/// However many errors follow, the first is the one that is told.
TEST(HostDevice, FirstErrorIsKept) {
  DeviceRef device = createHostDevice();
  auto s = cantFail(device->createStream());
  int x = 0;
  cantFail(s->beginCapture(CaptureMode::Global));
  EXPECT_EQ(outcome(s->query()), "not capturable");
  EXPECT_EQ(outcome(device->allocate(4)), "not capturable");
  EXPECT_EQ(outcome(device->synchronize()), "not capturable");
  EXPECT_EQ(outcome(s->launch(KernelLaunch())), "invalid argument");
  std::string first = "'query' on a stream that is being captured";
  EXPECT_THAT(text(s->fill(&x, 0, 4)), HasSubstr(first));
  EXPECT_THAT(text(s->synchronize()), HasSubstr(first));
  EXPECT_THAT(text(s->endCapture()), HasSubstr(first));
  cantFail(s->synchronize());
}

} // namespace
