//===- PassFixture.h - What tests of passes share ---------------*- C++ -*-===//

#pragma once

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"
#include "rondo/passes/PassManager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rondo {

/// A registry of core ops, and traces as text.
class PassFixture : public ::testing::Test {
protected:
  PassFixture() { llvm::cantFail(registerCoreOps(registry)); }

  TracePair parse(llvm::StringRef text) {
    llvm::Expected<TracePair> pair = parsePair(text, "test", registry);
    if (!pair) {
      ADD_FAILURE() << llvm::toString(pair.takeError());
      return TracePair(Trace(registry));
    }
    return std::move(*pair);
  }

  static std::string textOf(const TracePair &pair) {
    std::string text;
    llvm::raw_string_ostream os(text);
    print(pair, os);
    return os.str();
  }

  /// The text of the pair after `pass` ran alone on it, or the text of its error.
  std::string runPass(std::unique_ptr<Pass> pass, TracePair pair) {
    PassManager manager;
    manager.setCheckUnchanged(true);
    manager.add(std::move(pass));
    llvm::Expected<TracePair> result = manager.run(std::move(pair));
    changed = !manager.timings().empty() && manager.timings().back().changed;
    return result ? textOf(*result) : llvm::toString(result.takeError());
  }

  OpRegistry registry;
  bool changed = false; ///< what the last pass of `runPass` said
};

/// The value, or a default one and a failed test.
template <typename T> T unwrap(llvm::Expected<T> expected) {
  if (!expected) {
    ADD_FAILURE() << llvm::toString(expected.takeError());
    return T();
  }
  return std::move(*expected);
}

/// The message of an error, or "success".
template <typename T> std::string messageOf(llvm::Expected<T> expected) {
  return expected ? "success" : llvm::toString(expected.takeError());
}
inline std::string messageOf(llvm::Error error) {
  return error ? llvm::toString(std::move(error)) : "success";
}

} // namespace rondo
