//===- BucketsTest.cpp - Sizes rounded up to buckets ----------------------===//
//
// The device is hostile: nodes run in random order, and memory that is dead is nan.
//
//===----------------------------------------------------------------------===//

#include "ProgramTesting.h"

#include <numeric>

using namespace rondo;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;

namespace {

constexpr llvm::StringLiteral scaled = R"(
trace @scaled(%x: f32[B, 2], %w: f32[2] parameter) {
  %h: f32[B, 2] = mul(%x, %w)
  %y: f32[B, 2] = relu(%h)
  %s: f32[2] = sum(%y) {dims = [0]}
  return(%y, %s)
}
)";

constexpr llvm::StringLiteral doubled = R"(
trace @doubled(%x: f32[B, 2]) {
  %x.1: f32[B, 2] = mul_(%x) {scalar = 2}
  %s: f32[2] = sum(%x.1) {dims = [0]}
  return(%x.1, %s)
}
)";

HostDeviceOptions hostile(bool asynchronous = false) {
  HostDeviceOptions options;
  options.asynchronous = asynchronous;
  options.randomOrderSeed = 7;
  options.poison = true;
  return options;
}

ProgramOptions bucketsOf(std::vector<int64_t> sizes, std::map<std::string, double> padding = {}) {
  ProgramOptions options = steadyOptions();
  options.buckets["B"] = std::move(sizes);
  options.padding = std::move(padding);
  options.poison = true;
  return options;
}

class BucketsTest : public ProgramFixture {
protected:
  explicit BucketsTest(HostDeviceOptions options = hostile())
      : ProgramFixture(std::move(options)), weight(floats({1, 10})) {}

  /// 1, 2, 3, ... in memory of its own.
  Tensor iota(std::vector<int64_t> shape, float first = 1) const {
    Tensor tensor = cantFail(Tensor::empty(device, DType::F32, shape));
    std::iota(tensor.ref().as<float>(), tensor.ref().as<float>() + tensor.numElements(), first);
    return tensor;
  }
  Tensor indices(llvm::ArrayRef<int64_t> values) const {
    Tensor tensor = cantFail(Tensor::empty(device, DType::I64, {int64_t(values.size())}));
    llvm::copy(values, tensor.ref().as<int64_t>());
    return tensor;
  }

  /// The results of two programs for equal arguments, bit by bit.
  void expectSame(llvm::ArrayRef<Value> results, llvm::ArrayRef<Value> expected) {
    ASSERT_EQ(results.size(), expected.size());
    for (unsigned i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].asTensor()->shape(), expected[i].asTensor()->shape());
      EXPECT_EQ(bytesOf(*results[i].asTensor()), bytesOf(*expected[i].asTensor()));
    }
  }

  /// The caller's graph of a call.
  std::unique_ptr<Graph> captured(Program &program, llvm::ArrayRef<Value> inputs,
                                  llvm::SmallVectorImpl<Value> &results) {
    cantFail(stream->beginCapture(CaptureMode::Global));
    llvm::Error error = program.forward(*stream, inputs, results);
    EXPECT_EQ(llvm::toString(std::move(error)), "");
    return cantFail(stream->endCapture());
  }

  std::string bucketError(llvm::StringRef text, ProgramOptions options) const {
    llvm::Expected<Program> program = tryCompile(text, std::move(options));
    return program ? "" : llvm::toString(program.takeError());
  }

  Tensor weight;
};

/// The same with two streams that run by themselves.
class BucketStreamsTest : public BucketsTest {
protected:
  BucketStreamsTest() : BucketsTest(hostile(/*asynchronous=*/true)) {}
};

} // namespace

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

// Every size up to the greatest bucket gives what a program of that size gives, in tensors of that
// size; each bucket has one graph, never captured again, whatever the sizes.
TEST_F(BucketsTest, OneEntryPerBucket) {
  auto program = compiled(scaled, bucketsOf({1, 2, 4}));
  auto exact = compiled(scaled);
  exact->setEager(true);
  unsigned calls = 0;
  for (int64_t size : {3, 1, 4, 2, 0, 3, 4, 1, 0, 2, 3}) {
    SCOPED_TRACE(size);
    Tensor x = iota({size, 2}, float(++calls));
    expectSame(forward(*program, {x, weight}), forward(*exact, {x, weight}));
  }
  CacheCounters counters = program->counters();
  EXPECT_EQ(counters.entries, 3u);
  EXPECT_EQ(counters.captures, 3u);
  EXPECT_EQ(counters.eagerRuns, 3u);
  EXPECT_EQ(counters.replays, calls - 3u);
  EXPECT_EQ(counters.recaptures, 0u);
}

// Without buckets each size has a graph of its own.
TEST_F(BucketsTest, WithoutBuckets) {
  auto program = compiled(scaled);
  for (int64_t size : {4, 3, 2, 1})
    forward(*program, {iota({size, 2}), weight});
  EXPECT_EQ(program->counters().entries, 4u);
  EXPECT_EQ(program->paddedBytes(), 0u);
}

// Only what lies between buckets is copied: the rows of it, and padding for the rest.
TEST_F(BucketsTest, OnlyWhatLiesBetweenIsCopied) {
  auto program = compiled(scaled, bucketsOf({1, 2, 4}));
  for (int64_t size : {1, 2, 4})
    forward(*program, {iota({size, 2}), weight});
  EXPECT_EQ(program->paddedBytes(), 0u);
  forward(*program, {iota({3, 2}), weight});
  EXPECT_EQ(program->paddedBytes(), 4 * 2 * sizeof(float));
}

// A size above the greatest bucket is an error that says which symbol, which size, which buckets;
// the greatest is none.
TEST_F(BucketsTest, AboveTheGreatest) {
  auto program = compiled(scaled, bucketsOf({2, 4}));
  EXPECT_THAT(forwardError(*program, {iota({5, 2}), weight}),
              AllOf(HasSubstr("symbol 'B' is 5"), HasSubstr("buckets: 2, 4")));
  EXPECT_EQ(forwardError(*program, {iota({4, 2}), weight}), "");
}

// Two symbols have buckets each; a third one without is as it is.
TEST_F(BucketsTest, SeveralSymbols) {
  constexpr llvm::StringLiteral text = R"(
trace @t(%x: f32[2, B, S, C], %b: f32[S], %c: f32[C, B; 1, C]) {
  %y: f32[2, B, S, C] = exp(%x)
  %n: f32[S] = neg(%b)
  %d: f32[C, B] = neg(%c)
  return(%y, %n, %d)
}
)";
  ProgramOptions options = bucketsOf({2, 4});
  options.buckets["S"] = {3, 8};
  auto program = compiled(text, options), exact = compiled(text);
  exact->setEager(true);
  for (auto [b, s, c] :
       {std::tuple(3, 5, 2), {2, 2, 2}, {4, 8, 2}, {1, 3, 3}, {2, 8, 2}, {0, 4, 2}}) {
    SCOPED_TRACE(testing::Message() << b << " " << s << " " << c);
    Tensor columns = iota({b, c});
    std::vector<Value> inputs = {iota({2, b, s, c}, -40), iota({s}),
                                 Tensor(columns.storage(), 0, DType::F32, {c, b}, {1, c})};
    expectSame(forward(*program, inputs), forward(*exact, inputs));
  }
  EXPECT_EQ(program->counters().entries, 4u); // (4, 8, 2), (2, 3, 2), (2, 3, 3), (2, 8, 2)
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

// Padding is 0 unless another number is declared for the input, in every dtype.
TEST_F(BucketsTest, PaddingHoldsWhatIsDeclared) {
  struct Case {
    const char *dtype;
    DType type;
    double padding;
  };
  const Case cases[] = {
      {"f32", DType::F32, 1.5},  {"f64", DType::F64, -2.25}, {"f16", DType::F16, 0.5},
      {"bf16", DType::BF16, -3}, {"i64", DType::I64, -7},    {"i32", DType::I32, 1 << 20},
      {"u8", DType::U8, 255},    {"i8", DType::I8, -128},    {"bool", DType::Bool, 1},
      {"i16", DType::I16, -300}, {"f32", DType::F32, 0},     {"f8e4m3", DType::F8E4M3, 0},
  };
  for (const Case &c : cases) {
    SCOPED_TRACE(testing::Message() << c.dtype << " " << c.padding);
    bool isTiny = c.type == DType::F8E4M3; // no kernels: the bits
    std::string type = c.dtype, operand = isTiny ? "%i" : "%x";
    std::string text = "trace @t(%x: " + type + "[B], %i: f32[B]) {\n  %c: f64[B] = cast(" +
                       operand + ") {dtype = f64}\n  %s: f64[] = sum(%c)\n  return(%s)\n}";
    ProgramOptions options = bucketsOf({4});
    if (c.padding != 0)
      options.padding["x"] = c.padding;
    auto program = compiled(text, options);
    ASSERT_TRUE(program);
    Tensor x = cantFail(Tensor::empty(device, c.type, {1}));
    std::fill_n(x.data(), x.extentBytes(), std::byte(0));
    for (int call = 0; call < 3; ++call)
      EXPECT_THAT(valuesOf(forward(*program, {x, floats({0})})[0]), ElementsAre(3 * c.padding));
  }
}

// What ops make of padding shows in results that are of no batch: a mean of logarithms is finite
// only with the right padding.
TEST_F(BucketsTest, PaddingMatters) {
  constexpr llvm::StringLiteral text = R"(
trace @t(%x: f32[B]) {
  %l: f32[B] = log(%x)
  %p: f32[B] = mul(%l, %x)
  %s: f32[] = sum(%p)
  return(%l, %s)
}
)";
  auto zeros = compiled(text, bucketsOf({4})), ones = compiled(text, bucketsOf({4}, {{"x", 1}}));
  for (int call = 0; call < 3; ++call) {
    EXPECT_THAT(valuesOf(forward(*zeros, {floats({1})})[1]), ElementsAre(IsNan()));
    llvm::SmallVector<Value> results = forward(*ones, {floats({1})});
    EXPECT_THAT(valuesOf(results[0]), ElementsAre(0));
    EXPECT_THAT(valuesOf(results[1]), ElementsAre(0));
  }
}

// Padding is written anew in every call: what a longer batch, or the ops, left there is gone.
TEST_F(BucketsTest, PaddingIsFresh) {
  auto program = compiled(doubled, bucketsOf({4}, {{"x", 1}}));
  for (int64_t size : {3, 1, 2, 1, 3}) {
    Tensor x = iota({size, 2}, 0);
    double sum = 0;
    for (double value : valuesOf(x))
      sum += 2 * value;
    llvm::SmallVector<Value> results = forward(*program, {x});
    EXPECT_EQ(valuesOf(results[1])[0] + valuesOf(results[1])[1], sum + 2 * 2 * (4 - size));
  }
}

//===----------------------------------------------------------------------===//
// Writes, views and outputs
//===----------------------------------------------------------------------===//

// A write reaches the caller's tensor, and no byte behind it; a result that is the argument is the
// caller's tensor. So it is with a size that is a bucket.
TEST_F(BucketsTest, WritesReachTheCaller) {
  auto program = compiled(doubled, bucketsOf({2, 4}));
  for (int64_t size : {3, 4, 1, 3, 2}) {
    SCOPED_TRACE(size);
    Tensor memory = iota({6, 2});
    Tensor x(memory.storage(), 0, DType::F32, {size, 2}, {2, 1});
    llvm::SmallVector<Value> results = forward(*program, {x});
    EXPECT_EQ(results[0].asTensor()->data(), x.data());
    EXPECT_EQ(results[0].asTensor()->shape(), x.shape());
    for (int64_t i = 0; i < 12; ++i)
      EXPECT_EQ(valuesOf(memory)[i], i < 2 * size ? 2 * (i + 1) : i + 1);
  }
  EXPECT_EQ(program->counters().recaptures, 0u);
}

// An argument that is only read is not copied back.
TEST_F(BucketsTest, ReadsAreNotCopiedBack) {
  auto reading = compiled(scaled, bucketsOf({4})), writing = compiled(doubled, bucketsOf({4}));
  forward(*reading, {iota({3, 2}), weight});
  forward(*writing, {iota({3, 2})});
  EXPECT_EQ(writing->paddedBytes(), reading->paddedBytes() + 3 * 2 * sizeof(float));
}

// A padded argument that shares memory with another one is an error if one of them is written, and
// none if both are read.
TEST_F(BucketsTest, SharedMemory) {
  auto text = [](llvm::StringRef op) {
    return ("trace @t(%x: f32[B], %y: f32[B]) {\n  %z: f32[B] = " + op +
            "(%x, %y)\n  return(%z)\n}")
        .str();
  };
  Tensor x = floats({1, 2, 3});
  auto writing = compiled(text("add_"), bucketsOf({4}));
  EXPECT_THAT(forwardError(*writing, {x, x}),
              AllOf(HasSubstr("argument #0 '%x'"), HasSubstr("shares memory with argument #1"),
                    HasSubstr("written")));
  EXPECT_THAT(valuesOf(x), ElementsAre(1, 2, 3));
  auto reading = compiled(text("add"), bucketsOf({4}));
  EXPECT_THAT(valuesOf(forward(*reading, {x, x})[0]), ElementsAre(2, 4, 6));
}

// What does not fit the caller's sizes is named in the caller's sizes, and nothing runs.
TEST_F(BucketsTest, BadArguments) {
  auto program = compiled(doubled, bucketsOf({4}));
  EXPECT_THAT(forwardError(*program, {iota({3, 5})}),
              AllOf(HasSubstr("argument #0 '%x'"), HasSubstr("expected f32[3, 2]"),
                    HasSubstr("got f32[3, 5]")));
  Tensor columns = iota({3, 2});
  EXPECT_THAT(forwardError(*program, {Tensor(columns.storage(), 0, DType::F32, {3, 2}, {1, 3})}),
              HasSubstr("expected f32[3, 2]"));
  EXPECT_THAT(forwardError(*program, {indices({1, 2, 3})}), HasSubstr("expected f32[B, 2]"));
  EXPECT_EQ(program->paddedBytes(), 0u);
  EXPECT_EQ(program->counters().captures, 0u);
}

// A view of a part of an argument that may be padded is refused; all of it, a copy, and a view of
// another argument are not.
TEST_F(BucketsTest, Views) {
  auto text = [](llvm::StringRef type, llvm::StringRef op) {
    return ("trace @t(%x: f32[B, 2], %w: f32[8, 2]) {\n  %n: f32[B, 2] = neg(%x)\n  %v: f32[" +
            type + "] = " + op + "\n  return(%n, %v)\n}")
        .str();
  };
  auto part = compiled(text("B; 2", "select(%x) {dim = 1, index = 1}"), bucketsOf({4}));
  EXPECT_THAT(forwardError(*part, {iota({3, 2}), iota({8, 2})}),
              AllOf(HasSubstr("result #1 '%v'"), HasSubstr("view of argument #0 '%x'")));
  auto transposed = compiled(text("2, B; 1, 2", "permute(%x) {dims = [1, 0]}"), bucketsOf({4}));
  EXPECT_THAT(forwardError(*transposed, {iota({3, 2}), iota({8, 2})}), HasSubstr("result #1 '%v'"));

  Tensor x = iota({3, 2}), w = iota({8, 2}, 20);
  auto whole = compiled(text("B, 2", "detach(%x)"), bucketsOf({4}));
  EXPECT_EQ(forward(*whole, {x, w})[1].asTensor()->data(), x.data());
  auto copy = compiled(text("B, 2", "clone(%x)"), bucketsOf({4}));
  EXPECT_THAT(valuesOf(forward(*copy, {x, w})[1]), ElementsAre(1, 2, 3, 4, 5, 6));
  auto other = compiled(text("2; 1", "select(%w) {dim = 0, index = 7}"), bucketsOf({4}));
  EXPECT_EQ(forward(*other, {x, w})[1].asTensor()->data(), w.data() + 7 * 2 * sizeof(float));
}

// The caller's memory cannot take a result that has a bucket's size; it can take others.
TEST_F(BucketsTest, Outputs) {
  auto program = compiled(scaled, bucketsOf({4}));
  Tensor y = iota({3, 2}), s = floats({0, 0}), x = iota({3, 2});
  llvm::SmallVector<Value> results;
  EXPECT_THAT(llvm::toString(program->forwardInto(*stream, {x, weight}, {y, Tensor()}, results)),
              AllOf(HasSubstr("output #0 for result '%y'"), HasSubstr("has buckets")));
  EXPECT_EQ(llvm::toString(program->forwardInto(*stream, {x, weight}, {Tensor(), s}, results)), "");
  EXPECT_EQ(results[1].asTensor()->data(), s.data());
  EXPECT_THAT(valuesOf(s), ElementsAre(9, 120));
  // One that shares memory with an argument that is padded.
  Tensor inX(x.storage(), 0, DType::F32, {2}, {1});
  EXPECT_THAT(llvm::toString(program->forwardInto(*stream, {x, weight}, {Tensor(), inX}, results)),
              AllOf(HasSubstr("argument #0 '%x'"), HasSubstr("shares memory with output #1")));
}

// A result that is held is not overwritten by a call of another size in the bucket.
TEST_F(BucketsTest, ResultsAreTheCallers) {
  auto program = compiled(scaled, bucketsOf({4}));
  llvm::SmallVector<Value> held = forward(*program, {iota({3, 2}), floats({1, 1})});
  forward(*program, {iota({2, 2}, 50), weight});
  EXPECT_THAT(valuesOf(held[0]), ElementsAre(1, 2, 3, 4, 5, 6));
}

//===----------------------------------------------------------------------===//
// What is refused when compiling
//===----------------------------------------------------------------------===//

// Declarations that cannot be kept are errors that name the symbol, argument or result.
TEST_F(BucketsTest, CompileErrors) {
  ProgramOptions unknown = bucketsOf({4});
  unknown.buckets["S"] = {1};
  EXPECT_THAT(bucketError(scaled, unknown), HasSubstr("symbol 'S', which no argument has"));
  EXPECT_THAT(bucketError(scaled, bucketsOf({})), HasSubstr("got none"));
  EXPECT_THAT(bucketError(scaled, bucketsOf({0, 4})), HasSubstr("got 0, 4"));
  EXPECT_THAT(bucketError(scaled, bucketsOf({4, 2})), HasSubstr("ascending, got 4, 2"));
  EXPECT_THAT(bucketError(scaled, bucketsOf({2, 2})), HasSubstr("ascending, got 2, 2"));
  for (const char *name : {"w", "nobody", "y"})
    EXPECT_THAT(bucketError(scaled, bucketsOf({4}, {{name, 1}})),
                HasSubstr("padding is given for '" + std::string(name) + "'"));
  ProgramOptions withoutBuckets;
  withoutBuckets.padding["x"] = 1;
  EXPECT_THAT(bucketError(scaled, withoutBuckets), HasSubstr("padding is given for 'x'"));
  EXPECT_EQ(bucketError(scaled, bucketsOf({2, 4}, {{"x", 1}})), "");
  EXPECT_THAT(bucketError("trace @t(%x: f32[B]@host:1) {\n  %y: f32[B]@host:1 = neg(%x)\n"
                          "  return(%y)\n}",
                          bucketsOf({4})),
              AllOf(HasSubstr("argument #0 '%x'"), HasSubstr("on host:1")));

  constexpr llvm::StringLiteral pair = R"(
pair @p {
  forward @fw(%x: f32[B]) {
    %y: f32[B] = neg(%x)
    return(%y)
  }
  backward @bw(%g: f32[B]) {
    %d: f32[B] = neg(%g)
    return(%d)
  }
}
)";
  EXPECT_THAT(bucketError(pair, bucketsOf({4})), HasSubstr("a pair with a backward"));
  EXPECT_EQ(bucketError(pair, {}), "");
}

// A size that is computed from a symbol with buckets says not where its padding is.
TEST_F(BucketsTest, ComputedSizes) {
  EXPECT_THAT(bucketError("trace @t(%x: f32[B], %y: f32[2*B]) {\n  %z: f32[2*B] = neg(%y)\n"
                          "  return(%z)\n}",
                          bucketsOf({4})),
              AllOf(HasSubstr("argument #1 '%y'"), HasSubstr("dimension 0 is 2*B"),
                    HasSubstr("result #0 '%z'")));
  // In between they may be.
  auto program = compiled(R"(
trace @t(%x: f32[B, 2]) {
  %f: f32[2*B] = reshape(%x) {shape = [2*B]}
  %n: f32[2*B] = neg(%f)
  %y: f32[B, 2] = reshape(%n) {shape = [B, 2]}
  return(%y)
}
)",
                          bucketsOf({4}));
  EXPECT_THAT(valuesOf(forward(*program, {iota({3, 2})})[0]), ElementsAre(-1, -2, -3, -4, -5, -6));
}

// Padding that the dtype has no number for is an error that says so.
TEST_F(BucketsTest, PaddingOfTheWrongKind) {
  const std::tuple<const char *, double, bool> cases[] = {
      {"i64", 0.5, false},  {"i64", NAN, false},      {"u8", -1, false},     {"u8", 256, false},
      {"i8", 128, false},   {"bool", 2, false},       {"bool", 1, true},     {"f16", 1e6, false},
      {"f16", 0.1, true},   {"f32", -INFINITY, true}, {"f32", 1e300, false}, {"i64", -0.0, true},
      {"f8e4m3", 1, false}, {"f8e4m3", 0, true},
  };
  for (auto [dtype, padding, isGood] : cases) {
    SCOPED_TRACE(testing::Message() << dtype << " " << padding);
    std::string text = "trace @t(%x: " + std::string(dtype) +
                       "[B], %i: f32[B]) {\n  %y: f32[B] = neg(%i)\n  return(%y)\n}";
    std::string error = bucketError(text, bucketsOf({4}, {{"x", padding}}));
    if (isGood)
      EXPECT_EQ(error, "");
    else
      EXPECT_THAT(error, AllOf(HasSubstr("argument #0 '%x'"), HasSubstr(dtype)));
  }
}

// Static arguments with buckets are followed to the program's memory and back, without another
// capture; that they may not move cannot be asked for.
TEST_F(BucketsTest, StaticArguments) {
  constexpr llvm::StringLiteral text = R"(
trace @t(%cache: f32[B] buffer, %x: f32[1]) {
  %cache.1: f32[B] = add_(%cache, %x)
  %y: f32[B] = neg(%cache.1)
  return(%y)
}
)";
  ProgramOptions options = bucketsOf({2, 4});
  auto program = compiled(text, options);
  Tensor three = floats({1, 2, 3}), four = floats({1, 2, 3, 4}), x = floats({1});
  for (int call = 1; call <= 5; ++call) {
    EXPECT_THAT(valuesOf(forward(*program, {three, x})[0]),
                ElementsAre(-1 - call, -2 - call, -3 - call));
    EXPECT_EQ(valuesOf(forward(*program, {four, x})[0])[3], -4 - call);
  }
  EXPECT_EQ(program->counters().captures, 1u);
  EXPECT_EQ(program->counters().recaptures, 0u);
  options.onStaticMove = StaticMove::Error;
  EXPECT_THAT(bucketError(text, options),
              AllOf(HasSubstr("argument #0 '%cache'"), HasSubstr("static")));
}

//===----------------------------------------------------------------------===//
// Generators, streams, captures, memory
//===----------------------------------------------------------------------===//

// Random numbers go by element, so the batch's are those of a program of its size, replayed or not,
// if the trace advances by a fixed number.
TEST_F(BucketsTest, Generators) {
  constexpr llvm::StringLiteral text = R"(
trace @t(%x: f32[B, 8]) {
  %s: rng = generator_read() {device = host}
  %a: f32[B, 8], %m: bool[B, 8] = dropout(%x, %s) {offset = 0, p = 0.5}
  generator_advance() {count = 32, device = host}
  return(%a)
}
)";
  auto program = compiled(text, bucketsOf({2, 4})), exact = compiled(text);
  exact->setEager(true);
  for (int64_t size : {3, 1, 4, 3, 2, 1, 3})
    expectSame(forward(*program, {iota({size, 8})}), forward(*exact, {iota({size, 8})}));
  EXPECT_GT(program->counters().replays, 0u);
}

// Calls on two streams, in lanes of their own or not, do not disturb each other's padding.
TEST_F(BucketStreamsTest, TwoStreams) {
  std::unique_ptr<Stream> other = cantFail(device->createStream());
  for (unsigned maxLanes : {1, 2}) {
    ProgramOptions options = bucketsOf({4}, {{"x", 1}});
    options.maxLanes = maxLanes;
    auto program = compiled(doubled, options);
    uint64_t allocations = 0;
    std::vector<Tensor> x = {iota({3, 2}, 0), iota({1, 2}, 100)};
    for (unsigned call = 0; call < 50; ++call) {
      llvm::SmallVector<Value> results[2];
      for (unsigned i : {0, 1})
        cantFail(program->forward(i == 0 ? *stream : *other, {x[i]}, results[i]));
      cantFail(device->synchronize());
      EXPECT_EQ(valuesOf(x[0])[5], std::ldexp(5, call % 10 + 1));
      EXPECT_EQ(valuesOf(results[1][1])[0], std::ldexp(100, call % 10 + 1) + 6);
      if (call % 10 == 9)
        x = {iota({3, 2}, 0), iota({1, 2}, 100)};
      if (call == 10)
        allocations = device->memoryUse().allocations;
      if (call > 10 && call < 19) { // as long as the arguments are the same
        EXPECT_EQ(device->memoryUse().allocations, allocations);
      }
    }
    EXPECT_EQ(program->counters().recaptures, 0u);
  }
}

// In the caller's capture the copies are part of the caller's graph.
TEST_F(BucketsTest, CallersCapture) {
  auto program = compiled(doubled, bucketsOf({4}, {{"x", 1}}));
  Tensor x = iota({3, 2});
  forward(*program, {x});
  llvm::SmallVector<Value> results;
  std::unique_ptr<Graph> graph = captured(*program, {x}, results);
  std::unique_ptr<GraphExec> exec = cantFail(graph->instantiate());
  EXPECT_THAT(valuesOf(x), ElementsAre(2, 4, 6, 8, 10, 12)); // capturing ran nothing
  for (float first : {1.0f, 7.0f, 30.0f}) {
    std::iota(x.ref().as<float>(), x.ref().as<float>() + 6, first);
    cantFail(exec->launch(*stream));
    EXPECT_EQ(valuesOf(x)[5], 2 * (first + 5));
    EXPECT_EQ(valuesOf(results[1])[0], 2 * (3 * first + 6 + 1));
    forward(*program, {iota({2, 2}, 1000)});
  }
}

// What the caller's graph pads to is kept when the program gives memory back, as long as the graph
// is there.
TEST_F(BucketsTest, CallersCaptureKeepsItsMemory) {
  constexpr int64_t bucket = 1024;
  Tensor exact = iota({bucket, 2}), three = iota({3, 2});
  auto kept = [&](const Tensor &x) {
    uint64_t before = device->memoryUse().bytes;
    auto program = compiled(doubled, bucketsOf({bucket}));
    forward(*program, {x});
    llvm::SmallVector<Value> results;
    std::unique_ptr<Graph> graph = captured(*program, {x}, results);
    results.clear();
    program->trim();
    return device->memoryUse().bytes - before;
  };
  EXPECT_GE(kept(three), kept(exact) + exact.extentBytes());
}

// A copy takes a command for each run of bytes without gaps, and the padding one more; a size that
// is a bucket takes none.
TEST_F(BucketsTest, CopiesRuns) {
  auto text = [](llvm::StringRef type) {
    return ("trace @t(%x: f32[" + type + "]) {\n  %s: f32[] = sum(%x)\n  return(%s)\n}").str();
  };
  Tensor memory = iota({12});
  auto numNodes = [&](llvm::StringRef type, std::vector<int64_t> shape,
                      std::vector<int64_t> strides) {
    auto program = compiled(text(type), bucketsOf({4}));
    Tensor x(memory.storage(), 0, DType::F32, shape, strides);
    llvm::SmallVector<Value> results;
    forward(*program, {x});
    return captured(*program, {x}, results)->numNodes();
  };
  size_t ofSum = numNodes("B, 3", {4, 3}, {3, 1});
  EXPECT_EQ(numNodes("B, 3", {3, 3}, {3, 1}), ofSum + 1 + 1);
  EXPECT_EQ(numNodes("3, B", {3, 3}, {3, 1}), ofSum + 1 + 3);
  EXPECT_EQ(numNodes("B, 3; 1, B", {3, 3}, {1, 3}), ofSum + 1 + 3);
  EXPECT_EQ(numNodes("B, 3", {0, 3}, {3, 1}), ofSum + 1);
}

// Trimming gives padded memory back, and later calls are right.
TEST_F(BucketsTest, Trim) {
  auto program = compiled(doubled, bucketsOf({1024}));
  program->trim();
  Tensor x = iota({3, 2});
  uint64_t before = device->memoryUse().bytes;
  forward(*program, {x});
  EXPECT_GT(device->memoryUse().bytes, before + 1024 * 2 * sizeof(float) - 1);
  program->trim();
  EXPECT_LE(device->memoryUse().bytes, before);
  EXPECT_EQ(valuesOf(forward(*program, {x})[0])[5], 4 * 6);
}
