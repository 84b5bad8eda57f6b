//===- ProgramTesting.h - Small programs of text ----------------*- C++ -*-===//

#pragma once

#include "TraceTesting.h"

#include "rondo/passes/CUDAGraphTransform.h"

namespace rondo {

/// Captures every op that may be captured, a lone one, too.
inline constexpr llvm::StringLiteral regionPipeline = "execution,cuda-graph{min-ops=1},del";
/// The same, and copies every input that may be anywhere.
inline constexpr llvm::StringLiteral copyingPipeline =
    "execution,cuda-graph{min-ops=1 inputs=copied},del";
/// The same, and patches them.
inline constexpr llvm::StringLiteral patchingPipeline =
    "execution,cuda-graph{min-ops=1 inputs=patched},del";

/// Compiles and calls pairs that are given as text, on a host device of the test's own.
class ProgramFixture : public testing::Test {
protected:
  explicit ProgramFixture(HostDeviceOptions options = {})
      : device(createHostDevice(std::move(options))), stream(cantFail(device->createStream())) {}

  TracePair parse(llvm::StringRef text) const {
    llvm::Expected<TracePair> pair = parsePair(text, "t.trace", registry);
    if (pair)
      return std::move(*pair);
    ADD_FAILURE() << llvm::toString(pair.takeError());
    return TracePair(Trace(registry, "failed"));
  }

  llvm::Expected<Program> tryCompile(llvm::StringRef text, ProgramOptions options = steadyOptions(),
                                     llvm::StringRef pipeline = regionPipeline) const {
    return compile(parse(text), device, &host, pipelineOf(pipeline.str(), host),
                   std::move(options));
  }

  /// The program, or an error of the test: then null.
  std::unique_ptr<Program> compiled(llvm::StringRef text, ProgramOptions options = steadyOptions(),
                                    llvm::StringRef pipeline = regionPipeline) const {
    options.checkGraphs = true;
    llvm::Expected<Program> program = tryCompile(text, std::move(options), pipeline);
    if (program)
      return std::make_unique<Program>(std::move(*program));
    ADD_FAILURE() << llvm::toString(program.takeError());
    return nullptr;
  }

  /// What compiling `text` is refused with; empty if it is not.
  std::string compileError(llvm::StringRef text, llvm::StringRef pipeline = regionPipeline) const {
    llvm::Expected<Program> program = tryCompile(text, {}, pipeline);
    return program ? "" : llvm::toString(program.takeError());
  }

  /// A row-major f32 tensor; without a shape, of one dimension.
  Tensor floats(llvm::ArrayRef<float> values,
                std::optional<std::vector<int64_t>> shape = std::nullopt) const {
    Tensor tensor = cantFail(Tensor::empty(
        device, DType::F32, shape ? *shape : std::vector<int64_t>{int64_t(values.size())}));
    EXPECT_EQ(tensor.numElements(), int64_t(values.size()));
    llvm::copy(values, reinterpret_cast<float *>(tensor.data()));
    return tensor;
  }

  /// The results of a forward that succeeds.
  llvm::SmallVector<Value> forward(Program &program, llvm::ArrayRef<Value> inputs,
                                   SavedState *saved = nullptr) {
    llvm::SmallVector<Value> results;
    if (llvm::Error error = program.forward(*stream, inputs, results, saved))
      ADD_FAILURE() << llvm::toString(std::move(error));
    return results;
  }
  llvm::SmallVector<Value> backward(Program &program, SavedState saved,
                                    llvm::ArrayRef<Value> inputs) {
    llvm::SmallVector<Value> results;
    if (llvm::Error error = program.backward(*stream, std::move(saved), inputs, results))
      ADD_FAILURE() << llvm::toString(std::move(error));
    return results;
  }

  /// What a forward fails with; empty if it does not. A failed call gives nothing.
  std::string forwardError(Program &program, llvm::ArrayRef<Value> inputs) {
    llvm::SmallVector<Value> results(1);
    SavedState saved;
    llvm::Error error = program.forward(*stream, inputs, results, &saved);
    if (!error)
      return "";
    EXPECT_TRUE(results.empty());
    EXPECT_FALSE(saved.isValid());
    return llvm::toString(std::move(error));
  }

  static std::vector<double> valuesOf(const Value &value) {
    return value.asTensor() && *value.asTensor() ? doublesOf(*value.asTensor())
                                                 : std::vector<double>();
  }

  CoreRegistry registry;
  HostExecutor host;
  DeviceRef device;
  std::unique_ptr<Stream> stream;
};

using Doubles = std::vector<double>;

} // namespace rondo
