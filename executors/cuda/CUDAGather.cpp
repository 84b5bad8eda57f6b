//===- CUDAGather.cpp - Several copies as one kernel ----------------------===//

#include "CUDAGather.h"

#include <algorithm>

using namespace rondo;
using namespace rondo::cuda;

static_assert(maxPieceCopies == DeviceAPI::maxCopyPieces);

static uint32_t numBlocksOf(size_t bytes) {
  size_t blocks = bytes / pieceCopyBytes + (bytes % pieceCopyBytes != 0);
  return uint32_t(std::min<size_t>(blocks, maxPieceBlocks));
}

CUDAGather::CUDAGather(llvm::ArrayRef<CopyPiece> pieces) {
  params_.numPieces = uint32_t(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    params_.pieces[i] = {pieces[i].destination, pieces[i].source, pieces[i].bytes};
    params_.firstBlock[i] = params_.numBlocks;
    params_.numBlocks += numBlocksOf(pieces[i].bytes);
  }
  params_.numBlocks = std::max(params_.numBlocks, 1u); // a grid is not empty
}

KernelLaunch CUDAGather::launch(const void *function) const {
  KernelLaunch launch;
  launch.function = function;
  launch.grid = {params_.numBlocks, 1, 1};
  launch.block = {uint32_t(pieceCopyBlock), 1, 1};
  launch.parameters = {reinterpret_cast<const std::byte *>(&params_), sizeof(params_)};
  return launch;
}
