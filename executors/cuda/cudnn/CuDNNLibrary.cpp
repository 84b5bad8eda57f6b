//===- CuDNNLibrary.cpp - cuDNN, loaded at run time -----------------------===//

#include "CuDNNLibrary.h"

#include "SharedLibrary.h"

#include <cstdlib>

using namespace rondo;
using namespace rondo::cuda;

static_assert(CUDNN_MAJOR == 9, "the attributes and descriptors of cuDNN 9 are asked for");

#define RONDO_CUDNN_FILE "libcudnn.so.9"

static constexpr size_t oldestVersion = 91100, firstTooNew = 100000;

/// `9.11.0`
static std::string versionText(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

static llvm::SmallVector<std::string, 2> candidates() {
  if (const char *named = std::getenv("RONDO_CUDNN_LIBRARY"); named && *named)
    return {named};
  return {
      RONDO_CUDNN_FILE,
#ifdef RONDO_CUDA_LIBRARY_DIR
      RONDO_CUDA_LIBRARY_DIR "/" RONDO_CUDNN_FILE,
#endif
  };
}

llvm::Expected<std::shared_ptr<const CuDNNLibrary>> CuDNNLibrary::load() {
  llvm::Expected<SharedLibrary> file = SharedLibrary::open("cuDNN", candidates());
  if (!file)
    return file.takeError();
  auto library = std::make_shared<CuDNNLibrary>();
  file->find(library->getVersion, "cudnnGetVersion");
  file->find(library->statusName, "cudnnGetErrorString");
  file->find(library->lastError, "cudnnGetLastErrorString");
  file->find(library->create, "cudnnCreate");
  file->find(library->destroy, "cudnnDestroy");
  file->find(library->setStream, "cudnnSetStream");
  file->find(library->createDescriptor, "cudnnBackendCreateDescriptor");
  file->find(library->destroyDescriptor, "cudnnBackendDestroyDescriptor");
  file->find(library->setAttribute, "cudnnBackendSetAttribute");
  file->find(library->getAttribute, "cudnnBackendGetAttribute");
  file->find(library->finalize, "cudnnBackendFinalize");
  file->find(library->execute, "cudnnBackendExecute");
  if (llvm::Error error = file->checkFound())
    return error;
  size_t version = library->version();
  if (version < oldestVersion || version >= firstTooNew)
    return makeDeviceError(DeviceErrorKind::InvalidArgument,
                           "cuDNN " + versionText(version) + " was found; " +
                               versionText(oldestVersion) + " or a newer 9 is needed");
  return library;
}

static DeviceErrorKind kindOf(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
    return DeviceErrorKind::OutOfMemory;
  int category = CUDNN_STATUS_CATEGORY(status);
  return category == CUDNN_STATUS_BAD_PARAM || category == CUDNN_STATUS_NOT_SUPPORTED
             ? DeviceErrorKind::InvalidArgument
             : DeviceErrorKind::Launch;
}

llvm::Error CuDNNLibrary::check(cudnnStatus_t status, llvm::StringRef call) const {
  if (status == CUDNN_STATUS_SUCCESS)
    return llvm::Error::success();
  char reason[1024] = "";
  lastError(reason, sizeof(reason));
  reason[sizeof(reason) - 1] = 0;
  std::string text = (call + " failed: " + statusName(status)).str();
  if (*reason)
    text += std::string(": ") + reason;
  return makeDeviceError(kindOf(status), text);
}

llvm::Expected<std::shared_ptr<const CuDNNHandle>>
CuDNNHandle::create(std::shared_ptr<const CuDNNLibrary> library, const DeviceRef &device) {
  auto cudaDevice = std::dynamic_pointer_cast<CUDADevice>(device);
  if (!cudaDevice)
    return makeDeviceError(DeviceErrorKind::InvalidArgument,
                           "cuDNN needs a CUDA device, not " + deviceName(device->device()));
  std::shared_ptr<CuDNNHandle> result(new CuDNNHandle(std::move(library), cudaDevice));
  if (llvm::Error error = cudaDevice->run("cudaDeviceGetAttribute", [&] {
        return cudaDeviceGetAttribute(&result->computeCapabilityMajor_,
                                      cudaDevAttrComputeCapabilityMajor,
                                      int(device->device().index));
      }))
    return error;
  llvm::Error error = result->run("cudnnCreate", [&] {
    return result->library().check(result->library().create(&result->handle_), "cudnnCreate");
  });
  if (error) {
    result->handle_ = nullptr;
    return error;
  }
  return result;
}

CuDNNHandle::~CuDNNHandle() {
  if (handle_)
    cleanUp("cudnnDestroy", [&] { (void)library_->destroy(handle_); });
}

llvm::Error CuDNNHandle::run(llvm::StringRef name,
                             llvm::function_ref<llvm::Error()> function) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::optional<llvm::Error> answer;
  llvm::Error deviceError = device_->run(name, [&] {
    answer.emplace(function());
    return *answer ? cudaGetLastError() : cudaSuccess;
  });
  bool isFailed = answer && bool(*answer);
  if (!isFailed || device_->isLost()) {
    if (isFailed)
      llvm::consumeError(std::move(*answer));
    return deviceError;
  }
  // The library says more than CUDA.
  llvm::consumeError(std::move(deviceError));
  return std::move(*answer);
}

void CuDNNHandle::cleanUp(llvm::StringRef name, llvm::function_ref<void()> function) const {
  device_->cleanUp(name, [&] {
    function();
    return cudaSuccess;
  });
}
