//===- OpSpecTest.cpp - Descriptions of ops and what hooks see ------------===//

#include "rondo/ir/OpSpec.h"

#include <gtest/gtest.h>

using namespace rondo;

namespace {

OperandSpec operand(const char *name, Arity arity) {
  return {name, OperandKind::Tensor, arity};
}

/// An attribute matches the kinds that may hold it and no other.
TEST(OpSpec, AttributeKinds) {
  struct Case {
    Attribute attribute;
    std::vector<AttributeKind> kinds; // besides Any
  } cases[] = {
      {Attribute(), {}},
      {true, {AttributeKind::Bool, AttributeKind::Number}},
      {7, {AttributeKind::Int, AttributeKind::Number}},
      {Dim::symbol("S"), {AttributeKind::Int, AttributeKind::Number}},
      {0.5, {AttributeKind::Number}},
      {"x", {AttributeKind::String}},
      {DType::F32, {AttributeKind::DType}},
      {Device::cuda(0), {AttributeKind::Device}},
      {Attribute::List{1, Dim::symbol("S")}, {AttributeKind::IntList}},
      {Attribute::List{true, false}, {AttributeKind::BoolList}},
      {Attribute::List{"a"}, {AttributeKind::StringList}},
      {Attribute::List{1, true}, {}},
      {Attribute::List{Attribute(Attribute::List{1})}, {}},
      {Attribute::List{},
       {AttributeKind::IntList, AttributeKind::BoolList, AttributeKind::StringList}},
  };
  for (const Case &c : cases)
    for (unsigned k = 0; k <= unsigned(AttributeKind::Any); ++k) {
      bool expected =
          AttributeKind(k) == AttributeKind::Any || llvm::is_contained(c.kinds, AttributeKind(k));
      EXPECT_EQ(matches(AttributeKind(k), c.attribute), expected)
          << c.attribute.str() << " as " << attributeKindName(AttributeKind(k)).str();
    }
}

/// Kinds have names for messages and tables.
TEST(OpSpec, KindNames) {
  EXPECT_EQ(attributeKindName(AttributeKind::IntList), "int list");
  EXPECT_EQ(attributeKindName(AttributeKind::DType), "dtype");
  EXPECT_EQ(operandKindName(OperandKind::TensorOrScalar), "tensor or scalar");
  EXPECT_EQ(operandKindName(OperandKind::RNGState), "rng state");
}

/// Trailing optional and variadic operands may be left out; one before a required one may not.
TEST(OpSpec, RequiredOperands) {
  OpSpec spec;
  EXPECT_EQ(spec.numRequiredOperands(), 0u);
  EXPECT_FALSE(spec.isVariadic());
  spec.operands = {operand("a", Arity::Required), operand("b", Arity::Optional)};
  EXPECT_EQ(spec.numRequiredOperands(), 1u);
  spec.operands.push_back(operand("c", Arity::Required));
  EXPECT_EQ(spec.numRequiredOperands(), 3u);
  EXPECT_FALSE(spec.isVariadic());
  spec.operands.push_back(operand("d", Arity::Variadic));
  EXPECT_EQ(spec.numRequiredOperands(), 3u);
  EXPECT_TRUE(spec.isVariadic());
}

/// A view launches nothing and names an operand's storage; an op that launches is none.
TEST(OpSpec, IsView) {
  OpSpec spec;
  spec.launches = false;
  EXPECT_FALSE(spec.isView());
  spec.views = {{0, 0}};
  EXPECT_TRUE(spec.isView());
  spec.launches = true;
  EXPECT_FALSE(spec.isView());
  OpSpec split;
  split.launches = false;
  split.allResultsViewFirst = true;
  EXPECT_TRUE(split.isView());
}

/// The spec and attributes of the cases below.
class OpContextTest : public testing::Test {
protected:
  OpContextTest() {
    spec.name = "op";
    spec.attributes = {{"dim", AttributeKind::Int, true},
                       {"keep", AttributeKind::Bool, false, true},
                       {"p", AttributeKind::Number, false, 0.5},
                       {"mode", AttributeKind::String, false, "sum"},
                       {"dims", AttributeKind::IntList, false, Attribute::List{0, 1}},
                       {"bare", AttributeKind::Int}};
  }
  OpContext context(llvm::ArrayRef<NamedAttribute> attributes = {}) {
    return OpContext(spec, operands, attributes);
  }

  OpSpec spec;
  Type tensor = TensorType(DType::F32, {2}), scalar = ScalarKind::F64;
  std::vector<const Type *> operands = {&tensor, nullptr, &scalar};
};

/// Operands that are absent or past the end are null, and what is no tensor is no tensor.
TEST_F(OpContextTest, Operands) {
  OpContext c = context();
  EXPECT_EQ(c.numOperands(), 3u);
  EXPECT_EQ(c.operand(0), &tensor);
  EXPECT_EQ(c.tensor(0), tensor.asTensor());
  EXPECT_EQ(c.operand(1), nullptr);
  EXPECT_EQ(c.tensor(1), nullptr);
  EXPECT_EQ(c.operand(2), &scalar);
  EXPECT_EQ(c.tensor(2), nullptr);
  EXPECT_EQ(c.operand(3), nullptr);
  EXPECT_TRUE(c.results().empty());
}

/// A stored attribute comes before the default, the default before nothing.
TEST_F(OpContextTest, AttributesAndDefaults) {
  NamedAttribute stored[] = {{"keep", false}};
  EXPECT_EQ(*context(stored).attribute("keep"), Attribute(false));
  EXPECT_EQ(*context().attribute("keep"), Attribute(true));
  EXPECT_EQ(context().attribute("dim"), nullptr);
  EXPECT_EQ(context().attribute("bare"), nullptr);
  EXPECT_EQ(context().attribute("unknown"), nullptr);
}

/// Shorthands give the stored value, else the default of the spec, else the fallback.
TEST_F(OpContextTest, Shorthands) {
  NamedAttribute stored[] = {
      {"dim", -1}, {"keep", false}, {"p", 1}, {"mode", "mean"}, {"dims", Attribute::List{2}}};
  OpContext full = context(stored), bare = context();
  EXPECT_EQ(full.intAttribute("dim"), -1);
  EXPECT_EQ(bare.intAttribute("dim", 9), 9);
  EXPECT_EQ(full.boolAttribute("keep"), false);
  EXPECT_EQ(bare.boolAttribute("keep"), true);
  EXPECT_EQ(bare.boolAttribute("unknown", true), true);
  EXPECT_EQ(full.numberAttribute("p"), 1.0);
  EXPECT_EQ(bare.numberAttribute("p"), 0.5);
  EXPECT_EQ(bare.numberAttribute("unknown", 3), 3.0);
  EXPECT_EQ(full.stringAttribute("mode"), "mean");
  EXPECT_EQ(bare.stringAttribute("mode"), "sum");
  EXPECT_EQ(bare.stringAttribute("unknown", "none"), "none");
  EXPECT_EQ(full.dimsAttribute("dims"), Dims{2});
  EXPECT_EQ(bare.dimsAttribute("dims"), Dims({0, 1}));
  EXPECT_EQ(bare.dimsAttribute("unknown"), Dims());
}

/// A bool is a number; a symbolic integer and a value of another kind are not.
TEST_F(OpContextTest, ShorthandsOfOtherKinds) {
  NamedAttribute stored[] = {{"p", true}, {"dim", Dim::symbol("S")}, {"mode", 3}};
  OpContext c = context(stored);
  EXPECT_EQ(c.numberAttribute("p"), 1.0);
  EXPECT_EQ(c.intAttribute("dim", 9), 9);
  EXPECT_EQ(c.numberAttribute("dim", 9), 9.0);
  EXPECT_EQ(c.stringAttribute("mode", "fallback"), "fallback");
  EXPECT_EQ(c.boolAttribute("mode", true), true);
  EXPECT_EQ(c.dimsAttribute("mode"), Dims());
}

} // namespace
