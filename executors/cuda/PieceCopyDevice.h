//===- PieceCopyDevice.h - Device code of several copies --------*- C++ -*-===//

#pragma once

#include <cstdint>

namespace rondo::cuda {

inline constexpr int maxPieceCopies = 64;   ///< DeviceAPI::maxCopyPieces
inline constexpr int pieceCopyBlock = 256;  ///< threads
inline constexpr int pieceCopyBytes = 8192; ///< of a piece for each block, if the blocks suffice
inline constexpr int maxPieceBlocks = 1024; ///< of one piece

/// Blocks firstBlock[i] to firstBlock[i + 1] - 1, or to the last one, copy piece i. One that is
/// empty has no blocks, or block 0 if all are.
struct PieceCopyParams {
  struct Piece {
    void *to = nullptr;
    const void *from = nullptr;
    uint64_t bytes = 0;
  };

  Piece pieces[maxPieceCopies];
  uint32_t firstBlock[maxPieceCopies] = {};
  uint32_t numPieces = 0, numBlocks = 0;
};

/// The `__global__` function, for a grid of numBlocks blocks.
const void *pieceCopyKernel();

} // namespace rondo::cuda
