//===- PieceCopy.cu - Several copies at once ------------------------------===//

#include "BlockRanges.cuh"
#include "PieceCopyDevice.h"

using namespace rondo::cuda;

namespace {

static_assert(sizeof(PieceCopyParams) <= 4096, "parameters of a kernel");

/// Copies `count` elements with `threads` threads, of which this is `thread`.
template <typename T>
__device__ void copyElements(T *__restrict__ to, const T *__restrict__ from, uint64_t count,
                             uint64_t thread, uint64_t threads) {
#pragma unroll 4
  for (uint64_t i = thread; i < count; i += threads)
    to[i] = from[i];
}

/// As elements of type T, to which both sides are aligned; what remains as bytes.
template <typename T>
__device__ void copyAs(const PieceCopyParams::Piece &piece, uint64_t thread, uint64_t threads) {
  auto *to = static_cast<unsigned char *>(piece.to);
  auto *from = static_cast<const unsigned char *>(piece.from);
  uint64_t count = piece.bytes / sizeof(T), copied = count * sizeof(T);
  copyElements(reinterpret_cast<T *>(to), reinterpret_cast<const T *>(from), count, thread,
               threads);
  copyElements(to + copied, from + copied, piece.bytes - copied, thread, threads);
}

__global__ void __launch_bounds__(pieceCopyBlock)
    copyPieces(const __grid_constant__ PieceCopyParams p) {
  unsigned index = itemOfBlock(p.firstBlock, p.numPieces);
  const PieceCopyParams::Piece &piece = p.pieces[index];
  unsigned first = p.firstBlock[index],
           end = index + 1 < p.numPieces ? p.firstBlock[index + 1] : p.numBlocks;
  uint64_t thread = uint64_t(blockIdx.x - first) * pieceCopyBlock + threadIdx.x,
           threads = uint64_t(end - first) * pieceCopyBlock;
  auto addresses = reinterpret_cast<uintptr_t>(piece.to) | reinterpret_cast<uintptr_t>(piece.from);
  if (addresses % sizeof(uint4) == 0)
    copyAs<uint4>(piece, thread, threads);
  else if (addresses % sizeof(uint32_t) == 0)
    copyAs<uint32_t>(piece, thread, threads);
  else
    copyAs<uint8_t>(piece, thread, threads);
}

} // namespace

const void *rondo::cuda::pieceCopyKernel() {
  return reinterpret_cast<const void *>(&copyPieces);
}
