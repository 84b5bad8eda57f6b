//===- Arguments.h - Values for the arguments of a program ------*- C++ -*-===//

#pragma once

#include "rondo/executors/RecordedValues.h"
#include "rondo/runtime/Program.h"

namespace rondo {

/// Fills `arguments` with the recorded ones of one side. One that is static stays where it is if it
/// is there already; the others are in new memory of their device, which is one of `devices`.
/// `stream` is of the first. What was saved stands for an argument of the name of a mask that is
/// fed; states of generators are all 0. Errors: names an argument that was not recorded or that
/// does not fit.
llvm::Error fillRecorded(const Program &program, Side side, const RecordedValues &values,
                         llvm::ArrayRef<DeviceRef> devices, Stream &stream,
                         std::vector<Value> &arguments);

/// The same with random ones: floats uniform in [-1, 1), or times what `scaleOf` says of the
/// argument, integers and bools 0 or 1, scalars 1. The same seed gives the same. Errors: of the
/// device.
llvm::Error fillRandom(const Program &program, Side side, uint64_t seed,
                       llvm::ArrayRef<DeviceRef> devices, Stream &stream,
                       std::vector<Value> &arguments,
                       llvm::function_ref<double(const ParameterInfo &)> scaleOf = nullptr);

/// ‖a − b‖ / ‖b‖ in f64 over the elements of host tensors of one shape; ‖a‖ where b is 0; infinite
/// where shapes differ or one has a nan or an infinity that the other has not.
double relativeError(const Tensor &a, const Tensor &b);

} // namespace rondo
