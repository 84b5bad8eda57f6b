//===- CheckpointTesting.h - Steps with checkpoints -------------*- C++ -*-===//
//
// The traces that rondo-bench measures, small: what they compute, on every device.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "EveryDeviceTesting.h"

#include "rondo-bench/CheckpointTrace.h"
#include "support/RandomValues.h"

namespace rondo {

inline CheckpointShape smallCheckpointShape(DType dtype, bool tanhGELU, bool checkpoints) {
  CheckpointShape shape;
  shape.blocks = 3;
  shape.batch = 4;
  shape.width = 8;
  shape.hidden = 16;
  shape.dtype = dtype;
  shape.tanhGELU = tanhGELU;
  shape.dropped = 0.25;
  shape.checkpoints = checkpoints;
  return shape;
}

/// A row-major tensor on the host, of F64, F32 or BF16, with elements between -`most` and `most`.
inline Tensor randomTensor(const TensorType &type, uint64_t seed, double most) {
  Tensor tensor = cantFail(Tensor::empty(createHostDevice(), type.dtype, constantDims(type.shape)));
  std::vector<double> values = randomValues(tensor.numElements(), seed);
  for (size_t i = 0; i < values.size(); ++i) {
    double value = values[i] / 2 * most;
    float single = float(value);
    unsigned size = dtypeSize(type.dtype);
    const void *bytes = type.dtype == DType::F64    ? static_cast<const void *>(&value)
                        : type.dtype == DType::BF16 ? reinterpret_cast<std::byte *>(&single) + 2
                                                    : static_cast<const void *>(&single);
    std::memcpy(tensor.data() + i * size, bytes, size);
  }
  return tensor;
}

/// Steps of one program, with the same arguments each time.
class CheckpointSteps {
public:
  /// `stream` is borrowed.
  CheckpointSteps(Program program, const DeviceRef &device, Stream &stream)
      : program_(std::move(program)), stream_(stream) {
    for (Side side : {Side::Forward, Side::Backward})
      for (const ParameterInfo &info : program_.inputs(side)) {
        Tensor values = randomTensor(*info.type.asTensor(), ++numArguments_, 0.5);
        arguments_[unsigned(side)].push_back(cantFail(copyTo(device, values, stream)));
      }
    cantFail(stream.synchronize()); // before the copied ones are gone
  }

  Program &program() { return program_; }
  std::vector<Value> &arguments(Side side) { return arguments_[unsigned(side)]; }

  /// The result, on the host.
  Tensor forward(SavedState &saved) {
    Results results;
    cantFail(program_.forward(stream_, arguments_[0], results, &saved));
    return onHost(*results[0].asTensor(), stream_);
  }
  /// The gradients, of the rows and of all parameters.
  std::vector<Tensor> backward(SavedState &&saved) {
    Results results;
    cantFail(program_.backward(stream_, std::move(saved), arguments_[1], results));
    std::vector<Tensor> gradients;
    for (const Value &result : results)
      gradients.push_back(onHost(*result.asTensor(), stream_));
    return gradients;
  }
  /// The result, then the gradients.
  std::vector<Tensor> step() {
    SavedState saved;
    std::vector<Tensor> all = {forward(saved)};
    for (Tensor &gradient : backward(std::move(saved)))
      all.push_back(std::move(gradient));
    return all;
  }

private:
  Program program_;
  Stream &stream_;
  unsigned numArguments_ = 0;
  std::vector<Value> arguments_[2];
};

class CheckpointTest : public EveryDeviceTest {
protected:
  CheckpointSteps stepsOf(const CheckpointShape &shape, bool consumesSaved = false) {
    ProgramOptions options = poisoned();
    options.checkGraphs = true;
    options.consumeSaved = consumesSaved;
    return {cantFail(compile(parse(CheckpointTrace(shape).text()), device, target.executors,
                             pipelineOf(checkpointPipeline, target.executors), options)),
            device, *stream};
  }

  /// `bits`: equal bit for bit, else nearly.
  static void expectEqual(llvm::ArrayRef<Tensor> got, llvm::ArrayRef<Tensor> expected,
                          bool bits = true) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (bits)
        EXPECT_EQ(bytesOf(got[i]), bytesOf(expected[i])) << i;
      else
        EXPECT_LE(relativeError(got[i], expected[i]), got[i].dtype() == DType::BF16 ? 2e-2 : 1e-5)
            << i;
    }
  }
  static std::vector<bool> dropped(const Tensor &result) {
    std::vector<bool> zeros;
    for (double value : doublesOf(result))
      zeros.push_back(value == 0);
    return zeros;
  }
};

// What is computed again has the bits of what was not saved: result and gradients of every step are
// those of the steps that save it, eagerly and replayed; masks differ from step to step.
TEST_P(CheckpointTest, ChangesNoBit) {
  constexpr unsigned numSteps = 10;
  for (DType dtype : {DType::F32, DType::BF16}) {
    for (bool tanhGELU : {false, true}) {
      SCOPED_TRACE(dtypeName(dtype).str() + (tanhGELU ? ", tanh" : ", erf"));
      CheckpointSteps saving = stepsOf(smallCheckpointShape(dtype, tanhGELU, false)),
                      eager = stepsOf(smallCheckpointShape(dtype, tanhGELU, true)),
                      replayed = stepsOf(smallCheckpointShape(dtype, tanhGELU, true));
      saving.program().setEager(true);
      eager.program().setEager(true);
      // A library may use another algorithm for a product with GELU if it also gives what went into
      // that: the forward needs it only if it is saved.
      bool isSameKernel = !tanhGELU || device->device().isHost();
      std::set<std::vector<bool>> masks;
      for (unsigned step = 0; step < numSteps; ++step) {
        SCOPED_TRACE(step);
        std::vector<Tensor> expected = eager.step();
        expectEqual(replayed.step(), expected);
        expectEqual(saving.step(), expected, isSameKernel);
        masks.insert(dropped(expected[0]));
      }
      EXPECT_EQ(masks.size(), numSteps);
      CacheCounters counters = replayed.program().counters();
      EXPECT_EQ(counters.replays, 2 * (numSteps - 1)) << "forward and backward are a region each";
      EXPECT_EQ(counters.failures, 0u);
      EXPECT_LT(replayed.program().memory(Side::Forward).slab,
                saving.program().memory(Side::Forward).slab / 2);
    }
  }
}

// The backward draws what its own forward drew, whatever other forwards ran in between, in whatever
// order the backwards come, and if the generator was set anew; another forward's masks give other
// gradients.
TEST_P(CheckpointTest, DrawsWhatItsForwardDrew) {
  CheckpointShape shape = smallCheckpointShape(DType::F32, /*tanhGELU=*/false, true);
  CheckpointSteps steps = stepsOf(shape), plain = stepsOf(shape);
  for (unsigned round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    std::vector<Tensor> expected[2] = {plain.step(), plain.step()};
    SavedState saved[2];
    for (unsigned i : {0, 1})
      expectEqual({steps.forward(saved[i])}, {expected[i][0]});
    RNGState state = cantFail(steps.program().generators()->get(*stream, "default"));
    cantFail(steps.program().generators()->set(*stream, "default", {99, 7}));
    for (unsigned i : {round % 2, 1 - round % 2})
      expectEqual(steps.backward(std::move(saved[i])),
                  llvm::makeArrayRef(expected[i]).drop_front());
    cantFail(steps.program().generators()->set(*stream, "default", state));
    EXPECT_NE(bytesOf(expected[0][1]), bytesOf(expected[1][1]));
  }
}

// A backward that consumes what its forward saved gives the same bits in less memory, in whatever
// order backwards come; what it consumed cannot be asked to stay.
TEST_P(CheckpointTest, ConsumesWhatIsSaved) {
  CheckpointShape shape = smallCheckpointShape(DType::F32, /*tanhGELU=*/false, true);
  shape.blocks = 8;
  shape.batch = 32;
  CheckpointSteps keeping = stepsOf(shape), eager = stepsOf(shape, /*consumesSaved=*/true),
                  replayed = stepsOf(shape, /*consumesSaved=*/true);
  eager.program().setEager(true);
  for (unsigned round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    std::vector<Tensor> expected[2] = {keeping.step(), keeping.step()};
    for (CheckpointSteps *steps : {&eager, &replayed}) {
      SavedState saved[2];
      for (unsigned i : {0, 1})
        expectEqual({steps->forward(saved[i])}, {expected[i][0]});
      for (unsigned i : {round % 2, 1 - round % 2})
        expectEqual(steps->backward(std::move(saved[i])),
                    llvm::makeArrayRef(expected[i]).drop_front());
    }
  }
  EXPECT_GT(replayed.program().counters().replays, 0u);
  MemoryInfo kept = keeping.program().memory(Side::Backward),
             consumed = replayed.program().memory(Side::Backward);
  EXPECT_LT(consumed.arena, kept.arena);
  EXPECT_LT(consumed.lowerBound, kept.lowerBound);
  EXPECT_EQ(consumed.slab, 0u);

  SavedState saved;
  replayed.forward(saved);
  Results results;
  EXPECT_THAT(textOf(replayed.program().backwardRetaining(
                  *stream, saved, replayed.arguments(Side::Backward), results)),
              testing::HasSubstr("cannot be retained"));
  EXPECT_TRUE(saved.isValid());
  replayed.backward(std::move(saved));
}

// To verify patches, regions would run twice on what the first run consumed: refused.
TEST_P(CheckpointTest, ConsumesButDoesNotVerify) {
  ProgramOptions options = steadyOptions();
  options.consumeSaved = options.verifyPatches = true;
  llvm::Expected<Program> program =
      compile(parse(CheckpointTrace(smallCheckpointShape(DType::F32, false, true)).text()), device,
              target.executors, pipelineOf(checkpointPipeline, target.executors), options);
  ASSERT_FALSE(bool(program));
  EXPECT_THAT(textOf(program.takeError()), testing::HasSubstr("exclude each other"));
}

} // namespace rondo
