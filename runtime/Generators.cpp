//===- Generators.cpp - Random-number generators on a device --------------===//

#include "rondo/runtime/Generators.h"

#include "rondo/ir/Diagnostic.h"

#include <optional>
#include <thread>

using namespace rondo;

//===----------------------------------------------------------------------===//
// Memory of states
//===----------------------------------------------------------------------===//

/// Memory of `bytes` bytes that are 0 for whatever is submitted from here on.
static llvm::Expected<StorageRef> allocateZeros(const DeviceRef &device, size_t bytes) {
  llvm::Expected<StorageRef> made = Storage::allocate(device, bytes);
  if (!made)
    return made.takeError();
  llvm::Expected<std::unique_ptr<Stream>> stream = device->createStream();
  if (!stream)
    return stream.takeError();
  if (llvm::Error error = (*stream)->fill((*made)->data(), 0, bytes))
    return error;
  if (llvm::Error error = (*stream)->synchronize())
    return error;
  return made;
}

/// The same by a thread of its own: a capture of mode ThreadLocal forbids to allocate and to wait,
/// but only to the thread that began it, which may be the caller's.
static llvm::Expected<StorageRef> allocateZerosElsewhere(const DeviceRef &device, size_t bytes) {
  std::optional<llvm::Expected<StorageRef>> made;
  std::thread([&] { made.emplace(allocateZeros(device, bytes)); }).join();
  return std::move(*made);
}

/// The lock is held.
RNGState *Generators::stateAt(unsigned number) const {
  return reinterpret_cast<RNGState *>(blocks_[number / statesPerBlock]->data()) +
         number % statesPerBlock;
}

llvm::Expected<RNGState *> Generators::state(llvm::StringRef name) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = numbers_.find(name);
  if (found != numbers_.end())
    return stateAt(found->second);
  unsigned number = numbers_.size();
  if (number == blocks_.size() * statesPerBlock) {
    llvm::Expected<StorageRef> block = allocateZerosElsewhere(device_, blockBytes);
    if (!block)
      return block.takeError();
    blocks_.push_back(std::move(*block));
  }
  numbers_[name] = number;
  return stateAt(number);
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

llvm::Error Generators::Use::begin(Generators &generators, Stream &stream) {
  lock_ = std::unique_lock<std::mutex>(generators.useMutex_);
  generators_ = &generators;
  stream_ = &stream;
  return generators.lastUse_.acquire(stream);
}

llvm::Error Generators::Use::end() {
  if (!lock_.owns_lock())
    return llvm::Error::success();
  llvm::Error error = generators_->lastUse_.release(*stream_);
  lock_.unlock();
  return error;
}

/// Submits what uses generators, and waits for it.
llvm::Error Generators::onStream(Stream &stream, llvm::function_ref<llvm::Error()> submit) {
  Use use;
  llvm::Error error = use.begin(*this, stream);
  if (!error)
    error = submit();
  error = llvm::joinErrors(std::move(error), use.end());
  return error ? std::move(error) : stream.synchronize();
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// Can the host read and set states of `device` by way of `stream`?
static llvm::Error checkStream(DeviceAPI &device, Stream &stream) {
  if (&stream.device() != &device)
    return makeError("expected a stream of the generators' device, " + deviceName(device.device()) +
                     ", got one of " + deviceName(stream.device().device()));
  if (stream.captureStatus() != CaptureStatus::None)
    return makeDeviceError(DeviceErrorKind::NotCapturable,
                           "the host cannot read or set generators by way of a stream that is "
                           "being captured");
  if (!device.mayWait())
    return makeDeviceError(DeviceErrorKind::NotCapturable,
                           "the host cannot read or set generators while a capture forbids this "
                           "thread to wait");
  return llvm::Error::success();
}

llvm::Error Generators::set(Stream &stream, llvm::StringRef name, RNGState state) {
  if (llvm::Error error = checkStream(*device_, stream))
    return error;
  llvm::Expected<RNGState *> found = this->state(name);
  if (!found)
    return found.takeError();
  return onStream(stream, [&] { return stream.copy(*found, &state, sizeof state); });
}

llvm::Expected<RNGState> Generators::get(Stream &stream, llvm::StringRef name) {
  if (llvm::Error error = checkStream(*device_, stream))
    return error;
  llvm::Expected<RNGState *> found = this->state(name);
  if (!found)
    return found.takeError();
  RNGState state;
  if (llvm::Error error =
          onStream(stream, [&] { return stream.copy(&state, *found, sizeof state); }))
    return error;
  return state;
}

llvm::Expected<Generators::States> Generators::snapshot(Stream &stream) {
  if (llvm::Error error = checkStream(*device_, stream))
    return error;
  std::vector<RNGState> all;
  llvm::StringMap<unsigned> numbers;
  if (llvm::Error error = onStream(stream, [&]() -> llvm::Error {
        std::lock_guard<std::mutex> lock(mutex_);
        numbers = numbers_;
        all.resize(blocks_.size() * statesPerBlock);
        for (size_t i = 0; i < blocks_.size(); ++i)
          if (llvm::Error error =
                  stream.copy(&all[i * statesPerBlock], blocks_[i]->data(), blockBytes))
            return error;
        return llvm::Error::success();
      }))
    return error;
  States states;
  for (const auto &entry : numbers)
    states[entry.getKey().str()] = all[entry.getValue()];
  return states;
}

llvm::Error Generators::restore(Stream &stream, const States &states) {
  if (llvm::Error error = checkStream(*device_, stream))
    return error;
  for (const auto &entry : states)
    if (llvm::Error error = state(entry.first).takeError())
      return error;
  std::vector<RNGState> all;
  return onStream(stream, [&]() -> llvm::Error {
    std::lock_guard<std::mutex> lock(mutex_);
    all.resize(blocks_.size() * statesPerBlock); // seed 0, offset 0
    for (const auto &entry : states)
      all[numbers_.lookup(entry.first)] = entry.second;
    for (size_t i = 0; i < blocks_.size(); ++i)
      if (llvm::Error error = stream.copy(blocks_[i]->data(), &all[i * statesPerBlock], blockBytes))
        return error;
    return llvm::Error::success();
  });
}
