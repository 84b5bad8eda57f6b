//===- GraphSink.cpp - What kernels submit becomes nodes ------------------===//

#include "GraphSink.h"

using namespace rondo;

llvm::Error GraphSink::call(llvm::function_ref<llvm::Error(Stream &)> submit) {
  if (!stream_) {
    llvm::Expected<std::unique_ptr<Stream>> made = device_->createStream();
    if (!made)
      return made.takeError();
    stream_ = std::move(*made);
  }
  if (llvm::Error error = stream_->beginCaptureToGraph(graph_, frontier, CaptureMode::ThreadLocal))
    return error;
  llvm::Error error = submit(*stream_);
  bool wasValid = stream_->captureStatus() == CaptureStatus::Active;
  llvm::SmallVector<GraphNodeId, 4> last;
  llvm::Error endError = stream_->endCaptureToGraph(last);
  if (error) { // the first is the one that matters
    llvm::consumeError(std::move(endError));
    return error;
  }
  if (endError && wasValid) // what it submitted is to blame, not another thread
    return makeDeviceError(DeviceErrorKind::NotCapturable, llvm::toString(std::move(endError)));
  if (endError)
    return endError;
  frontier.assign(last.begin(), last.end());
  return llvm::Error::success();
}
