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

llvm::Error Generators::set(Stream &stream, llvm::StringRef name, RNGState state) {
  llvm::Expected<RNGState *> found = this->state(name);
  if (!found)
    return found.takeError();
  if (llvm::Error error = stream.copy(*found, &state, sizeof state))
    return error;
  return stream.synchronize();
}

llvm::Expected<RNGState> Generators::get(Stream &stream, llvm::StringRef name) {
  llvm::Expected<RNGState *> found = this->state(name);
  if (!found)
    return found.takeError();
  RNGState state;
  if (llvm::Error error = stream.copy(&state, *found, sizeof state))
    return error;
  if (llvm::Error error = stream.synchronize())
    return error;
  return state;
}
