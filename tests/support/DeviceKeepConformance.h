//===- DeviceKeepConformance.h - What captures keep and put off -*- C++ -*-===//
//
// The part of the devices' suite that is about what outlives a capture. See DeviceConformance.h.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "support/DeviceInFlightConformance.h"

namespace rondo {

class DeviceKeepConformance : public DeviceInFlightConformance {
protected:
  static constexpr CaptureMode modes[] = {CaptureMode::Global, CaptureMode::ThreadLocal,
                                          CaptureMode::Relaxed};

  static void onOtherThread(const std::function<void()> &body) { std::thread(body).join(); }

  /// Captures a kernel that adds to `p`; the graph keeps what is returned in `kept`.
  std::unique_ptr<Graph> captureKeeping(Stream &s, const std::shared_ptr<int> &p,
                                        std::weak_ptr<int> &kept) {
    auto resource = std::make_shared<int>();
    kept = resource;
    ok(s.beginCapture(CaptureMode::ThreadLocal));
    ok(s.launch(add1(p)));
    EXPECT_TRUE(s.keep(std::move(resource)));
    return ok(s.endCapture());
  }
};

/// What a capture forbids to this thread is put off until it has ended, also with an error, or by
/// the destruction of its stream; it is done by then, and the capture is not disturbed.
TEST_P(DeviceKeepConformance, PutOff) {
  for (CaptureMode mode : modes) {
    for (const char *end : {"ended", "invalid", "destroyed"}) {
      SCOPED_TRACE(std::string(end) + " " + std::to_string(int(mode)));
      auto s = stream();
      unsigned numDone = 0;
      auto work = [&] { ++numDone; };
      EXPECT_TRUE(device->mayWait());
      EXPECT_FALSE(device->putOff(work));
      ok(s->beginCapture(mode));
      bool isFree = mode == CaptureMode::Relaxed;
      EXPECT_EQ(device->mayWait(), isFree);
      EXPECT_EQ(device->putOff(work), !isFree);
      onOtherThread([&] {
        EXPECT_EQ(device->mayWait(), mode != CaptureMode::Global);
        EXPECT_EQ(device->putOff(work), mode == CaptureMode::Global);
      });
      EXPECT_EQ(s->captureStatus(), CaptureStatus::Active);
      EXPECT_EQ(numDone, 0u);
      if (end[0] == 'i') {
        EXPECT_EQ(outcome(s->synchronize()), "not capturable");
      }
      if (end[0] == 'd') {
        s.reset();
      } else {
        EXPECT_EQ(outcome(s->endCapture()), end[0] == 'i' ? "capture invalidated" : "success");
      }
      EXPECT_EQ(numDone, mode == CaptureMode::Global ? 2u : isFree ? 0u : 1u);
      EXPECT_TRUE(device->mayWait());
    }
  }
}

/// What has to wait for two captures is put off again when one of them ends.
TEST_P(DeviceKeepConformance, PutOffAgain) {
  auto a = stream(), b = stream();
  ok(a->beginCapture(CaptureMode::ThreadLocal));
  ok(b->beginCapture(CaptureMode::ThreadLocal));
  bool isDone = false;
  std::function<void()> work = [&] { isDone = !device->putOff(work); };
  work();
  EXPECT_FALSE(isDone);
  ok(a->endCapture());
  EXPECT_FALSE(isDone);
  EXPECT_EQ(b->captureStatus(), CaptureStatus::Active);
  ok(b->endCapture());
  EXPECT_TRUE(isDone);
}

/// A stream that is not being captured keeps nothing; nor does what comes of a capture that fails.
TEST_P(DeviceKeepConformance, NothingToKeepIt) {
  auto s = stream();
  auto resource = std::make_shared<int>();
  EXPECT_FALSE(s->keep(resource));
  ok(s->beginCapture(CaptureMode::ThreadLocal));
  EXPECT_TRUE(s->keep(resource));
  EXPECT_EQ(outcome(s->synchronize()), "not capturable");
  EXPECT_EQ(outcome(s->endCapture()), "capture invalidated");
  EXPECT_EQ(resource.use_count(), 1);
}

/// A graph and its execs keep it, and so does a graph that an exec is launched into, and its execs.
TEST_P(DeviceKeepConformance, GraphsAndExecs) {
  auto p = zeros();
  auto s = stream();
  std::weak_ptr<int> kept;
  auto graph = captureKeeping(*s, p, kept);
  EXPECT_FALSE(kept.expired());
  auto exec = ok(graph->instantiate());
  graph.reset();
  EXPECT_FALSE(kept.expired());
  ok(s->beginCapture(CaptureMode::ThreadLocal));
  ok(exec->launch(*s));
  auto outer = ok(s->endCapture());
  exec.reset();
  EXPECT_FALSE(kept.expired());
  auto outerExec = ok(outer->instantiate());
  outer.reset();
  EXPECT_FALSE(kept.expired());
  ok(outerExec->launch(*s));
  ok(s->synchronize());
  EXPECT_EQ(read(p), 1);
  outerExec.reset();
  EXPECT_TRUE(kept.expired());

  captureKeeping(*s, p, kept);
  EXPECT_TRUE(kept.expired()) << "a graph of which nothing was made";
}

/// A stream that joined the capture keeps for its graph; so does a capture to a graph.
TEST_P(DeviceKeepConformance, JoinedStreamsAndCapturesToGraphs) {
  auto a = stream(), b = stream();
  auto e = event(), f = event();
  auto resource = std::make_shared<int>();
  ok(a->beginCapture(CaptureMode::ThreadLocal));
  ok(a->record(*e));
  ok(b->wait(*e));
  EXPECT_TRUE(b->keep(resource));
  ok(b->record(*f));
  ok(a->wait(*f));
  auto graph = ok(a->endCapture());
  EXPECT_EQ(resource.use_count(), 2);
  graph.reset();
  EXPECT_EQ(resource.use_count(), 1);

  graph = ok(device->createGraph());
  llvm::SmallVector<GraphNodeId> last;
  ok(a->beginCaptureToGraph(*graph, {}, CaptureMode::ThreadLocal));
  EXPECT_TRUE(a->keep(resource));
  ok(a->endCaptureToGraph(last));
  EXPECT_EQ(resource.use_count(), 2);
  graph.reset();
  EXPECT_EQ(resource.use_count(), 1);
}

/// An exec that is updated keeps what both graphs keep.
TEST_P(DeviceKeepConformance, Update) {
  auto p = zeros();
  auto s = stream();
  std::weak_ptr<int> first, second;
  auto graph = captureKeeping(*s, p, first);
  auto exec = ok(graph->instantiate());
  graph.reset();
  graph = captureKeeping(*s, p, second);
  ok(exec->update(*graph));
  graph.reset();
  EXPECT_FALSE(first.expired());
  EXPECT_FALSE(second.expired());
  ok(exec->launch(*s));
  ok(s->synchronize());
  EXPECT_EQ(read(p), 1);
  exec.reset();
  EXPECT_TRUE(first.expired());
  EXPECT_TRUE(second.expired());
}

/// What an exec keeps is gone only when its launches are done.
TEST_P(DeviceKeepConformance, LaunchesInFlight) {
  auto p = zeros();
  auto s = stream();
  bool wasOpen = false;
  {
    std::shared_ptr<void> resource(
        &wasOpen, [flag = flag](void *open) { *static_cast<bool *>(open) = flag->load() != 0; });
    ok(s->beginCapture(CaptureMode::ThreadLocal));
    ok(s->launch(gate()));
    ok(s->launch(add1(p)));
    EXPECT_TRUE(s->keep(std::move(resource)));
  }
  auto graph = ok(s->endCapture());
  auto exec = ok(graph->instantiate());
  graph.reset();
  ok(exec->launch(*s));
  openSoon();
  exec.reset();
  joinOpener();
  ok(s->synchronize());
  EXPECT_TRUE(wasOpen);
  EXPECT_EQ(read(p), 1);
}

} // namespace rondo
