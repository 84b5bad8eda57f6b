//===- DataMovementKernels.cpp - Rearrangements ---------------------------===//
//
// Each op is a few copies between parts of tensors, which are tensors themselves: an address, sizes
// and strides. Works for all dtypes but where dtypes are converted.
//
//===----------------------------------------------------------------------===//

#include "Pointwise.h"

#include "rondo/executors/Shapes.h"

#include <algorithm>

using namespace rondo;
using namespace rondo::host;

namespace {

/// A part of a tensor. Borrows the tensor's memory, not its sizes.
class Part {
public:
  explicit Part(const TensorRef &tensor)
      : data_(tensor.as<std::byte>()), dtype_(tensor.dtype),
        shape_(tensor.shape.begin(), tensor.shape.end()),
        strides_(tensor.strides.begin(), tensor.strides.end()) {}

  TensorRef ref() const { return {data_, dtype_, shape_, strides_}; }
  /// `count` indices of dimension `dim` from `start` on.
  Part &slice(unsigned dim, int64_t start, int64_t count) {
    if (count > 0)
      advance(start * strides_[dim]);
    shape_[dim] = std::max<int64_t>(count, 0);
    return *this;
  }
  Part &select(unsigned dim, int64_t index) {
    slice(dim, index, 1);
    shape_.erase(shape_.begin() + dim);
    strides_.erase(strides_.begin() + dim);
    return *this;
  }
  Part &reverse(unsigned dim) {
    if (shape_[dim] > 0)
      advance((shape_[dim] - 1) * strides_[dim]);
    strides_[dim] = -strides_[dim];
    return *this;
  }

private:
  void advance(int64_t elements) {
    if (data_) // null where there are no elements
      data_ += elements * int64_t(dtypeSize(dtype_));
  }

  std::byte *data_;
  DType dtype_;
  llvm::SmallVector<int64_t, 5> shape_, strides_;
};

} // namespace

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

static llvm::Expected<HostKernelFn> makeCat(const OpContext &op) {
  if (llvm::Error error = checkConversions(op))
    return error;
  unsigned dim = wrapDim(op.intAttribute("dim"), op.results()[0]->asTensor()->rank());
  return HostKernelFn([dim](const HostArgs &args) {
    int64_t start = 0;
    for (unsigned i = 0; i < args.numOperands(); ++i) {
      const TensorRef &part = args.operand(i);
      if (part.numElements() == 0) { // maybe a vector among tensors of another rank
        if (part.rank() == args.result().rank())
          start += part.shape[dim];
        continue;
      }
      copyElements(part, Part(args.result()).slice(dim, start, part.shape[dim]).ref());
      start += part.shape[dim];
    }
  });
}

static llvm::Expected<HostKernelFn> makeStack(const OpContext &op) {
  if (llvm::Error error = checkConversions(op))
    return error;
  unsigned dim = wrapDim(op.intAttribute("dim"), op.results()[0]->asTensor()->rank());
  return HostKernelFn([dim](const HostArgs &args) {
    for (unsigned i = 0; i < args.numOperands(); ++i)
      copyElements(args.operand(i), Part(args.result()).select(dim, i).ref());
  });
}

//===----------------------------------------------------------------------===//
// Repeating and reordering
//===----------------------------------------------------------------------===//

static llvm::Expected<HostKernelFn> makeRepeat(const OpContext &) {
  return HostKernelFn([](const HostArgs &args) {
    const TensorRef &x = args.operand(0), &out = args.result();
    if (out.numElements() == 0)
      return;
    // Each dimension as two, copies and size.
    llvm::SmallVector<int64_t, 10> shape, outStrides, strides;
    for (unsigned d = 0, added = out.rank() - x.rank(); d < out.rank(); ++d) {
      int64_t size = d < added ? 1 : x.shape[d - added];
      shape.append({out.shape[d] / size, size});
      outStrides.append({size * out.strides[d], out.strides[d]});
      strides.append({0, d < added ? 0 : x.strides[d - added]});
    }
    copyElements({x.data, x.dtype, shape, strides}, {out.data, out.dtype, shape, outStrides});
  });
}

static llvm::Expected<HostKernelFn> makeFlip(const OpContext &op) {
  return HostKernelFn([dims = listedDims(op, "dims", op.tensor(0)->rank())](const HostArgs &args) {
    Part x(args.operand(0));
    for (unsigned dim : dims)
      x.reverse(dim);
    copyElements(x.ref(), args.result());
  });
}

/// Copies `from` to `to`, shifted by `shifts` along `dims`: as two parts along the first dimension,
/// each shifted along the others.
static void roll(const Part &from, const Part &to, llvm::ArrayRef<unsigned> dims,
                 llvm::ArrayRef<int64_t> shifts) {
  if (dims.empty())
    return copyElements(from.ref(), to.ref());
  unsigned dim = dims[0];
  int64_t size = from.ref().shape[dim];
  if (size == 0)
    return;
  int64_t shift = shifts[0] % size;
  if (shift < 0)
    shift += size;
  auto rollRest = [&](int64_t start, int64_t count, int64_t destination) {
    if (count > 0)
      roll(Part(from).slice(dim, start, count), Part(to).slice(dim, destination, count),
           dims.drop_front(), shifts.drop_front());
  };
  rollRest(0, size - shift, shift);
  rollRest(size - shift, shift, 0);
}

/// Row-major strides.
static llvm::SmallVector<int64_t, 5> denseStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 5> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d])
    strides[d] = stride;
  return strides;
}

/// As one vector, which takes a dense copy before and after.
static void rollFlat(const TensorRef &x, const TensorRef &out, int64_t shift) {
  int64_t count = x.numElements(), one = 1;
  if (count == 0)
    return;
  std::vector<std::byte> before(count * dtypeSize(x.dtype)), after(before.size());
  auto strides = denseStrides(x.shape);
  copyElements(x, {before.data(), x.dtype, x.shape, strides});
  roll(Part({before.data(), x.dtype, count, one}), Part({after.data(), x.dtype, count, one}), {0U},
       shift);
  copyElements({after.data(), x.dtype, x.shape, strides}, out);
}

static llvm::Expected<HostKernelFn> makeRoll(const OpContext &op) {
  auto shifts = constantDims(op.dimsAttribute("shifts"));
  if (op.dimsAttribute("dims").empty())
    return HostKernelFn([shift = shifts[0]](const HostArgs &args) {
      rollFlat(args.operand(0), args.result(), shift);
    });
  return HostKernelFn(
      [shifts, dims = listedDims(op, "dims", op.tensor(0)->rank())](const HostArgs &args) {
        roll(Part(args.operand(0)), Part(args.result()), dims, shifts);
      });
}

//===----------------------------------------------------------------------===//
// Borders
//===----------------------------------------------------------------------===//

static llvm::Expected<HostKernelFn> makePad(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  llvm::Expected<ScalarConstant> value = ScalarConstant::get(op, "value");
  if (!value)
    return value.takeError();
  auto pads = constantDims(op.dimsAttribute("pads"));
  return HostKernelFn([pads, value = *value](const HostArgs &args) {
    copyElements(constantTensor(value), args.result());
    Part from(args.operand(0)), to(args.result());
    for (size_t i = 0; i < pads.size() / 2; ++i) {
      unsigned dim = args.result().rank() - 1 - i;
      // Index j of the operand is index j + before of the result, where there is one.
      int64_t before = pads[2 * i], size = args.operand(0).shape[dim];
      int64_t begin = std::max<int64_t>(0, -before), end = std::min(size, size + pads[2 * i + 1]);
      from.slice(dim, begin, end - begin);
      to.slice(dim, begin + before, end - begin);
    }
    copyElements(from.ref(), to.ref());
  });
}

/// Row i keeps the columns up to i + diagonal (`lower`), or those from there on.
static llvm::Expected<HostKernelFn> makeTriangle(const OpContext &op, bool lower) {
  return HostKernelFn([lower, diagonal = op.intAttribute("diagonal")](const HostArgs &args) {
    const TensorRef &x = args.operand(0), &out = args.result();
    unsigned rank = x.rank();
    int64_t rows = x.shape[rank - 2], columns = x.shape[rank - 1];
    int64_t bounded = std::clamp(diagonal, -rows - 1, columns);
    zeroElements(out);
    for (int64_t row = 0; row < rows; ++row) {
      int64_t begin = lower ? 0 : std::clamp<int64_t>(row + bounded, 0, columns);
      int64_t end = lower ? std::clamp<int64_t>(row + bounded + 1, 0, columns) : columns;
      copyElements(Part(x).slice(rank - 2, row, 1).slice(rank - 1, begin, end - begin).ref(),
                   Part(out).slice(rank - 2, row, 1).slice(rank - 1, begin, end - begin).ref());
    }
  });
}

void host::addDataMovementKernels(HostExecutor &executor) {
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
