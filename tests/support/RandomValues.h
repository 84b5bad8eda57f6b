//===- RandomValues.h - Numbers for operands --------------------*- C++ -*-===//

#pragma once

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace rondo {

/// How many elements a tensor of this shape has.
inline int64_t countOf(llvm::ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

/// `n` numbers from [-2, 2), the same for the same seed (SplitMix64, Steele et al., OOPSLA 2014).
inline std::vector<double> randomValues(size_t n, uint64_t seed) {
  std::vector<double> values(n);
  for (double &value : values) {
    uint64_t z = (seed += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    value = double(z >> 11) * 0x1p-51 - 2;
  }
  return values;
}

} // namespace rondo
