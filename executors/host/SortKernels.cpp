//===- SortKernels.cpp - sort and topk ------------------------------------===//
//
// Both are stable: of equal values the one with the lower index comes first. nan is the greatest
// value. topk sorts whether it is asked to or not.
//
//===----------------------------------------------------------------------===//

#include "DTypeSupport.h"
#include "IndexKernels.h"
#include "IndexedElements.h"
#include "Rows.h"

#include <algorithm>
#include <numeric>

using namespace rondo;
using namespace rondo::host;

/// True if `a` comes before `b` in ascending order.
template <typename T> static bool isLess(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a < b || (!std::isnan(a) && std::isnan(b));
  else
    return a < b;
}

/// The indices of the `size` elements at `row`, `stride` apart, in order of their values.
template <typename T>
static std::vector<int64_t> sortedIndices(const T *row, int64_t size, int64_t stride,
                                          bool descending) {
  std::vector<int64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    T a = row[i * stride], b = row[j * stride];
    return descending ? isLess(b, a) : isLess(a, b);
  });
  return order;
}

/// Stores the first `count` of each row of x along `dim` in order, and their indices; `count` is
/// the size of the results.
template <typename T> static void sortRows(const HostArgs &args, int64_t dim, bool descending) {
  const TensorRef &x = args.operand(0), &values = args.result(0);
  Axis from(x.shape, dim), to(values.shape, dim);
  std::vector<T> keys = toDense<T>(x);
  Offsets offsets = allOffsets(x), sortedOffsets(values.numElements());
  std::vector<int64_t> indices(values.numElements());
  for (int64_t o = 0; from.size > 0 && o < from.outer; ++o) {
    for (int64_t k = 0; k < from.inner; ++k) {
      std::vector<int64_t> order =
          sortedIndices(&keys[from.index(o, 0, k)], from.size, from.inner, descending);
      for (int64_t i = 0; i < to.size; ++i) {
        indices[to.index(o, i, k)] = order[i];
        sortedOffsets[to.index(o, i, k)] = offsets[from.index(o, order[i], k)];
      }
    }
  }
  take(x, sortedOffsets, values);
  fromDense<int64_t>(indices, args.result(1));
}

static llvm::Expected<HostKernelFn> makeSorted(const OpContext &op, bool descending) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return HostKernelFn([descending, dim = op.intAttribute("dim", -1)](const HostArgs &args) {
    if (isFloat(args.operand(0).dtype))
      sortRows<double>(args, dim, descending);
    else
      sortRows<int64_t>(args, dim, descending);
  });
}

void host::addSortKernels(HostExecutor &executor) {
  addKernel(executor, {.op = "sort", .make = [](const OpContext &op) {
                         return makeSorted(op, op.boolAttribute("descending"));
                       }});
  addKernel(executor, {.op = "topk", .make = [](const OpContext &op) {
                         return makeSorted(op, op.boolAttribute("largest", true));
                       }});
}
