//===- CallRegions.cpp - Graphs that a call cannot launch as they are -----===//
//
// The first call of an entry builds its graph, which executes nothing, and then runs the region
// eagerly, as that call. Later ones patch a graph where its buffers or scalars have changed, or
// capture it anew where that cannot be. Hooks are called around each capture.
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include "PatchVerifier.h"

#include <chrono>

using namespace rondo;

//===----------------------------------------------------------------------===//
// First run
//===----------------------------------------------------------------------===//

llvm::Error Call::runFirst(const ScheduledRegion &region) {
  GraphEntryRef entry;
  llvm::Expected<bool> isBuilt = captured(region, [&] { return build(region, entry); });
  if (!isBuilt) {
    forgetGraph(region);
    return isBuilt.takeError();
  }
  if (!*isBuilt && program_.options_.onCaptureFailure == CaptureFailure::Error)
    return captureError();
  if (llvm::Error error = callHook(hooks().beforeWarmUp, region)) {
    forgetGraph(region);
    return error;
  }
  llvm::Error error = runEagerly(region);
  llvm::Error hookError = callHook(hooks().afterWarmUp, region, !error);
  if (!error)
    return hookError;
  llvm::consumeError(std::move(hookError));
  return error;
}

bool Call::build(const ScheduledRegion &region, GraphEntryRef &entry) {
  auto begin = std::chrono::steady_clock::now();
  for (unsigned attempt = 0;; ++attempt) {
    BuildFailure failure;
    llvm::Expected<GraphEntryRef> made = buildGraph(requestFor(region), failure);
    if (made) {
      entry = std::move(*made);
      noteFacts(region, *entry);
      GraphKey key = keyOf(region);
      std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      region.cache->insert(key, entry, took.count());
      Frame::Recent &recent = frame_->recentOf(region);
      recent.key = key;
      recent.entry = entry;
      recent.note(bound(), bases_);
      return true;
    }
    region.cache->countFailure();
    llvm::Error error = made.takeError();
    std::optional<DeviceErrorKind> kind = deviceErrorKind(error);
    failure_ = llvm::toString(std::move(error));
    bool isOutOfMemory = kind == DeviceErrorKind::OutOfMemory;
    bool isPassing = isOutOfMemory || kind == DeviceErrorKind::CaptureInvalidated;
    if (isPassing && attempt == 0) {
      if (isOutOfMemory)
        program_.trim();
      continue;
    }
    isPassing = isPassing && program_.isStillPassing(variant_, region.uid);
    if (!isPassing && program_.options_.onCaptureFailure != CaptureFailure::Error)
      program_.replaceRegion(variant_, side_, region.uid,
                             isOutOfMemory ? std::nullopt : failure.step, failure_);
    return false;
  }
}

void Call::noteFacts(const ScheduledRegion &region, const GraphEntry &entry) const {
  for (unsigned i = 0; i < entry.buffers.size(); ++i) {
    Space space = schedule_.storages[entry.buffers[i].storage].space;
    if ((space == Space::Results || space == Space::ForwardResults) &&
        (!entry.isExplained() || !entry.problem(i).empty()))
      region.facts->isTiedToResults = true;
  }
  for (unsigned i = 0; i < entry.scalars.size(); ++i)
    if (!entry.isExplained() || !entry.problem(entry.buffers.size() + i).empty())
      region.facts->setKeyed(i);
}

GraphRequest Call::requestFor(const ScheduledRegion &region) const {
  return {program_.devices_.front(),    schedule_, region, bases_, bound().scalars,
          program_.options_.checkGraphs};
}

void Call::forgetGraph(const ScheduledRegion &region) const {
  region.cache->eraseIf([key = keyOf(region)](const GraphKey &other) { return other == key; });
}

//===----------------------------------------------------------------------===//
// Changed buffers and scalars
//===----------------------------------------------------------------------===//

llvm::Expected<bool> Call::update(const ScheduledRegion &region, const GraphKey &key,
                                  GraphEntry &entry, llvm::ArrayRef<unsigned> changed) {
  llvm::Expected<bool> isPatched = patch(region, entry, changed);
  if (!isPatched || *isPatched)
    return isPatched;
  llvm::Expected<bool> isRight = captured(region, [&] { return recapture(region, key, entry); });
  if (!isRight)
    forgetGraph(region);
  return isRight;
}

llvm::Expected<bool> Call::patch(const ScheduledRegion &region, GraphEntry &entry,
                                 llvm::ArrayRef<unsigned> changed) {
  llvm::Expected<bool> isExplained = explain(region, entry);
  if (!isExplained || !*isExplained)
    return isExplained;
  bool canPatch = true;
  for (unsigned source : changed) {
    llvm::StringRef problem = entry.problemOfChange(source, bases_, bound().scalars);
    if (problem.empty())
      continue;
    canPatch = false;
    if (source < entry.buffers.size())
      program_.remarkUnpatchable(variant_, region,
                                 schedule_.storages[entry.buffers[source].storage].name, problem);
  }
  if (!canPatch)
    return false;
  if (program_.options_.verifyPatches && !std::exchange(entry.isVerified, true))
    if (llvm::Error error = verifyPatches(requestFor(region), entry, stream_))
      return error;
  llvm::Expected<size_t> nodes = entry.patch(bases_, bound().scalars, changed);
  if (!nodes)
    return nodes.takeError();
  region.cache->countPatch(*nodes);
  return true;
}

llvm::Expected<bool> Call::explain(const ScheduledRegion &region, GraphEntry &entry) {
  if (entry.isExplained())
    return true;
  std::optional<llvm::Error> error;
  llvm::Expected<bool> isExplained = captured(region, [&] {
    error.emplace(entry.explain(requestFor(region)));
    return !*error;
  });
  if (!isExplained) {
    forgetGraph(region);
    if (error)
      llvm::consumeError(std::move(*error));
    return isExplained;
  }
  if (*isExplained)
    return true;
  std::optional<DeviceErrorKind> kind = deviceErrorKind(*error);
  if (kind != DeviceErrorKind::OutOfMemory && kind != DeviceErrorKind::CaptureInvalidated &&
      kind != DeviceErrorKind::NotCapturable)
    return std::move(*error);
  llvm::consumeError(std::move(*error));
  return false;
}

bool Call::recapture(const ScheduledRegion &region, const GraphKey &key, GraphEntry &entry) {
  region.cache->countRecapture();
  BuildFailure failure;
  llvm::Error error = entry.rebuild(requestFor(region), failure);
  if (!error)
    return true;
  region.cache->countFailure();
  failure_ = llvm::toString(std::move(error));
  region.cache->eraseIf([&](const GraphKey &other) { return other == key; });
  return false;
}

//===----------------------------------------------------------------------===//
// Hooks and failure
//===----------------------------------------------------------------------===//

template <typename Hook, typename... Args>
llvm::Error Call::callHook(const Hook &hook, const ScheduledRegion &region, Args... args) const {
  if (!hook)
    return llvm::Error::success();
  return hook({side_, region.id, region.numOps, program_.devices_.front()->device()}, args...);
}

llvm::Expected<bool> Call::captured(const ScheduledRegion &region,
                                    llvm::function_ref<bool()> capture) const {
  if (llvm::Error error = callHook(hooks().beforeCapture, region))
    return error;
  bool succeeded = capture();
  if (llvm::Error error = callHook(hooks().afterCapture, region, succeeded))
    return error;
  return succeeded;
}

llvm::Error Call::captureError() const {
  return makeDeviceError(DeviceErrorKind::NotCapturable, failure_);
}
