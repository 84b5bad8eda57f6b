//===- TraceBuilderTest.cpp - Names after writes in place -----------------===//

#include "rondo/ir/TraceBuilder.h"

#include "rondo/ir/CoreOps.h"

#include <gtest/gtest.h>

using namespace rondo;

namespace {
class TraceBuilderTest : public ::testing::Test {
protected:
  TraceBuilderTest() { llvm::cantFail(registerCoreOps(registry)); }

  /// A region that writes all of its argument and returns what `result` makes of the new name.
  static ValueId writeInRegion(TraceBuilder &builder, ValueId x,
                               llvm::function_ref<ValueId(TraceBuilder &, ValueId)> result) {
    auto body = [&](TraceBuilder &inner, llvm::ArrayRef<ValueId> arguments) {
      return llvm::SmallVector<ValueId, 4>{result(inner, inner.op("zero_", {arguments[0]}))};
    };
    return builder.opWithBodies("fused", {x}, {}, {TraceBuilder::BuildBody(body)})[0];
  }

  OpRegistry registry;
};
} // namespace

// What a region that writes x returns whole is the newest name of x.
TEST_F(TraceBuilderTest, RegionsGiveNewNames) {
  TraceBuilder builder(registry);
  ValueId x = builder.argument("x", TensorType(DType::F32, {8}));
  ValueId y = writeInRegion(builder, x, [](TraceBuilder &, ValueId v) { return v; });
  EXPECT_EQ(builder.current(x), y);
}

// A part of x that such a region returns is a name of its storage, but not x: that is made again.
TEST_F(TraceBuilderTest, PartsAreNoNewNames) {
  TraceBuilder builder(registry);
  ValueId x = builder.argument("x", TensorType(DType::F32, {8}));
  ValueId y = writeInRegion(builder, x, [](TraceBuilder &inner, ValueId v) {
    return inner.op("slice", {v}, {{"start", 4}});
  });
  ValueId newest = builder.current(x);
  EXPECT_NE(newest, y);
  EXPECT_EQ(builder.trace().type(newest), builder.trace().type(x));
  builder.returnValues({newest});
  llvm::Expected<Trace> trace = std::move(builder).finish();
  EXPECT_TRUE(bool(trace)) << llvm::toString(trace.takeError());
}
