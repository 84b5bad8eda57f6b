//===- PackingTest.cpp - Offsets in blocks of bytes -----------------------===//

#include "Packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

using namespace rondo;

namespace {

bool meet(const PackingItem &a, const PackingItem &b) {
  return a.begin <= b.end && b.begin <= a.end;
}

/// The greatest sum of bytes that are needed at one step.
uint64_t greatestSum(llvm::ArrayRef<PackingItem> items) {
  uint64_t greatest = 0;
  for (const PackingItem &moment : items) { // sums are greatest where an item begins
    uint64_t sum = 0;
    for (const PackingItem &item : items)
      if (item.begin <= moment.begin && moment.begin <= item.end)
        sum += item.bytes;
    greatest = std::max(greatest, sum);
  }
  return greatest;
}

/// What must hold of any packing.
void check(llvm::ArrayRef<PackingItem> items, llvm::ArrayRef<const PersistentBlock *> rooms,
           const Packing &packing) {
  ASSERT_EQ(packing.places.size(), items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    SCOPED_TRACE("item " + std::to_string(i));
    const PackingPlace &a = packing.places[i];
    ASSERT_LE(a.block, rooms.size());
    bool isArena = a.block == rooms.size();
    EXPECT_LE(a.offset + items[i].bytes, isArena ? packing.arenaBytes : rooms[a.block]->bytes());
    if (!isArena) {
      EXPECT_GE(a.offset, rooms[a.block]->freeFrom(items[i].begin, items[i].end));
    }
    for (size_t k = 0; k < i; ++k) {
      const PackingPlace &b = packing.places[k];
      bool overlap = a.block == b.block && a.offset < b.offset + items[k].bytes &&
                     b.offset < a.offset + items[i].bytes;
      bool hasBytes = items[i].bytes != 0 && items[k].bytes != 0;
      EXPECT_FALSE(overlap && hasBytes && meet(items[i], items[k])) << "and " << k;
    }
  }
}

/// Temporaries of a long trace: most of them short, some long, of few sizes.
std::vector<PackingItem> longTrace(unsigned count) {
  std::mt19937 random(7);
  std::vector<PackingItem> items;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t duration = random() % 32 == 0 ? random() % 200 : random() % 8;
    items.push_back({256 * uint64_t(1 + random() % 40), i, i + duration});
  }
  return items;
}

} // namespace

// Items that are needed at one step share no byte, in rooms or in the arena, which is never smaller
// than its bound; the same items give the same places.
TEST(PackingTest, Random) {
  std::mt19937 random(3);
  auto below = [&](unsigned limit) { return unsigned(random() % limit); };
  for (unsigned round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    unsigned steps = 1 + below(30);
    PersistentBlock rooms[2];
    for (PersistentBlock &room : rooms)
      for (uint32_t step = 0; step < steps; ++step)
        if (below(4) == 0)
          room.append(step, 16 * below(20));
    if (below(2)) { // what is there from the start
      rooms[0] = {};
      for (uint32_t step = steps; step-- > 0;)
        if (below(4) == 0)
          rooms[0].keep(step, 16 * below(40), 16 * below(20));
      rooms[0].cut(16 * below(50));
    }
    std::vector<PackingItem> items;
    for (unsigned i = below(60); i > 0; --i) {
      uint32_t begin = below(steps);
      items.push_back(
          {below(8) ? 16 * uint64_t(1 + below(40)) : 0, begin, begin + below(steps - begin)});
    }
    Packing packing = pack(items, {&rooms[0], &rooms[1]});
    check(items, {&rooms[0], &rooms[1]}, packing);
    Packing again = pack(items, {&rooms[0], &rooms[1]});
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_EQ(again.places[i].block, packing.places[i].block);
      EXPECT_EQ(again.places[i].offset, packing.places[i].offset);
    }
    Packing alone = pack(items, {});
    check(items, {}, alone);
    EXPECT_GE(alone.arenaBytes, greatestSum(items));
    if (testing::Test::HasFailure())
      return;
  }
}

// What is not made yet is free, and what is made stays taken.
TEST(PackingTest, PersistentBlocks) {
  PersistentBlock block;
  EXPECT_EQ(block.freeFrom(0, 0), 0u);
  EXPECT_EQ(block.append(1, 100), 0u);
  EXPECT_EQ(block.append(1, 50), 100u);
  EXPECT_EQ(block.append(4, 10), 150u);
  EXPECT_EQ(block.bytes(), 160u);
  EXPECT_EQ(block.freeFrom(0, 0), 0u);
  EXPECT_EQ(block.freeFrom(1, 1), 150u);
  EXPECT_EQ(block.freeFrom(3, 3), 150u);
  EXPECT_EQ(block.freeFrom(4, 4), 160u);

  Packing packing = pack({{160, 0, 0}, {10, 1, 3}, {20, 2, 3}, {10, 2, 4}}, &block);
  EXPECT_THAT(packing.places[0].block, 0u);
  EXPECT_THAT(packing.places[1].offset, 150u);
  EXPECT_EQ(packing.places[2].block, 1u) << "too large for the room";
  EXPECT_EQ(packing.places[3].block, 1u) << "needed for too long";
  EXPECT_EQ(packing.arenaBytes, 30u);
}

// What is there from the start is taken until it is needed no more, with all that lies before it.
TEST(PackingTest, KeptBlocks) {
  PersistentBlock block;
  block.keep(5, 0, 100);
  block.keep(3, 200, 50);
  block.keep(2, 100, 100);
  EXPECT_EQ(block.bytes(), 250u);
  EXPECT_EQ(block.freeFrom(0, 9), 250u);
  EXPECT_EQ(block.freeFrom(3, 9), 250u);
  EXPECT_EQ(block.freeFrom(4, 9), 100u) << "what was needed until step 2, too";
  EXPECT_EQ(block.freeFrom(6, 6), 0u);
  block.cut(240);
  EXPECT_EQ(block.bytes(), 240u);
  EXPECT_EQ(block.freeFrom(3, 3), 240u) << "no room";

  Packing packing = pack({{140, 4, 4}, {140, 3, 3}, {150, 4, 9}, {240, 6, 7}}, &block);
  EXPECT_EQ(packing.places[0].offset, 100u);
  EXPECT_EQ(packing.places[0].block, 0u);
  EXPECT_EQ(packing.places[1].block, 1u) << "too early";
  EXPECT_EQ(packing.places[2].block, 1u) << "too large";
  EXPECT_EQ(packing.places[3].block, 0u);
  EXPECT_EQ(packing.places[3].offset, 0u);
}

// An arena is as small as can be: where the order by size does not do it, and where none of the
// orders does, but placing first what ended up on top.
TEST(PackingTest, ReachesTheBound) {
  const std::vector<PackingItem> cases[] = {
      {{3, 0, 0}, {3, 0, 1}, {4, 1, 3}, {3, 1, 1}, {5, 2, 4}, {1, 3, 5}},
      {{4, 1, 2}, {2, 2, 5}, {3, 3, 4}, {2, 4, 6}},
  };
  for (const std::vector<PackingItem> &items : cases) {
    Packing packing = pack(items, {});
    check(items, {}, packing);
    EXPECT_EQ(packing.arenaBytes, greatestSum(items));
  }
  for (unsigned count : {100u, 1000u}) {
    std::vector<PackingItem> items = longTrace(count);
    Packing packing = pack(items, {});
    check(items, {}, packing);
    EXPECT_LE(double(packing.arenaBytes), 1.05 * double(greatestSum(items))) << count;
  }
}

// Nothing, items without bytes, and items that are all needed at once.
TEST(PackingTest, Degenerate) {
  EXPECT_EQ(pack({}, {}).arenaBytes, 0u);
  PersistentBlock none;
  EXPECT_EQ(pack({}, &none).arenaBytes, 0u);
  std::vector<PackingItem> empty(5, {0, 0, 3});
  EXPECT_EQ(pack(empty, {}).arenaBytes, 0u);
  std::vector<PackingItem> together(50, {16, 2, 2});
  Packing packing = pack(together, {});
  check(together, {}, packing);
  EXPECT_EQ(packing.arenaBytes, 50u * 16);
}
