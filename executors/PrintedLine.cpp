//===- PrintedLine.cpp - What the op print writes -------------------------===//

#include "rondo/executors/PrintedLine.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace rondo;

static constexpr int64_t maxPrinted = 1000;

static void printNumber(llvm::raw_ostream &os, ScalarKind kind, Slot slot) {
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

/// The first elements in row-major order.
static std::vector<std::string> elementTexts(const TensorRef &x,
                                             llvm::function_ref<Slot(int64_t)> read) {
  ScalarKind kind = isFloat(x.dtype)         ? ScalarKind::F64
                    : x.dtype == DType::Bool ? ScalarKind::Bool
                                             : ScalarKind::I64;
  std::vector<std::string> texts;
  forEachElement(x.shape, x.strides, [&](int64_t i, int64_t offset) {
    if (i >= maxPrinted)
      return;
    llvm::raw_string_ostream os(texts.emplace_back());
    printNumber(os, kind, read(offset));
  });
  return texts;
}

static void printTensor(llvm::raw_ostream &os, const TensorRef &x,
                        llvm::function_ref<Slot(int64_t)> read) {
  os << dtypeName(x.dtype) << '[';
  llvm::interleaveComma(x.shape, os);
  os << "] ";
  std::vector<std::string> texts = elementTexts(x, read);
  if (x.numElements() > maxPrinted) {
    llvm::interleaveComma(texts, os);
    os << ", ...";
    return;
  }
  const std::string *next = texts.data();
  printNested(os, x.shape, next);
}

static std::string lineOf(llvm::StringRef message,
                          llvm::function_ref<void(llvm::raw_ostream &)> print) {
  std::string line;
  llvm::raw_string_ostream os(line);
  if (!message.empty())
    os << message << ": ";
  print(os);
  os << '\n';
  return line;
}

std::string rondo::printedLine(llvm::StringRef message, ScalarKind kind, Slot value) {
  return lineOf(message, [&](llvm::raw_ostream &os) { printNumber(os, kind, value); });
}

std::string rondo::printedLine(llvm::StringRef message, const TensorRef &x,
                               llvm::function_ref<Slot(int64_t)> read) {
  return lineOf(message, [&](llvm::raw_ostream &os) { printTensor(os, x, read); });
}
