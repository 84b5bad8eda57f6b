//===- PassTesting.h - Text in, pass, text out ------------------*- C++ -*-===//
//
// The tests of one pass say what text becomes of what text:
//
//   class FoldTest : public PassTest {
//   protected:
//     FoldTest() : PassTest(createFoldPass) {}
//   };
//   TEST_F(FoldTest, Folds) { becomes("trace @f() {...}", "trace @f() {...}"); }
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"
#include "rondo/passes/PassManager.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace rondo {

/// Runs one pass, alone and verified before and after, on pairs that are given as text.
class PassTest : public ::testing::Test {
protected:
  explicit PassTest(std::function<std::unique_ptr<Pass>()> create) : create_(std::move(create)) {
    llvm::cantFail(registerCoreOps(registry));
  }

  /// Expects that the pass makes `after` of `before`, in its printed form, says that it changed
  /// something, and leaves `after` alone.
  void becomes(llvm::StringRef before, llvm::StringRef after) {
    std::string expected = normalise(after);
    EXPECT_EQ(run(before), expected);
    EXPECT_TRUE(hasChanged) << "the pass says that it changed nothing";
    leaves(expected);
  }

  /// Expects that the pass changes nothing, and says so.
  void leaves(llvm::StringRef text) {
    EXPECT_EQ(run(text), normalise(text));
    EXPECT_FALSE(hasChanged) << "the pass says that it changed something";
  }

  /// The printed form of the pair after the pass, or the text of the error. `text` must parse.
  std::string run(llvm::StringRef text) {
    hasChanged = false;
    std::optional<TracePair> pair = parse(text);
    if (!pair)
      return "";
    PassManager manager;
    manager.setCheckUnchanged(true);
    manager.add(create_());
    llvm::Expected<TracePair> result = manager.run(std::move(*pair));
    if (!result)
      return llvm::toString(result.takeError());
    hasChanged = manager.timings().back().changed;
    return printed(*result);
  }

  /// `text` as it is printed.
  std::string normalise(llvm::StringRef text) {
    std::optional<TracePair> pair = parse(text);
    return pair ? printed(*pair) : "";
  }

  static std::string printed(const TracePair &pair) {
    std::string text;
    llvm::raw_string_ostream os(text);
    print(pair, os);
    return os.str();
  }

  OpRegistry registry;
  bool hasChanged = false; ///< what the pass said in the last `run`

private:
  std::optional<TracePair> parse(llvm::StringRef text) {
    llvm::Expected<TracePair> pair = parsePair(text, "test", registry);
    if (pair)
      return std::move(*pair);
    ADD_FAILURE() << llvm::toString(pair.takeError());
    return std::nullopt;
  }

  std::function<std::unique_ptr<Pass>()> create_;
};

} // namespace rondo
