//===- Program.cpp - A compiled pair --------------------------------------===//

#include "rondo/runtime/Program.h"

#include "ProgramImpl.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

//===----------------------------------------------------------------------===//
// SavedState
//===----------------------------------------------------------------------===//

SavedState::SavedState() = default;
SavedState::SavedState(SavedState &&) noexcept = default;

SavedState &SavedState::operator=(SavedState &&other) noexcept {
  if (block_ && block_ != other.block_)
    block_->clearSaved();
  block_ = std::move(other.block_);
  return *this;
}

SavedState::~SavedState() {
  if (block_)
    block_->clearSaved();
}

unsigned RegionInfo::count(BufferPolicy policy) const {
  return llvm::count_if(buffers, [&](const BufferInfo &b) { return b.policy == policy; });
}

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

Program::Program(std::unique_ptr<ProgramImpl> impl) : impl_(std::move(impl)) {}
Program::Program(Program &&) noexcept = default;
Program &Program::operator=(Program &&) noexcept = default;
Program::~Program() = default;

bool Program::hasBackward() const {
  return impl_->hasBackward();
}
llvm::ArrayRef<ParameterInfo> Program::inputs(Side side) const {
  return impl_->inputs(side);
}
llvm::ArrayRef<ParameterInfo> Program::results(Side side) const {
  return impl_->results(side);
}

llvm::Error Program::forward(Stream &stream, llvm::ArrayRef<Value> inputs,
                             llvm::SmallVectorImpl<Value> &results, SavedState *saved) {
  return impl_->forward(stream, inputs, {}, results, saved);
}

llvm::Error Program::forwardInto(Stream &stream, llvm::ArrayRef<Value> inputs,
                                 llvm::ArrayRef<Tensor> outputs,
                                 llvm::SmallVectorImpl<Value> &results, SavedState *saved) {
  return impl_->forward(stream, inputs, outputs, results, saved);
}

llvm::Error Program::backward(Stream &stream, SavedState &&saved, llvm::ArrayRef<Value> inputs,
                              llvm::SmallVectorImpl<Value> &results) {
  return backwardInto(stream, std::move(saved), inputs, {}, results);
}

llvm::Error Program::backwardInto(Stream &stream, SavedState &&saved, llvm::ArrayRef<Value> inputs,
                                  llvm::ArrayRef<Tensor> outputs,
                                  llvm::SmallVectorImpl<Value> &results) {
  if (llvm::Error error = impl_->backward(stream, saved, inputs, outputs, results))
    return error;
  saved = SavedState();
  return llvm::Error::success();
}

llvm::Error Program::backwardRetaining(Stream &stream, SavedState &saved,
                                       llvm::ArrayRef<Value> inputs,
                                       llvm::SmallVectorImpl<Value> &results) {
  if (impl_->consumesSaved())
    return makeError("what is saved cannot be retained: the program was compiled to consume it");
  return impl_->backward(stream, saved, inputs, {}, results);
}

llvm::Expected<std::vector<SavedValue>> Program::savedValues(const SavedState &saved) const {
  return impl_->savedValues(saved);
}

void Program::setEager(bool eager) {
  impl_->setEager(eager);
}
void Program::trim() {
  impl_->trim();
}
const std::shared_ptr<Generators> &Program::generators() const {
  return impl_->generators();
}
CacheCounters Program::counters() const {
  return impl_->counters();
}
uint64_t Program::paddedBytes() const {
  return impl_->paddedBytes();
}
void Program::forEachGraph(llvm::function_ref<void(Graph &, GraphExec &)> visit) const {
  impl_->forEachGraph(visit);
}
std::vector<EntryStatistics> Program::graphs() const {
  return impl_->graphs();
}
std::vector<RegionInfo> Program::regions() const {
  return impl_->regions();
}
MemoryInfo Program::memory(Side side) const {
  return impl_->memory(side);
}
MemoryPlanInfo Program::memoryPlan(Side side) const {
  return impl_->memoryPlan(side);
}
std::vector<std::string> Program::takeRemarks() {
  return impl_->takeRemarks();
}

llvm::Expected<Program> rondo::compile(TracePair pair, llvm::ArrayRef<DeviceRef> devices,
                                       llvm::ArrayRef<const Executor *> executors,
                                       Pipeline pipeline, ProgramOptions options) {
  auto impl = std::make_unique<ProgramImpl>(std::move(pair), devices, executors,
                                            std::move(pipeline), std::move(options));
  if (llvm::Error error = impl->prepare())
    return error;
  return Program(std::move(impl));
}
