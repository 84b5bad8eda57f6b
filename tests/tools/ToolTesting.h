//===- ToolTesting.h - Tools that are run as processes ----------*- C++ -*-===//

#pragma once

#include "support/TestPaths.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace rondo {

/// The folder of the recorded traces, with a slash.
inline const std::string traces = testDataDir() + "/traces/";

/// How a tool ended and what it wrote.
struct ToolOutcome {
  int code = -1;
  std::string out, err;
};

/// Runs one tool, in a folder of the test's own. The tool finds no GPU, whatever machine it runs
/// on.
class ToolTest : public testing::Test {
protected:
  explicit ToolTest(std::string tool) : tool_(std::move(tool)) {
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory(tool_, folder_));
    setenv("CUDA_VISIBLE_DEVICES", "", /*overwrite=*/1);
  }
  ~ToolTest() override { llvm::sys::fs::remove_directories(folder_); }

  std::string path(llvm::StringRef name) const { return (folder_ + "/" + name).str(); }
  void copyHere(llvm::StringRef name) const {
    EXPECT_FALSE(llvm::sys::fs::copy_file(traces + name.str(), path(name))) << name.str();
  }
  void write(llvm::StringRef name, llvm::StringRef text) const {
    std::error_code error;
    llvm::raw_fd_ostream(path(name), error) << text;
    EXPECT_FALSE(error);
  }
  static std::string textOf(const std::string &path) {
    auto text = llvm::MemoryBuffer::getFile(path);
    return text ? (*text)->getBuffer().str() : "";
  }

  ToolOutcome run(std::vector<std::string> arguments) const {
    std::string tool = testBinDir() + "/" + tool_, out = path("out"), err = path("err");
    arguments.insert(arguments.begin(), tool);
    std::vector<llvm::StringRef> texts(arguments.begin(), arguments.end());
    for (const std::string &old : {out, err}) // which would not be truncated
      llvm::sys::fs::remove(old);
    ToolOutcome outcome;
    outcome.code = llvm::sys::ExecuteAndWait(
        tool, texts, /*Env=*/{}, {llvm::StringRef(""), llvm::StringRef(out), llvm::StringRef(err)},
        /*SecondsToWait=*/300);
    outcome.out = textOf(out);
    outcome.err = textOf(err);
    return outcome;
  }

private:
  const std::string tool_;
  llvm::SmallString<128> folder_;
};

} // namespace rondo
