//===- TracePair.cpp - A forward and its backward ---------------------------===//

#include "rondo/ir/TracePair.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

llvm::StringRef rondo::sideName(Side side) {
  return side == Side::Forward ? "forward" : "backward";
}

TracePair TracePair::clone() const {
  TracePair copy(forward_.clone());
  copy.name_ = name_;
  copy.nextSaved_ = nextSaved_;
  if (backward_)
    copy.backward_ = backward_->clone();
  return copy;
}

static void mark(llvm::SmallVectorImpl<SavedId> &marks, unsigned i, SavedId id) {
  if (marks.size() <= i)
    marks.resize(i + 1);
  marks[i] = id;
}

void TracePair::markSavedReturn(unsigned returnOperand, SavedId id) {
  assert(id.index() < maxSavedId && "saved id out of range");
  mark(forward_.savedReturns_, returnOperand, id);
  nextSaved_ = std::max(nextSaved_, id.index() + 1);
}

void TracePair::markSavedArgument(unsigned argument, SavedId id) {
  assert(id.index() < maxSavedId && "saved id out of range");
  mark(backward_->savedArguments_, argument, id);
  nextSaved_ = std::max(nextSaved_, id.index() + 1);
}

SavedId TracePair::linkSaved(unsigned returnOperand, unsigned argument) {
  SavedId id(nextSaved_);
  markSavedReturn(returnOperand, id);
  markSavedArgument(argument, id);
  return id;
}

SavedId TracePair::addSaved(ValueId forward, llvm::StringRef name) {
  const Op *ret = forward_.terminator();
  assert(ret && "the forward has no return");
  assert(backward_ && "the pair has no backward");
  llvm::SmallVector<ValueId, 8> operands(ret->operands().begin(), ret->operands().end());
  operands.push_back(forward);
  forward_.setOperands(ret->id(), operands);
  backward_->addArgument(forward_.type(forward), name.empty() ? forward_.name(forward) : name);
  return linkSaved(operands.size() - 1, backward_->arguments().size() - 1);
}

void TracePair::dropSaved(SavedId id) {
  const Op *ret = forward_.terminator();
  for (unsigned i = 0; ret && i < ret->operands().size(); ++i) {
    if (forward_.savedReturn(i) != id)
      continue;
    llvm::SmallVector<ValueId, 8> operands(ret->operands().begin(), ret->operands().end());
    operands.erase(operands.begin() + i);
    forward_.savedReturns_.erase(forward_.savedReturns_.begin() + i);
    forward_.setOperands(ret->id(), operands);
    break;
  }
  for (unsigned i = 0; backward_ && i < backward_->arguments().size(); ++i)
    if (backward_->savedArgument(i) == id) {
      backward_->eraseArgument(Trace::topBody(), i);
      break;
    }
}

llvm::SmallVector<SavedLink, 0> TracePair::saved() const {
  llvm::SmallVector<SavedLink, 0> links;
  const Op *ret = forward_.terminator();
  if (!ret || !backward_)
    return links;
  llvm::DenseMap<SavedId, ValueId> arguments;
  for (unsigned i = 0; i < backward_->arguments().size(); ++i)
    if (SavedId id = backward_->savedArgument(i))
      arguments.try_emplace(id, backward_->arguments()[i]);
  for (unsigned i = 0; i < ret->operands().size(); ++i) {
    SavedId id = forward_.savedReturn(i);
    if (auto it = arguments.find(id); id && it != arguments.end())
      links.push_back({id, ret->operand(i), it->second});
  }
  return links;
}

std::optional<SavedLink> TracePair::findSaved(SavedId id) const {
  for (const SavedLink &link : saved())
    if (link.id == id)
      return link;
  return std::nullopt;
}
