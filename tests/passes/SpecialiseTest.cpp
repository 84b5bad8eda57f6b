//===- SpecialiseTest.cpp - Symbols become numbers --------------------------===//

#include "PassFixture.h"

#include "rondo/ir/TraceBuilder.h"
#include "rondo/ir/Verifier.h"
#include "rondo/passes/Passes.h"

#include <random>

using namespace rondo;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

namespace {

class SpecialiseTest : public PassFixture {
protected:
  /// The text of the pair with the symbols bound, or the error.
  std::string specialised(llvm::StringRef text, const SymbolBindings &bindings) {
    return runPass(createSpecialisePass(bindings), parse(text));
  }
};

constexpr llvm::StringLiteral simple = R"(trace @step(%x: f32[B, S]) {
  %y: f32[B, S] = relu(%x)
  return(%y)
}
)";

//===----------------------------------------------------------------------===//
// What changes
//===----------------------------------------------------------------------===//

// Symbols in types and in integer attributes and lists of them become numbers, in both traces;
// strides and both ends of a saved link follow.
TEST_F(SpecialiseTest, TypesAndAttributesOfBothTraces) {
  EXPECT_EQ(specialised(R"(pair @step {
  forward @fw(%x: f32[B, S], %u: f32[B, S, 1], %r: rng) {
    %t: f32[S, B; 1, S] = permute(%x) {dims = [1, 0]}
    %e: f32[B, S, 8; S, 1, 0] = expand(%u) {shape = [B, S, 8]}
    %d: f32[S, B], %m: bool[S, B] = dropout(%t, %r) {offset = B*S+1, p = 0.5}
    return(%d, %e, %m saved #0)
  }
  backward @bw(%g: f32[S, B], %m: bool[S, B] saved #0) {
    %d: f32[S, B] = dropout_backward(%g, %m) {scale = 2.0}
    %z: f32[B*S] = full() {dtype = f32, shape = [B*S], value = 1.0}
    return(%d, %z)
  }
}
)",
                        {{"B", 4}, {"S", 3}}),
            R"(pair @step {
  forward @fw(%x: f32[4, 3], %u: f32[4, 3, 1], %r: rng) {
    %t: f32[3, 4; 1, 3] = permute(%x) {dims = [1, 0]}
    %e: f32[4, 3, 8; 3, 1, 0] = expand(%u) {shape = [4, 3, 8]}
    %d: f32[3, 4], %m: bool[3, 4] = dropout(%t, %r) {offset = 13, p = 0.5}
    return(%d, %e, %m saved #0)
  }
  backward @bw(%g: f32[3, 4], %m: bool[3, 4] saved #0) {
    %d: f32[3, 4] = dropout_backward(%g, %m) {scale = 2.0}
    %z: f32[12] = full() {dtype = f32, shape = [12], value = 1.0}
    return(%d, %z)
  }
}
)");
  EXPECT_TRUE(changed);
}

// A symbol without a binding stays, and a second run binds it.
TEST_F(SpecialiseTest, BindsOneSymbolAfterTheOther) {
  std::string one = specialised(simple, {{"B", 4}});
  EXPECT_THAT(one, HasSubstr("%y: f32[4, S] = relu(%x)"));
  EXPECT_TRUE(changed);
  EXPECT_THAT(specialised(one, {{"S", 2}}), HasSubstr("%y: f32[4, 2] = relu(%x)"));
}

// Arguments, results and attributes in nested bodies, at any depth, are reached.
TEST_F(SpecialiseTest, NestedBodies) {
  EXPECT_EQ(specialised(R"(trace @step(%c: bool, %x: f32[B]) {
  %y: f32[B] = if(%c, %x) {
  ^(%x: f32[B]):
    %a: f32[B] = checkpoint(%x) {
    ^(%x: f32[B]):
      %f: f32[B] = full() {dtype = f32, shape = [B], value = 0.0}
      %a: f32[B] = add(%x, %f)
      return(%a)
    }
    return(%a)
  } {
  ^(%x: f32[B]):
    return(%x)
  }
  return(%y)
}
)",
                        {{"B", 7}}),
            R"(pair @step {
  forward @step(%c: bool, %x: f32[7]) {
    %y: f32[7] = if(%c, %x) {
    ^(%x: f32[7]):
      %a: f32[7] = checkpoint(%x) {
      ^(%x: f32[7]):
        %f: f32[7] = full() {dtype = f32, shape = [7], value = 0.0}
        %a: f32[7] = add(%x, %f)
        return(%a)
      }
      return(%a)
    } {
    ^(%x: f32[7]):
      return(%x)
    }
    return(%y)
  }
}
)");
}

// A size of 0 is fine: what is row-major stays so.
TEST_F(SpecialiseTest, SizeZero) {
  EXPECT_THAT(specialised(simple, {{"B", 3}, {"S", 0}}), HasSubstr("%y: f32[3, 0] = relu(%x)"));
}

// No bindings leave the pair alone, byte for byte.
TEST_F(SpecialiseTest, NoBindingsChangeNothing) {
  EXPECT_EQ(specialised(simple, {}), textOf(parse(simple)));
  EXPECT_FALSE(changed);
}

//===----------------------------------------------------------------------===//
// Strides that inference chooses anew
//===----------------------------------------------------------------------===//

// Where a dimension gets size 1, a view has the stride that its inference gives for the number,
// also behind bodies and across a saved link.
TEST_F(SpecialiseTest, StridesOfDimensionsOfSizeOne) {
  llvm::StringRef text = R"(pair @step {
  forward @fw(%x: f32[1, 8]) {
    %e: f32[B, 8; 0, 1] = expand(%x) {shape = [B, 8]}
    %c: f32[B, 8; 0, 1] = checkpoint(%e) {
    ^(%e: f32[B, 8; 0, 1]):
      %d: f32[B, 8; 0, 1] = detach(%e)
      return(%d)
    }
    return(%c saved #0)
  }
  backward @bw(%c: f32[B, 8; 0, 1] saved #0) {
    %d: f32[B, 8; 0, 1] = detach(%c)
    return(%d)
  }
}
)";
  std::string one = specialised(text, {{"B", 1}});
  EXPECT_THAT(one, HasSubstr("%e: f32[1, 8] = expand(%x) {shape = [1, 8]}"));
  EXPECT_THAT(one, HasSubstr("^(%e: f32[1, 8]):"));
  EXPECT_THAT(one, HasSubstr("backward @bw(%c: f32[1, 8] saved #0)"));
  EXPECT_THAT(one, Not(HasSubstr("; 0, 1")));
  EXPECT_THAT(specialised(text, {{"B", 2}}), HasSubstr("%e: f32[2, 8; 0, 1] = expand(%x)"));
}

/// Builds a random chain of views of f32[b, s, 4] or of f32[1, s, 1] expanded to it.
llvm::Expected<Trace> buildViews(const OpRegistry &registry, unsigned seed, const Dim &b,
                                 const Dim &s) {
  std::mt19937 random(seed);
  TraceBuilder builder(registry, "views");
  ValueId value = builder.argument("x", TensorType(DType::F32, {b, s, 4}));
  ValueId thin = builder.argument("t", TensorType(DType::F32, {1, s, 1}));
  llvm::SmallVector<ValueId, 8> results;
  if (random() % 2)
    value = builder.op("expand", {thin}, {{"shape", Attribute::List{b, s, 4}}});
  for (int step = 0; step < 5; ++step) {
    switch (random() % 6) {
    case 0:
      value = builder.op("permute", {value}, {{"dims", Attribute::List{1, 0, 2}}});
      break;
    case 1:
      results.push_back(builder.op("unsqueeze", {value}, {{"dim", int64_t(random() % 4)}}));
      break;
    case 2:
      value = builder.op("slice", {value}, {{"dim", 2}, {"start", 0}, {"end", 4}, {"step", 2}});
      break;
    case 3:
      results.push_back(builder.op("select", {value}, {{"dim", 2}, {"index", 0}}));
      break;
    case 4:
      value = builder.op("relu", {value});
      break;
    case 5: {
      Dims shape = builder.trace().tensorType(value).shape;
      shape.insert(shape.begin() + random() % 4, Dim(1));
      results.push_back(builder.op("reshape", {value}, {{"shape", Attribute(shape)}}));
      break;
    }
    }
  }
  results.push_back(value);
  builder.returnValues(results);
  return std::move(builder).finish();
}

// A program that was built with symbols and specialised is the program built with the numbers.
TEST_F(SpecialiseTest, EqualsTheProgramBuiltWithTheNumbers) {
  const std::pair<int64_t, int64_t> sizes[] = {{2, 3}, {1, 1}, {1, 3}, {4, 1}, {0, 2}, {3, 0}};
  for (unsigned seed = 0; seed < 200; ++seed)
    for (auto [b, s] : sizes) {
      llvm::Expected<Trace> symbolic =
          buildViews(registry, seed, Dim::symbol("B"), Dim::symbol("S"));
      ASSERT_TRUE(bool(symbolic)) << llvm::toString(symbolic.takeError());
      llvm::Expected<Trace> concrete = buildViews(registry, seed, b, s);
      ASSERT_TRUE(bool(concrete)) << llvm::toString(concrete.takeError());
      TracePair pair(std::move(*symbolic));
      ASSERT_EQ(messageOf(specialise(pair, {{"B", b}, {"S", s}})), "success")
          << "seed " << seed << ", B = " << b << ", S = " << s;
      ASSERT_EQ(textOf(pair), textOf(TracePair(std::move(*concrete))))
          << "seed " << seed << ", B = " << b << ", S = " << s;
    }
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

// A symbol that does not occur is an error that suggests the nearest one, for each such symbol in
// order; so is one that occurred and was bound.
TEST_F(SpecialiseTest, UnknownSymbols) {
  EXPECT_EQ(specialised(simple, {{"T", 4}, {"Ba", 2}}),
            "error: 'Ba' is no symbol of pair 'step' (did you mean 'B'?)\n"
            "note: its symbols are B, S\n"
            "error: 'T' is no symbol of pair 'step' (did you mean 'B'?)\n"
            "note: its symbols are B, S");
  std::string once = specialised(simple, {{"B", 4}, {"S", 2}});
  EXPECT_THAT(specialised(once, {{"B", 4}}), HasSubstr("note: it has no symbols"));
}

// A symbol that occurs in an attribute only, or in the backward only, is known.
TEST_F(SpecialiseTest, SymbolsThatOccurInOnePlaceOnly) {
  EXPECT_THAT(specialised(R"(trace @t(%x: f32[8], %r: rng) {
    %d: f32[8], %m: bool[8] = dropout(%x, %r) {offset = N, p = 0.5}
    return(%d)
  })",
                          {{"N", 16}}),
              HasSubstr("{offset = 16, p = 0.5}"));
  EXPECT_THAT(specialised(R"(pair @p {
    forward @fw(%x: f32[8]) {
      return(%x)
    }
    backward @bw(%g: f32[N]) {
      return(%g)
    }
  })",
                          {{"N", 16}}),
              HasSubstr("backward @bw(%g: f32[16])"));
}

// A negative value is no size.
TEST_F(SpecialiseTest, NegativeValues) {
  EXPECT_EQ(specialised(simple, {{"B", -4}}),
            "error: symbol 'B' stands for a size and cannot be -4");
}

// A value that makes a size negative is an error at the place, with the bindings.
TEST_F(SpecialiseTest, SizesThatBecomeNegative) {
  llvm::StringRef text = R"(trace @t(%x: f32[S-2]) {
  %y: f32[S-2] = relu(%x)
  return(%y)
}
)";
  std::string message = specialised(text, {{"S", 1}});
  EXPECT_THAT(message, StartsWith("error: pair 't' does not allow S=1\n"));
  EXPECT_THAT(message, HasSubstr("argument '%x' has type f32[-1], whose dimension #0 is negative"));
  EXPECT_THAT(specialised(text, {{"S", 2}}), HasSubstr("%y: f32[0] = relu(%x)"));
}

// A value that makes a size overflow is an error at the place.
TEST_F(SpecialiseTest, SizesThatOverflow) {
  std::string message = specialised(simple, {{"B", INT64_MAX}, {"S", INT64_MAX}});
  EXPECT_THAT(message, HasSubstr("does not allow B=9223372036854775807 S=9223372036854775807"));
  EXPECT_THAT(message, HasSubstr("overflow"));
}

// A result that contradicts the op's inference for the numbers is an error at the op: a dimension
// that squeeze kept for symbols has size 1 and would go.
TEST_F(SpecialiseTest, ResultsThatContradictInference) {
  llvm::StringRef text = R"(trace @t(%x: f32[B, 8]) {
  %y: f32[B, 8] = squeeze(%x) {dims = [0]}
  return(%y)
}
)";
  std::string message = specialised(text, {{"B", 1}});
  EXPECT_THAT(message,
              StartsWith("error: pair 't' does not allow B=1\ntest:2:3: error: 'squeeze' op "
                         "result #0 ('%y') has type f32[1, 8], expected f32[8]"));
  EXPECT_THAT(specialised(text, {{"B", 2}}), HasSubstr("%y: f32[2, 8] = squeeze(%x)"));
}

// Once ops are claimed it is too late: claims are for shapes.
TEST_F(SpecialiseTest, RefusesClaimedTraces) {
  TracePair pair = parse(simple);
  pair.forward().setProperties(TraceProperties::Claimed);
  EXPECT_THAT(runPass(createSpecialisePass({{"B", 1}}), std::move(pair)),
              HasSubstr("pass 'specialise' forbids 'claimed'"));
}

} // namespace
