//===- HostEffectKernels.cpp - item and print -----------------------------===//
//
// print writes one line to llvm::errs(), which has no buffer that concurrent runs could share.
//
//===----------------------------------------------------------------------===//

#include "DTypeSupport.h"
#include "HostKernels.h"

#include "rondo/executors/PrintedLine.h"

#include "llvm/Support/raw_ostream.h"

using namespace rondo;
using namespace rondo::host;

/// The element `offset` elements from the first: as f64, boolean or i64, by the dtype.
static Slot readElement(const TensorRef &x, int64_t offset) {
  return dispatch(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T value = x.as<T>()[offset];
    Slot slot;
    if constexpr (std::is_same_v<T, bool>)
      slot.boolean = value;
    else if constexpr (isFloatElement<T>)
      slot.f64 = convert<double>(value);
    else
      slot.i64 = value;
    return slot;
  });
}

static llvm::Expected<HostKernelFn> makeItem(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return HostKernelFn(
      [](const HostArgs &args) { args.scalarResult() = readElement(args.operand(0), 0); });
}

static llvm::Expected<HostKernelFn> makePrint(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  std::string message = op.stringAttribute("message").str();
  if (const ScalarType *scalar = op.operand(0)->asScalar())
    return HostKernelFn([message, kind = scalar->kind](const HostArgs &args) {
      llvm::errs() << printedLine(message, kind, args.scalar(0));
    });
  return HostKernelFn([message](const HostArgs &args) {
    const TensorRef &x = args.operand(0);
    llvm::errs() << printedLine(message, x, [&](int64_t offset) { return readElement(x, offset); });
  });
}

void host::addHostEffectKernels(HostExecutor &executor) {
  addKernel(executor, {.op = "item", .make = makeItem, .synchronises = true});
  addKernel(executor, {.op = "print", .make = makePrint, .synchronises = true});
}
