//===- Worth.h - What is worth keeping --------------------------*- C++ -*-===//
//
// GreedyDual-Size-Frequency (Cherkasova, 1998): of all that is kept, what goes first is what costs
// least to make again for how often it was used and how much room it takes. The worth of what went
// last is the age of the rest: what comes, or is used, later starts from there, so that nothing
// stays for what it was long ago.
//
//===----------------------------------------------------------------------===//

#pragma once

#include <cstdint>

namespace rondo {

class Worth {
public:
  Worth() = default;
  /// Of what takes `cost` seconds to make and `size` of some unit, more than 0.
  Worth(double cost, double size) : cost_(cost), size_(size) {}

  /// It was used so many times more, at `age`.
  void use(uint64_t times, double age) {
    uses_ += times;
    value_ = age + cost_ * double(uses_) / size_;
  }
  double cost() const { return cost_; }
  uint64_t uses() const { return uses_; }
  /// The least goes first, and is the age then.
  double value() const { return value_; }

private:
  double cost_ = 0, size_ = 1;
  uint64_t uses_ = 0;
  double value_ = 0;
};

} // namespace rondo
