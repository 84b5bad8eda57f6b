//===- CUDATraceTesting.h - Traces of a GPU, from text ----------*- C++ -*-===//
//
// Texts say `$` for a CUDA device and `T` for a dtype: `%x: T[3, 4]$`.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/Text.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace rondo {

/// `text` on the first GPU with tensors of `dtype`.
inline std::string onCUDA(std::string text, llvm::StringRef dtype) {
  text = std::regex_replace(text, std::regex("\\$"), "@cuda:0");
  return std::regex_replace(text, std::regex("T\\["), dtype.str() + "[");
}

/// Its trace; an empty one after an error, which is one of the test.
inline Trace parseOnCUDA(std::string text, llvm::StringRef dtype, const OpRegistry &registry) {
  llvm::Expected<Trace> trace = parseTrace(onCUDA(std::move(text), dtype), "t.trace", registry);
  if (trace)
    return std::move(*trace);
  ADD_FAILURE() << llvm::toString(trace.takeError());
  return Trace(registry);
}
/// A trace of one op, and its arguments.
inline Trace parseOpOnCUDA(const std::string &arguments, const std::string &op,
                           llvm::StringRef dtype, const OpRegistry &registry) {
  return parseOnCUDA("trace @t(" + arguments + ") {\n  " + op + "\n  return()\n}", dtype, registry);
}

} // namespace rondo
