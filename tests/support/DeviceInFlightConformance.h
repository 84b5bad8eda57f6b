//===- DeviceInFlightConformance.h - Work beside the caller -----*- C++ -*-===//
//
// The part of the devices' suite that is about work in flight. See DeviceConformance.h.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "support/DeviceConformance.h"

#include <chrono>
#include <thread>

namespace rondo {

/// Work that stands still until the test lets it go on.
class DeviceInFlightConformance : public DeviceConformance {
protected:
  void SetUp() override {
    DeviceConformance::SetUp();
    if (device)
      flag = GetParam().createFlag(*device);
  }
  void TearDown() override {
    if (flag)
      open();
    joinOpener();
  }

  /// A kernel that ends when `open` is called.
  PackedLaunch gate() { return kernel(TestKernel::WaitFlag, flag.get()); }
  void open() { flag->store(1); }
  /// Opens from another thread while this one goes on to wait.
  void openSoon() {
    opener_ = std::thread([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      open();
    });
  }
  /// Opens from another thread if this one has not in 10 s, so that a call that must not wait and
  /// does is a failure, not a test without end.
  void openAtLatest() {
    opener_ = std::thread([this] {
      for (int i = 0; i < 1000 && !flag->load(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      open();
    });
  }
  void joinOpener() {
    if (opener_.joinable())
      opener_.join();
  }

  std::shared_ptr<std::atomic<int>> flag;

private:
  std::thread opener_;
};

/// Streams and events tell work in flight from work that is done.
TEST_P(DeviceInFlightConformance, Query) {
  auto s = stream();
  auto before = event(), after = event();
  ok(s->record(*before));
  ok(before->synchronize());
  ok(s->launch(gate()));
  ok(s->record(*after));
  EXPECT_TRUE(ok(before->query()));
  EXPECT_FALSE(ok(after->query()));
  EXPECT_FALSE(ok(s->query()));
  open();
  ok(after->synchronize());
  EXPECT_TRUE(ok(after->query()));
  ok(s->synchronize());
  EXPECT_TRUE(ok(s->query()));
}

/// Everything that waits does so until the work in flight is done.
TEST_P(DeviceInFlightConformance, Waits) {
  auto p = zeros();
  std::vector<std::function<void(Stream &)>> waits = {
      [&](Stream &s) { ok(s.synchronize()); },
      [&](Stream &) { ok(device->synchronize()); },
  };
  for (size_t i = 0; i < waits.size(); ++i) {
    flag->store(0);
    auto s = stream();
    ok(s->launch(gate()));
    ok(s->launch(add1(p)));
    EXPECT_FALSE(ok(s->query()));
    openSoon();
    waits[i](*s);
    EXPECT_TRUE(ok(s->query())) << "wait " << i;
    joinOpener();
    EXPECT_EQ(read(p), int(i) + 1);
  }
}

/// Memory that is given back while work in flight writes to it is used again only after that work.
TEST_P(DeviceInFlightConformance, MemoryGivenBack) {
  auto memory = zeros();
  auto a = stream(), b = stream();
  ok(a->launch(gate()));
  ok(a->launch(add1(memory)));
  openSoon();
  memory.reset();
  auto next = zeros();
  ok(b->fill(next.get(), 7, sizeof(int)));
  ok(b->synchronize());
  ok(a->synchronize());
  EXPECT_EQ(read(next), 0x07070707);
}

/// A stream or exec waits for its work when it is destroyed.
TEST_P(DeviceInFlightConformance, DestructionWaits) {
  auto p = zeros();
  auto s = stream(), other = stream();
  auto e = event();
  ok(s->launch(gate()));
  ok(s->launch(add1(p)));
  ok(s->record(*e));
  openSoon();
  s.reset();
  EXPECT_TRUE(ok(e->query()));
  EXPECT_EQ(read(p), 1);
  joinOpener();

  flag->store(0);
  auto graph = ok(device->createGraph());
  ok(graph->addKernel(add1(p), ok(graph->addKernel(gate(), {}))));
  auto exec = ok(graph->instantiate());
  ok(exec->launch(*other));
  ok(other->record(*e));
  openSoon();
  exec.reset();
  graph.reset();
  ok(e->synchronize());
  EXPECT_EQ(read(p), 2);
}

/// A stream waits for the record that was the last when it was told to wait; the event itself means
/// the last of all.
TEST_P(DeviceInFlightConformance, WaitMeansLastRecord) {
  auto p = zeros(), q = zeros();
  auto a = stream(), early = stream(), late = stream();
  auto e = event();
  ok(a->record(*e));
  ok(early->wait(*e));
  ok(a->launch(gate()));
  ok(a->record(*e));
  ok(early->launch(add1(p)));
  ok(late->wait(*e));
  ok(late->launch(add1(q)));
  ok(early->synchronize());
  EXPECT_FALSE(ok(e->query()));
  EXPECT_FALSE(ok(late->query()));
  open();
  ok(late->synchronize());
  EXPECT_EQ(read(p), 1);
  EXPECT_EQ(read(q), 1);
}

/// A launch keeps the parameters it was submitted with, while the exec's are changed and used
/// again.
TEST_P(DeviceInFlightConformance, PatchWhileInFlight) {
  const int numLaunches = 6;
  auto p = zeros(numLaunches * 3);
  auto s = stream();
  auto graph = ok(device->createGraph());
  GraphNodeId add = ok(graph->addKernel(add1(p), {}));
  GraphNodeId fill = ok(graph->addFill(p.get() + 1, 1, 4, {}));
  GraphNodeId copy = ok(graph->addCopy(p.get() + 2, p.get(), 4, {add, fill}));
  auto exec = ok(graph->instantiate());
  ok(s->launch(gate()));
  for (int i = 0; i < numLaunches; ++i) {
    int *at = p.get() + 3 * i;
    ok(exec->setKernel(add, kernel(TestKernel::Add1, at)));
    ok(exec->setFill(fill, at + 1, uint8_t(i), 4));
    ok(exec->setCopy(copy, at + 2, at + 1, 4));
    ok(exec->launch(*s));
  }
  EXPECT_FALSE(ok(s->query()));
  open();
  ok(s->synchronize());
  std::vector<int> expected;
  for (int i = 0; i < numLaunches; ++i)
    expected.insert(expected.end(), {1, 0x01010101 * i, 0x01010101 * i});
  EXPECT_EQ(read(p, numLaunches * 3), expected);
}

/// A launch keeps the parameters and pieces it was submitted with, while the exec is set to others
/// and updated to those of another graph.
TEST_P(DeviceInFlightConformance, UpdateWhileInFlight) {
  const int numLaunches = 4;
  auto p = zeros(numLaunches * 3);
  auto s = stream();
  auto make = [&](int *at) {
    auto graph = ok(device->createGraph());
    GraphNodeId add = ok(graph->addKernel(kernel(TestKernel::Add1, at), {}));
    ok(graph->addGather(CopyPiece{at + 1, at, 4}, add));
    return graph;
  };
  std::vector<std::unique_ptr<Graph>> graphs;
  for (int i = 0; i < numLaunches; ++i)
    graphs.push_back(make(p.get() + 3 * i));
  auto exec = ok(graphs[0]->instantiate());
  ok(s->launch(gate()));
  openAtLatest();
  for (int i = 0; i < numLaunches; ++i) {
    int *at = p.get() + 3 * i;
    ok(exec->update(*graphs[i]));
    ok(exec->launch(*s));
    ok(exec->setGather(GraphNodeId(1), CopyPiece{at + 2, at, 4}));
    ok(exec->launch(*s));
  }
  EXPECT_FALSE(ok(s->query()));
  open();
  ok(s->synchronize());
  std::vector<int> expected;
  for (int i = 0; i < numLaunches; ++i)
    expected.insert(expected.end(), {2, 1, 2});
  EXPECT_EQ(read(p, numLaunches * 3), expected);
}

/// A launch begins when the launch of the same exec before it has ended, on whatever stream.
TEST_P(DeviceInFlightConformance, LaunchesDoNotOverlap) {
  auto p = zeros();
  auto opened = GetParam().createFlag(*device);
  opened->store(1);
  auto a = stream(), b = stream();
  auto graph = ok(device->createGraph());
  GraphNodeId wait = ok(graph->addKernel(gate(), {}));
  ok(graph->addKernel(add1(p), wait));
  auto exec = ok(graph->instantiate());
  ok(exec->launch(*a));
  ok(exec->setKernel(wait, kernel(TestKernel::WaitFlag, opened.get())));
  ok(exec->launch(*b));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(ok(b->query()));
  EXPECT_FALSE(ok(a->query()));
  open();
  ok(b->synchronize());
  EXPECT_EQ(read(p), 2);
}

/// Streams run beside each other: one goes on while another stands still.
TEST_P(DeviceInFlightConformance, StreamsAreIndependent) {
  auto p = zeros();
  auto a = stream(), b = stream();
  ok(a->launch(gate()));
  ok(b->launch(add1(p)));
  ok(b->synchronize());
  EXPECT_FALSE(ok(a->query()));
  open();
  ok(a->synchronize());
  EXPECT_EQ(read(p), 1);
}

} // namespace rondo
