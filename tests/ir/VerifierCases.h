//===- VerifierCases.h - Broken inputs and their sound twins ----*- C++ -*-===//
//
// Each case names the invariant that it breaks by its number at the top of ir/Verifier.cpp. A test
// compares the numbers of all cases with that list.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"
#include "rondo/ir/Verifier.h"

#include <gtest/gtest.h>

#include <vector>

namespace rondo::test {

/// A text that must be refused and one that must not, alike but for the fault.
struct TextCase {
  unsigned invariant;
  const char *name; ///< of the test
  const char *says; ///< what must hold
  const char *bad;
  /// Each must be in the diagnostics: `2:3: error: 'add' op ...`, `note: ...`.
  std::vector<const char *> messages;
  const char *good;
};
inline std::ostream &operator<<(std::ostream &os, const TextCase &c) {
  return os << c.says;
}

/// Core ops, and what tests of the verifier need besides.
struct VerifierTestBase {
  VerifierTestBase() { llvm::cantFail(registerCoreOps(registry)); }

  /// All diagnostics of reading and verifying `text`; empty if there are none.
  std::string diagnose(llvm::StringRef text) {
    text.consume_front("\n");
    llvm::Expected<TracePair> pair = parsePair(text, "t.trace", registry);
    return pair ? "" : llvm::toString(pair.takeError()) + "\n";
  }
  /// All diagnostics of `trace`.
  static std::string diagnose(const Trace &trace) {
    llvm::Error error = verify(trace);
    return error ? llvm::toString(std::move(error)) + "\n" : "";
  }

  OpRegistry registry;
};

class VerifierTextTest : public VerifierTestBase, public testing::TestWithParam<TextCase> {
public:
  void check() {
    std::string text = diagnose(GetParam().bad);
    for (const char *message : GetParam().messages)
      EXPECT_NE(text.find(message), std::string::npos) << "expected " << message << "\nin:\n"
                                                       << text;
    EXPECT_EQ(diagnose(GetParam().good), "");
  }
};

/// The invariants that the cases of each file break.
std::vector<unsigned> invariantsOfBodyCases();
std::vector<unsigned> invariantsOfStorageCases();
std::vector<unsigned> invariantsOfRegionCases();
std::vector<unsigned> invariantsOfStructureCases();

template <typename Cases> std::vector<unsigned> invariantsOf(const Cases &cases) {
  std::vector<unsigned> numbers;
  numbers.reserve(cases.size());
  for (const auto &c : cases)
    numbers.push_back(c.invariant);
  return numbers;
}
template <typename Case> std::string nameOf(const testing::TestParamInfo<Case> &info) {
  return info.param.name;
}

} // namespace rondo::test
