//===- MemoryPlanTest.cpp - Offsets against brute force -------------------===//

#include "MemoryPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

using namespace rondo;

namespace {

PlannedStorage storageOf(Space space, uint64_t bytes, uint32_t begin, uint32_t end) {
  PlannedStorage storage;
  storage.space = space;
  storage.bytes = bytes;
  storage.begin = begin;
  storage.end = end;
  return storage;
}
constexpr uint32_t forever = ~0u;

Schedule scheduleOf(unsigned steps, std::vector<PlannedStorage> storages,
                    Side side = Side::Forward) {
  Schedule schedule;
  schedule.side = side;
  schedule.steps.resize(steps);
  schedule.storages = std::move(storages);
  return schedule;
}

/// In a backward: what its forward saved, until `end`.
PlannedStorage savedOf(uint64_t bytes, uint64_t offset, uint32_t end) {
  PlannedStorage storage = storageOf(Space::Slab, bytes, 0, end);
  storage.offset = offset;
  storage.isForwards = true;
  return storage;
}

/// Is it for planMemory to lay out?
bool isPlanned(const Schedule &schedule, const PlannedStorage &before) {
  return !before.isCallers() && before.space != Space::ForwardResults &&
         !(schedule.side == Side::Backward && before.space == Space::Slab);
}
/// Does it lie in one of the blocks?
bool isInBlock(const PlannedStorage &before) {
  return !before.isCallers() && before.space != Space::ForwardResults;
}

/// What the forward allocated for what it saved: no more than it needs.
uint64_t savedBytes(const Schedule &schedule, unsigned device) {
  uint64_t bytes = 0;
  for (const PlannedStorage &storage : schedule.storages)
    if (storage.isForwards && storage.space == Space::Slab && storage.device == device)
      bytes = std::max(bytes, storage.offset + storage.bytes);
  return bytes;
}

uint64_t blockBytes(const Schedule &schedule, const PlannedStorage &storage) {
  switch (storage.space) {
  case Space::Slab:
    return schedule.side == Side::Backward ? savedBytes(schedule, storage.device)
                                           : schedule.slabBytes[storage.device];
  case Space::Results:
    return schedule.resultBytes[storage.device];
  default:
    return schedule.arenaBytes[storage.device];
  }
}

uint64_t liveBytes(const Schedule &schedule, uint32_t step) {
  uint64_t live = 0;
  for (const PlannedStorage &storage : schedule.storages)
    if (storage.device == 0 && storage.begin + (storage.takesOver >= 0) <= step &&
        storage.end >= step)
      live += storage.bytes;
  return live;
}

/// Plans, and checks what must hold of any plan.
void planAndCheck(Schedule &schedule, unsigned numDevices = 1) {
  std::vector<PlannedStorage> before = schedule.storages;
  planMemory(schedule, numDevices);
  ASSERT_EQ(schedule.storages.size(), before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    const PlannedStorage &a = schedule.storages[i];
    SCOPED_TRACE("storage " + std::to_string(i));
    if (!isPlanned(schedule, before[i])) {
      EXPECT_EQ(a.space, before[i].space);
      EXPECT_EQ(a.offset, before[i].offset);
      continue;
    }
    if (before[i].space != Space::Arena) {
      EXPECT_EQ(a.space, before[i].space) << "what outlives the call stays in its block";
    }
    EXPECT_EQ(a.offset % DeviceAPI::allocationAlignment, 0u);
    EXPECT_LE(a.offset + a.bytes, blockBytes(schedule, a));
    for (size_t k = 0; k < before.size(); ++k) {
      if (k == i)
        continue;
      const PlannedStorage &b = schedule.storages[k];
      bool sharesBytes = isInBlock(before[k]) && a.device == b.device && a.space == b.space &&
                         a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes &&
                         a.bytes != 0 && b.bytes != 0;
      if (b.takesOver == int32_t(i) || a.takesOver == int32_t(k)) {
        EXPECT_TRUE(sharesBytes && a.offset == b.offset && a.bytes == b.bytes) << "and " << k;
        EXPECT_TRUE(a.end == b.begin || b.end == a.begin) << "and " << k;
        continue;
      }
      EXPECT_FALSE(sharesBytes && a.begin <= b.end && b.begin <= a.end) << "and " << k;
    }
  }
  uint64_t most = liveBytes(schedule, 0);
  for (uint32_t step = 0; step < schedule.steps.size(); ++step)
    most = std::max(most, liveBytes(schedule, step));
  EXPECT_EQ(schedule.memory.lowerBound, most);
  EXPECT_GE(schedule.memory.roundedLowerBound, most);
  // Figures count what is saved without what lies between, where temporaries may be, too.
  uint64_t between = savedBytes(schedule, 0);
  for (const PlannedStorage &storage : before)
    if (storage.isForwards && storage.space == Space::Slab && storage.device == 0)
      between -= storage.bytes;
  EXPECT_GE(schedule.memory.peak() + between, most);
}

} // namespace

//===----------------------------------------------------------------------===//
// Random schedules
//===----------------------------------------------------------------------===//

// Storages that are live at the same step share no byte, offsets are aligned and within their
// blocks, and the lower bound is what adding up step by step gives.
TEST(MemoryPlanTest, RandomSchedules) {
  std::mt19937 random(11);
  auto below = [&](unsigned limit) { return unsigned(random() % limit); };
  for (unsigned round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Side side = below(2) ? Side::Forward : Side::Backward;
    unsigned steps = 1 + below(20), numDevices = 1 + below(2);
    std::vector<PlannedStorage> storages;
    uint64_t saved[2] = {};
    for (unsigned i = below(40); i > 0; --i) {
      uint32_t begin = below(steps), end = begin + below(steps - begin);
      Space space = Space::Arena;
      switch (below(8)) {
      case 0:
        space = below(2) || side == Side::Forward ? Space::Argument : Space::Saved;
        break;
      case 1:
        space = Space::Slab;
        break;
      case 2:
        space = Space::Results;
        break;
      case 3:
        space = side == Side::Backward ? Space::ForwardResults : Space::Results;
        break;
      default:
        break;
      }
      bool isThere = space == Space::Argument || space == Space::Saved ||
                     space == Space::ForwardResults ||
                     (side == Side::Backward && space == Space::Slab);
      uint64_t bytes = below(6) ? 1 + below(2000) : 0;
      storages.push_back(
          storageOf(space, bytes, isThere ? 0 : begin, space == Space::Arena ? end : forever));
      storages.back().device = below(numDevices);
      storages.back().isForwards = isThere && !storages.back().isCallers();
      if (isThere && space == Space::Slab) {
        uint64_t &next = saved[storages.back().device];
        storages.back().offset = next;
        next += (bytes + 255) / 256 * 256;
        if (below(4))
          storages.back().end = end;
      } else if (isThere) {
        storages.back().offset = 256 * below(100);
      }
    }
    Schedule schedule = scheduleOf(steps, storages, side);
    planAndCheck(schedule, numDevices);
    if (testing::Test::HasFailure())
      return;
  }
}

// A chain of temporaries of one size takes the room of two, not of all.
TEST(MemoryPlanTest, ChainReuses) {
  std::vector<PlannedStorage> storages;
  for (uint32_t i = 0; i < 100; ++i)
    storages.push_back(storageOf(Space::Arena, 1024, i, i + 1));
  Schedule schedule = scheduleOf(101, storages);
  planAndCheck(schedule);
  EXPECT_EQ(schedule.memory.arena, 2048u);
  EXPECT_EQ(schedule.memory.lowerBound, 2048u);
  EXPECT_EQ(schedule.memory.temporaries, 2048u);
}

// A temporary goes to where a saved value or a result is not made yet, and nowhere else.
TEST(MemoryPlanTest, TemporariesBeforePersistent) {
  Schedule schedule = scheduleOf(
      4, {storageOf(Space::Slab, 512, 3, forever), storageOf(Space::Arena, 512, 0, 2),
          storageOf(Space::Results, 256, 2, forever), storageOf(Space::Arena, 256, 0, 1)});
  planAndCheck(schedule);
  EXPECT_EQ(schedule.memory.arena, 0u);
  EXPECT_EQ(schedule.memory.peak(), 768u);
  Schedule late =
      scheduleOf(4, {storageOf(Space::Slab, 512, 0, forever), storageOf(Space::Arena, 512, 1, 3)});
  planAndCheck(late);
  EXPECT_EQ(late.memory.arena, 512u);
  // In a backward the slab is full from the start.
  Schedule backward =
      scheduleOf(4, {savedOf(512, 0, forever), storageOf(Space::Arena, 512, 0, 1)}, Side::Backward);
  planAndCheck(backward);
  EXPECT_EQ(backward.memory.arena, 512u);
  EXPECT_EQ(backward.memory.slab, 0u);
  EXPECT_EQ(backward.memory.arguments, 512u);
}

// A temporary goes to where a saved value was that nothing needs any more, if all behind it is not
// needed either, and not beyond what the forward allocated.
TEST(MemoryPlanTest, TemporariesBehindSaved) {
  auto arenaBytes = [](std::vector<PlannedStorage> storages) {
    Schedule schedule = scheduleOf(4, std::move(storages), Side::Backward);
    planAndCheck(schedule);
    EXPECT_EQ(schedule.memory.slab, 0u) << "it is the forward's";
    return schedule.memory.arena;
  };
  PlannedStorage temporary = storageOf(Space::Arena, 512, 2, 3);
  EXPECT_EQ(arenaBytes({savedOf(256, 0, forever), savedOf(512, 256, 1), temporary}), 0u);
  EXPECT_EQ(arenaBytes({savedOf(256, 0, 0), savedOf(256, 256, 1), temporary}), 0u) << "both";
  EXPECT_EQ(arenaBytes({savedOf(256, 0, forever), savedOf(512, 256, 2), temporary}), 512u)
      << "it is read in the step that makes the temporary";
  EXPECT_EQ(arenaBytes({savedOf(512, 0, 1), savedOf(256, 512, forever), temporary}), 512u)
      << "something behind it is needed";
  EXPECT_EQ(arenaBytes({savedOf(256, 0, forever), savedOf(500, 256, 1), temporary}), 512u)
      << "12 bytes too few";
  EXPECT_EQ(arenaBytes({savedOf(512, 0, 1), temporary, temporary}), 512u) << "one of two";
}

//===----------------------------------------------------------------------===//
// Figures
//===----------------------------------------------------------------------===//

// Copies of inputs count to the arena, but not to what any plan needs.
TEST(MemoryPlanTest, StagingIsOurOwn) {
  Schedule schedule = scheduleOf(
      2, {storageOf(Space::Argument, 100, 0, forever), storageOf(Space::Arena, 100, 0, 1)});
  ScheduledRegion region;
  region.end = 2;
  RegionBuffer copied;
  copied.policy = BufferPolicy::Copied;
  copied.staging = 1;
  region.buffers.push_back(copied);
  schedule.regions.push_back(region);
  planMemory(schedule, 1);
  EXPECT_EQ(schedule.memory.arguments, 100u);
  EXPECT_EQ(schedule.memory.lowerBound, 100u);
  EXPECT_EQ(schedule.memory.temporaries, 0u);
  EXPECT_EQ(schedule.memory.arena, 100u);
}

// Each device has blocks of its own; the figures are the first one's.
TEST(MemoryPlanTest, Devices) {
  std::vector<PlannedStorage> storages = {storageOf(Space::Arena, 64, 0, 1),
                                          storageOf(Space::Arena, 4096, 0, 1),
                                          storageOf(Space::Results, 128, 0, forever)};
  storages[1].device = storages[2].device = 1;
  Schedule schedule = scheduleOf(2, storages);
  planAndCheck(schedule, 2);
  EXPECT_THAT(schedule.arenaBytes, testing::ElementsAre(64, 4096));
  EXPECT_THAT(schedule.resultBytes, testing::ElementsAre(0, 128));
  EXPECT_EQ(schedule.memory.peak(), 64u);
  EXPECT_EQ(schedule.memory.lowerBound, 64u);
}

// Small storages take 256 bytes each, but for the last of a block: the rounded bound says so, the
// other one does not.
TEST(MemoryPlanTest, RoundedBound) {
  std::vector<PlannedStorage> storages = {storageOf(Space::Argument, 100, 0, forever)};
  for (unsigned i = 0; i < 10; ++i)
    storages.push_back(storageOf(Space::Arena, 4, 0, 1));
  Schedule schedule = scheduleOf(2, storages);
  planAndCheck(schedule);
  EXPECT_EQ(schedule.memory.arena, 9u * 256 + 4);
  EXPECT_EQ(schedule.memory.lowerBound, 140u);
  EXPECT_EQ(schedule.memory.roundedLowerBound, 100u + 10 * 256);
}

// The description has every planned storage of the first device with its op, and the largest of
// those that are live at the peak first, copies of inputs among them.
TEST(MemoryPlanTest, Description) {
  std::vector<PlannedStorage> storages = {
      storageOf(Space::Argument, 4096, 0, forever), storageOf(Space::Arena, 512, 0, 1),
      storageOf(Space::Arena, 1024, 1, 2),          storageOf(Space::Results, 256, 2, forever),
      storageOf(Space::Arena, 600, 0, 2),           storageOf(Space::Arena, 8192, 0, 2)};
  for (size_t i = 0; i < storages.size(); ++i)
    storages[i].name = "%" + std::to_string(i);
  storages.back().device = 1;
  Schedule schedule = scheduleOf(3, storages);
  for (unsigned i = 0; i < 3; ++i)
    schedule.steps[i].text = "op " + std::to_string(i);
  ScheduledRegion region;
  region.end = 3;
  RegionBuffer copied;
  copied.policy = BufferPolicy::Copied;
  copied.staging = 4;
  region.buffers.push_back(copied);
  schedule.regions.push_back(region);
  planMemory(schedule, 2);

  MemoryPlanInfo plan = describeMemory(schedule);
  EXPECT_EQ(plan.figures.lowerBound, 4096u + 512 + 1024);
  EXPECT_THAT(plan.steps, testing::ElementsAre("op 0", "op 1", "op 2"));
  EXPECT_EQ(plan.peakStep, 1u);
  std::vector<std::string> names, holders;
  for (const StorageInfo &storage : plan.storages)
    names.push_back(storage.name);
  for (uint32_t holder : plan.peakHolders)
    holders.push_back(plan.storages[holder].name);
  EXPECT_THAT(names, testing::ElementsAre("%1", "%2", "%3", "%4"));
  EXPECT_THAT(holders, testing::ElementsAre("%2", "%4", "%1"));
  EXPECT_EQ(plan.storages[1].firstStep, 1u);
  EXPECT_EQ(plan.storages[1].lastStep, 2u);
  EXPECT_EQ(plan.storages[1].block, MemoryBlock::Arena);
  EXPECT_EQ(plan.storages[2].lastStep, std::nullopt);
  EXPECT_EQ(plan.storages[2].block, MemoryBlock::Results);
}

//===----------------------------------------------------------------------===//
// Degenerate schedules
//===----------------------------------------------------------------------===//

// No steps, no storages, one step, tensors without elements and results that nothing writes.
TEST(MemoryPlanTest, Degenerate) {
  Schedule nothing = scheduleOf(0, {});
  planAndCheck(nothing);
  EXPECT_EQ(nothing.memory.peak(), 0u);

  Schedule passes = scheduleOf(
      0, {storageOf(Space::Argument, 24, 0, forever), storageOf(Space::Results, 8, 0, forever)});
  planAndCheck(passes);
  EXPECT_EQ(passes.memory.lowerBound, 32u);
  EXPECT_EQ(passes.memory.results, 8u);

  Schedule one =
      scheduleOf(1, {storageOf(Space::Arena, 24, 0, 0), storageOf(Space::Results, 8, 0, forever)});
  planAndCheck(one);
  EXPECT_EQ(one.memory.lowerBound, 32u);

  std::vector<PlannedStorage> empty(20, storageOf(Space::Arena, 0, 0, 3));
  empty.push_back(storageOf(Space::Results, 0, 1, forever));
  empty.push_back(storageOf(Space::Slab, 0, 2, forever));
  Schedule none = scheduleOf(4, empty);
  planAndCheck(none);
  EXPECT_EQ(none.memory.peak(), 0u);

  // Never written: there throughout, and shared with nothing.
  Schedule unwritten =
      scheduleOf(3, {storageOf(Space::Results, 64, 0, forever), storageOf(Space::Arena, 64, 0, 2)});
  planAndCheck(unwritten);
  EXPECT_EQ(unwritten.memory.results, 64u);
  EXPECT_EQ(unwritten.memory.arena, 64u);
}
