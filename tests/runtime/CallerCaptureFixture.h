//===- CallerCaptureFixture.h - A step in the caller's capture --*- C++ -*-===//

#pragma once

#include "EveryDeviceTesting.h"

namespace rondo {

inline constexpr llvm::StringLiteral capturedStep = R"(
pair @step {
  forward @forward(%x: f32[32], %w: f32[32] parameter) {
    %a: f32[32] = mul(%x, %w)
    %b: f32[32] = neg(%a)
    %y: f32[32] = add(%b, %x)
    return(%y, %a saved #0)
  }
  backward @backward(%a: f32[32] saved #0, %g: f32[32]) {
    %b: f32[32] = neg(%a)
    %c: f32[32] = mul(%b, %g)
    return(%c)
  }
})";

class CallerCaptureFixture : public EveryDeviceTest {
protected:
  void prepare() override {
    x = filled(device, 0, 32);
    w = filled(device, 2, 32);
    g = filled(device, 0, 32);
  }

  Program make() { return compileText(capturedStep, poisoned()); }

  /// What a call of the program itself must give.
  void play(Program &program, float x) {
    SavedState saved;
    Results results = forward(program, {filled(device, x, 32), w}, &saved);
    EXPECT_EQ(numbersOn(results[0]), std::vector<double>(32, -x));
    Results gradients = backward(program, std::move(saved), {filled(device, 3, 32)});
    EXPECT_EQ(numbersOn(gradients[0]), std::vector<double>(32, -6 * x));
  }

  /// Captures a step on the arguments `x`, `w` and `g`.
  void capture(Program &program, CaptureMode mode = CaptureMode::ThreadLocal) {
    cantFail(stream->beginCapture(mode));
    SavedState saved;
    EXPECT_EQ(textOf(program.forward(*stream, {x, w}, results, &saved)), "");
    EXPECT_EQ(textOf(program.backward(*stream, std::move(saved), {g}, gradients)), "");
    graph = cantFail(stream->endCapture());
    exec = cantFail(graph->instantiate());
  }

  /// Launches what was captured with another argument in the same place.
  void launch(float value) {
    overwrite(x, value);
    overwrite(g, value);
    cantFail(exec->launch(*stream));
    cantFail(stream->synchronize());
  }
  void checkLaunch(float value) {
    launch(value);
    EXPECT_EQ(numbersOn(results[0]), std::vector<double>(32, -value));
    EXPECT_EQ(numbersOn(gradients[0]), std::vector<double>(32, -2 * value * value));
  }

  Tensor x, w, g;
  Results results, gradients;
  std::unique_ptr<Graph> graph;
  std::unique_ptr<GraphExec> exec;
};

} // namespace rondo
