//===- CallChecks.cpp - What a call refuses -------------------------------===//
//
// Checks beyond those of single arguments (Binding.h), before anything is submitted.
//
//===----------------------------------------------------------------------===//

#include "Call.h"

using namespace rondo;

llvm::Error Call::checkCapturable() const {
  for (const Step &step : schedule_.steps)
    if (step.crossesDevices || step.device != 0)
      return inStep(step, makeDeviceError(DeviceErrorKind::NotCapturable,
                                          "the host waits for what is done on several devices, "
                                          "which is not capturable"));
  return llvm::Error::success();
}

llvm::Error Call::checkStatics() {
  bool isFirst = plan_.staticAddresses.empty();
  plan_.staticAddresses.resize(inputs_.size());
  for (unsigned i = 0; i < inputs_.size(); ++i) {
    const Place &place = schedule_.inputPlaces[i];
    if (!place.isTensor() || !schedule_.storages[place.storage].isStatic)
      continue;
    std::byte *&known = plan_.staticAddresses[i];
    if (isFirst)
      known = bound().arguments[i].address;
    else if (known != bound().arguments[i].address)
      return makeError(text(i) + " is static, but its storage is another than at the first call");
  }
  return llvm::Error::success();
}

llvm::Error Call::checkSavedOverlaps(const Block &slab) const {
  for (uint32_t i = 0; i < schedule_.storages.size(); ++i) {
    const PlannedStorage &saved = schedule_.storages[i];
    const std::byte *begin = savedAddress(slab, saved);
    if (!begin)
      continue;
    auto isShared = [&](const std::byte *other, size_t bytes, bool isWritten) {
      return (saved.isWritten || isWritten) && bytes != 0 && other < begin + saved.bytes &&
             begin < other + bytes;
    };
    for (unsigned input = 0; input < inputs_.size(); ++input) {
      const Place &place = schedule_.inputPlaces[input];
      if (!place.isTensor())
        continue;
      const Tensor &tensor = *inputs_[input].asTensor();
      if (isShared(tensor.data(), tensor.extentBytes(),
                   schedule_.storages[place.storage].isWritten))
        return makeError(text(input) + ": it shares memory with what is saved for '" + saved.name +
                         "', and one of them is written");
    }
    for (uint32_t k = 0; k < i; ++k) {
      const PlannedStorage &other = schedule_.storages[k];
      if (const std::byte *at = savedAddress(slab, other);
          at && isShared(at, other.bytes, other.isWritten))
        return makeError("what is saved for '" + saved.name + "' and for '" + other.name +
                         "' shares memory, and one of them is written");
    }
  }
  return llvm::Error::success();
}

void Call::forEachSaved(const Block *slab,
                        llvm::function_ref<void(const std::string &, ByteRange)> visit) const {
  if (side_ == Side::Forward)
    return;
  for (const PlannedStorage &storage : schedule_.storages)
    if (const std::byte *begin = savedAddress(*slab, storage))
      visit(storage.name, {begin, size_t(storage.bytes)});
}

const std::byte *Call::savedAddress(const Block &slab, const PlannedStorage &storage) {
  if (storage.bytes == 0)
    return nullptr;
  if (storage.space == Space::Saved)
    return slab.savedTensors[storage.index].data;
  if (storage.space == Space::Slab && storage.isForwards)
    return slab.base(storage.device) + storage.offset;
  if (storage.space == Space::ForwardResults) {
    if (const PlacedResult *placed = findPlaced(slab.savedPlaced, storage.index))
      return placed->tensor.data;
    return slab.forwardResults->base(storage.device) + storage.offset;
  }
  return nullptr;
}

std::string Call::text(unsigned input) const {
  return argumentText(schedule_.inputs[input], input, side_);
}
