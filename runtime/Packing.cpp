//===- Packing.cpp - Offsets in blocks of bytes ---------------------------===//
//
// Items are placed one after the other, each at the lowest offset, or in the tightest gap, that is
// free throughout its interval. Which order is best is hard to say (the problem is NP-hard), so
// several are tried: by size, as in Pisarchyk and Lee, "Efficient Memory Management for Deep Neural
// Net Inference" (2020), by size times duration, by begin, and by the number of bytes needed around
// an item. The best of them is then improved: whatever ended up on top of the arena is placed
// earlier, as in the "squeaky wheel" optimisation of Joslin and Clements (1999), until the arena is
// as small as can be or enough work was done.
//
//===----------------------------------------------------------------------===//

#include "Packing.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>
#include <optional>

using namespace rondo;

//===----------------------------------------------------------------------===//
// Blocks of what persists
//===----------------------------------------------------------------------===//

uint64_t PersistentBlock::append(uint32_t begin, uint64_t bytes) {
  uint64_t offset = bytes_;
  parts_.push_back({begin, offset});
  bytes_ += bytes;
  return offset;
}

void PersistentBlock::keep(uint32_t end, uint64_t offset, uint64_t bytes) {
  bytes_ = std::max(bytes_, offset + bytes);
  kept_.push_back({end, bytes_});
}

uint64_t PersistentBlock::freeFrom(uint32_t begin, uint32_t end) const {
  if (!kept_.empty()) {
    auto dead = llvm::partition_point(kept_, [&](const auto &part) { return part.first >= begin; });
    return dead == kept_.begin() ? 0 : std::min(std::prev(dead)->second, bytes_);
  }
  auto next =
      llvm::upper_bound(parts_, end, [](uint32_t at, const auto &part) { return at < part.first; });
  return next == parts_.end() ? bytes_ : next->second;
}

//===----------------------------------------------------------------------===//
// Items that are needed together
//===----------------------------------------------------------------------===//

namespace {

/// Numbers in a row, and the greatest of any part of it: a binary tree as an array.
class MaxTree {
public:
  explicit MaxTree(llvm::ArrayRef<uint64_t> numbers) {
    while (size_ < numbers.size())
      size_ *= 2;
    nodes_.resize(2 * size_);
    llvm::copy(numbers, nodes_.begin() + size_);
    for (size_t node = size_ - 1; node > 0; --node)
      nodes_[node] = std::max(nodes_[2 * node], nodes_[2 * node + 1]);
  }

  /// The greatest of those at [first, end).
  uint64_t greatest(size_t first, size_t end) const {
    uint64_t greatest = 0;
    for (first += size_, end += size_; first < end; first /= 2, end /= 2) {
      if (first % 2)
        greatest = std::max(greatest, nodes_[first++]);
      if (end % 2)
        greatest = std::max(greatest, nodes_[--end]);
    }
    return greatest;
  }
  /// Calls `visit` with the position of each of the first `count` that is `least` or more.
  template <typename Visit> void forEachFrom(uint64_t least, size_t count, Visit &&visit) const {
    descend(1, 0, size_, least, count, visit);
  }

private:
  /// Visits what is below `node`: `size` positions from `first` on.
  template <typename Visit>
  void descend(size_t node, size_t first, size_t size, uint64_t least, size_t count,
               Visit &visit) const {
    if (first >= count || nodes_[node] < least)
      return;
    if (size == 1)
      return visit(uint32_t(first));
    descend(2 * node, first, size / 2, least, count, visit);
    descend(2 * node + 1, first + size / 2, size / 2, least, count, visit);
  }

  size_t size_ = 1;
  std::vector<uint64_t> nodes_;
};

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

class Packer {
public:
  /// `items` are sorted by begin.
  Packer(llvm::ArrayRef<PackingItem> items, llvm::ArrayRef<const PersistentBlock *> rooms)
      : items_(items), rooms_(rooms), ends_(endsOf(items)) {}

  Packing run() {
    measure();
    for (Order order : {Order::Size, Order::Area, Order::Pressure, Order::Begin}) {
      for (Fit fit : {Fit::Lowest, Fit::Tightest}) {
        std::vector<uint32_t> sequence = sorted(order);
        Packing packing = placeAll(sequence, fit);
        if (best_.places.empty() || packing.arenaBytes < best_.arenaBytes) {
          best_ = std::move(packing);
          sequence_ = std::move(sequence);
          fit_ = fit;
        }
        if (isDone())
          return std::move(best_);
      }
    }
    improve();
    return std::move(best_);
  }

private:
  enum class Order { Size, Area, Pressure, Begin };
  enum class Fit { Lowest, Tightest };
  struct Range {
    uint64_t begin, end;
  };

  /// The search ends when so many packings were made, or so many items beside another looked at:
  /// some, and more for each item.
  static constexpr unsigned mostPackings = 100;
  static constexpr uint64_t leastWork = 1 << 20, workPerItem = 64;

  bool isDone() const {
    return best_.arenaBytes <= bound_ || numPackings_ >= mostPackings ||
           work_ > leastWork + workPerItem * items_.size();
  }

  //===--- What any packing needs -----------------------------------------===//

  static std::vector<uint64_t> endsOf(llvm::ArrayRef<PackingItem> items) {
    std::vector<uint64_t> ends;
    for (const PackingItem &item : items)
      ends.push_back(item.end);
    return ends;
  }

  /// How many items are needed at `step` or before.
  size_t numBegunBy(uint32_t step) const {
    auto behind = llvm::upper_bound(
        items_, step, [](uint32_t at, const PackingItem &item) { return at < item.begin; });
    return behind - items_.begin();
  }

  /// Finds the most bytes that are needed during each item, and what the arena has to hold at
  /// least: what is needed at a step, less as much of it as there is room for elsewhere.
  void measure() {
    std::vector<uint64_t> needed = sums([](const PackingItem &) { return true; });
    std::vector<uint64_t> movable = sums([&](const PackingItem &item) {
      return llvm::any_of(rooms_, [&](const PersistentBlock *block) {
        return item.bytes <= block->bytes() - block->freeFrom(item.begin, item.end);
      });
    });
    for (uint32_t step = 0; step < needed.size(); ++step) {
      uint64_t room = 0;
      for (const PersistentBlock *block : rooms_)
        room += block->bytes() - block->freeFrom(step, step);
      bound_ = std::max(bound_, needed[step] - std::min(movable[step], room));
    }
    MaxTree tree(needed);
    for (const PackingItem &item : items_)
      pressure_.push_back(tree.greatest(item.begin, size_t(item.end) + 1));
    isCrowded_ = areMostBesideMany();
  }

  /// Is a good part of all items beside an item, on average?
  bool areMostBesideMany() const {
    std::vector<uint64_t> ends = endsOf(items_);
    llvm::sort(ends);
    uint64_t pairs = 0;
    for (const PackingItem &item : items_)
      pairs += numBegunBy(item.end) - (llvm::lower_bound(ends, item.begin) - ends.begin());
    return pairs > items_.size() * items_.size() / 16;
  }

  /// By step, the bytes of the items that count and that are needed then.
  std::vector<uint64_t> sums(llvm::function_ref<bool(const PackingItem &)> counts) const {
    std::vector<uint64_t> change; // modulo 2^64
    for (const PackingItem &item : items_) {
      change.resize(std::max<size_t>(change.size(), size_t(item.end) + 2));
      if (!counts(item))
        continue;
      change[item.begin] += item.bytes;
      change[item.end + size_t(1)] -= item.bytes;
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    return change;
  }

  std::vector<uint32_t> sorted(Order order) const {
    std::vector<uint32_t> sequence(items_.size());
    std::iota(sequence.begin(), sequence.end(), 0);
    if (order == Order::Begin)
      return sequence;
    auto key = [&](uint32_t i) -> std::pair<double, uint64_t> {
      const PackingItem &item = items_[i];
      if (order == Order::Pressure)
        return {double(pressure_[i]), item.bytes};
      if (order == Order::Area)
        return {double(item.bytes) * (double(item.end - item.begin) + 1), 0};
      return {double(item.bytes), 0};
    };
    llvm::stable_sort(sequence, [&](uint32_t a, uint32_t b) { return key(a) > key(b); });
    return sequence;
  }

  //===--- Placing --------------------------------------------------------===//

  Packing placeAll(llvm::ArrayRef<uint32_t> sequence, Fit fit) {
    ++numPackings_;
    Packing packing;
    packing.places.assign(items_.size(), {unplaced, 0});
    byOffset_.assign(rooms_.size() + 1, {});
    for (uint32_t i : sequence) {
      place(i, fit, packing);
      if (isCrowded_)
        noteOffset(i, packing);
    }
    return packing;
  }

  void place(uint32_t i, Fit fit, Packing &packing) {
    const PackingItem &item = items_[i];
    used_.resize(rooms_.size() + 1);
    for (auto &ranges : used_)
      ranges.clear();
    if (isCrowded_)
      scanBeside(item, packing);
    else
      searchBeside(item, packing);
    for (unsigned block = 0; block <= rooms_.size(); ++block) {
      bool isArena = block == rooms_.size();
      Range free{isArena ? 0 : rooms_[block]->freeFrom(item.begin, item.end),
                 isArena ? ~uint64_t(0) : rooms_[block]->bytes()};
      std::optional<uint64_t> offset = findGap(used_[block], free, item.bytes, fit);
      if (!offset)
        continue;
      packing.places[i] = {block, *offset};
      if (isArena)
        packing.arenaBytes = std::max(packing.arenaBytes, *offset + item.bytes);
      return;
    }
  }

  /// Fills in `used_`: the bytes of the items that are needed at some step of `item`, by offset.
  void searchBeside(const PackingItem &item, const Packing &packing) {
    ends_.forEachFrom(item.begin, numBegunBy(item.end), [&](uint32_t other) {
      if (packing.places[other].block != unplaced)
        addUsed(other, packing.places[other]);
      ++work_;
    });
    for (std::vector<Range> &ranges : used_)
      llvm::sort(ranges, [](const Range &a, const Range &b) { return a.begin < b.begin; });
  }

  /// The same where there are so many that sorting them costs more than looking at all items.
  void scanBeside(const PackingItem &item, const Packing &packing) {
    for (const std::vector<uint32_t> &placed : byOffset_) {
      for (uint32_t other : placed)
        if (items_[other].begin <= item.end && items_[other].end >= item.begin)
          addUsed(other, packing.places[other]);
      work_ += placed.size();
    }
  }

  void addUsed(uint32_t i, const PackingPlace &place) {
    if (items_[i].bytes != 0)
      used_[place.block].push_back({place.offset, place.offset + items_[i].bytes});
  }

  void noteOffset(uint32_t i, const Packing &packing) {
    const PackingPlace &place = packing.places[i];
    std::vector<uint32_t> &placed = byOffset_[place.block];
    placed.insert(llvm::upper_bound(placed, place.offset,
                                    [&](uint64_t offset, uint32_t other) {
                                      return offset < packing.places[other].offset;
                                    }),
                  i);
  }

  /// Where in `free` there are `bytes` that no range of `used`, sorted, has. The room on top is the
  /// last choice.
  static std::optional<uint64_t> findGap(llvm::ArrayRef<Range> used, Range free, uint64_t bytes,
                                         Fit fit) {
    std::optional<uint64_t> best;
    uint64_t bestSize = ~uint64_t(0), at = free.begin;
    for (const Range &range : used) {
      if (range.begin > at && range.begin - at >= bytes && range.begin - at < bestSize) {
        best = at;
        bestSize = range.begin - at;
        if (fit == Fit::Lowest)
          return best;
      }
      at = std::max(at, range.end);
    }
    if (!best && at <= free.end && free.end - at >= bytes)
      best = at;
    return best;
  }

  //===--- Improving ------------------------------------------------------===//

  /// Places what is on top of the arena earlier and earlier, from the best packing on.
  void improve() {
    std::vector<uint32_t> sequence = sequence_;
    Packing packing = best_;
    while (!isDone()) {
      if (!promoteTop(sequence, packing))
        return;
      packing = placeAll(sequence, fit_);
      if (packing.arenaBytes < best_.arenaBytes)
        best_ = packing;
    }
  }

  /// Moves the items whose end is the arena's halfway to the front; false if they are there.
  bool promoteTop(std::vector<uint32_t> &sequence, const Packing &packing) const {
    bool hasMoved = false;
    for (size_t at = 0; at < sequence.size(); ++at) {
      uint32_t i = sequence[at];
      const PackingPlace &place = packing.places[i];
      if (place.block != rooms_.size() || place.offset + items_[i].bytes != packing.arenaBytes)
        continue;
      auto from = sequence.begin() + at;
      std::rotate(sequence.begin() + at / 2, from, from + 1);
      hasMoved |= at != 0;
    }
    return hasMoved;
  }

  static constexpr unsigned unplaced = ~0u;

  llvm::ArrayRef<PackingItem> items_;
  llvm::ArrayRef<const PersistentBlock *> rooms_;
  const MaxTree ends_;             ///< of items
  std::vector<uint64_t> pressure_; ///< by item: the most bytes needed at a step of it
  uint64_t bound_ = 0;             ///< of the arena
  unsigned numPackings_ = 0;
  uint64_t work_ = 0;
  bool isCrowded_ = false;

  // While items are placed, by block.
  std::vector<std::vector<Range>> used_;        ///< beside the item, by offset
  std::vector<std::vector<uint32_t>> byOffset_; ///< items; if crowded

  Packing best_;
  std::vector<uint32_t> sequence_; ///< that gave it
  Fit fit_ = Fit::Lowest;
};

} // namespace

Packing rondo::pack(llvm::ArrayRef<PackingItem> items,
                    llvm::ArrayRef<const PersistentBlock *> rooms) {
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](uint32_t a, uint32_t b) { return items[a].begin < items[b].begin; });
  std::vector<PackingItem> sorted;
  for (uint32_t i : order)
    sorted.push_back(items[i]);
  Packing packing = Packer(sorted, rooms).run(), result;
  result.arenaBytes = packing.arenaBytes;
  result.places.resize(items.size());
  for (size_t i = 0; i < order.size(); ++i)
    result.places[order[i]] = packing.places[i];
  return result;
}
