//===- VariantTable.h - The specialisations that a program keeps -*- C++ -*-===//
//
// A pair with symbols is compiled for every binding of them, and each such variant has kernels,
// memory and graphs. The table keeps so many; beyond that the variant goes whose compilation costs
// least for how often it was called (Worth.h). One that a call, a SavedState or a graph of the
// caller uses stays.
//
// Bindings that are new on most calls are a storm: to capture graphs for each of them costs more
// than they ever give back, and would push out those of bindings that do come again. So in a storm
// a new binding's variant is transient: it runs eagerly, pushes nothing out, and goes when the
// next new binding comes. If it is called again before, it is as good as any other.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/runtime/Worth.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <memory>
#include <vector>

namespace rondo {

struct Variant;
using VariantRef = std::shared_ptr<Variant>;

/// Not thread-safe: the program's lock protects it.
class VariantTable {
public:
  explicit VariantTable(unsigned maxVariants) : maxVariants_(std::max(maxVariants, 1u)) {}

  /// The variant for `sizes`, one per symbol, on behalf of a call; null if there is none.
  VariantRef visit(const std::vector<int64_t> &sizes);
  /// Puts in what a call found to be missing. `seconds` is what compiling it took.
  void insert(const std::vector<int64_t> &sizes, VariantRef variant, double seconds);
  /// Takes out what is beyond the bound and of no use to anybody, but for the table's references.
  void takeSurplus(std::vector<VariantRef> &taken);
  void takeAll(std::vector<VariantRef> &taken);

  /// Null if it is not there.
  VariantRef find(uint64_t uid) const;
  void forEach(llvm::function_ref<void(Variant &)> visit) const;
  size_t size() const { return entries_.size(); }

  /// Were there, among the last 64 calls, more with a new binding than others, and is the table
  /// full? A binding is new if it is not in the table.
  bool isStorm() const;
  unsigned numNewLately() const; ///< of the last 64 calls
  uint64_t numNew() const { return numNew_; }
  unsigned maxVariants() const { return maxVariants_; }

private:
  struct Kept {
    VariantRef variant;
    Worth worth;
  };
  using Entries = std::map<std::vector<int64_t>, Kept>;

  /// The idle variant that is worth least among transient ones, or among the others.
  Entries::iterator leastWorth(bool isTransient);
  size_t numTransient() const;
  void noteCall(bool isNew);

  const unsigned maxVariants_;
  Entries entries_;
  double age_ = 0;         ///< worth of the variant that went last
  uint64_t lastCalls_ = 0; ///< a bit per call, the last one's lowest: was its binding new?
  uint64_t numNew_ = 0;
};

} // namespace rondo
