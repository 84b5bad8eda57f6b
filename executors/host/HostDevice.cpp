//===- HostDevice.cpp - The host as a device ------------------------------===//

#include "HostDeviceImpl.h"
#include "HostEvent.h"
#include "HostGraph.h"
#include "HostStream.h"

#include <system_error>

using namespace rondo;

uint64_t rondo::splitMix64(uint64_t &state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

static std::string nameOf(uint16_t index) {
  return "host:" + std::to_string(index);
}

HostDevice::HostDevice(HostDeviceOptions options)
    : options_(std::move(options)), name_(nameOf(options_.index)), memory_(options_),
      captures_(name_), orderState_(options_.randomOrderSeed.value_or(0)) {}

HostDevice::~HostDevice() = default;

llvm::Error HostDevice::invalidArgument(const llvm::Twine &message) const {
  return makeDeviceError(DeviceErrorKind::InvalidArgument, name_ + ": " + message);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

llvm::Expected<void *> HostDevice::allocate(size_t bytes) {
  if (!bytes)
    return nullptr;
  if (llvm::Error error = captures_.refuseUnsafe("allocate"))
    return error;
  if (void *data = memory_.allocate(bytes))
    return data;
  std::string message = name_ + ": cannot allocate " + std::to_string(bytes) + " bytes, " +
                        std::to_string(memory_.use().bytes) + " are in use";
  if (options_.memoryLimit)
    message += " and the limit is " + std::to_string(options_.memoryLimit);
  return makeDeviceError(DeviceErrorKind::OutOfMemory, message);
}

void HostDevice::deallocate(void *data, size_t bytes) noexcept {
  if (!data || captures_.putOff({data, bytes, nullptr}))
    return;
  waitForStreams();
  memory_.deallocate(data, bytes);
}

void HostDevice::captureEnded() {
  for (const HostPending &pending : captures_.takePending())
    if (pending.work)
      pending.work();
    else
      deallocate(pending.data, pending.bytes);
}

//===----------------------------------------------------------------------===//
// Streams, events, graphs
//===----------------------------------------------------------------------===//

llvm::Expected<std::unique_ptr<Stream>> HostDevice::createStream() {
  try {
    return std::make_unique<HostStream>(shared());
  } catch (const std::system_error &error) {
    return makeDeviceError(DeviceErrorKind::OutOfMemory,
                           name_ + ": cannot start the thread of a stream: " + error.what());
  }
}

llvm::Expected<std::unique_ptr<Event>> HostDevice::createEvent() {
  return std::make_unique<HostEvent>(shared());
}

llvm::Expected<std::unique_ptr<Graph>> HostDevice::createGraph() {
  return std::make_unique<HostGraph>(shared());
}

void HostDevice::streamCreated(std::shared_ptr<HostTimeline> timeline) {
  std::lock_guard lock(mutex_);
  timelines_.push_back(std::move(timeline));
}

void HostDevice::streamDestroyed(const HostTimeline &timeline) {
  std::lock_guard lock(mutex_);
  llvm::erase_if(timelines_, [&](const auto &other) { return other.get() == &timeline; });
}

void HostDevice::waitForStreams() const {
  llvm::SmallVector<HostWorkPoint, 8> points;
  {
    std::lock_guard lock(mutex_);
    for (const std::shared_ptr<HostTimeline> &timeline : timelines_)
      points.push_back({timeline, timeline->lastSubmitted()});
  }
  for (const HostWorkPoint &point : points)
    point.wait();
}

llvm::Error HostDevice::synchronize() {
  if (llvm::Error error = captures_.refuseInAnyCapture("synchronize"))
    return error;
  waitForStreams();
  return llvm::Error::success();
}

std::optional<uint64_t> HostDevice::drawOrderSeed() {
  if (!options_.randomOrderSeed)
    return std::nullopt;
  std::lock_guard lock(mutex_);
  return splitMix64(orderState_);
}

DeviceRef rondo::createHostDevice(HostDeviceOptions options) {
  return std::make_shared<HostDevice>(std::move(options));
}
