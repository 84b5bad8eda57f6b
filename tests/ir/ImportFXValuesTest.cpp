//===- ImportFXValuesTest.cpp - What becomes of values of ATen graphs ------===//
//
// Elements of tuples, numbers, and inputs that the graph writes.
//
//===----------------------------------------------------------------------===//

#include "FXOpsFixture.h"

using namespace rondo;
using namespace rondo::test;

namespace {

class ImportFXValuesTest : public FXOpsFixture {};

//===----------------------------------------------------------------------===//
// Tuples
//===----------------------------------------------------------------------===//

// An element is named by the node that takes it, counted from either end; one that nothing takes is
// unnamed; a second taker gets the same value.
TEST_F(ImportFXValuesTest, ElementsOfTuples) {
  FXText graph("forward");
  graph.input("x", "float32[3,2]");
  graph.node("parts", "aten.unbind.int", "%x", "(float32[2], float32[2], float32[2])");
  graph.node("last", "_operator.getitem", "%parts, -1", "float32[2]");
  graph.node("first", "_operator.getitem", "%parts, 0", "float32[2]");
  graph.node("again", "_operator.getitem", "%parts, 2", "float32[2]");
  graph.node("sum", "aten.add.Tensor", "%last, %again", "float32[2]");
  graph.outputs("%sum, %first");
  EXPECT_EQ(forwardText(graph),
            "%first: f32[2]@cuda:0, %0: f32[2]@cuda:0, %last: f32[2]@cuda:0 = unbind(%x)\n"
            "%sum: f32[2]@cuda:0 = add(%last, %last)\n");
}

// Elements of tuples in tuples are taken in two steps, and are named by the second.
TEST_F(ImportFXValuesTest, ElementsOfTuplesInTuples) {
  FXText graph("forward");
  graph.input("x", "float32[3,2]");
  graph.node("all", "mylib.lists.default", "%x",
             "(float32[2], (int64[1], None), unused, (float32[3], float32[4], unused))");
  graph.node("list", "_operator.getitem", "%all, -1", "(float32[3], float32[4], unused)");
  graph.node("fourth", "_operator.getitem", "%list, 1", "float32[4]");
  graph.node("first", "_operator.getitem", "%all, 0", "float32[2]");
  graph.node("third", "_operator.getitem", "%list, -3", "float32[3]");
  graph.outputs("%first, %third, %fourth");
  EXPECT_EQ(forwardText(graph),
            "%first: f32[2]@cuda:0, %0: i64[1]@cuda:0, %third: f32[3]@cuda:0, %fourth: "
            "f32[4]@cuda:0 = mylib.lists.default(%x) {elements = [0, 1, 4, 5]}\n");
}

// A taker's record has to be that of the list it takes, and no list is a value.
TEST_F(ImportFXValuesTest, ListsThatAreRecordedOtherwise) {
  auto errorOf = [&](const char *index, const char *recorded, const char *output) {
    FXText graph("forward");
    graph.input("x", "float32[3,2]");
    graph.node("all", "mylib.lists.default", "%x", "((float32[3], float32[4]), float32[2])");
    graph.node("list", "_operator.getitem", std::string("%all, ") + index, recorded);
    graph.outputs(output);
    llvm::Expected<TracePair> pair = importFX(fxProgram(graph), "t", registry_);
    return pair ? "" : llvm::toString(pair.takeError());
  };
  EXPECT_EQ(errorOf("0", "(float32[3], float32[4])", "%x"), "");
  EXPECT_NE(errorOf("0", "(float32[3])", "%x")
                .find("result is recorded as a tuple of 1, but element 0 of 'all' as a tuple of 2"),
            std::string::npos);
  EXPECT_NE(errorOf("0", "(float32[3], float32[5])", "%x").find("recorded as a tuple of 2"),
            std::string::npos);
  EXPECT_NE(errorOf("1", "(float32[3])", "%x").find("but element 1 of 'all' as f32[2]"),
            std::string::npos);
  EXPECT_NE(errorOf("0", "(float32[3], float32[4])", "%list").find("'list' is a tuple"),
            std::string::npos);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

// `item` gives a scalar, which pointwise ops take; numbers among the outputs become constants.
TEST_F(ImportFXValuesTest, Scalars) {
  FXText graph("forward");
  graph.input("x", "float32[]");
  graph.input("n", "int");
  graph.input("m", "int64[]");
  graph.node("i", "aten._local_scalar_dense.default", "%m", "int");
  graph.node("r", "aten.mul.Tensor", "%x, %i", "float32[]");
  graph.node("q", "aten.add.Tensor", "%r, %n", "float32[]");
  graph.node("t", "mylib.two.default", "%x", "(float32[], int=7)");
  graph.outputs("%q, null, %n, %i");
  EXPECT_EQ(forwardText(graph), "%i: i64 = item(%m)\n"
                                "%r: f32[]@cuda:0 = mul(%x, %i)\n"
                                "%q: f32[]@cuda:0 = add(%r, %n)\n"
                                "%0: f32[]@cuda:0, %1: i64 = mylib.two.default(%x)\n");
}

// A number that a mapped op gives is known: among the outputs it is a constant, and as an argument
// it is that number.
TEST_F(ImportFXValuesTest, KnownNumbers) {
  FXText graph("forward");
  for (const char *name : {"q", "k", "v"})
    graph.input(name, "float32[2,4,8,16]");
  graph.node("a", "aten._scaled_dot_product_flash_attention.default", "%q, %k, %v",
             "(float32[2,4,8,16], float32[2,4,8], None, None, int=8, int=8, int64[], int64[], "
             "float32[0])");
  graph.node("n", "_operator.getitem", "%a, 4", "int=8");
  graph.node("absent", "_operator.getitem", "%a, 2", "None");
  graph.node("x", "aten.add.Tensor", "%q, %n", "float32[2,4,8,16]");
  graph.node("y", "aten.clamp.default", "%q, %absent, %n", "float32[2,4,8,16]");
  graph.node("z", "mylib.f.default", "%n, [%n, %absent]", "float32[2]");
  graph.outputs("%n, %absent, %x, %y, %z");
  std::optional<TracePair> pair = import(fxProgram(graph));
  ASSERT_TRUE(pair);
  EXPECT_EQ(opsText(pair->forward()),
            "%0: f32[2, 4, 8, 16]@cuda:0, %1: f32[2, 4, 8]@cuda:0 = "
            "scaled_dot_product_attention(%q, %k, %v)\n"
            "%x: f32[2, 4, 8, 16]@cuda:0 = add(%q) {scalar = 8}\n"
            "%y: f32[2, 4, 8, 16]@cuda:0 = clamp(%q) {max = 8}\n"
            "%z: f32[2]@cuda:0 = mylib.f.default() {arg0 = 8, arg1 = [8, none]}\n"
            "%2: i64 = constant() {value = 8}\n");
  llvm::ArrayRef<ValueId> returned = pair->forward().terminator()->operands();
  ASSERT_EQ(returned.size(), 5u);
  EXPECT_TRUE(returned[0].isValid());
  EXPECT_FALSE(returned[1].isValid());
}

//===----------------------------------------------------------------------===//
// Mutation
//===----------------------------------------------------------------------===//

// What is returned or written and may alias a written input is cloned before the first write; the
// new value itself is not, and an input whose new value is itself is not written.
TEST_F(ImportFXValuesTest, AliasesOfMutatedInputsAreCloned) {
  FXText graph("forward");
  graph.input("a", "float32[2,2]", R"("role":"buffer","module_name":"a")");
  graph.input("b", "float32[2,2]");
  graph.input("c", "float32[2,2]");
  graph.input("same", "float32[2,2]");
  graph.node("view", "aten.t.default", "%a", "float32[2,2;1,2]");
  graph.node("row", "aten.select.int", "%a, 0, 0", "float32[2]");
  graph.node("wide", "aten.expand.default", "%row, [2, 2]", "float32[2,2;0,1]");
  graph.node("new", "aten.neg.default", "%c", "float32[2,2]");
  graph.outputs("%b, %a, %new, %same, %view, %view, %wide, %new, %same")
      .roles("a, b, c, same", "4, 5, 6, 7, 8", "");
  std::optional<TracePair> pair = import(fxProgram(graph));
  ASSERT_TRUE(pair);
  EXPECT_EQ(opsText(pair->forward()),
            "%view: f32[2, 2; 1, 2]@cuda:0 = permute(%a) {dims = [1, 0]}\n"
            "%row: f32[2]@cuda:0 = select(%a) {dim = 0, index = 0}\n"
            "%wide: f32[2, 2; 0, 1]@cuda:0 = expand(%row) {shape = [2, 2]}\n"
            "%new: f32[2, 2]@cuda:0 = neg(%c)\n"
            "%view.old: f32[2, 2; 1, 2]@cuda:0 = clone(%view) {contiguous = false}\n"
            "%wide.old: f32[2, 2]@cuda:0 = clone(%wide)\n"
            "%b.old: f32[2, 2]@cuda:0 = clone(%b)\n"
            "%a.old: f32[2, 2]@cuda:0 = clone(%a)\n"
            "%a.new: f32[2, 2]@cuda:0 = copy_(%a, %b.old)\n"
            "%b.new: f32[2, 2]@cuda:0 = copy_(%b, %a.old)\n"
            "%c.new: f32[2, 2]@cuda:0 = copy_(%c, %new)\n");
  std::string returned;
  for (ValueId value : pair->forward().terminator()->operands())
    returned += pair->forward().name(value).str() + " ";
  EXPECT_EQ(returned, "view.old view.old wide.old new same ");
}

// A mutated input that is saved is saved as it was: the clone is no buffer.
TEST_F(ImportFXValuesTest, SavedMutatedInput) {
  FXText forward("forward"), backward("backward");
  forward.input("a", "float32[2]", R"("role":"buffer","module_name":"a")");
  forward.node("new", "aten.neg.default", "%a", "float32[2]");
  forward.outputs("%new, %new, %a, %new").roles("a", "1", "2, 3");
  backward.input("a", "float32[2]");
  backward.input("new", "float32[2]");
  backward.input("tangents_1", "float32[2]");
  backward.outputs("%tangents_1");
  std::optional<TracePair> pair = import(fxProgram(forward, backward));
  ASSERT_TRUE(pair);
  ASSERT_EQ(pair->saved().size(), 2u);
  EXPECT_EQ(pair->forward().name(pair->saved()[0].forward), "a.old");
  EXPECT_EQ(pair->backward().name(pair->saved()[0].backward), "a");
  EXPECT_EQ(pair->backward().tags(pair->saved()[0].backward), ValueTags::None);
  EXPECT_EQ(pair->backward().valuePath(pair->saved()[0].backward), "");
  EXPECT_EQ(pair->forward().name(pair->saved()[1].forward), "new");
}

} // namespace
