//===- FXOpsFixture.h - ATen graphs in, ops out -----------------*- C++ -*-===//

#pragma once

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/ImportFX.h"
#include "rondo/ir/Text.h"

#include "support/FXText.h"

#include <gtest/gtest.h>

namespace rondo::test {

inline constexpr const char *madeKeywords =
    R"("dtype":{"dtype":"float32"},"layout":{"repr":"torch.strided"},"device":{"device":"cuda"},"pin_memory":false)";

/// Imports graphs and prints the ops they become.
class FXOpsFixture : public testing::Test {
protected:
  FXOpsFixture() { llvm::cantFail(registerCoreOps(registry_)); }

  std::optional<TracePair> import(const std::string &file) {
    llvm::Expected<TracePair> pair = importFX(file, "test.json", registry_);
    if (pair)
      return std::move(*pair);
    ADD_FAILURE() << llvm::toString(pair.takeError());
    return std::nullopt;
  }

  /// The ops of one trace but for the `return`, as text: results without types, a line each.
  static std::string opsText(const Trace &trace) {
    std::string text;
    llvm::raw_string_ostream os(text);
    forEachOp(trace, [&](const Op &op) {
      if (!op.spec().terminator) {
        printOp(trace, op.id(), os);
        os << '\n';
      }
    });
    return os.str();
  }

  std::string forwardText(const FXText &forward) {
    std::optional<TracePair> pair = import(fxProgram(forward));
    return pair ? opsText(pair->forward()) : "";
  }

  OpRegistry registry_;
};

} // namespace rondo::test
