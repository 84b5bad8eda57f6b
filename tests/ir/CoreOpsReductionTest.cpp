//===- CoreOpsReductionTest.cpp - Reductions, scans and softmax -----------===//

#include "CoreOpsCases.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Reductions of any dtype, floats given: shape rules and refusals that all have in common.
void addShapeRules(std::vector<Use> &uses, const char *op, const std::string &dtype) {
  const std::vector<Use> common = {
      {"reduces all without dims", op, {"f32[2, 3]"}, {}, "-> " + dtype + "[]"},
      {"reduces the named dims",
       op,
       {"f32[2, 3, S]"},
       {{"dims", List{0, -1}}},
       "-> " + dtype + "[3]"},
      {"keeps reduced dimensions with size 1",
       op,
       {"f32[2, 3]"},
       {{"dims", List{1}}, {"keepdim", true}},
       "-> " + dtype + "[2, 1]"},
      {"reduces a 0-d tensor", op, {"f32[]"}, {{"dims", List{0}}}, "-> " + dtype + "[]"},
      {"has the dims it names",
       op,
       {"f32[2, 3]"},
       {{"dims", List{2}}},
       "expects attribute 'dims' to hold dimensions in [-2, 1], got [2]"},
      {"names a dimension once",
       op,
       {"f32[2, 3]"},
       {{"dims", List{1, -1}}},
       "expects attribute 'dims' to name each dimension at most once, got [1, -1]"},
  };
  uses.insert(uses.end(), common.begin(), common.end());
}

void addReductions(std::vector<Use> &uses) {
  for (const char *op : {"sum", "prod"}) {
    addShapeRules(uses, op, "f32");
    uses.push_back({"adds up bool in i64", op, {"bool[8]"}, {}, "-> i64[]"});
    uses.push_back({"adds up integers in i64", op, {"i32[8]"}, {}, "-> i64[]"});
    uses.push_back({"keeps narrow floats", op, {"bf16[8]"}, {}, "-> bf16[]"});
    uses.push_back(
        {"gives the dtype asked for", op, {"bf16[8]"}, {{"dtype", DType::F64}}, "-> f64[]"});
  }
  for (const char *op : {"mean", "var", "norm"}) {
    addShapeRules(uses, op, "f32");
    uses.push_back({"is for floats",
                    op,
                    {"i64[8]"},
                    {},
                    "expects operand 'x' of a floating-point dtype, got i64[8]"});
  }
  uses.push_back(
      {"averages integers as asked", "mean", {"i64[8]"}, {{"dtype", DType::F32}}, "-> f32[]"});
  for (const char *op : {"amax", "amin"}) {
    addShapeRules(uses, op, "f32");
    uses.push_back({"keeps the dtype", op, {"bool[8]"}, {}, "-> bool[]"});
  }
  for (const char *op : {"any", "all"})
    addShapeRules(uses, op, "bool");
  addShapeRules(uses, "logsumexp", "f32");
  uses.push_back({"makes integers f32", "logsumexp", {"i64[8]"}, {}, "-> f32[]"});
  for (const char *op : {"argmax", "argmin"}) {
    uses.push_back({"finds one in all", op, {"f32[2, 3]"}, {}, "-> i64[]"});
    uses.push_back({"finds one in each row", op, {"f32[2, 3]"}, {{"dim", -1}}, "-> i64[2]"});
    uses.push_back({"keeps the dimension",
                    op,
                    {"f32[2, 3]"},
                    {{"dim", 0}, {"keepdim", true}},
                    "-> i64[1, 3]"});
    uses.push_back({"has the dimension",
                    op,
                    {"f32[2, 3]"},
                    {{"dim", 2}},
                    "expects attribute 'dim' to be in [-2, 1], got 2"});
  }
}

void addAlongDim(std::vector<Use> &uses) {
  uses.push_back({"keeps floats", "cumsum", {"f16[2, S]"}, {{"dim", 1}}, "-> f16[2, S]"});
  uses.push_back({"adds up bool in i64", "cumsum", {"bool[2]"}, {{"dim", 0}}, "-> i64[2]"});
  uses.push_back({"wants a number for the dimension",
                  "cumsum",
                  {"f32[2]"},
                  {{"dim", Dim::symbol("S")}},
                  "expects attribute 'dim' to be a constant integer, got S"});
  for (const char *op : {"softmax", "log_softmax", "safe_softmax"}) {
    uses.push_back({"keeps the type", op, {"bf16[2, 3; 1, 2]"}, {{"dim", -1}}, "-> bf16[2, 3]"});
    uses.push_back({"gives the dtype asked for",
                    op,
                    {"bf16[2, 3]"},
                    {{"dim", -1}, {"dtype", DType::F32}},
                    "-> f32[2, 3]"});
    uses.push_back({"takes a 0-d tensor", op, {"f32[]"}, {{"dim", -1}}, "-> f32[]"});
    uses.push_back({"is for floats",
                    op,
                    {"i64[8]"},
                    {{"dim", 0}},
                    "expects operand 'x' of a floating-point dtype, got i64[8]"});
    uses.push_back({"has the dimension",
                    op,
                    {"f32[2, 3]"},
                    {{"dim", -3}},
                    "expects attribute 'dim' to be in [-2, 1], got -3"});
  }
  for (const char *op : {"softmax_backward", "log_softmax_backward"}) {
    uses.push_back(
        {"keeps the type", op, {"f32[2, 3]", "f32[2, 3]"}, {{"dim", 1}}, "-> f32[2, 3]"});
    uses.push_back({"gives the input's dtype",
                    op,
                    {"f32[2]", "f32[2]"},
                    {{"dim", 0}, {"dtype", DType::F16}},
                    "-> f16[2]"});
    uses.push_back({"takes equal shapes",
                    op,
                    {"f32[2, 3]", "f32[3]"},
                    {{"dim", 1}},
                    "expects operand 'out' of shape [2, 3], got f32[3]"});
  }
}

} // namespace

std::vector<Use> rondo::test::reductionUses() {
  std::vector<Use> uses;
  addReductions(uses);
  addAlongDim(uses);
  return uses;
}

namespace {

/// Reductions, scans and softmaxes come out as their table says.
TEST(CoreOpsReduction, Uses) {
  expectOutcomes(reductionUses());
}

} // namespace
