//===- TracePairTest.cpp - Saved links --------------------------------------===//

#include "rondo/ir/TracePair.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"
#include "rondo/ir/Verifier.h"

#include <gtest/gtest.h>

using namespace rondo;

namespace {

class TracePairTest : public ::testing::Test {
protected:
  TracePairTest() { llvm::cantFail(registerCoreOps(registry)); }

  TracePair parse(llvm::StringRef text) {
    return llvm::cantFail(parsePair(text, "test", registry));
  }
  static std::string textOf(const TracePair &pair) {
    std::string text;
    llvm::raw_string_ostream os(text);
    print(pair, os);
    return os.str();
  }
  static void expectSound(const TracePair &pair) {
    llvm::Error error = verify(pair);
    EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
  }

  OpRegistry registry;
};

const char *const source = "pair @p {\n"
                           "  forward @f(%x: f32[4]) {\n"
                           "    %a: f32[4] = exp(%x)\n"
                           "    return(%a, %x saved #3)\n"
                           "  }\n"
                           "  backward @b(%x: f32[4] saved #3, %g: f32[4]) {\n"
                           "    return(%g)\n"
                           "  }\n"
                           "}\n";

// Saving a value appends it to the forward's return and gives the backward an argument; ids are not
// used again.
TEST_F(TracePairTest, AddSaved) {
  TracePair pair = parse(source);
  ValueId a = pair.forward().op(pair.forward().ops()[0]).result();
  SavedId id = pair.addSaved(a);
  expectSound(pair);
  EXPECT_EQ(id, SavedId(4));
  ASSERT_EQ(pair.saved().size(), 2u);
  std::optional<SavedLink> link = pair.findSaved(id);
  ASSERT_TRUE(link);
  EXPECT_EQ(link->forward, a);
  EXPECT_EQ(pair.backward().name(link->backward), "a");
  EXPECT_EQ(pair.backward().type(link->backward), pair.forward().type(a));
}

// Dropping a link takes both ends away, and leaves the other links and the user's results where
// they are.
TEST_F(TracePairTest, DropSaved) {
  TracePair pair = parse(source);
  SavedId id = pair.addSaved(pair.forward().op(pair.forward().ops()[0]).result());
  pair.dropSaved(SavedId(3));
  expectSound(pair);
  ASSERT_EQ(pair.saved().size(), 1u);
  EXPECT_EQ(pair.saved().front().id, id);
  EXPECT_FALSE(pair.findSaved(SavedId(3)));
  EXPECT_EQ(pair.backward().arguments().size(), 2u);
  pair.dropSaved(id);
  expectSound(pair);
  EXPECT_TRUE(pair.saved().empty());
  EXPECT_EQ(pair.forward().terminator()->operands().size(), 1u);
}

// A pair without backward saves nothing.
TEST_F(TracePairTest, NoBackward) {
  TracePair pair = parse("trace @f(%x: f32[4]) {\n  return(%x)\n}\n");
  EXPECT_FALSE(pair.hasBackward());
  EXPECT_TRUE(pair.saved().empty());
  EXPECT_FALSE(pair.findSaved(SavedId(0)));
}

// A clone prints the same, and is its own: changing it leaves the original alone.
TEST_F(TracePairTest, Clone) {
  TracePair pair = parse(source);
  TracePair copy = pair.clone();
  EXPECT_EQ(textOf(copy), textOf(pair));
  EXPECT_EQ(copy.addSaved(copy.forward().arguments()[0], "again"), SavedId(4));
  expectSound(copy);
  EXPECT_NE(textOf(copy), textOf(pair));
  EXPECT_EQ(pair.saved().size(), 1u);
}

} // namespace
