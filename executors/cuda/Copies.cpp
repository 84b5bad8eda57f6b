//===- Copies.cpp - Copies and fills of any layout ------------------------===//

#include "Copies.h"

#include "CopyDevice.h"
#include "PointwiseDevice.h"

#include <cstring>

using namespace rondo;
using namespace rondo::cuda;

unsigned cuda::addFunction(CUDAKernelFn &kernel, const void *symbol) {
  for (unsigned i = 0; i < kernel.functions.size(); ++i)
    if (kernel.functions[i].symbol == symbol)
      return i;
  kernel.functions.push_back({symbol});
  return kernel.functions.size() - 1;
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

/// Sets what follows from the number of elements and the shape, which has no 0.
template <int N> static void completeLayout(Layout<N> &layout) {
  layout.count = 1;
  for (int d = 0; d < layout.rank; ++d)
    layout.count *= layout.shape[d];
  layout.isSmall = layout.count < (int64_t(1) << 31);
  for (int d = 0; layout.isSmall && d < layout.rank; ++d)
    layout.dividers[d] = Divider(uint32_t(layout.shape[d]));
}

/// Do elements lie side by side along the last dimension in all tensors?
template <int N> static bool hasDenseRows(const Layout<N> &layout) {
  for (int k = 0; k < N; ++k)
    if (layout.strides[k][layout.rank - 1] != 1)
      return false;
  return true;
}
template <int N> static bool isDense(const Layout<N> &layout) {
  return layout.count == 1 || (layout.rank == 1 && hasDenseRows(layout));
}

/// How many elements of `bytes` bytes can be seen as one, at most 16 bytes in all.
template <int N> static unsigned elementsAtOnce(const Layout<N> &layout, unsigned bytes) {
  if (!hasDenseRows(layout))
    return 1;
  int last = layout.rank - 1;
  for (unsigned factor = 16 / bytes; factor > 1; factor /= 2) {
    bool divides = layout.shape[last] % factor == 0;
    for (int k = 0; k < N; ++k)
      for (int d = 0; d < last; ++d)
        divides &= layout.strides[k][d] % int64_t(factor) == 0;
    if (divides)
      return factor;
  }
  return 1;
}

/// The layout in which `factor` elements that lie side by side are one.
template <int N> static Layout<N> layoutAtOnce(Layout<N> layout, unsigned factor) {
  int last = layout.rank - 1;
  layout.shape[last] /= factor;
  for (int k = 0; k < N; ++k)
    for (int d = 0; d < last; ++d)
      layout.strides[k][d] /= int64_t(factor);
  completeLayout(layout);
  return layout;
}

static bool isAligned(const void *data, size_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % bytes == 0;
}

static CUDAGrid copyGrid(int64_t count) {
  return {.grid = {blocksFor(count, copyBlock), 1, 1}, .block = {copyBlock, 1, 1}};
}

/// Of a copy; elements are numbered as they lie in `to`.
static llvm::Expected<Layout<2>> copyLayout(const TensorSizes &from, const TensorSizes &to) {
  llvm::SmallVector<int64_t, 5> strides = from.broadcastTo(to.shape);
  return makeLayout<2>(to.shape, {llvm::ArrayRef<int64_t>(strides), to.strides},
                       memoryOrder(to.strides));
}

bool cuda::isByteCopy(const TensorSizes &from, const TensorSizes &to) {
  if (from.dtype != to.dtype)
    return false;
  if (to.count() == 0)
    return true;
  llvm::Expected<Layout<2>> layout = copyLayout(from, to);
  if (layout)
    return isDense(*layout);
  llvm::consumeError(layout.takeError());
  return false;
}

bool cuda::isDenseInMemory(const TensorSizes &tensor) {
  return isByteCopy(tensor, tensor);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Of each element by itself, or of several at once where the addresses allow it.
static CopyFn makeMove(const Layout<2> &layout, unsigned bytes, CUDAKernelFn &kernel) {
  MoveParams single, wide;
  single.layout = layout;
  unsigned factor = elementsAtOnce(layout, bytes), wideBytes = bytes * factor;
  wide.layout = factor > 1 ? layoutAtOnce(layout, factor) : layout;
  unsigned singleMove = addFunction(kernel, moveKernel(bytes)),
           wideMove = addFunction(kernel, moveKernel(wideBytes));
  return [=](const CUDAWork &work, const void *from, void *to) {
    bool isWide = isAligned(from, wideBytes) && isAligned(to, wideBytes);
    MoveParams params = isWide ? wide : single;
    params.from = from;
    params.to = to;
    return work.launch(isWide ? wideMove : singleMove, copyGrid(params.layout.count), params);
  };
}

/// The dimension along which `from` lies densely, where it is another than that of `to`, and both
/// are long enough for tiles; else -1.
static int transposedDim(const Layout<2> &layout) {
  constexpr int64_t least = transposeTile / 2;
  int last = layout.rank - 1;
  if (layout.strides[1][last] != 1 || layout.strides[0][last] == 1 || layout.shape[last] < least)
    return -1;
  for (int d = 0; d < last; ++d)
    if (layout.strides[0][d] == 1 && layout.shape[d] >= least)
      return d;
  return -1;
}

/// `dim` and the last dimension are the columns and rows of matrices.
static CopyFn makeTranspose(const Layout<2> &layout, int dim, unsigned bytes,
                            CUDAKernelFn &kernel) {
  int last = layout.rank - 1;
  TransposeParams params;
  params.rows = layout.shape[last];
  params.columns = layout.shape[dim];
  params.fromStride = layout.strides[0][last];
  params.toStride = layout.strides[1][dim];
  for (int d = 0; d < last; ++d) {
    if (d == dim)
      continue;
    int outer = params.matrices.rank++;
    params.matrices.shape[outer] = layout.shape[d];
    for (int k = 0; k < 2; ++k)
      params.matrices.strides[k][outer] = layout.strides[k][d];
  }
  completeLayout(params.matrices);
  auto tiles = [](int64_t size) { return (size + transposeTile - 1) / transposeTile; };
  CUDAGrid grid;
  grid.grid.x = blocksFor(params.matrices.count * tiles(params.rows) * tiles(params.columns), 1);
  grid.block = {transposeTile, transposeRows, 1};
  unsigned function = addFunction(kernel, transposeKernel(bytes));
  return [=](const CUDAWork &work, const void *from, void *to) {
    TransposeParams run = params;
    run.from = from;
    run.to = to;
    return work.launch(function, grid, run);
  };
}

/// By way of numbers of the type that elements of `to` are computed with.
static llvm::Expected<CopyFn> makeConversion(const TensorSizes &from, const TensorSizes &to,
                                             CUDAKernelFn &kernel) {
  constexpr int result = maxPointwiseInputs;
  ComputeType compute = computeType(to.dtype);
  PointwiseParams params;
  params.inTypes[0] = elementType(from.dtype);
  params.outType = elementType(to.dtype);
  params.as[0] = to.dtype == DType::Bool ? ElementType::Bool : params.inTypes[0];
  llvm::SmallVector<int64_t, 5> strides = from.broadcastTo(to.shape), none(to.rank(), 0);
  std::array<llvm::ArrayRef<int64_t>, result + 1> views;
  views.fill(none);
  views[0] = strides;
  views[result] = to.strides;
  llvm::Expected<Layout<result + 1>> layout =
      makeLayout<result + 1>(to.shape, views, memoryOrder(to.strides));
  if (!layout)
    return layout.takeError();
  params.layout = *layout;
  bool canBeDense = layout->rank == 1 && layout->strides[0][0] == 1 &&
                    layout->strides[result][0] == 1 && isVectorType(compute, params.inTypes[0]) &&
                    isVectorType(compute, params.outType);
  size_t fromBytes = std::min<size_t>(16, dtypeSize(from.dtype) * pointwiseVector),
         toBytes = std::min<size_t>(16, dtypeSize(to.dtype) * pointwiseVector);
  unsigned function = addFunction(kernel, pointwise::copy().find(compute));
  return CopyFn([=](const CUDAWork &work, const void *source, void *destination) {
    PointwiseParams run = params;
    run.in[0] = source;
    run.out = destination;
    run.isDense = canBeDense && isAligned(source, fromBytes) && isAligned(destination, toBytes);
    int64_t threads =
        run.isDense ? (run.layout.count + pointwiseVector - 1) / pointwiseVector : run.layout.count;
    return work.launch(function,
                       {{blocksFor(threads, pointwiseBlock), 1, 1}, {pointwiseBlock, 1, 1}}, run);
  });
}

llvm::Expected<CopyFn> cuda::makeCopy(const TensorSizes &from, const TensorSizes &to,
                                      CUDAKernelFn &kernel) {
  if (to.count() == 0)
    return CopyFn([](const CUDAWork &, const void *, void *) { return llvm::Error::success(); });
  if (from.dtype != to.dtype)
    return makeConversion(from, to, kernel);
  llvm::Expected<Layout<2>> layout = copyLayout(from, to);
  if (!layout)
    return layout.takeError();
  unsigned bytes = dtypeSize(to.dtype);
  if (isDense(*layout))
    return CopyFn([size = layout->count * bytes](const CUDAWork &work, const void *source,
                                                 void *destination) {
      return work.sink().copy(destination, source, size);
    });
  if (int dim = transposedDim(*layout); dim >= 0)
    return makeTranspose(*layout, dim, bytes, kernel);
  return makeMove(*layout, bytes, kernel);
}

//===----------------------------------------------------------------------===//
// Fills
//===----------------------------------------------------------------------===//

/// The value of one type converted to an element of `dtype`.
template <typename T> static uint64_t bitsOf(T value, DType dtype) {
  return dispatch(elementType(dtype), [&](auto tag) {
    auto element = convert<typename decltype(tag)::Type>(value);
    uint64_t bits = 0;
    std::memcpy(&bits, &element, sizeof element);
    return bits;
  });
}

uint64_t cuda::elementBits(const ScalarConstant &constant, DType dtype) {
  switch (constant.dtype) {
  case DType::Bool:
    return bitsOf(constant.value.boolean, dtype);
  case DType::I64:
    return bitsOf(constant.value.i64, dtype);
  default:
    return bitsOf(constant.value.f64, dtype);
  }
}

/// The lowest `bytes` bytes of `bits` as often as 8 bytes hold them.
static uint64_t repeatBits(uint64_t bits, unsigned bytes) {
  for (; bytes < 8; bytes *= 2)
    bits |= bits << (8 * bytes);
  return bits;
}

/// By a kernel. `repeated`: the element's bits until there are 8 bytes.
static llvm::Expected<ConstantFillFn> makeKernelFill(const TensorSizes &to, uint64_t repeated,
                                                     CUDAKernelFn &kernel) {
  if (to.count() == 0)
    return ConstantFillFn([](const CUDAWork &, void *) { return llvm::Error::success(); });
  llvm::Expected<Layout<1>> layout = makeLayout<1>(to.shape, {to.strides}, memoryOrder(to.strides));
  if (!layout)
    return layout.takeError();
  unsigned bytes = dtypeSize(to.dtype), factor = elementsAtOnce(*layout, bytes),
           wideBytes = bytes * factor;
  FillParams single, wide;
  single.bits = wide.bits = repeated;
  single.layout = *layout;
  wide.layout = factor > 1 ? layoutAtOnce(*layout, factor) : *layout;
  unsigned singleFill = addFunction(kernel, fillKernel(bytes)),
           wideFill = addFunction(kernel, fillKernel(wideBytes));
  return ConstantFillFn([=](const CUDAWork &work, void *destination) {
    bool isWide = isAligned(destination, wideBytes);
    FillParams params = isWide ? wide : single;
    params.to = destination;
    return work.launch(isWide ? wideFill : singleFill, copyGrid(params.layout.count), params);
  });
}

llvm::Expected<ConstantFillFn> cuda::makeConstantFill(const TensorSizes &to, uint64_t bits,
                                                      CUDAKernelFn &kernel) {
  uint64_t repeated = repeatBits(bits, dtypeSize(to.dtype));
  if (isDenseInMemory(to) && repeated == repeatBits(bits & 0xff, 1))
    return ConstantFillFn([byte = uint8_t(bits), size = to.count() * dtypeSize(to.dtype)](
                              const CUDAWork &work, void *destination) {
      return size ? work.sink().fill(destination, byte, size) : llvm::Error::success();
    });
  return makeKernelFill(to, repeated, kernel);
}

llvm::Expected<CUDAKernelFn> cuda::makeConstantResult(const OpContext &op, uint64_t bits) {
  CUDAKernelFn kernel;
  llvm::Expected<ConstantFillFn> fill =
      makeConstantFill(TensorSizes(*op.results()[0]->asTensor()), bits, kernel);
  if (!fill)
    return fill.takeError();
  kernel.enqueue = [fill = *fill](const CUDAWork &work, const TypedArgs &args) {
    return fill(work, args.result().data);
  };
  return kernel;
}
