//===- Devices.cpp - Where a tool runs ------------------------------------===//

#include "support/Devices.h"

#include "rondo/cuda/CUDADevice.h"
#include "rondo/cuda/CUDAExecutors.h"
#include "rondo/host/HostDevice.h"
#include "rondo/host/HostExecutor.h"
#include "rondo/passes/PassManager.h"
#include "rondo/passes/Passes.h"

using namespace rondo;

std::optional<Device> rondo::deviceOption(llvm::StringRef text) {
  std::optional<Device> device = text == "cuda" ? Device::cuda(0) : parseDevice(text);
  return device && device->isHost() && device->index != 0 ? std::nullopt : device;
}

/// The same for people, without the kind of a device's error.
static llvm::Error toMessage(llvm::Error error) {
  return llvm::handleErrors(std::move(error), [](const DeviceError &info) -> llvm::Error {
    return makeError(info.text());
  });
}

llvm::Expected<DeviceRef> rondo::createDevice(Device device) {
  if (device.isHost())
    return createHostDevice();
  llvm::Expected<DeviceRef> made = createCUDADevice(device.index);
  if (!made)
    return toMessage(made.takeError());
  return made;
}

llvm::Expected<std::vector<std::unique_ptr<Executor>>>
rondo::createExecutors(Device device, std::vector<std::string> &remarks) {
  std::vector<std::unique_ptr<Executor>> all;
  if (!device.isHost()) {
    llvm::Expected<std::vector<std::unique_ptr<Executor>>> made = createCUDAExecutors(&remarks);
    if (!made)
      return toMessage(made.takeError());
    all = std::move(*made);
  }
  all.push_back(std::make_unique<HostExecutor>());
  return all;
}

std::vector<const Executor *> rondo::listOf(llvm::ArrayRef<std::unique_ptr<Executor>> executors) {
  std::vector<const Executor *> list;
  for (const std::unique_ptr<Executor> &executor : executors)
    list.push_back(executor.get());
  return list;
}

/// Returns true if `matches` some device of a value.
static bool anyDevice(const TracePair &pair, llvm::function_ref<bool(Device)> matches) {
  for (Side side : {Side::Forward, Side::Backward}) {
    if (side == Side::Backward && !pair.hasBackward())
      continue;
    const Trace &trace = pair.trace(side);
    auto anyOf = [&](llvm::ArrayRef<ValueId> values) {
      return llvm::any_of(values, [&](ValueId value) {
        std::optional<Device> device = trace.type(value).device();
        return device && matches(*device);
      });
    };
    bool found = anyOf(trace.arguments());
    forEachOp(trace, [&](const Op &op) { found |= anyOf(op.results()); });
    if (found)
      return true;
  }
  return false;
}

llvm::Expected<TracePair> rondo::placeOn(Device device, TracePair pair) {
  PlaceOptions options;
  options.to = device;
  if (!device.isHost() && !anyDevice(pair, [](Device other) { return !other.isHost(); }))
    options.from = Device::host();
  PassManager manager;
  manager.add(createPlacePass(options));
  return manager.run(std::move(pair));
}

std::vector<DeviceRef> rondo::devicesOf(const TracePair &pair, DeviceRef device) {
  std::vector<DeviceRef> devices = {std::move(device)};
  if (devices.front()->device() != Device::host() &&
      anyDevice(pair, [](Device other) { return other == Device::host(); }))
    devices.push_back(createHostDevice());
  return devices;
}
