//===- VerifierRegionsTest.cpp - Claims, regions, generators, saved links ---===//

#include "VerifierCases.h"

using namespace rondo;
using namespace rondo::test;

static const std::vector<TextCase> cases = {
    {27,
     "DelWithoutProperty",
     "del stands only where the trace says that there are dels",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = relu(%x)
  del(%x)
  return(%y)
}
)",
     {"t.trace:3:3: error: 'del' op in a trace without the property 'dels'"},
     R"(
trace @t(%x: f32[8]) dels {
  %y: f32[8] = relu(%x)
  del(%x)
  return(%y)
}
)"},
    {28,
     "UnclaimedOp",
     "in a claimed trace every op has a claim, but for return, del, cuda_graph",
     R"(
trace @t(%x: f32[8]) claimed dels {
  %y: f32[8] = relu(%x)
  del(%x)
  return(%y)
}
)",
     {"t.trace:2:3: error: 'relu' op has no claim in a trace with the property 'claimed'"},
     R"(
trace @t(%x: f32[8]) claimed dels {
  %y: f32[8] = relu(%x) claim("host")
  del(%x)
  return(%y)
}
)"},
    {28,
     "UnclaimedOpInRegion",
     "ops in a region need claims, too",
     R"(
trace @t(%x: f32[8]) claimed regions {
  domain #0 "d"
  %y: f32[8] = cuda_graph(%x) {region = 0} domain #0 {
  ^(%x: f32[8]):
    %y: f32[8] = relu(%x)
    return(%y)
  }
  return(%y)
}
)",
     {"t.trace:5:5: error: 'relu' op has no claim in a trace with the property 'claimed'"},
     R"(
trace @t(%x: f32[8]) claimed regions {
  domain #0 "d"
  %y: f32[8] = cuda_graph(%x) {region = 0} domain #0 {
  ^(%x: f32[8]):
    %y: f32[8] = relu(%x) claim("host")
    return(%y)
  }
  return(%y)
}
)"},
    {28,
     "ClaimedAsOne",
     "the claim of a region covers what is in it, that of an if does not",
     R"(
trace @t(%p: bool, %x: f32[8]) claimed {
  %y: f32[8] = if(%p, %x) claim("host") {
  ^(%x: f32[8]):
    %y: f32[8] = relu(%x)
    return(%y)
  } {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%y)
}
)",
     {"t.trace:4:5: error: 'relu' op has no claim in a trace with the property 'claimed'"},
     R"(
trace @t(%x: f32[8]) claimed {
  %y: f32[8] = fused(%x) claim("host") {
  ^(%x: f32[8]):
    %y: f32[8] = relu(%x)
    return(%y)
  }
  return(%y)
}
)"},
    {29,
     "ClaimByNobody",
     "a claim names an executor",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = relu(%x) claim("")
  return(%y)
}
)",
     {"t.trace:2:3: error: 'relu' op has a claim that names no executor"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = relu(%x) claim("host")
  return(%y)
}
)"},
    {30,
     "RegionWithoutProperty",
     "cuda_graph stands only where the trace says so",
     R"(
trace @t(%x: f32[8]) {
  domain #0 "d"
  %y: f32[8] = cuda_graph(%x) {region = 0} domain #0 {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%y)
}
)",
     {"t.trace:3:3: error: 'cuda_graph' op in a trace without the property 'regions'"},
     R"(
trace @t(%x: f32[8]) regions {
  domain #0 "d"
  %y: f32[8] = cuda_graph(%x) {region = 0} domain #0 {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%y)
}
)"},
    {31,
     "RegionWithoutDomain",
     "cuda_graph says whose graphs are cached",
     R"(
trace @t(%x: f32[8]) regions {
  %y: f32[8] = cuda_graph(%x) {region = 0} {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%y)
}
)",
     {"t.trace:2:3: error: 'cuda_graph' op has no capture domain"},
     R"(
trace @t(%x: f32[8]) regions {
  domain #0 "d"
  %y: f32[8] = cuda_graph(%x) {region = 0} domain #0 {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%y)
}
)"},
    {31,
     "DomainOfAnotherOp",
     "only cuda_graph has a capture domain",
     R"(
trace @t(%x: f32[8]) {
  domain #0 "d"
  %y: f32[8] = relu(%x) domain #0
  return(%y)
}
)",
     {"t.trace:3:3: error: 'relu' op has a capture domain; only 'cuda_graph' may"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = relu(%x)
  return(%y)
}
)"},
    {32,
     "RegionTwice",
     "regions have numbers of their own, nested ones too",
     R"(
trace @t(%x: f32[8]) regions {
  domain #0 "d"
  %y: f32[8] = cuda_graph(%x) {region = 1} domain #0 {
  ^(%x: f32[8]):
    return(%x)
  }
  %z: f32[8] = checkpoint(%y) {
  ^(%x: f32[8]):
    %y: f32[8] = cuda_graph(%x) {region = 1} domain #0 {
    ^(%x: f32[8]):
      return(%x)
    }
    return(%y)
  }
  return(%z)
}
)",
     {"t.trace:9:5: error: region 1 is in the trace twice", "t.trace:3:3: note: the other one is "
                                                            "here"},
     R"(
trace @t(%x: f32[8]) regions {
  domain #0 "d"
  %y: f32[8] = cuda_graph(%x) {region = 1} domain #0 {
  ^(%x: f32[8]):
    return(%x)
  }
  %z: f32[8] = checkpoint(%y) {
  ^(%x: f32[8]):
    %y: f32[8] = cuda_graph(%x) {region = 0} domain #0 {
    ^(%x: f32[8]):
      return(%x)
    }
    return(%y)
  }
  return(%z)
}
)"},
    {32,
     "SymbolicRegion",
     "the number of a region is a constant",
     R"(
trace @t(%x: f32[8]) regions {
  domain #0 "d"
  %y: f32[8] = cuda_graph(%x) {region = B} domain #0 {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%y)
}
)",
     {"t.trace:3:3: error: 'cuda_graph' op attribute 'region' is B, expected a constant"},
     R"(
trace @t(%x: f32[8]) regions {
  domain #0 "d"
  %y: f32[8] = cuda_graph(%x) {region = 9223372036854775807} domain #0 {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%y)
}
)"},
    {33,
     "InputsOfOtherNumber",
     "there is one word for each operand of a cuda_graph",
     R"(
trace @t(%x: f32[8]) regions {
  domain #0 "d"
  %y: f32[8] = cuda_graph(%x) {inputs = ["auto", "static"], region = 0} domain #0 {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%y)
}
)",
     {"t.trace:3:3: error: 'cuda_graph' op attribute 'inputs' has 2 words for 1 operand"},
     R"(
trace @t(%x: f32[8]) regions {
  domain #0 "d"
  %y: f32[8] = cuda_graph(%x) {inputs = ["auto"], region = 0} domain #0 {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%y)
}
)"},
    {33,
     "UnknownWord",
     "the words of inputs are known; a near one is suggested",
     R"(
trace @t(%x: f32[8], %w: f32[8]) regions {
  domain #0 "d"
  %y: f32[8] = cuda_graph(%x, %w) {inputs = ["auto", "copyed"], region = 0} domain #0 {
  ^(%x: f32[8], %w: f32[8]):
    return(%x)
  }
  return(%y)
}
)",
     {"t.trace:3:3: error: 'cuda_graph' op attribute 'inputs' has the unknown word 'copyed' at #1 "
      "(did you mean 'copied'?)"},
     R"(
trace @t(%x: f32[8], %w: f32[8]) regions {
  domain #0 "d"
  %y: f32[8] = cuda_graph(%x, %w) {inputs = ["patched", "copied"], region = 0} domain #0 {
  ^(%x: f32[8], %w: f32[8]):
    return(%x)
  }
  return(%y)
}
)"},
    {34,
     "AdvancedTwice",
     "a generator is advanced at most once in a body; clones keep offsets",
     R"(
trace @t() {
  %s: rng = generator_read()
  %u: f32[8] = uniform(%s) {dtype = f32, offset = 0, shape = [8]}
  generator_advance() {count = 8}
  %v: f32[8] = uniform(%s) {dtype = f32, offset = 0, shape = [8]}
  generator_advance() {count = 8, generator = "default"}
  return(%u, %v)
}
)",
     {"t.trace:6:3: error: generator 'default' is advanced twice in one body",
      "t.trace:4:3: note: advanced here before"},
     R"(
trace @t() {
  %s: rng = generator_read()
  %u: f32[8] = uniform(%s) {dtype = f32, offset = 0, shape = [8]}
  generator_advance() {count = 8}
  %v: f32[8] = uniform(%s) {dtype = f32, offset = 0, shape = [8]}
  generator_advance() {count = 8, generator = "other"}
  generator_advance() {count = 8, device = cuda:0}
  return(%u, %v)
}
)"},
    //===--- Pairs ----------------------------------------------------------===//
    {35,
     "SavedWithoutBackward",
     "a pair without backward saves nothing",
     R"(
pair @p {
  forward @f(%x: f32[8]) {
    return(%x, %x saved #0)
  }
}
)",
     {"t.trace:3:5: error: 'return' op operand #1 ('%x') is saved as #0, but the pair has no "
      "backward"},
     R"(
pair @p {
  forward @f(%x: f32[8]) {
    return(%x)
  }
}
)"},
    {36,
     "SavedForNothing",
     "what is saved is an argument of the backward",
     R"(
pair @p {
  forward @f(%x: f32[8]) {
    return(%x, %x saved #0, %x saved #1)
  }
  backward @b(%a: f32[8] saved #1) {
    return(%a)
  }
}
)",
     {"t.trace:3:5: error: 'return' op operand #1 ('%x') is saved as #0, which is no argument of "
      "the backward"},
     R"(
pair @p {
  forward @f(%x: f32[8]) {
    return(%x, %x saved #0, %x saved #1)
  }
  backward @b(%a: f32[8] saved #1, %b: f32[8] saved #0, %g: f32[8]) {
    return(%a)
  }
}
)"},
    {36,
     "SavedByNothing",
     "a saved argument of the backward is returned by the forward",
     R"(
pair @p {
  forward @f(%x: f32[8]) {
    return(%x)
  }
  backward @b(%g: f32[8], %a: f32[8] saved #0) {
    return(%a)
  }
}
)",
     {"@b: error: argument #1 ('%a') is saved #0, which the forward does not return"},
     R"(
pair @p {
  forward @f(%x: f32[8]) {
    return(%x, %x saved #0)
  }
  backward @b(%g: f32[8], %a: f32[8] saved #0) {
    return(%a)
  }
}
)"},
    {37,
     "SavedAsOtherType",
     "both ends of a saved link have one type",
     R"(
pair @p {
  forward @f(%x: f32[8]) {
    return(%x saved #0)
  }
  backward @b(%a: f32[4] saved #0) {
    return(%a)
  }
}
)",
     {"t.trace:3:5: error: 'return' op operand #0 ('%x') is saved as #0 with type f32[8], but the "
      "argument of the backward has type f32[4]",
      "@b: note: '%a' is the argument"},
     R"(
pair @p {
  forward @f(%x: f32[8]) {
    return(%x saved #0)
  }
  backward @b(%a: f32[8] saved #0) {
    return(%a)
  }
}
)"},
    {37,
     "SavedAbsence",
     "what is saved is there",
     R"(
pair @p {
  forward @f(%x: f32[8]) {
    return(%x, none saved #0)
  }
  backward @b(%a: f32[8] saved #0) {
    return(%a)
  }
}
)",
     {"t.trace:3:5: error: 'return' op operand #1 is saved as #0 but is absent"},
     R"(
pair @p {
  forward @f(%x: f32[8]) {
    return(%x, %x saved #0, none)
  }
  backward @b(%a: f32[8] saved #0) {
    return(%a)
  }
}
)"},
    {39,
     "DrawsPastTheAdvance",
     "a random op draws numbers below what its generator advances by",
     R"(
trace @t(%x: f32[4]) {
  %s: rng = generator_read()
  %y: f32[4], %m: bool[4] = dropout(%x, %s) {offset = 2, p = 0.5}
  generator_advance() {count = 5}
  return(%y)
}
)",
     {"t.trace:3:3: error: 'dropout' op draws 4 numbers from offset 2 on, but generator "
      "\"default\" advances by 5",
      "t.trace:4:3: note: advanced here"},
     R"(
trace @t(%x: f32[4]) {
  %s: rng = generator_read()
  %y: f32[4], %m: bool[4] = dropout(%x, %s) {offset = 2, p = 0.5}
  generator_advance() {count = 6}
  return(%y)
}
)"},
    {39,
     "DrawsOfEachGenerator",
     "each generator and device has its own advance",
     R"(
trace @t(%n: i64) {
  %s: rng = generator_read()
  %r: rng = generator_read() {generator = "rank"}
  %x: f32[8] = uniform(%s) {dtype = f32, offset = 0, shape = [8]}
  %y: f32[1] = normal(%r) {dtype = f32, offset = 8, shape = [1]}
  generator_advance() {count = 9}
  generator_advance() {count = 8, generator = "rank"}
  return(%x, %y)
}
)",
     {"t.trace:5:3: error: 'normal' op draws 1 number from offset 8 on, but generator \"rank\" "
      "advances by 8",
      "t.trace:7:3: note: advanced here"},
     R"(
trace @t(%n: i64) {
  %s: rng = generator_read()
  %r: rng = generator_read() {generator = "rank"}
  %x: f32[8] = uniform(%s) {dtype = f32, offset = 0, shape = [8]}
  %y: f32[1] = normal(%r) {dtype = f32, offset = 8, shape = [1]}
  generator_advance() {count = 8}
  generator_advance() {count = 9, generator = "rank"}
  return(%x, %y)
}
)"},
    {39,
     "AttentionDraws",
     "attention draws a number for each weight, if it drops any",
     R"(
trace @t(%q: f32[2, 3, 4], %k: f32[2, 5, 4]) {
  %s: rng = generator_read()
  %y: f32[2, 3, 4], %l: f32[2, 3] = scaled_dot_product_attention(%q, %k, %k, none, %s) {dropout_p = 0.5}
  generator_advance() {count = 29}
  return(%y)
}
)",
     {"t.trace:3:3: error: 'scaled_dot_product_attention' op draws 30 numbers from offset 0 on, "
      "but generator \"default\" advances by 29"},
     R"(
trace @t(%q: f32[2, 3, 4], %k: f32[2, 5, 4]) {
  %s: rng = generator_read()
  %y: f32[2, 3, 4], %l: f32[2, 3] = scaled_dot_product_attention(%q, %k, %k, none, %s)
  generator_advance() {count = 29}
  return(%y)
}
)"},
    {39,
     "DrawsInABody",
     "states are followed into bodies",
     R"(
trace @t(%x: f32[4]) {
  %s: rng = generator_read()
  %y: f32[4] = checkpoint(%x, %s) {
  ^(%x: f32[4], %s: rng):
    %d: f32[4], %m: bool[4] = dropout(%x, %s) {offset = 4, p = 0.5}
    return(%d)
  }
  generator_advance() {count = 4}
  return(%y)
}
)",
     {"t.trace:5:5: error: 'dropout' op draws 4 numbers from offset 4 on, but generator "
      "\"default\" advances by 4"},
     R"(
trace @t(%x: f32[4]) {
  %s: rng = generator_read()
  %y: f32[4] = checkpoint(%x, %s) {
  ^(%x: f32[4], %s: rng):
    %d: f32[4], %m: bool[4] = dropout(%x, %s) {offset = 4, p = 0.5}
    return(%d)
  }
  generator_advance() {count = 8}
  return(%y)
}
)"},
    {39,
     "DrawsInTheBackward",
     "a backward draws below what the forward advances by",
     R"(
pair @p {
  forward @f(%x: f32[4]) {
    %s: rng = generator_read()
    %y: f32[4], %m: bool[4] = dropout(%x, %s) {offset = 0, p = 0.5}
    generator_advance() {count = 4}
    return(%y, %s saved #0)
  }
  backward @b(%s: rng saved #0, %g: f32[4]) {
    %y: f32[4], %m: bool[4] = dropout(%g, %s) {offset = 4, p = 0.5}
    return(%y)
  }
}
)",
     {"t.trace:9:5: error: 'dropout' op draws 4 numbers from offset 4 on, but generator "
      "\"default\" advances by 4",
      "t.trace:5:5: note: advanced here"},
     R"(
pair @p {
  forward @f(%x: f32[4]) {
    %s: rng = generator_read()
    %y: f32[4], %m: bool[4] = dropout(%x, %s) {offset = 0, p = 0.5}
    generator_advance() {count = 4}
    return(%y, %s saved #0)
  }
  backward @b(%s: rng saved #0, %g: f32[4]) {
    %y: f32[4], %m: bool[4] = dropout(%g, %s) {offset = 0, p = 0.5}
    return(%y)
  }
}
)"},
};

INSTANTIATE_TEST_SUITE_P(Regions, VerifierTextTest, testing::ValuesIn(cases), nameOf<TextCase>);

std::vector<unsigned> rondo::test::invariantsOfRegionCases() {
  return invariantsOf(cases);
}
