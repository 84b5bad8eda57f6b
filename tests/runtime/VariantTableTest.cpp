//===- VariantTableTest.cpp - Which specialisations are kept --------------===//

#include "ProgramImpl.h"

#include "rondo/host/HostDevice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace rondo;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace {

class VariantTableTest : public testing::Test {
protected:
  /// A call with one size, as a program makes it: `true` if the size was new.
  bool call(int64_t size, double seconds = 1) {
    latest = table->visit({size});
    if (latest)
      return false;
    latest = std::make_shared<Variant>();
    latest->uid = uint64_t(size);
    table->insert({size}, latest, seconds);
    takeSurplus();
    return true;
  }
  void takeSurplus() {
    std::vector<VariantRef> taken;
    table->takeSurplus(taken);
    for (const VariantRef &variant : taken)
      gone.push_back(variant->uid);
  }
  void callAll(int64_t first, int64_t last) {
    for (int64_t size = first; size <= last; ++size)
      call(size);
  }
  std::vector<uint64_t> kept() const {
    std::vector<uint64_t> all;
    table->forEach([&](const Variant &variant) { all.push_back(variant.uid); });
    return all;
  }
  void begin(unsigned maxVariants) { table.emplace(maxVariants); }

  std::optional<VariantTable> table;
  VariantRef latest; ///< as a program has it
  std::vector<uint64_t> gone;
};

} // namespace

// A variant is found by all its sizes and by its number.
TEST_F(VariantTableTest, Finds) {
  begin(4);
  auto variant = std::make_shared<Variant>();
  variant->uid = 7;
  table->insert({1, 2}, variant, 1);
  EXPECT_EQ(table->visit({1, 2}), variant);
  EXPECT_EQ(table->visit({2, 1}), nullptr);
  EXPECT_EQ(table->visit({1}), nullptr);
  EXPECT_EQ(table->find(7), variant);
  EXPECT_EQ(table->find(8), nullptr);
}

// Beyond the bound the one goes that is cheapest for how often it was called, never the last one.
TEST_F(VariantTableTest, LeastWorthGoes) {
  begin(3);
  call(1, 1);
  call(2, 5);
  call(3, 3);
  for (unsigned i = 0; i < 9; ++i)
    call(1); // worth 10
  call(4, 0.5);
  EXPECT_THAT(gone, ElementsAre(3));
  EXPECT_THAT(kept(), ElementsAre(1, 2, 4));
  call(5, 0.5); // 4 is worth 3.5: what is left has aged
  EXPECT_THAT(gone, ElementsAre(3, 4));
  EXPECT_TRUE(call(3)) << "it is as new";
}

// No bound is less than 1, and what was called last is kept.
TEST_F(VariantTableTest, AtLeastOne) {
  begin(0);
  call(1, 100);
  call(2, 1);
  EXPECT_THAT(kept(), ElementsAre(2));
}

// What was called often but long ago goes in the end.
TEST_F(VariantTableTest, Ages) {
  begin(2);
  for (unsigned i = 0; i < 10; ++i)
    call(1);
  // Each size twice, so that there is no storm.
  int64_t size = 2;
  for (; size < 100 && table->find(1); ++size)
    for (unsigned i = 0; i < 2; ++i)
      call(size);
  EXPECT_GT(size, 5);
  EXPECT_LT(size, 20);
}

// One that somebody refers to, or one of whose blocks is leased, stays beyond the bound until it is
// let go.
TEST_F(VariantTableTest, InUse) {
  DeviceRef device = createHostDevice();
  auto newBlock = [&] { return cantFail(Block::create({device}, {uint64_t(64)}, 1)); };
  begin(1);
  call(1);
  VariantRef called = latest;
  call(2);
  BlockRef saved = newBlock();
  latest->slabs.add(saved);
  call(3);
  BlockRef results = newBlock();
  latest->backward.emplace().results.add(results);
  StorageRef tensor; // of the caller: needs no variant
  call(4);
  {
    BlockRef held = newBlock();
    tensor = held->storage(0);
    latest->forward.results.add(std::move(held));
  }
  call(5);
  EXPECT_THAT(gone, ElementsAre(4));
  called.reset();
  takeSurplus();
  saved.reset();
  takeSurplus();
  EXPECT_THAT(gone, ElementsAre(4, 1, 2));
  results.reset();
  takeSurplus();
  EXPECT_THAT(kept(), ElementsAre(5));
}

// It is a storm if the table is full and more than half of the last 64 calls were new; then new
// variants are transient: they push out nothing but each other.
TEST_F(VariantTableTest, Storm) {
  begin(40);
  callAll(1, 40);
  EXPECT_FALSE(latest->isTransient);
  EXPECT_THAT(gone, IsEmpty());
  for (int64_t size = 41; size <= 140; size += 2) {
    for (int64_t next : {size, size + 1}) {
      EXPECT_TRUE(call(next));
      EXPECT_TRUE(table->isStorm());
      EXPECT_TRUE(latest->isTransient);
      EXPECT_EQ(table->size(), 41u);
    }
    EXPECT_FALSE(call(1 + size % 40));
    EXPECT_FALSE(latest->isTransient);
  }
  EXPECT_EQ(table->numNew(), 140u);
  EXPECT_EQ(gone.size(), 99u);
  for (uint64_t uid : gone)
    EXPECT_GT(uid, 40u);

  // When as many are not new, it is over.
  for (int64_t size = 141; table->isStorm() && size < 200; ++size) {
    call(1);
    call(size);
  }
  EXPECT_EQ(table->numNewLately(), 32u);
  call(1);
  call(1000);
  EXPECT_FALSE(latest->isTransient);
  EXPECT_EQ(table->size(), 40u);
}

// Calls that are all new are no storm while there is room, nor are as many that are not.
TEST_F(VariantTableTest, NoStorm) {
  begin(64);
  for (int64_t size = 1; size <= 64; ++size) {
    call(size);
    EXPECT_FALSE(latest->isTransient);
  }
  begin(1);
  for (int64_t size = 1; size <= 200; ++size) {
    for (unsigned i = 0; i < 2; ++i)
      call(size);
    EXPECT_FALSE(table->isStorm());
  }
}

// A transient variant that is called again is as good as any other, and pushes out another.
TEST_F(VariantTableTest, TransientAgain) {
  begin(2);
  callAll(1, 40);
  VariantRef transient = latest;
  EXPECT_TRUE(transient->isTransient);
  gone.clear();
  EXPECT_FALSE(call(40));
  EXPECT_FALSE(transient->isTransient);
  transient.reset();
  call(41);
  EXPECT_TRUE(latest->isTransient);
  EXPECT_EQ(gone.size(), 1u) << "two stay, and the transient one";
  EXPECT_TRUE(table->find(40));
  call(42);
  EXPECT_TRUE(table->find(40));
  EXPECT_EQ(gone.back(), 41u);
}
