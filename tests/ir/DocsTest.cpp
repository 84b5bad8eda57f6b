//===- DocsTest.cpp - What the documents show must parse --------------------===//

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include "gtest/gtest.h"

using namespace rondo;

namespace {

struct Snippet {
  std::string place; ///< file:line
  std::string text;
};

/// The blocks between "```rondo" and "```" of a document.
std::vector<Snippet> snippetsOf(llvm::StringRef file, llvm::StringRef document) {
  std::vector<Snippet> snippets;
  llvm::SmallVector<llvm::StringRef, 0> lines;
  document.split(lines, '\n');
  bool isInside = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    llvm::StringRef line = lines[i].rtrim();
    if (isInside && line == "```")
      isInside = false;
    else if (isInside)
      snippets.back().text += (lines[i] + "\n").str();
    else if (line == "```rondo") {
      isInside = true;
      snippets.push_back({(file + ":" + llvm::Twine(i + 2)).str(), ""});
    }
  }
  EXPECT_FALSE(isInside) << file.str() << ": a block is not closed";
  return snippets;
}

std::vector<std::string> documents() {
  std::vector<std::string> files = {RONDO_SOURCE_DIR "/README.md"};
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(RONDO_SOURCE_DIR "/docs", error), end;
       !error && it != end; it.increment(error))
    if (llvm::StringRef(it->path()).take_back(3) == ".md")
      files.push_back(it->path());
  EXPECT_FALSE(error) << error.message();
  llvm::sort(files);
  return files;
}

std::string printed(const TracePair &pair) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(pair, os);
  return os.str();
}

// Blocks are found with their lines, and nothing else is.
TEST(DocsTest, SnippetsAreFound) {
  std::vector<Snippet> snippets =
      snippetsOf("d.md", "text\n```rondo\na\n b\n```\n```\nno\n```\n```rondo\n```\n");
  ASSERT_EQ(snippets.size(), 2u);
  EXPECT_EQ(snippets[0].place, "d.md:3");
  EXPECT_EQ(snippets[0].text, "a\n b\n");
  EXPECT_EQ(snippets[1].text, "");
}

// Every ```rondo block of the documents parses, verifies, and prints to a fixpoint.
TEST(DocsTest, SnippetsParse) {
  OpRegistry registry;
  llvm::cantFail(registerCoreOps(registry));
  size_t count = 0;
  for (const std::string &file : documents()) {
    auto buffer = llvm::MemoryBuffer::getFile(file);
    ASSERT_TRUE(bool(buffer)) << file;
    for (const Snippet &snippet : snippetsOf(file, (*buffer)->getBuffer())) {
      ++count;
      llvm::Expected<TracePair> pair = parsePair(snippet.text, "snippet", registry);
      if (!pair) {
        ADD_FAILURE() << snippet.place << "\n" << llvm::toString(pair.takeError());
        continue;
      }
      std::string once = printed(*pair);
      llvm::Expected<TracePair> again = parsePair(once, "snippet", registry);
      ASSERT_TRUE(bool(again)) << snippet.place << "\n" << llvm::toString(again.takeError());
      EXPECT_EQ(printed(*again), once) << snippet.place;
    }
  }
  EXPECT_GE(count, 3u) << "the documents lost their examples";
}

} // namespace
