//===- AccumulateGradientsTest.cpp - Gradients in the caller's buffers ----===//

#include "rondo/passes/PassRegistry.h"
#include "rondo/passes/Passes.h"

#include "support/PassTesting.h"

#include <gmock/gmock.h>

using namespace rondo;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace {

/// Runs the pass with `options`.
class AccumulateGradientsTest : public PassTest {
protected:
  AccumulateGradientsTest() : PassTest([this] { return createAccumulateGradientsPass(options); }) {}

  /// The backward that `pair` has after the pass, with names to choose from `chosen`, or the error.
  std::string backwardWith(std::vector<std::string> chosen, llvm::StringRef pair) {
    options.gradients = std::move(chosen);
    std::string text = run(pair);
    size_t begin = text.find("backward @");
    return begin == std::string::npos ? text : text.substr(begin);
  }

  AccumulateGradientsOptions options;
};

/// A layer with a parameter that is not trained, an input, and a gradient for all but it.
constexpr llvm::StringLiteral layer = R"(pair @layer {
  forward @fw(%x: f32[2, 3], %w: f32[3, 3; 1, 3] parameter path "l.0.weight", %b: f32[3] parameter path "l.0.bias", %f: f32[3] parameter path "l.1.bias") {
    %p: f32[2, 3] = mm(%x, %w)
    %y: f32[2, 3] = add(%p, %b)
    return(%y, %x saved #0, %w saved #1)
  }
  backward @bw(%x: f32[2, 3] saved #0, %w: f32[3, 3; 1, 3] saved #1, %t: f32[2, 3]) {
    %wt: f32[3, 3] = permute(%w) {dims = [1, 0]}
    %gx: f32[2, 3] = mm(%t, %wt)
    %xt: f32[3, 2; 1, 3] = permute(%x) {dims = [1, 0]}
    %gw: f32[3, 3] = mm(%xt, %t)
    %gb: f32[3] = sum(%t) {dims = [0]}
    return(%gx, %gw, %gb, none)
  }
}
)";

//===----------------------------------------------------------------------===//
// What becomes of a backward
//===----------------------------------------------------------------------===//

// The gradients of parameters go to buffers with the parameters' names, paths and layouts, as soon
// as they are there; that of the input stays fresh, and a missing one missing.
TEST_F(AccumulateGradientsTest, Parameters) {
  becomes(layer, R"(pair @layer {
  forward @fw(%x: f32[2, 3], %w: f32[3, 3; 1, 3] parameter path "l.0.weight", %b: f32[3] parameter path "l.0.bias", %f: f32[3] parameter path "l.1.bias") {
    %p: f32[2, 3] = mm(%x, %w)
    %y: f32[2, 3] = add(%p, %b)
    return(%y, %x saved #0, %w saved #1)
  }
  backward @bw(%x: f32[2, 3] saved #0, %w: f32[3, 3; 1, 3] saved #1, %t: f32[2, 3], %grad_w: f32[3, 3; 1, 3] static path "l.0.weight", %grad_b: f32[3] static path "l.0.bias") {
    %wt: f32[3, 3] = permute(%w) {dims = [1, 0]}
    %gx: f32[2, 3] = mm(%t, %wt)
    %xt: f32[3, 2; 1, 3] = permute(%x) {dims = [1, 0]}
    %gw: f32[3, 3] = mm(%xt, %t)
    %accumulated_w: f32[3, 3; 1, 3] = add_(%grad_w, %gw)
    %gb: f32[3] = sum(%t) {dims = [0]}
    %accumulated_b: f32[3] = add_(%grad_b, %gb)
    return(%gx, %accumulated_w, %accumulated_b, none)
  }
}
)");
}

// A flag, one argument behind the buffers for all on one device, says whether they are overwritten.
TEST_F(AccumulateGradientsTest, Flag) {
  options.firstMicrobatch = FirstMicrobatch::Flag;
  becomes(R"(pair @p {
  forward @fw(%a: f32[4]@cuda:0 parameter, %b: f32[4] parameter, %c: bf16[4]@cuda:0 parameter) {
    return(%a)
  }
  backward @bw(%t: f32[4]@cuda:0) {
    %ga: f32[4]@cuda:0 = neg(%t)
    %gb: f32[4] = to_device(%t) {device = host}
    %gc: bf16[4]@cuda:0 = cast(%t) {dtype = bf16}
    return(%ga, %gb, %gc)
  }
})",
          R"(pair @p {
  forward @fw(%a: f32[4]@cuda:0 parameter, %b: f32[4] parameter, %c: bf16[4]@cuda:0 parameter) {
    return(%a)
  }
  backward @bw(%t: f32[4]@cuda:0, %grad_a: f32[4]@cuda:0 static, %grad_b: f32[4] static, %grad_c: bf16[4]@cuda:0 static, %first_microbatch: bool[]@cuda:0, %first_microbatch_1: bool[]) {
    %ga: f32[4]@cuda:0 = neg(%t)
    %accumulated_a: f32[4]@cuda:0 = accumulate_(%grad_a, %ga, %first_microbatch)
    %gb: f32[4] = to_device(%t) {device = host}
    %accumulated_b: f32[4] = accumulate_(%grad_b, %gb, %first_microbatch_1)
    %gc: bf16[4]@cuda:0 = cast(%t) {dtype = bf16}
    %accumulated_c: bf16[4]@cuda:0 = accumulate_(%grad_c, %gc, %first_microbatch)
    return(%accumulated_a, %accumulated_b, %accumulated_c)
  }
})");
}

// A value that is returned for two parameters, one that is an argument, and one with a layout that
// no buffer can have: each has a buffer of its own, with a name that is not taken.
TEST_F(AccumulateGradientsTest, SharedValues) {
  becomes(R"(pair @p {
  forward @fw(%x: f32[4]) {
    return(%x)
  }
  backward @bw(%t: f32[4], %grad_g: f32[]) {
    %g: f32[4] = neg(%t)
    %e: f32[4; 0] = expand(%grad_g) {shape = [4]}
    return(%g, %t, %g, %e, %g)
  }
})",
          R"(pair @p {
  forward @fw(%x: f32[4]) {
    return(%x)
  }
  backward @bw(%t: f32[4], %grad_g: f32[], %grad_g_1: f32[4] static, %grad_t: f32[4] static, %grad_g_2: f32[4] static, %grad_e: f32[4] static, %grad_g_3: f32[4] static) {
    %accumulated_t: f32[4] = add_(%grad_t, %t)
    %g: f32[4] = neg(%t)
    %accumulated_g: f32[4] = add_(%grad_g_1, %g)
    %accumulated_g_1: f32[4] = add_(%grad_g_2, %g)
    %accumulated_g_2: f32[4] = add_(%grad_g_3, %g)
    %e: f32[4; 0] = expand(%grad_g) {shape = [4]}
    %accumulated_e: f32[4] = add_(%grad_e, %e)
    return(%accumulated_g, %accumulated_t, %accumulated_g_1, %accumulated_e, %accumulated_g_2)
  }
})");
}

// Sizes may be symbols; a column-major gradient has a column-major buffer.
TEST_F(AccumulateGradientsTest, Layouts) {
  std::string text = backwardWith({}, R"(pair @p {
  forward @fw(%x: f32[N, 4]) {
    return(%x)
  }
  backward @bw(%t: f32[N, 4], %u: f32[N, 8]) {
    %c: f32[4, N; 1, 4] = permute(%t) {dims = [1, 0]}
    %s: f32[N, 4; 8, 1] = slice(%u) {dim = 1, end = 4}
    return(%c, %s)
  }
})");
  EXPECT_THAT(text, AllOf(HasSubstr("%grad_c: f32[4, N; 1, 4] static"),
                          HasSubstr("%grad_s: f32[N, 4] static")));
}

//===----------------------------------------------------------------------===//
// Which
//===----------------------------------------------------------------------===//

// A gradient is chosen by its own name, or by the name, the path or the module of its parameter.
TEST_F(AccumulateGradientsTest, Names) {
  struct {
    std::vector<std::string> chosen;
    bool x, w, b;
  } cases[] = {{{"w"}, false, true, false},        {{"gw"}, false, true, false},
               {{"l.0.bias"}, false, false, true}, {{"l.0"}, false, true, true},
               {{"l"}, false, true, true},         {{"x"}, true, false, false},
               {{"b", "gx"}, true, false, true},   {{"f"}, false, false, false},
               {{"l.1", "w"}, false, true, false}};
  for (const auto &test : cases) {
    SCOPED_TRACE(testing::PrintToString(test.chosen));
    std::string text = backwardWith(test.chosen, layer);
    for (auto [name, isChosen] :
         {std::pair("%grad_x:", test.x), {"%grad_w:", test.w}, {"%grad_b:", test.b}})
      EXPECT_EQ(llvm::StringRef(text).contains(name), isChosen) << name;
    EXPECT_EQ(hasChanged, test.x || test.w || test.b);
    EXPECT_THAT(text, Not(HasSubstr("grad_f")));
  }
}

// A predicate is asked for every gradient that is there, or that is named, with what is known of
// it.
TEST_F(AccumulateGradientsTest, Predicate) {
  std::vector<std::string> asked;
  options.isAccumulated = [&](const GradientQuery &gradient) {
    asked.push_back(gradient.pair.forward().name(gradient.argument).str() + " " +
                    std::to_string(gradient.result) + " " +
                    gradient.pair.backward().name(gradient.value).str() + " " +
                    Type(gradient.type).str());
    return gradient.result != 1;
  };
  std::string text = backwardWith({}, layer);
  EXPECT_THAT(asked, testing::ElementsAre("x 0 gx f32[2, 3]", "w 1 gw f32[3, 3]", "b 2 gb f32[3]"));
  EXPECT_THAT(text,
              AllOf(HasSubstr("%grad_x:"), Not(HasSubstr("%grad_w:")), HasSubstr("%grad_b:")));
  asked.clear();
  text = backwardWith({"l.0"}, layer);
  EXPECT_EQ(asked.size(), 2u);
  EXPECT_THAT(text, AllOf(Not(HasSubstr("%grad_x:")), HasSubstr("%grad_b:")));
}

// Where results are not one for each argument of the forward, of its type, nothing is known of
// them: they go by their own names only, and a result is not taken for another argument's gradient.
TEST_F(AccumulateGradientsTest, UnknownParameters) {
  auto pairOf = [](const std::string &argument) {
    return "pair @p {\nforward @fw(%w: " + argument +
           " parameter) {\nreturn(%w)\n}\nbackward @bw(%t: f32[4]) {\n%g: f32[4] = neg(%t)\n"
           "return(%g)\n}\n}";
  };
  EXPECT_THAT(backwardWith({"w"}, pairOf("f32[4]")), HasSubstr("%grad_w: "));
  for (const char *other : {"f32[2, 2]", "bf16[4]", "i64"}) {
    EXPECT_EQ(backwardWith({"w"}, pairOf(other)),
              "error: option 'gradients' names 'w', which is no gradient (did you mean 'g'?)");
    EXPECT_THAT(backwardWith({}, pairOf(other)), HasSubstr("%grad_g: f32[4]"));
  }
}

//===----------------------------------------------------------------------===//
// What stays as it is
//===----------------------------------------------------------------------===//

// No backward, no gradient, or only ones that are made in place in arguments already.
TEST_F(AccumulateGradientsTest, Leaves) {
  leaves("trace @f(%x: f32[4]) {\n%y: f32[4] = neg(%x)\nreturn(%y)\n}");
  auto backward = [](const std::string &body) {
    return "pair @p {\nforward @fw(%x: f32[4] parameter) {\nreturn(%x, %x saved #0)\n}\nbackward "
           "@bw(%s: f32[4] saved #0, %t: f32[4], %i: i64) {\n" +
           body + "\n}\n}";
  };
  leaves(backward("return()"));
  leaves(backward("return(none)"));
  leaves(backward("return(%i)"));
  leaves(backward("%n: i64[4] = cast(%t) {dtype = i64}\nreturn(%n)"));
  leaves(backward("%g: f32[4] = mul_(%t, %s)\nreturn(%g)"));
  // A view of an argument is a gradient like any other.
  run(backward("%g: f32[2, 2] = reshape(%t) {shape = [2, 2]}\nreturn(%g)"));
  EXPECT_TRUE(hasChanged);
}

// A name that no gradient has is an error that suggests one; so is one of what is no tensor of
// floating-point numbers.
TEST_F(AccumulateGradientsTest, BadNames) {
  EXPECT_EQ(backwardWith({"l.0.weigth"}, layer),
            "error: option 'gradients' names 'l.0.weigth', which is no gradient (did you mean "
            "'l.0.weight'?)");
  EXPECT_THAT(backwardWith({"l.", "w", "zzzz"}, layer),
              AllOf(HasSubstr("names 'l.'"), HasSubstr("names 'zzzz'"), Not(HasSubstr("'w'"))));
  EXPECT_EQ(backwardWith({"i"}, "pair @p {\nforward @fw(%x: f32[4]) {\nreturn(%x)\n}\nbackward "
                                "@bw(%i: i64[4]) {\nreturn(%i)\n}\n}"),
            "error: option 'gradients' names 'i', whose result #0 has type i64[4]: only tensors of "
            "floating-point numbers are accumulated");
  EXPECT_EQ(backwardWith({"x"}, "trace @f(%x: f32[4]) {\nreturn(%x)\n}"),
            "error: option 'gradients' names gradients, but the pair has no backward");
}

// The pass is made from text, and gives its options as text.
TEST_F(AccumulateGradientsTest, Pipeline) {
  PassRegistry passes;
  llvm::cantFail(registerPasses(passes, {}));
  for (const char *text : {"accumulate-gradients", "accumulate-gradients{first-microbatch=flag}",
                           "accumulate-gradients{gradients=l.0+w first-microbatch=flag}"}) {
    PassManager manager;
    llvm::cantFail(passes.parsePipeline(text, manager));
    EXPECT_EQ(manager.pipelineText(), text);
  }
  PassManager manager;
  llvm::Error error = passes.parsePipeline("accumulate-gradients{first-microbatch=node}", manager);
  EXPECT_THAT(llvm::toString(std::move(error)), HasSubstr("expected 'none' or 'flag'"));
}

} // namespace
