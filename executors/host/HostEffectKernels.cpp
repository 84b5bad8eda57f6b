//===- HostEffectKernels.cpp - item and print -----------------------------===//
//
// print writes one line to llvm::errs(), which has no buffer that concurrent runs could share:
//
//   loss: f32[2, 2] [[1, 2], [3, 4]]
//
// Of a tensor of more than 1000 elements it writes the first 1000 in row-major order, without
// brackets, and "...".
//
//===----------------------------------------------------------------------===//

#include "DTypeSupport.h"
#include "HostKernels.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace rondo;
using namespace rondo::host;

static llvm::Expected<HostKernelFn> makeItem(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  return HostKernelFn([](const HostArgs &args) {
    const TensorRef &x = args.operand(0);
    Slot &result = args.scalarResult();
    if (x.dtype == DType::Bool)
      result.boolean = *x.as<bool>();
    else if (isFloat(x.dtype))
      result.f64 = toDense<double>(x).front();
    else
      result.i64 = toDense<int64_t>(x).front();
  });
}

static constexpr size_t maxPrinted = 1000;

/// `[[1, 2], [3, 4]]`: the elements `text` of a tensor of `shape`, from `next` on.
static void printNested(llvm::raw_ostream &os, llvm::ArrayRef<int64_t> shape,
                        const std::string *&next) {
  if (shape.empty()) {
    os << *next++;
    return;
  }
  os << '[';
  for (int64_t i = 0; i < shape.front(); ++i) {
    if (i > 0)
      os << ", ";
    printNested(os, shape.drop_front(), next);
  }
  os << ']';
}

/// The elements in row-major order, six significant digits for floats.
static std::vector<std::string> elementTexts(const TensorRef &x) {
  std::vector<std::string> texts;
  auto add = [&](const auto &value) {
    std::string text;
    llvm::raw_string_ostream(text) << value;
    texts.push_back(std::move(text));
  };
  if (isFloat(x.dtype))
    for (double value : toDense<double>(x))
      add(llvm::format("%.6g", value));
  else if (x.dtype == DType::Bool)
    for (uint8_t value : toDense<uint8_t>(x))
      add(value ? "true" : "false");
  else
    for (int64_t value : toDense<int64_t>(x))
      add(value);
  return texts;
}

static void printTensor(llvm::raw_ostream &os, const TensorRef &x) {
  os << dtypeName(x.dtype) << '[';
  llvm::interleaveComma(x.shape, os);
  os << "] ";
  std::vector<std::string> texts = elementTexts(x);
  if (texts.size() > maxPrinted) {
    texts.resize(maxPrinted);
    llvm::interleaveComma(texts, os);
    os << ", ...";
    return;
  }
  const std::string *next = texts.data();
  printNested(os, x.shape, next);
}

static void printScalar(llvm::raw_ostream &os, ScalarKind kind, Slot slot) {
  switch (kind) {
  case ScalarKind::I64:
    os << slot.i64;
    break;
  case ScalarKind::F64:
    os << llvm::format("%.6g", slot.f64);
    break;
  case ScalarKind::Bool:
    os << (slot.boolean ? "true" : "false");
    break;
  }
}

static llvm::Expected<HostKernelFn> makePrint(const OpContext &op) {
  if (llvm::Error error = checkDTypes(op))
    return error;
  std::optional<ScalarKind> scalar;
  if (const ScalarType *type = op.operand(0)->asScalar())
    scalar = type->kind;
  return HostKernelFn(
      [scalar, message = op.stringAttribute("message").str()](const HostArgs &args) {
        std::string line;
        llvm::raw_string_ostream os(line);
        if (!message.empty())
          os << message << ": ";
        if (scalar)
          printScalar(os, *scalar, args.scalar(0));
        else
          printTensor(os, args.operand(0));
        os << '\n';
        llvm::errs() << os.str();
      });
}

void host::addHostEffectKernels(HostExecutor &executor) {
  addKernel(executor, {.op = "item", .make = makeItem, .synchronises = true});
  addKernel(executor, {.op = "print", .make = makePrint, .synchronises = true});
}
