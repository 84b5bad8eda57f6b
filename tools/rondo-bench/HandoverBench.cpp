//===- HandoverBench.cpp - Inputs that move -------------------------------===//
//
// What it costs that an input lies elsewhere than in the call before, by policy: `handover` as the
// difference to a call whose input stays, on the CPU and on the device; `policies` as the time of a
// burst of calls, which is what a policy is chosen by.
//
//===----------------------------------------------------------------------===//

#include "HandoverProgram.h"

#include <cmath>

using namespace rondo;

constexpr unsigned consumerCounts[] = {1, 2, 4, 16, 64};
constexpr uint64_t smallestInput = 1024; ///< of `policies`, in bytes

//===----------------------------------------------------------------------===//
// The device's time
//===----------------------------------------------------------------------===//

namespace {

/// Work for a device that keeps it busy while the CPU submits what is to be timed: so the device's
/// clock does not see it wait for the CPU.
class DeviceWork {
public:
  /// Nothing if the device has no clock.
  static llvm::Expected<std::optional<DeviceWork>> create(const BenchSetup &setup, Stream &stream) {
    DeviceWork work;
    llvm::Expected<std::optional<double>> seconds = work.time(setup, stream, 0);
    if (!seconds)
      return seconds.takeError();
    if (!*seconds)
      return std::nullopt;
    llvm::Expected<StorageRef> memory = Storage::allocate(setup.device, 2 * pieceBytes);
    if (!memory)
      return memory.takeError();
    work.memory_ = std::move(*memory);
    constexpr unsigned numPieces = 16;
    for (unsigned trial = 0; trial < 2; ++trial) { // the first warms up
      seconds = work.time(setup, stream, numPieces);
      if (!seconds)
        return seconds.takeError();
      work.pieceSeconds_ = **seconds / numPieces;
    }
    return work;
  }

  /// At least `seconds` of it, if that is not longer than what a stream takes without waiting.
  llvm::Error submit(Stream &stream, double seconds) const {
    return submitPieces(stream, std::min(std::ceil(seconds / pieceSeconds_), mostPieces));
  }

private:
  static constexpr size_t pieceBytes = size_t(64) << 20;
  static constexpr double mostPieces = 512;

  DeviceWork() = default;

  llvm::Expected<std::optional<double>> time(const BenchSetup &setup, Stream &stream,
                                             unsigned pieces) const {
    if (llvm::Error error = setup.raw.startClock(stream))
      return error;
    if (llvm::Error error = submitPieces(stream, pieces))
      return error;
    return setup.raw.stopClock(stream);
  }

  llvm::Error submitPieces(Stream &stream, unsigned count) const {
    for (unsigned i = 0; i < count; ++i)
      if (llvm::Error error =
              stream.copy(memory_->data() + pieceBytes, memory_->data(), pieceBytes))
        return error;
    return llvm::Error::success();
  }

  StorageRef memory_;
  double pieceSeconds_ = 0; ///< that one piece keeps the device busy
};

} // namespace

/// Seconds on the device of one call of each: the median over the rounds of the mean of a turn.
/// `cpuSeconds` is what their calls take on the CPU.
static llvm::Expected<std::vector<double>>
medianDeviceTimes(const BenchSetup &setup, llvm::ArrayRef<Contestant> contestants,
                  llvm::ArrayRef<double> cpuSeconds, const DeviceWork &work, Stream &stream) {
  std::vector<std::vector<double>> times(contestants.size());
  for (unsigned round = 0; round <= setup.rounds; ++round) {
    for (size_t i = 0; i < contestants.size(); ++i) {
      size_t which = (i + round) % contestants.size();
      if (llvm::Error error = work.submit(stream, 2 * cpuSeconds[which] * setup.calls))
        return error;
      if (llvm::Error error = setup.raw.startClock(stream))
        return error;
      for (unsigned call = 0; call < setup.calls; ++call)
        if (llvm::Error error = contestants[which].call())
          return error;
      llvm::Expected<std::optional<double>> seconds = setup.raw.stopClock(stream);
      if (!seconds)
        return seconds.takeError();
      if (round > 0) // the first warms up
        times[which].push_back(seconds->value_or(0) / setup.calls);
    }
  }
  std::vector<double> medians;
  for (std::vector<double> &all : times)
    medians.push_back(medianOf(std::move(all)));
  return medians;
}

//===----------------------------------------------------------------------===//
// handover
//===----------------------------------------------------------------------===//

/// What an input that moves adds, patched beside copied, of `times` of: unmoved, patched, copied.
static Figure addedFigure(const std::string &shape, const char *clock,
                          llvm::ArrayRef<double> times) {
  Figure figure{"handover", shape + ", added if patched, " + clock, "us",
                (times[1] - times[0]) * 1e6};
  figure.baseline = (times[2] - times[0]) * 1e6;
  figure.baselineName = "copied";
  return figure;
}

/// `work` is null if the device has no clock.
static llvm::Error benchShape(const BenchSetup &setup, const HandoverShape &shape,
                              const DeviceWork *work, Stream &stream,
                              std::vector<Figure> &figures) {
  constexpr unsigned mostBarred = 4; // consumers of an input whose patching has a bar
  constexpr double cpuBar = 4;
  constexpr double deviceBar = 0.4; // nothing: half of what a smallest node takes
  llvm::Expected<HandoverArguments> arguments = HandoverArguments::create(setup, shape, stream);
  if (!arguments)
    return arguments.takeError();
  std::unique_ptr<HandoverProgram> unmoved, patched, copied;
  for (auto [program, policy] :
       {std::pair(&unmoved, InputPolicy::Patched), std::pair(&patched, InputPolicy::Patched),
        std::pair(&copied, InputPolicy::Copied)}) {
    llvm::Expected<std::unique_ptr<HandoverProgram>> made =
        HandoverProgram::create(setup, shape, policy, BufferCosts(), *arguments, stream);
    if (!made)
      return made.takeError();
    *program = std::move(*made);
  }

  const Contestant contestants[] = {{[&] { return unmoved->callInPlace(); }},
                                    {[&] { return patched->callMoved(); }},
                                    {[&] { return copied->callMoved(); }}};
  llvm::Expected<std::vector<double>> times =
      medianTimes(setup, contestants, [&] { return stream.synchronize(); });
  if (!times)
    return times.takeError();
  figures.push_back({"handover", shape.name() + ", unmoved, CPU time", "us", (*times)[0] * 1e6});
  auto push = [&](Figure figure, double bar) {
    if (shape.consumers <= mostBarred) {
      figure.bar = bar;
      figure.barIsOnValue = true;
    }
    figures.push_back(std::move(figure));
  };
  push(addedFigure(shape.name(), "CPU time", *times), cpuBar);
  if (!work)
    return llvm::Error::success();
  llvm::Expected<std::vector<double>> deviceTimes =
      medianDeviceTimes(setup, contestants, *times, *work, stream);
  if (!deviceTimes)
    return deviceTimes.takeError();
  figures.push_back(
      {"handover", shape.name() + ", unmoved, device time", "us", (*deviceTimes)[0] * 1e6});
  push(addedFigure(shape.name(), "device time", *deviceTimes), deviceBar);
  return llvm::Error::success();
}

llvm::Error rondo::benchHandover(const BenchSetup &setup, std::vector<Figure> &figures) {
  llvm::Expected<std::unique_ptr<Stream>> stream = setup.device->createStream();
  if (!stream)
    return stream.takeError();
  llvm::Expected<std::optional<DeviceWork>> work = DeviceWork::create(setup, **stream);
  if (!work)
    return work.takeError();
  const DeviceWork *timed = *work ? &**work : nullptr;
  for (uint64_t bytes : {uint64_t(4) << 10, uint64_t(1) << 20})
    for (unsigned consumers : consumerCounts)
      if (llvm::Error error = benchShape(setup, {bytes, consumers}, timed, **stream, figures))
        return error;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// policies
//===----------------------------------------------------------------------===//

static void pushCosts(const BufferCosts &costs, std::vector<Figure> &figures) {
  auto push = [&](const char *what, double seconds) {
    figures.push_back({"policies", std::string("BufferCosts, ") + what, "us", seconds * 1e6});
  };
  push("node patched", costs.patchedNode);
  push("node that copies", costs.copyNode);
  push("node that gathers", costs.gatherNode);
  push("MiB copied", costs.byte * double(1 << 20));
}

/// Calls of `program` until all their work is done.
static std::function<llvm::Error()> burst(HandoverProgram &program, unsigned calls,
                                          Stream &stream) {
  return [&program, calls, &stream]() -> llvm::Error {
    for (unsigned call = 0; call < calls; ++call)
      if (llvm::Error error = program.callMoved())
        return error;
    return stream.synchronize();
  };
}

/// One shape: patched beside copied, and what is chosen beside the better of them.
static llvm::Error benchChoice(const BenchSetup &setup, const HandoverShape &shape,
                               const BufferCosts &costs, Stream &stream,
                               std::vector<Figure> &figures) {
  llvm::Expected<HandoverArguments> arguments = HandoverArguments::create(setup, shape, stream);
  if (!arguments)
    return arguments.takeError();
  std::unique_ptr<HandoverProgram> programs[3];
  std::vector<Contestant> contestants;
  constexpr InputPolicy policies[] = {InputPolicy::Patched, InputPolicy::Copied, InputPolicy::Auto};
  for (size_t i = 0; i < 3; ++i) {
    llvm::Expected<std::unique_ptr<HandoverProgram>> made =
        HandoverProgram::create(setup, shape, policies[i], costs, *arguments, stream);
    if (!made)
      return made.takeError();
    programs[i] = std::move(*made);
    // One call before a turn: so it does not matter what those of the others left in caches.
    contestants.push_back(
        {burst(*programs[i], setup.calls, stream), burst(*programs[i], 1, stream)});
  }
  BenchSetup bursts = setup;
  bursts.calls = 1;
  bursts.mostSeconds = 0.5;
  llvm::Expected<std::vector<double>> times =
      medianTimes(bursts, contestants, [] { return llvm::Error::success(); });
  if (!times)
    return times.takeError();
  double scale = 1e6 / setup.calls, patched = (*times)[0] * scale, copied = (*times)[1] * scale;
  figures.push_back({"policies", shape.name() + ", patched", "us", patched, copied, "copied"});
  Figure chosen{"policies",
                shape.name() + ", auto: " + programs[2]->policies(),
                "us",
                (*times)[2] * scale,
                std::min(patched, copied),
                patched <= copied ? "patched" : "copied"};
  chosen.bar = 1.1;
  figures.push_back(std::move(chosen));
  return llvm::Error::success();
}

/// From 1 KiB in steps of 8 to `most`, which is one of them.
static std::vector<uint64_t> sizesUpTo(uint64_t most) {
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = smallestInput; bytes < most; bytes *= 8)
    sizes.push_back(bytes);
  sizes.push_back(most);
  return sizes;
}

llvm::Error rondo::benchPolicies(const BenchSetup &setup, uint64_t mostBytes,
                                 std::vector<Figure> &figures) {
  llvm::Expected<std::unique_ptr<Stream>> stream = setup.device->createStream();
  if (!stream)
    return stream.takeError();
  llvm::Expected<BufferCosts> costs = measureBufferCosts(setup.device);
  if (!costs)
    return costs.takeError();
  pushCosts(*costs, figures);
  std::vector<HandoverShape> shapes;
  for (uint64_t bytes : sizesUpTo(mostBytes))
    for (unsigned consumers : consumerCounts)
      shapes.push_back({bytes, consumers});
  shapes.push_back({smallestInput, 4, 8});
  for (const HandoverShape &shape : shapes)
    if (llvm::Error error = benchChoice(setup, shape, *costs, **stream, figures))
      return error;
  return llvm::Error::success();
}
