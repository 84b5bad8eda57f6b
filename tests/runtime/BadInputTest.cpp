//===- BadInputTest.cpp - Arguments that do not fit -----------------------===//
//
// A call with a bad argument says which one it is, what it was given and what it needs, and does
// nothing else.
//
//===----------------------------------------------------------------------===//

#include "ProgramTesting.h"

using namespace rondo;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

namespace {

constexpr llvm::StringLiteral step = R"(
pair @step {
  forward @fw(%x: f32[2, 3], %w: f32[3, 3] parameter path "mlp.weight", %scale: f64,
              %sum: f32[2, 3], %count: i64, %flag: bool, %t: f32[3, 2; 1, 3], %state: rng) {
    %h: f32[2, 3] = mm(%x, %w)
    %k: f32[2, 3] = mul(%h, %scale)
    %new: f32[2, 3] = add_(%sum, %k)
    %r: rng = generator_read()
    %d: f32[2, 3], %m: bool[2, 3] = dropout(%new, %r) {offset = 0, p = 0.5}
    generator_advance() {count = 6}
    return(%d, %w saved #0, %m saved #1)
  }
  backward @bw(%g: f32[2, 3], %out: f32[2, 3], %w: f32[3, 3] saved #0, %m: bool[2, 3] saved #1) {
    %d: f32[2, 3] = dropout_backward(%g, %m) {scale = 2.0}
    %n: f32[2, 3] = add_(%out, %d)
    %gx: f32[2, 3] = mm(%d, %w)
    return(%gx)
  }
}
)";

enum : unsigned { X, W, Scale, Sum, Count, Flag, T, State, NumInputs };

class BadInputTest : public ProgramFixture {
protected:
  BadInputTest() : program(compiled(step)) {
    inputs.resize(NumInputs);
    inputs[X] = floats({1, 2, 3, 4, 5, 6}, {{2, 3}});
    inputs[W] = floats({1, 0, 0, 0, 1, 0, 0, 0, 1}, {{3, 3}});
    inputs[Scale] = Value(2.0);
    inputs[Sum] = floats({0, 0, 0, 0, 0, 0}, {{2, 3}});
    inputs[Count] = Value(int64_t(7));
    inputs[Flag] = Value(true);
    inputs[T] = Tensor(memory(24), 0, DType::F32, {3, 2}, {1, 3});
    inputs[State] = Tensor(memory(16), 0, DType::I64, {2}, {1});
  }

  StorageRef memory(size_t bytes, const DeviceRef &where = nullptr) const {
    StorageRef storage = cantFail(Storage::allocate(where ? where : device, bytes));
    std::memset(storage->data(), 0, bytes);
    return storage;
  }
  /// f32[2, 3], `byteOffset` bytes into new memory.
  Tensor shifted(int64_t byteOffset) const {
    return Tensor(memory(24 + byteOffset), byteOffset, DType::F32, {2, 3}, {3, 1});
  }
  const Tensor &tensor(unsigned i) const { return *inputs[i].asTensor(); }

  /// Calls the forward with `bad`, which must say `says` and change nothing.
  void refuses(llvm::ArrayRef<Value> bad, llvm::ArrayRef<std::string> says) {
    Doubles sum = valuesOf(inputs[Sum]);
    RNGState before = cantFail(program->generators()->get(*stream, "default"));
    CacheCounters counters = program->counters();
    uint64_t bytes = device->memoryUse().bytes;
    std::string error = forwardError(*program, bad);
    ASSERT_THAT(error, Not(IsEmpty()));
    for (const std::string &part : says)
      EXPECT_THAT(error, HasSubstr(part));
    EXPECT_EQ(valuesOf(inputs[Sum]), sum);
    RNGState after = cantFail(program->generators()->get(*stream, "default"));
    EXPECT_EQ(after.offset, before.offset);
    EXPECT_EQ(program->counters().eagerRuns + program->counters().replays,
              counters.eagerRuns + counters.replays);
    EXPECT_EQ(device->memoryUse().bytes, bytes);
  }

  /// The right call works: the sum grows by 2x, a generator advances.
  void works() {
    Doubles sum = valuesOf(inputs[Sum]);
    uint64_t offset = cantFail(program->generators()->get(*stream, "default")).offset;
    EXPECT_EQ(forward(*program, inputs).size(), 1u);
    for (unsigned i = 0; i < 6; ++i)
      EXPECT_EQ(valuesOf(inputs[Sum])[i], sum[i] + 2 * (i + 1));
    EXPECT_EQ(cantFail(program->generators()->get(*stream, "default")).offset, offset + 6);
  }

  std::unique_ptr<Program> program;
  std::vector<Value> inputs;
};

} // namespace

//===----------------------------------------------------------------------===//
// Kinds, types, devices
//===----------------------------------------------------------------------===//

// One argument too few or too many is an error that says how many are needed.
TEST_F(BadInputTest, Number) {
  std::vector<Value> bad = inputs;
  bad.pop_back();
  refuses(bad, {"the forward takes 8 arguments, got 7"});
  refuses({}, {"the forward takes 8 arguments, got 0"});
  bad = inputs;
  bad.emplace_back(1.0);
  refuses(bad, {"the forward takes 8 arguments, got 9"});
  works();
}

// An argument of another kind or type is named, with what was given and what is needed.
TEST_F(BadInputTest, TypeOfArgument) {
  DeviceRef other = createHostDevice({.index = 1});
  Tensor moved = tensor(X);
  Tensor elsewhere = std::move(moved);
  struct Case {
    unsigned index;
    Value given;
    std::vector<std::string> says;
  };
  const std::string x = "argument #0 '%x' of the forward: ";
  const Case cases[] = {
      {X, Value(), {x, "expected f32[2, 3]", "got none"}},
      {X, Value(Tensor()), {x, "expected f32[2, 3]", "got a null tensor"}},
      {X, Value(moved), {x, "expected f32[2, 3]", "got a null tensor"}},
      {X, Value(1.5), {x, "expected f32[2, 3]", "got f64 1.5"}},
      {Scale, inputs[X], {"argument #2 '%scale'", "host scalar f64", "got f32[2, 3]"}},
      {Scale, Value(int64_t(2)), {"argument #2 '%scale'", "host scalar f64", "got i64 2"}},
      {Scale, Value(), {"argument #2 '%scale'", "host scalar f64", "got none"}},
      {Count, Value(7.0), {"argument #4 '%count'", "host scalar i64", "got f64 7.0"}},
      {Count, Value(true), {"argument #4 '%count'", "host scalar i64", "got bool true"}},
      {Flag, Value(int64_t(1)), {"argument #5 '%flag'", "host scalar bool", "got i64 1"}},
      {X,
       Tensor(memory(48), 0, DType::F64, {2, 3}, {3, 1}),
       {x, "expected f32[2, 3]", "got f64[2, 3]"}},
      {X, floats({1, 2, 3, 4, 5, 6}), {x, "expected f32[2, 3]", "got f32[6]"}},
      {X, floats({1, 2, 3, 4, 5, 6}, {{3, 2}}), {x, "expected f32[2, 3]", "got f32[3, 2]"}},
      {X, floats({}, {{0, 3}}), {x, "expected f32[2, 3]", "got f32[0, 3]"}},
      {X,
       Tensor(memory(24), 0, DType::F32, {2, 3}, {1, 2}),
       {x, "expected f32[2, 3]", "got f32[2, 3; 1, 2]"}},
      {T,
       Tensor(memory(24), 0, DType::F32, {3, 2}, {2, 1}),
       {"argument #6 '%t'", "expected f32[3, 2; 1, 3]", "got f32[3, 2]"}},
      {State, floats({1, 2}), {"argument #7 '%state'", "rng", "i64[2]", "got f32[2]"}},
      {State, Value(int64_t(3)), {"argument #7 '%state'", "rng", "got i64 3"}},
      {W,
       floats({1}, {{1, 1}}),
       {"argument #1 '%w' (mlp.weight)", "expected f32[3, 3]", "got f32[1, 1]"}},
      {X,
       Tensor(memory(24, other), 0, DType::F32, {2, 3}, {3, 1}),
       {x, "expected a tensor on host", "got one on host:1"}},
  };
  for (const Case &bad : cases) {
    SCOPED_TRACE(bad.says.front() + bad.says.back());
    std::vector<Value> arguments = inputs;
    arguments[bad.index] = bad.given;
    refuses(arguments, bad.says);
  }
  works();
}

// All bad arguments of a call are reported at once.
TEST_F(BadInputTest, Several) {
  std::vector<Value> bad = inputs;
  bad[X] = Value();
  bad[W] = floats({1});
  bad[Scale] = Value(false);
  refuses(bad, {"'%x'", "'%w'", "'%scale'", "got bool false"});
  works();
}

// Strides of dimensions with one index do not matter, nor any of a tensor without elements.
TEST_F(BadInputTest, StridesWithoutMeaning) {
  auto one = compiled(R"(
trace @t(%x: f32[1, 3], %e: f32[0, 3]) {
  %y: f32[1, 3] = neg(%x)
  %f: f32[0, 3] = neg(%e)
  return(%y, %f)
})");
  ASSERT_TRUE(one);
  Tensor values = floats({1, 2, 3});
  Tensor odd(values.storage(), 0, DType::F32, {1, 3}, {99, 1});
  Tensor empty(memory(4), 0, DType::F32, {0, 3}, {7, 7});
  for (unsigned i = 0; i < 3; ++i) {
    llvm::SmallVector<Value> results = forward(*one, {odd, empty});
    ASSERT_EQ(results.size(), 2u);
    EXPECT_THAT(valuesOf(results[0]), ElementsAre(-1, -2, -3));
    EXPECT_EQ(results[1].asTensor()->numElements(), 0);
  }
  Tensor bad(memory(24), 0, DType::F32, {1, 3}, {3, 2});
  EXPECT_THAT(forwardError(*one, {bad, empty}), HasSubstr("got f32[1, 3; 3, 2]"));
}

//===----------------------------------------------------------------------===//
// Overlap and alignment
//===----------------------------------------------------------------------===//

// An argument that shares bytes with one that is written is named, with the other; two that are
// only read may share all they like.
TEST_F(BadInputTest, Overlap) {
  StorageRef shared = memory(64);
  auto at = [&](int64_t offset) { return Tensor(shared, offset, DType::F32, {2, 3}, {3, 1}); };
  for (int64_t offset : {0, 16, 20}) {
    SCOPED_TRACE(offset);
    std::vector<Value> bad = inputs;
    bad[Sum] = at(0);
    bad[X] = at(offset);
    refuses(bad, {"argument #0 '%x'", "shares memory", "argument #3 '%sum'", "which is written"});
    std::swap(bad[Sum], bad[X]);
    refuses(bad, {"argument #0 '%x'", "argument #3 '%sum'"});
  }
  std::vector<Value> view = inputs;
  view[T] = Tensor(tensor(Sum).storage(), 0, DType::F32, {3, 2}, {1, 3});
  refuses(view, {"argument #6 '%t'", "argument #3 '%sum'"});
  works();

  std::vector<Value> good = inputs;
  good[Sum] = at(32);
  good[X] = at(0); // ends before
  good[T] = Tensor(shared, 0, DType::F32, {3, 2}, {1, 3});
  EXPECT_EQ(forwardError(*program, good), "");
}

// A tensor without elements shares no bytes, wherever it is.
TEST_F(BadInputTest, EmptyDoesNotOverlap) {
  auto one = compiled(R"(
trace @t(%x: f32[4], %e: f32[0]) {
  %y: f32[4] = add_(%x, %x)
  %f: f32[0] = neg(%e)
  return(%y, %f)
})");
  ASSERT_TRUE(one);
  Tensor x = floats({1, 2, 3, 4});
  Tensor within(x.storage(), 4, DType::F32, {0}, {1});
  EXPECT_EQ(forwardError(*one, {x, within}), "");
  EXPECT_THAT(valuesOf(x), ElementsAre(2, 4, 6, 8));
}

// An address that is no multiple of the element size is an error; of one that is, but not of 16,
// only for a static argument.
TEST_F(BadInputTest, Misaligned) {
  std::vector<Value> bad = inputs;
  bad[X] = shifted(2);
  refuses(bad, {"argument #0 '%x'", "not a multiple", "4 bytes"});
  bad = inputs;
  bad[W] = Tensor(memory(64), 4, DType::F32, {3, 3}, {3, 1});
  refuses(bad, {"argument #1 '%w' (mlp.weight)", "static", "multiple of 16"});
  works();
}

// Arguments that are aligned to their elements work by copy, eagerly and replayed, and what is
// written in place reaches the caller.
TEST_F(BadInputTest, ElementAligned) {
  for (bool isEager : {false, true}) {
    program->setEager(isEager);
    std::vector<Value> odd = inputs;
    Tensor x = shifted(4), sum = shifted(8);
    std::memcpy(x.data(), tensor(X).data(), 24);
    odd[X] = x;
    odd[Sum] = sum;
    for (unsigned call = 1; call <= 3; ++call) {
      EXPECT_EQ(forwardError(*program, odd), "");
      EXPECT_THAT(valuesOf(odd[Sum]),
                  ElementsAre(2 * call, 4 * call, 6 * call, 8 * call, 10 * call, 12 * call));
      EXPECT_THAT(valuesOf(odd[X]), ElementsAre(1, 2, 3, 4, 5, 6));
    }
  }
}

// What is saved of an argument that was copied for alignment is as aligned as kernels may assume.
TEST_F(BadInputTest, SavedIsAligned) {
  auto pair = compiled(R"(
pair @p {
  forward @fw(%x: f32[6]) {
    %y: f32[6] = neg(%x)
    return(%y, %x saved #0)
  }
  backward @bw(%g: f32[6], %x: f32[6] saved #0) {
    %d: f32[6] = mul(%g, %x)
    return(%d)
  }
})");
  ASSERT_TRUE(pair);
  Tensor x(memory(32), 4, DType::F32, {6}, {1});
  const float values[] = {1, 2, 3, 4, 5, 6};
  std::memcpy(x.data(), values, sizeof values);
  for (unsigned i = 0; i < 3; ++i) {
    SavedState saved;
    forward(*pair, {x}, &saved);
    std::vector<SavedValue> held = cantFail(pair->savedValues(saved));
    ASSERT_EQ(held.size(), 1u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(held[0].value.asTensor()->data()) % 16, 0u);
    held.clear();
    auto gradients = backward(*pair, std::move(saved), {floats({1, 1, 1, 1, 1, 2})});
    ASSERT_EQ(gradients.size(), 1u);
    EXPECT_THAT(valuesOf(gradients[0]), ElementsAre(1, 2, 3, 4, 5, 12));
  }
}

// An argument that would have to be copied is an error while the caller captures: the copy would
// not live as long as the graph.
TEST_F(BadInputTest, MisalignedInCapture) {
  works(); // memory of the program is there
  std::vector<Value> odd = inputs;
  odd[X] = shifted(4);
  cantFail(stream->beginCapture(CaptureMode::Relaxed));
  std::string error = forwardError(*program, odd);
  EXPECT_THAT(error, AllOf(HasSubstr("argument #0 '%x'"), HasSubstr("captured")));
  llvm::consumeError(stream->endCapture().takeError());
  works();
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

// A stream of another device, or one whose capture is invalid, is refused before anything runs.
TEST_F(BadInputTest, Streams) {
  DeviceRef other = createHostDevice({.index = 1});
  std::unique_ptr<Stream> theirs = cantFail(other->createStream());
  std::swap(stream, theirs);
  Doubles sum = valuesOf(inputs[Sum]);
  EXPECT_THAT(forwardError(*program, inputs),
              AllOf(HasSubstr("stream is of device host:1"), HasSubstr("program's device host")));
  std::swap(stream, theirs);
  EXPECT_EQ(valuesOf(inputs[Sum]), sum);

  std::unique_ptr<Stream> broken = cantFail(device->createStream());
  cantFail(broken->beginCapture(CaptureMode::Relaxed));
  llvm::consumeError(broken->synchronize());
  std::swap(stream, broken);
  EXPECT_THAT(forwardError(*program, inputs), HasSubstr("capture is invalid"));
  std::swap(stream, broken);
  EXPECT_EQ(valuesOf(inputs[Sum]), sum);
  llvm::consumeError(broken->endCapture().takeError());
  works();
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

// Bad arguments of the backward are named likewise, consume nothing and write nothing.
TEST_F(BadInputTest, Backward) {
  SavedState saved;
  forward(*program, inputs, &saved);
  Tensor out = floats({0, 0, 0, 0, 0, 0}, {{2, 3}});
  Tensor g = floats({1, 1, 1, 1, 1, 1}, {{2, 3}});
  struct Case {
    std::vector<Value> given;
    std::vector<std::string> says;
  };
  const Case cases[] = {
      {{}, {"the backward takes 2 arguments, got 0"}},
      {{g, out, g}, {"the backward takes 2 arguments, got 3"}},
      {{Value(), out}, {"argument #0 '%g' of the backward", "expected f32[2, 3]", "got none"}},
      {{g, floats({1})}, {"argument #1 '%out' of the backward", "got f32[1]"}},
      {{out, out}, {"argument #0 '%g'", "argument #1 '%out' of the backward, which is written"}},
      // The parameter that the forward saved.
      {{g, Tensor(tensor(W).storage(), 0, DType::F32, {2, 3}, {3, 1})},
       {"argument #1 '%out' of the backward", "saved", "%w"}},
  };
  llvm::SmallVector<Value> results;
  for (const Case &bad : cases) {
    SCOPED_TRACE(bad.says.front());
    llvm::Error error = program->backward(*stream, std::move(saved), bad.given, results);
    ASSERT_TRUE(bool(error));
    std::string text = llvm::toString(std::move(error));
    for (const std::string &part : bad.says)
      EXPECT_THAT(text, HasSubstr(part));
    EXPECT_THAT(valuesOf(out), ElementsAre(0, 0, 0, 0, 0, 0));
    EXPECT_TRUE(saved.isValid());
  }
  EXPECT_EQ(backward(*program, std::move(saved), {g, out}).size(), 1u);
  EXPECT_THAT(valuesOf(out), Not(ElementsAre(0, 0, 0, 0, 0, 0)));
}
