//===- BufferChoice.cpp - Patch a buffer or copy it? ----------------------===//
//
// Patching costs the same for every node that uses the buffer, copying the same for every byte. A
// copy needs a node, which small buffers that are only read share: it is paid once for all that
// would rather be copied than patched.
//
// The two are not paid from one purse. Nodes are changed by the CPU, beside what the device still
// does for the calls before; a copy is work of the device, and makes every call longer. So a buffer
// is copied only if that saves the CPU more than it costs the device, and if all copies of a region
// together are a small part of the time that its nodes take the device at the least.
//
//===----------------------------------------------------------------------===//

#include "BufferChoice.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace rondo;

namespace {

struct Choice {
  RegionBuffer *buffer;
  uint64_t bytes;
  double patched, copied; ///< seconds; `copied` without the node that is shared
};

/// What the copies of a region may take.
class Allowance {
public:
  explicit Allowance(double seconds) : left_(seconds) {}
  bool covers(double seconds) const { return seconds <= left_; }
  void spend(double seconds) { left_ -= seconds; }

private:
  double left_;
};

} // namespace

static void decide(const Choice &choice, bool isCopied, double copied) {
  RegionBuffer &buffer = *choice.buffer;
  buffer.policy = isCopied ? BufferPolicy::Copied : BufferPolicy::Patched;
  buffer.why.clear();
  llvm::raw_string_ostream stream(buffer.why);
  stream << choice.bytes << " bytes, " << buffer.consumers;
  if (buffer.consumers <= 1) {
    stream << " op: to copy it would change as many nodes";
    return;
  }
  stream << llvm::format(" ops: %.2f us patched, %.2f us copied", choice.patched * 1e6,
                         copied * 1e6);
  if (!isCopied && copied < choice.patched)
    stream << ", which is much for this region";
}

void rondo::choosePolicies(llvm::ArrayRef<RegionBuffer *> buffers, const Schedule &schedule,
                           unsigned numSteps, const BufferCosts &costs) {
  Allowance allowance(mostAddedByCopies * numSteps * costs.copyNode);
  llvm::SmallVector<Choice, 8> gathered, alone;
  for (RegionBuffer *buffer : buffers) {
    Choice choice{buffer, schedule.storages[buffer->storage].bytes, 0, 0};
    if (buffer->consumers <= 1) {
      decide(choice, false, 0);
      continue;
    }
    unsigned copies = unsigned(buffer->isRead) + unsigned(buffer->isWritten);
    choice.patched = buffer->consumers * costs.patchedNode;
    choice.copied = copies * double(choice.bytes) * costs.byte;
    bool isGathered = !buffer->isWritten && choice.bytes <= gatheredBytes;
    if (!isGathered)
      choice.copied += copies * costs.copyNode;
    (isGathered ? gathered : alone).push_back(choice);
  }

  double saved = 0, copied = costs.gatherNode;
  for (const Choice &choice : gathered)
    if (choice.copied < choice.patched) {
      saved += choice.patched - choice.copied;
      copied += choice.copied;
    }
  bool isWorthANode = saved > costs.gatherNode && allowance.covers(copied);
  if (isWorthANode)
    allowance.spend(copied);
  for (const Choice &choice : gathered)
    decide(choice, isWorthANode && choice.copied < choice.patched,
           choice.copied + (isWorthANode ? 0 : costs.gatherNode));
  for (const Choice &choice : alone) {
    bool isCopied = choice.copied < choice.patched && allowance.covers(choice.copied);
    if (isCopied)
      allowance.spend(choice.copied);
    decide(choice, isCopied, choice.copied);
  }
}
