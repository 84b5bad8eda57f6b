//===- LifetimeTesting.h - Programs that come and go ------------*- C++ -*-===//

#pragma once

#include "CallTesting.h"

namespace rondo {

inline constexpr llvm::StringLiteral lifetimeStep = R"(
pair @step {
  forward @forward(%x: f32[32], %w: f32[32] parameter) {
    %a: f32[32] = mul(%x, %w)
    %y: f32[32] = add(%a, %x)
    return(%y, %a saved #0, %w saved #1)
  }
  backward @backward(%a: f32[32] saved #0, %w: f32[32] parameter saved #1, %g: f32[32]) {
    %b: f32[32] = mul(%a, %g)
    %c: f32[32] = add(%b, %w)
    return(%c)
  }
})";

class LifetimeFixture : public CallFixture {
protected:
  Program compileStep(CUDAGraphTransform &transform) {
    return compileWith(transform, lifetimeStep);
  }

  /// Forward and backward `count` times, and what they have to give.
  void play(Program &program, unsigned count = 1) {
    if (!w_)
      w_ = filled(device, 2, 32);
    for (unsigned i = 0; i < count; ++i) {
      float x = float(++numSteps_);
      SavedState saved;
      Results results = forward(program, {filled(device, x, 32), w_}, &saved);
      EXPECT_EQ(numbersOn(results[0]), std::vector<double>(32, 2 * x + x));
      Results gradients = backward(program, std::move(saved), {filled(device, 3, 32)});
      EXPECT_EQ(numbersOn(gradients[0]), std::vector<double>(32, 2 * x * 3 + 2));
    }
  }
  /// Lets go of what `play` keeps.
  void stopPlaying() { w_ = Tensor(); }

private:
  unsigned numSteps_ = 0;
  Tensor w_;
};

/// All that a call of a program involves. `drop` lets go of one. Nothing waits for the calls.
struct Cast {
  static constexpr unsigned size = 7;

  DeviceRef device;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<CUDAGraphTransform> transform;
  std::optional<Program> program;
  std::shared_ptr<GraphCache> cache;
  Results results;
  SavedState saved;

  /// `pair` is lifetimeStep on the target's device, which nobody else keeps. `beforeCalls`, unless
  /// null, may put work in front of the calls.
  Cast(TracePair pair, RunTarget target, std::function<void(Stream &)> beforeCalls = nullptr)
      : device(std::move(target.device)) {
    stream = cantFail(device->createStream());
    transform = std::make_unique<CUDAGraphTransform>(graphOptions());
    program = cantFail(compile(std::move(pair), device, target.executors,
                               pipelineWith(*transform, target.executors)));
    cache = GraphCache::find(transform->domain(), *device);
    std::vector<Value> inputs = {filled(device, 1, 32), filled(device, 2, 32)};
    cantFail(program->forward(*stream, inputs, results, &saved)); // eagerly
    cantFail(program->forward(*stream, inputs, results, &saved)); // replayed
    if (beforeCalls)
      beforeCalls(*stream);
    cantFail(program->forward(*stream, inputs, results, &saved)); // one whose state stays
  }

  void drop(unsigned member) {
    switch (member) {
    case 0:
      return device.reset();
    case 1:
      return stream.reset();
    case 2:
      return transform.reset();
    case 3:
      return program.reset();
    case 4:
      return cache.reset();
    case 5:
      return results.clear();
    default:
      saved = SavedState();
    }
  }
};

} // namespace rondo
