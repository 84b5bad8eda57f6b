//===- OpPatchTest.cpp - Pointers in every kernel can be changed ----------===//

#include "PatchedLaunch.h"

#include "support/OpCases.h"
#include "support/OpConformance.h"

#include "rondo/host/HostDevice.h"

#include <gmock/gmock.h>

using namespace rondo;

namespace {

// Every kernel of the host executor can be captured anywhere and run elsewhere: it gives the bits
// that it gives eagerly, in every layout.
TEST(OpPatchTest, EveryKernel) {
  OpTarget target = hostOpTarget();
  PatchedLaunch patched(target.device);
  target.launch = [&](auto &&...args) { return patched.launch(args...); };
  for (const OpCases &cases : opCaseTable()) {
    std::vector<std::string> failures = findDisagreements(target, cases, cases.dtypes.front());
    for (const std::string &failure : failures)
      ADD_FAILURE() << cases.op << ' ' << failure;
  }
  EXPECT_GT(patched.counts().launches, 1000u);
  EXPECT_GT(patched.counts().nodes, 1000u);
  EXPECT_GT(patched.counts().eager, 0u) << "some ops let the host look";
  EXPECT_LT(patched.counts().eager, patched.counts().launches / 10);
  EXPECT_EQ(patched.counts().congruent, 0u) << "the host's kernels do not look at alignment";
}

/// What patching a kernel fails with whose parameters are the addresses of its memory, changed by
/// `change`; empty if it does not.
std::string patchErrorOf(std::function<void(std::vector<Slot> &block)> change,
                         PatchedLaunch::Counts *counts = nullptr) {
  class OddKernel : public Kernel {
  public:
    explicit OddKernel(std::function<void(std::vector<Slot> &)> change)
        : change_(std::move(change)) {}
    llvm::Error enqueue(CommandSink &sink, const KernelArgs &args) const override {
      std::vector<Slot> block = {args.operands[0], args.results[0]};
      change_(block);
      KernelLaunch launch;
      launch.function = reinterpret_cast<const void *>(&run);
      launch.parameters = {reinterpret_cast<const std::byte *>(block.data()),
                           block.size() * sizeof(Slot)};
      return sink.launch(launch);
    }

  private:
    static void run(const std::byte *) {}
    std::function<void(std::vector<Slot> &)> change_;
  };
  DeviceRef device = createHostDevice();
  std::unique_ptr<Stream> stream = llvm::cantFail(device->createStream());
  std::array<std::vector<std::byte>, 2> memory = {std::vector<std::byte>(64),
                                                  std::vector<std::byte>(64)};
  Slot x, y;
  x.address = memory[0].data();
  y.address = memory[1].data();
  PatchedLaunch patched(device);
  llvm::ArrayRef<std::byte> ranges[] = {memory[0], memory[1]};
  std::string error = llvm::toString(
      patched.launch(OddKernel(std::move(change)), {x, y, nullptr, {}}, ranges, *stream));
  if (counts)
    *counts = patched.counts();
  return error;
}

// The proof fails for a kernel that hides where its memory is.
TEST(OpPatchTest, NoticesWhatIsHidden) {
  EXPECT_EQ(patchErrorOf([](std::vector<Slot> &) {}), "");
  EXPECT_THAT(patchErrorOf([](std::vector<Slot> &block) { block[0].i64 >>= 4; }),
              testing::HasSubstr("not patchable: a parameter of a kernel"));
  EXPECT_THAT(patchErrorOf([](std::vector<Slot> &block) { block[0].i64 -= block[1].i64; }),
              testing::HasSubstr("not patchable"));
}

// A kernel that looks at the alignment of its memory is understood at addresses of that alignment,
// and counted; one that does not is understood anywhere.
TEST(OpPatchTest, CongruentAddresses) {
  PatchedLaunch::Counts counts;
  auto addAlignment = [](std::vector<Slot> &block) {
    Slot alignment;
    alignment.i64 = block[0].i64 % 256;
    block.push_back(alignment);
  };
  EXPECT_EQ(patchErrorOf(addAlignment, &counts), "");
  EXPECT_EQ(counts.launches, 1u);
  EXPECT_EQ(counts.congruent, 1u);
  EXPECT_EQ(patchErrorOf([](std::vector<Slot> &) {}, &counts), "");
  EXPECT_EQ(counts.launches, 1u);
  EXPECT_EQ(counts.congruent, 0u);
}

// Bytes that differ from capture to capture without a reason are no parameters: they say nothing.
TEST(OpPatchTest, Noise) {
  int64_t number = 0;
  EXPECT_EQ(patchErrorOf([&](std::vector<Slot> &block) {
              Slot noise;
              noise.i64 = ++number * 0x12345678;
              block.push_back(noise);
            }),
            "");
}

} // namespace
