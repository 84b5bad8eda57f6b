//===- CaptureDomainTest.cpp - Identity and slots of a domain -------------===//

#include "rondo/ir/CaptureDomain.h"

#include <gtest/gtest.h>

using namespace rondo;

namespace {

const char keyA = 0, keyB = 0;

std::shared_ptr<void> makeInt(int value) {
  return std::make_shared<int>(value);
}
int valueOf(const std::shared_ptr<void> &content) {
  return *static_cast<int *>(content.get());
}

/// Sets a flag when it dies.
struct Witness {
  bool &dead;
  ~Witness() { dead = true; }
};

/// A domain is itself only, whatever its name.
TEST(CaptureDomain, Identity) {
  CaptureDomainRef a = CaptureDomain::create("transform"), b = CaptureDomain::create("transform");
  EXPECT_EQ(a->name(), "transform");
  EXPECT_NE(a, b);
  CaptureDomainRef copy = a;
  EXPECT_EQ(a, copy);
}

/// A slot is filled once per key and then given out.
TEST(CaptureDomain, SlotIsMadeOnce) {
  CaptureDomainRef domain = CaptureDomain::create("d");
  int calls = 0;
  auto create = [&] { return makeInt(++calls); };
  EXPECT_EQ(valueOf(domain->slot(&keyA, create)), 1);
  EXPECT_EQ(valueOf(domain->slot(&keyA, create)), 1);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(valueOf(domain->slot(&keyB, create)), 2);
  EXPECT_EQ(valueOf(domain->findSlot(&keyA)), 1);
}

/// Two domains share no slots.
TEST(CaptureDomain, DomainsShareNothing) {
  CaptureDomainRef a = CaptureDomain::create("d"), b = CaptureDomain::create("d");
  a->slot(&keyA, [] { return makeInt(1); });
  EXPECT_EQ(b->findSlot(&keyA), nullptr);
}

/// An empty slot is null; a create that returns null leaves it empty.
TEST(CaptureDomain, EmptySlots) {
  CaptureDomainRef domain = CaptureDomain::create("d");
  EXPECT_EQ(domain->findSlot(&keyA), nullptr);
  EXPECT_EQ(domain->slot(&keyA, [] { return nullptr; }), nullptr);
  EXPECT_EQ(valueOf(domain->slot(&keyA, [] { return makeInt(2); })), 2);
}

/// Erasing empties one slot, which can be filled again; erasing an empty one does nothing.
TEST(CaptureDomain, Erase) {
  CaptureDomainRef domain = CaptureDomain::create("d");
  domain->slot(&keyA, [] { return makeInt(1); });
  domain->slot(&keyB, [] { return makeInt(2); });
  domain->eraseSlot(&keyA);
  domain->eraseSlot(&keyA);
  EXPECT_EQ(domain->findSlot(&keyA), nullptr);
  EXPECT_EQ(valueOf(domain->findSlot(&keyB)), 2);
  EXPECT_EQ(valueOf(domain->slot(&keyA, [] { return makeInt(3); })), 3);
}

/// What was erased lives until its last user lets go of it.
TEST(CaptureDomain, ErasedContentOutlivesItsSlot) {
  bool dead = false;
  CaptureDomainRef domain = CaptureDomain::create("d");
  std::shared_ptr<void> user =
      domain->slot(&keyA, [&] { return std::shared_ptr<Witness>(new Witness{dead}); });
  domain->eraseSlot(&keyA);
  EXPECT_FALSE(dead);
  user.reset();
  EXPECT_TRUE(dead);
}

/// Content may ask its domain when it is erased: it dies outside the lock.
TEST(CaptureDomain, ErasedContentMayUseTheDomain) {
  struct Asks {
    CaptureDomain &domain;
    bool &found;
    ~Asks() { found = domain.findSlot(&keyB) != nullptr; }
  };
  bool found = false;
  CaptureDomainRef domain = CaptureDomain::create("d");
  domain->slot(&keyB, [] { return makeInt(1); });
  domain->slot(&keyA, [&] { return std::shared_ptr<Asks>(new Asks{*domain, found}); });
  domain->eraseSlot(&keyA);
  EXPECT_TRUE(found);
}

/// Slots die with the last reference to the domain, and not before.
TEST(CaptureDomain, SlotsDieWithTheDomain) {
  bool dead = false;
  CaptureDomainRef domain = CaptureDomain::create("d"), program = domain;
  domain->slot(&keyA, [&] { return std::shared_ptr<Witness>(new Witness{dead}); });
  domain.reset();
  EXPECT_FALSE(dead);
  program.reset();
  EXPECT_TRUE(dead);
}

} // namespace
