//===- TestPaths.h - Where tests find their files ---------------*- C++ -*-===//
//
// Where the files were when the tests were built, unless the environment says otherwise: a build
// that is carried elsewhere sets RONDO_TEST_DATA_DIR and RONDO_BIN_DIR.
//
//===----------------------------------------------------------------------===//

#pragma once

#include <cstdlib>
#include <string>

namespace rondo {

/// The folder tests/data.
inline std::string testDataDir() {
  const char *text = std::getenv("RONDO_TEST_DATA_DIR");
  return text && *text ? text : RONDO_TEST_DATA_DIR;
}

/// The folder of the tools.
inline std::string testBinDir() {
  const char *text = std::getenv("RONDO_BIN_DIR");
  return text && *text ? text : RONDO_BIN_DIR;
}

} // namespace rondo
