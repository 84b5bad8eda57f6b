//===- BlockRanges.cuh - Many items in one launch ---------------*- C++ -*-===//
//
// One launch works on several items, each of which has blocks of its own, one after the other.
//
//===----------------------------------------------------------------------===//

#pragma once

#include <cstdint>

namespace rondo::cuda {

/// The item of this block, of `count`: the last of those that begin with it or before it.
template <unsigned most>
__device__ unsigned itemOfBlock(const uint32_t (&firstBlock)[most], unsigned count) {
  static_assert((most & (most - 1)) == 0, "steps are halved");
  unsigned item = 0;
  for (unsigned step = most / 2; step > 0; step /= 2)
    if (item + step < count && firstBlock[item + step] <= blockIdx.x)
      item += step;
  return item;
}

} // namespace rondo::cuda
