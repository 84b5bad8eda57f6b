//===- CuBLASLibrary.h - cuBLASLt, loaded at run time -----------*- C++ -*-===//

#pragma once

#include "CUDADeviceImpl.h"
#include "SharedLibrary.h"

#include <cublasLt.h>

namespace rondo::cuda {

/// The functions of cuBLASLt that we call. Never unloaded.
struct CuBLASLibrary {
  decltype(&::cublasLtCreate) create;
  decltype(&::cublasLtDestroy) destroy;
  decltype(&::cublasLtGetStatusName) statusName;
  decltype(&::cublasLtMatmul) matmul;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) findAlgorithms;
  decltype(&::cublasLtMatmulDescInit_internal) initProduct;
  decltype(&::cublasLtMatmulDescSetAttribute) setProduct;
  decltype(&::cublasLtMatrixLayoutInit_internal) initLayout;
  decltype(&::cublasLtMatrixLayoutSetAttribute) setLayout;
  decltype(&::cublasLtMatmulPreferenceInit_internal) initPreference;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) setPreference;

  /// The library's file, looked for in the loader's path and in RONDO_CUDA_LIBRARY_DIR, if that is
  /// defined. Errors: InvalidArgument; the text says what was looked for and what the loader
  /// answered.
  static llvm::Expected<SharedLibrary> open();
  /// Errors: those of `open`; InvalidArgument that names a function that the file does not have.
  static llvm::Expected<std::shared_ptr<const CuBLASLibrary>> load();

  /// Success, or what `call` failed with.
  llvm::Error check(cublasStatus_t status, llvm::StringRef call) const;
};

/// The library on one device, which it keeps alive. Thread-safe.
class CuBLASHandle {
public:
  /// Errors: InvalidArgument if `device` is no CUDA device; what the library answers.
  static llvm::Expected<std::shared_ptr<const CuBLASHandle>>
  create(std::shared_ptr<const CuBLASLibrary> library, const DeviceRef &device);
  CuBLASHandle(const CuBLASHandle &) = delete;
  CuBLASHandle &operator=(const CuBLASHandle &) = delete;
  ~CuBLASHandle();

  const CuBLASLibrary &library() const { return *library_; }
  cublasLtHandle_t get() const { return handle_; }
  /// Calls `function`, which gives a cublasStatus_t, with the device current. `name` is that of the
  /// call, for messages.
  llvm::Error run(llvm::StringRef name, llvm::function_ref<cublasStatus_t()> function) const;

private:
  CuBLASHandle(std::shared_ptr<const CuBLASLibrary> library, std::shared_ptr<CUDADevice> device)
      : library_(std::move(library)), device_(std::move(device)) {}

  std::shared_ptr<const CuBLASLibrary> library_;
  std::shared_ptr<CUDADevice> device_;
  cublasLtHandle_t handle_ = nullptr;
};

} // namespace rondo::cuda
