//===- FusedOptimizerTesting.h - PyTorch's optimiser steps, run -*- C++ -*-===//
//
// Steps with a scaled loss as PyTorch's GradScaler and fused optimisers make them, imported,
// against their formulas in f64, which are written down here once more:
//
//   g = grad / scale, -g to maximise
//   Adam   g += wd p                          AdamW  p -= lr wd p
//          m = b1 m + (1 - b1) g              v = b2 v + (1 - b2) g^2
//          p -= lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps)
//   SGD    g += wd p, b = g in the first step, else b = mu b + (1 - d) g
//          p -= lr b, with Nesterov's momentum lr (g + mu b)
//
//===----------------------------------------------------------------------===//

#pragma once

#include "AccumulateTesting.h"
#include "EveryDeviceTesting.h"

#include "support/FXText.h"
#include "support/RandomValues.h"

namespace rondo {

/// An optimiser and how it is called.
struct FusedOptimizerCase {
  std::string name, op; ///< `adam`, `adamw`, `sgd`
  bool isInPlace = false;
  bool dividesGradients = false; ///< by `grad_scale`; else they are unscaled before
  bool hasRateTensor = false, maximizes = false, hasMomentum = true, isNesterov = false,
       isFirst = false;
  double decay = 0.1, dampening = 0;
};

/// A step of two parameters: p f32[6] and q f32[2, 3].
class FusedOptimizerTest : public EveryDeviceTest {
protected:
  static constexpr unsigned numSteps = 20, overflowStep = 7;
  static constexpr double rate = 0.05, beta1 = 0.8, beta2 = 0.95, eps = 1e-3, momentum = 0.7;

  /// What a parameter is and has.
  struct Parameter {
    std::vector<double> p, m, v;
    double steps = 0;
  };

  static std::vector<FusedOptimizerCase> cases() {
    std::vector<FusedOptimizerCase> all;
    for (bool isInPlace : {false, true})
      for (bool divides : {false, true}) {
        std::string suffix = std::string(isInPlace ? " in place" : "") + (divides ? " scaled" : "");
        for (const char *op : {"adam", "adamw"})
          all.push_back({op + suffix, op, isInPlace, divides});
        all.push_back({"sgd" + suffix, "sgd", isInPlace, divides});
        all.back().dampening = 0.2;
      }
    all.push_back({"maximised", "adam"});
    all.back().maximizes = all.back().hasRateTensor = true;
    all.push_back({"maximised sgd", "sgd"});
    all.back().maximizes = all.back().isNesterov = all.back().hasRateTensor = true;
    all.push_back({"plain sgd", "sgd"});
    all.back().hasMomentum = false;
    for (bool isInPlace : {false, true}) {
      all.push_back({"first step", "sgd", isInPlace});
      all.back().isFirst = true;
      all.back().dampening = 0.5;
    }
    return all;
  }

  static std::string listOf(const std::string &name, bool isThere = true) {
    return isThere ? "[%" + name + "p, %" + name + "q]" : "[]";
  }

  /// Takes both elements of list `i` of `tuple`: `NAMEp` and `NAMEq`.
  static void takeList(test::FXText &graph, const std::string &tuple, unsigned i,
                       const std::string &name) {
    graph.node(name, "_operator.getitem", "%" + tuple + ", " + std::to_string(i),
               "(float32[6], float32[2,3])");
    graph.node(name + "p", "_operator.getitem", "%" + name + ", 0", "float32[6]");
    graph.node(name + "q", "_operator.getitem", "%" + name + ", 1", "float32[2,3]");
  }

  static std::string numberText(double value) {
    llvm::SmallString<24> text;
    llvm::raw_svector_ostream(text) << llvm::format("%.17g", value);
    return llvm::StringRef(text).contains_insensitive("e") || llvm::StringRef(text).contains('.')
               ? text.str().str()
               : text.str().str() + ".0";
  }

  static std::string keywords(const FusedOptimizerCase &test, const std::string &found) {
    std::string text = "\"lr\":" + (test.hasRateTensor ? "%rate" : numberText(rate)) +
                       ",\"weight_decay\":" + numberText(test.decay) +
                       ",\"maximize\":" + (test.maximizes ? "true" : "false") + ",\"found_inf\":%" +
                       found;
    if (test.dividesGradients)
      text += ",\"grad_scale\":%scale";
    if (test.op == "sgd")
      return text + ",\"momentum\":" + numberText(test.hasMomentum ? momentum : 0) +
             ",\"dampening\":" + numberText(test.dampening) +
             ",\"nesterov\":" + (test.isNesterov ? "true" : "false") +
             ",\"is_first_step\":" + (test.isFirst ? "true" : "false");
    return text + ",\"beta1\":" + numberText(beta1) + ",\"beta2\":" + numberText(beta2) +
           ",\"eps\":" + numberText(eps) + ",\"amsgrad\":false";
  }

  /// Adds the update; returns the prefixes of new values' names by that of the old ones'.
  static std::map<std::string, std::string> addUpdate(test::FXText &graph,
                                                      const FusedOptimizerCase &test,
                                                      const std::string &gradients,
                                                      const std::string &found) {
    bool isSGD = test.op == "sgd";
    std::string overload = test.hasRateTensor ? ".tensor_lr" : ".default";
    std::string args = listOf("") + ", " + gradients + ", " + listOf("m", test.hasMomentum);
    if (!isSGD)
      args += ", " + listOf("v") + ", [], " + listOf(test.isInPlace ? "step_" : "next_");
    std::string lists = "((float32[6], float32[2,3]), unused";
    lists += test.hasMomentum ? ", (float32[6], float32[2,3])" : ", ()";
    lists += isSGD ? ")" : ", (float32[6], float32[2,3]), ())";
    graph.node("update", "aten._fused_" + test.op + (test.isInPlace ? "_" : "") + overload, args,
               test.isInPlace ? "None" : lists, keywords(test, found));
    if (test.isInPlace)
      return {{"", ""}, {"m", "m"}, {"v", "v"}};
    takeList(graph, "update", 0, "new_");
    if (test.hasMomentum)
      takeList(graph, "update", 2, "new_m");
    if (!isSGD)
      takeList(graph, "update", 3, "new_v");
    return {{"", "new_"}, {"m", test.hasMomentum ? "new_m" : "m"}, {"v", isSGD ? "v" : "new_v"}};
  }

  /// Counts the step before the update, and takes that back after one that was skipped.
  static void addStep(test::FXText &graph, const FusedOptimizerCase &test) {
    if (test.isInPlace) {
      graph.node("next", "aten._foreach_add_.Scalar", listOf("step_") + ", 1", "None");
      return;
    }
    graph.node("next", "aten._foreach_add.Scalar", listOf("step_") + ", 1",
               "(float32[], float32[])");
    graph.node("next_p", "_operator.getitem", "%next, 0", "float32[]");
    graph.node("next_q", "_operator.getitem", "%next, 1", "float32[]");
  }
  static void takeStepBack(test::FXText &graph, const FusedOptimizerCase &test,
                           const std::string &found) {
    std::string flags = ", [%" + found + ", %" + found + "]";
    if (test.isInPlace) {
      graph.node("taken", "aten._foreach_sub_.List", listOf("step_") + flags, "None");
      return;
    }
    graph.node("taken", "aten._foreach_sub.List", listOf("next_") + flags,
               "(float32[], float32[])");
    graph.node("taken_p", "_operator.getitem", "%taken, 0", "float32[]");
    graph.node("taken_q", "_operator.getitem", "%taken, 1", "float32[]");
  }

  /// The graph of a step, with new values of all states as its first outputs.
  static std::string stepOf(const FusedOptimizerCase &test) {
    test::FXText graph("forward");
    for (const char *state : {"", "m", "v", "g"}) {
      graph.input(std::string(state) + "p", "float32[6]");
      graph.input(std::string(state) + "q", "float32[2,3]");
    }
    for (const char *name : {"step_p", "step_q", "scale", "rate"})
      graph.input(name, "float32[]");
    graph.input("tracker", "int32[]");
    const char *made = R"("dtype":{"dtype":"float32"},"device":{"device":"cuda"})";
    graph.node("none_found", "aten.full.default", "[], 0.0", "float32[]", made);
    if (test.dividesGradients)
      graph.node("inverse", "aten.full.default", "[], 1.0", "float32[]", made);
    else
      graph.node("inverse", "aten.reciprocal.default", "%scale", "float32[]");

    std::string found = "none_found", gradients = listOf("g");
    if (test.isInPlace) {
      graph.node("unscaled", "aten._amp_foreach_non_finite_check_and_unscale_.default",
                 listOf("g") + ", %none_found, %inverse", "None");
    } else {
      graph.node("unscaled", "aten._amp_foreach_non_finite_check_and_unscale.default",
                 listOf("g") + ", %none_found, %inverse",
                 "((float32[6], float32[2,3]), float32[])");
      takeList(graph, "unscaled", 0, "u");
      graph.node("found", "_operator.getitem", "%unscaled, 1", "float32[]");
      gradients = listOf("u");
      found = "found";
    }
    addStep(graph, test);
    std::map<std::string, std::string> news = addUpdate(graph, test, gradients, found);
    takeStepBack(graph, test, found);
    std::string scale = "scale", tracker = "tracker";
    if (test.isInPlace) {
      graph.node("scaled", "aten._amp_update_scale_.default",
                 "%scale, %tracker, %" + found + ", 2.0, 0.5, 5", "float32[]");
    } else {
      graph.node("scaled", "aten._amp_update_scale.default",
                 "%scale, %tracker, %" + found + ", 2.0, 0.5, 5", "(float32[], int32[])");
      graph.node("new_scale", "_operator.getitem", "%scaled, 0", "float32[]");
      graph.node("new_tracker", "_operator.getitem", "%scaled, 1", "int32[]");
      scale = "new_scale";
      tracker = "new_tracker";
    }
    std::string outputs, mutated;
    for (const char *state : {"", "m", "v"})
      for (const char *parameter : {"p", "q"}) {
        outputs += "%" + news[state] + parameter + ", ";
        mutated += std::string(state) + parameter + ", ";
      }
    std::string steps = test.isInPlace ? "%step_p, %step_q, %" : "%taken_p, %taken_q, %";
    graph.outputs(outputs + steps + scale + ", %" + tracker + ", %" + found)
        .roles(mutated + "step_p, step_q, scale, tracker", "10", "");
    return fxProgram(graph);
  }

  Program compileStep(const FusedOptimizerCase &test) {
    TracePair imported = cantFail(importFX(stepOf(test), test.name, registry));
    unsigned numCopies = 0;
    forEachOp(imported.forward(),
              [&](const Op &op) { numCopies += op.name() == "copy_" || op.name() == "clone"; });
    // Step counts go through two ops; the caller's gradients are not to be written.
    EXPECT_EQ(numCopies, test.isInPlace ? 0u : 4u);
    PassManager manager;
    PassRegistry passes;
    cantFail(registerPasses(passes, {}));
    cantFail(passes.parsePipeline(placementOn(device->device()), manager));
    TracePair placed = cantFail(manager.run(std::move(imported)));
    ProgramOptions options = poisoned();
    options.checkGraphs = true;
    return cantFail(compile(std::move(placed), device, target.executors,
                            pipelineOf(smallRegions.str(), target.executors), options));
  }

  static void update(const FusedOptimizerCase &test, Parameter &state,
                     const std::vector<double> &gradient, double scale) {
    ++state.steps;
    for (size_t i = 0; i < gradient.size(); ++i) {
      double g = gradient[i] / scale, &p = state.p[i], &m = state.m[i], &v = state.v[i];
      if (test.maximizes)
        g = -g;
      if (test.op == "adamw")
        p -= rate * test.decay * p;
      else
        g += test.decay * p;
      if (test.op == "sgd") {
        if (test.hasMomentum) {
          m = test.isFirst ? g : momentum * m + (1 - test.dampening) * g;
          g = test.isNesterov ? g + momentum * m : m;
        }
        p -= rate * g;
        continue;
      }
      m = beta1 * m + (1 - beta1) * g;
      v = beta2 * v + (1 - beta2) * g * g;
      double root = std::sqrt(v) / std::sqrt(1 - std::pow(beta2, state.steps));
      p -= rate / (1 - std::pow(beta1, state.steps)) * m / (root + eps);
    }
  }

  static std::vector<float> floatsOf(const std::vector<double> &values) {
    return {values.begin(), values.end()};
  }
  Tensor trackerTensor() {
    Tensor tensor = cantFail(Tensor::empty(device, DType::I32, {}));
    int32_t zero = 0;
    transfer(device, tensor.data(), &zero, sizeof zero);
    return tensor;
  }

  void expectNear(const Value &value, const std::vector<double> &expected, const char *what) {
    std::vector<double> got = numbersOn(value);
    double difference = 0, norm = 0;
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      difference += (got[i] - expected[i]) * (got[i] - expected[i]);
      norm += expected[i] * expected[i];
    }
    EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(norm)) << what;
  }

  void run(const FusedOptimizerCase &test);
};

inline void FusedOptimizerTest::run(const FusedOptimizerCase &test) {
  SCOPED_TRACE(test.name);
  Program program = compileStep(test);
  Parameter parameters[2]; // p and q
  std::map<std::string, Value> values;
  const std::vector<int64_t> shapes[2] = {{6}, {2, 3}};
  const std::string names[2] = {"p", "q"};
  for (unsigned k : {0, 1}) {
    // In a first step what the buffer holds does not matter.
    parameters[k] = {randomValues(6, 10 + k), std::vector<double>(6, test.isFirst ? NAN : 0),
                     std::vector<double>(6)};
    for (double &p : parameters[k].p)
      p = float(p);
    values[names[k]] = tensorOf(device, floatsOf(parameters[k].p), shapes[k]);
    values["m" + names[k]] = tensorOf(device, floatsOf(parameters[k].m), shapes[k]);
    values["v" + names[k]] = tensorOf(device, floatsOf(parameters[k].v), shapes[k]);
    values["step_" + names[k]] = tensorOf(device, {0}, {});
  }
  double scale = 3000; // no power of two
  values["scale"] = tensorOf(device, {float(scale)}, {});
  values["rate"] = tensorOf(device, {float(rate)}, {});
  values["tracker"] = trackerTensor();

  for (unsigned step = 0, successes = 0; step < numSteps; ++step) {
    SCOPED_TRACE(step);
    bool overflows = step == overflowStep;
    std::vector<double> gradients[2];
    for (unsigned k : {0, 1}) {
      gradients[k] = randomValues(6, 100 + 2 * step + k);
      for (double &g : gradients[k])
        g = float(g * scale);
      if (overflows && k == 1)
        gradients[k][4] = step % 2 ? INFINITY : NAN;
      values["g" + names[k]] = tensorOf(device, floatsOf(gradients[k]), shapes[k]);
      if (!overflows)
        update(test, parameters[k], gradients[k], scale);
    }
    successes = overflows ? 0 : successes + 1;
    scale *= overflows ? 0.5 : successes == 5 ? 2 : 1;
    successes %= 5;

    std::vector<Value> inputs;
    for (const ParameterInfo &input : program.inputs())
      inputs.push_back(values.at(input.name));
    Results results = forward(program, inputs);
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(numbersOn(results[0])[0], overflows);
    for (unsigned k : {0, 1}) {
      expectNear(values[names[k]], parameters[k].p, "parameter");
      if (test.hasMomentum && (step > 0 || !test.isFirst))
        expectNear(values["m" + names[k]], parameters[k].m, "first moment");
      if (test.op != "sgd")
        expectNear(values["v" + names[k]], parameters[k].v, "second moment");
      EXPECT_EQ(numbersOn(values["step_" + names[k]])[0], parameters[k].steps);
    }
    EXPECT_EQ(numbersOn(values["scale"])[0], scale);
    EXPECT_EQ(numbersOn(values["tracker"])[0], successes);
  }
  EXPECT_GT(program.counters().replays, 0u);
  EXPECT_EQ(program.counters().failures, 0u);
}

// Parameters and states follow the formulas, in every form of the call; the step whose gradients
// are not finite changes nothing but the scale.
TEST_P(FusedOptimizerTest, FollowsTheFormulas) {
  for (const FusedOptimizerCase &test : cases())
    run(test);
}

// Gradients of one list that share memory would be unscaled twice: whoever gives a program one
// buffer for two of them is told of both, before anything is written.
TEST_P(FusedOptimizerTest, OneBufferForTwoGradients) {
  Program program = compileText(R"(
trace @t(%found: f32[], %inverse: f32[], %g: f32[8], %h: f32[2, 2]) {
  %found1: f32[], %g1: f32[8], %h1: f32[2, 2] = unscale_(%found, %inverse, %g, %h)
  return(%found1)
})");
  Tensor found = tensorOf(device, {0}, {}), inverse = tensorOf(device, {0.5}, {});
  Tensor whole = iota(1, {8}), other = iota(1, {2, 2});
  Tensor part(whole.storage(), 16, DType::F32, {2, 2}, {2, 1});
  std::vector<double> before = numbersOn(whole);
  for (unsigned round = 0; round < 3; ++round) { // also when it has a graph
    Results results;
    std::vector<Value> bad = {found, inverse, whole, part};
    EXPECT_THAT(textOf(program.forward(*stream, bad, results)),
                testing::AllOf(testing::HasSubstr("argument #2 '%g'"),
                               testing::HasSubstr("shares memory with argument #3 '%h'"),
                               testing::HasSubstr("which is written")));
    EXPECT_EQ(numbersOn(whole), before);
    forward(program, {found, inverse, whole, other});
    for (double &value : before)
      value /= 2;
    EXPECT_EQ(numbersOn(whole), before);
  }
}

// So it is with buffers that gradients are accumulated into.
TEST_P(FusedOptimizerTest, OneBufferForTwoAccumulatedGradients) {
  TracePair pair = accumulating(parse(R"(
pair @p {
  forward @f(%v: f32[8] parameter, %w: f32[8] parameter) {
    %y: f32[8] = mul(%v, %w)
    return(%y, %v saved #0, %w saved #1)
  }
  backward @b(%v: f32[8] parameter saved #0, %w: f32[8] parameter saved #1, %t: f32[8]) {
    %gv: f32[8] = mul(%w, %t)
    %gw: f32[8] = mul(%v, %t)
    return(%gv, %gw)
  }
})"));
  Program program = cantFail(compile(std::move(pair), device, target.executors,
                                     pipelineOf(smallRegions.str(), target.executors)));
  Tensor v = iota(1, {8}), w = iota(2, {8}), t = filled(device, 1, 8);
  Tensor first = filled(device, 0, 8), second = filled(device, 0, 8);
  for (unsigned round = 0; round < 3; ++round) {
    SavedState saved;
    forward(program, {v, w}, &saved);
    Results results;
    std::vector<Value> bad = {t, first, first};
    std::vector<double> before = numbersOn(first);
    EXPECT_THAT(textOf(program.backwardRetaining(*stream, saved, bad, results)),
                testing::AllOf(testing::HasSubstr("argument #1 '%grad_v'"),
                               testing::HasSubstr("shares memory with argument #2 '%grad_w'")));
    EXPECT_EQ(numbersOn(first), before);
    backward(program, std::move(saved), {t, first, second});
    EXPECT_EQ(numbersOn(first)[0], 2.0 * (round + 1));
    EXPECT_EQ(numbersOn(second)[0], 1.0 * (round + 1));
  }
}

} // namespace rondo
