//===- EffectsTest.cpp - Effects of ops with bodies -----------------------===//

#include "rondo/ir/Effects.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace rondo;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

namespace {
class EffectsTest : public ::testing::Test {
protected:
  EffectsTest() { llvm::cantFail(registerCoreOps(registry)); }

  /// The effects of the first op of a trace.
  Effects effectsOf(llvm::StringRef text) {
    llvm::Expected<Trace> trace = parseTrace(text, "test", registry);
    if (!trace) {
      ADD_FAILURE() << llvm::toString(trace.takeError());
      return {};
    }
    return getEffects(*trace, trace->ops().front());
  }

  OpRegistry registry;
};
} // namespace

// A region does to its operands what its ops do to its arguments, through views as well, and its
// results view what its body returns names of. What it makes itself is nobody else's.
TEST_F(EffectsTest, OfRegions) {
  Effects effects = effectsOf(R"(trace @f(%x: f32[8], %y: f32[8], %z: f32[8]) {
    %a: f32[4], %b: f32[8] = fused(%x, %y, %z) {
    ^(%x: f32[8], %y: f32[8], %z: f32[8]):
      %v: f32[4] = slice(%y) {end = 4}
      %a: f32[4] = zero_(%v)
      %b: f32[8] = exp(%x)
      %c: f32[8] = relu_(%b)
      return(%a, %c)
    }
    return()
  })");
  EXPECT_THAT(effects.reads, UnorderedElementsAre(0u));
  EXPECT_THAT(effects.writes, ElementsAre(1u));
  EXPECT_THAT(effects.viewedBy(0), ElementsAre(1u));
  EXPECT_THAT(effects.viewedBy(1), IsEmpty());
}

// A loop that carries its values in place: each result is the operand or what the step made.
TEST_F(EffectsTest, OfLoops) {
  Effects effects = effectsOf(R"(trace @f(%p: bool, %x: f32[8], %y: f32[8]) {
    %q: bool, %a: f32[8], %b: f32[8] = while(%p, %x, %y) {
    ^(%p: bool, %x: f32[8], %y: f32[8]):
      return(%p)
    } {
    ^(%p: bool, %x: f32[8], %y: f32[8]):
      %a: f32[8] = zero_(%x)
      %b: f32[8] = exp(%y)
      return(%p, %a, %b)
    }
    return()
  })");
  EXPECT_THAT(effects.writes, ElementsAre(1u));
  EXPECT_THAT(effects.viewedBy(1), ElementsAre(1u));
  EXPECT_THAT(effects.viewedBy(2), ElementsAre(2u));
}

// A loop that hands its values on from place to place: what it does to one place it does, some
// iterations later, to the operands that came from further up; a result may be any of them.
TEST_F(EffectsTest, OfLoopsThatExchangeValues) {
  Effects effects = effectsOf(R"(trace @f(%p: bool, %x: f32[8], %y: f32[8], %z: f32[8]) {
    %q: bool, %a: f32[8], %b: f32[8], %c: f32[8] = while(%p, %x, %y, %z) {
    ^(%p: bool, %x: f32[8], %y: f32[8], %z: f32[8]):
      return(%p)
    } {
    ^(%p: bool, %x: f32[8], %y: f32[8], %z: f32[8]):
      %x2: f32[8] = zero_(%x)
      %t: f32[8] = full() {dtype = f32, shape = [8], value = 1}
      return(%p, %y, %z, %t)
    }
    return()
  })");
  EXPECT_THAT(effects.writes, ElementsAre(1u, 2u, 3u));
  EXPECT_THAT(effects.viewedBy(1), UnorderedElementsAre(1u, 2u, 3u));
  EXPECT_THAT(effects.viewedBy(2), UnorderedElementsAre(2u, 3u));
  EXPECT_THAT(effects.viewedBy(3), UnorderedElementsAre(3u));
}
