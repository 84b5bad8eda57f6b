//===- DataMovementKernels.cpp - Rearrangements ---------------------------===//
//
// Most ops are a few copies between parts of tensors, which are tensors themselves: a distance from
// the first element, sizes and strides. Works for all dtypes but where dtypes are converted.
//
//===----------------------------------------------------------------------===//

#include "Copies.h"
#include "CopyDevice.h"

#include <algorithm>

using namespace rondo;
using namespace rondo::cuda;

namespace {

/// A part of a tensor.
struct Part {
  TensorSizes sizes;
  int64_t offset = 0; ///< of its first element from the tensor's

  explicit Part(TensorSizes tensor) : sizes(std::move(tensor)) {}

  /// `count` indices of dimension `dim` from `start` on.
  Part &slice(unsigned dim, int64_t start, int64_t count) {
    if (count > 0)
      offset += start * sizes.strides[dim];
    sizes.shape[dim] = std::max<int64_t>(count, 0);
    return *this;
  }
  Part &select(unsigned dim, int64_t index) {
    slice(dim, index, 1);
    sizes.shape.erase(sizes.shape.begin() + dim);
    sizes.strides.erase(sizes.strides.begin() + dim);
    return *this;
  }
  Part &reverse(unsigned dim) {
    if (sizes.shape[dim] > 0)
      offset += (sizes.shape[dim] - 1) * sizes.strides[dim];
    sizes.strides[dim] = -sizes.strides[dim];
    return *this;
  }
};

/// Copies of parts of operands to parts of the result, one after the other.
class PartCopies {
public:
  /// Adds a copy of a part of operand `operand`. One without elements is left out.
  llvm::Error add(unsigned operand, const Part &from, const Part &to) {
    if (to.sizes.count() == 0)
      return llvm::Error::success();
    llvm::Expected<CopyFn> copy = makeCopy(from.sizes, to.sizes, kernel_);
    if (!copy)
      return copy.takeError();
    copies_.push_back({operand, from.offset * int64_t(dtypeSize(from.sizes.dtype)),
                       to.offset * int64_t(dtypeSize(to.sizes.dtype)), std::move(*copy)});
    return llvm::Error::success();
  }
  /// Has the whole result filled before.
  llvm::Error fill(const TensorSizes &to, uint64_t bits) {
    llvm::Expected<ConstantFillFn> fill = makeConstantFill(to, bits, kernel_);
    if (!fill)
      return fill.takeError();
    fill_ = std::move(*fill);
    return llvm::Error::success();
  }

  CUDAKernelFn take() {
    kernel_.enqueue = [copies = std::move(copies_), fill = std::move(fill_)](
                          const CUDAWork &work, const TypedArgs &args) -> llvm::Error {
      std::byte *to = args.result().as<std::byte>();
      if (fill)
        if (llvm::Error error = fill(work, to))
          return error;
      for (const Copy &copy : copies)
        if (llvm::Error error = copy.run(
                work, args.operand(copy.operand).as<std::byte>() + copy.from, to + copy.to))
          return error;
      return llvm::Error::success();
    };
    return std::move(kernel_);
  }

private:
  struct Copy {
    unsigned operand;
    int64_t from, to; ///< in bytes
    CopyFn run;
  };

  CUDAKernelFn kernel_;
  std::vector<Copy> copies_;
  ConstantFillFn fill_;
};

} // namespace

static TensorSizes resultSizes(const OpContext &op) {
  return TensorSizes(*op.results()[0]->asTensor());
}

//===----------------------------------------------------------------------===//
// Joining
//===----------------------------------------------------------------------===//

/// 8-bit floats are copied, but not converted.
static llvm::Error checkConversions(const OpContext &op) {
  DType dtype = op.results()[0]->asTensor()->dtype;
  for (unsigned i = 0; i < op.numOperands(); ++i)
    if (op.tensor(i)->dtype != dtype)
      return checkDTypes(op);
  return llvm::Error::success();
}

static llvm::Expected<CUDAKernelFn> makeCat(const OpContext &op) {
  if (llvm::Error error = checkConversions(op))
    return error;
  TensorSizes out = resultSizes(op);
  unsigned dim = wrapDim(op.intAttribute("dim"), out.rank());
  PartCopies copies;
  int64_t start = 0;
  for (unsigned i = 0; i < op.numOperands(); ++i) {
    TensorSizes part(*op.tensor(i));
    if (part.rank() != out.rank()) // a vector without elements among tensors of another rank
      continue;
    int64_t size = part.shape[dim];
    if (part.count() != 0)
      if (llvm::Error error = copies.add(i, Part(part), Part(out).slice(dim, start, size)))
        return error;
    start += size;
  }
  return copies.take();
}

static llvm::Expected<CUDAKernelFn> makeStack(const OpContext &op) {
  if (llvm::Error error = checkConversions(op))
    return error;
  TensorSizes out = resultSizes(op);
  unsigned dim = wrapDim(op.intAttribute("dim"), out.rank());
  PartCopies copies;
  for (unsigned i = 0; i < op.numOperands(); ++i)
    if (llvm::Error error =
            copies.add(i, Part(TensorSizes(*op.tensor(i))), Part(out).select(dim, i)))
      return error;
  return copies.take();
}

//===----------------------------------------------------------------------===//
// Repeating and reordering
//===----------------------------------------------------------------------===//

/// Each dimension as two, copies and size.
static llvm::Expected<CUDAKernelFn> makeRepeat(const OpContext &op) {
  TensorSizes x(*op.tensor(0)), out = resultSizes(op), from = x, to = out;
  PartCopies copies;
  if (out.count() == 0)
    return copies.take();
  for (TensorSizes *sizes : {&from, &to}) {
    sizes->shape.clear();
    sizes->strides.clear();
  }
  for (unsigned d = 0, added = out.rank() - x.rank(); d < out.rank(); ++d) {
    int64_t size = d < added ? 1 : x.shape[d - added];
    to.shape.append({out.shape[d] / size, size});
    to.strides.append({size * out.strides[d], out.strides[d]});
    from.shape.append({1, size});
    from.strides.append({0, d < added ? 0 : x.strides[d - added]});
  }
  if (llvm::Error error = copies.add(0, Part(from), Part(to)))
    return error;
  return copies.take();
}

static llvm::Expected<CUDAKernelFn> makeFlip(const OpContext &op) {
  Part x{TensorSizes(*op.tensor(0))};
  for (unsigned dim : listedDims(op, "dims", x.sizes.rank()))
    x.reverse(dim);
  PartCopies copies;
  if (llvm::Error error = copies.add(0, x, Part(resultSizes(op))))
    return error;
  return copies.take();
}

/// `shift` as a number from 0 to below `size`.
static int64_t wrapShift(int64_t shift, int64_t size) {
  shift %= size;
  return shift < 0 ? shift + size : shift;
}

/// Adds copies of `from` to `to`, shifted by `shifts` along `dims`: of two parts along the first
/// dimension, each shifted along the others.
static llvm::Error addRoll(PartCopies &copies, const Part &from, const Part &to,
                           llvm::ArrayRef<unsigned> dims, llvm::ArrayRef<int64_t> shifts) {
  if (dims.empty())
    return copies.add(0, from, to);
  unsigned dim = dims[0];
  int64_t size = from.sizes.shape[dim];
  if (size == 0)
    return llvm::Error::success();
  int64_t shift = wrapShift(shifts[0], size);
  auto rollRest = [&](int64_t start, int64_t count, int64_t destination) -> llvm::Error {
    if (count == 0)
      return llvm::Error::success();
    return addRoll(copies, Part(from).slice(dim, start, count),
                   Part(to).slice(dim, destination, count), dims.drop_front(), shifts.drop_front());
  };
  if (llvm::Error error = rollRest(0, size - shift, shift))
    return error;
  return rollRest(size - shift, shift, 0);
}

/// As one vector.
static llvm::Expected<CUDAKernelFn> makeFlatRoll(const OpContext &op, int64_t shift) {
  TensorSizes x(*op.tensor(0)), out = resultSizes(op);
  if (out.count() == 0)
    return PartCopies().take();
  llvm::Expected<Layout<1>> from = makeLayout<1>(x.shape, {x.strides}),
                            to = makeLayout<1>(out.shape, {out.strides});
  if (!from || !to)
    return llvm::joinErrors(from.takeError(), to.takeError());
  RollParams params;
  params.fromLayout = *from;
  params.toLayout = *to;
  params.shift = wrapShift(shift, out.count());
  CUDAKernelFn kernel;
  kernel.functions = {{rollKernel(dtypeSize(out.dtype))}};
  kernel.enqueue = [params](const CUDAWork &work, const TypedArgs &args) {
    RollParams run = params;
    run.from = args.operand(0).data;
    run.to = args.result().data;
    return work.launch(0, {{blocksFor(run.toLayout.count, copyBlock), 1, 1}, {copyBlock, 1, 1}},
                       run);
  };
  return kernel;
}

static llvm::Expected<CUDAKernelFn> makeRoll(const OpContext &op) {
  auto shifts = constantDims(op.dimsAttribute("shifts"));
  if (op.dimsAttribute("dims").empty())
    return makeFlatRoll(op, shifts[0]);
  TensorSizes x(*op.tensor(0));
  PartCopies copies;
  if (llvm::Error error =
          addRoll(copies, Part(x), Part(resultSizes(op)), listedDims(op, "dims", x.rank()), shifts))
    return error;
  return copies.take();
}

//===----------------------------------------------------------------------===//
// Borders
//===----------------------------------------------------------------------===//

static llvm::Expected<CUDAKernelFn> makePad(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  llvm::Expected<ScalarConstant> value = ScalarConstant::get(op, "value");
  if (!value)
    return value.takeError();
  TensorSizes x(*op.tensor(0)), out = resultSizes(op);
  PartCopies copies;
  if (llvm::Error error = copies.fill(out, elementBits(*value, out.dtype)))
    return error;
  auto pads = constantDims(op.dimsAttribute("pads"));
  Part from(x), to(out);
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    unsigned dim = out.rank() - 1 - i;
    // Index j of the operand is index j + before of the result, where there is one.
    int64_t before = pads[2 * i], size = x.shape[dim];
    int64_t begin = std::max<int64_t>(0, -before), end = std::min(size, size + pads[2 * i + 1]);
    from.slice(dim, begin, end - begin);
    to.slice(dim, begin + before, end - begin);
  }
  if (llvm::Error error = copies.add(0, from, to))
    return error;
  return copies.take();
}

/// Row i keeps the columns up to i + diagonal (`lower`), or those from there on.
static llvm::Expected<CUDAKernelFn> makeTriangle(const OpContext &op, bool lower) {
  TensorSizes x(*op.tensor(0)), out = resultSizes(op);
  if (out.count() == 0)
    return PartCopies().take();
  llvm::Expected<Layout<2>> layout = makeLayout<2>(out.shape, {x.strides, out.strides});
  if (!layout)
    return layout.takeError();
  TriangleParams params;
  params.layout = *layout;
  params.rows = out.shape[out.rank() - 2];
  params.columns = out.shape[out.rank() - 1];
  if (layout->isSmall) {
    params.rowDivider = Divider(uint32_t(params.rows));
    params.columnDivider = Divider(uint32_t(params.columns));
  }
  params.diagonal = std::clamp(op.intAttribute("diagonal"), -params.rows - 1, params.columns);
  params.lower = lower;
  CUDAKernelFn kernel;
  kernel.functions = {{triangleKernel(dtypeSize(out.dtype))}};
  kernel.enqueue = [params](const CUDAWork &work, const TypedArgs &args) {
    TriangleParams run = params;
    run.from = args.operand(0).data;
    run.to = args.result().data;
    return work.launch(0, {{blocksFor(run.layout.count, copyBlock), 1, 1}, {copyBlock, 1, 1}}, run);
  };
  return kernel;
}

void cuda::addDataMovementKernels(CUDAExecutor &executor) {
  addKernel(executor, {.op = "cat", .make = makeCat});
  addKernel(executor, {.op = "stack", .make = makeStack});
  addKernel(executor, {.op = "repeat", .make = makeRepeat});
  addKernel(executor, {.op = "flip", .make = makeFlip});
  addKernel(executor, {.op = "roll", .make = makeRoll});
  addKernel(executor, {.op = "pad", .make = makePad});
  addKernel(executor, {.op = "tril", .make = [](const OpContext &op) {
                         return makeTriangle(op, /*lower=*/true);
                       }});
  addKernel(executor, {.op = "triu", .make = [](const OpContext &op) {
                         return makeTriangle(op, /*lower=*/false);
                       }});
}
