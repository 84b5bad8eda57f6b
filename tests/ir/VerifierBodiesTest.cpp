//===- VerifierBodiesTest.cpp - Bodies that do not fit their ops ------------===//

#include "VerifierCases.h"

using namespace rondo;
using namespace rondo::test;

static const std::vector<TextCase> cases = {
    {3,
     "MissingReturn",
     "a trace ends with a terminator",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = relu(%x)
}
)",
     {"@t: error: the trace does not end with a terminator"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = relu(%x)
  return(%y)
}
)"},
    {3,
     "EmptyTrace",
     "a trace without ops does not end with a terminator either",
     R"(
trace @t() {
}
)",
     {"@t: error: the trace does not end with a terminator"},
     R"(
trace @t() {
  return()
}
)"},
    {3,
     "ReturnInTheMiddle",
     "nothing follows a terminator",
     R"(
trace @t(%x: f32[8]) {
  return(%x)
  %y: f32[8] = relu(%x)
  return(%y)
}
)",
     {"t.trace:2:3: error: 'return' op is a terminator but not the last op of its body"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = relu(%x)
  return(%y)
}
)"},
    {3,
     "MissingReturnInBody",
     "a nested body ends with a terminator",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = fused(%x) {
  ^(%x: f32[8]):
    %y: f32[8] = relu(%x)
  }
  return(%y)
}
)",
     {"t.trace:2:3: error: body of 'fused' op does not end with a terminator"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = fused(%x) {
  ^(%x: f32[8]):
    %y: f32[8] = relu(%x)
    return(%y)
  }
  return(%y)
}
)"},
    {4,
     "OneBodyOfIf",
     "an if has two bodies",
     R"(
trace @t(%p: bool, %x: f32[8]) {
  %y: f32[8] = if(%p, %x) {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%y)
}
)",
     {"t.trace:2:3: error: 'if' op has 1 body, expected 2"},
     R"(
trace @t(%p: bool, %x: f32[8]) {
  %y: f32[8] = if(%p, %x) {
  ^(%x: f32[8]):
    return(%x)
  } {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%y)
}
)"},
    {4,
     "BodyOfRelu",
     "an op that is no region has no body",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = relu(%x) {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%y)
}
)",
     {"t.trace:2:3: error: 'relu' op has 1 body, expected 0"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = relu(%x)
  return(%y)
}
)"},
    {6,
     "TooFewArguments",
     "a body has an argument for each operand",
     R"(
trace @t(%x: f32[8], %y: f32[8]) {
  %z: f32[8] = fused(%x, %y) {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%z)
}
)",
     {"t.trace:2:3: error: body of 'fused' op has 1 argument for 2 operands"},
     R"(
trace @t(%x: f32[8], %y: f32[8]) {
  %z: f32[8] = fused(%x, %y) {
  ^(%x: f32[8], %y: f32[8]):
    return(%x)
  }
  return(%z)
}
)"},
    {6,
     "ArgumentOfOtherType",
     "the bodies of an if take its operands but for the condition",
     R"(
trace @t(%p: bool, %x: f32[8]) {
  %y: f32[8] = if(%p, %x) {
  ^(%x: f32[8]):
    return(%x)
  } {
  ^(%v: f32[4]):
    %y: f32[8] = cat(%v, %v) {dim = 0}
    return(%y)
  }
  return(%y)
}
)",
     {"t.trace:2:3: error: argument #0 ('%v') of body #1 of 'if' op has type f32[4], but operand "
      "#1 ('%x') has type f32[8]",
      "@t: note: '%x' is an argument of type f32[8]"},
     R"(
trace @t(%p: bool, %x: f32[8]) {
  %y: f32[8] = if(%p, %x) {
  ^(%x: f32[8]):
    return(%x)
  } {
  ^(%v: f32[8]):
    %y: f32[8] = relu(%v)
    return(%y)
  }
  return(%y)
}
)"},
    {6,
     "AbsentOperandOfRegion",
     "what a body is given is not absent",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = fused(none, %x) {
  ^(%w: f32[8], %x: f32[8]):
    return(%x)
  }
  return(%y)
}
)",
     {"t.trace:2:3: error: 'fused' op operand #0 is absent but is given to its body"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = fused(%x, %x) {
  ^(%w: f32[8], %x: f32[8]):
    return(%x)
  }
  return(%y)
}
)"},
    {7,
     "RegionReturnsOtherType",
     "a region gives what its body returns",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = fused(%x) {
  ^(%x: f32[8]):
    %b: bool[8] = isnan(%x)
    return(%b)
  }
  return(%y)
}
)",
     {"t.trace:5:5: error: 'return' op operand #0 ('%b') has type bool[8], but result #0 ('%y') of "
      "'fused' op has type f32[8]",
      "t.trace:2:3: note: the op is here"},
     R"(
trace @t(%x: f32[8]) {
  %y: bool[8] = fused(%x) {
  ^(%x: f32[8]):
    %b: bool[8] = isnan(%x)
    return(%b)
  }
  return(%y)
}
)"},
    {7,
     "IfReturnsTooMuch",
     "both bodies of an if give its results",
     R"(
trace @t(%p: bool, %x: f32[8]) {
  %y: f32[8] = if(%p, %x) {
  ^(%x: f32[8]):
    return(%x)
  } {
  ^(%x: f32[8]):
    return(%x, %x)
  }
  return(%y)
}
)",
     {"t.trace:7:5: error: 'return' op gives 2 values, but 'if' op has 1 result",
      "t.trace:2:3: note: the op is here"},
     R"(
trace @t(%p: bool, %x: f32[8]) {
  %y: f32[8], %z: f32[8] = if(%p, %x) {
  ^(%x: f32[8]):
    return(%x, %x)
  } {
  ^(%x: f32[8]):
    return(%x, %x)
  }
  return(%y)
}
)"},
    {7,
     "AbsentReturn",
     "a nested body returns no absent value",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = fused(%x) {
  ^(%x: f32[8]):
    return(none)
  }
  return(%y, none)
}
)",
     {"t.trace:4:5: error: 'return' op operand #0 is absent, but result #0 ('%y') of 'fused' op "
      "has type f32[8]"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = fused(%x) {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%y, none)
}
)"},
    {7,
     "StepOfOtherType",
     "the step of a while gives what the next iteration is given",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = while(%x) {
  ^(%x: f32[8]):
    %s: f32[] = sum(%x)
    %p: bool[] = lt(%s) {scalar = 0}
    return(%p)
  } {
  ^(%x: f32[8]):
    %s: f32[] = sum(%x)
    return(%s)
  }
  return(%y)
}
)",
     {"t.trace:10:5: error: 'return' op operand #0 ('%s') has type f32[], but operand #0 ('%x') of "
      "'while' op has type f32[8]"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = while(%x) {
  ^(%x: f32[8]):
    %s: f32[] = sum(%x)
    %p: bool[] = lt(%s) {scalar = 0}
    return(%p)
  } {
  ^(%x: f32[8]):
    %s: f32[8] = neg(%x)
    return(%s)
  }
  return(%y)
}
)"},
    {7,
     "LoopOfOtherResult",
     "the results of a while have the types of its operands",
     R"(
trace @t(%p: bool, %x: f32[8]) {
  %q: bool, %y: f32[4] = while(%p, %x) {
  ^(%p: bool, %x: f32[8]):
    return(%p)
  } {
  ^(%p: bool, %x: f32[8]):
    return(%p, %x)
  }
  return(%y)
}
)",
     {"t.trace:2:3: error: 'while' op result #1 ('%y') has type f32[4], but operand #1 ('%x') has "
      "type f32[8]"},
     R"(
trace @t(%p: bool, %x: f32[8]) {
  %q: bool, %y: f32[8] = while(%p, %x) {
  ^(%p: bool, %x: f32[8]):
    return(%p)
  } {
  ^(%p: bool, %x: f32[8]):
    return(%p, %x)
  }
  return(%y)
}
)"},
    {7,
     "LoopOfFewResults",
     "a while has a result for each operand",
     R"(
trace @t(%p: bool, %x: f32[8]) {
  %q: bool = while(%p, %x) {
  ^(%p: bool, %x: f32[8]):
    return(%p)
  } {
  ^(%p: bool, %x: f32[8]):
    return(%p, %x)
  }
  return(%x)
}
)",
     {"t.trace:2:3: error: 'while' op has 1 result for 2 operands"},
     R"(
trace @t(%p: bool) {
  %q: bool = while(%p) {
  ^(%p: bool):
    return(%p)
  } {
  ^(%p: bool):
    return(%p)
  }
  return(%q)
}
)"},
    {8,
     "LoopOfFloatCondition",
     "the condition of a while is one bool",
     R"(
trace @t(%x: f32[1]) {
  %y: f32[1] = while(%x) {
  ^(%x: f32[1]):
    return(%x)
  } {
  ^(%x: f32[1]):
    return(%x)
  }
  return(%y)
}
)",
     {"t.trace:4:5: error: 'return' op operand #0 ('%x'), the condition, has type f32[1], expected "
      "one bool"},
     R"(
trace @t(%x: bool[1]) {
  %y: bool[1] = while(%x) {
  ^(%x: bool[1]):
    return(%x)
  } {
  ^(%x: bool[1]):
    return(%x)
  }
  return(%y)
}
)"},
    {8,
     "LoopOfTwoConditions",
     "the condition of a while is one value",
     R"(
trace @t(%p: bool) {
  %q: bool = while(%p) {
  ^(%p: bool):
    return(%p, %p)
  } {
  ^(%p: bool):
    return(%p)
  }
  return(%q)
}
)",
     {"t.trace:4:5: error: 'return' op gives 2 values, expected one: the condition of 'while'"},
     R"(
trace @t(%p: bool) {
  %q: bool = while(%p) {
  ^(%p: bool):
    return(%p)
  } {
  ^(%p: bool):
    return(%p)
  }
  return(%q)
}
)"},
    {8,
     "IfOnAFloat",
     "the condition of an if is one bool",
     R"(
trace @t(%p: f32[]) {
  %q: f32[] = if(%p, %p) {
  ^(%p: f32[]):
    return(%p)
  } {
  ^(%p: f32[]):
    return(%p)
  }
  return(%q)
}
)",
     {"t.trace:2:3: error: 'if' op expects operand 'condition' to be one bool"},
     R"(
trace @t(%p: bool[]) {
  %q: bool[] = if(%p, %p) {
  ^(%p: bool[]):
    return(%p)
  } {
  ^(%p: bool[]):
    return(%p)
  }
  return(%q)
}
)"},
};

INSTANTIATE_TEST_SUITE_P(Bodies, VerifierTextTest, testing::ValuesIn(cases), nameOf<TextCase>);

std::vector<unsigned> rondo::test::invariantsOfBodyCases() {
  return invariantsOf(cases);
}
