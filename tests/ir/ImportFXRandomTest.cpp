//===- ImportFXRandomTest.cpp - Generators and attention from ATen ----------===//

#include "FXOpsFixture.h"

#include "llvm/ADT/SmallVector.h"

using namespace rondo;
using namespace rondo::test;

namespace {

class ImportFXRandomTest : public FXOpsFixture {};

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

// Every random op without a generator draws from one state at offsets of its own.
TEST_F(ImportFXRandomTest, RandomOps) {
  FXText graph("forward");
  graph.input("x", "float32[2,3]");
  graph.node("u", "aten.rand.default", "[4]", "float32[4]", madeKeywords);
  graph.node("ul", "aten.rand_like.default", "%x", "float32[2,3]");
  graph.node("n", "aten.randn.default", "[5]", "float32[5]");
  graph.node("nl", "aten.randn_like.default", "%x", "float32[2,3]");
  graph.node("i", "aten.randint.default", "9, [7]", "int64[7]");
  graph.node("j", "aten.randint.low", "-1, 9, [8]", "int64[8]");
  graph.node("b", "aten.bernoulli.default", "%x", "float32[2,3]");
  graph.node("m", "aten.multinomial.default", "%x, 2, true", "int64[2,2]");
  graph.node("d", "aten.native_dropout.default", "%x, 0.5, null", "(float32[2,3], bool[2,3])");
  graph.outputs("%m");
  EXPECT_EQ(
      forwardText(graph),
      "%rng_state: rng@cuda:0 = generator_read() {device = cuda:0}\n"
      "%u: f32[4]@cuda:0 = uniform(%rng_state) {dtype = f32, offset = 0, shape = [4]}\n"
      "%ul: f32[2, 3]@cuda:0 = uniform(%rng_state) {dtype = f32, offset = 4, shape = [2, 3]}\n"
      "%n: f32[5]@cuda:0 = normal(%rng_state) {dtype = f32, offset = 10, shape = [5]}\n"
      "%nl: f32[2, 3]@cuda:0 = normal(%rng_state) {dtype = f32, offset = 15, shape = [2, 3]}\n"
      "%i: i64[7]@cuda:0 = randint(%rng_state) {dtype = i64, high = 9, offset = 21, shape = [7]}\n"
      "%j: i64[8]@cuda:0 = randint(%rng_state) {dtype = i64, high = 9, low = -1, offset = 28, "
      "shape = [8]}\n"
      "%b: f32[2, 3]@cuda:0 = bernoulli(%x, %rng_state) {offset = 36}\n"
      "%m: i64[2, 2]@cuda:0 = multinomial(%x, %rng_state) {n = 2, offset = 42, replacement = "
      "true}\n"
      "%0: f32[2, 3]@cuda:0, %1: bool[2, 3]@cuda:0 = dropout(%x, %rng_state) {offset = 46, p = "
      "0.5}\n"
      "generator_advance() {count = 52, device = cuda:0}\n");
}

// Each device has its own default generator.
TEST_F(ImportFXRandomTest, OneGeneratorForEachDevice) {
  FXText graph("forward");
  graph.node("a", "aten.rand.default", "[4]", "float32[4]@cuda:1");
  graph.node("b", "aten.rand.default", "[5]", "float32[5]@cpu");
  graph.node("c", "aten.rand.default", "[6]", "float32[6]@cuda:1");
  graph.outputs("%a, %b, %c");
  EXPECT_EQ(forwardText(graph),
            "%rng_state: rng@cuda:1 = generator_read() {device = cuda:1}\n"
            "%a: f32[4]@cuda:1 = uniform(%rng_state) {dtype = f32, offset = 0, shape = [4]}\n"
            "%rng_state_1: rng = generator_read() {device = host, generator = \"default.host\"}\n"
            "%b: f32[5] = uniform(%rng_state_1) {dtype = f32, offset = 0, shape = [5]}\n"
            "%c: f32[6]@cuda:1 = uniform(%rng_state) {dtype = f32, offset = 4, shape = [6]}\n"
            "generator_advance() {count = 10, device = cuda:1}\n"
            "generator_advance() {count = 5, device = host, generator = \"default.host\"}\n");
}

// Offsets that no int64 can hold are ATen's business.
TEST_F(ImportFXRandomTest, TooManyRandomNumbers) {
  FXText graph("forward");
  for (const char *name : {"a", "b"})
    graph.node(name, "aten.rand.default", "[4611686018427387904]",
               "float8_e5m2[4611686018427387904]");
  graph.outputs("%a, %b");
  std::optional<TracePair> pair = import(fxProgram(graph));
  ASSERT_TRUE(pair);
  std::string names;
  forEachOp(pair->forward(), [&](const Op &op) { names += op.name().str() + " "; });
  EXPECT_EQ(names, "generator_read uniform aten.rand.default generator_advance return ");
}

// A state that nothing draws from, in a graph without tensors, is on the host.
TEST_F(ImportFXRandomTest, StateWithoutTensors) {
  FXText graph("forward");
  graph.input("fwd_rng_state_0", "Generator");
  graph.outputs("");
  std::optional<TracePair> pair = import(fxProgram(graph));
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->forward().type(pair->forward().arguments()[0]).str(), "rng");
}

// A state that is given is drawn from at offsets of its own; the inner op is what runs, and what it
// has no record of is inferred. The state lives where the tensors are.
TEST_F(ImportFXRandomTest, GivenStates) {
  FXText forward("forward"), backward("backward");
  forward.input("x", "float32[2,3]@cuda:1");
  forward.input("fwd_rng_state_0", "Generator");
  forward.input("fwd_rng_state_7", "Generator", R"("device":"cpu")");
  for (const char *name : {"a", "b"})
    forward.node(name, "torch.ops.higher_order.graphsafe_run_with_rng_state",
                 R"({"repr":"aten.native_dropout.default"}, %x, 0.5, true)",
                 "(float32[2,3]@cuda:1)", R"("rng_state":%fwd_rng_state_0)");
  forward.node("y", "_operator.getitem", "%a, 0", "float32[2,3]@cuda:1");
  forward.outputs("%y, %x").roles("", "0", "1");
  backward.input("x", "float32[2,3]@cuda:1");
  backward.input("tangents_1", "float32[2,3]@cuda:1");
  backward.input("bwd_rng_state_7", "Generator");
  backward.input("bwd_rng_state_0", "Generator");
  backward.node("a", "torch.ops.higher_order.graphsafe_run_with_rng_state",
                R"({"repr":"aten.native_dropout.default"}, %x, 0.5, true)",
                "(unused, bool[2,3]@cuda:1)", R"("rng_state":%bwd_rng_state_0)");
  backward.node("mask", "_operator.getitem", "%a, 1", "bool[2,3]@cuda:1");
  backward.node("g", "aten.native_dropout_backward.default", "%tangents_1, %mask, 2.0",
                "float32[2,3]@cuda:1");
  backward.outputs("%g");
  std::optional<TracePair> pair = import(fxProgram(forward, backward));
  ASSERT_TRUE(pair);
  EXPECT_EQ(opsText(pair->forward()), "%y: f32[2, 3]@cuda:1, %0: bool[2, 3]@cuda:1 = dropout(%x, "
                                      "%fwd_rng_state_0) {offset = 0, p = 0.5}\n"
                                      "%1: f32[2, 3]@cuda:1, %2: bool[2, 3]@cuda:1 = dropout(%x, "
                                      "%fwd_rng_state_0) {offset = 6, p = 0.5}\n");
  EXPECT_EQ(opsText(pair->backward()),
            "%0: f32[2, 3]@cuda:1, %mask: bool[2, 3]@cuda:1 = dropout(%x, %bwd_rng_state_0) "
            "{offset = 0, p = 0.5}\n"
            "%g: f32[2, 3]@cuda:1 = dropout_backward(%tangents_1, %mask) {scale = 2.0}\n");
  std::string links;
  for (const SavedLink &link : pair->saved())
    links += (pair->forward().name(link.forward) + ":" + pair->forward().type(link.forward).str() +
              " " + pair->backward().name(link.backward) + "\n")
                 .str();
  EXPECT_EQ(links, "x:f32[2, 3]@cuda:1 x\n"
                   "fwd_rng_state_7:rng bwd_rng_state_7\n"
                   "fwd_rng_state_0:rng@cuda:1 bwd_rng_state_0\n");
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

constexpr const char *batch = "float32[2,4,8,16]";

/// Adds one attention op, its inputs, and the two results that count.
void addAttention(FXText &graph, const std::string &op, const std::string &args,
                  const std::string &elements, const std::string &sums) {
  for (const char *name : {"q", "k", "v"})
    graph.input(name, batch);
  graph.input("bias", "float32[8,8]");
  graph.node("attention", op, args, elements);
  graph.node("out", "_operator.getitem", "%attention, 0", batch);
  graph.node("sums", "_operator.getitem", "%attention, 1", sums);
}

/// `noise`: a random op before it draws ten numbers.
FXText efficientForward(const std::string &dropout, bool noise = false) {
  FXText graph("forward");
  if (noise)
    graph.node("noise", "aten.rand.default", "[10]", "float32[10]");
  addAttention(graph, "aten._scaled_dot_product_efficient_attention.default",
               "%q, %k, %v, %bias, true, " + dropout + ", false",
               "(float32[2,4,8,16], float32[2,4,8], int64[], int64[])", "float32[2,4,8]");
  graph.node("seed", "_operator.getitem", "%attention, 2", "int64[]");
  graph.node("step", "_operator.getitem", "%attention, 3", "int64[]");
  return graph.outputs("%out, %q, %k, %v, %bias, %out, %sums, %seed, %step")
      .roles("", "0", "1, 2, 3, 4, 5, 6, 7, 8");
}

FXText efficientBackward(const std::string &dropout, const std::string &wanted) {
  FXText graph("backward");
  for (const char *name : {"q", "k", "v"})
    graph.input(name, batch);
  graph.input("bias", "float32[8,8]");
  graph.input("out", batch);
  graph.input("sums", "float32[2,4,8]");
  graph.input("seed", "int64[]");
  graph.input("step", "int64[]");
  graph.input("tangents_1", batch);
  graph.node("b", "aten._scaled_dot_product_efficient_attention_backward.default",
             "%tangents_1, %q, %k, %v, %bias, %out, %sums, %seed, %step, " + dropout + ", " +
                 wanted + ", false",
             wanted == "[true, true, true, true]"
                 ? "(float32[2,4,8,16], float32[2,4,8,16], float32[2,4,8,16], float32[8,8])"
                 : "(float32[2,4,8,16], float32[2,4,8,16], float32[2,4,8,16], None)",
             R"("scale":0.5)");
  graph.node("dq", "_operator.getitem", "%b, 0", batch);
  return graph.outputs("%dq, null, null, null");
}

// Without dropout the seeds go, with the links that saved them.
TEST_F(ImportFXRandomTest, AttentionWithoutDropout) {
  std::optional<TracePair> pair = import(
      fxProgram(efficientForward("0.0"), efficientBackward("0.0", "[true, true, true, false]")));
  ASSERT_TRUE(pair);
  EXPECT_EQ(opsText(pair->forward()), "%out: f32[2, 4, 8, 16]@cuda:0, %sums: f32[2, 4, 8]@cuda:0 = "
                                      "scaled_dot_product_attention(%q, %k, %v, %bias)\n");
  EXPECT_EQ(opsText(pair->backward()),
            "%dq: f32[2, 4, 8, 16]@cuda:0, %0: f32[2, 4, 8, 16]@cuda:0, %1: f32[2, 4, 8, "
            "16]@cuda:0 = scaled_dot_product_attention_backward(%tangents_1, %q, %k, %v, %out, "
            "%sums, %bias) {scale = 0.5}\n");
  EXPECT_EQ(pair->saved().size(), 6u);
}

// With dropout the backward draws the forward's numbers again, from the forward's state.
TEST_F(ImportFXRandomTest, AttentionWithDropout) {
  std::optional<TracePair> pair =
      import(fxProgram(efficientForward("0.25", /*noise=*/true),
                       efficientBackward("0.25", "[true, true, true, true]")));
  ASSERT_TRUE(pair);
  EXPECT_EQ(
      opsText(pair->forward()),
      "%rng_state: rng@cuda:0 = generator_read() {device = cuda:0}\n"
      "%noise: f32[10]@cuda:0 = uniform(%rng_state) {dtype = f32, offset = 0, shape = [10]}\n"
      "%out: f32[2, 4, 8, 16]@cuda:0, %sums: f32[2, 4, 8]@cuda:0 = "
      "scaled_dot_product_attention(%q, %k, %v, %bias, %rng_state) {dropout_p = 0.25, offset = "
      "10}\n"
      "generator_advance() {count = 522, device = cuda:0}\n");
  EXPECT_EQ(
      opsText(pair->backward()),
      "%dq: f32[2, 4, 8, 16]@cuda:0, %0: f32[2, 4, 8, 16]@cuda:0, %1: f32[2, 4, 8, "
      "16]@cuda:0, %2: f32[8, 8]@cuda:0 = scaled_dot_product_attention_backward(%tangents_1, %q, "
      "%k, %v, %out, %sums, %bias, %rng_state) {dropout_p = 0.25, mask_grad = true, offset = 10, "
      "scale = 0.5}\n");
  ASSERT_EQ(pair->saved().size(), 7u);
  EXPECT_EQ(pair->forward().name(pair->saved().back().forward), "rng_state");
  EXPECT_EQ(pair->backward().name(pair->saved().back().backward), "rng_state");
}

// Two backwards that draw from one state of the forward take it once.
TEST_F(ImportFXRandomTest, SavedStatesAreShared) {
  FXText backward = efficientBackward("0.25", "[true, true, true, false]");
  backward.node("b2", "aten._scaled_dot_product_efficient_attention_backward.default",
                "%tangents_1, %q, %k, %v, %bias, %out, %sums, %seed, %step, 0.25, [true, true, "
                "true, false]",
                "(float32[2,4,8,16], float32[2,4,8,16], float32[2,4,8,16], None)");
  std::optional<TracePair> pair = import(fxProgram(efficientForward("0.25"), backward));
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->saved().size(), 7u);
  const Trace &trace = pair->backward();
  EXPECT_EQ(trace.op(trace.ops()[0]).operands().back(), trace.arguments().back());
  EXPECT_EQ(trace.op(trace.ops()[1]).operands().back(), trace.arguments().back());
}

// Recomputed in the backward, attention and its backward draw from one state there.
TEST_F(ImportFXRandomTest, RecomputedAttentionWithDropout) {
  FXText forward("forward"), backward("backward");
  forward.input("q", batch);
  forward.input("fwd_rng_state_0", "Generator");
  forward.outputs("%q, %q").roles("", "0", "1");
  backward.input("q", batch);
  backward.input("tangents_1", batch);
  backward.input("bwd_rng_state_0", "Generator");
  backward.node(
      "attention", "torch.ops.higher_order.graphsafe_run_with_rng_state",
      R"({"repr":"aten._scaled_dot_product_efficient_attention.default"}, %q, %q, %q, null, true, 0.5)",
      "(float32[2,4,8,16], float32[2,4,8], int64[], int64[])",
      R"("scale":0.5,"rng_state":%bwd_rng_state_0)");
  backward.node("out", "_operator.getitem", "%attention, 0", batch);
  backward.node("sums", "_operator.getitem", "%attention, 1", "float32[2,4,8]");
  backward.node("seed", "_operator.getitem", "%attention, 2", "int64[]");
  backward.node("step", "_operator.getitem", "%attention, 3", "int64[]");
  backward.node(
      "b", "aten._scaled_dot_product_efficient_attention_backward.default",
      "%tangents_1, %q, %q, %q, null, %out, %sums, %seed, %step, 0.5, [true, true, true, false]",
      "(float32[2,4,8,16], float32[2,4,8,16], float32[2,4,8,16], None)");
  backward.outputs("null");
  std::optional<TracePair> pair = import(fxProgram(forward, backward));
  ASSERT_TRUE(pair);
  const Trace &trace = pair->backward();
  ASSERT_EQ(trace.ops().size(), 3u);
  for (unsigned i : {0u, 1u}) {
    const Op &op = trace.op(trace.ops()[i]);
    EXPECT_FALSE(op.spec().opaque);
    EXPECT_EQ(op.operands().back(), trace.arguments().back());
    EXPECT_EQ(op.attribute("scale") != nullptr, i == 0);
    EXPECT_EQ(op.attribute("offset")->asInt(), 0);
  }
  EXPECT_EQ(pair->saved().size(), 2u);
}

// A seed that the user gets needs ATen's op, and then the backward takes the seeds as they are.
TEST_F(ImportFXRandomTest, SeedsWithOtherUsesKeepTheOpOpaque) {
  FXText forward = efficientForward("0.0");
  forward.outputs("%seed, %q, %k, %v, %bias, %out, %sums, %seed, %step")
      .roles("", "0", "1, 2, 3, 4, 5, 6, 7, 8");
  std::optional<TracePair> pair =
      import(fxProgram(forward, efficientBackward("0.0", "[true, true, true, false]")));
  ASSERT_TRUE(pair);
  const Trace &trace = pair->forward();
  EXPECT_EQ(trace.op(trace.ops()[0]).name(),
            "aten._scaled_dot_product_efficient_attention.default");
  EXPECT_TRUE(trace.op(trace.ops()[0]).spec().opaque);
  EXPECT_EQ(trace.op(trace.ops()[0]).results().size(), 4u);
  EXPECT_EQ(pair->saved().size(), 8u);
  const Trace &backward = pair->backward();
  EXPECT_EQ(backward.op(backward.ops()[0]).name(), "scaled_dot_product_attention_backward");
}

// The same if the backward is of a form that is not known, with dropout as well.
TEST_F(ImportFXRandomTest, OpaqueBackwardKeepsTheForwardOpaque) {
  std::optional<TracePair> pair =
      import(fxProgram(efficientForward("0.25"), efficientBackward("0.25", "true")));
  ASSERT_TRUE(pair);
  for (const Trace *trace : {&pair->forward(), &pair->backward()}) {
    ASSERT_EQ(trace->ops().size(), 2u);
    EXPECT_TRUE(trace->op(trace->ops()[0]).spec().opaque);
  }
  EXPECT_EQ(pair->saved().size(), 8u);
}

// A backward with dropout whose seed is no attention's cannot draw the numbers again.
TEST_F(ImportFXRandomTest, SeedsFromElsewhere) {
  FXText forward("forward");
  for (const char *name : {"q", "k", "v"})
    forward.input(name, batch);
  forward.input("bias", "float32[8,8]");
  forward.input("sums", "float32[2,4,8]");
  forward.input("seed", "int64[]");
  forward.outputs("%q, %q, %k, %v, %bias, %q, %sums, %seed, %seed")
      .roles("", "0", "1, 2, 3, 4, 5, 6, 7, 8");
  FXText backward = efficientBackward("0.25", "[true, true, true, false]");
  backward.outputs("%dq, null, null, null, null, null");
  std::optional<TracePair> pair = import(fxProgram(forward, backward));
  ASSERT_TRUE(pair);
  EXPECT_TRUE(pair->backward().op(pair->backward().ops()[0]).spec().opaque);
  // One value saved twice has two links.
  EXPECT_EQ(pair->saved().size(), 8u);
  EXPECT_EQ(pair->saved()[6].forward, pair->saved()[7].forward);
}

// The other implementations differ in the order of arguments and in what else they give.
TEST_F(ImportFXRandomTest, OtherImplementationsOfAttention) {
  FXText cudnn("forward"), flash("forward"), debug("forward");
  addAttention(
      cudnn, "aten._scaled_dot_product_cudnn_attention.default",
      "%q, %k, %v, null, true, 0.0, true, false",
      "(float32[2,4,8,16], float32[2,4,8,1], None, None, int=8, int=8, int64[], int64[], None)",
      "float32[2,4,8,1]");
  const char *flashElements =
      "(float32[2,4,8,16], float32[2,4,8], None, None, int=8, int=8, int64[], int64[], float32[0])";
  addAttention(flash, "aten._scaled_dot_product_flash_attention.default", "%q, %k, %v, 0.0, true",
               flashElements, "float32[2,4,8]");
  addAttention(debug, "aten._scaled_dot_product_flash_attention.default",
               "%q, %k, %v, 0.0, true, true", flashElements, "float32[2,4,8]");
  for (auto [graph, seed, op, args] :
       {std::tuple(&cudnn, 6, "cudnn",
                   "%out, %sums, %seed, %seed, null, null, null, 8, 8, 0.0, true"),
        std::tuple(&flash, 6, "flash", "%out, %sums, null, null, 8, 8, 0.0, true, %seed, %seed")}) {
    SCOPED_TRACE(op);
    graph->node("seed", "_operator.getitem", "%attention, " + std::to_string(seed), "int64[]");
    graph->node("b", "aten._scaled_dot_product_" + std::string(op) + "_attention_backward.default",
                "%out, %q, %k, %v, " + std::string(args),
                "(float32[2,4,8,16], float32[2,4,8,16], float32[2,4,8,16])");
    graph->outputs("%out");
    std::optional<TracePair> pair = import(fxProgram(*graph));
    ASSERT_TRUE(pair);
    const Trace &trace = pair->forward();
    ASSERT_EQ(trace.ops().size(), 3u);
    EXPECT_EQ(trace.op(trace.ops()[0]).name(), "scaled_dot_product_attention");
    EXPECT_EQ(trace.op(trace.ops()[0]).attribute("logsumexp_shape") != nullptr, graph == &cudnn);
    EXPECT_EQ(trace.op(trace.ops()[1]).name(), "scaled_dot_product_attention_backward");
    EXPECT_EQ(trace.op(trace.ops()[1]).attribute("causal")->str(), "true");
  }
  debug.outputs("%out");
  std::optional<TracePair> pair = import(fxProgram(debug));
  ASSERT_TRUE(pair);
  EXPECT_TRUE(pair->forward().op(pair->forward().ops()[0]).spec().opaque);
}
} // namespace
