//===- main.cpp - Inference with a KV cache -------------------------------===//
//
// A small decoder whose batch changes from step to step, as that of a server does:
//
//   - The cache lies in buffers with a row for every sequence, a slot. It is written in place, and
//     never copied: its type has no batch size.
//   - How long each sequence is, is a buffer, too: the position advances on the device.
//   - The batch is a symbol with buckets 1, 2, 4. A batch of 3 runs as one of 4 whose last row is
//     padding. It decodes token 0, into a spare slot, and advances that by 0.
//
// So there is one graph per bucket, and nothing but a few indices is ever copied. The result is
// checked against a program without buckets that runs everything eagerly.
//
//===----------------------------------------------------------------------===//

#include "rondo/host/HostDevice.h"
#include "rondo/host/HostExecutor.h"
#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"
#include "rondo/passes/CUDAGraphTransform.h"
#include "rondo/passes/PassManager.h"
#include "rondo/passes/Passes.h"
#include "rondo/runtime/Program.h"

#include "llvm/Support/Format.h"

#include <cmath>

using namespace rondo;

static llvm::ExitOnError exitOnError("kv_cache: ");

static constexpr int64_t numSlots = 4;

/// One step: `tokens` are the last ones of the sequences in `slots`. Slot 4 is spare.
static constexpr llvm::StringLiteral decode = R"(
trace @decode(
  %table: f32[32, 16] parameter,
  %wq: f32[16, 16] parameter, %wk: f32[16, 16] parameter, %wv: f32[16, 16] parameter,
  %head: f32[16, 32] parameter,
  %keys: f32[5, 16, 16] buffer, %values: f32[5, 16, 16] buffer, %lengths: i64[5] buffer,
  %tokens: i64[B], %slots: i64[B], %advance: i64[B]
) {
  %x: f32[B, 16] = embedding(%table, %tokens)
  %q: f32[B, 16] = mm(%x, %wq)
  %k: f32[B, 16] = mm(%x, %wk)
  %v: f32[B, 16] = mm(%x, %wv)

  %now: i64[B] = index_select(%lengths, %slots) {dim = 0}
  %keys.1: f32[5, 16, 16] = index_put_(%keys, %k, %slots, %now)
  %values.1: f32[5, 16, 16] = index_put_(%values, %v, %slots, %now)
  %lengths.1: i64[5] = index_add_(%lengths, %slots, %advance) {dim = 0}

  %ks: f32[B, 16, 16] = index_select(%keys.1, %slots) {dim = 0}
  %vs: f32[B, 16, 16] = index_select(%values.1, %slots) {dim = 0}
  %query: f32[B, 1, 16] = unsqueeze(%q) {dim = 1}
  %kt: f32[B, 16, 16; 256, 1, 16] = permute(%ks) {dims = [0, 2, 1]}
  %scores: f32[B, 1, 16] = bmm(%query, %kt)
  %positions: i64[16] = arange() {dtype = i64, end = 16}
  %last: i64[B, 1, 1] = reshape(%now) {shape = [B, 1, 1]}
  %future: bool[B, 1, 16] = gt(%positions, %last)
  %seen: f32[B, 1, 16] = masked_fill(%scores, %future) {scalar = -inf}
  %weights: f32[B, 1, 16] = softmax(%seen) {dim = 2}
  %mixed: f32[B, 1, 16] = bmm(%weights, %vs)
  %row: f32[B, 16] = reshape(%mixed) {shape = [B, 16]}

  %y: f32[B, 16] = add(%x, %row)
  %logits: f32[B, 32] = mm(%y, %head)
  %next: i64[B] = argmax(%logits) {dim = 1}
  return(%logits, %next)
}
)";

/// The sequences of successive steps: 3, 1, 4 and 2 of them.
static const std::vector<int64_t> batches[] = {{0, 1, 2}, {3}, {0, 1, 2, 3}, {1, 3}};

namespace {

/// A program with its weights and cache.
class Decoder {
public:
  Decoder(const OpRegistry &registry, const HostExecutor &executor, const DeviceRef &device,
          ProgramOptions options)
      : device_(device), stream_(exitOnError(device->createStream())),
        program_(exitOnError(compile(exitOnError(parsePair(decode, "decode", registry)), device,
                                     &executor, pipelineFor(executor), std::move(options)))) {
    for (const ParameterInfo &input : program_.inputs())
      if (any(input.tags & (ValueTags::Parameter | ValueTags::Buffer)))
        state_.push_back(initial(*input.type.asTensor(), any(input.tags & ValueTags::Parameter)));
  }

  Program &program() { return program_; }

  struct Step {
    std::vector<float> logits; ///< of each sequence, one after the other
    std::vector<int64_t> next; ///< its most probable token
  };
  /// Adds a token to each of the sequences in `slots`.
  Step step(llvm::ArrayRef<int64_t> tokens, llvm::ArrayRef<int64_t> slots) {
    std::vector<Value> inputs = state_;
    inputs.push_back(indices(tokens));
    inputs.push_back(indices(slots));
    inputs.push_back(indices(std::vector<int64_t>(slots.size(), 1)));
    llvm::SmallVector<Value> results;
    exitOnError(program_.forward(*stream_, inputs, results));
    exitOnError(stream_->synchronize());
    return {elements<float>(results[0]), elements<int64_t>(results[1])};
  }

private:
  static Pipeline pipelineFor(const HostExecutor &executor) {
    return [&executor](TracePair pair, const SymbolBindings &sizes) -> llvm::Expected<TracePair> {
      if (llvm::Error error = specialise(pair, sizes))
        return error;
      PassManager manager;
      manager.add(createExecutionTransform({&executor}))
          .add(std::make_unique<CUDAGraphTransform>())
          .add(createDelPass());
      return manager.run(std::move(pair));
    };
  }

  /// Some weights, or zeros.
  Tensor initial(const TensorType &type, bool isWeight) const {
    Tensor tensor = exitOnError(Tensor::empty(device_, type));
    std::fill_n(tensor.data(), tensor.extentBytes(), std::byte(0));
    for (int64_t i = 0; isWeight && i < tensor.numElements(); ++i)
      tensor.ref().as<float>()[i] = float(std::sin(double(i * i + 3 * i + 1)));
    return tensor;
  }

  Tensor indices(llvm::ArrayRef<int64_t> values) const {
    Tensor tensor = exitOnError(Tensor::empty(device_, DType::I64, {int64_t(values.size())}));
    llvm::copy(values, tensor.ref().as<int64_t>());
    return tensor;
  }

  /// Of a row-major result: rows of padding would come last, and are not part of it.
  template <typename T> static std::vector<T> elements(const Value &value) {
    const Tensor &tensor = *value.asTensor();
    const T *data = tensor.ref().as<T>();
    return {data, data + tensor.numElements()};
  }

  DeviceRef device_;
  std::unique_ptr<Stream> stream_;
  Program program_;
  std::vector<Value> state_; ///< in the order of the first arguments
};

} // namespace

/// Declares what a batch may be, and what its padding holds; the rest of it is 0.
static ProgramOptions bucketed() {
  ProgramOptions options;
  options.buckets["B"] = {1, 2, 4};
  options.padding["slots"] = numSlots; // the spare one
  return options;
}

static double greatestDifference(llvm::ArrayRef<float> a, llvm::ArrayRef<float> b) {
  double greatest = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    greatest = std::max(greatest, double(std::abs(a[i] - b[i])));
  return greatest;
}

int main() {
  OpRegistry registry;
  exitOnError(registerCoreOps(registry));
  HostExecutor executor;
  DeviceRef device = createHostDevice();
  Decoder decoder(registry, executor, device, bucketed());
  Decoder reference(registry, executor, device, {});
  reference.program().setEager(true);

  std::vector<int64_t> sequences[numSlots] = {{1}, {2}, {3}, {4}};
  double difference = 0;
  unsigned numSteps = 0;
  for (; numSteps < 20; ++numSteps) {
    llvm::ArrayRef<int64_t> slots = batches[numSteps % std::size(batches)];
    std::vector<int64_t> tokens;
    for (int64_t slot : slots)
      tokens.push_back(sequences[slot].back());
    Decoder::Step step = decoder.step(tokens, slots);
    difference =
        std::max(difference, greatestDifference(step.logits, reference.step(tokens, slots).logits));
    for (size_t i = 0; i < slots.size(); ++i)
      sequences[slots[i]].push_back(step.next[i]);
  }

  for (llvm::ArrayRef<int64_t> sequence : sequences) {
    for (int64_t token : sequence)
      llvm::outs() << token << " ";
    llvm::outs() << "\n";
  }
  CacheCounters counters = decoder.program().counters();
  llvm::outs() << "captures " << counters.captures << ", replays " << counters.replays
               << ", captured again " << counters.recaptures << ", bytes copied by replays "
               << counters.copiedBytes << ", copied and filled for padding "
               << decoder.program().paddedBytes() << "\n"
               << "greatest difference from eager steps without buckets "
               << llvm::format("%.1g", difference) << "\n";
  bool isRight = difference < 1e-4 && counters.captures == 3 && counters.replays == numSteps - 3 &&
                 counters.recaptures == 0;
  return isRight ? 0 : 1;
}
