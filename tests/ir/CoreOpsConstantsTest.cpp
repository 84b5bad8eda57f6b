//===- CoreOpsConstantsTest.cpp - Tensors and scalars from attributes -----===//

#include "CoreOpsCases.h"

#include <cmath>

using namespace rondo;
using namespace rondo::test;

std::vector<Use> rondo::test::constantUses() {
  const Dim s = Dim::symbol("S");
  const Attribute f32 = DType::F32, i64 = DType::I64;
  return {
      {"has the shape, dtype and device of its attributes",
       "full",
       {},
       {{"shape", List{2, s}}, {"value", 1.5}, {"dtype", f32}, {"device", Device::cuda(1)}},
       "-> f32[2, S]@cuda:1"},
      {"is 0-d for an empty shape, on the host by default",
       "full",
       {},
       {{"shape", List{}}, {"value", -INFINITY}, {"dtype", f32}},
       "-> f32[]"},
      {"has no negative sizes",
       "full",
       {},
       {{"shape", List{2, -1}}, {"value", 0}, {"dtype", f32}},
       "expects attribute 'shape' to hold sizes of at least 0, got [2, -1]"},
      {"fits memory",
       "full",
       {},
       {{"shape", List{int64_t(1) << 40, int64_t(1) << 22}}, {"value", 0}, {"dtype", f32}},
       "expects a result whose size in bytes fits 63 bits, got shape [1099511627776, 4194304]"},
      {"needs no value", "empty", {}, {{"shape", List{0, 3}}, {"dtype", i64}}, "-> i64[0, 3]"},
      {"needs a dtype",
       "empty",
       {},
       {{"shape", List{2}}},
       "'empty' op needs attribute 'dtype' (dtype)"},
      {"counts from 0 by 1", "arange", {}, {{"end", 16}, {"dtype", i64}}, "-> i64[16]"},
      {"counts an incomplete last step",
       "arange",
       {},
       {{"start", 1}, {"end", 8}, {"step", 3}, {"dtype", i64}},
       "-> i64[3]"},
      {"counts down",
       "arange",
       {},
       {{"start", 7}, {"end", 0}, {"step", -2}, {"dtype", i64}},
       "-> i64[4]"},
      {"counts floats", "arange", {}, {{"end", 1.0}, {"step", 0.3}, {"dtype", f32}}, "-> f32[4]"},
      {"has a symbolic length", "arange", {}, {{"end", s}, {"dtype", i64}}, "-> i64[S]"},
      {"is empty when the end is the start",
       "arange",
       {},
       {{"end", 0}, {"step", -1}, {"dtype", i64}},
       "-> i64[0]"},
      {"cannot divide a symbol",
       "arange",
       {},
       {{"end", s}, {"step", 2}, {"dtype", i64}},
       "expects attribute 'step' to divide the symbolic extent S, got 2"},
      {"goes towards its end",
       "arange",
       {},
       {{"end", 4}, {"step", -1}, {"dtype", i64}},
       "expects attribute 'step' to lead from 'start' to 'end', got -1"},
      {"takes a step",
       "arange",
       {},
       {{"end", 4}, {"step", 0}, {"dtype", i64}},
       "expects attribute 'step' other than 0"},
      {"ends",
       "arange",
       {},
       {{"end", INFINITY}, {"dtype", f32}},
       "expects attributes 'start', 'end' and 'step' that make a finite sequence, got 0, inf and "
       "1"},
      {"is square", "eye", {}, {{"n", 3}, {"dtype", f32}}, "-> f32[3, 3]"},
      {"may be wider", "eye", {}, {{"n", 3}, {"m", s}, {"dtype", f32}}, "-> f32[3, S]"},
      {"has no negative size",
       "eye",
       {},
       {{"n", -3}, {"dtype", f32}},
       "expects attribute 'n' to be a size of at least 0, got -3"},
      {"an integer is an i64", "constant", {}, {{"value", 3}}, "-> i64"},
      {"a symbol is an i64", "constant", {}, {{"value", s}}, "-> i64"},
      {"a float is an f64", "constant", {}, {{"value", 3.0}}, "-> f64"},
      {"a bool is a bool", "constant", {}, {{"value", true}}, "-> bool"},
      {"text is no number",
       "constant",
       {},
       {{"value", "3"}},
       "'constant' op attribute 'value' is \"3\", expected number"},
  };
}

namespace {

/// Constants have the types that their attributes say.
TEST(CoreOpsConstants, Uses) {
  expectOutcomes(constantUses());
}

} // namespace
