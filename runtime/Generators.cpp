//===- Generators.cpp - Random-number generators on a device --------------===//

#include "rondo/runtime/Generators.h"

using namespace rondo;

llvm::Expected<RNGState *> Generators::state(llvm::StringRef name) {
  std::lock_guard<std::mutex> lock(mutex_);
  StorageRef &storage = states_[name];
  if (!storage) {
    llvm::Expected<StorageRef> made = Storage::allocate(device_, sizeof(RNGState));
    if (!made)
      return made.takeError();
    llvm::Expected<std::unique_ptr<Stream>> stream = device_->createStream();
    if (!stream)
      return stream.takeError();
    if (llvm::Error error = (*stream)->fill((*made)->data(), 0, sizeof(RNGState)))
      return error;
    if (llvm::Error error = (*stream)->synchronize())
      return error;
    storage = std::move(*made);
  }
  return reinterpret_cast<RNGState *>(storage->data());
}

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

llvm::Error Generators::set(Stream &stream, llvm::StringRef name, RNGState state) {
  llvm::Expected<RNGState *> found = this->state(name);
  if (!found)
    return found.takeError();
  return onStream(stream, [&] { return stream.copy(*found, &state, sizeof state); });
}

llvm::Expected<RNGState> Generators::get(Stream &stream, llvm::StringRef name) {
  llvm::Expected<RNGState *> found = this->state(name);
  if (!found)
    return found.takeError();
  RNGState state;
  if (llvm::Error error =
          onStream(stream, [&] { return stream.copy(&state, *found, sizeof state); }))
    return error;
  return state;
}

/// Submits what uses a generator, and waits for it.
llvm::Error Generators::onStream(Stream &stream, llvm::function_ref<llvm::Error()> submit) {
  Use use;
  llvm::Error error = use.begin(*this, stream);
  if (!error)
    error = submit();
  error = llvm::joinErrors(std::move(error), use.end());
  return error ? std::move(error) : stream.synchronize();
}
