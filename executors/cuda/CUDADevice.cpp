//===- CUDADevice.cpp - A GPU as a device ---------------------------------===//

#include "CUDADeviceImpl.h"

#include "CUDAEvent.h"
#include "CUDAGraph.h"
#include "CUDAStream.h"

using namespace rondo;
using namespace rondo::cuda;

//===----------------------------------------------------------------------===//
// Making and losing a device
//===----------------------------------------------------------------------===//

CUDADevice::CUDADevice(unsigned index, const CUDADriver &driver)
    : index_(index), name_(deviceName(Device::cuda(uint16_t(index)))), driver_(driver) {
  memory_.emplace(*this);
}

llvm::Error CUDADevice::initialize() {
  // The runtime keeps the primary context from here on, so that letting go of it destroys nothing.
  if (llvm::Error error = check(cudaInitDevice(int(index_), 0, 0), "cudaInitDevice"))
    return error;
  if (llvm::Error error = check(driver_.cuDevicePrimaryCtxRetain(&context_, CUdevice(index_)),
                                "cuDevicePrimaryCtxRetain"))
    return error;
  cudaDeviceProp properties;
  if (llvm::Error error = run("cudaGetDeviceProperties",
                              [&] { return cudaGetDeviceProperties(&properties, int(index_)); }))
    return error;
  description_ = properties.name;
  return memory_->initialize(int(index_));
}

CUDADevice::~CUDADevice() {
  memory_.reset();
  if (context_ && !isLost())
    driver_.cuDevicePrimaryCtxRelease(CUdevice(index_));
}

llvm::Error CUDADevice::invalidArgument(const llvm::Twine &message) const {
  if (isLost())
    return lostError();
  return makeDeviceError(DeviceErrorKind::InvalidArgument, name_ + ": " + message);
}

llvm::Error CUDADevice::lostError() const {
  std::lock_guard lock(lostMutex_);
  return makeDeviceError(DeviceErrorKind::Lost, lostText_);
}

llvm::Error CUDADevice::errorOf(cudaError_t result, llvm::StringRef call) {
  cudaGetLastError();
  std::string text = name_ + ": " + describeResult(result, call);
  DeviceErrorKind kind = kindOfResult(result);
  if (kind != DeviceErrorKind::Lost)
    return makeDeviceError(kind, text);
  {
    std::lock_guard lock(lostMutex_);
    if (!isLost())
      lostText_ = std::move(text);
    isLost_.store(true, std::memory_order_release);
  }
  return lostError();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

llvm::Expected<void *> CUDADevice::allocate(size_t bytes) {
  if (!bytes)
    return nullptr;
  return memory_->allocate(bytes);
}

void CUDADevice::deallocate(void *data, size_t bytes) noexcept {
  if (data)
    memory_->deallocate(data, bytes);
}

bool CUDADevice::canAccess(const void *data) const {
  if (!data || isLost())
    return false;
  CUDAContextScope current(driver_, context_);
  cudaPointerAttributes attributes = {};
  if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  if (attributes.type == cudaMemoryTypeDevice && attributes.device != int(index_))
    return false;
  return attributes.type != cudaMemoryTypeUnregistered && attributes.devicePointer == data;
}

//===----------------------------------------------------------------------===//
// Streams, events, graphs
//===----------------------------------------------------------------------===//

llvm::Expected<std::unique_ptr<Stream>> CUDADevice::createStream() {
  CUDARelaxedScope relaxed(driver_);
  cudaStream_t stream = nullptr;
  if (llvm::Error error = run("cudaStreamCreateWithFlags", [&] {
        return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      }))
    return error;
  return CUDAStream::create(shared(), stream, /*isBorrowed=*/false);
}

llvm::Expected<std::unique_ptr<Event>> CUDADevice::createEvent() {
  cudaEvent_t event = nullptr;
  if (llvm::Error error = run("cudaEventCreateWithFlags", [&] {
        return cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
      }))
    return error;
  return std::make_unique<CUDAEvent>(shared(), event);
}

llvm::Expected<std::unique_ptr<Graph>> CUDADevice::createGraph() {
  cudaGraph_t graph = nullptr;
  if (llvm::Error error = run("cudaGraphCreate", [&] { return cudaGraphCreate(&graph, 0); }))
    return error;
  return std::make_unique<CUDAGraph>(std::make_shared<CUDAGraphNodes>(shared(), graph));
}

llvm::Error CUDADevice::synchronize() {
  return run("cudaDeviceSynchronize", [] { return cudaDeviceSynchronize(); });
}

//===----------------------------------------------------------------------===//
// The devices there are
//===----------------------------------------------------------------------===//

bool rondo::isCUDABuilt() {
  return true;
}

llvm::Expected<unsigned> rondo::countCUDADevices() {
  int version = 0, count = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || !version) {
    cudaGetLastError();
    return noDeviceError("no CUDA driver is installed");
  }
  cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0)
    return unsigned(count);
  cudaGetLastError();
  return noDeviceError(result == cudaSuccess ? std::string("the driver knows of none")
                                             : describeResult(result, "cudaGetDeviceCount"));
}

llvm::Expected<DeviceRef> rondo::createCUDADevice(unsigned index) {
  llvm::Expected<unsigned> count = countCUDADevices();
  if (!count)
    return count.takeError();
  if (index >= *count)
    return makeDeviceError(DeviceErrorKind::InvalidArgument,
                           "no CUDA device cuda:" + llvm::Twine(index) +
                               ": the number of devices "
                               "is " +
                               llvm::Twine(*count));
  llvm::Expected<CUDADriver> driver = loadCUDADriver();
  if (!driver)
    return driver.takeError();
  auto device = std::make_shared<CUDADevice>(index, *driver);
  if (llvm::Error error = device->initialize())
    return error;
  return device;
}

llvm::Expected<std::unique_ptr<Stream>> rondo::borrowCUDAStream(const DeviceRef &device,
                                                                void *cudaStream) {
  auto *cudaDevice = dynamic_cast<CUDADevice *>(device.get());
  if (!cudaDevice)
    return makeDeviceError(DeviceErrorKind::InvalidArgument,
                           "expected a CUDA device to borrow a stream for, given another");
  auto stream = static_cast<cudaStream_t>(cudaStream);
  CUcontext context = nullptr;
  if (llvm::Error error = cudaDevice->run(
          "cuStreamGetCtx", [&] { return cudaDevice->driver().cuStreamGetCtx(stream, &context); }))
    return error;
  if (context != cudaDevice->context())
    return cudaDevice->invalidArgument("expected a stream of this device to borrow, given one of "
                                       "another device or context");
  return CUDAStream::create(cudaDevice->shared(), stream, /*isBorrowed=*/true);
}
