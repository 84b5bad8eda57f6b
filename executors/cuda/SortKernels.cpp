//===- SortKernels.cpp - sort and topk ------------------------------------===//
//
// Both are stable: of equal values the one with the lower index comes first. nan is the greatest
// value. topk sorts whether it is asked to or not.
//
//===----------------------------------------------------------------------===//

#include "KeySort.h"

#include <optional>

using namespace rondo;
using namespace rondo::cuda;

namespace {

struct SortKernel {
  RowSortParams params;
  std::optional<KeySort> sort; ///< of rows that are too long for a block
  int64_t size = 0;

  llvm::Error enqueue(const CUDAWork &work, const TypedArgs &args) const;
};

} // namespace

llvm::Error SortKernel::enqueue(const CUDAWork &work, const TypedArgs &args) const {
  if (params.kept.count == 0)
    return llvm::Error::success();
  RowSortParams run = params;
  run.x = args.operand(0).data;
  run.values = args.result(0).data;
  run.indices = args.result(1).as<int64_t>();
  if (!sort)
    return work.launch(0, sortInBlockGrid(run.rows.count, size), run);
  run.rowKeys = sort->keys(args.workspace());
  run.isWide = sort->isWide();
  run.positions = sort->positions(args.workspace());
  auto grid = [](int64_t threads) {
    return CUDAGrid{{blocksFor(threads, sortBlock), 1, 1}, {sortBlock, 1, 1}};
  };
  if (llvm::Error error = work.launch(0, grid(run.keys.count), run))
    return error;
  if (llvm::Error error = sort->enqueue(work, args.workspace()))
    return error;
  return work.launch(1, grid(run.kept.count), run);
}

/// Numbers the elements of `rows` rows of `size` by row and position.
static llvm::Expected<Layout<2>> rowLayout(int64_t rows, int64_t size) {
  return makeLayout<2>({rows, size},
                       {llvm::ArrayRef<int64_t>{1, 0}, llvm::ArrayRef<int64_t>{0, 1}});
}

static llvm::Expected<CUDAKernelFn> makeSorted(const OpContext &op, bool isDescending) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  SortKernel kernel;
  RowSortParams &params = kernel.params;
  TensorSizes x(*op.tensor(0)), values(*op.results()[0]->asTensor()),
      indices(*op.results()[1]->asTensor());
  TensorSizes *tensors[] = {&x, &values, &indices};
  params.type = elementType(x.dtype);
  params.isDescending = isDescending;
  int64_t kept = 1;
  kernel.size = 1;
  if (x.rank() != 0) {
    int64_t dim = op.intAttribute("dim", -1);
    unsigned d = dim < 0 ? dim + x.rank() : dim;
    kernel.size = x.shape[d];
    kept = values.shape[d];
    for (int k = 0; k < 3; ++k) {
      params.strides[k] = tensors[k]->strides[d];
      tensors[k]->strides.erase(tensors[k]->strides.begin() + d);
    }
    x.shape.erase(x.shape.begin() + d);
  }
  llvm::Expected<Layout<3>> rows =
      makeLayout<3>(x.shape, {x.strides, values.strides, indices.strides});
  if (!rows)
    return rows.takeError();
  params.rows = *rows;
  params.keys = llvm::cantFail(rowLayout(rows->count, kernel.size));
  params.kept = llvm::cantFail(rowLayout(rows->count, kept));

  CUDAKernelFn result;
  if (kernel.size <= sortedInBlock) {
    result.functions = {{sorting::rowsInBlock(kernel.size)}};
  } else {
    result.functions = {{sorting::makeKeys()}, {sorting::takeSorted()}};
    WorkspaceParts parts;
    llvm::Expected<KeySort> sort = KeySort::get(
        rows->count, kernel.size, unsigned(dtypeSize(x.dtype)) * 8, parts, result.functions);
    if (!sort)
      return sort.takeError();
    kernel.sort = *sort;
    result.workspaceBytes = parts.bytes();
  }
  result.enqueue = [kernel](const CUDAWork &work, const TypedArgs &args) {
    return kernel.enqueue(work, args);
  };
  return result;
}

void cuda::addSortKernels(CUDAExecutor &executor) {
  addKernel(executor, {.op = "sort", .make = [](const OpContext &op) {
                         return makeSorted(op, op.boolAttribute("descending"));
                       }});
  addKernel(executor, {.op = "topk", .make = [](const OpContext &op) {
                         return makeSorted(op, op.boolAttribute("largest", true));
                       }});
}
