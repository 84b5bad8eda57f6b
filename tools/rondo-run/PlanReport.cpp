//===- PlanReport.cpp - A memory plan, for people -------------------------===//

#include "Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

#include <array>
#include <numeric>
#include <tuple>

using namespace rondo;

/// The largest storages of the peak that are listed one by one.
static constexpr size_t mostHolders = 10;

static void printFigures(const MemoryInfo &memory, llvm::raw_ostream &os) {
  os << "    arguments " << byteText(memory.arguments) << ", arena " << byteText(memory.arena)
     << ", slab " << byteText(memory.slab) << ", results " << byteText(memory.results)
     << "; in all " << byteText(memory.peak()) << '\n'
     << "    lower bound " << byteText(memory.lowerBound) << " ("
     << byteText(memory.roundedLowerBound) << " in units of 256 bytes)";
  if (memory.lowerBound != 0)
    os << ", ratio " << llvm::format("%.3f", double(memory.peak()) / double(memory.lowerBound));
  os << '\n';
}

static std::string placeText(const StorageInfo &storage) {
  return (memoryBlockName(storage.block) + "+" + llvm::Twine(storage.offset)).str();
}

static std::string stepsText(const StorageInfo &storage) {
  std::string text = std::to_string(storage.firstStep) + "-";
  return storage.lastStep ? text + std::to_string(*storage.lastStep) : text;
}

/// One line each, under a heading.
static void printStorages(const MemoryPlanInfo &plan, llvm::ArrayRef<uint32_t> storages,
                          llvm::raw_ostream &os) {
  std::vector<std::array<std::string, 4>> rows{{"bytes", "place", "steps", "made by"}};
  for (uint32_t i : storages) {
    const StorageInfo &storage = plan.storages[i];
    std::string text = storage.name;
    if (storage.takesOver)
      text += " (takes over " + plan.storages[*storage.takesOver].name + ")";
    if (storage.firstStep < plan.steps.size())
      text += ": " + plan.steps[storage.firstStep];
    rows.push_back(
        {std::to_string(storage.bytes), placeText(storage), stepsText(storage), std::move(text)});
  }
  std::array<size_t, 4> widths = {};
  for (const auto &row : rows)
    for (size_t c = 0; c + 1 < row.size(); ++c)
      widths[c] = std::max(widths[c], row[c].size());
  for (const auto &row : rows)
    os << "    " << llvm::right_justify(row[0], widths[0]) << "  "
       << llvm::left_justify(row[1], widths[1]) << "  " << llvm::left_justify(row[2], widths[2])
       << "  " << row[3] << '\n';
}

/// What is live at the peak, the largest first.
static void printHolders(const MemoryPlanInfo &plan, llvm::raw_ostream &os) {
  if (plan.steps.empty())
    return;
  os << "    peak in step " << plan.peakStep << ", " << plan.steps[plan.peakStep]
     << "; beside the arguments it holds:\n";
  llvm::ArrayRef<uint32_t> holders = plan.peakHolders;
  printStorages(plan, holders.take_front(mostHolders), os);
  uint64_t others = 0;
  for (uint32_t i : holders.drop_front(std::min(mostHolders, holders.size())))
    others += plan.storages[i].bytes;
  if (holders.size() > mostHolders)
    os << "    and " << holders.size() - mostHolders << " others of " << byteText(others)
       << " in all\n";
}

/// Every storage, by where it is and when.
static void printPlaces(const MemoryPlanInfo &plan, llvm::raw_ostream &os) {
  if (plan.storages.empty())
    return;
  std::vector<uint32_t> order(plan.storages.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](uint32_t a, uint32_t b) {
    auto key = [&](uint32_t i) {
      const StorageInfo &storage = plan.storages[i];
      return std::tuple(storage.block, storage.offset, storage.firstStep);
    };
    return key(a) < key(b);
  });
  os << "    plan:\n";
  printStorages(plan, order, os);
}

static void printSide(Side side, const MemoryPlanInfo &plan, llvm::raw_ostream &os) {
  os << "  " << sideName(side) << ": " << plan.steps.size() << " steps, " << plan.storages.size()
     << " storages\n";
  printFigures(plan.figures, os);
  printHolders(plan, os);
  printPlaces(plan, os);
}

void rondo::printPlan(const PlanReport &report, llvm::raw_ostream &os) {
  os << report.name << '\n';
  printSide(Side::Forward, report.forward, os);
  if (report.backward)
    printSide(Side::Backward, *report.backward, os);
}
