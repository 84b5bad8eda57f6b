//===- CopyKernels.cpp - Copies, conversions and fills --------------------===//
//
// Ops whose result has the elements of one operand or one value, in place or not. Copies without
// conversion work for all dtypes.
//
//===----------------------------------------------------------------------===//

#include "Pointwise.h"

using namespace rondo;
using namespace rondo::host;

/// Declines a conversion from or to an 8-bit float.
static llvm::Error checkConversion(const OpContext &op, DType from) {
  return from == op.results()[0]->asTensor()->dtype ? llvm::Error::success() : checkDTypes(op);
}

/// A copy of operand `source` into the result.
template <unsigned source> static llvm::Expected<HostKernelFn> makeCopy(const OpContext &op) {
  if (llvm::Error error = checkConversion(op, op.tensor(source)->dtype))
    return error;
  return HostKernelFn(
      [](const HostArgs &args) { copyElements(args.operand(source), args.result()); });
}

/// One value everywhere: operand 1, a 0-d tensor or a host scalar, or the attribute `scalar`.
static llvm::Expected<HostKernelFn> makeFill(const OpContext &op) {
  if (const TensorType *value = op.tensor(1)) {
    if (llvm::Error error = checkConversion(op, value->dtype))
      return error;
    return HostKernelFn([](const HostArgs &args) { copyElements(args.operand(1), args.result()); });
  }
  if (llvm::Error error = checkDTypes(op))
    return error;
  if (const ScalarType *scalar = op.operand(1) ? op.operand(1)->asScalar() : nullptr)
    return HostKernelFn([dtype = scalarDType(scalar->kind)](const HostArgs &args) {
      copyElements(constantTensor({args.scalar(1), dtype}), args.result());
    });
  llvm::Expected<ScalarConstant> constant = ScalarConstant::get(op, "scalar");
  if (!constant)
    return constant.takeError();
  return HostKernelFn([value = *constant](const HostArgs &args) {
    copyElements(constantTensor(value), args.result());
  });
}

static llvm::Expected<HostKernelFn> makeZero(const OpContext &) {
  return HostKernelFn([](const HostArgs &args) { zeroElements(args.result()); });
}

void host::addCopyKernels(HostExecutor &executor) {
  for (const char *op : {"clone", "contiguous", "to_device", "cast"})
    addKernel(executor, {.op = op, .make = makeCopy<0>});
  addKernel(executor, {.op = "copy_", .make = makeCopy<1>});
  addKernel(executor, {.op = "fill_", .make = makeFill});
  addKernel(executor, {.op = "zero_", .make = makeZero});
}
