//===- Devices.h - Where a tool runs ----------------------------*- C++ -*-===//

#pragma once

#include "rondo/executors/Executor.h"
#include "rondo/ir/TracePair.h"

namespace rondo {

/// What `--device` says: the name of a device that a tool runs on, or `cuda` for `cuda:0`.
std::optional<Device> deviceOption(llvm::StringRef text);
/// For messages: what it may say.
inline constexpr llvm::StringLiteral deviceOptions = "host, cuda (which is cuda:0), cuda:N";

/// A new device, with memory of its own. Errors: there is no such device here; what to do then.
llvm::Expected<DeviceRef> createDevice(Device device);

/// Who executes ops, in the order in which they are asked: on a GPU the executors of this build for
/// it, then the host's. Ops on the host are the latter's everywhere. Errors: this build has none.
llvm::Expected<std::vector<std::unique_ptr<Executor>>>
createExecutors(Device device, std::vector<std::string> &remarks);
/// The same, borrowed.
std::vector<const Executor *> listOf(llvm::ArrayRef<std::unique_ptr<Executor>> executors);

/// Moves everything in `pair` to `device`: what is not on the host, or all of it if all is there.
/// Errors: of the pass `place`.
llvm::Expected<TracePair> placeOn(Device device, TracePair pair);
/// `device`, and the host as well if a value of `pair` is there.
std::vector<DeviceRef> devicesOf(const TracePair &pair, DeviceRef device);

} // namespace rondo
