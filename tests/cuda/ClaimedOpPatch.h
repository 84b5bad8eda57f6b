//===- ClaimedOpPatch.h - Claimed ops, captured elsewhere -------*- C++ -*-===//
//
// The proof of PatchedLaunch.h for an op as a library claims it in a trace: a group of ops with an
// epilogue, or an attention.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "runtime/PatchedLaunch.h"
#include "runtime/TraceTesting.h"

#include "support/TensorTesting.h"

#include "rondo/ir/Effects.h"

#include <cmath>

namespace rondo {

/// Memory for the operands and results of one op of a trace, and its kernel.
class ClaimedOpPatch {
public:
  ClaimedOpPatch(DeviceRef device, const Trace &trace, OpId op)
      : device_(std::move(device)), stream_(cantFail(device_->createStream())), trace_(trace),
        op_(op) {}

  /// Errors: `executor`'s, and those of PatchedLaunch.
  llvm::Error run(const Executor &executor, PatchedLaunch &patched) {
    llvm::Expected<KernelRef> kernel = executor.compile(trace_, op_, device_);
    if (!kernel)
      return kernel.takeError();
    for (ValueId operand : trace_.op(op_).operands())
      operands_.push_back(operand ? placeOperand(trace_.type(operand)) : Slot());
    Effects effects = getEffects(trace_, op_);
    for (unsigned i = 0; i < trace_.op(op_).results().size(); ++i) {
      auto viewed = effects.viewedBy(i);
      results_.push_back(viewed.empty() ? placeResult(trace_.type(trace_.op(op_).results()[i]))
                                        : operands_[viewed.front()]);
    }
    KernelArgs args{operands_, results_, nullptr, {}};
    if (uint64_t bytes = trace_.op(op_).claim()->workspaceBytes)
      args.workspace = add(bytes);
    cantFail(stream_->synchronize());
    return patched.launch(**kernel, args, memory_, *stream_);
  }

private:
  /// New memory of the device, filled with 0xFF.
  std::byte *add(size_t bytes) {
    storages_.push_back(cantFail(Storage::allocate(device_, bytes)));
    std::byte *data = storages_.back()->data();
    cantFail(stream_->fill(data, 0xff, bytes));
    memory_.push_back({data, bytes});
    return data;
  }

  /// Elements between -2 and 2 that have few significant bits.
  Slot placeOperand(const Type &type) {
    const TensorType &onDevice = *type.asTensor();
    Tensor tensor = poisonedTensor(
        TensorType(onDevice.dtype, onDevice.shape, onDevice.strides, Device::host()));
    std::vector<double> values = randomValues(tensor.numElements(), 1 + memory_.size());
    for (double &value : values)
      value = std::round(value * 32) / 32;
    host::fromDense<double>(values, tensor.ref());
    Slot slot;
    slot.address = add(tensor.extentBytes());
    cantFail(stream_->copy(slot.address, tensor.data(), tensor.extentBytes()));
    cantFail(stream_->synchronize()); // the tensor goes
    return slot;
  }
  Slot placeResult(const Type &type) {
    const TensorType &tensor = *type.asTensor();
    Slot slot;
    slot.address = add(
        stridedExtentBytes(tensor.dtype, constantDims(tensor.shape), constantDims(tensor.strides)));
    return slot;
  }

  DeviceRef device_;
  std::unique_ptr<Stream> stream_;
  const Trace &trace_;
  OpId op_;
  std::vector<StorageRef> storages_;
  std::vector<llvm::ArrayRef<std::byte>> memory_;
  std::vector<Slot> operands_, results_;
};

/// The proof for all ops of `trace`, which was not claimed yet, that the executor called `library`
/// takes, with `executors` as the sources of claims. Returns how many there are; failures are the
/// test's, with `what` in front.
inline unsigned patchClaimedOps(Trace trace, llvm::ArrayRef<const Executor *> executors,
                                llvm::StringRef library, PatchedLaunch &patched,
                                const DeviceRef &device, const std::string &what) {
  TracePair pair = cantFail(
      pipelineOf("execution", executors.vec())(TracePair(std::move(trace)), SymbolBindings()));
  const Trace &claimed = pair.forward();
  unsigned count = 0;
  for (OpId op : claimed.ops()) {
    const Claim *claim = claimed.op(op).claim();
    if (!claim || claim->executor != library)
      continue;
    ++count;
    const Executor *executor =
        *llvm::find_if(executors, [&](const Executor *one) { return one->name() == library; });
    std::string error = llvm::toString(ClaimedOpPatch(device, claimed, op).run(*executor, patched));
    EXPECT_EQ(error, "") << what << ", op '" << claimed.op(op).name().str() << "'";
  }
  return count;
}

} // namespace rondo
