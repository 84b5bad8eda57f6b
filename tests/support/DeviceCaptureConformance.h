//===- DeviceCaptureConformance.h - The rules of capture --------*- C++ -*-===//
//
// The part of the devices' suite that is about capture. See DeviceConformance.h.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "support/DeviceConformance.h"

#include <thread>

namespace rondo {

/// Runs `body` on another thread and waits for it.
template <typename Body> void onOtherThread(Body body) {
  std::thread(body).join();
}

class DeviceCaptureConformance : public DeviceConformance {
protected:
  /// Two streams, memory and an event that tests of captures begin with.
  struct Scene {
    std::shared_ptr<int> p;
    std::unique_ptr<Stream> a, b;
    std::unique_ptr<Event> e, f, recorded; ///< `recorded` is, outside of any capture
  };
  Scene scene() {
    Scene scene{zeros(8), stream(), stream(), event(), event(), event()};
    ok(scene.b->record(*scene.recorded));
    ok(device->synchronize());
    return scene;
  }

  /// Lets `to` wait for what was submitted to `from`.
  void join(Stream &from, Stream &to, Event &through) {
    ok(from.record(through));
    ok(to.wait(through));
  }

  /// A stream can be used and captured, and what it does is right.
  void expectUsable(Stream &s) {
    EXPECT_EQ(s.captureStatus(), CaptureStatus::None);
    auto p = zeros();
    ok(s.launch(add1(p)));
    ok(s.synchronize());
    ok(s.beginCapture(CaptureMode::Global));
    ok(s.launch(add1(p)));
    auto graph = ok(s.endCapture());
    ASSERT_TRUE(graph);
    EXPECT_EQ(read(p), 1);
    ok(ok(graph->instantiate())->launch(s));
    ok(s.synchronize());
    EXPECT_EQ(read(p), 2);
  }

  /// Captures with `misuse` between two launches: it must give `expected`, the capture must be
  /// invalid for all streams in it, nothing must run, and afterwards all must be as before.
  void expectInvalidated(const char *what, const char *expected, CaptureMode mode,
                         std::function<llvm::Error(Scene &)> misuse) {
    SCOPED_TRACE(what);
    Scene s = scene();
    uint64_t bytes = device->memoryUse().bytes;
    ok(s.a->beginCapture(mode));
    ok(s.a->launch(add1(s.p)));
    join(*s.a, *s.b, *s.e);
    EXPECT_EQ(outcome(misuse(s)), expected);
    for (Stream *stream : {s.a.get(), s.b.get()}) {
      EXPECT_EQ(stream->captureStatus(), CaptureStatus::Invalidated);
      EXPECT_EQ(outcome(stream->launch(add1(s.p))), "capture invalidated");
      EXPECT_EQ(outcome(stream->fill(s.p.get(), 1, 4)), "capture invalidated");
      EXPECT_EQ(outcome(stream->record(*s.f)), "capture invalidated");
      EXPECT_EQ(outcome(stream->wait(*s.recorded)), "capture invalidated");
      EXPECT_EQ(outcome(stream->synchronize()), "not capturable");
    }
    EXPECT_EQ(outcome(s.a->endCapture()), "capture invalidated");
    EXPECT_EQ(device->memoryUse().bytes, bytes);
    EXPECT_EQ(read(s.p), 0);
    expectUsable(*s.a);
    expectUsable(*s.b);
  }

  static llvm::Error error(llvm::Expected<bool> value) { return value.takeError(); }
};

inline constexpr CaptureMode allCaptureModes[] = {CaptureMode::Global, CaptureMode::ThreadLocal,
                                                  CaptureMode::Relaxed};

//===----------------------------------------------------------------------===//
// What is captured
//===----------------------------------------------------------------------===//

/// Capturing runs nothing; the graph then does, with the parameters of the time of capture.
TEST_P(DeviceCaptureConformance, CapturesWork) {
  for (CaptureMode mode : allCaptureModes) {
    Scene s = scene();
    EXPECT_EQ(s.a->captureStatus(), CaptureStatus::None);
    ok(s.a->beginCapture(mode));
    EXPECT_EQ(s.a->captureStatus(), CaptureStatus::Active);
    EXPECT_EQ(s.b->captureStatus(), CaptureStatus::None);
    ok(s.a->fill(s.p.get(), 1, 4));
    PackedLaunch launch = add1(s.p);
    ok(s.a->launch(launch));
    launch.scribble();
    ok(s.a->copy(s.p.get() + 1, s.p.get(), 4));
    auto graph = ok(s.a->endCapture());
    EXPECT_EQ(s.a->captureStatus(), CaptureStatus::None);
    ASSERT_EQ(graph->numNodes(), 3u);
    EXPECT_EQ(graph->kind(GraphNodeId(0)), GraphNodeKind::Fill);
    EXPECT_EQ(graph->kind(GraphNodeId(1)), GraphNodeKind::Kernel);
    EXPECT_EQ(graph->kind(GraphNodeId(2)), GraphNodeKind::Copy);
    EXPECT_EQ(graph->dependencies(GraphNodeId(2)), Nodes({GraphNodeId(1)}));
    EXPECT_THAT(read(s.p, 2), testing::ElementsAre(0, 0));
    ok(ok(graph->instantiate())->launch(*s.b));
    ok(s.b->synchronize());
    EXPECT_THAT(read(s.p, 2), testing::ElementsAre(0x01010102, 0x01010102));
  }
}

/// A capture of nothing is a graph without nodes.
TEST_P(DeviceCaptureConformance, CapturesNothing) {
  auto s = stream();
  auto never = event();
  ok(s->beginCapture(CaptureMode::Global));
  ok(s->wait(*never));
  auto graph = ok(s->endCapture());
  EXPECT_EQ(graph->numNodes(), 0u);
  ok(ok(graph->instantiate())->launch(*s));
  ok(s->synchronize());
}

/// Fork and join through events become dependencies: two branches that do not depend on each other,
/// and a join that depends on both. What comes after the join on the branch is a third.
TEST_P(DeviceCaptureConformance, ForkAndJoin) {
  Scene s = scene();
  ok(s.a->beginCapture(CaptureMode::ThreadLocal));
  ok(s.a->launch(add1(s.p))); // n0
  join(*s.a, *s.b, *s.e);
  EXPECT_EQ(s.b->captureStatus(), CaptureStatus::Active);
  ok(s.a->copy(s.p.get() + 1, s.p.get(), 4)); // n1
  ok(s.b->copy(s.p.get() + 2, s.p.get(), 4)); // n2
  join(*s.b, *s.a, *s.f);
  ok(s.a->copy(s.p.get() + 3, s.p.get() + 1, 8)); // n3
  auto graph = ok(s.a->endCapture());
  EXPECT_EQ(s.b->captureStatus(), CaptureStatus::None);
  ASSERT_EQ(graph->numNodes(), 4u);
  GraphNodeId n0(0), n1(1), n2(2), n3(3);
  EXPECT_EQ(graph->dependencies(n0), Nodes());
  EXPECT_EQ(graph->dependencies(n1), Nodes({n0}));
  EXPECT_EQ(graph->dependencies(n2), Nodes({n0}));
  EXPECT_EQ(graph->dependencies(n3), Nodes({n1, n2}));
  auto exec = ok(graph->instantiate());
  for (int i = 0; i < 10; ++i)
    ok(exec->launch(*s.b));
  ok(s.b->synchronize());
  EXPECT_THAT(read(s.p, 5), testing::ElementsAre(10, 10, 10, 10, 10));
  expectUsable(*s.b);
}

/// A stream may join without adding work, and join or be destroyed once it was joined back.
TEST_P(DeviceCaptureConformance, JoinedStreamsWithoutOpenWork) {
  Scene s = scene();
  auto idle = stream();
  ok(s.a->beginCapture(CaptureMode::Global));
  join(*s.a, *s.b, *s.e); // before anything
  ok(s.a->launch(add1(s.p)));
  join(*s.a, *idle, *s.e);
  ok(s.b->launch(add1(s.p)));
  join(*s.b, *s.a, *s.f);
  s.b.reset();
  auto graph = ok(s.a->endCapture());
  EXPECT_EQ(graph->numNodes(), 2u);
  expectUsable(*s.a);
  expectUsable(*idle);
}

/// A capture to a graph adds nodes after the given ones and gives those that come last.
TEST_P(DeviceCaptureConformance, CaptureToGraph) {
  Scene s = scene();
  auto graph = ok(device->createGraph());
  GraphNodeId fill = ok(graph->addFill(s.p.get(), 1, 4, {}));
  GraphNodeId other = ok(graph->addEmpty({}));
  Nodes last = {other};
  ok(s.a->beginCaptureToGraph(*graph, {}, CaptureMode::Relaxed));
  ok(s.a->endCaptureToGraph(last));
  EXPECT_EQ(last, Nodes({other})) << "nothing to wait for";

  last.clear();
  ok(s.a->beginCaptureToGraph(*graph, {other, fill}, CaptureMode::Relaxed));
  ok(s.a->endCaptureToGraph(last));
  EXPECT_EQ(last, Nodes({fill, other})) << "nothing was added";

  last.clear();
  ok(s.a->beginCaptureToGraph(*graph, fill, CaptureMode::ThreadLocal));
  join(*s.a, *s.b, *s.e);
  ok(s.a->copy(s.p.get() + 1, s.p.get(), 4));
  ok(s.b->copy(s.p.get() + 2, s.p.get(), 4));
  join(*s.b, *s.a, *s.f);
  ok(s.a->endCaptureToGraph(last));
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(graph->numNodes(), 4u);
  for (GraphNodeId node : last)
    EXPECT_EQ(graph->dependencies(node), Nodes({fill}));
  ok(graph->addKernel(add1(s.p), last));
  EXPECT_EQ(read(s.p), 0);
  ok(ok(graph->instantiate())->launch(*s.a));
  ok(s.a->synchronize());
  EXPECT_THAT(read(s.p, 3), testing::ElementsAre(0x01010102, 0x01010101, 0x01010101));
}

/// An exec launched on a stream in capture becomes part of the graph, with its parameters of then.
TEST_P(DeviceCaptureConformance, ExecInCapture) {
  Scene s = scene();
  auto graph = ok(device->createGraph());
  GraphNodeId add = ok(graph->addKernel(add1(s.p), {}));
  ok(graph->addCopy(s.p.get() + 1, s.p.get(), 4, add));
  ok(graph->addCopy(s.p.get() + 2, s.p.get(), 4, add));
  auto exec = ok(graph->instantiate());
  auto empty = ok(ok(device->createGraph())->instantiate());
  ok(s.a->beginCapture(CaptureMode::ThreadLocal));
  ok(s.a->fill(s.p.get(), 1, 4));
  ok(exec->launch(*s.a));
  ok(empty->launch(*s.a));
  ok(exec->setKernel(add, kernel(TestKernel::Add1, s.p.get() + 7)));
  ok(s.a->copy(s.p.get() + 3, s.p.get() + 1, 8));
  auto outer = ok(s.a->endCapture());
  exec.reset();
  EXPECT_THAT(read(s.p, 8), testing::Each(0));
  auto outerExec = ok(outer->instantiate());
  for (int i = 0; i < 5; ++i) {
    ok(outerExec->launch(*s.a));
    ok(s.a->synchronize());
    const int v = 0x01010102;
    EXPECT_THAT(read(s.p, 8), testing::ElementsAre(v, v, v, v, v, 0, 0, 0));
  }
}

/// Work submitted before and after a capture runs, in order, and is not part of it.
TEST_P(DeviceCaptureConformance, EagerAroundCapture) {
  Scene s = scene();
  ok(s.a->launch(add1(s.p)));
  ok(s.a->beginCapture(CaptureMode::ThreadLocal));
  ok(s.a->fill(s.p.get(), 0, 4));
  ok(s.b->launch(kernel(TestKernel::Add1, s.p.get() + 1))); // not in the capture
  auto graph = ok(s.a->endCapture());
  EXPECT_EQ(graph->numNodes(), 1u);
  ok(s.a->launch(add1(s.p)));
  ok(device->synchronize());
  EXPECT_THAT(read(s.p, 2), testing::ElementsAre(2, 1));
}

/// Captures on two streams at once do not know of each other.
TEST_P(DeviceCaptureConformance, TwoCaptures) {
  Scene s = scene();
  ok(s.a->beginCapture(CaptureMode::ThreadLocal));
  ok(s.b->beginCapture(CaptureMode::ThreadLocal));
  ok(s.a->launch(add1(s.p)));
  ok(s.b->launch(add1(s.p)));
  ok(s.b->launch(add1(s.p)));
  EXPECT_EQ(outcome(s.a->synchronize()), "not capturable");
  EXPECT_EQ(s.b->captureStatus(), CaptureStatus::Active);
  EXPECT_EQ(outcome(s.a->endCapture()), "capture invalidated");
  EXPECT_EQ(ok(s.b->endCapture())->numNodes(), 2u);
}

//===----------------------------------------------------------------------===//
// What invalidates a capture
//===----------------------------------------------------------------------===//

/// Asking whether something is done, or waiting for it, in a capture invalidates it in every mode,
/// from any thread.
TEST_P(DeviceCaptureConformance, AskingInvalidates) {
  for (CaptureMode mode : allCaptureModes) {
    auto expect = [&](const char *what, std::function<llvm::Error(Scene &)> misuse) {
      expectInvalidated(what, "not capturable", mode, std::move(misuse));
    };
    expect("synchronize", [](Scene &s) { return s.a->synchronize(); });
    expect("query", [](Scene &s) { return error(s.a->query()); });
    expect("synchronize of joined", [](Scene &s) { return s.b->synchronize(); });
    expect("query of joined", [](Scene &s) { return error(s.b->query()); });
    expect("synchronize of event", [](Scene &s) { return s.e->synchronize(); });
    expect("query of event", [](Scene &s) { return error(s.e->query()); });
    expect("synchronize of device", [&](Scene &) { return device->synchronize(); });
    expect("synchronize of device by another thread", [&](Scene &) {
      llvm::Error result = llvm::Error::success();
      onOtherThread([&] { result = device->synchronize(); });
      return result;
    });
    expect("wait for an event outside", [](Scene &s) { return s.a->wait(*s.recorded); });
    expect("wait of joined for an event outside", [](Scene &s) { return s.b->wait(*s.recorded); });
  }
}

/// So do wrong arguments, and ending on a stream that joined.
TEST_P(DeviceCaptureConformance, WrongArgumentsInvalidate) {
  auto expect = [&](const char *what, std::function<llvm::Error(Scene &)> misuse) {
    expectInvalidated(what, "invalid argument", CaptureMode::ThreadLocal, std::move(misuse));
  };
  expect("launch", [](Scene &s) { return s.a->launch(KernelLaunch()); });
  expect("fill", [](Scene &s) { return s.b->fill(nullptr, 0, 4); });
  expect("copy", [](Scene &s) { return s.a->copy(s.p.get(), nullptr, 4); });
  expect("end", [](Scene &s) { return s.b->endCapture().takeError(); });
}

/// Potentially unsafe calls are forbidden to all threads in Global mode, to the capturing thread in
/// ThreadLocal mode, and to nobody in Relaxed mode.
TEST_P(DeviceCaptureConformance, UnsafeCalls) {
  using Call = std::function<llvm::Error(Scene &, Stream & outside, Graph & graph)>;
  const std::pair<const char *, Call> calls[] = {
      {"allocate",
       [&](Scene &, Stream &, Graph &) -> llvm::Error {
         llvm::Expected<void *> data = device->allocate(64);
         if (!data)
           return data.takeError();
         device->deallocate(*data, 64);
         return llvm::Error::success();
       }},
      {"synchronize", [](Scene &, Stream &outside, Graph &) { return outside.synchronize(); }},
      {"query", [](Scene &, Stream &outside, Graph &) { return error(outside.query()); }},
      {"synchronize of event",
       [](Scene &s, Stream &, Graph &) { return s.recorded->synchronize(); }},
      {"query of event", [](Scene &s, Stream &, Graph &) { return error(s.recorded->query()); }},
      {"instantiate",
       [](Scene &, Stream &, Graph &graph) { return graph.instantiate().takeError(); }},
  };
  for (const auto &[what, call] : calls)
    for (CaptureMode mode : allCaptureModes)
      for (bool otherThread : {false, true}) {
        auto outside = stream();
        auto graph = ok(device->createGraph());
        auto misuse = [&, &call = call](Scene &s) {
          llvm::Error result = llvm::Error::success();
          auto run = [&] { result = call(s, *outside, *graph); };
          if (otherThread)
            onOtherThread(run);
          else
            run();
          return result;
        };
        if (mode == CaptureMode::Global || (mode == CaptureMode::ThreadLocal && !otherThread)) {
          expectInvalidated(what, "not capturable", mode, misuse);
          continue;
        }
        SCOPED_TRACE(what);
        Scene s = scene();
        ok(s.a->beginCapture(mode));
        ok(misuse(s));
        EXPECT_EQ(s.a->captureStatus(), CaptureStatus::Active);
        ok(s.a->endCapture());
      }
}

/// What is not unsafe is allowed in every mode: to make things, and to use streams outside.
TEST_P(DeviceCaptureConformance, SafeCalls) {
  Scene s = scene();
  auto outside = stream();
  ok(s.a->beginCapture(CaptureMode::Global));
  EXPECT_TRUE(stream());
  EXPECT_TRUE(event());
  EXPECT_TRUE(ok(device->createGraph()));
  ok(outside->launch(add1(s.p)));
  ok(outside->wait(*s.recorded));
  ok(outside->record(*s.recorded));
  EXPECT_EQ(ok(device->allocate(0)), nullptr);
  EXPECT_EQ(s.a->captureStatus(), CaptureStatus::Active);
  ok(s.a->endCapture());
  ok(outside->synchronize());
  EXPECT_EQ(read(s.p), 1);
}

/// Memory given back during a capture does not disturb it, and is free when the capture has ended,
/// also when it ended with an error.
TEST_P(DeviceCaptureConformance, DeallocateInCapture) {
  for (CaptureMode mode : allCaptureModes)
    for (bool fail : {false, true}) {
      Scene s = scene();
      uint64_t bytes = device->memoryUse().bytes;
      auto mine = zeros(16), others = zeros(16);
      ok(s.a->beginCapture(mode));
      mine.reset();
      onOtherThread([&] { others.reset(); });
      EXPECT_EQ(s.a->captureStatus(), CaptureStatus::Active);
      if (fail) {
        EXPECT_EQ(outcome(s.a->synchronize()), "not capturable");
      }
      EXPECT_EQ(outcome(s.a->endCapture()), fail ? "capture invalidated" : "success");
      EXPECT_EQ(device->memoryUse().bytes, bytes);
    }
}

/// Two captures cannot become one: both are invalid.
TEST_P(DeviceCaptureConformance, MergeInvalidatesBoth) {
  Scene s = scene();
  ok(s.a->beginCapture(CaptureMode::Global));
  ok(s.b->beginCapture(CaptureMode::Global));
  ok(s.a->launch(add1(s.p)));
  ok(s.a->record(*s.e));
  EXPECT_EQ(outcome(s.b->wait(*s.e)), "not capturable");
  for (Stream *stream : {s.a.get(), s.b.get()}) {
    EXPECT_EQ(stream->captureStatus(), CaptureStatus::Invalidated);
    EXPECT_EQ(outcome(stream->endCapture()), "capture invalidated");
  }
  expectUsable(*s.a);
  expectUsable(*s.b);
}

/// A stream whose work the origin does not wait for is an error at the end, which ends the capture:
/// never joined back, joined back too early, or destroyed.
TEST_P(DeviceCaptureConformance, NotJoinedBack) {
  for (int variant = 0; variant < 3; ++variant) {
    Scene s = scene();
    ok(s.a->beginCapture(CaptureMode::Global));
    ok(s.a->launch(add1(s.p)));
    join(*s.a, *s.b, *s.e);
    ok(s.b->launch(add1(s.p)));
    if (variant == 1) {
      join(*s.b, *s.a, *s.f);
      ok(s.b->launch(add1(s.p)));
    }
    if (variant == 2)
      s.b.reset();
    EXPECT_EQ(outcome(s.a->endCapture()), "capture invalidated") << variant;
    expectUsable(*s.a);
    if (s.b)
      expectUsable(*s.b);
  }
}

//===----------------------------------------------------------------------===//
// Beginning and ending
//===----------------------------------------------------------------------===//

/// Beginning twice and ending what was not begun are errors that change nothing.
TEST_P(DeviceCaptureConformance, BeginAndEndAreRefused) {
  Scene s = scene();
  auto graph = ok(device->createGraph());
  llvm::SmallVector<GraphNodeId, 2> last;
  EXPECT_EQ(outcome(s.a->endCapture()), "invalid argument");
  EXPECT_EQ(outcome(s.a->endCaptureToGraph(last)), "invalid argument");
  EXPECT_EQ(outcome(s.a->beginCaptureToGraph(*graph, GraphNodeId(0), CaptureMode::Global)),
            "invalid argument");
  EXPECT_EQ(s.a->captureStatus(), CaptureStatus::None);

  ok(s.a->beginCaptureToGraph(*graph, {}, CaptureMode::Global));
  join(*s.a, *s.b, *s.e);
  for (Stream *stream : {s.a.get(), s.b.get()}) {
    EXPECT_EQ(outcome(stream->beginCapture(CaptureMode::Global)), "invalid argument");
    EXPECT_EQ(outcome(stream->beginCaptureToGraph(*graph, {}, CaptureMode::Global)),
              "invalid argument");
  }
  auto other = stream();
  EXPECT_EQ(outcome(other->beginCaptureToGraph(*graph, {}, CaptureMode::Global)),
            "invalid argument");
  EXPECT_EQ(outcome(s.a->endCapture()), "invalid argument");
  EXPECT_EQ(s.a->captureStatus(), CaptureStatus::Active);
  ok(s.a->endCaptureToGraph(last));
  EXPECT_TRUE(last.empty());

  ok(s.a->beginCapture(CaptureMode::Global));
  EXPECT_EQ(outcome(s.a->endCaptureToGraph(last)), "invalid argument");
  ok(s.a->endCapture());
}

/// Only the thread that began a capture ends it, unless its mode is Relaxed; another that tries
/// ends it with an error.
TEST_P(DeviceCaptureConformance, EndByAnotherThread) {
  for (CaptureMode mode : allCaptureModes) {
    Scene s = scene();
    ok(s.a->beginCapture(mode));
    std::string result;
    onOtherThread([&] {
      ok(s.a->launch(add1(s.p)));
      result = outcome(s.a->endCapture());
    });
    EXPECT_EQ(result, mode == CaptureMode::Relaxed ? "success" : "invalid argument");
    expectUsable(*s.a);
  }
}

/// An event whose capture is over means nothing until it is recorded again.
TEST_P(DeviceCaptureConformance, EventOfEndedCapture) {
  Scene s = scene();
  ok(s.a->beginCapture(CaptureMode::Global));
  ok(s.a->launch(add1(s.p)));
  ok(s.a->record(*s.e));
  ok(s.a->endCapture());
  EXPECT_EQ(outcome(s.e->query()), "invalid argument");
  EXPECT_EQ(outcome(s.e->synchronize()), "invalid argument");
  EXPECT_EQ(outcome(s.b->wait(*s.e)), "invalid argument");
  EXPECT_EQ(s.b->captureStatus(), CaptureStatus::None);
  ok(s.a->beginCapture(CaptureMode::Global));
  EXPECT_EQ(outcome(s.a->wait(*s.e)), "not capturable");
  EXPECT_EQ(outcome(s.a->endCapture()), "capture invalidated");
  ok(s.a->record(*s.e));
  ok(s.b->wait(*s.e));
  ok(s.e->synchronize());
  EXPECT_TRUE(ok(s.e->query()));
}

/// An event of an invalid capture lets no stream in.
TEST_P(DeviceCaptureConformance, EventOfInvalidCapture) {
  Scene s = scene();
  ok(s.a->beginCapture(CaptureMode::Relaxed));
  ok(s.a->record(*s.e));
  EXPECT_EQ(outcome(s.a->synchronize()), "not capturable");
  EXPECT_EQ(outcome(s.b->wait(*s.e)), "invalid argument");
  EXPECT_EQ(s.b->captureStatus(), CaptureStatus::None);
  EXPECT_EQ(outcome(s.e->query()), "invalid argument");
  EXPECT_EQ(outcome(s.a->endCapture()), "capture invalidated");
}

/// Destroying the stream that began a capture ends it for all.
TEST_P(DeviceCaptureConformance, DestroyOrigin) {
  for (bool invalid : {false, true}) {
    Scene s = scene();
    uint64_t bytes = device->memoryUse().bytes;
    auto memory = zeros(16);
    ok(s.a->beginCapture(CaptureMode::Global));
    ok(s.a->launch(add1(s.p)));
    join(*s.a, *s.b, *s.e);
    memory.reset();
    if (invalid) {
      EXPECT_EQ(outcome(s.a->synchronize()), "not capturable");
    }
    s.a.reset();
    EXPECT_EQ(device->memoryUse().bytes, bytes);
    EXPECT_EQ(read(s.p), 0);
    expectUsable(*s.b);
  }
}

} // namespace rondo
