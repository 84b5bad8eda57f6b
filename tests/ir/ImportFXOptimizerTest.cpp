//===- ImportFXOptimizerTest.cpp - Loss scaling and fused optimisers ------===//
//
// What becomes of the calls that PyTorch's GradScaler and fused optimisers make, in place and as
// AOTAutograd gives them: as new values of what they write.
//
//===----------------------------------------------------------------------===//

#include "FXOpsFixture.h"

#include <gmock/gmock.h>

using namespace rondo;
using namespace rondo::test;
using testing::HasSubstr;
using testing::Not;

namespace {

class ImportFXOptimizerTest : public FXOpsFixture {
protected:
  /// The ops of a forward without devices, which are all `cuda:0`.
  std::string text(const FXText &forward) {
    std::string text = forwardText(forward);
    for (size_t at; (at = text.find("@cuda:0")) != std::string::npos;)
      text.erase(at, 7);
    return text;
  }
  std::string errorOf(const FXText &forward) {
    llvm::Expected<TracePair> pair = importFX(fxProgram(forward), "test.json", registry_);
    return pair ? "" : llvm::toString(pair.takeError());
  }
};

/// States of two parameters, a step count, a rate and what loss scaling needs.
FXText graphWithStates() {
  FXText graph("forward");
  for (const char *name : {"p", "g", "m", "v"})
    graph.input(name, "float32[4]");
  for (const char *name : {"q", "h", "n", "w"})
    graph.input(name, "float32[2,3]");
  for (const char *name : {"step", "lr", "scale", "found", "inverse"})
    graph.input(name, "float32[]");
  graph.input("tracker", "int32[]");
  return graph;
}

constexpr const char *adamNumbers =
    R"("beta1":0.9,"beta2":0.99,"weight_decay":0.5,"eps":1e-06,"amsgrad":false)";
constexpr const char *one = "[%p], [%g], [%m], [%v], [], [%step]";

std::string adamKeywords(const std::string &further) {
  return std::string(adamNumbers) + "," + further;
}

} // namespace

//===----------------------------------------------------------------------===//
// In place
//===----------------------------------------------------------------------===//

// Each parameter has its own update; later uses are of what it wrote.
TEST_F(ImportFXOptimizerTest, AdamInPlace) {
  FXText graph = graphWithStates();
  graph.node("r", "aten._fused_adam_.default",
             "[%p, %q], [%g, %h], [%m, %n], [%v, %w], [], [%step, %step]", "None",
             adamKeywords(R"("lr":0.1,"maximize":false)"));
  graph.node("y", "aten.neg.default", "%q", "float32[2,3]");
  graph.outputs("%y, %p");
  EXPECT_EQ(text(graph),
            "%0: f32[4], %1: f32[4], %2: f32[4] = adam_(%p, %g, %m, %v, %step) "
            "{beta2 = 0.99, eps = 1e-06, lr = 0.1, weight_decay = 0.5}\n"
            "%3: f32[2, 3], %4: f32[2, 3], %5: f32[2, 3] = adam_(%q, %h, %n, %w, %step) "
            "{beta2 = 0.99, eps = 1e-06, lr = 0.1, weight_decay = 0.5}\n"
            "%y: f32[2, 3] = neg(%3)\n");
}

// The rate may be a tensor; AdamW decouples its decay; what is maximised has its gradient negated.
TEST_F(ImportFXOptimizerTest, AdamWOfARateInATensor) {
  FXText graph = graphWithStates();
  graph.node("r", "aten._fused_adamw_.tensor_lr", one, "None",
             adamKeywords(R"("lr":%lr,"maximize":true)"));
  graph.outputs("%p");
  EXPECT_EQ(text(graph), "%0: f32[4] = neg(%g)\n"
                         "%1: f32[4], %2: f32[4], %3: f32[4] = adam_(%p, %0, %m, %v, %step, %lr) "
                         "{beta2 = 0.99, decoupled = true, eps = 1e-06, weight_decay = 0.5}\n");
}

// `found_inf` is the update's operand; gradients are divided by `grad_scale` in their memory, by 1
// where the step is skipped.
TEST_F(ImportFXOptimizerTest, AdamOfScaledGradients) {
  FXText graph = graphWithStates();
  graph.node("r", "aten._fused_adam_.default", one, "None",
             adamKeywords(R"("lr":0.1,"maximize":false,"grad_scale":%scale,"found_inf":%found)"));
  graph.outputs("%g");
  EXPECT_EQ(text(graph), "%0: bool[] = ne(%found) {scalar = 0.0}\n"
                         "%1: f32[] = masked_fill(%scale, %0) {scalar = 1.0}\n"
                         "%2: f32[4] = div_(%g, %1)\n"
                         "%3: f32[4], %4: f32[4], %5: f32[4] = adam_(%p, %2, %m, %v, %step, none, "
                         "%found) {beta2 = 0.99, eps = 1e-06, lr = 0.1, weight_decay = 0.5}\n");
  // Without the flag nothing is skipped.
  graph = graphWithStates();
  graph.node("r", "aten._fused_adam_.default", one, "None",
             adamKeywords(R"("lr":0.1,"maximize":false,"grad_scale":%scale)"));
  graph.outputs("%g");
  EXPECT_THAT(text(graph), testing::AllOf(HasSubstr("%0: f32[4] = div_(%g, %scale)\n"),
                                          HasSubstr("adam_(%p, %0, %m, %v, %step) ")));
}

// Gradients of half precision are divided in f32, as the update takes them; their memory gets them
// rounded.
TEST_F(ImportFXOptimizerTest, ScaledGradientsOfHalfPrecision) {
  FXText graph("forward");
  graph.input("p", "bfloat16[4]").input("g", "bfloat16[4]").input("scale", "float32[]");
  graph.node("r", "aten._fused_sgd_.default", "[%p], [%g], []", "None",
             R"("weight_decay":0.0,"momentum":0.0,"lr":0.1,"dampening":0.0,"nesterov":false,)"
             R"("maximize":false,"is_first_step":false,"grad_scale":%scale)");
  graph.outputs("%p, %g");
  EXPECT_EQ(text(graph), "%0: f32[4] = cast(%g) {dtype = f32}\n"
                         "%1: f32[4] = div(%0, %scale)\n"
                         "%2: bf16[4] = copy_(%g, %1)\n"
                         "%3: bf16[4] = sgd_(%p, %1) {lr = 0.1}\n");
}

static std::string sgdKeywords(const std::string &further) {
  return R"("weight_decay":0.5,"lr":0.1,"maximize":false,)" + further;
}

// SGD with a momentum buffer and without; in the first step the buffer becomes the gradient,
// whatever it held and whatever the dampening, unless the step is skipped.
TEST_F(ImportFXOptimizerTest, SGDInPlace) {
  struct {
    const char *buffers;
    std::string keywords;
    const char *becomes;
  } const forms[] = {
      {"[]", R"("momentum":0,"dampening":0.0,"nesterov":false,"is_first_step":true)",
       "%0: f32[4] = sgd_(%p, %g) {lr = 0.1, momentum = 0, weight_decay = 0.5}\n"},
      {"[%m]", R"("momentum":0.9,"dampening":0.1,"nesterov":true,"is_first_step":false)",
       "%0: f32[4], %1: f32[4] = sgd_(%p, %g, %m) {dampening = 0.1, lr = 0.1, momentum = 0.9, "
       "nesterov = true, weight_decay = 0.5}\n"},
      {"[%m]", R"("momentum":0.9,"dampening":0.1,"nesterov":false,"is_first_step":true)",
       "%0: f32[4] = zero_(%m)\n"
       "%1: f32[4], %2: f32[4] = sgd_(%p, %g, %0) {lr = 0.1, momentum = 0.9, weight_decay = "
       "0.5}\n"},
      {"[%m]",
       R"("momentum":0.9,"dampening":0.1,"nesterov":false,"is_first_step":true,"found_inf":%found)",
       "%0: bool[] = eq(%found) {scalar = 0.0}\n"
       "%1: f32[4] = masked_fill_(%m, %0) {scalar = 0.0}\n"
       "%2: f32[4], %3: f32[4] = sgd_(%p, %g, %1, none, %found) {lr = 0.1, momentum = 0.9, "
       "weight_decay = 0.5}\n"},
  };
  for (const auto &form : forms) {
    FXText graph = graphWithStates();
    graph.node("r", "aten._fused_sgd_.default", std::string("[%p], [%g], ") + form.buffers, "None",
               sgdKeywords(form.keywords));
    graph.outputs("%p");
    EXPECT_EQ(text(graph), form.becomes);
  }
}

// The flag is looked for in all gradients by one op; then the scale follows it.
TEST_F(ImportFXOptimizerTest, GradScalerInPlace) {
  FXText graph = graphWithStates();
  graph.node("r", "aten._amp_foreach_non_finite_check_and_unscale_.default",
             "[%g, %h], %found, %inverse", "None");
  graph.node("s", "aten._amp_update_scale_.default", "%scale, %tracker, %found, 2.0, 0.5, 7",
             "float32[]");
  graph.node("y", "aten.neg.default", "%scale", "float32[]");
  graph.outputs("%g, %y, %tracker, %s");
  EXPECT_EQ(text(graph),
            "%0: f32[], %1: f32[4], %2: f32[2, 3] = unscale_(%found, %inverse, %g, %h)\n"
            "%3: f32[], %4: i32[] = update_scale_(%scale, %tracker, %0) {growth_interval = 7}\n"
            "%y: f32[] = neg(%3)\n");
}

// No gradients, nothing to find.
TEST_F(ImportFXOptimizerTest, NoGradients) {
  FXText graph = graphWithStates();
  graph.node("r", "aten._amp_foreach_non_finite_check_and_unscale_.default", "[], %found, %inverse",
             "None");
  graph.node("a", "aten._fused_adam_.default", "[], [], [], [], [], []", "None",
             adamKeywords(R"("lr":0.1,"maximize":false)"));
  graph.outputs("%found");
  EXPECT_EQ(text(graph), "");
}

//===----------------------------------------------------------------------===//
// New values
//===----------------------------------------------------------------------===//

// What becomes the new value of a mutated input, and is not needed as it was, is written where it
// is; no copy is made, and none at the end.
TEST_F(ImportFXOptimizerTest, NewValuesOfMutatedInputs) {
  FXText graph = graphWithStates();
  graph.node("r", "aten._fused_adam.default", one,
             "((float32[4]), (float32[4]), (float32[4]), (float32[4]), ())",
             adamKeywords(R"("lr":0.1,"maximize":false,"found_inf":%found)"));
  const char *names[] = {"p", "g", "m", "v"};
  for (unsigned i = 0; i < 4; ++i) {
    std::string list = std::string(names[i]) + "_list";
    graph.node(list, "_operator.getitem", "%r, " + std::to_string(i), "(float32[4])");
    graph.node(std::string(names[i]) + "_new", "_operator.getitem", "%" + list + ", 0",
               "float32[4]");
  }
  graph.outputs("%p_new, %g_new, %m_new, %v_new").roles("p, g, m, v", "", "");
  EXPECT_EQ(text(graph), "%p_new: f32[4], %m_new: f32[4], %v_new: f32[4] = adam_(%p, %g, %m, %v, "
                         "%step, none, %found) {beta2 = 0.99, eps = 1e-06, lr = 0.1, "
                         "weight_decay = 0.5}\n");
}

// What is needed later as it was, or is the caller's and not to be written, is copied first.
TEST_F(ImportFXOptimizerTest, NewValuesBesideTheOldOnes) {
  FXText graph = graphWithStates();
  graph.node("view", "aten.view.default", "%p, [2, 2]", "float32[2,2]");
  graph.node(
      "r", "aten._fused_sgd.default", "[%p], [%g], [%m]", "((float32[4]), unused, (float32[4]))",
      sgdKeywords(R"("momentum":0.9,"dampening":0.0,"nesterov":false,"is_first_step":false)"));
  graph.node("ps", "_operator.getitem", "%r, 0", "(float32[4])");
  graph.node("p_new", "_operator.getitem", "%ps, 0", "float32[4]");
  graph.node("ms", "_operator.getitem", "%r, -1", "(float32[4])");
  graph.node("m_new", "_operator.getitem", "%ms, -1", "float32[4]");
  graph.node("y", "aten.neg.default", "%view", "float32[2,2]");
  graph.outputs("%p_new, %y, %m_new").roles("p", "1, 2", "");
  EXPECT_EQ(text(graph), "%view: f32[2, 2] = reshape(%p) {shape = [2, 2]}\n"
                         "%0: f32[4] = clone(%p)\n"
                         "%1: f32[4] = clone(%m)\n"
                         "%p_new: f32[4], %m_new: f32[4] = sgd_(%0, %g, %1) {lr = 0.1, "
                         "momentum = 0.9, weight_decay = 0.5}\n"
                         "%y: f32[2, 2] = neg(%view)\n"
                         "%p.new: f32[4] = copy_(%p, %p_new)\n");
}

// Gradients that the graph has made are unscaled where they are. One that is in the list twice is
// two values, and is copied.
TEST_F(ImportFXOptimizerTest, NewValuesOfGradients) {
  FXText graph = graphWithStates();
  graph.node("a", "aten.neg.default", "%g", "float32[4]");
  graph.node("b", "aten.neg.default", "%m", "float32[4]");
  graph.node("r", "aten._amp_foreach_non_finite_check_and_unscale.default",
             "[%a, %b, %b], %found, %inverse", "((float32[4], float32[4], float32[4]), float32[])");
  graph.node("gs", "_operator.getitem", "%r, 0", "(float32[4], float32[4], float32[4])");
  for (int i : {0, 1, 2})
    graph.node("g" + std::to_string(i), "_operator.getitem", "%gs, " + std::to_string(i),
               "float32[4]");
  graph.node("f", "_operator.getitem", "%r, 1", "float32[]");
  graph.node("u", "aten._amp_update_scale.default", "%scale, %tracker, %f, 4.0, 0.25, 5",
             "(float32[], int32[])");
  graph.node("scale_new", "_operator.getitem", "%u, 0", "float32[]");
  graph.node("tracker_new", "_operator.getitem", "%u, 1", "int32[]");
  graph.outputs("%scale_new, %tracker_new, %g0, %g1, %g2, %f")
      .roles("scale, tracker", "2, 3, 4, 5", "");
  EXPECT_EQ(
      text(graph),
      "%a: f32[4] = neg(%g)\n"
      "%b: f32[4] = neg(%m)\n"
      "%0: f32[] = clone(%found)\n"
      "%1: f32[4] = clone(%b)\n"
      "%2: f32[4] = clone(%b)\n"
      "%f: f32[], %g0: f32[4], %g1: f32[4], %g2: f32[4] = unscale_(%0, %inverse, %a, %1, %2)\n"
      "%scale_new: f32[], %tracker_new: i32[] = update_scale_(%scale, %tracker, %f) "
      "{backoff_factor = 0.25, growth_factor = 4.0, growth_interval = 5}\n");
}

// A scaled gradient that nothing takes is divided into memory of its own.
TEST_F(ImportFXOptimizerTest, NewValuesOfScaledGradients) {
  FXText graph = graphWithStates();
  graph.node("r", "aten._fused_adamw.tensor_lr", one,
             "((float32[4]), unused, (float32[4]), (float32[4]), ())",
             adamKeywords(R"("lr":%lr,"maximize":false,"grad_scale":%scale)"));
  graph.node("ps", "_operator.getitem", "%r, 0", "(float32[4])");
  graph.node("p_new", "_operator.getitem", "%ps, 0", "float32[4]");
  graph.outputs("%p_new").roles("p", "", "");
  EXPECT_THAT(text(graph),
              testing::AllOf(HasSubstr("= div(%g, %scale)\n"), HasSubstr("%p_new: f32[4], "),
                             Not(HasSubstr("div_")), Not(HasSubstr("copy_"))));
}

// Step counts are added to and subtracted from in lists, in place or not.
TEST_F(ImportFXOptimizerTest, StepCounts) {
  FXText graph = graphWithStates();
  graph.node("a", "aten._foreach_add_.Scalar", "[%step, %lr], 1", "None");
  graph.node("b", "aten._foreach_sub_.List", "[%step, %lr], [%found, %found]", "None",
             R"("alpha":2)");
  graph.node("c", "aten._foreach_add.List", "[%scale], [%step]", "(float32[])");
  graph.node("c0", "_operator.getitem", "%c, 0", "float32[]");
  graph.node("d", "aten._foreach_sub.Scalar", "[%c0, %lr], 3", "(float32[], unused)");
  graph.node("d0", "_operator.getitem", "%d, 0", "float32[]");
  graph.outputs("%d0");
  EXPECT_EQ(text(graph), "%0: f32[] = add_(%step) {scalar = 1}\n"
                         "%1: f32[] = add_(%lr) {scalar = 1}\n"
                         "%2: f32[] = sub_(%0, %found) {alpha = 2}\n"
                         "%3: f32[] = sub_(%1, %found) {alpha = 2}\n"
                         "%c0: f32[] = add(%scale, %2)\n"
                         "%d0: f32[] = sub(%c0) {scalar = 3}\n"
                         "%4: f32[] = sub(%3) {scalar = 3}\n");
  // Lists of two lengths are of no known form.
  graph = graphWithStates();
  graph.node("a", "aten._foreach_add_.List", "[%step, %lr], [%found]", "None");
  graph.outputs("%step");
  EXPECT_THAT(text(graph), HasSubstr("aten._foreach_add_.List("));
}

//===----------------------------------------------------------------------===//
// What is refused
//===----------------------------------------------------------------------===//

// What no op expresses, and lists that do not fit, are errors at the node.
TEST_F(ImportFXOptimizerTest, Refused) {
  const std::string numbers = R"("lr":0.1,"beta1":0.9,"beta2":0.99,"weight_decay":0.5,"eps":1e-06,)"
                              R"("maximize":false,"amsgrad":)";
  const std::string sgd = R"("nesterov":false,"dampening":0.0,"is_first_step":false,)";
  struct {
    const char *op, *args;
    std::string keywords, says;
  } const bad[] = {
      {"aten._fused_adam_.default", "[%p], [%g], [%m], [%v], [%n], [%step]", numbers + "true",
       "'aten._fused_adam_.default' with 'amsgrad' cannot be imported: 'adam_' keeps no maximum of "
       "the second moment"},
      {"aten._fused_adamw_.default", "[%p, %q], [%g], [%m, %n], [%v, %w], [], [%step, %step]",
       numbers + "false", "expects as many tensors in 'grads' as in 'self', got 1 and 2"},
      {"aten._fused_adam_.default", "[%p], [%g], [%m], [%v, %v], [], [%step]", numbers + "false",
       "expects as many tensors in 'exp_avg_sqs' as in 'self', got 2 and 1"},
      {"aten._fused_adam_.default", "[%p], [%g], [%m], [%v], [], []", numbers + "false",
       "expects as many tensors in 'state_steps' as in 'self', got 0 and 1"},
      {"aten._fused_sgd_.default", "[%p], [%g], []", sgdKeywords(sgd + R"("momentum":0.9)"),
       "with momentum expects a tensor in 'momentum_buffer_list' for each parameter"},
      {"aten._fused_sgd_.default", "[%p, %q], [%g, %h], [%m]",
       sgdKeywords(sgd + R"("momentum":0.9)"),
       "expects as many tensors in 'momentum_buffer_list' as in 'self', got 1 and 2"},
      // These the verifier finds.
      {"aten._fused_adam_.default", "[%p], [%h], [%m], [%v], [], [%step]", numbers + "false",
       "'adam_' op expects"},
      {"aten._fused_adam_.default", "[%p], [%g], [%m], [%m], [], [%step]", numbers + "false",
       "'adam_' op operand #3 ('%m') shares memory with operand #2 ('%m'); the op writes both"},
      {"aten._amp_foreach_non_finite_check_and_unscale_.default", "[%g, %h, %g], %found, %inverse",
       "", "'unscale_' op operand #4 ('%g') shares memory with operand #2 ('%g')"},
  };
  for (const auto &form : bad) {
    FXText graph = graphWithStates();
    graph.node("r", form.op, form.args, "None", form.keywords);
    graph.outputs("%p");
    EXPECT_THAT(errorOf(graph), testing::AllOf(HasSubstr("test.json:/forward/nodes/0: error: "),
                                               HasSubstr(form.says)));
  }
}

// A list of new values that is not as long as what it is of leaves the call opaque.
TEST_F(ImportFXOptimizerTest, ResultsOfAnotherForm) {
  FXText graph = graphWithStates();
  graph.node("r", "aten._fused_sgd.default", "[%p], [%g], []", "((), (float32[4]), ())",
             sgdKeywords(R"("momentum":0,"dampening":0.0,"nesterov":false,"is_first_step":false)"));
  graph.outputs("%p");
  EXPECT_THAT(text(graph), HasSubstr("aten._fused_sgd.default("));
}
