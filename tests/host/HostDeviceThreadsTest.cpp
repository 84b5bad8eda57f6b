//===- HostDeviceThreadsTest.cpp - One device, several threads ------------===//

#include "rondo/host/HostDevice.h"

#include "support/DeviceTesting.h"
#include "support/RunThreads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

using namespace rondo;

namespace {

constexpr int numThreads = 4, numRounds = 50;

/// (int *p): *p += 1, which is a race unless the device orders it.
void addKernel(const std::byte *parameters) {
  ++**reinterpret_cast<int *const *>(parameters);
}

PackedLaunch add1(int *p) {
  return PackedLaunch(reinterpret_cast<const void *>(&addKernel), p);
}

class HostDeviceThreads : public testing::TestWithParam<bool> {
protected:
  HostDeviceThreads() {
    HostDeviceOptions options;
    options.asynchronous = GetParam();
    options.randomOrderSeed = 1;
    options.poison = true;
    device = createHostDevice(options);
  }
  std::unique_ptr<Stream> stream() { return cantFail(device->createStream()); }

  DeviceRef device;
};

INSTANTIATE_TEST_SUITE_P(Host, HostDeviceThreads, testing::Bool(), [](const auto &info) {
  return std::string(info.param ? "Asynchronous" : "Inline");
});

/// Threads with streams, memory and execs of their own do not disturb each other.
TEST_P(HostDeviceThreads, OwnStreams) {
  runThreads(numThreads, [&](int) {
    auto s = stream();
    auto graph = cantFail(device->createGraph());
    int *p = static_cast<int *>(cantFail(device->allocate(8)));
    cantFail(s->fill(p, 0, 8));
    GraphNodeId add = cantFail(graph->addKernel(add1(p), {}));
    cantFail(graph->addCopy(p + 1, p, 4, add));
    auto exec = cantFail(graph->instantiate());
    for (int i = 0; i < numRounds; ++i) {
      void *scratch = cantFail(device->allocate(64));
      cantFail(s->fill(scratch, 1, 64));
      cantFail(s->launch(add1(p)));
      cantFail(exec->setKernel(add, add1(p)));
      cantFail(exec->launch(*s));
      device->deallocate(scratch, 64);
    }
    int result[2];
    cantFail(s->copy(result, p, 8));
    cantFail(s->synchronize());
    EXPECT_EQ(result[0], 2 * numRounds);
    EXPECT_EQ(result[1], 2 * numRounds);
    device->deallocate(p, 8);
  });
  EXPECT_EQ(device->memoryUse().bytes, 0u);
  EXPECT_EQ(device->memoryUse().allocations, uint64_t(numThreads * (numRounds + 1)));
}

/// Thread-local captures on two threads go on while the others allocate, synchronise their streams
/// and ask for events.
TEST_P(HostDeviceThreads, ThreadLocalCaptures) {
  auto before = cantFail(device->createEvent());
  runThreads(numThreads, [&](int t) {
    auto s = stream(), side = stream();
    auto fork = cantFail(device->createEvent()), join = cantFail(device->createEvent());
    int x = 0, y = 0;
    for (int i = 0; i < numRounds; ++i) {
      if (t >= 2) {
        void *data = cantFail(device->allocate(64));
        cantFail(s->fill(data, 1, 64));
        cantFail(s->record(*before));
        cantFail(before->query());
        cantFail(s->synchronize());
        device->deallocate(data, 64);
        continue;
      }
      cantFail(s->beginCapture(CaptureMode::ThreadLocal));
      cantFail(s->record(*fork));
      cantFail(side->wait(*fork));
      cantFail(s->launch(add1(&x)));
      cantFail(side->launch(add1(&y)));
      cantFail(side->record(*join));
      cantFail(s->wait(*join));
      auto graph = cantFail(s->endCapture());
      EXPECT_EQ(graph->numNodes(), 2u);
      cantFail(cantFail(graph->instantiate())->launch(*s));
      cantFail(s->synchronize());
      EXPECT_EQ(x, i + 1);
      EXPECT_EQ(y, i + 1);
    }
  });
  EXPECT_EQ(device->memoryUse().bytes, 0u);
}

/// A global capture breaks only with an error for the thread that broke it, and afterwards all is
/// as before.
TEST_P(HostDeviceThreads, GlobalCaptures) {
  std::atomic<int> broken = 0, refused = 0;
  runThreads(numThreads, [&](int t) {
    auto s = stream();
    int x = 0;
    for (int i = 0; i < numRounds; ++i) {
      if (t == 0) {
        cantFail(s->beginCapture(CaptureMode::Global));
        std::string launched = outcome(s->launch(add1(&x)));
        std::string ended = outcome(s->endCapture());
        broken += ended != "success";
        EXPECT_TRUE(launched == "success" || ended == "capture invalidated");
      } else if (llvm::Expected<void *> data = device->allocate(64)) {
        device->deallocate(*data, 64);
      } else {
        EXPECT_EQ(outcome(data.takeError()), "not capturable");
        ++refused;
      }
    }
  });
  EXPECT_LE(broken, refused);
  EXPECT_EQ(device->memoryUse().bytes, 0u);
}

/// Two threads may submit to two streams of one capture.
TEST_P(HostDeviceThreads, OneCaptureTwoThreads) {
  auto origin = stream();
  std::vector<std::unique_ptr<Stream>> streams;
  auto e = cantFail(device->createEvent());
  cantFail(origin->beginCapture(CaptureMode::Relaxed));
  cantFail(origin->record(*e));
  std::vector<int> counts(numThreads);
  for (int t = 0; t < numThreads; ++t) {
    streams.push_back(stream());
    cantFail(streams.back()->wait(*e));
  }
  runThreads(numThreads, [&](int t) {
    for (int i = 0; i < numRounds; ++i)
      cantFail(streams[t]->launch(add1(&counts[t])));
  });
  for (auto &s : streams) {
    cantFail(s->record(*e));
    cantFail(origin->wait(*e));
  }
  auto graph = cantFail(origin->endCapture());
  EXPECT_EQ(graph->numNodes(), size_t(numThreads * numRounds));
  cantFail(cantFail(graph->instantiate())->launch(*origin));
  cantFail(origin->synchronize());
  EXPECT_THAT(counts, testing::Each(numRounds));
}

/// Threads pass a counter on through one event, each on its own stream.
TEST_P(HostDeviceThreads, EventBetweenThreads) {
  auto e = cantFail(device->createEvent());
  int counter = 0;
  std::atomic<int> turn = 0;
  runThreads(numThreads, [&](int t) {
    auto s = stream();
    for (int i = 0; i < numRounds; ++i) {
      while (turn % numThreads != t)
        std::this_thread::yield();
      cantFail(s->wait(*e));
      cantFail(s->launch(add1(&counter)));
      cantFail(s->record(*e));
      ++turn;
    }
  });
  cantFail(e->synchronize());
  EXPECT_EQ(counter, numThreads * numRounds);
}

/// Launches of one exec on several streams do not overlap.
TEST_P(HostDeviceThreads, ExecOnSeveralStreams) {
  int counters[2] = {};
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 3; ++i)
    streams.push_back(stream());
  auto graph = cantFail(device->createGraph());
  GraphNodeId node = cantFail(graph->addKernel(add1(&counters[0]), {}));
  auto exec = cantFail(graph->instantiate());
  for (int i = 0; i < 6 * numRounds; ++i) {
    cantFail(exec->setKernel(node, add1(&counters[i / 3 % 2])));
    cantFail(exec->launch(*streams[i % 3]));
  }
  exec.reset();
  cantFail(device->synchronize());
  EXPECT_EQ(counters[0], 3 * numRounds);
  EXPECT_EQ(counters[1], 3 * numRounds);
}

/// Streams come and go while other threads synchronise the device and give memory back.
TEST_P(HostDeviceThreads, StreamsComeAndGo) {
  runThreads(numThreads, [&](int t) {
    for (int i = 0; i < numRounds; ++i) {
      if (t == 0) {
        cantFail(device->synchronize());
        device->deallocate(cantFail(device->allocate(16)), 16);
        continue;
      }
      int x = 0;
      auto s = stream();
      for (int k = 0; k < 5; ++k)
        cantFail(s->launch(add1(&x)));
      s.reset();
      EXPECT_EQ(x, 5);
    }
  });
}

/// The last of several threads to let go of a device ends it, with work in flight.
TEST_P(HostDeviceThreads, LastOneDestroysTheDevice) {
  std::vector<int> counts(numThreads);
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<GraphExec>> execs;
  for (int t = 0; t < numThreads; ++t) {
    streams.push_back(stream());
    auto graph = cantFail(device->createGraph());
    cantFail(graph->addKernel(add1(&counts[t]), {}));
    execs.push_back(cantFail(graph->instantiate()));
  }
  device.reset();
  runThreads(numThreads, [&](int t) {
    for (int i = 0; i < numRounds; ++i)
      cantFail(execs[t]->launch(*streams[t]));
    if (t % 2)
      streams[t].reset();
    execs[t].reset();
    streams[t].reset();
  });
  EXPECT_THAT(counts, testing::Each(numRounds));
}

} // namespace
