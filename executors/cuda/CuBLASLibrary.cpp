//===- CuBLASLibrary.cpp - cuBLASLt, loaded at run time -------------------===//

#include "CuBLASLibrary.h"

#include <dlfcn.h>

using namespace rondo;
using namespace rondo::cuda;

#define RONDO_TEXT_OF(x) #x
#define RONDO_TEXT(x) RONDO_TEXT_OF(x)
#define RONDO_CUBLAS_FILE "libcublasLt.so." RONDO_TEXT(CUBLAS_VER_MAJOR)

/// The open library; null, with what the loader answered, if there is none.
static void *openLibrary(std::string &why) {
  const char *candidates[] = {
      RONDO_CUBLAS_FILE,
#ifdef RONDO_CUDA_LIBRARY_DIR
      RONDO_CUDA_LIBRARY_DIR "/" RONDO_CUBLAS_FILE,
#endif
  };
  for (const char *candidate : candidates) {
    if (void *library = dlopen(candidate, RTLD_NOW | RTLD_LOCAL))
      return library;
    const char *answer = dlerror();
    why += why.empty() ? "" : "; ";
    why += answer ? answer : candidate;
  }
  return nullptr;
}

llvm::Expected<std::shared_ptr<const CuBLASLibrary>> CuBLASLibrary::load() {
  std::string why;
  void *file = openLibrary(why);
  if (!file)
    return makeDeviceError(DeviceErrorKind::InvalidArgument,
                           llvm::Twine("cuBLASLt is not found: ") + why);
  auto library = std::make_shared<CuBLASLibrary>();
  const char *missing = nullptr;
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(file, name));
    if (!function && !missing)
      missing = name;
  };
  find(library->create, "cublasLtCreate");
  find(library->destroy, "cublasLtDestroy");
  find(library->statusName, "cublasLtGetStatusName");
  find(library->matmul, "cublasLtMatmul");
  find(library->findAlgorithms, "cublasLtMatmulAlgoGetHeuristic");
  find(library->initProduct, "cublasLtMatmulDescInit_internal");
  find(library->setProduct, "cublasLtMatmulDescSetAttribute");
  find(library->initLayout, "cublasLtMatrixLayoutInit_internal");
  find(library->setLayout, "cublasLtMatrixLayoutSetAttribute");
  find(library->initPreference, "cublasLtMatmulPreferenceInit_internal");
  find(library->setPreference, "cublasLtMatmulPreferenceSetAttribute");
  if (missing)
    return makeDeviceError(DeviceErrorKind::InvalidArgument, llvm::Twine("the " RONDO_CUBLAS_FILE) +
                                                                 " that was found has no '" +
                                                                 missing + "'");
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
