//===- CoreOpsControlTest.cpp - Collectives, the host, control flow -------===//

#include "CoreOpsCases.h"

using namespace rondo;
using namespace rondo::test;

std::vector<Use> rondo::test::collectiveUses() {
  return {
      {"keeps the type",
       "all_reduce",
       {"bf16[8, S]@cuda:0"},
       {{"op", "avg"}, {"group", "tp"}},
       "-> bf16[8, S]@cuda:0"},
      {"combines by a known rule",
       "all_reduce",
       {"f32[8]"},
       {{"op", "xor"}},
       "expects attribute 'op' to be 'sum', 'avg', 'prod', 'min' or 'max', got 'xor'"},
      {"joins the ranks along dim", "all_gather", {"f32[S, 8]"}, {{"world", 4}}, "-> f32[4*S, 8]"},
      {"has a rank",
       "all_gather",
       {"f32[8]"},
       {{"world", 0}},
       "expects attribute 'world' of at least 1, got 0"},
      {"divides dim among the ranks",
       "reduce_scatter",
       {"f32[2, 8*S]"},
       {{"world", 4}, {"dim", 1}},
       "-> f32[2, 2*S]"},
      {"divides evenly",
       "reduce_scatter",
       {"f32[9]"},
       {{"world", 4}},
       "expects attribute 'world' to divide size 9, got 4"},
      {"keeps the type", "broadcast", {"f32[8]"}, {{"root", 2}}, "-> f32[8]"},
      {"has a root",
       "broadcast",
       {"f32[8]"},
       {{"root", -1}},
       "expects attribute 'root' to be at least 0, got -1"},
      {"splits one dimension and joins another",
       "all_to_all",
       {"f32[8, 6]"},
       {{"world", 2}, {"concat_dim", 1}},
       "-> f32[4, 12]"},
      {"may split and join the same", "all_to_all", {"f32[8, 6]"}, {{"world", 2}}, "-> f32[8, 6]"},
      {"divides evenly",
       "all_to_all",
       {"f32[8, 6]"},
       {{"world", 3}},
       "expects attribute 'world' to divide size 8, got 3"},
      {"gives nothing", "barrier", {}, {}, "->"},
      {"takes nothing", "barrier", {"f32[8]"}, {}, "'barrier' op expects 0 operands, got 1"},
  };
}

std::vector<Use> rondo::test::controlUses() {
  return {
      {"a float is an f64", "item", {"bf16[1, 1]@cuda:0"}, {}, "-> f64"},
      {"an integer is an i64", "item", {"u8[]"}, {}, "-> i64"},
      {"a bool is a bool", "item", {"bool[]"}, {}, "-> bool"},
      {"has one element", "item", {"f32[2]"}, {}, "expects operand 'x' of one element, got f32[2]"},
      {"is known to have one element",
       "item",
       {"f32[S]"},
       {},
       "expects operand 'x' of one element, got f32[S]"},
      {"prints tensors", "print", {"f32[8]"}, {{"message", "x"}}, "->"},
      {"prints scalars", "print", {"i64"}, {}, "->"},
      {"prints no state",
       "print",
       {"rng"},
       {},
       "'print' op operand #0 (x) has type rng, expected tensor or scalar"},
      {"takes anything", "return", {"f32[8]", "rng", "none", "i64"}, {}, "->"},
      {"has no attributes", "return", {}, {{"region", 0}}, "'return' op has no attribute 'region'"},
      {"takes anything", "del", {"f32[8]", "rng"}, {}, "->"},
      {"has no attributes", "del", {}, {{"region", 0}}, "'del' op has no attribute 'region'"},
      {"takes anything",
       "cuda_graph",
       {"f32[8]", "i64"},
       {{"region", 0}, {"inputs", List{"auto", "static"}}},
       "->"},
      {"numbers regions from 0",
       "cuda_graph",
       {},
       {{"region", -1}},
       "expects attribute 'region' to be at least 0, got -1"},
      {"takes anything", "fused", {"f32[8]"}, {}, "->"},
      {"has no attributes", "fused", {}, {{"region", 0}}, "'fused' op has no attribute 'region'"},
      {"takes anything", "checkpoint", {"f32[8]"}, {}, "->"},
      {"has no attributes",
       "checkpoint",
       {},
       {{"region", 0}},
       "'checkpoint' op has no attribute 'region'"},
      {"asks a scalar", "if", {"bool", "f32[8]"}, {}, "->"},
      {"asks a tensor of one bool", "if", {"bool[1]@cuda:0"}, {}, "->"},
      {"asks a bool",
       "if",
       {"i64"},
       {},
       "expects operand 'condition' to be one bool, a scalar or a tensor, got i64"},
      {"asks one bool",
       "if",
       {"bool[2]"},
       {},
       "expects operand 'condition' to be one bool, a scalar or a tensor, got bool[2]"},
      {"takes anything", "while", {"f32[8]", "i64"}, {}, "->"},
      {"has no attributes", "while", {}, {{"region", 0}}, "'while' op has no attribute 'region'"},
  };
}

namespace {

/// Collectives come out as their table says.
TEST(CoreOpsCollective, Uses) {
  expectOutcomes(collectiveUses());
}

/// Ops of the host, of control flow and of structure come out as their table says.
TEST(CoreOpsControl, Uses) {
  expectOutcomes(controlUses());
}

} // namespace
