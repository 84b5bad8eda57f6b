//===- CuBLASLibrary.cpp - cuBLASLt, loaded at run time -------------------===//

#include "CuBLASLibrary.h"

using namespace rondo;
using namespace rondo::cuda;

#define RONDO_TEXT_OF(x) #x
#define RONDO_TEXT(x) RONDO_TEXT_OF(x)
#define RONDO_CUBLAS_FILE "libcublasLt.so." RONDO_TEXT(CUBLAS_VER_MAJOR)

llvm::Expected<SharedLibrary> CuBLASLibrary::open() {
  const std::string files[] = {
      RONDO_CUBLAS_FILE,
#ifdef RONDO_CUDA_LIBRARY_DIR
      RONDO_CUDA_LIBRARY_DIR "/" RONDO_CUBLAS_FILE,
#endif
  };
  return SharedLibrary::open("cuBLASLt", files);
}

llvm::Expected<std::shared_ptr<const CuBLASLibrary>> CuBLASLibrary::load() {
  llvm::Expected<SharedLibrary> file = open();
  if (!file)
    return file.takeError();
  auto library = std::make_shared<CuBLASLibrary>();
  file->find(library->create, "cublasLtCreate");
  file->find(library->destroy, "cublasLtDestroy");
  file->find(library->statusName, "cublasLtGetStatusName");
  file->find(library->matmul, "cublasLtMatmul");
  file->find(library->findAlgorithms, "cublasLtMatmulAlgoGetHeuristic");
  file->find(library->initProduct, "cublasLtMatmulDescInit_internal");
  file->find(library->setProduct, "cublasLtMatmulDescSetAttribute");
  file->find(library->initLayout, "cublasLtMatrixLayoutInit_internal");
  file->find(library->setLayout, "cublasLtMatrixLayoutSetAttribute");
  file->find(library->initPreference, "cublasLtMatmulPreferenceInit_internal");
  file->find(library->setPreference, "cublasLtMatmulPreferenceSetAttribute");
  if (llvm::Error error = file->checkFound())
    return error;
  return library;
}

llvm::Error CuBLASLibrary::check(cublasStatus_t status, llvm::StringRef call) const {
  if (status == CUBLAS_STATUS_SUCCESS)
    return llvm::Error::success();
  DeviceErrorKind kind = DeviceErrorKind::Launch;
  if (status == CUBLAS_STATUS_ALLOC_FAILED)
    kind = DeviceErrorKind::OutOfMemory;
  else if (status == CUBLAS_STATUS_INVALID_VALUE || status == CUBLAS_STATUS_NOT_SUPPORTED)
    kind = DeviceErrorKind::InvalidArgument;
  return makeDeviceError(kind, call + " failed: " + statusName(status));
}

llvm::Expected<std::shared_ptr<const CuBLASHandle>>
CuBLASHandle::create(std::shared_ptr<const CuBLASLibrary> library, const DeviceRef &device) {
  auto cudaDevice = std::dynamic_pointer_cast<CUDADevice>(device);
  if (!cudaDevice)
    return makeDeviceError(DeviceErrorKind::InvalidArgument,
                           "cuBLASLt needs a CUDA device, not " + deviceName(device->device()));
  std::shared_ptr<CuBLASHandle> result(new CuBLASHandle(std::move(library), std::move(cudaDevice)));
  if (llvm::Error error = result->run("cublasLtCreate",
                                      [&] { return result->library().create(&result->handle_); })) {
    result->handle_ = nullptr;
    return error;
  }
  return result;
}

CuBLASHandle::~CuBLASHandle() {
  if (!handle_)
    return;
  device_->cleanUp("cublasLtDestroy", [&] {
    (void)library_->destroy(handle_);
    return cudaSuccess;
  });
}

llvm::Error CuBLASHandle::run(llvm::StringRef name,
                              llvm::function_ref<cublasStatus_t()> function) const {
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  llvm::Error error = device_->run(name, [&] {
    status = function();
    return status == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaGetLastError();
  });
  return error ? std::move(error) : library_->check(status, name);
}
