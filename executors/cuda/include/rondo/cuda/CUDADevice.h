//===- CUDADevice.h - A GPU as a device -------------------------*- C++ -*-===//
//
// The device `cuda`: the terms of rondo/executors/DeviceAPI.h are CUDA's own here. A build without
// the CUDA toolkit has these functions, too, and a program built with it starts on a machine
// without a driver: asked for a device, both say why there is none.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/DeviceAPI.h"

namespace rondo {

/// Was this build made with the CUDA toolkit?
bool isCUDABuilt();

/// How many CUDA devices there are. Errors: InvalidArgument `no CUDA device: <why>; use the host
/// device`, also if there are none.
llvm::Expected<unsigned> countCUDADevices();

/// The device `cuda:<index>`, on the primary context, which other libraries of the process use,
/// too. Every call makes another `DeviceAPI` with memory of its own. No function changes which
/// device is current in the calling thread. Errors: as countCUDADevices; an index that is too
/// large.
llvm::Expected<DeviceRef> createCUDADevice(unsigned index = 0);

/// A stream of `device`, which createCUDADevice made, on top of a CUstream or cudaStream_t that the
/// caller keeps alive. Destroying it leaves that stream as it is. A capture that CUDA's own
/// functions begin is seen on such streams alone: not on those that the device made. Errors:
/// InvalidArgument if `device` is no CUDA device or the stream one of another device.
llvm::Expected<std::unique_ptr<Stream>> borrowCUDAStream(const DeviceRef &device, void *cudaStream);

} // namespace rondo
