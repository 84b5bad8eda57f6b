//===- RematerialiseTest.cpp - Computing again what is tagged -------------===//

#include "RematerialisePassFixture.h"

#include <gmock/gmock.h>

using namespace rondo;
using testing::HasSubstr;
using testing::Not;

namespace {

class RematerialiseTest : public RematerialisePassFixture {};

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

} // namespace
