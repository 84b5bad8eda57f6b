//===- CallTesting.h - Programs that are called again and again -*- C++ -*-===//

#pragma once

#include "TraceTesting.h"

#include "rondo/passes/CUDAGraphTransform.h"

#include <condition_variable>
#include <map>
#include <numeric>
#include <set>
#include <thread>

namespace rondo {

/// Regions of one launch too, so that small traces have graphs.
inline constexpr llvm::StringLiteral smallRegions = "execution,cuda-graph{min-ops=1},del";

/// Denies ops of the names in `deny`; regions of one launch too.
inline CUDAGraphOptions graphOptions(std::vector<std::string> deny = {}) {
  CUDAGraphOptions options;
  options.minOps = 1;
  options.deny = std::move(deny);
  return options;
}

/// A pipeline with `transform` and with `executors` as the sources of claims. Borrows all.
inline Pipeline pipelineWith(CUDAGraphTransform &transform,
                             std::vector<const Executor *> executors) {
  class Forwarding : public Pass {
  public:
    explicit Forwarding(Pass &pass) : pass_(pass) {}
    llvm::StringRef name() const override { return pass_.name(); }
    PassProperties properties() const override { return pass_.properties(); }
    llvm::Expected<PassResult> run(TracePair &pair, DiagnosticList &diagnostics) override {
      return pass_.run(pair, diagnostics);
    }

  private:
    Pass &pass_;
  };
  return [&transform, executors](TracePair pair,
                                 const SymbolBindings &bindings) -> llvm::Expected<TracePair> {
    if (!bindings.empty())
      if (llvm::Error error = specialise(pair, bindings))
        return error;
    PassManager manager;
    manager.add(createExecutionTransform({executors.begin(), executors.end()}));
    manager.add(std::make_unique<Forwarding>(transform));
    manager.add(createDelPass());
    return manager.run(std::move(pair));
  };
}
inline Pipeline pipelineWith(CUDAGraphTransform &transform, const Executor &executor) {
  return pipelineWith(transform, std::vector<const Executor *>{&executor});
}

/// Another executor, and how often its kernels were asked for work.
class CountingExecutor : public Executor {
public:
  explicit CountingExecutor(const Executor &base) : base_(base) {}

  uint64_t numEnqueues() const { return *count_; }
  llvm::StringRef name() const override { return base_.name(); }
  ClaimAnswer claim(const Trace &trace, OpId op) const override { return base_.claim(trace, op); }
  void claimGroups(const Trace &trace, BodyId body,
                   std::vector<GroupClaim> &groups) const override {
    base_.claimGroups(trace, body, groups);
  }
  llvm::Expected<KernelRef> compile(const Trace &trace, OpId op,
                                    const DeviceRef &device) const override {
    llvm::Expected<KernelRef> kernel = base_.compile(trace, op, device);
    if (!kernel)
      return kernel;
    return std::make_shared<CountedKernel>(std::move(*kernel), count_);
  }

private:
  using Count = std::shared_ptr<std::atomic<uint64_t>>;

  class CountedKernel : public Kernel {
  public:
    CountedKernel(KernelRef base, Count count) : base_(std::move(base)), count_(std::move(count)) {}
    llvm::Error enqueue(CommandSink &sink, const KernelArgs &args) const override {
      ++*count_;
      return base_->enqueue(sink, args);
    }

  private:
    KernelRef base_;
    Count count_;
  };

  const Executor &base_;
  Count count_ = std::make_shared<std::atomic<uint64_t>>(0);
};

/// What a device's `memoryHook` was told.
class MemoryLog {
public:
  int64_t bytes() const { return counts_->bytes; } ///< allocated now
  uint64_t calls() const { return counts_->calls; }

  std::function<void(int64_t)> hook() const {
    return [counts = counts_](int64_t change) {
      counts->bytes += change;
      ++counts->calls;
    };
  }

private:
  struct Counts {
    std::atomic<int64_t> bytes = 0;
    std::atomic<uint64_t> calls = 0;
  };
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

/// Copies bytes between the host and memory of `device`; waits.
inline void transfer(const DeviceRef &device, void *to, const void *from, size_t bytes) {
  if (bytes == 0) // then either may be null
    return;
  if (device->device().isHost()) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::unique_ptr<Stream> stream = cantFail(device->createStream());
  cantFail(stream->copy(to, from, bytes));
  cantFail(stream->synchronize());
}

inline Tensor tensorOf(const DeviceRef &device, llvm::ArrayRef<float> values,
                       llvm::ArrayRef<int64_t> shape) {
  Tensor tensor = cantFail(Tensor::empty(device, DType::F32, shape));
  assert(values.size() == size_t(tensor.numElements()));
  transfer(device, tensor.data(), values.data(), values.size() * sizeof(float));
  return tensor;
}
inline Tensor tensorOf(const DeviceRef &device, llvm::ArrayRef<float> values) {
  return tensorOf(device, values, {int64_t(values.size())});
}
/// `count` elements of `value`.
inline Tensor filled(const DeviceRef &device, float value, int64_t count) {
  return tensorOf(device, std::vector<float>(count, value));
}
/// Elements of a tensor on the host, or a scalar, as doubles; nothing of a value that is missing.
inline std::vector<double> numbersOf(const Value &value) {
  if (const Tensor *tensor = value.asTensor())
    return doublesOf(*tensor);
  if (const double *number = value.asFloat())
    return {*number};
  if (const int64_t *number = value.asInt())
    return {double(*number)};
  return {};
}

/// Empty for success.
inline std::string textOf(llvm::Error error) {
  return llvm::toString(std::move(error));
}

/// Holds up a stream until it is opened.
class Gate {
public:
  void close(Stream &stream) {
    Gate *self = this;
    KernelLaunch launch;
    launch.function = reinterpret_cast<const void *>(&wait);
    launch.parameters = {reinterpret_cast<const std::byte *>(&self), sizeof self};
    cantFail(stream.launch(launch));
  }
  void open() {
    std::lock_guard lock(mutex_);
    isOpen_ = true;
    changed_.notify_all();
  }
  /// Runs `wait` on a thread of its own, and opens the gate when it has had the time to return if
  /// nothing keeps it. True if it returned while the gate was closed.
  bool isPassedBy(std::function<void()> wait) {
    bool isDone = false, passed;
    std::thread thread([&] {
      wait();
      std::lock_guard lock(mutex_);
      isDone = true;
      changed_.notify_all();
    });
    {
      std::unique_lock lock(mutex_);
      passed = changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return isDone; });
    }
    open();
    thread.join();
    return passed;
  }

private:
  static void wait(const std::byte *parameters) {
    Gate *self;
    std::memcpy(&self, parameters, sizeof self);
    std::unique_lock lock(self->mutex_);
    self->changed_.wait(lock, [&] { return self->isOpen_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool isOpen_ = false;
};

using Results = llvm::SmallVector<Value>;

/// Compiles text for a target and calls it. What is compiled and called must succeed.
class CallFixture : public testing::Test {
protected:
  /// Before anything else.
  void useTarget(RunTarget where) {
    target = std::move(where);
    device = target.device;
    stream = cantFail(device->createStream());
  }

  /// Text that is on the host, placed on the device.
  TracePair parse(llvm::StringRef text) {
    TracePair pair = cantFail(parsePair(text, "test", registry));
    if (device->device().isHost())
      return pair;
    PlaceOptions options;
    options.from = Device::host();
    options.to = device->device();
    PassManager manager;
    manager.add(createPlacePass(options));
    return cantFail(manager.run(std::move(pair)));
  }
  Program compileText(llvm::StringRef text, ProgramOptions options = steadyOptions(),
                      llvm::StringRef pipeline = smallRegions) {
    options.checkGraphs = true;
    return cantFail(compile(parse(text), device, target.executors,
                            pipelineOf(pipeline.str(), target.executors), options));
  }
  Program compileWith(CUDAGraphTransform &transform, llvm::StringRef text,
                      ProgramOptions options = steadyOptions()) {
    return cantFail(compile(parse(text), device, target.executors,
                            pipelineWith(transform, target.executors), options));
  }

  // Calls wait for their work.

  Results forward(Program &program, std::vector<Value> inputs, SavedState *saved = nullptr) {
    return forwardOn(*stream, program, inputs, saved);
  }
  static Results forwardOn(Stream &stream, Program &program, llvm::ArrayRef<Value> inputs,
                           SavedState *saved = nullptr) {
    Results results;
    EXPECT_EQ(textOf(program.forward(stream, inputs, results, saved)), "");
    cantFail(stream.synchronize());
    return results;
  }
  Results backward(Program &program, SavedState &&saved, std::vector<Value> inputs) {
    Results results;
    EXPECT_EQ(textOf(program.backward(*stream, std::move(saved), inputs, results)), "");
    cantFail(stream->synchronize());
    return results;
  }

  // Values of the device.

  std::vector<double> numbersOn(const Value &value) const {
    const Tensor *tensor = value.asTensor();
    return numbersOf(tensor && *tensor ? Value(onHost(*tensor, *stream)) : value);
  }
  /// Sets all elements of a row-major f32 tensor.
  void overwrite(const Tensor &tensor, float value) const {
    std::vector<float> values(tensor.numElements(), value);
    cantFail(stream->copy(tensor.data(), values.data(), values.size() * sizeof(float)));
    cantFail(stream->synchronize());
  }

  CoreRegistry registry;
  RunTarget target;
  DeviceRef device;
  std::unique_ptr<Stream> stream;
};

/// On a host device, with the host's executor.
class CallTest : public CallFixture {
protected:
  explicit CallTest(HostDeviceOptions options = {}) {
    options.memoryHook = memory.hook();
    useTarget({createHostDevice(std::move(options)), {&host}});
  }

  MemoryLog memory;
  HostExecutor host;
};

} // namespace rondo
