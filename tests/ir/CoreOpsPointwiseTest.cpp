//===- CoreOpsPointwiseTest.cpp - Element by element ----------------------===//

#include "CoreOpsCases.h"

using namespace rondo;
using namespace rondo::test;

namespace {

const char *const floatOps[] = {"exp",        "log", "log1p", "expm1", "sqrt",    "rsqrt",
                                "reciprocal", "sin", "cos",   "tanh",  "sigmoid", "erf"};
const char *const keepingOps[] = {"neg", "abs", "sign", "floor", "ceil", "round", "relu"};
const char *const activations[] = {"silu", "softplus", "leaky_relu", "gelu"};
const char *const tests[] = {"logical_not", "isnan", "isinf"};
const char *const comparisons[] = {"eq", "ne",          "lt",         "le",         "gt",
                                   "ge", "logical_and", "logical_or", "logical_xor"};
const char *const bitwiseOps[] = {"bitwise_and", "bitwise_or", "bitwise_xor"};
const char *const arithmetic[] = {"add", "sub",     "rsub",    "mul",
                                  "pow", "maximum", "minimum", "remainder"};
const char *const backwards[] = {"gelu_backward", "silu_backward", "leaky_relu_backward",
                                 "tanh_backward", "sigmoid_backward"};

void addUnary(std::vector<Use> &uses) {
  for (const char *op : floatOps) {
    uses.push_back({"keeps a float", op, {"bf16[2, 3; 1, 2]"}, {}, "-> bf16[2, 3]"});
    uses.push_back({"makes integers f32", op, {"i64[2]"}, {}, "-> f32[2]"});
    uses.push_back({"takes a tensor",
                    op,
                    {"f64"},
                    {},
                    "'" + std::string(op) + "' op operand #0 (x) has type f64, expected tensor"});
  }
  for (const char *op : keepingOps) {
    uses.push_back({"keeps an integer", op, {"i32[S]"}, {}, "-> i32[S]"});
    uses.push_back({"keeps a float", op, {"f16[]@cuda:0"}, {}, "-> f16[]@cuda:0"});
    uses.push_back({"takes one operand",
                    op,
                    {"f32[8]", "f32[8]"},
                    {},
                    "'" + std::string(op) + "' op expects 1 operand, got 2"});
  }
  for (const char *op : {"neg", "relu"})
    uses.push_back({"is not for bool",
                    op,
                    {"bool[8]"},
                    {},
                    "expects operands of a dtype other than bool, got bool"});
  for (const char *op : activations) {
    uses.push_back({"keeps a float", op, {"f64[2, 3]"}, {}, "-> f64[2, 3]"});
    uses.push_back({"is for floats",
                    op,
                    {"i64[8]"},
                    {},
                    "expects operands of a floating-point dtype, got i64"});
  }
  for (const char *op : tests) {
    uses.push_back({"gives bool", op, {"f32[2, 3]"}, {}, "-> bool[2, 3]"});
    uses.push_back(
        {"takes an operand", op, {}, {}, "'" + std::string(op) + "' op expects 1 operand, got 0"});
  }
}

void addBinary(std::vector<Use> &uses) {
  for (const char *op : arithmetic) {
    uses.push_back({"broadcasts", op, {"f32[8, 1, 3]", "f32[4, 1]"}, {}, "-> f32[8, 4, 3]"});
    uses.push_back({"keeps integers", op, {"i64[8]"}, {{"scalar", 2}}, "-> i64[8]"});
    uses.push_back({"needs two numbers",
                    op,
                    {"f32[8]"},
                    {},
                    "expects operand 'b' or attribute 'scalar', got neither"});
  }
  for (const char *op : comparisons) {
    uses.push_back({"gives bool", op, {"f32[2, 1]", "i64[3]"}, {}, "-> bool[2, 3]"});
    uses.push_back({"takes no more than two numbers",
                    op,
                    {"f32[8]", "f32[8]"},
                    {{"scalar", 1}},
                    "expects operand 'b' or attribute 'scalar', got both"});
  }
  for (const char *op : bitwiseOps) {
    uses.push_back({"keeps bool", op, {"bool[8]", "bool[]"}, {}, "-> bool[8]"});
    uses.push_back({"promotes to the integer", op, {"bool[8]", "u8[8]"}, {}, "-> u8[8]"});
    uses.push_back({"is not for floats",
                    op,
                    {"i64[8]"},
                    {{"scalar", 1.0}},
                    "expects operands of an integer dtype or bool, got f32"});
  }
  for (const char *op : {"div", "atan2"}) {
    uses.push_back({"divides integers as f32", op, {"i64[8]", "i32[8]"}, {}, "-> f32[8]"});
    uses.push_back({"keeps a float", op, {"bf16[8]"}, {{"scalar", 3}}, "-> bf16[8]"});
    uses.push_back({"broadcasts sizes of 1 only",
                    op,
                    {"f32[2, 3]", "f32[2]"},
                    {},
                    "expects operands whose shapes broadcast, got [2, 3] and [2]"});
  }
}

void addOthers(std::vector<Use> &uses) {
  const std::vector<Use> others = {
      {"inverts bits", "bitwise_not", {"u8[8]"}, {}, "-> u8[8]"},
      {"has no bits to invert",
       "bitwise_not",
       {"f32[8]"},
       {},
       "expects operands of an integer dtype or bool, got f32"},
      {"is exact or by tanh",
       "gelu",
       {"f32[8]"},
       {{"approximate", "fast"}},
       "expects attribute 'approximate' to be 'none' or 'tanh', got 'fast'"},
      {"subtracts numbers",
       "sub",
       {"bool[8]", "bool[8]"},
       {},
       "expects operands of a dtype other than bool, got bool"},
      {"scales integers by integers",
       "add",
       {"i64[8]", "i64[8]"},
       {{"alpha", 1.5}},
       "expects attribute 'alpha' to be an integer for a result of dtype i64, got 1.5"},
      {"scales floats by anything", "add", {"f32[8]", "i64[8]"}, {{"alpha", 1.5}}, "-> f32[8]"},
      {"keeps the dtype for bounds of its kind", "clamp", {"i32[8]"}, {{"min", 0}}, "-> i32[8]"},
      {"promotes for a float bound", "clamp", {"i32[8]"}, {{"max", 0.5}}, "-> f32[8]"},
      {"has a bound", "clamp", {"f32[8]"}, {}, "expects attribute 'min' or 'max', got neither"},
      {"changes the dtype alone",
       "cast",
       {"f32[2, 3; 1, 2]@cuda:0"},
       {{"dtype", DType::BF16}},
       "-> bf16[2, 3]@cuda:0"},
      {"names a dtype", "cast", {"f32[8]"}, {}, "'cast' op needs attribute 'dtype' (dtype)"},
      {"changes the device alone",
       "to_device",
       {"f32[2, 3]"},
       {{"device", Device::cuda(0)}},
       "-> f32[2, 3]@cuda:0"},
      {"names a device",
       "to_device",
       {"f32[8]"},
       {{"device", "cuda:0"}},
       "'to_device' op attribute 'device' is \"cuda:0\", expected device"},
      {"broadcasts all three and promotes two",
       "where",
       {"bool[2, 1]", "f16[3]", "f32[]"},
       {},
       "-> f16[2, 3]"},
      {"asks a bool",
       "where",
       {"f32[8]", "f32[8]", "f32[8]"},
       {},
       "expects operand 'condition' of dtype bool, got f32[8]"},
      {"keeps the dtype of x whatever the value",
       "masked_fill",
       {"f16[2, 3]", "bool[3]", "f64[]"},
       {},
       "-> f16[2, 3]"},
      {"takes an attribute", "masked_fill", {"f32[8]", "bool[8]"}, {{"scalar", 1.0}}, "-> f32[8]"},
      {"takes a host scalar", "masked_fill", {"f32[8]", "bool[8]", "f64"}, {}, "-> f32[8]"},
      {"takes one value only",
       "masked_fill",
       {"f32[8]", "bool[8]", "f32[8]"},
       {},
       "expects operand 'value' of rank 0, got f32[8]"},
      {"asks a bool",
       "masked_fill",
       {"f32[8]", "u8[8]"},
       {{"scalar", 1}},
       "expects operand 'mask' of dtype bool, got u8[8]"},
      {"broadcasts", "addcmul", {"f32[8, 1]", "f32[3]", "f32[]"}, {}, "-> f32[8, 3]"},
      {"takes three",
       "addcmul",
       {"f32[8]", "f32[8]"},
       {},
       "'addcmul' op expects 3 operands, got 2"},
      {"broadcasts", "addcdiv", {"f32[8, 1]", "f32[3]", "f32[]"}, {{"value", 0.5}}, "-> f32[8, 3]"},
      {"divides floats",
       "addcdiv",
       {"i64[8]", "i64[8]", "i64[8]"},
       {},
       "expects operands of a floating-point dtype, got i64"},
      {"takes a number", "lerp", {"f32[8]", "f32[8]"}, {{"scalar", 0.5}}, "-> f32[8]"},
      {"takes a tensor", "lerp", {"f32[8, 1]", "f32[1]", "f32[3]"}, {}, "-> f32[8, 3]"},
      {"is for one dtype",
       "lerp",
       {"f32[8]", "f16[8]"},
       {{"scalar", 0.5}},
       "expects operands of one dtype, got f32 and f16"},
      {"keeps integers too",
       "threshold_backward",
       {"i64[8]", "i64[8]"},
       {{"threshold", 1}},
       "-> i64[8]"},
      {"takes two tensors",
       "threshold_backward",
       {"f32[8]", "f64"},
       {},
       "'threshold_backward' op operand #1 (x) has type f64, expected tensor"},
  };
  uses.insert(uses.end(), others.begin(), others.end());
  for (const char *op : backwards) {
    uses.push_back({"keeps a float", op, {"bf16[2, 3]", "bf16[2, 3; 1, 2]"}, {}, "-> bf16[2, 3]"});
    uses.push_back({"is for floats",
                    op,
                    {"i64[8]", "i64[8]"},
                    {},
                    "expects operands of a floating-point dtype, got i64"});
  }
}

} // namespace

std::vector<Use> rondo::test::pointwiseUses() {
  std::vector<Use> uses;
  addUnary(uses);
  addBinary(uses);
  addOthers(uses);
  return uses;
}

namespace {

/// Pointwise ops broadcast, promote and refuse as their table says.
TEST(CoreOpsPointwise, Uses) {
  expectOutcomes(pointwiseUses());
}

/// Tensors with dimensions decide the dtype within a kind; 0-d tensors and then numbers only raise
/// the kind; a number that raises it to float means f32.
TEST(CoreOpsPointwise, Promotion) {
  struct Row {
    const char *a, *b, *result;
  };
  const Row rows[] = {
      {"f16[8]", "bf16[8]", "f32[8]"}, {"u8[8]", "i8[8]", "i16[8]"},
      {"i32[8]", "i64[8]", "i64[8]"},  {"bool[8]", "u8[8]", "u8[8]"},
      {"i64[8]", "f16[8]", "f16[8]"},  {"f32[8]", "f64[8]", "f64[8]"},
      {"f16[8]", "f64[]", "f16[8]"},   {"i32[8]", "i64[]", "i32[8]"},
      {"i32[8]", "f64[]", "f64[8]"},   {"bool[8]", "i32[]", "i32[8]"},
      {"f16[]", "f64[]", "f64[]"},     {"f16[]", "f32[8]", "f32[8]"},
      {"f16[8]", "f64", "f16[8]"},     {"i32[8]", "f64", "f32[8]"},
      {"u8[8]", "i64", "u8[8]"},       {"bool[8]", "i64", "i64[8]"},
      {"bool[8]", "bool", "bool[8]"},  {"i32[]", "i64", "i32[]"},
      {"bf16[]", "f64", "bf16[]"},     {"i64[1, 0]", "f32[]", "f32[1, 0]"},
  };
  for (const Row &row : rows)
    EXPECT_EQ(outcomeOf({"", "mul", {row.a, row.b}, {}, ""}), std::string("-> ") + row.result)
        << row.a << " " << row.b;
}

/// A number as attribute promotes as a host scalar of its kind does.
TEST(CoreOpsPointwise, PromotionOfAttributes) {
  const std::pair<Attribute, const char *> numbers[] = {{Attribute(true), "bool"},
                                                        {Attribute(2), "i64"},
                                                        {Attribute(2.0), "f64"},
                                                        {Attribute(Dim::symbol("S")), "i64"}};
  for (DType dtype : allDTypes)
    for (const auto &[number, scalar] : numbers) {
      std::string tensor = Type(TensorType(dtype, {3})).str();
      EXPECT_EQ(outcomeOf({"", "mul", {tensor}, {{"scalar", number}}, ""}),
                outcomeOf({"", "mul", {tensor, scalar}, {}, ""}));
    }
}

/// Symbolic sizes broadcast with themselves and with 1, and with nothing else.
TEST(CoreOpsPointwise, SymbolicBroadcast) {
  EXPECT_EQ(outcomeOf({"", "add", {"f32[B, 1]", "f32[1, S+1]"}, {}, ""}), "-> f32[B, S+1]");
  EXPECT_EQ(outcomeOf({"", "add", {"f32[B*S]", "f32[S*B]"}, {}, ""}), "-> f32[B*S]");
  EXPECT_EQ(outcomeOf({"", "add", {"f32[B]", "f32[S]"}, {}, ""}),
            "expects operands whose shapes broadcast, got [B] and [S]");
  EXPECT_EQ(outcomeOf({"", "add", {"f32[B]", "f32[2]"}, {}, ""}),
            "expects operands whose shapes broadcast, got [B] and [2]");
}

/// A 0-d host tensor goes with tensors of another device; one with a dimension does not, nor a 0-d
/// tensor of a third device.
TEST(CoreOpsPointwise, HostScalarTensors) {
  EXPECT_EQ(outcomeOf({"", "add", {"f32[8]@cuda:0", "f32[]"}, {}, ""}), "-> f32[8]@cuda:0");
  EXPECT_EQ(outcomeOf({"", "add", {"f32[]", "f32[]@cuda:1"}, {}, ""}), "-> f32[]@cuda:1");
  EXPECT_EQ(outcomeOf({"", "add", {"f32[]", "f32[]"}, {}, ""}), "-> f32[]");
  EXPECT_EQ(outcomeOf({"", "add", {"f32[8]@cuda:0", "f32[1]"}, {}, ""}),
            "expects operands on one device, got cuda:0 and host");
  EXPECT_EQ(outcomeOf({"", "add", {"f32[8]@cuda:0", "f32[]@cuda:1"}, {}, ""}),
            "expects operands on one device, got cuda:0 and cuda:1");
  EXPECT_EQ(outcomeOf({"", "mm", {"f32[8, 8]@cuda:0", "f32[8, 8]"}, {}, ""}),
            "expects operands on one device, got cuda:0 and host");
}

/// Two operands that each fit memory may broadcast to one that does not.
TEST(CoreOpsPointwise, BroadcastFitsMemory) {
  EXPECT_EQ(outcomeOf({"", "add", {"f32[1099511627776, 1]", "f32[1099511627776]"}, {}, ""}),
            "expects a result whose size in bytes fits 63 bits, got shape [1099511627776, "
            "1099511627776]");
}

} // namespace
