//===- VariantTable.cpp - The specialisations that a program keeps --------===//

#include "VariantTable.h"

#include "ProgramImpl.h"

#include <bit>

using namespace rondo;

VariantRef VariantTable::visit(const std::vector<int64_t> &sizes) {
  auto found = entries_.find(sizes);
  if (found == entries_.end())
    return nullptr;
  noteCall(false);
  Kept &kept = found->second;
  kept.worth.use(1, age_);
  kept.variant->isTransient = false;
  return kept.variant;
}

void VariantTable::insert(const std::vector<int64_t> &sizes, VariantRef variant, double seconds) {
  noteCall(true);
  ++numNew_;
  variant->isTransient = isStorm();
  Kept &kept = entries_[sizes];
  kept = {std::move(variant), Worth(seconds, 1)};
  kept.worth.use(1, age_);
}

void VariantTable::noteCall(bool isNew) {
  lastCalls_ = lastCalls_ << 1 | uint64_t(isNew);
}

unsigned VariantTable::numNewLately() const {
  return std::popcount(lastCalls_);
}

bool VariantTable::isStorm() const {
  return numNewLately() > 32 && entries_.size() >= maxVariants_;
}

void VariantTable::takeSurplus(std::vector<VariantRef> &taken) {
  for (bool isTransient : {true, false}) {
    while (isTransient || entries_.size() - numTransient() > maxVariants_) {
      auto least = leastWorth(isTransient);
      if (least == entries_.end())
        break;
      if (!isTransient)
        age_ = least->second.worth.value();
      taken.push_back(std::move(least->second.variant));
      entries_.erase(least);
    }
  }
}

void VariantTable::takeAll(std::vector<VariantRef> &taken) {
  for (auto &entry : entries_)
    taken.push_back(std::move(entry.second.variant));
  entries_.clear();
}

VariantTable::Entries::iterator VariantTable::leastWorth(bool isTransient) {
  auto least = entries_.end();
  for (auto i = entries_.begin(); i != entries_.end(); ++i) {
    const Kept &kept = i->second;
    if (kept.variant->isTransient == isTransient && kept.variant.use_count() == 1 &&
        !kept.variant->isLeased() &&
        (least == entries_.end() || kept.worth.value() < least->second.worth.value()))
      least = i;
  }
  return least;
}

size_t VariantTable::numTransient() const {
  return llvm::count_if(entries_,
                        [](const auto &entry) { return entry.second.variant->isTransient; });
}

VariantRef VariantTable::find(uint64_t uid) const {
  for (const auto &entry : entries_)
    if (entry.second.variant->uid == uid)
      return entry.second.variant;
  return nullptr;
}

void VariantTable::forEach(llvm::function_ref<void(Variant &)> visit) const {
  for (const auto &entry : entries_)
    visit(*entry.second.variant);
}
