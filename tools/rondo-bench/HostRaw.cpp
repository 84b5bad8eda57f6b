//===- HostRaw.cpp - The host's own API -----------------------------------===//

#include "Raw.h"

#include "rondo/host/HostDevice.h"

using namespace rondo;

RawAPI::~RawAPI() = default;

namespace {

class HostRaw : public RawAPI {
public:
  llvm::StringRef graphLaunchName() const override { return "GraphExec::launch"; }
  llvm::Error launch(GraphExec &exec, Stream &stream) override { return exec.launch(stream); }
  llvm::StringRef kernelLaunchName() const override { return "function call"; }
  llvm::Error launch(const KernelLaunch &launch, Stream &) override {
    reinterpret_cast<HostFunction>(const_cast<void *>(launch.function))(launch.parameters.data());
    return llvm::Error::success();
  }
  llvm::Expected<std::optional<ChainTimes>> buildChain(llvm::ArrayRef<KernelLaunch>) override {
    return std::nullopt;
  }
  llvm::Error startClock(Stream &) override { return llvm::Error::success(); }
  llvm::Expected<std::optional<double>> stopClock(Stream &) override { return std::nullopt; }
  llvm::Expected<std::optional<uint64_t>> freeMemory() override { return std::nullopt; }
};

} // namespace

std::unique_ptr<RawAPI> rondo::createHostRaw() {
  return std::make_unique<HostRaw>();
}
