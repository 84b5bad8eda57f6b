//===- RematerialiseRefusalTest.cpp - What cannot be computed again -------===//

#include "RematerialisePassFixture.h"

#include <gmock/gmock.h>

using namespace rondo;
using testing::HasSubstr;
using testing::Not;

namespace {

class RematerialiseRefusalTest : public RematerialisePassFixture {
protected:
  RematerialiseRefusalTest() {
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
};

struct Refusal {
  const char *forward;
  const char *message; ///< of the value when it is tagged
};

// Producers that cannot run again are refused at their place, with the value's name and the reason;
// not tagged, they are saved.
TEST_F(RematerialiseRefusalTest, Refuses) {
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
TEST_F(RematerialiseRefusalTest, InputsThatAreWritten) {
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
TEST_F(RematerialiseRefusalTest, StaleNamesAreComputedAgain) {
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
TEST_F(RematerialiseRefusalTest, Order) {
  PassProperties properties = RematerializationPass().properties();
  EXPECT_EQ(properties.forbids,
            TraceProperties::Claimed | TraceProperties::HasRegions | TraceProperties::HasDels);
}

} // namespace
