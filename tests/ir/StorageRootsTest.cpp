//===- StorageRootsTest.cpp - Which values name the same storage? ---------===//

#include "rondo/ir/StorageRoots.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace rondo;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

namespace {
class StorageRootsTest : public ::testing::Test {
protected:
  StorageRootsTest() { llvm::cantFail(registerCoreOps(registry)); }

  Trace parse(llvm::StringRef text) {
    llvm::Expected<Trace> trace = parseTrace(text, "test", registry);
    if (trace)
      return std::move(*trace);
    ADD_FAILURE() << llvm::toString(trace.takeError());
    return Trace(registry);
  }

  /// The names of the roots of the top body's value `name`.
  static std::vector<std::string> rootsOf(const Trace &trace, llvm::StringRef name) {
    StorageRoots roots(trace);
    std::vector<std::string> names;
    for (uint32_t i = 0; i < trace.numValues(); ++i)
      if (trace.name(ValueId(i)) == name && trace.owner(ValueId(i)) == Trace::topBody())
        for (ValueId root : roots.roots(ValueId(i)))
          names.push_back(trace.name(root).str());
    return names;
  }

  OpRegistry registry;
};
} // namespace

// Views and new names have the root of what they view; fresh results and arguments are roots.
TEST_F(StorageRootsTest, OfViews) {
  Trace trace = parse(R"(trace @f(%x: f32[8]) {
    %v: f32[2, 4] = reshape(%x) {shape = [2, 4]}
    %w: f32[4, 2; 1, 4] = permute(%v) {dims = [1, 0]}
    %y: f32[4, 2; 1, 4] = zero_(%w)
    %z: f32[4, 2] = exp(%y)
    return(%z)
  })");
  EXPECT_THAT(rootsOf(trace, "x"), ElementsAre("x"));
  EXPECT_THAT(rootsOf(trace, "y"), ElementsAre("x"));
  EXPECT_THAT(rootsOf(trace, "z"), ElementsAre("z"));
}

// A result that may be any of several has all their roots.
TEST_F(StorageRootsTest, OfBranches) {
  Trace trace = parse(R"(trace @f(%p: bool, %x: f32[8], %y: f32[8]) {
    %z: f32[8] = if(%p, %x, %y) {
    ^(%x: f32[8], %y: f32[8]):
      return(%x)
    } {
    ^(%x: f32[8], %y: f32[8]):
      return(%y)
    }
    %v: f32[8] = detach(%z)
    return(%v)
  })");
  EXPECT_THAT(rootsOf(trace, "v"), UnorderedElementsAre("x", "y"));
}

// Results for which a body returns names of one storage that it made share a root, the first of
// them; those of other storages do not.
TEST_F(StorageRootsTest, OfResultsThatShareStorage) {
  Trace trace = parse(R"(trace @f(%x: f32[8]) {
    %a: f32[8], %b: f32[8], %c: f32[2, 4], %d: f32[8] = fused(%x) {
    ^(%x: f32[8]):
      %a: f32[8] = exp(%x)
      %b: f32[8] = neg(%x)
      %c: f32[2, 4] = reshape(%a) {shape = [2, 4]}
      return(%a, %b, %c, %x)
    }
    return(%a, %b, %c, %d)
  })");
  EXPECT_THAT(rootsOf(trace, "a"), ElementsAre("a"));
  EXPECT_THAT(rootsOf(trace, "b"), ElementsAre("b"));
  EXPECT_THAT(rootsOf(trace, "c"), ElementsAre("a"));
  EXPECT_THAT(rootsOf(trace, "d"), ElementsAre("x"));
}

// The same through two levels of bodies, and for branches, where one of them suffices.
TEST_F(StorageRootsTest, OfResultsThatShareStorageInNestedBodies) {
  Trace trace = parse(R"(trace @f(%p: bool, %x: f32[8]) {
    %a: f32[8], %b: f32[8] = if(%p, %x) {
    ^(%x: f32[8]):
      %a: f32[8], %b: f32[8] = fused(%x) {
      ^(%x: f32[8]):
        %a: f32[8] = exp(%x)
        return(%a, %a)
      }
      return(%a, %b)
    } {
    ^(%x: f32[8]):
      %a: f32[8] = exp(%x)
      %b: f32[8] = neg(%x)
      return(%a, %b)
    }
    return(%a, %b)
  })");
  EXPECT_THAT(rootsOf(trace, "a"), ElementsAre("a"));
  EXPECT_THAT(rootsOf(trace, "b"), ElementsAre("a"));
}
