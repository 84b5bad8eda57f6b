//===- BlockTest.cpp - Memory that calls lease ----------------------------===//

#include "Block.h"

#include "rondo/host/HostDevice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace rondo;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace {

class BlockTest : public testing::Test {
protected:
  BlockRef create(uint64_t bytes = 64) {
    return cantFail(Block::create({device}, {bytes}, nextId++));
  }
  /// A leased block: an idle one of the pool, or a new one.
  BlockRef lease(BlockPool &pool) {
    BlockRef block = pool.lease([](const Block &) { return true; }, false);
    if (!block)
      pool.add(block = create());
    return block;
  }
  static bool isAny(const Block &) { return true; }
  static bool isNone(const Block &) { return false; }

  DeviceRef device = createHostDevice();
  uint64_t nextId = 1;
};

/// Has the pool an idle block?
bool hasIdle(BlockPool &pool) {
  return bool(pool.lease([](const Block &) { return true; }, true));
}

} // namespace

// A block has its bytes, aligned, and nothing where it has none; the memory goes with it.
TEST_F(BlockTest, Memory) {
  {
    BlockRef block = cantFail(Block::create({device, device}, {100, 0}, 7));
    EXPECT_EQ(block->id(), 7u);
    EXPECT_EQ(block->bytes(0), 100u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->base(0)) % DeviceAPI::allocationAlignment, 0u);
    EXPECT_EQ(block->base(1), nullptr);
    EXPECT_EQ(block->bytes(1), 0u);
    EXPECT_EQ(device->memoryUse().bytes, 100u);
  }
  EXPECT_EQ(device->memoryUse().bytes, 0u);
}

// What cannot be allocated is an error that leaves nothing behind.
TEST_F(BlockTest, OutOfMemory) {
  DeviceRef small = createHostDevice({.memoryLimit = 100});
  llvm::Expected<BlockRef> block = Block::create({small, small}, {64, 64}, 1);
  ASSERT_FALSE(bool(block));
  llvm::Error error = block.takeError();
  EXPECT_EQ(deviceErrorKind(error), DeviceErrorKind::OutOfMemory);
  llvm::consumeError(std::move(error));
  EXPECT_EQ(small->memoryUse().bytes, 0u);
}

// A block is idle when only the pool refers to it and only it to its storages.
TEST_F(BlockTest, Idle) {
  BlockPool pool;
  BlockRef block = create();
  pool.add(block);
  EXPECT_FALSE(hasIdle(pool)) << "leased";
  {
    StorageRef storage = block->storage(0);
    block = nullptr;
    EXPECT_FALSE(hasIdle(pool)) << "a tensor of it is held";
  }
  EXPECT_TRUE(hasIdle(pool));
}

// An idle block is leased again rather than a new one made, the preferred one first.
TEST_F(BlockTest, Reuse) {
  BlockPool pool;
  EXPECT_FALSE(pool.lease(isAny, false)) << "there is none";
  BlockRef first = create(), second = create();
  uint64_t firstId = first->id(), secondId = second->id();
  pool.add(first);
  pool.add(second);
  EXPECT_FALSE(pool.lease(isAny, false)) << "none is idle";
  first = second = nullptr;
  EXPECT_EQ(pool.lease([&](const Block &block) { return block.id() == secondId; }, false)->id(),
            secondId);
  EXPECT_EQ(pool.lease(isNone, false)->id(), firstId) << "none is preferred, any will do";
  EXPECT_FALSE(pool.lease(isNone, true)) << "only preferred ones will do";
  EXPECT_EQ(pool.size(), 2u);
}

// Blocks beyond what was in use at once in the last window and in this one are taken out.
TEST_F(BlockTest, Surplus) {
  BlockPool pool;
  {
    std::vector<BlockRef> many;
    for (unsigned i = 0; i < 5; ++i)
      many.push_back(lease(pool));
  }
  std::vector<BlockRef> taken;
  pool.takeSurplus(taken);
  EXPECT_THAT(taken, IsEmpty()) << "five were in use just now";
  unsigned leases = 0;
  for (; leases < 300 && taken.empty(); ++leases) {
    lease(pool);
    pool.takeSurplus(taken);
  }
  EXPECT_THAT(taken, SizeIs(4));
  EXPECT_EQ(pool.size(), 1u);
  EXPECT_GE(leases, 64u);
  EXPECT_LE(leases, 128u);
  uint64_t before = device->memoryUse().bytes;
  taken.clear();
  EXPECT_EQ(device->memoryUse().bytes, before - 4 * 64);
}

// What is in use is never surplus, however long it is held.
TEST_F(BlockTest, HeldIsNoSurplus) {
  BlockPool pool;
  std::vector<BlockRef> held = {lease(pool), lease(pool), lease(pool)}, taken;
  for (unsigned i = 0; i < 300; ++i) {
    lease(pool);
    pool.takeSurplus(taken);
  }
  EXPECT_THAT(taken, IsEmpty());
  EXPECT_EQ(pool.size(), 4u);
}

// takeIdle takes all idle blocks and only those.
TEST_F(BlockTest, TakeIdle) {
  BlockPool pool;
  BlockRef held = lease(pool), other = lease(pool), third = lease(pool);
  other = third = nullptr;
  std::vector<BlockRef> taken;
  pool.takeIdle(taken);
  EXPECT_THAT(taken, SizeIs(2));
  EXPECT_EQ(pool.size(), 1u);
  held = nullptr;
  pool.takeIdle(taken);
  EXPECT_THAT(taken, SizeIs(3));
  EXPECT_EQ(pool.size(), 0u);
}

// A use on one stream comes before the next on another, and nothing waits for its own stream.
TEST_F(BlockTest, StreamOrder) {
  DeviceRef threads = createHostDevice({.asynchronous = true});
  std::unique_ptr<Stream> a = cantFail(threads->createStream()),
                          b = cantFail(threads->createStream());
  BlockRef block = cantFail(Block::create({threads}, {1024}, 1));
  EXPECT_EQ(block->lastStream(), 0u);
  cantFail(block->lastUse().synchronize());
  for (unsigned round = 1; round < 100; ++round) {
    cantFail(block->lastUse().acquire(*a));
    for (unsigned i = 0; i < 20; ++i)
      cantFail(a->fill(block->base(0), uint8_t(i), 1024));
    cantFail(a->fill(block->base(0), uint8_t(round), 1024));
    cantFail(block->lastUse().release(*a));
    EXPECT_EQ(block->lastStream(), a->id());
    std::byte seen[1024] = {};
    cantFail(block->lastUse().acquire(*b));
    cantFail(b->copy(seen, block->base(0), 1024));
    cantFail(block->lastUse().release(*b));
    cantFail(block->lastUse().synchronize());
    EXPECT_EQ(seen[0], std::byte(round));
    EXPECT_EQ(seen[1023], std::byte(round));
  }
}

// What belongs to a saved state is let go of at once.
TEST_F(BlockTest, ClearSaved) {
  BlockPool results;
  BlockRef slab = create();
  slab->forwardResults = lease(results);
  StorageRef argument = cantFail(Storage::allocate(device, 32));
  slab->savedTensors.push_back({argument, argument->data()});
  slab->savedScalars.emplace_back();
  slab->program = 9;
  EXPECT_FALSE(hasIdle(results));
  EXPECT_FALSE(argument->isUnique());
  slab->clearSaved();
  EXPECT_TRUE(hasIdle(results));
  EXPECT_TRUE(argument->isUnique());
  EXPECT_THAT(slab->savedScalars, IsEmpty());
  EXPECT_EQ(slab->program, 0u);
}
