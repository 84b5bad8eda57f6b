//===- CuDNNLibrary.h - cuDNN, loaded at run time ---------------*- C++ -*-===//

#pragma once

#include "CUDADeviceImpl.h"

#include <cudnn_graph.h>

namespace rondo::cuda {

/// The functions of cuDNN 9 that we call. Never unloaded.
struct CuDNNLibrary {
  decltype(&::cudnnGetVersion) getVersion;
  decltype(&::cudnnGetErrorString) statusName;
  decltype(&::cudnnGetLastErrorString) lastError;
  decltype(&::cudnnCreate) create;
  decltype(&::cudnnDestroy) destroy;
  decltype(&::cudnnSetStream) setStream;
  decltype(&::cudnnBackendCreateDescriptor) createDescriptor;
  decltype(&::cudnnBackendDestroyDescriptor) destroyDescriptor;
  decltype(&::cudnnBackendSetAttribute) setAttribute;
  decltype(&::cudnnBackendGetAttribute) getAttribute;
  decltype(&::cudnnBackendFinalize) finalize;
  decltype(&::cudnnBackendExecute) execute;

  /// Opens the file that the environment variable RONDO_CUDNN_LIBRARY names; without one, looks in
  /// the loader's path and in RONDO_CUDA_LIBRARY_DIR, if that is defined. Errors: InvalidArgument;
  /// the text says what was looked for and what the loader answered, or that the library is older
  /// than 9.11, whose attention has known bugs, or newer than 9.
  static llvm::Expected<std::shared_ptr<const CuDNNLibrary>> load();

  /// 10000 * major + 100 * minor + patch.
  size_t version() const { return getVersion(); }
  /// Success, or what `call`, the last one of this thread, failed with.
  llvm::Error check(cudnnStatus_t status, llvm::StringRef call) const;
};

/// The library on one device, which it keeps alive. Thread-safe, though cuDNN's handles are not:
/// one thread at a time is in `run`.
class CuDNNHandle {
public:
  /// Errors: InvalidArgument if `device` is no CUDA device; what the library answers.
  static llvm::Expected<std::shared_ptr<const CuDNNHandle>>
  create(std::shared_ptr<const CuDNNLibrary> library, const DeviceRef &device);
  CuDNNHandle(const CuDNNHandle &) = delete;
  CuDNNHandle &operator=(const CuDNNHandle &) = delete;
  ~CuDNNHandle();

  const CuDNNLibrary &library() const { return *library_; }
  cudnnHandle_t get() const { return handle_; }
  int computeCapabilityMajor() const { return computeCapabilityMajor_; }
  /// Calls `function` alone and with the device current. `name` is for the message that the device
  /// is lost; any other error is the function's.
  llvm::Error run(llvm::StringRef name, llvm::function_ref<llvm::Error()> function) const;
  /// Calls `function`, which destroys something, with the device current, unless that is lost.
  void cleanUp(llvm::StringRef name, llvm::function_ref<void()> function) const;

private:
  CuDNNHandle(std::shared_ptr<const CuDNNLibrary> library, std::shared_ptr<CUDADevice> device)
      : library_(std::move(library)), device_(std::move(device)) {}

  std::shared_ptr<const CuDNNLibrary> library_;
  std::shared_ptr<CUDADevice> device_;
  mutable std::mutex mutex_;
  cudnnHandle_t handle_ = nullptr;
  int computeCapabilityMajor_ = 0;
};

} // namespace rondo::cuda
