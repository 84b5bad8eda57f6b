//===- CaptureFailureTest.cpp - Ops that cannot be captured ---------------===//
//
// An op whose claim says that it can be captured, and that then cannot: the call fails, the region
// is split around the op, or it runs eagerly, as the program's options say. Also ops that call
// libraries, and can.
//
//===----------------------------------------------------------------------===//

#include "ProgramTesting.h"

using namespace rondo;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

namespace {

using Enqueue = std::function<llvm::Error(CommandSink &, const KernelArgs &)>;

/// Runs `test.op`, whatever that is told to do.
class TestExecutor : public Executor {
public:
  llvm::StringRef name() const override { return "test"; }
  ClaimAnswer claim(const Trace &trace, OpId op) const override {
    return trace.op(op).name() == "test.op" ? ClaimAnswer::accept() : ClaimAnswer::decline("no");
  }
  llvm::Expected<KernelRef> compile(const Trace &, OpId, const DeviceRef &) const override {
    return std::make_shared<TestKernel>(*this);
  }
  Enqueue enqueue;

private:
  class TestKernel : public Kernel {
  public:
    explicit TestKernel(const TestExecutor &executor) : executor_(executor) {}
    llvm::Error enqueue(CommandSink &sink, const KernelArgs &args) const override {
      return executor_.enqueue(sink, args);
    }

  private:
    const TestExecutor &executor_;
  };
};

constexpr unsigned numElements = 4;

/// to[i] = 2 * from[i] for `count` elements.
struct Doubling {
  const float *from;
  float *to;
  int64_t count;
};
void runDoubling(const std::byte *parameters) {
  Doubling doubling;
  std::memcpy(&doubling, parameters, sizeof doubling);
  for (int64_t i = 0; i < doubling.count; ++i)
    doubling.to[i] = 2 * doubling.from[i];
}
llvm::Error submitDoubling(CommandSink &sink, const KernelArgs &args, unsigned begin = 0,
                           unsigned end = numElements) {
  Doubling doubling{static_cast<const float *>(args.operands[0].address) + begin,
                    static_cast<float *>(args.results[0].address) + begin, end - begin};
  KernelLaunch launch;
  launch.function = reinterpret_cast<const void *>(&runDoubling);
  launch.parameters = {reinterpret_cast<const std::byte *>(&doubling), sizeof doubling};
  return sink.launch(launch);
}
bool isCaptured(Stream &stream) {
  return stream.captureStatus() != CaptureStatus::None;
}

/// A way not to be capturable; eagerly all of them double.
struct Refusal {
  const char *name;
  Enqueue enqueue;
  std::string says;
};
void PrintTo(const Refusal &refusal, std::ostream *os) {
  *os << refusal.name;
}

/// With a second stream, which does the upper half.
llvm::Error fork(Stream &stream, const KernelArgs &args, bool joins) {
  std::unique_ptr<Event> forked = cantFail(stream.device().createEvent()),
                         joined = cantFail(stream.device().createEvent());
  std::unique_ptr<Stream> other = cantFail(stream.device().createStream());
  cantFail(stream.record(*forked));
  cantFail(other->wait(*forked));
  cantFail(submitDoubling(stream, args, 0, 2));
  cantFail(submitDoubling(*other, args, 2, 4));
  if (!joins)
    return llvm::Error::success();
  cantFail(other->record(*joined));
  return stream.wait(*joined);
}

std::vector<Refusal> refusals() {
  return {
      {"Synchronises",
       [](CommandSink &sink, const KernelArgs &args) {
         if (llvm::Error error = sink.synchronize())
           return error;
         return submitDoubling(sink, args);
       },
       "waits for the device"},
      {"CallFails",
       [](CommandSink &sink, const KernelArgs &args) {
         return sink.call([&](Stream &stream) {
           cantFail(submitDoubling(stream, args));
           return isCaptured(stream) ? makeError("the library is out of luck")
                                     : llvm::Error::success();
         });
       },
       "the library is out of luck"},
      {"CallSynchronises",
       [](CommandSink &sink, const KernelArgs &args) {
         return sink.call([&](Stream &stream) {
           cantFail(submitDoubling(stream, args));
           return stream.synchronize();
         });
       },
       "'synchronize' on a stream that is being captured"},
      {"CallFailsAfterTheCapture",
       [](CommandSink &sink, const KernelArgs &args) {
         return sink.call([&](Stream &stream) -> llvm::Error {
           cantFail(submitDoubling(stream, args));
           if (llvm::Error error = stream.synchronize()) {
             llvm::consumeError(std::move(error));
             return makeError("the first thing that went wrong");
           }
           return llvm::Error::success();
         });
       },
       "the first thing that went wrong"},
      {"CallAllocates",
       [](CommandSink &sink, const KernelArgs &args) {
         return sink.call([&](Stream &stream) -> llvm::Error {
           llvm::Expected<void *> scratch = stream.device().allocate(64);
           if (!scratch)
             return scratch.takeError();
           stream.device().deallocate(*scratch, 64);
           return submitDoubling(stream, args);
         });
       },
       "'allocate'"},
      {"CallForksWithoutJoin",
       [](CommandSink &sink, const KernelArgs &args) {
         return sink.call([&](Stream &stream) { return fork(stream, args, false); });
       },
       "not joined back"},
  };
}

/// A program whose middle op is `test.op`; it gives 5x, and adds x to a buffer at its start.
class CaptureFixture : public ProgramFixture {
protected:
  CaptureFixture() {
    OpSpec spec;
    spec.name = "test.op";
    spec.operands = {{"x"}};
    spec.results = {"out"};
    spec.infer = [](const OpContext &op, llvm::SmallVectorImpl<Type> &results) {
      results.push_back(*op.operand(0));
      return llvm::Error::success();
    };
    cantFail(registry.registerOp(spec));
  }

  void compileWith(CaptureFailure onCaptureFailure) {
    Pipeline pipeline = [this](TracePair pair, const SymbolBindings &) {
      PassRegistry passes;
      cantFail(registerPasses(passes, {&executor, &host}));
      PassManager manager;
      cantFail(passes.parsePipeline(regionPipeline, manager));
      return manager.run(std::move(pair));
    };
    ProgramOptions options = steadyOptions();
    options.onCaptureFailure = onCaptureFailure;
    options.checkGraphs = true;
    program =
        std::make_unique<Program>(cantFail(compile(parse(R"(
trace @t(%x: f32[4], %sum: f32[4] buffer) {
  %n: f32[4] = add_(%sum, %x)
  %a: f32[4] = neg(%x)
  %b: f32[4] = add(%a, %a)
  %c: f32[4] = test.op(%b) module "block.7"
  %d: f32[4] = neg(%c)
  %e: f32[4] = add(%d, %x)
  return(%e)
})"),
                                                   device, {&executor, &host}, pipeline, options)));
  }

  /// A call with x = (v, 1, 1, 1), which is right.
  void expectRight(float v) {
    double before = valuesOf(sum)[0];
    llvm::SmallVector<Value> results = forward(*program, {floats({v, 1, 1, 1}), sum});
    ASSERT_THAT(results, SizeIs(1));
    EXPECT_THAT(valuesOf(results[0]), ElementsAre(5 * v, 5, 5, 5));
    EXPECT_EQ(valuesOf(sum)[0], before + v) << "the region ran once";
  }

  TestExecutor executor;
  std::unique_ptr<Program> program;
  Tensor sum = floats({0, 0, 0, 0});
};

class CaptureFailureTest : public CaptureFixture, public testing::WithParamInterface<Refusal> {
protected:
  CaptureFailureTest() { executor.enqueue = GetParam().enqueue; }
};

INSTANTIATE_TEST_SUITE_P(, CaptureFailureTest, testing::ValuesIn(refusals()),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace

//===----------------------------------------------------------------------===//
// Ops that cannot
//===----------------------------------------------------------------------===//

// With Error every call fails, with the first error and the op's name and module; nothing of the
// region runs, no memory is kept, and eagerly the program still works.
TEST_P(CaptureFailureTest, Error) {
  compileWith(CaptureFailure::Error);
  uint64_t bytes = 0;
  for (unsigned call = 0; call < 3; ++call) {
    EXPECT_THAT(forwardError(*program, {floats({1, 1, 1, 1}), sum}),
                AllOf(HasSubstr("'test.op' op of module block.7"), HasSubstr("cannot be captured"),
                      HasSubstr(GetParam().says)));
    EXPECT_THAT(valuesOf(sum), ElementsAre(0, 0, 0, 0));
    if (call > 0) {
      EXPECT_EQ(device->memoryUse().bytes, bytes);
    }
    bytes = device->memoryUse().bytes;
  }
  EXPECT_EQ(program->counters().failures, 3u);
  EXPECT_EQ(program->counters().entries, 0u);
  EXPECT_EQ(program->counters().eagerRuns, 0u);
  program->setEager(true);
  expectRight(3);
}

// With Split the region becomes two around the op: they are captured and replayed, it runs eagerly;
// all calls are right, and one remark says why.
TEST_P(CaptureFailureTest, Split) {
  compileWith(CaptureFailure::Split);
  EXPECT_THAT(program->regions(), SizeIs(1));
  expectRight(1);
  std::vector<RegionInfo> regions = program->regions();
  ASSERT_THAT(regions, SizeIs(2));
  EXPECT_EQ(regions[0].numOps, 3u);
  EXPECT_EQ(regions[1].numOps, 2u);
  for (float v : {2.0f, 3.0f, 4.0f})
    expectRight(v);
  CacheCounters counters = program->counters();
  EXPECT_EQ(counters.failures, 1u);
  EXPECT_EQ(counters.captures, 2u) << "the next captures work";
  EXPECT_EQ(counters.replays, 4u);
  EXPECT_THAT(
      program->takeRemarks(),
      ElementsAre(AllOf(HasSubstr("region 0 of the forward is split"),
                        HasSubstr("'test.op' op of module block.7"), HasSubstr(GetParam().says))));
  EXPECT_THAT(program->takeRemarks(), IsEmpty());
}

// With Eager the region runs eagerly from then on, without trying again.
TEST_P(CaptureFailureTest, Eager) {
  compileWith(CaptureFailure::Eager);
  for (float v : {1.0f, 2.0f, 3.0f})
    expectRight(v);
  CacheCounters counters = program->counters();
  EXPECT_EQ(counters.failures, 1u);
  EXPECT_EQ(counters.captures, 0u);
  EXPECT_EQ(counters.eagerRuns, 3u);
  EXPECT_THAT(program->takeRemarks(),
              ElementsAre(AllOf(HasSubstr("runs eagerly"), HasSubstr("'test.op' op"),
                                HasSubstr(GetParam().says))));
}

// The memory that a program with a failed capture took is all given back with it.
TEST_P(CaptureFailureTest, MemoryComesBack) {
  for (CaptureFailure policy :
       {CaptureFailure::Error, CaptureFailure::Split, CaptureFailure::Eager}) {
    uint64_t before = device->memoryUse().bytes;
    compileWith(policy);
    llvm::SmallVector<Value> results;
    for (unsigned i = 0; i < 3; ++i)
      llvm::consumeError(program->forward(*stream, {sum, floats({0, 0, 0, 0})}, results));
    results.clear();
    program = nullptr;
    EXPECT_EQ(device->memoryUse().bytes, before);
  }
}

namespace {

using LibraryCallTest = CaptureFixture;

} // namespace

// A library that hides that it broke its capture looks like another thread's doing: it is tried
// again for a while, not for ever, and all calls are right.
TEST_F(LibraryCallTest, HiddenFailure) {
  executor.enqueue = [](CommandSink &sink, const KernelArgs &args) {
    return sink.call([&](Stream &stream) {
      llvm::consumeError(stream.synchronize());
      llvm::consumeError(submitDoubling(stream, args));
      return llvm::Error::success();
    });
  };
  compileWith(CaptureFailure::Split);
  for (unsigned i = 1; i <= 20; ++i)
    expectRight(float(i));
  EXPECT_LE(program->counters().failures, 10u);
  EXPECT_GE(program->counters().replays, 20u);
  EXPECT_THAT(program->takeRemarks(), ElementsAre(HasSubstr("'test.op' op")));
}

// A capture that is broken once from outside is tried again in the same call.
TEST_F(LibraryCallTest, PassingFailure) {
  unsigned calls = 0;
  executor.enqueue = [&](CommandSink &sink, const KernelArgs &args) {
    return sink.call([&](Stream &stream) -> llvm::Error {
      if (isCaptured(stream) && calls++ == 0) {
        llvm::consumeError(stream.device().synchronize()); // as another thread might
        return llvm::Error::success();
      }
      return submitDoubling(stream, args);
    });
  };
  compileWith(CaptureFailure::Split);
  for (float v : {1.0f, 2.0f, 3.0f})
    expectRight(v);
  EXPECT_EQ(program->counters().failures, 1u);
  EXPECT_EQ(program->counters().captures, 1u);
  EXPECT_EQ(program->counters().replays, 2u);
  EXPECT_THAT(program->takeRemarks(), IsEmpty());
}

namespace {

/// Eagerly the op doubles; so many captures of it are out of memory.
class OutOfMemoryCaptureTest : public CaptureFixture {
protected:
  void compileFailing(unsigned failures) {
    executor.enqueue = [this, failures](CommandSink &sink, const KernelArgs &args) -> llvm::Error {
      return sink.call([&](Stream &stream) -> llvm::Error {
        if (!isCaptured(stream))
          return submitDoubling(stream, args);
        bytes.push_back(device->memoryUse().bytes);
        if (bytes.size() > failures)
          return submitDoubling(stream, args);
        return makeDeviceError(DeviceErrorKind::OutOfMemory, "no room for a node");
      });
    };
    compileWith(CaptureFailure::Split);
  }

  std::vector<uint64_t> bytes; ///< allocated at each capture
};

} // namespace

// A capture that is out of memory is tried once more when what is idle was given back.
TEST_F(OutOfMemoryCaptureTest, TrimsAndRetries) {
  compileFailing(1);
  program->setEager(true);
  {
    auto held = forward(*program, {sum, floats({0, 0, 0, 0})}); // another set of results
    forward(*program, {sum, floats({0, 0, 0, 0})});
  }
  program->setEager(false);
  for (float v : {1.0f, 2.0f, 3.0f})
    expectRight(v);
  CacheCounters counters = program->counters();
  EXPECT_EQ(counters.failures, 1u);
  EXPECT_EQ(counters.captures, 1u);
  EXPECT_EQ(counters.replays, 2u);
  EXPECT_THAT(program->takeRemarks(), IsEmpty());
  ASSERT_THAT(bytes, SizeIs(5)) << "three of them to find pointers";
  EXPECT_EQ(bytes[0] - bytes[1], program->memory(Side::Forward).results) << "an idle set went";
}

// If memory is out again, the call runs eagerly and the next one tries; the region stays as it is.
TEST_F(OutOfMemoryCaptureTest, NextCallTries) {
  compileFailing(3);
  for (float v : {1.0f, 2.0f, 3.0f})
    expectRight(v);
  CacheCounters counters = program->counters();
  EXPECT_EQ(counters.failures, 3u);
  EXPECT_EQ(counters.eagerRuns, 2u);
  EXPECT_EQ(counters.captures, 1u);
  EXPECT_EQ(counters.replays, 1u);
  EXPECT_THAT(program->takeRemarks(), IsEmpty());
}

// If it always is, the region runs eagerly in the end and one remark says so: no op is to blame.
TEST_F(OutOfMemoryCaptureTest, GivesUp) {
  compileFailing(1000);
  for (unsigned i = 1; i <= 20; ++i)
    expectRight(float(i));
  EXPECT_LE(program->counters().failures, 10u);
  EXPECT_THAT(program->regions(), SizeIs(1));
  EXPECT_THAT(program->takeRemarks(),
              ElementsAre(AllOf(HasSubstr("runs eagerly"), HasSubstr("no room for a node"))));
}

//===----------------------------------------------------------------------===//
// Ops that can
//===----------------------------------------------------------------------===//

// Work that a library submits is captured behind what it needs, and what needs it behind it: with
// one node, several, none, and a second stream that is joined back.
TEST_F(LibraryCallTest, Works) {
  struct Case {
    const char *name;
    Enqueue enqueue;
  };
  const Case cases[] = {
      {"one launch",
       [](CommandSink &sink, const KernelArgs &args) {
         return sink.call([&](Stream &stream) { return submitDoubling(stream, args); });
       }},
      {"a copy and a launch in place",
       [](CommandSink &sink, const KernelArgs &args) {
         return sink.call([&](Stream &stream) -> llvm::Error {
           cantFail(stream.copy(args.results[0].address, args.operands[0].address, 16));
           KernelArgs again = args;
           again.operands = args.results;
           return submitDoubling(stream, again);
         });
       }},
      {"two calls and a launch",
       [](CommandSink &sink, const KernelArgs &args) {
         cantFail(sink.call([&](Stream &stream) { return submitDoubling(stream, args, 0, 1); }));
         cantFail(submitDoubling(sink, args, 1, 2));
         return sink.call([&](Stream &stream) { return submitDoubling(stream, args, 2, 4); });
       }},
      {"nothing, then a launch",
       [](CommandSink &sink, const KernelArgs &args) {
         cantFail(sink.call([&](Stream &) { return llvm::Error::success(); }));
         return submitDoubling(sink, args);
       }},
      {"two streams",
       [](CommandSink &sink, const KernelArgs &args) {
         return sink.call([&](Stream &stream) { return fork(stream, args, true); });
       }},
  };
  for (const Case &item : cases) {
    SCOPED_TRACE(item.name);
    executor.enqueue = item.enqueue;
    compileWith(CaptureFailure::Error);
    for (unsigned i = 1; i <= 8; ++i)
      expectRight(float(i));
    EXPECT_EQ(program->counters().captures, 1u);
    EXPECT_EQ(program->counters().replays, 7u);
  }
}
