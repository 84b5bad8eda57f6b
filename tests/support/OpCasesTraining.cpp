//===- OpCasesTraining.cpp - Random numbers, optimisers, the host's view --===//

#include "support/OpCases.h"

using namespace rondo;
using namespace rondo::op_cases;

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

namespace {
/// A state, and how far behind it an op begins.
struct Position {
  Arg state;
  int64_t offset;
};
} // namespace

/// At every place in a block of four words, across 2^32 blocks, and past the end of the stream.
static const Position positions[] = {{rng(7, 0), 0},
                                     {rng(0x123456789abcdef, 1), 2},
                                     {rng(~uint64_t(0), (uint64_t(1) << 34) - 5), 3},
                                     {rng(11, ~uint64_t(0) - 2), 1}};

static const std::pair<const char *, Shape> drawnShapes[] = {
    {"a vector", {33}}, {"a matrix", {5, 7}}, {"0-d", {}},
    {"empty", {0, 3}},  {"one element", {1}}, {"six dimensions", {2, 3, 1, 2, 3, 2}},
    {"many", {70001}},
};

/// Numbers of `shape` by the attributes of each of `options`.
static std::vector<OpCase> drawnCases(std::vector<Attributes> options) {
  std::vector<OpCase> cases;
  for (const Attributes &attributes : options)
    for (const Position &position : positions)
      for (const auto &[name, shape] : drawnShapes) {
        cases.push_back(
            {name,
             {position.state},
             attributes + Attributes{{"offset", position.offset}, {"shape", ints(shape)}}});
        cases.back().isLarge = name == std::string("many");
      }
  return cases;
}

/// Draws for the elements of an operand that `make` gives.
static std::vector<OpCase> drawnForCases(Arg (*make)(Shape), std::vector<Attributes> options) {
  std::vector<OpCase> cases;
  for (const Attributes &attributes : options)
    for (const Position &position : positions)
      for (const auto &[name, shape] : drawnShapes) {
        cases.push_back({name,
                         {make(shape), position.state},
                         attributes + Attributes{{"offset", position.offset}}});
        cases.back().isLarge = name == std::string("many");
      }
  return cases;
}

static Arg probabilities(Shape shape) {
  Arg arg = random(std::move(shape));
  for (double &value : arg.values)
    value = std::clamp(value / 2 + 0.5, 0.0, 1.0); // a quarter is 0, a quarter 1
  return arg;
}
static Arg anything(Shape shape) {
  return random(std::move(shape));
}

static std::vector<OpCase> multinomialCases() {
  std::vector<OpCase> cases;
  auto add = [&](std::string name, Arg weights, int64_t n, bool replacement) {
    for (const Position &position : positions)
      cases.push_back({name,
                       {weights, position.state},
                       {{"offset", position.offset}, {"n", n}, {"replacement", replacement}}});
  };
  for (bool replacement : {false, true}) {
    add("a vector", positive({7}), 5, replacement);
    add("rows", positive({4, 7}), 7, replacement);
    add("many categories", positive({2, 1030}), 20, replacement);
    add("weights that are none", given({4}, {-1, notANumber, 2, inf}), 4, replacement);
    add("no weights", given({2, 3}, std::vector<double>(6, 0)), 2, replacement);
    add("one element", positive({1}), 1, replacement);
    add("empty", positive({0, 3}), 2, replacement);
    add("no draws", positive({2, 3}), 0, replacement);
  }
  add("more draws than categories", positive({2, 3}), 300, true);
  return cases;
}

static std::vector<OpCase> dropoutGradientCases() {
  auto gradient = [](std::string name, Shape shape) {
    return OpCase{std::move(name), {random(shape, 1), mask(shape, 2)}, {{"scale", 1.25}}};
  };
  return {gradient("a matrix", {5, 7}),
          gradient("0-d", {}),
          gradient("one element", {1}),
          gradient("empty", {0, 3}),
          gradient("six dimensions", {2, 3, 1, 2, 3, 2}),
          gradient("more than a block", {5, 1030}),
          {"a mask of f32", {random({5, 7}), fixed(DType::F32, mask({5, 7}))}, {{"scale", 2}}},
          {"a mask of u8", {random({5, 7}), fixed(DType::U8, mask({5, 7}))}, {{"scale", 2}}},
          large(gradient("many rows", {70000, 3}))};
}

static void addGenerators(OpCaseTable &table) {
  OpCases read{"generator_read", {DType::I64}, [] { return std::vector<OpCase>{{"a state", {}}}; }};
  OpCases advance{"generator_advance", {DType::I64}, [] {
                    return std::vector<OpCase>{
                        {"by 3", {}, {{"count", 3}}},
                        {"by 0", {}, {{"count", 0}}},
                        {"far", {}, {{"count", std::numeric_limits<int64_t>::max()}}}};
                  }};
  OpCases seed{"generator_seed", {DType::I64}, [] {
                 return std::vector<OpCase>{{"a seed", {hostScalar(int64_t(42))}},
                                            {"a negative seed", {hostScalar(int64_t(-1))}}};
               }};
  for (OpCases *cases : {&read, &advance, &seed}) {
    cases->takesDevice = true;
    cases->lacks = "empty, one element: a generator is no tensor";
    table.push_back(std::move(*cases));
  }
}

void rondo::addRandomCases(OpCaseTable &table) {
  OpCases uniform{"uniform", floats,
                  [] {
                    return drawnCases({{}, {{"low", 256}, {"high", 257}}, {{"low", -0.3}}});
                  },
                  OpCheck::SameDType};
  OpCases normal{"normal", floats, [] { return drawnCases({{}, {{"mean", 3}, {"std", 2.5}}}); }};
  normal.f32Tolerance = 1e-6;
  OpCases randint{"randint", all,
                  [] {
                    return drawnCases({{{"high", 2}},
                                       {{"low", -3}, {"high", 100}},
                                       {{"low", std::numeric_limits<int64_t>::min()},
                                        {"high", std::numeric_limits<int64_t>::max()}}});
                  },
                  OpCheck::SameDType};
  for (OpCases *cases : {&uniform, &normal, &randint}) {
    cases->takesDType = true;
    table.push_back(std::move(*cases));
  }
  table.push_back(
      {"bernoulli", floats, [] { return drawnForCases(probabilities, {{}}); }, OpCheck::SameDType});
  table.push_back({"multinomial", floats, multinomialCases, OpCheck::SameDType});
  table.push_back({"dropout", floats, [] {
                     return drawnForCases(anything, {{{"p", 0.25}},
                                                     {{"p", 0.0}},
                                                     {{"p", 1.0}, {"mask_dtype", DType::U8}},
                                                     {{"p", 0.5}, {"mask_dtype", DType::F32}}});
                   }});
  table.push_back({"dropout_backward", floats, dropoutGradientCases});
  addGenerators(table);
}

//===----------------------------------------------------------------------===//
// Optimisers
//===----------------------------------------------------------------------===//

/// Parameters, gradients and the like: `count` tensors of a shape, the one at `root` not negative.
static std::vector<Arg> states(const Shape &shape, unsigned count, unsigned root = ~0u) {
  std::vector<Arg> args;
  for (unsigned i = 0; i < count; ++i)
    args.push_back(i == root ? positive(shape, i + 1) : random(shape, i + 1));
  return args;
}

static const std::pair<const char *, Shape> stateShapes[] = {
    {"a matrix", {5, 7}},     {"0-d", {}},         {"empty", {0, 3}},
    {"one element", {1}},     {"many", {5, 1030}}, {"six dimensions", {2, 3, 1, 2, 3, 2}},
    {"many rows", {70000, 3}}};

static std::vector<OpCase> sgdCases() {
  std::vector<OpCase> cases;
  for (const auto &[name, shape] : stateShapes) {
    cases.push_back({name, states(shape, 2), {{"lr", 0.5}}});
    cases.back().isLarge = shape.size() == 2 && shape[0] == 70000;
  }
  for (double decay : {0.0, 0.1})
    for (bool nesterov : {false, true})
      cases.push_back({"momentum",
                       states({5, 7}, 3),
                       {{"lr", 0.5},
                        {"momentum", 0.9},
                        {"dampening", 0.2},
                        {"weight_decay", decay},
                        {"nesterov", nesterov}}});
  cases.push_back({"decay", states({5, 7}, 2), {{"lr", 0.5}, {"weight_decay", 0.1}}});
  for (Arg rate : {hostScalar(0.25), hostScalar(int64_t(2)), fixed(DType::F32, given({}, {0.25})),
                   fixed(DType::F64, given({}, {0.25})), given({}, {0.5})})
    cases.push_back({"the rate as an operand", states({5, 7}, 2) + std::vector{noArg, rate}});
  for (double foundInf : {0.0, 1.0})
    cases.push_back(
        {"found_inf",
         states({5, 7}, 3) + std::vector{noArg, always(DType::F32, given({1}, {foundInf}))},
         {{"lr", 0.5}, {"momentum", 0.9}}});
  cases.push_back({"a wider buffer",
                   states({5, 7}, 2) + std::vector{fixed(DType::F64, random({5, 7}, 3))},
                   {{"lr", 0.5}, {"momentum", 0.9}}});
  return cases;
}

static std::vector<OpCase> adamCases() {
  Arg third = fixed(DType::F32, given({}, {3}));
  Attributes rate{{"lr", 0.5}, {"eps", 0.01}};
  std::vector<OpCase> cases;
  for (const auto &[name, shape] : stateShapes) {
    cases.push_back({name, states(shape, 4, 3) + std::vector{third}, rate});
    cases.back().isLarge = shape.size() == 2 && shape[0] == 70000;
  }
  for (double decay : {0.0, 0.1})
    for (bool decoupled : {false, true})
      cases.push_back({"decay", states({5, 7}, 4, 3) + std::vector{third},
                       rate + Attributes{{"beta1", 0.8},
                                         {"beta2", 0.9},
                                         {"weight_decay", decay},
                                         {"decoupled", decoupled}}});
  for (Arg step : {hostScalar(int64_t(2)), hostScalar(2.0), hostScalar(true),
                   fixed(DType::I64, given({}, {1000})), given({}, {4})})
    cases.push_back({"the step", states({5, 7}, 4, 3) + std::vector{step}, rate});
  for (Arg operand : {hostScalar(0.25), fixed(DType::F64, given({}, {0.25})), given({}, {0.5})})
    cases.push_back({"the rate as an operand",
                     states({5, 7}, 4, 3) + std::vector{third, operand},
                     {{"eps", 0.01}}});
  for (double foundInf : {0.0, 1.0})
    cases.push_back({"found_inf",
                     states({5, 7}, 4, 3) +
                         std::vector{third, noArg, always(DType::F32, given({}, {foundInf}))},
                     rate});
  std::vector<Arg> wide = states({5, 7}, 4, 3);
  for (unsigned i : {2, 3})
    wide[i] = fixed(DType::F32, wide[i]);
  cases.push_back({"moments in f32", wide + std::vector{third}, rate});
  return cases;
}

//===----------------------------------------------------------------------===//
// Loss scaling and clipping
//===----------------------------------------------------------------------===//

/// What gradients the ops get after `args`.
static std::vector<OpCase> gradientCases(const std::vector<Arg> &args, const Attributes &attributes,
                                         double scale) {
  auto scaled = [scale](Arg gradient) {
    for (double &value : gradient.values)
      value *= scale;
    return gradient;
  };
  std::vector<OpCase> cases;
  auto add = [&](std::string name, std::vector<Arg> gradients) {
    for (Arg &gradient : gradients)
      gradient = scaled(gradient);
    cases.push_back({std::move(name), args + gradients, attributes});
  };
  for (const auto &[name, shape] : stateShapes) {
    add(name, states(shape, 1));
    cases.back().isLarge = shape.size() == 2 && shape[0] == 70000;
  }
  add("several", {random({5, 7}, 1), random({33}, 2), random({0, 3}, 3), random({}, 4)});
  add("of other dtypes", {random({5, 7}, 1), fixed(DType::F32, random({9}, 2)),
                          fixed(DType::F64, random({4, 2}, 3)), random({3, 3}, 4)});
  add("one infinity", {random({5, 7}, 1), given({3}, {1, -inf, 2})});
  add("nan", {given({2}, {notANumber, 1}), random({5, 7}, 1)});
  std::vector<Arg> many;
  for (unsigned i = 0; i < 300; ++i)
    many.push_back(random({1 + i % 7}, i + 1));
  add("more than a launch holds", many);
  cases.back().isLarge = true;
  add("more than a block each", {random({129, 128}, 1), random({70001}, 2), random({5}, 3)});
  cases.back().isLarge = true;
  return cases;
}

static std::vector<OpCase> unscaleCases() {
  auto with = [](double foundInf, double inverse) {
    return std::vector{always(DType::F32, given({}, {foundInf})),
                       always(DType::F32, given({1}, {inverse}))};
  };
  std::vector<OpCase> cases = gradientCases(with(0, 1.0 / 3), {}, 1);
  cases.push_back({"found before", with(1, 0.25) + states({5, 7}, 2)});
  cases.push_back({"a scale of 1", with(0, 1) + states({5, 7}, 2)});
  return cases;
}

static std::vector<OpCase> globalNormCases() {
  return gradientCases({}, {}, 1) + gradientCases({}, {{"p", inf}}, 1) +
         gradientCases({}, {}, 1e-3);
}

static std::vector<OpCase> clipCases() {
  std::vector<OpCase> cases = gradientCases({given({}, {3})}, {{"max_norm", 0.5}}, 1);
  for (double norm : {0.0, 0.5, inf, notANumber})
    cases.push_back({"a norm at a limit",
                     std::vector{fixed(DType::F32, given({1}, {norm}))} + states({5, 7}, 2),
                     {{"max_norm", 0.5}}});
  cases.push_back(
      {"to nothing", std::vector{given({}, {3})} + states({5, 7}, 2), {{"max_norm", 0.0}}});
  return cases;
}

static std::vector<OpCase> updateScaleCases() {
  auto scaler = [](std::string name, double scale, double tracker, double foundInf) {
    return OpCase{std::move(name),
                  {always(DType::F32, given({}, {scale})), always(DType::I32, given({}, {tracker})),
                   always(DType::F32, given({1}, {foundInf}))},
                  {{"growth_interval", 4}, {"growth_factor", 3.0}, {"backoff_factor", 0.3}}};
  };
  return {scaler("one element", 1024, 0, 0), scaler("growth", 1000.1, 3, 0),
          scaler("backoff", 1000.1, 2, 1), scaler("growth beyond f32", 3e38, 3, 0)};
}

void rondo::addOptimizerCases(OpCaseTable &table) {
  table.push_back({"unscale_", floats, unscaleCases});
  table.push_back({"global_norm", floats, globalNormCases});
  table.push_back({"clip_", floats, clipCases});
  table.push_back({"update_scale_", {DType::F32}, updateScaleCases, OpCheck::SameDType});
  table.back().lacks = "empty: it has three numbers";
  table.push_back({"sgd_", floats, sgdCases});
  table.push_back({"adam_", floats, adamCases});
}

//===----------------------------------------------------------------------===//
// What the host sees
//===----------------------------------------------------------------------===//

void rondo::addHostEffectCases(OpCaseTable &table) {
  OpCases item{"item", all, [] {
                 return std::vector<OpCase>{{"0-d", {random({})}},
                                            {"one element", {random({1})}},
                                            {"four dimensions", {random({1, 1, 1, 1}, 2)}},
                                            floatsOnly({"nan", {given({}, {notANumber})}}),
                                            floatsOnly({"infinity", {given({}, {-inf})}})};
               }};
  item.lacks = "empty: it reads one number";
  table.push_back(item);
  table.push_back({"print", all,
                   [] {
                     return std::vector<OpCase>{
                         {"a matrix", {random({2, 3})}, {{"message", "x"}}},
                         {"0-d", {random({})}},
                         {"one element", {random({1})}},
                         {"empty", {random({2, 0})}},
                         {"long", {random({1001})}},
                         {"a scalar", {hostScalar(0.5)}},
                         floatsOnly({"nan and infinities", {given({2}, {notANumber, -inf})}})};
                   },
                   OpCheck::Printed});
}
