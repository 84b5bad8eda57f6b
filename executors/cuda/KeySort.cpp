//===- KeySort.cpp - A stable sort as a part of an op ---------------------===//

#include "KeySort.h"

using namespace rondo;
using namespace rondo::cuda;

CUDAGrid cuda::sortInBlockGrid(int64_t rows, int64_t size) {
  return {{blocksFor(rows, 1), 1, 1}, {uint32_t(sortThreads(size)), 1, 1}};
}

llvm::Expected<KeySort> KeySort::get(int64_t rows, int64_t size, unsigned bits,
                                     WorkspaceParts &parts,
                                     llvm::SmallVectorImpl<CUDAFunction> &functions) {
  if (size > int64_t(UINT32_MAX))
    return makeError("sorts " + llvm::Twine(size) + " elements; the CUDA kernel sorts at most " +
                     llvm::Twine(UINT32_MAX));
  KeySort sort;
  sort.rows_ = rows;
  sort.size_ = size;
  sort.tiles_ = (size + sortTile - 1) / sortTile;
  sort.bits_ = bits;
  sort.isWide_ = bits > 32;
  sort.firstFunction_ = functions.size();
  for (int i = 0; i < 2; ++i) {
    sort.keys_[i] = parts.add(uint64_t(rows) * size * (sort.isWide_ ? 8 : 4));
    // Where the keys come from nobody says: they are in order.
    if (i == 1 || !sort.isShort())
      sort.positions_[i] = parts.add(uint64_t(rows) * size * sizeof(uint32_t));
  }
  if (sort.isShort()) {
    functions.push_back({sorting::keysInBlock(sort.isWide_, size)});
    return sort;
  }
  sort.counts_ = parts.add(uint64_t(rows) * sort.tiles_ * sortDigits * sizeof(uint32_t));
  functions.push_back({sorting::countDigits(sort.isWide_)});
  functions.push_back({sorting::sumCounts()});
  functions.push_back({sorting::moveKeys(sort.isWide_)});
  return sort;
}

llvm::Error KeySort::enqueue(const CUDAWork &work, void *workspace) const {
  if (rows_ == 0 || size_ == 0)
    return llvm::Error::success();
  auto positions = [&](unsigned buffer) {
    return static_cast<uint32_t *>(partAt(workspace, positions_[buffer]));
  };
  KeySortParams params;
  params.rows = rows_;
  params.size = size_;
  params.tiles = tiles_;
  if (isShort()) {
    params.keys = keys(workspace);
    params.sortedKeys = partAt(workspace, keys_[1]);
    params.sortedPositions = positions(1);
    return work.launch(firstFunction_, sortInBlockGrid(rows_, size_), params);
  }
  params.counts = static_cast<uint32_t *>(partAt(workspace, counts_));
  CUDAGrid tiles{{blocksFor(rows_ * tiles_, 1), 1, 1}, {sortBlock, 1, 1}};
  CUDAGrid rows{{blocksFor(rows_, 1), 1, 1}, {sortScanBlock, 1, 1}};
  for (unsigned pass = 0; pass < numPasses(); ++pass) {
    unsigned from = pass % 2, to = 1 - from;
    params.keys = partAt(workspace, keys_[from]);
    params.positions = pass == 0 ? nullptr : positions(from);
    params.sortedKeys = partAt(workspace, keys_[to]);
    params.sortedPositions = positions(to);
    params.shift = int(pass) * 8;
    if (llvm::Error error = work.launch(firstFunction_, tiles, params))
      return error;
    if (llvm::Error error = work.launch(firstFunction_ + 1, rows, params))
      return error;
    if (llvm::Error error = work.launch(firstFunction_ + 2, tiles, params))
      return error;
  }
  return llvm::Error::success();
}
