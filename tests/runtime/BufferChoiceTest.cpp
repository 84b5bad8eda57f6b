//===- BufferChoiceTest.cpp - Patched or copied ---------------------------===//

#include "BufferChoice.h"

#include "rondo/host/HostDevice.h"

#include <gmock/gmock.h>

using namespace rondo;
using testing::HasSubstr;

namespace {

/// Costs as they were measured on an H200: half a microsecond a node, one a copy, 3 TB/s.
BufferCosts usualCosts() {
  return {.patchedNode = 0.5e-6, .copyNode = 1e-6, .gatherNode = 2.5e-6, .byte = 3e-13};
}

class BufferChoiceTest : public testing::Test {
protected:
  void add(uint64_t bytes, unsigned consumers, bool isWritten = false) {
    RegionBuffer buffer;
    buffer.storage = schedule.storages.size();
    buffer.consumers = consumers;
    buffer.isRead = true;
    buffer.isWritten = isWritten;
    buffers.push_back(buffer);
    PlannedStorage storage;
    storage.bytes = bytes;
    schedule.storages.push_back(storage);
  }
  /// `p` and `c`, by buffer of a region of so many ops.
  std::string choose(const BufferCosts &costs = usualCosts(), unsigned numSteps = 1000) {
    std::vector<RegionBuffer *> pointers;
    for (RegionBuffer &buffer : buffers)
      pointers.push_back(&buffer);
    choosePolicies(pointers, schedule, numSteps, costs);
    std::string text;
    for (const RegionBuffer &buffer : buffers)
      text += buffer.policy == BufferPolicy::Patched ? 'p' : 'c';
    return text;
  }

  Schedule schedule;
  std::vector<RegionBuffer> buffers;
};

// A large buffer with few consumers is patched, with many it is copied; a written one is copied
// twice.
TEST_F(BufferChoiceTest, OneBuffer) {
  add(16 << 20, 4);        // 2 us against 6
  add(16 << 20, 64);       // 32 us against 6
  add(16 << 20, 20, true); // 10 us against 12
  add(100000, 3);          // 1.5 us against 1.03
  add(100000, 2);          // 1.0 us against 1.03
  EXPECT_EQ(choose(), "pcpcp");
  EXPECT_THAT(buffers[1].why,
              HasSubstr("16777216 bytes, 64 ops: 32.00 us patched, 6.03 us copied"));
}

// With one consumer a copy has nothing to gain, whatever it costs.
TEST_F(BufferChoiceTest, OneConsumer) {
  add(4, 1);
  add(4, 0);
  EXPECT_EQ(choose(BufferCosts()), "pp");
  EXPECT_THAT(buffers[0].why, HasSubstr("as many nodes"));
}

// Small buffers share the node that copies them: it pays for many, not for one.
TEST_F(BufferChoiceTest, SmallOnesTogether) {
  add(1024, 4); // 2 us patched
  EXPECT_EQ(choose(), "p");
  add(1024, 4);
  EXPECT_EQ(choose(), "cc");
  add(1024, 1);
  add(1 << 20, 2); // has its own node: 1.0 us against 1.3
  EXPECT_EQ(choose(), "ccpp");
}

// Copies lengthen a region by a twelfth of its time at most, all of them together.
TEST_F(BufferChoiceTest, FewOps) {
  add(16 << 20, 64); // 6.03 us on the device; a node takes one at the least
  EXPECT_EQ(choose(usualCosts(), 75), "p");
  EXPECT_THAT(buffers[0].why, HasSubstr("6.03 us copied, which is much for this region"));
  EXPECT_EQ(choose(usualCosts(), 76), "c");
  add(16 << 20, 64);
  EXPECT_EQ(choose(usualCosts(), 76), "cp");
  EXPECT_EQ(choose(usualCosts(), 151), "cc");
  for (unsigned i = 0; i < 4; ++i)
    add(1024, 8); // 2.5 us together, before the others
  EXPECT_EQ(choose(usualCosts(), 31), "pppppp");
  EXPECT_EQ(choose(usualCosts(), 32), "ppcccc");
}

TEST_F(BufferChoiceTest, None) {
  EXPECT_EQ(choose(), "");
}

// The host's costs can be measured, and are not nothing.
TEST(BufferCostsTest, Measured) {
  DeviceRef device = createHostDevice();
  BufferCosts costs = llvm::cantFail(measureBufferCosts(device));
  EXPECT_GT(costs.patchedNode, 0);
  EXPECT_GT(costs.copyNode, 0);
  EXPECT_GT(costs.gatherNode, 0);
  EXPECT_GT(costs.byte, 0);
  EXPECT_LT(costs.byte, 1e-6) << "a byte in less than a microsecond";
  EXPECT_EQ(device->memoryUse().bytes, 0u);
}

// Without memory to measure in there is an error, not a guess.
TEST(BufferCostsTest, OutOfMemory) {
  llvm::Expected<BufferCosts> costs = measureBufferCosts(createHostDevice({.memoryLimit = 1000}));
  ASSERT_FALSE(bool(costs));
  EXPECT_THAT(llvm::toString(costs.takeError()), HasSubstr("out of memory"));
}

} // namespace
