//===- RematerialiseTest.cpp - Computing again rather than saving ---------===//

#include "PassFixture.h"
#include "support/PassTesting.h"
#include "support/TestPaths.h"

#include "rondo/ir/ImportFX.h"
#include "rondo/ir/Liveness.h"
#include "rondo/passes/PassRegistry.h"
#include "rondo/passes/Rematerialise.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace rondo;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace {

//===----------------------------------------------------------------------===//
// Tags and checkpoints
//===----------------------------------------------------------------------===//

class RematerialiseTest : public PassTest {
protected:
  RematerialiseTest() : PassTest([] { return createRematerializationPass(); }) {
    llvm::cantFail(registry.registerOp(drawing("test.stateless", {}, {})));
    llvm::cantFail(registry.registerOp(
        drawing("test.no_offset", {{"rng", OperandKind::RNGState, Arity::Required}}, {})));
    llvm::cantFail(
        registry.registerOp(drawing("test.good", {{"rng", OperandKind::RNGState, Arity::Required}},
                                    {{"offset", AttributeKind::Int, true}})));
    OpSpec custom;
    custom.name = "test.custom";
    custom.operands = {{"x"}};
    custom.results = {"y"};
    custom.resources = {{ResourceKind::Custom, "table", false}};
    llvm::cantFail(registry.registerOp(std::move(custom)));
  }

  /// A random op of an embedder's that takes x and `more`.
  static OpSpec drawing(std::string name, std::vector<OperandSpec> more,
                        std::vector<AttributeSpec> attributes) {
    OpSpec spec;
    spec.name = std::move(name);
    spec.operands = {{"x"}};
    spec.operands.insert(spec.operands.end(), more.begin(), more.end());
    spec.attributes = std::move(attributes);
    spec.results = {"y"};
    spec.random = true;
    return spec;
  }

  /// A pair whose backward multiplies with %v, which is saved.
  static std::string pairOf(llvm::StringRef forward, llvm::StringRef argument = "f32[8]") {
    return ("pair @p {\n  forward @f(%x: f32[8], %s: f32[8] buffer) {\n" + forward +
            "    return(%y, %v saved #0)\n  }\n  backward @b(%v: " + argument +
            " saved #0, %g: f32[8]) {\n    %r: f32[8] = mul(%g, %v)\n    return(%r)\n  }\n}\n")
        .str();
  }
};

// A chain of tagged values is cloned in order, before its first use, from arguments that are saved
// as references with their tags.
TEST_F(RematerialiseTest, Chain) {
  becomes(R"(
pair @p {
  forward @f(%x: f32[8], %w: f32[8] parameter path "m.w") {
    %a: f32[8] recompute = mul(%x, %w) module "m"
    %b: f32[8] recompute = exp(%a)
    %y: f32[8] = neg(%b)
    return(%y, %b saved #0)
  }
  backward @b(%b: f32[8] saved #0, %g: f32[8]) {
    %h: f32[8] = neg(%g)
    %r: f32[8] = mul(%h, %b)
    return(%r)
  }
})",
          R"(
pair @p {
  forward @f(%x: f32[8], %w: f32[8] parameter path "m.w") {
    %a: f32[8] recompute = mul(%x, %w) module "m"
    %b: f32[8] recompute = exp(%a)
    %y: f32[8] = neg(%b)
    return(%y, %x saved #1, %w saved #2)
  }
  backward @b(%g: f32[8], %x: f32[8] saved #1, %w: f32[8] parameter path "m.w" saved #2) {
    %h: f32[8] = neg(%g)
    %a: f32[8] = mul(%x, %w) module "m"
    %b: f32[8] = exp(%a)
    %r: f32[8] = mul(%h, %b)
    return(%r)
  }
})");
}

// Nothing happens to a pair without tags, to a forward alone, and to tagged values that nothing
// saves.
TEST_F(RematerialiseTest, LeavesAlone) {
  leaves(pairOf("    %v: f32[8] = exp(%x)\n    %y: f32[8] = neg(%v)\n"));
  leaves(pairOf("    %y: f32[8] recompute = exp(%x)\n    %v: f32[8] = neg(%x)\n"));
  leaves("trace @f(%x: f32[8]) {\n  %y: f32[8] recompute = exp(%x)\n  return(%y)\n}\n");
}

// Two values of one chain share its clones: each op is there once, before the first of its uses.
TEST_F(RematerialiseTest, EachOnce) {
  becomes(R"(
pair @p {
  forward @f(%x: f32[8]) {
    %a: f32[8] recompute = exp(%x)
    %b: f32[8] recompute = sin(%a)
    %y: f32[8] = neg(%b)
    return(%y, %a saved #0, %b saved #1, %x saved #2)
  }
  backward @b(%a: f32[8] saved #0, %b: f32[8] saved #1, %x: f32[8] saved #2, %g: f32[8]) {
    %h: f32[8] = mul(%g, %x)
    %i: f32[8] = mul(%h, %b)
    %j: f32[8] = mul(%i, %a)
    return(%j)
  }
})",
          R"(
pair @p {
  forward @f(%x: f32[8]) {
    %a: f32[8] recompute = exp(%x)
    %b: f32[8] recompute = sin(%a)
    %y: f32[8] = neg(%b)
    return(%y, %x saved #2)
  }
  backward @b(%x: f32[8] saved #2, %g: f32[8]) {
    %h: f32[8] = mul(%g, %x)
    %a: f32[8] = exp(%x)
    %b: f32[8] = sin(%a)
    %i: f32[8] = mul(%h, %b)
    %j: f32[8] = mul(%i, %a)
    return(%j)
  }
})");
}

// Independent chains are each computed where they are used, not all at the start.
TEST_F(RematerialiseTest, ChainsStayBesideTheirUse) {
  EXPECT_THAT(run(R"(
pair @p {
  forward @f(%x: f32[8]) {
    %a: f32[8] recompute = exp(%x)
    %b: f32[8] recompute = sin(%x)
    return(%x, %a saved #0, %b saved #1)
  }
  backward @b(%a: f32[8] saved #0, %b: f32[8] saved #1, %g: f32[8]) {
    %h: f32[8] = mul(%g, %b)
    %i: f32[8] = mul(%h, %a)
    return(%i)
  }
})"),
              HasSubstr("    %b: f32[8] = sin(%x)\n    %h: f32[8] = mul(%g, %b)\n"
                        "    %a: f32[8] = exp(%x)\n    %i: f32[8] = mul(%h, %a)\n"));
}

// Recomputation stops at values that are not tagged, which become saved, and at values that are
// saved anyway, also by the name of a view.
TEST_F(RematerialiseTest, StopsAtWhatIsSaved) {
  std::string text = run(R"(
pair @p {
  forward @f(%x: f32[8]) {
    %a: f32[8] = exp(%x)
    %b: f32[8] = sin(%x)
    %u: f32[2, 4] = reshape(%b) {shape = [2, 4]}
    %c: f32[8] recompute = mul(%a, %b)
    return(%c, %u saved #0, %c saved #1)
  }
  backward @b(%u: f32[2, 4] saved #0, %c: f32[8] saved #1, %g: f32[2, 4], %h: f32[8]) {
    %r: f32[2, 4] = mul(%g, %u)
    %s: f32[8] = mul(%h, %c)
    return(%r, %s)
  }
})");
  EXPECT_THAT(text, HasSubstr("return(%c, %u saved #0, %a saved #2, %b saved #3)"));
  EXPECT_THAT(text, HasSubstr("%c: f32[8] = mul(%a, %b)\n    %s"));
  llvm::StringRef backward = llvm::StringRef(text).split("backward").second;
  EXPECT_THAT(backward.str(), Not(HasSubstr("exp")));
  EXPECT_THAT(backward.str(), Not(HasSubstr("sin")));
}

// Views of what is there, and constants, are made again rather than saved, tagged or not.
TEST_F(RematerialiseTest, ViewsAndConstantsAreMadeAgain) {
  std::string text = run(R"(
pair @p {
  forward @f(%x: f32[8]) {
    %u: f32[2, 4] = reshape(%x) {shape = [2, 4]}
    %o: f32[2, 4] = full() {device = host, dtype = f32, shape = [2, 4], value = 2.0}
    %c: f32[2, 4] recompute = mul(%u, %o)
    return(%c, %c saved #0)
  }
  backward @b(%c: f32[2, 4] saved #0, %g: f32[2, 4]) {
    %r: f32[2, 4] = mul(%g, %c)
    return(%r)
  }
})");
  EXPECT_THAT(text, HasSubstr("return(%c, %x saved #1)"));
  llvm::StringRef backward = llvm::StringRef(text).split("backward").second;
  EXPECT_THAT(backward.str(), HasSubstr("%u: f32[2, 4] = reshape(%x)"));
  EXPECT_THAT(backward.str(), HasSubstr("= full()"));
}

// A tag holds for the storage: a view of a tagged value that is saved is recomputed with it.
TEST_F(RematerialiseTest, TagsHoldForStorage) {
  std::string text = run(R"(
pair @p {
  forward @f(%x: f32[8]) {
    %a: f32[8] recompute = exp(%x)
    %u: f32[2, 4] = reshape(%a) {shape = [2, 4]}
    return(%x, %u saved #0)
  }
  backward @b(%u: f32[2, 4] saved #0, %g: f32[2, 4]) {
    %r: f32[2, 4] = mul(%g, %u)
    return(%r)
  }
})");
  EXPECT_THAT(text, HasSubstr("    %a: f32[8] = exp(%x)\n    %u: f32[2, 4] = reshape(%a)"));
}

// What a result is recomputed for brings the others of its op along; one that is saved stays saved.
TEST_F(RematerialiseTest, OtherResultsStaySaved) {
  std::string text = run(R"(
pair @p {
  forward @f(%x: f32[2, 8]) {
    %n: f32[2, 8] recompute, %m: f32[2, 1], %d: f32[2, 1] = layer_norm(%x) {normalized_shape = [8]}
    return(%n, %n saved #0, %m saved #1)
  }
  backward @b(%n: f32[2, 8] saved #0, %m: f32[2, 1] saved #1, %g: f32[2, 8]) {
    %h: f32[2, 8] = mul(%g, %n)
    %r: f32[2, 8] = mul(%h, %m)
    return(%r)
  }
})");
  EXPECT_THAT(text, HasSubstr("return(%n, %m saved #1, %x saved #2)"));
  EXPECT_THAT(text, HasSubstr("%r: f32[2, 8] = mul(%h, %m)"));
}

// A random op keeps its offset and draws from the forward's state, which is saved like any value;
// the generator is not read again.
TEST_F(RematerialiseTest, RandomNumbersAreDrawnAgain) {
  becomes(R"(
pair @p {
  forward @f(%x: f32[8]) {
    %s: rng = generator_read() {device = host}
    %y: f32[8], %m: bool[8] recompute = dropout(%x, %s) {offset = 16, p = 0.5}
    generator_advance() {count = 24, device = host}
    return(%y, %m saved #0)
  }
  backward @b(%m: bool[8] saved #0, %g: f32[8]) {
    %r: f32[8] = dropout_backward(%g, %m) {scale = 2.0}
    return(%r)
  }
})",
          R"(
pair @p {
  forward @f(%x: f32[8]) {
    %s: rng = generator_read() {device = host}
    %y: f32[8], %m: bool[8] recompute = dropout(%x, %s) {offset = 16, p = 0.5}
    generator_advance() {count = 24, device = host}
    return(%y, %x saved #1, %s saved #2)
  }
  backward @b(%g: f32[8], %x: f32[8] saved #1, %s: rng saved #2) {
    %y: f32[8], %m: bool[8] = dropout(%x, %s) {offset = 16, p = 0.5}
    %r: f32[8] = dropout_backward(%g, %m) {scale = 2.0}
    return(%r)
  }
})");
}

// A checkpoint is dissolved; what it made only for the backward is recomputed, a generator's state
// that it read is saved, and what the rest of the forward uses stays saved.
TEST_F(RematerialiseTest, Checkpoints) {
  becomes(R"(
pair @p {
  forward @f(%x: f32[8]) {
    %a: f32[8], %m: bool[8] = checkpoint(%x) {
    ^(%z: f32[8]):
      %s: rng = generator_read() {device = host}
      %e: f32[8] = exp(%z)
      %d: f32[8], %k: bool[8] = dropout(%e, %s) {offset = 0, p = 0.5}
      return(%d, %k)
    }
    %b: f32[8], %h: f32[8] = checkpoint(%a) {
    ^(%z: f32[8]):
      %h: f32[8] = sin(%z)
      %c: f32[8] = exp(%h)
      return(%c, %h)
    }
    generator_advance() {count = 8, device = host}
    return(%b, %a saved #0, %m saved #1, %h saved #2)
  }
  backward @b(%a: f32[8] saved #0, %m: bool[8] saved #1, %h: f32[8] saved #2, %g: f32[8]) {
    %i: f32[8] = mul(%g, %h)
    %j: f32[8] = mul(%i, %a)
    %r: f32[8] = dropout_backward(%j, %m) {scale = 2.0}
    return(%r)
  }
})",
          R"(
pair @p {
  forward @f(%x: f32[8]) {
    %s: rng recompute = generator_read() {device = host}
    %e: f32[8] recompute = exp(%x)
    %d: f32[8], %k: bool[8] recompute = dropout(%e, %s) {offset = 0, p = 0.5}
    %h: f32[8] recompute = sin(%d)
    %c: f32[8] = exp(%h)
    generator_advance() {count = 8, device = host}
    return(%c, %d saved #0, %x saved #3, %s saved #4)
  }
  backward @b(%a: f32[8] saved #0, %g: f32[8], %x: f32[8] saved #3, %s: rng saved #4) {
    %h: f32[8] = sin(%a)
    %i: f32[8] = mul(%g, %h)
    %j: f32[8] = mul(%i, %a)
    %e: f32[8] = exp(%x)
    %d: f32[8], %k: bool[8] = dropout(%e, %s) {offset = 0, p = 0.5}
    %r: f32[8] = dropout_backward(%j, %k) {scale = 2.0}
    return(%r)
  }
})");
}

// A tag on a checkpoint's result asks for that, too; a checkpoint in a checkpoint, and one of a
// forward without a backward, are dissolved.
TEST_F(RematerialiseTest, CheckpointResultsAndNests) {
  llvm::StringRef nested = R"(
    %v: f32[8]TAG = checkpoint(%x) {
    ^(%z: f32[8]):
      %i: f32[8] = checkpoint(%z) {
      ^(%w: f32[8]):
        %e: f32[8] = exp(%w)
        return(%e)
      }
      %o: f32[8] = sin(%i)
      return(%o)
    }
    %y: f32[8] = neg(%v)
)";
  auto tagged = [&](std::string tag) {
    std::string text = nested.str();
    text.replace(text.find("TAG"), 3, tag);
    return text;
  };
  std::string all = run(pairOf(tagged(" recompute")));
  EXPECT_THAT(all, HasSubstr("%e: f32[8] = exp(%x)\n    %o: f32[8] = sin(%e)\n    %r"));
  EXPECT_THAT(all, Not(HasSubstr("checkpoint")));
  std::string boundary = run(pairOf(tagged("")));
  EXPECT_THAT(boundary, HasSubstr("%e: f32[8] recompute = exp(%x)\n    %o: f32[8] = sin(%e)"));
  EXPECT_THAT(boundary, HasSubstr("return(%y, %o saved #0)"));
  EXPECT_THAT(run("trace @f(%x: f32[8]) {" + tagged("") + "return(%y)\n}"),
              Not(HasSubstr("checkpoint")));
}

// An op with bodies is cloned with what is in them.
TEST_F(RematerialiseTest, ClonesBodies) {
  std::string text = run(pairOf(R"(
    %c: bool = constant() {value = true}
    %v: f32[8] recompute = if(%c, %x) {
    ^(%p: f32[8]):
      %e: f32[8] = exp(%p)
      return(%e)
    } {
    ^(%q: f32[8]):
      %e: f32[8] = sin(%q)
      return(%e)
    }
    %y: f32[8] = neg(%v)
)"));
  llvm::StringRef backward = llvm::StringRef(text).split("backward").second;
  EXPECT_THAT(backward.str(), HasSubstr("= if(%c, %x) {"));
  EXPECT_THAT(backward.str(), HasSubstr("%e: f32[8] = sin(%q)"));
}

struct Refusal {
  const char *forward;
  const char *message; ///< of the value when it is tagged
};

// Producers that cannot run again are refused at their place, with the value's name and the reason;
// not tagged, they are saved.
TEST_F(RematerialiseTest, Refuses) {
  constexpr llvm::StringLiteral state = "%t: rng = generator_read() {device = host}\n";
  const Refusal refusals[] = {
      {"%w: f32[8]TAG = add_(%s, %x)\n%p: f32[8]TAG = neg(%w)\n",
       "'add_' op cannot be computed again, but %w is to be recomputed"},
      {"%q: f32[8] = exp(%x)\n%p: f32[8]TAG = relu_(%q)\n",
       "'relu_' op cannot be computed again, but %p is to be recomputed for the backward: it "
       "writes %q in place"},
      {"%p: f32[8]TAG = all_reduce(%x) {group = \"tp\"}\n",
       "but %p is to be recomputed for the backward: it is a collective of group 'tp'"},
      {"%i: f32[] = sum(%x)\n%n: f64TAG = item(%i)\n%p: f32[8]TAG = mul(%x, %n)\n",
       "but %n is to be recomputed for the backward: it waits for the device"},
      {"%p: f32[8]TAG = unheard.of(%x)\n",
       "but %p is to be recomputed for the backward: its effects are unknown"},
      {"%p: f32[8]TAG = test.custom(%x)\n",
       "but %p is to be recomputed for the backward: it uses resource 'table'"},
      // Case 10.
      {"%p: f32[8]TAG = test.stateless(%x)\n",
       "but %p is to be recomputed for the backward: it draws random numbers without a state"},
      {"STATE%p: f32[8]TAG = test.no_offset(%x, %t)\n",
       "but %p is to be recomputed for the backward: its offset cannot be kept"},
      {"STATE%p: f32[8]TAG = test.good(%x, %t) {offset = 3}\n", ""},
      {"%p: f32[8]TAG = exp(%x)\n", ""},
  };
  for (const Refusal &refusal : refusals) {
    SCOPED_TRACE(refusal.forward);
    auto text = [&](llvm::StringRef tag) {
      std::string lines = refusal.forward;
      for (size_t at; (at = lines.find("TAG")) != std::string::npos;)
        lines.replace(at, 3, tag.str());
      if (size_t at = lines.find("STATE"); at != std::string::npos)
        lines.replace(at, 5, state.str());
      return pairOf(lines + "%v: f32[8] recompute = mul(%p, %p)\n%y: f32[8] = neg(%v)\n");
    };
    std::string result = run(text(" recompute"));
    if (*refusal.message) {
      EXPECT_THAT(result, HasSubstr(refusal.message));
      EXPECT_THAT(result, HasSubstr("test:")) << "located";
    } else {
      EXPECT_THAT(result, HasSubstr("%v: f32[8] = mul(%p, %p)"));
      EXPECT_THAT(result, Not(HasSubstr("%p saved")));
    }
    if (llvm::StringRef(refusal.message).contains("%p is")) {
      EXPECT_THAT(run(text("")), HasSubstr("%p saved #1)")) << "instead";
    }
  }
}

// Inputs that are written between the producer and its clone are refused, in the forward and in the
// backward; writes that come before, to other storage, or after the clone are fine.
TEST_F(RematerialiseTest, InputsThatAreWritten) {
  constexpr llvm::StringLiteral body = "    %v: f32[8] recompute = mul(%x, %s)\n";
  EXPECT_THAT(run(pairOf((body + "    %y: f32[8] = add_(%s, %x)\n").str())),
              testing::AllOf(
                  HasSubstr("test:3:5: error: 'mul' op cannot be computed again for the backward: "
                            "%s is written after it"),
                  HasSubstr("note: written here")));
  EXPECT_THAT(run(pairOf("    %t: f32[8] = add_(%s, %x)\n    %v: f32[8] recompute = exp(%t)\n"
                         "    %y: f32[8] = neg(%v)\n")),
              HasSubstr("%t saved #1"));
  EXPECT_THAT(run(pairOf("    %v: f32[8] recompute = exp(%x)\n    %y: f32[8] = add_(%s, %v)\n")),
              HasSubstr("return(%y, %x saved #1)"));

  constexpr llvm::StringLiteral inBackward = R"(
pair @p {
  forward @f(%x: f32[8]) {
    %a: f32[8] = exp(%x)
    %v: f32[8] recompute = mul(%a, %a)
    return(%v, %a saved #0, %v saved #1)
  }
  backward @b(%a: f32[8] saved #0, %v: f32[8] saved #1, %g: f32[8]) {
)";
  EXPECT_THAT(run((inBackward + "    %h: f32[8] = mul_(%a, %g)\n    %r: f32[8] = mul(%h, %v)\n"
                                "    return(%r)\n  }\n}\n")
                      .str()),
              HasSubstr("test:5:5: error: 'mul' op cannot be computed again for the backward: %a "
                        "is written there before the result is needed"));
  EXPECT_THAT(run((inBackward + "    %r: f32[8] = mul(%g, %v)\n    %h: f32[8] = mul_(%a, %g)\n"
                                "    return(%r, %h)\n  }\n}\n")
                      .str()),
              HasSubstr("    %v: f32[8] = mul(%a, %a)\n    %r: f32[8] = mul(%g, %v)\n"));
}

// A value that was computed before its storage was written is recomputed with the storage.
TEST_F(RematerialiseTest, StaleNamesAreComputedAgain) {
  std::string text = run(pairOf("    %a: f32[8] recompute = exp(%x)\n"
                                "    %v: f32[8] recompute = mul(%a, %a)\n"
                                "    %y: f32[8] = relu_(%a)\n"));
  EXPECT_THAT(text, HasSubstr("    %a: f32[8] = exp(%x)\n    %v: f32[8] = mul(%a, %a)\n"));
  std::string error = run(pairOf("    %a: f32[8] = exp(%x)\n"
                                 "    %v: f32[8] recompute = mul(%a, %a)\n"
                                 "    %y: f32[8] = relu_(%a)\n"));
  EXPECT_THAT(error,
              HasSubstr("'mul' op cannot be computed again for the backward: %a is written"));
}

// The pass comes before claims, regions and `del`s.
TEST_F(RematerialiseTest, Order) {
  PassProperties properties = RematerializationPass().properties();
  EXPECT_EQ(properties.forbids,
            TraceProperties::Claimed | TraceProperties::HasRegions | TraceProperties::HasDels);
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

struct CostCase {
  const char *op;
  double cost;
};

// Ops cost their memory traffic, contractions their arithmetic where that is more, views nothing.
TEST(RematerialiseCostTest, Roofline) {
  OpRegistry registry;
  llvm::cantFail(registerCoreOps(registry));
  const double big = 4096;
  const CostCase cases[] = {
      {"f32[4, 4] = add(%s, %s)", 4 * 3 * 16},
      {"f32[] = sum(%s)", 4 * (16 + 1)},
      {"f32[16] = reshape(%s) {shape = [16]}", 0},
      {"f32[8] = full() {device = host, dtype = f32, shape = [8], value = 1.0}", 4 * 8},
      {"f32[4, 4] = mm(%s, %s)", 4 * 3 * 16},
      {"f32[4096, 4096] = mm(%b, %b)", 2 * big * big * big / flopsPerByte},
      {"f32[4096, 4096] = linear(%b, %b)", 2 * big * big * big / flopsPerByte},
      {"f32[4096, 4096] = addmm(%v, %b, %b)", 2 * big * big * big / flopsPerByte},
      {"f32[3, 4096] = embedding(%b, %i)", 4 * 2 * 3 * big + 8 * 3},
      {"f32[1, 1, 4096, 64], %l: f32[1, 1, 4096] = scaled_dot_product_attention(%q, %q, %q)",
       2 * 2 * 4096. * 4096 * 64 / flopsPerByte},
      {"f32[8, 256, 64, 64] = convolution(%c, %k) {dilation = [1, 1], padding = [1, 1], stride = "
       "[1, 1]}",
       2 * 256. * 256 * 64 * 64 * 9 * 8 / flopsPerByte},
  };
  for (const CostCase &single : cases) {
    std::string text =
        "trace @f(%s: f32[4, 4], %b: f32[4096, 4096], %v: f32[4096], %i: i64[3], "
        "%q: f32[1, 1, 4096, 64], %c: f32[8, 256, 64, 64], %k: f32[256, 256, 3, 3]) {"
        "\n  %r: " +
        std::string(single.op) + "\n  return()\n}";
    llvm::Expected<TracePair> pair = parsePair(text, "test", registry);
    ASSERT_TRUE(bool(pair)) << llvm::toString(pair.takeError());
    const Trace &trace = pair->forward();
    EXPECT_NEAR(estimateOpCost(trace, trace.op(trace.ops().front())), single.cost,
                1e-9 * single.cost)
        << single.op;
  }
}

//===----------------------------------------------------------------------===//
// Budgets
//===----------------------------------------------------------------------===//

class RematerialiseBudgetTest : public PassFixture {
protected:
  struct Outcome {
    TracePair pair;
    RematerialiseReport report;
    std::string diagnostics;
  };

  Outcome rematerialise(TracePair pair, std::optional<int64_t> budget,
                        RecomputeRemarks remarks = RecomputeRemarks::Summary) {
    return runOn(std::move(pair),
                 std::make_unique<RematerializationPass>(RematerialiseOptions{budget, remarks}));
  }
  Outcome runOn(TracePair pair, std::unique_ptr<RematerializationPass> pass) {
    const RematerializationPass &borrowed = *pass;
    PassManager manager;
    manager.add(std::move(pass));
    TracePair result = llvm::cantFail(manager.run(std::move(pair)));
    std::string text;
    llvm::raw_string_ostream os(text);
    manager.diagnostics().print(os);
    return {std::move(result), borrowed.report(), os.str()};
  }

  TracePair recorded(llvm::StringRef name) {
    std::string path = testDataDir() + "/traces/" + name.str() + ".json";
    auto text = llvm::MemoryBuffer::getFile(path);
    EXPECT_TRUE(bool(text));
    PassRegistry passes;
    PassManager manager;
    llvm::cantFail(registerPasses(passes, {}));
    llvm::cantFail(passes.parsePipeline("dce,cse,canonicalise", manager));
    return llvm::cantFail(
        manager.run(llvm::cantFail(importFX((*text)->getBuffer(), path, registry))));
  }

  static std::vector<std::string> namesOf(const RematerialiseReport &report) {
    std::vector<std::string> names;
    for (const RecomputedValue &value : report.values)
      names.push_back(value.name);
    return names;
  }

  /// The backward's peak of what is saved and what it makes; without parameters.
  static int64_t peak(const TracePair &pair) {
    const Trace &trace = pair.backward();
    int64_t arguments = 0;
    for (ValueId argument : trace.arguments())
      arguments += *storageBytes(trace.type(argument));
    return livenessPeak(trace, trace.ops(), StorageRoots(trace)).bytes - arguments +
           savedBytes(pair);
  }

  /// Bytes of saved storage that are neither arguments' nor the caller's, counted independently.
  static int64_t savedBytes(const TracePair &pair) {
    const Trace &trace = pair.forward();
    StorageRoots roots(trace);
    std::set<ValueId> seen;
    for (unsigned i = 0; i < trace.terminator()->operands().size(); ++i)
      if (ValueId value = trace.terminator()->operand(i); value && trace.savedReturn(i))
        seen.insert(roots.root(value));
    for (unsigned i = 0; i < trace.terminator()->operands().size(); ++i)
      if (ValueId value = trace.terminator()->operand(i); value && !trace.savedReturn(i))
        seen.erase(roots.root(value));
    int64_t bytes = 0;
    for (ValueId root : seen)
      if (!trace.isArgument(root))
        bytes += *storageBytes(trace.type(root));
    return bytes;
  }
};

/// %a is cheap for its size, %p needs a product of matrices.
constexpr llvm::StringLiteral cheapAndDear = R"(
pair @p {
  forward @f(%x: f32[512, 512], %w: f32[512, 512] parameter) {
    %p: f32[512, 512] = mm(%x, %w)
    %a: f32[512, 512] = exp(%p)
    %y: f32[] = sum(%a)
    return(%y, %p saved #0, %a saved #1, %w saved #2)
  }
  backward @b(%p: f32[512, 512] saved #0, %a: f32[512, 512] saved #1,
              %w: f32[512, 512] parameter saved #2, %g: f32[]) {
    %h: f32[512, 512] = mul(%g, %a)
    %i: f32[512, 512] = mul(%h, %p)
    %r: f32[512, 512] = mm(%i, %w)
    return(%r)
  }
})";
constexpr int64_t matrix = 512 * 512 * 4;

// The cheapest for its bytes goes first, and no more than the budget asks for; parameters cost
// nothing to save. The report says what was chosen, and by what right.
TEST_F(RematerialiseBudgetTest, CheapestFirst) {
  Outcome all = rematerialise(parse(cheapAndDear), 2 * matrix);
  EXPECT_EQ(all.report.before.savedBytes, 2 * matrix);
  EXPECT_EQ(all.report.after.savedBytes, 2 * matrix);
  EXPECT_TRUE(all.report.values.empty());
  EXPECT_EQ(all.diagnostics, "");
  EXPECT_EQ(textOf(all.pair), textOf(parse(cheapAndDear)));

  Outcome half = rematerialise(parse(cheapAndDear), 2 * matrix - 1, RecomputeRemarks::Values);
  EXPECT_EQ(half.report.after.savedBytes, matrix);
  EXPECT_THAT(namesOf(half.report), ElementsAre("a"));
  EXPECT_FALSE(half.report.values[0].isTagged);
  EXPECT_EQ(half.report.numOps, 1u);
  EXPECT_EQ(half.report.after.work, 2. * matrix);
  EXPECT_GT(half.report.share(), 0);
  EXPECT_LT(half.report.share(), 1);
  EXPECT_THAT(half.diagnostics, HasSubstr("@f: note: recomputes 1 saved value: the forward saves "
                                          "1048576 bytes instead of 2097152"));
  EXPECT_THAT(half.diagnostics, HasSubstr("recomputes %a, for the budget"));

  Outcome none = rematerialise(parse(cheapAndDear), 0, RecomputeRemarks::None);
  EXPECT_EQ(none.report.after.savedBytes, 0);
  EXPECT_THAT(namesOf(none.report), ElementsAre("p", "a"));
  EXPECT_EQ(none.diagnostics, "");
}

// Who knows better what ops cost, says so.
TEST_F(RematerialiseBudgetTest, OwnCosts) {
  class Own : public RematerializationPass {
  public:
    Own() : RematerializationPass({matrix, RecomputeRemarks::None}) {}

  protected:
    double cost(const Trace &, const Op &op) const override { return op.name() == "exp" ? 1e9 : 1; }
  };
  Outcome outcome = runOn(parse(cheapAndDear), std::make_unique<Own>());
  EXPECT_THAT(namesOf(outcome.report), ElementsAre("p"));
  EXPECT_EQ(outcome.report.after.work, 1);
}

// What is not tagged and cannot run again is saved, silently; a budget that is thereby out of reach
// is warned of.
TEST_F(RematerialiseBudgetTest, SavesWhatIsRefused) {
  Outcome outcome = rematerialise(parse(R"(
pair @p {
  forward @f(%x: f32[8]) {
    %p: f32[8] = all_reduce(%x) {group = "tp"}
    %a: f32[8] = exp(%p)
    %y: f32[] = sum(%a)
    return(%y, %p saved #0, %a saved #1)
  }
  backward @b(%p: f32[8] saved #0, %a: f32[8] saved #1, %g: f32[]) {
    %h: f32[8] = mul(%g, %a)
    %i: f32[8] = mul(%h, %p)
    return(%i)
  }
})"),
                                  0);
  EXPECT_THAT(namesOf(outcome.report), ElementsAre("a"));
  EXPECT_THAT(outcome.diagnostics,
              HasSubstr("warning: the forward saves 32 bytes, above the budget "
                        "of 0: nothing more can be recomputed"));
}

// A budget needs sizes: a saved value of symbolic size is an error, an argument of one is not.
TEST_F(RematerialiseBudgetTest, Symbols) {
  auto text = [](llvm::StringRef saved) {
    return ("pair @p {\n  forward @f(%x: f32[B]) {\n    %a: f32[B] = exp(%x)\n    return(%a, %" +
            saved +
            " saved #0)\n  }\n  backward @b(%v: f32[B] saved #0, %g: f32[B]) {\n"
            "    %r: f32[B] = mul(%g, %v)\n    return(%r)\n  }\n}\n")
        .str();
  };
  EXPECT_THAT(runPass(createRematerializationPass({0, RecomputeRemarks::None}), parse(text("a"))),
              HasSubstr("test:3:5: error: a budget needs sizes, but %a, which is saved, has type "
                        "f32[B]; specialise before"));
  EXPECT_EQ(runPass(createRematerializationPass({0, RecomputeRemarks::None}), parse(text("x"))),
            textOf(parse(text("x"))));
}

// Values of a step of GPT-2 are recomputed until half of the bytes are left: the less memory, the
// more work, on one curve; what is reported is what the pair then does.
TEST_F(RematerialiseBudgetTest, GPT2) {
  TracePair pair = recorded("gpt2_small_bf16");
  const int64_t full = savedBytes(pair);
  Outcome whole = rematerialise(pair.clone(), 0);
  const std::vector<RecomputePoint> &curve = whole.report.curve;
  ASSERT_GT(curve.size(), 20u);
  EXPECT_EQ(curve.front().savedBytes, full);
  EXPECT_EQ(curve.front().work, 0);
  EXPECT_EQ(curve.back().savedBytes, whole.report.after.savedBytes);
  for (size_t i = 1; i < curve.size(); ++i) {
    EXPECT_LT(curve[i].savedBytes, curve[i - 1].savedBytes);
    EXPECT_GE(curve[i].work, curve[i - 1].work);
  }

  double work = 0;
  for (unsigned eighth = 7; eighth > 0; --eighth) {
    int64_t budget = full * eighth / 8;
    Outcome outcome = rematerialise(pair.clone(), budget);
    const RematerialiseReport &report = outcome.report;
    EXPECT_LE(report.after.savedBytes, budget);
    EXPECT_EQ(report.after.savedBytes, savedBytes(outcome.pair));
    EXPECT_EQ(report.before.savedBytes, full);
    EXPECT_GE(report.after.work, work);
    EXPECT_GT(report.after.work, 0);
    work = report.after.work;
    EXPECT_EQ(report.curve.back().savedBytes, report.after.savedBytes);
    // What is computed again is not held for long: the backward's peak falls as what is saved.
    EXPECT_LE(peak(outcome.pair), peak(pair) - (full - report.after.savedBytes) * 9 / 10);
  }

  // Some links of the long chain from layer to layer stay saved.
  EXPECT_GT(whole.report.after.savedBytes, 0);
  EXPECT_LT(whole.report.after.savedBytes, full / 16);
  EXPECT_THAT(whole.diagnostics, HasSubstr("nothing more can be recomputed"));
}

// A value that a clone would read long before the backward itself does stays saved.
TEST_F(RematerialiseBudgetTest, DoesNotHoldForLong) {
  auto text = [](unsigned distance) {
    std::string backward;
    for (unsigned i = 0; i < distance; ++i)
      backward +=
          "    %h" + std::to_string(i + 1) + ": f32[8] = neg(%h" + std::to_string(i) + ")\n";
    return "pair @p {\n  forward @f(%x: f32[8]) {\n    %a: f32[8] = exp(%x)\n"
           "    %b: f32[8] = sin(%a)\n    %y: f32[] = sum(%b)\n"
           "    return(%y, %a saved #0, %b saved #1)\n  }\n"
           "  backward @b(%a: f32[8] saved #0, %b: f32[8] saved #1, %g: f32[8]) {\n"
           "    %h0: f32[8] = mul(%g, %b)\n" +
           backward + "    %r: f32[8] = mul(%h" + std::to_string(distance) +
           ", %a)\n    return(%r)\n  }\n}\n";
  };
  EXPECT_THAT(namesOf(rematerialise(parse(text(8)), 0).report), ElementsAre("a", "b"));
  Outcome far = rematerialise(parse(text(40)), 0);
  EXPECT_EQ(far.report.values.size(), 1u);
  EXPECT_EQ(far.report.after.savedBytes, 32);
}

} // namespace
