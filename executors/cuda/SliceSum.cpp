//===- SliceSum.cpp - Sums by index ---------------------------------------===//
//
// The tuples are sorted by the places they name. Every chunk of the sorted ones is then added up by
// threads of their own, an element of the slice each; runs of one place that go beyond a chunk are
// put together from their parts.
//
//===----------------------------------------------------------------------===//

#include "Indexing.h"

#include "llvm/Support/MathExtras.h"

using namespace rondo;
using namespace rondo::cuda;

/// Short chunks as long as there are too few threads to hide the latency of memory.
static int64_t chunkOf(int64_t count, int64_t width) {
  constexpr int64_t manyThreads = 1 << 16;
  int64_t chunk = leastSumChunk;
  while (chunk < mostSumChunk && count / chunk * width > manyThreads)
    chunk *= 2;
  return chunk;
}

llvm::Expected<SliceSum> SliceSum::get(IndexedDims dims, DType dtype, const Options &options,
                                       WorkspaceParts &parts,
                                       llvm::SmallVectorImpl<CUDAFunction> &functions) {
  llvm::Expected<Indexing> indexing = dims.layout();
  if (!indexing)
    return indexing.takeError();
  uint64_t end = uint64_t(dims.numKeys);
  unsigned firstFunction = functions.size();
  functions.push_back({indexing::keys()});
  functions.push_back({indexing::sum(isFloat(dtype))});
  functions.push_back({indexing::sumParts(isFloat(dtype))});
  llvm::Expected<KeySort> sort =
      KeySort::get(1, indexing->tuples.count, llvm::Log2_64(end | 1) + 1, parts, functions);
  if (!sort)
    return sort.takeError();

  SliceSum sum(*sort);
  sum.firstFunction_ = firstFunction;
  SliceSumParams &params = sum.params_;
  params.indexing = *indexing;
  params.indexing.dropped = options.dropped;
  params.count = indexing->tuples.count;
  params.end = end;
  params.isWide = sort->isWide();
  params.type = elementType(dtype);
  params.isMean = options.isMean;
  params.factor = options.factor;
  params.integerFactor = toInteger(options.factor);
  int64_t width = indexing->slices.count;
  params.chunk = chunkOf(params.count, width);
  int64_t chunks = (params.count + params.chunk - 1) / params.chunk;
  params.chunks = llvm::cantFail(makeLayout<2>(
      {chunks, width}, {llvm::ArrayRef<int64_t>{1, 0}, llvm::ArrayRef<int64_t>{0, 1}}));
  params.columns = int(llvm::PowerOf2Ceil(std::clamp<int64_t>(width, 1, 32)));
  if (chunks > 1) {
    sum.heads_ = parts.add(uint64_t(chunks) * width * sizeof(double));
    sum.tails_ = parts.add(uint64_t(chunks) * width * sizeof(double));
  }
  sum.dims_ = std::move(dims);
  return sum;
}

llvm::Error SliceSum::enqueue(const CUDAWork &work, const TypedArgs &args, const void *moved,
                              void *indexed) const {
  if (params_.chunks.count == 0 || params_.end == 0)
    return llvm::Error::success();
  void *workspace = args.workspace();
  SliceSumParams run = params_;
  dims_.bind(run.indexing, args);
  run.keys = sort_.sortedKeys(workspace);
  run.tuples = sort_.positions(workspace);
  run.moved = moved;
  run.indexed = indexed;
  run.heads = partAt(workspace, heads_);
  run.tails = partAt(workspace, tails_);
  IndexKeyParams keys{run.indexing, sort_.keys(workspace), run.end, run.isWide};
  if (llvm::Error error = work.launch(firstFunction_, indexGrid(run.count), keys))
    return error;
  if (llvm::Error error = sort_.enqueue(work, workspace))
    return error;
  if (llvm::Error error = work.launch(firstFunction_ + 1, indexGrid(run.chunks.count), run))
    return error;
  if (run.count <= run.chunk)
    return llvm::Error::success();
  int64_t width = run.indexing.slices.count, groups = (width + run.columns - 1) / run.columns;
  int64_t blocks = (run.count + run.chunk - 1) / run.chunk * groups;
  return work.launch(firstFunction_ + 2, {{blocksFor(blocks, 1), 1, 1}, {indexBlock, 1, 1}}, run);
}
