//===- CreationKernels.cpp - Tensors and scalars made from attributes -----===//

#include "ElementRows.h"
#include "Pointwise.h"

#include "rondo/executors/LoopNest.h"

using namespace rondo;
using namespace rondo::host;

static llvm::Expected<HostKernelFn> makeFull(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  llvm::Expected<ScalarConstant> value = ScalarConstant::get(op, "value");
  if (!value)
    return value.takeError();
  return HostKernelFn([value = *value](const HostArgs &args) {
    copyElements(constantTensor(value), args.result());
  });
}

static llvm::Expected<HostKernelFn> makeEmpty(const OpContext &) {
  return HostKernelFn([](const HostArgs &) {});
}

/// Element i is start + i * step: of integers exact, else in double. Converted to the dtype once.
template <typename C> static HostKernelFn arange(C start, C step) {
  return [start, step](const HostArgs &args) {
    const TensorRef &out = args.result();
    C row[rowCapacity];
    for (int64_t begin = 0, end = out.numElements(); begin < end; begin += rowCapacity) {
      int64_t n = std::min(rowCapacity, end - begin);
      for (int64_t i = 0; i < n; ++i)
        row[i] = wrapAdd(start, wrapMul(static_cast<C>(begin + i), step));
      storeRow<C>(row, out.dtype, out.data, begin * out.strides[0], out.strides[0], n);
    }
  };
}

static llvm::Expected<HostKernelFn> makeArange(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  std::optional<int64_t> start = op.attribute("start")->asInt(),
                         step = op.attribute("step")->asInt();
  if (start && step)
    return arange<int64_t>(*start, *step);
  return arange<double>(op.numberAttribute("start"), op.numberAttribute("step", 1));
}

static llvm::Expected<HostKernelFn> makeEye(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return HostKernelFn([](const HostArgs &args) {
    const TensorRef &out = args.result();
    zeroElements(out);
    int64_t one = 1;
    int64_t size = std::min(out.shape[0], out.shape[1]), stride = out.strides[0] + out.strides[1];
    copyElements({&one, DType::I64, {}, {}}, {out.data, out.dtype, {size}, {stride}});
  });
}

static llvm::Expected<HostKernelFn> makeConstant(const OpContext &op) {
  llvm::Expected<ScalarConstant> constant = ScalarConstant::get(op, "value");
  if (!constant)
    return constant.takeError();
  return HostKernelFn(
      [value = constant->value](const HostArgs &args) { args.scalarResult() = value; });
}

void host::addCreationKernels(HostExecutor &executor) {
  addKernel(executor, {.op = "full", .make = makeFull});
  addKernel(executor, {.op = "empty", .make = makeEmpty});
  addKernel(executor, {.op = "arange", .make = makeArange});
  addKernel(executor, {.op = "eye", .make = makeEye});
  addKernel(executor, {.op = "constant", .make = makeConstant});
}
