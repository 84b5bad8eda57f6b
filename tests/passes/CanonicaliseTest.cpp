//===- CanonicaliseTest.cpp - Views and copies in their simplest form -----===//

#include "rondo/passes/Passes.h"

#include "support/PassTesting.h"

#include <gmock/gmock.h>

using namespace rondo;
using ::testing::HasSubstr;

namespace {
class CanonicaliseTest : public PassTest {
protected:
  CanonicaliseTest() : PassTest(createCanonicalisePass) {}
};
} // namespace

//===----------------------------------------------------------------------===//
// Views that change nothing
//===----------------------------------------------------------------------===//

// A view with its operand's own type is its operand, for every kind of view.
TEST_F(CanonicaliseTest, RemovesIdentityViews) {
  becomes(R"(trace @f(%x: f32[4, 8]) {
            %a: f32[4, 8] = detach(%x)
            %b: f32[4, 8] = reshape(%a) {shape = [-1, 8]}
            %c: f32[4, 8] = permute(%b) {dims = [0, 1]}
            %d: f32[4, 8] = expand(%c) {shape = [4, -1]}
            %e: f32[4, 8] = slice(%d) {dim = 1}
            %f: f32[4, 8] = slice(%e) {dim = -1, end = 8, start = -8}
            %g: f32[4, 8] = squeeze(%f) {dims = [0]}
            %h: f32[4, 8] = split(%g) {sizes = [4]}
            %y: f32[4, 8] = exp(%h)
            return(%y)
          })",
          R"(trace @f(%x: f32[4, 8]) {
            %y: f32[4, 8] = exp(%x)
            return(%y)
          })");
}

// A view that moves, reorders or restrides something stays, even where the shape is the same.
TEST_F(CanonicaliseTest, KeepsViewsThatChangeSomething) {
  leaves(R"(trace @f(%x: f32[8, 8], %y: f32[1, 8]) {
    %a: f32[8, 8; 1, 8] = permute(%x) {dims = [1, 0]}
    %b: f32[7, 8; 8, 1] = slice(%x) {start = 1}
    %c: f32[8, 8; 0, 1] = expand(%y) {shape = [8, 8]}
    %d: f32[4, 8] , %e: f32[4, 8] = split(%x) {sizes = [4, 4]}
    %f: f32[8, 8] = as_strided(%x) {shape = [8, 8], strides = [8, 1]}
    return(%a, %b, %c, %d, %e, %f)
  })");
}

// An empty range that starts elsewhere is not taken for the whole.
TEST_F(CanonicaliseTest, KeepsSlicesThatStartElsewhere) {
  leaves(R"(trace @f(%x: f32[S, 8]) {
    %a: f32[S, 8] = slice(%x) {end = S+1, start = 1}
    return(%a)
  })");
}

// A view that the user gets is the user's either way: a name of the same storage.
TEST_F(CanonicaliseTest, RemovesReturnedIdentityViews) {
  becomes(R"(pair @p {
            forward @f(%x: f32[8]) {
              %a: f32[8] = exp(%x)
              %b: f32[8] = detach(%a)
              %c: f32[8] = detach(%x)
              return(%a, %b saved #0, %c)
            }
            backward @b(%b: f32[8] saved #0, %g: f32[8]) {
              %h: f32[8] = detach(%g)
              %r: f32[8] = mul(%h, %b)
              return(%r)
            }
          })",
          R"(pair @p {
            forward @f(%x: f32[8]) {
              %a: f32[8] = exp(%x)
              return(%a, %a saved #0, %x)
            }
            backward @b(%b: f32[8] saved #0, %g: f32[8]) {
              %r: f32[8] = mul(%g, %b)
              return(%r)
            }
          })");
}

// Through an identity view of it, a storage is written just the same.
TEST_F(CanonicaliseTest, RemovesIdentityViewsThatAreWritten) {
  becomes(R"(trace @f(%x: f32[8]) {
            %a: f32[8] = detach(%x)
            %b: f32[8] = zero_(%a)
            %c: f32[8] = detach(%b)
            %d: f32[8] = exp(%c)
            return(%d)
          })",
          R"(trace @f(%x: f32[8]) {
            %b: f32[8] = zero_(%x)
            %d: f32[8] = exp(%b)
            return(%d)
          })");
}

// A tag that the operand does not have would be lost.
TEST_F(CanonicaliseTest, KeepsTags) {
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[8] recompute = detach(%x)
    %b: f32[8] = exp(%a)
    return(%b)
  })");
  becomes(R"(trace @f(%x: f32[8] parameter) {
            %a: f32[8] parameter = detach(%x)
            %b: f32[8] = exp(%a)
            return(%b)
          })",
          R"(trace @f(%x: f32[8] parameter) {
            %b: f32[8] = exp(%x)
            return(%b)
          })");
}

//===----------------------------------------------------------------------===//
// Chains of views
//===----------------------------------------------------------------------===//

// A chain of reshapes is one; a view of it that has another use stays.
TEST_F(CanonicaliseTest, ComposesReshapes) {
  becomes(R"(trace @f(%x: f32[4, 16]) {
            %a: f32[2, 2, 16] = reshape(%x) {shape = [2, 2, 16]}
            %b: f32[64] = reshape(%a) {shape = [-1]}
            %c: f32[8, 8] = reshape(%b) {shape = [8, 8]}
            return(%c, %a)
          })",
          R"(trace @f(%x: f32[4, 16]) {
            %a: f32[2, 2, 16] = reshape(%x) {shape = [2, 2, 16]}
            %c: f32[8, 8] = reshape(%x) {shape = [8, 8]}
            return(%c, %a)
          })");
}

// `squeeze` and `unsqueeze` undo each other, and are reshapes in a chain of reshapes. Names, tags
// and places stay with the value.
TEST_F(CanonicaliseTest, ComposesSqueezes) {
  becomes(R"(trace @f(%x: f32[4, 8]) {
            %a: f32[4, 1, 8] = unsqueeze(%x) {dim = 1}
            %b: f32[4, 8] = squeeze(%a) {dims = [1]}
            %c: f32[32] = reshape(%b) {shape = [32]}
            %d: f32[1, 32] recompute = unsqueeze(%c) {dim = 0} module "m.d" loc("m.py":3:1)
            %e: f32[1, 32] = exp(%d)
            return(%e)
          })",
          R"(trace @f(%x: f32[4, 8]) {
            %d: f32[1, 32] recompute = reshape(%x) {shape = [1, 32]} module "m.d" loc("m.py":3:1)
            %e: f32[1, 32] = exp(%d)
            return(%e)
          })");
}

// Strides are kept exactly: where one reshape would give others for a dimension of size 1, the
// chain stays.
TEST_F(CanonicaliseTest, KeepsChainsWhoseStridesDiffer) {
  leaves(R"(trace @f(%x: f32[1, 4; 7, 1]) {
    %a: f32[4] = squeeze(%x) {dims = [0]}
    %b: f32[1, 4] = unsqueeze(%a) {dim = 0}
    return(%b)
  })");
}

// Permutations multiply, negative dimensions included; one that undoes the other leaves nothing.
TEST_F(CanonicaliseTest, ComposesPermutes) {
  becomes(R"(trace @f(%x: f32[2, 3, 4]) {
            %a: f32[3, 4, 2; 4, 1, 12] = permute(%x) {dims = [1, 2, 0]}
            %b: f32[2, 3, 4] = permute(%a) {dims = [-1, 0, 1]}
            %c: f32[4, 2, 3; 1, 12, 4] = permute(%a) {dims = [1, 2, 0]}
            %d: f32[2, 3, 4] = exp(%b)
            return(%d, %c)
          })",
          R"(trace @f(%x: f32[2, 3, 4]) {
            %c: f32[4, 2, 3; 1, 12, 4] = permute(%x) {dims = [2, 0, 1]}
            %d: f32[2, 3, 4] = exp(%x)
            return(%d, %c)
          })");
}

// An expansion of an expansion is one, also of a dimension that the first one kept.
TEST_F(CanonicaliseTest, ComposesExpands) {
  becomes(R"(trace @f(%x: f32[1, 1, 8]) {
            %a: f32[1, 4, 8; 8, 0, 1] = expand(%x) {shape = [-1, 4, -1]}
            %b: f32[2, 4, 8; 0, 0, 1] = expand(%a) {shape = [2, -1, -1]}
            return(%b)
          })",
          R"(trace @f(%x: f32[1, 1, 8]) {
            %b: f32[2, 4, 8; 0, 0, 1] = expand(%x) {shape = [2, 4, 8]}
            return(%b)
          })");
}

// Slices along one dimension add up: starts, steps, negative starts and clamped ends.
TEST_F(CanonicaliseTest, ComposesSlices) {
  becomes(R"(trace @f(%x: f32[100, 4]) {
            %a: f32[90, 4] = slice(%x) {start = 10}
            %b: f32[30, 4; 12, 1] = slice(%a) {step = 3}
            %c: f32[5, 4; 24, 1] = slice(%b) {dim = -2, start = -10, step = 2}
            return(%c)
          })",
          R"(trace @f(%x: f32[100, 4]) {
            %c: f32[5, 4; 24, 1] = slice(%x) {dim = 0, end = 95, start = 70, step = 6}
            return(%c)
          })");
}

// Slices along two dimensions, empty ones, and of symbolic sizes from their end, stay.
TEST_F(CanonicaliseTest, KeepsSlicesThatDoNotCompose) {
  leaves(R"(trace @f(%x: f32[8, 8], %y: f32[S]) {
    %a: f32[4, 8] = slice(%x) {end = 4}
    %b: f32[4, 4; 8, 1] = slice(%a) {dim = 1, end = 4}
    %c: f32[0, 8] = slice(%a) {end = 2, start = 3}
    %e: f32[S-2] = slice(%y) {start = 2}
    %f: f32[S-3] = slice(%e) {start = 1}
    return(%b, %c, %f)
  })");
}

// Views of different kinds do not compose.
TEST_F(CanonicaliseTest, KeepsMixedChains) {
  leaves(R"(trace @f(%x: f32[4, 1, 8]) {
    %a: f32[1, 4, 8; 8, 8, 1] = permute(%x) {dims = [1, 0, 2]}
    %b: f32[2, 4, 8; 0, 8, 1] = expand(%a) {shape = [2, 4, 8]}
    %c: f32[2, 2, 8; 0, 8, 1] = slice(%b) {dim = 1, end = 2}
    %d: f32[2, 16; 0, 1] = reshape(%c) {shape = [2, 16]}
    return(%d)
  })");
}

// With symbolic sizes the algebra is the same.
TEST_F(CanonicaliseTest, ComposesSymbolicReshapes) {
  becomes(R"(trace @f(%x: f32[B, S, 8]) {
            %a: f32[B*S, 8] = reshape(%x) {shape = [B*S, 8]}
            %b: f32[B, S, 2, 4] = reshape(%a) {shape = [B, S, 2, 4]}
            return(%b)
          })",
          R"(trace @f(%x: f32[B, S, 8]) {
            %b: f32[B, S, 2, 4] = reshape(%x) {shape = [B, S, 2, 4]}
            return(%b)
          })");
}

// A chain across a write: the later view is made of the new name, the write stays between.
TEST_F(CanonicaliseTest, StopsAtWrites) {
  leaves(R"(trace @f(%x: f32[4, 8]) {
    %a: f32[32] = reshape(%x) {shape = [32]}
    %b: f32[32] = zero_(%a)
    %c: f32[8, 4] = reshape(%b) {shape = [8, 4]}
    return(%c)
  })");
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

// A copy with its operand's own type is its operand, where nobody can tell.
TEST_F(CanonicaliseTest, RemovesCopiesThatNobodySees) {
  becomes(R"(trace @f(%x: f32[8]) {
            %a: f32[8] = cast(%x) {dtype = f32}
            %b: f32[8] = exp(%a)
            %c: f32[8] = contiguous(%b)
            %d: f32[8] = clone(%c)
            %e: f32[8] = to_device(%d) {device = host}
            return(%e)
          })",
          R"(trace @f(%x: f32[8]) {
            %b: f32[8] = exp(%x)
            return(%b)
          })");
}

// Copies that change dtype, strides or device stay.
TEST_F(CanonicaliseTest, KeepsCopiesThatChangeSomething) {
  leaves(R"(trace @f(%x: f32[2, 4; 1, 2]) {
    %a: bf16[2, 4] = cast(%x) {dtype = bf16}
    %b: f32[2, 4] = contiguous(%x)
    %c: f32[2, 4] = cast(%x) {dtype = f32}
    %d: f32[2, 4]@cuda:0 = to_device(%x) {device = cuda:0}
    %e: bf16[2] = sum(%a) {dims = [1]}
    %f: f32[2, 4] = mul(%b, %c)
    return(%d, %e, %f)
  })");
}

// The user gets a tensor of its own, not the argument that it passed.
TEST_F(CanonicaliseTest, KeepsCopiesOfArgumentsForTheUser) {
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[8] = clone(%x)
    %v: f32[2, 4] = reshape(%a) {shape = [2, 4]}
    return(%v)
  })");
}

// What is saved of an argument is what it was, whatever the user does to it before the backward.
TEST_F(CanonicaliseTest, KeepsSavedCopiesOfArguments) {
  leaves(R"(pair @p {
    forward @f(%w: f32[8] parameter) {
      %c: f32[8] = clone(%w)
      return(%c saved #0)
    }
    backward @b(%c: f32[8] saved #0) {
      %r: f32[8] = neg(%c)
      return(%r)
    }
  })");
}

// Of a value and copies of it, the user gets one tensor each; copies that stay inside go.
TEST_F(CanonicaliseTest, KeepsCopiesThatLeaveTogether) {
  becomes(R"(trace @f(%x: f32[8]) {
            %a: f32[8] = exp(%x)
            %b: f32[8] = clone(%a)
            %c: f32[8] = clone(%b)
            %d: f32[8] = clone(%a)
            %e: f32[8] = neg(%d)
            return(%b, %c, %e)
          })",
          R"(trace @f(%x: f32[8]) {
            %a: f32[8] = exp(%x)
            %c: f32[8] = clone(%a)
            %e: f32[8] = neg(%a)
            return(%a, %c, %e)
          })");
}

// A copy of a view of a removed copy: the storage is the first one, which the user gets.
TEST_F(CanonicaliseTest, FollowsStorageThroughRemovedCopies) {
  becomes(R"(trace @f(%x: f32[8]) {
            %a: f32[8] = exp(%x)
            %b: f32[8] = clone(%a)
            %v: f32[2, 4] = reshape(%b) {shape = [2, 4]}
            %c: f32[2, 4] = clone(%v)
            return(%a, %c)
          })",
          R"(trace @f(%x: f32[8]) {
            %a: f32[8] = exp(%x)
            %v: f32[2, 4] = reshape(%a) {shape = [2, 4]}
            %c: f32[2, 4] = clone(%v)
            return(%a, %c)
          })");
}

// A copy stays if it or its operand is written afterwards, here or in a body, by any name, or may
// be by an op with unknown effects.
TEST_F(CanonicaliseTest, KeepsCopiesOfStorageThatIsWritten) {
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[8] = exp(%x)
    %b: f32[8] = clone(%a)
    %c: f32[8] = zero_(%a)
    %d: f32[8] = mul(%b, %c)
    return(%d)
  })");
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[8] = exp(%x)
    %b: f32[8] = clone(%a)
    %v: f32[4] = slice(%b) {end = 4}
    %c: f32[4] = fused(%v) {
    ^(%v: f32[4]):
      %c: f32[4] = zero_(%v)
      return(%c)
    }
    %d: f32[8] = neg(%a)
    return(%c, %d)
  })");
  leaves(R"(trace @f(%x: f32[8]) {
    %b: f32[8] = clone(%x)
    "lib.f"()
    %d: f32[8] = neg(%b)
    return(%d)
  })");
}

// A write before the copy does not matter.
TEST_F(CanonicaliseTest, RemovesCopiesOfStorageThatWasWritten) {
  becomes(R"(trace @f(%x: f32[8]) {
            %a: f32[8] = exp(%x)
            %b: f32[8] = zero_(%a)
            %c: f32[8] = clone(%b)
            %d: f32[8] = neg(%c)
            return(%d)
          })",
          R"(trace @f(%x: f32[8]) {
            %a: f32[8] = exp(%x)
            %b: f32[8] = zero_(%a)
            %d: f32[8] = neg(%b)
            return(%d)
          })");
}

// A write to another argument may be one to this one, which the caller passed the same memory for.
TEST_F(CanonicaliseTest, KnowsThatArgumentsMayOverlap) {
  leaves(R"(trace @f(%x: f32[8], %y: f32[8]) {
    %a: f32[8] = clone(%x)
    %y2: f32[8] = zero_(%y)
    %b: f32[8] = neg(%a)
    return(%b)
  })");
}

// Two results of a region that name one storage inside are one storage outside as well: a copy of
// one stays if the other is written.
TEST_F(CanonicaliseTest, KnowsThatResultsOfARegionMayShareStorage) {
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[8], %v: f32[2, 4] = fused(%x) {
    ^(%x: f32[8]):
      %a: f32[8] = exp(%x)
      %v: f32[2, 4] = reshape(%a) {shape = [2, 4]}
      return(%a, %v)
    }
    %c: f32[8] = clone(%a)
    %v2: f32[2, 4] = zero_(%v)
    %d: f32[8] = neg(%c)
    return(%d, %v2)
  })");
}

//===----------------------------------------------------------------------===//
// Bodies, claims, degenerate traces
//===----------------------------------------------------------------------===//

// Inside bodies as outside; what a body returns is not the argument that it would have copied.
TEST_F(CanonicaliseTest, WorksInBodies) {
  becomes(R"(trace @f(%x: f32[8]) {
            %y: f32[8], %z: f32[8], %c: f32[8] = fused(%x) {
            ^(%x: f32[8]):
              %a: f32[2, 4] = reshape(%x) {shape = [2, 4]}
              %b: f32[8] = reshape(%a) {shape = [8]}
              %y: f32[8] = exp(%b)
              %z: f32[8] = detach(%x)
              %c: f32[8] = clone(%x)
              return(%y, %z, %c)
            }
            return(%y, %z, %c)
          })",
          R"(trace @f(%x: f32[8]) {
            %y: f32[8], %z: f32[8], %c: f32[8] = fused(%x) {
            ^(%x: f32[8]):
              %y: f32[8] = exp(%x)
              %c: f32[8] = clone(%x)
              return(%y, %x, %c)
            }
            return(%y, %z, %c)
          })");
}

// An op that someone claimed stays as it was claimed.
TEST_F(CanonicaliseTest, KeepsClaimedOps) {
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[2, 4] = reshape(%x) {shape = [2, 4]} claim("host")
    %b: f32[8] = reshape(%a) {shape = [8]}
    %c: f32[8] = detach(%x) claim("host")
    return(%b, %c)
  })");
}

// Views that nothing uses are not this pass's to remove, unless it is what they lost their use to.
TEST_F(CanonicaliseTest, KeepsViewsThatWereUnused) {
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[2, 4] = reshape(%x) {shape = [2, 4]}
    return()
  })");
}

// Traces without ops or results are left alone.
TEST_F(CanonicaliseTest, LeavesTrivialTraces) {
  leaves("trace @f() { return() }");
  leaves("trace @f(%x: f32[8]) { return(%x, none, %x) }");
}

// Claims are for ops as they were, and `del` ends names: both come later.
TEST_F(CanonicaliseTest, IsRefusedAfterClaimsAndDel) {
  EXPECT_THAT(run("trace @f() claimed { return() }"), HasSubstr("canonicalise"));
  EXPECT_THAT(run("trace @f() dels { return() }"), HasSubstr("canonicalise"));
}
