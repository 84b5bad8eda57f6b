//===- BufferChoice.cpp - Patch a buffer or copy it? ----------------------===//
//
// Patching costs the same for every node that uses the buffer, copying the same for every byte. A
// copy needs a node, which small buffers that are only read share: it is paid once for all that
// would rather be copied than patched.
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

} // namespace

static std::string reason(const Choice &choice, double copied) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << choice.bytes << " bytes, " << choice.buffer->consumers;
  if (choice.buffer->consumers <= 1)
    stream << " op: to copy it would change as many nodes";
  else
    stream << llvm::format(" ops: %.2f us patched, %.2f us copied", choice.patched * 1e6,
                           copied * 1e6);
  return stream.str();
}

static void decide(const Choice &choice, bool isCopied, double copied) {
  choice.buffer->policy = isCopied ? BufferPolicy::Copied : BufferPolicy::Patched;
  choice.buffer->why = reason(choice, copied);
}

void rondo::choosePolicies(llvm::ArrayRef<RegionBuffer *> buffers, const Schedule &schedule,
                           const BufferCosts &costs) {
  llvm::SmallVector<Choice, 8> gathered;
  double saved = 0; // by those that would be gathered
  for (RegionBuffer *buffer : buffers) {
    Choice choice{buffer, schedule.storages[buffer->storage].bytes, 0, 0};
    if (buffer->consumers <= 1) {
      decide(choice, false, 0);
      continue;
    }
    choice.patched = buffer->consumers * costs.patchedNode;
    unsigned copies = unsigned(buffer->isRead) + unsigned(buffer->isWritten);
    choice.copied = copies * double(choice.bytes) * costs.byte;
    if (!buffer->isWritten && choice.bytes <= gatheredBytes) {
      gathered.push_back(choice);
      saved += std::max(choice.patched - choice.copied, 0.0);
      continue;
    }
    double copied = choice.copied + copies * costs.copyNode;
    decide(choice, copied < choice.patched, copied);
  }
  bool isWorthANode = saved > costs.gatherNode;
  for (const Choice &choice : gathered)
    decide(choice, isWorthANode && choice.copied < choice.patched,
           choice.copied + (isWorthANode ? 0 : costs.gatherNode));
}
