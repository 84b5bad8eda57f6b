//===- UseGeneratorTest.cpp - Another generator for part of a pair --------===//

#include "PassFixture.h"

#include "rondo/passes/Passes.h"

using namespace rondo;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

class UseGeneratorTest : public PassFixture {
protected:
  /// The text of the pair in which ops of module "m" draw from "rank", or the error.
  std::string moved(llvm::StringRef text) {
    return runPass(createUseGeneratorPass({"rank", "m"}), parse(text));
  }
  /// A trace with `ops`, which make %y of %x, %c, %seed and %given.
  std::string movedOps(llvm::StringRef ops) {
    return moved(("trace @f(%x: f32[4], %c: bool, %seed: i64, %given: rng) {\n" + ops +
                  "\n  return(%y)\n}\n")
                     .str());
  }
};

// Ops that draw from two generators draw from one at offsets that no two of them share, and it
// advances by as much as both.
TEST_F(UseGeneratorTest, OffsetsOfTwoGeneratorsAreApart) {
  std::string text = movedOps(R"(
  %s: rng = generator_read()
  %a: f32[4] = uniform(%s) {dtype = f32, offset = 2, shape = [4]} module "m"
  generator_advance() {count = 10}
  %t: rng = generator_read() {generator = "t"}
  %b: f32[4] = normal(%t) {dtype = f32, offset = 3, shape = [4]} module "m.n"
  generator_advance() {count = 7, generator = "t"}
  %y: f32[4] = add(%a, %b))");
  EXPECT_THAT(text, AllOf(HasSubstr("= uniform(%0) {dtype = f32, offset = 2,"),
                          HasSubstr("= normal(%0) {dtype = f32, offset = 13,"),
                          HasSubstr("generator_advance() {count = 17, generator = \"rank\"}"),
                          HasSubstr("generator_advance() {count = 10}"),
                          HasSubstr("generator_advance() {count = 7, generator = \"t\"}")));
  EXPECT_TRUE(changed);
}

// What the new generator drew already keeps its offsets; the moved ops draw beyond them, and from
// what it is before it advances.
TEST_F(UseGeneratorTest, GeneratorInUse) {
  std::string text = movedOps(R"(
  %c2: f32[4] = neg(%x)
  %r: rng = generator_read() {generator = "rank"}
  %a: f32[4] = uniform(%r) {dtype = f32, offset = 0, shape = [4]} module "m"
  generator_advance() {count = 4, generator = "rank"}
  %s: rng = generator_read()
  %y: f32[4] = uniform(%s) {dtype = f32, offset = 1, shape = [4]} module "m"
  generator_advance() {count = 5})");
  EXPECT_THAT(text, AllOf(HasSubstr("{\n    %0: rng = generator_read() {generator = \"rank\"}\n"),
                          HasSubstr("%a: f32[4] = uniform(%r) {dtype = f32, offset = 0,"),
                          HasSubstr("%y: f32[4] = uniform(%0) {dtype = f32, offset = 5,"),
                          HasSubstr("generator_advance() {count = 9, generator = \"rank\"}")));
}

// Ops outside of the module that draw the numbers of one in it go with it; others stay.
TEST_F(UseGeneratorTest, OpsWithEqualNumbers) {
  std::string text = movedOps(R"(
  %s: rng = generator_read()
  %a: f32[4] = uniform(%s) {dtype = f32, offset = 0, shape = [4]}
  %b: f32[4] = uniform(%s) {dtype = f32, offset = 4, shape = [4]}
  %y: f32[4] = uniform(%s) {dtype = f32, offset = 0, shape = [4]} module "m"
  generator_advance() {count = 8})");
  EXPECT_THAT(text,
              AllOf(HasSubstr("%a: f32[4] = uniform(%0)"), HasSubstr("%b: f32[4] = uniform(%s)"),
                    HasSubstr("%y: f32[4] = uniform(%0)")));
}

// A backward that draws by itself reads and advances the new generator by itself; the module may be
// named in the backward alone.
TEST_F(UseGeneratorTest, Backward) {
  std::string text = moved(R"(
pair @p {
  forward @forward(%x: f32[4]) {
    %s: rng = generator_read()
    %a: f32[4], %k: bool[4] = dropout(%x, %s) {offset = 0, p = 0.5}
    generator_advance() {count = 4}
    return(%a, %s saved #0)
  }
  backward @backward(%s: rng saved #0, %g: f32[4]) {
    %a: f32[4], %k: bool[4] = dropout(%g, %s) {offset = 0, p = 0.5} module "m"
    %t: rng = generator_read()
    %y: f32[4] = uniform(%t) {dtype = f32, offset = 0, shape = [4]} module "m"
    generator_advance() {count = 6}
    %z: f32[4] = add(%a, %y)
    return(%z)
  }
})");
  auto [forward, backward] = llvm::StringRef(text).split("backward @");
  EXPECT_THAT(forward.str(),
              AllOf(HasSubstr("dropout(%x, %0)"), HasSubstr("{count = 4, generator = \"rank\"}"),
                    HasSubstr("%0 saved #1)")));
  EXPECT_THAT(backward.str(), AllOf(HasSubstr("dropout(%g, %0)"), HasSubstr("uniform(%1)"),
                                    HasSubstr("{count = 6, generator = \"rank\"}")));
}

// A pair without an op to move is refused: a path that is misspelt, or states that are given.
TEST_F(UseGeneratorTest, NothingToMove) {
  EXPECT_THAT(movedOps("  %y: f32[4] = uniform(%given) {dtype = f32, offset = 0, shape = [4]} "
                       "module \"m\""),
              HasSubstr("no op in module path 'm' draws from a generator"));
  EXPECT_THAT(movedOps(R"(  %s: rng = generator_read()
  %y: f32[4] = uniform(%s) {dtype = f32, offset = 0, shape = [4]} module "mm"
  generator_advance() {count = 4})"),
              HasSubstr("no op in module path 'm' draws from a generator"));
}

// What cannot be moved is refused, at the op that says so.
TEST_F(UseGeneratorTest, Refusals) {
  constexpr llvm::StringLiteral draws = "  %s: rng = generator_read()\n"
                                        "  %y: f32[4] = uniform(%s) {dtype = f32, offset = 0, "
                                        "shape = [4]} module \"m\"\n";
  EXPECT_THAT(movedOps(draws), HasSubstr("test:3:3: error: 'uniform' op draws from generator "
                                         "'default', which nothing advances"));
  EXPECT_THAT(
      movedOps((draws + "  generator_advance() {count = 9223372036854775807}\n"
                        "  generator_advance() {count = 1, generator = \"rank\"}")
                   .str()),
      HasSubstr("'uniform' op cannot draw from generator 'rank', too: it would advance by"));
  EXPECT_THAT(movedOps((draws + "  generator_advance() {count = 4}\n"
                                "  generator_seed(%seed) {generator = \"rank\"}")
                           .str()),
              HasSubstr("test:5:3: error: 'generator_seed' op seeds generator 'rank'"));
  EXPECT_THAT(movedOps(R"(  %s: rng = generator_read()
  %y: f32[4] = if(%c, %s) {
  ^(%s: rng):
    %y: f32[4] = uniform(%s) {dtype = f32, offset = 0, shape = [4]} module "m"
    return(%y)
  } {
  ^(%s: rng):
    %y: f32[4] = uniform(%s) {dtype = f32, offset = 4, shape = [4]}
    return(%y)
  }
  generator_advance() {count = 8})"),
              HasSubstr("'uniform' op is in a body of 'if'"));
  EXPECT_THAT(movedOps(R"(  %y: f32[4] = checkpoint() {
  ^():
    %s: rng = generator_read()
    %y: f32[4] = uniform(%s) {dtype = f32, offset = 0, shape = [4]} module "m"
    generator_advance() {count = 4}
    return(%y)
  })"),
              HasSubstr("'uniform' op draws from a generator that is read in a nested body"));
}

// Options are written as they are read, defaults left out.
TEST_F(UseGeneratorTest, OptionsText) {
  EXPECT_EQ(createUseGeneratorPass({"rank", "blocks.0"})->optionsText(),
            "generator=rank path=blocks.0");
  EXPECT_EQ(createUseGeneratorPass({"rank", ""})->optionsText(), "generator=rank");
  EXPECT_EQ(createUseGeneratorPass({"default", "m"})->optionsText(), "path=m");
  EXPECT_EQ(createUseGeneratorPass({"a b", ""})->optionsText(), "generator=\"a b\"");
}

} // namespace
