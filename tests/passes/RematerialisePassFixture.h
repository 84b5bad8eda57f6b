//===- RematerialisePassFixture.h - The pass on pairs as text ---*- C++ -*-===//

#pragma once

#include "support/PassTesting.h"

#include "rondo/passes/Rematerialise.h"

namespace rondo {

/// Runs the pass without a budget: what is tagged, or in a checkpoint, is recomputed.
class RematerialisePassFixture : public PassTest {
protected:
  RematerialisePassFixture() : PassTest([] { return createRematerializationPass(); }) {}

  /// A pair whose backward multiplies with %v, which is saved.
  static std::string pairOf(llvm::StringRef forward, llvm::StringRef argument = "f32[8]") {
    return ("pair @p {\n  forward @f(%x: f32[8], %s: f32[8] buffer) {\n" + forward +
            "    return(%y, %v saved #0)\n  }\n  backward @b(%v: " + argument +
            " saved #0, %g: f32[8]) {\n    %r: f32[8] = mul(%g, %v)\n    return(%r)\n  }\n}\n")
        .str();
  }
};

} // namespace rondo
