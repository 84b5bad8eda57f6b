//===- DeadCodeEliminationTest.cpp - What goes, and what must stay --------===//

#include "rondo/passes/Passes.h"

#include "support/PassTesting.h"

#include <gmock/gmock.h>

using namespace rondo;
using ::testing::HasSubstr;

namespace {
class DeadCodeEliminationTest : public PassTest {
protected:
  DeadCodeEliminationTest() : PassTest(createDeadCodeEliminationPass) {}
};
} // namespace

//===----------------------------------------------------------------------===//
// Ops without effects
//===----------------------------------------------------------------------===//

// An unused op goes, and so does what only it used.
TEST_F(DeadCodeEliminationTest, RemovesChains) {
  becomes(R"(trace @f(%x: f32[8]) {
            %a: f32[8] = exp(%x)
            %b: f32[8] = neg(%a)
            %c: f32[8] = abs(%x)
            return(%c)
          })",
          R"(trace @f(%x: f32[8]) {
            %c: f32[8] = abs(%x)
            return(%c)
          })");
}

// An op of which one of several results is used stays.
TEST_F(DeadCodeEliminationTest, KeepsOpsWithOneUsedResult) {
  leaves(R"(trace @f(%x: f32[4, 8]) {
    %n: f32[4, 8], %mean: f32[4, 1], %rstd: f32[4, 1] = layer_norm(%x) {normalized_shape = [8]}
    return(%rstd)
  })");
}

// Arguments are the caller's signature: unused ones stay, scalars and generators too.
TEST_F(DeadCodeEliminationTest, KeepsArguments) {
  leaves("trace @f(%x: f32[8], %n: i64, %s: rng) { return() }");
}

// A trace of a `return` only, with and without values, is left alone.
TEST_F(DeadCodeEliminationTest, LeavesTrivialTraces) {
  leaves("trace @f() { return() }");
  leaves("trace @f(%x: f32[8]) { return(%x, none, %x) }");
}

// An unused view, which launches nothing, goes too.
TEST_F(DeadCodeEliminationTest, RemovesViews) {
  becomes("trace @f(%x: f32[8]) { %v: f32[2, 4] = reshape(%x) {shape = [2, 4]} return() }",
          "trace @f(%x: f32[8]) { return() }");
}

// In a claimed trace dead ops go as anywhere; claims of the others stay.
TEST_F(DeadCodeEliminationTest, WorksOnClaimedTraces) {
  becomes(R"(trace @f(%x: f32[8]) claimed {
            %a: f32[8] = exp(%x) claim("host")
            %b: f32[8] = neg(%x) claim("host")
            return(%b)
          })",
          R"(trace @f(%x: f32[8]) claimed {
            %b: f32[8] = neg(%x) claim("host")
            return(%b)
          })");
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

// What the backward does not need is not saved, nor computed in order to be saved.
TEST_F(DeadCodeEliminationTest, DropsLinksThatTheBackwardDoesNotUse) {
  becomes(R"(pair @p {
            forward @f(%x: f32[8]) {
              %a: f32[8] = exp(%x)
              %m: f32[8] = neg(%x)
              return(%a, %m saved #0, %a saved #1)
            }
            backward @b(%m: f32[8] saved #0, %a: f32[8] saved #1, %g: f32[8]) {
              %u: f32[8] = mul(%g, %m)
              %r: f32[8] = mul(%g, %a)
              return(%r)
            }
          })",
          R"(pair @p {
            forward @f(%x: f32[8]) {
              %a: f32[8] = exp(%x)
              return(%a, %a saved #1)
            }
            backward @b(%a: f32[8] saved #1, %g: f32[8]) {
              %r: f32[8] = mul(%g, %a)
              return(%r)
            }
          })");
}

// Every link may go; an argument that is not saved stays though nothing uses it.
TEST_F(DeadCodeEliminationTest, DropsAllLinks) {
  becomes(R"(pair @p {
            forward @f(%x: f32[8], %n: i64) {
              %a: f32[8] = exp(%x)
              %b: f32[8] = neg(%x)
              return(%b, %a saved #0, %n saved #1, %x saved #2)
            }
            backward @b(%a: f32[8] saved #0, %n: i64 saved #1, %g: f32[8], %x: f32[8] saved #2) {
              return(none)
            }
          })",
          R"(pair @p {
            forward @f(%x: f32[8], %n: i64) {
              %b: f32[8] = neg(%x)
              return(%b)
            }
            backward @b(%g: f32[8]) { return(none) }
          })");
}

// A saved value that the backward returns, or reads in a nested body, stays.
TEST_F(DeadCodeEliminationTest, KeepsLinksThatTheBackwardUses) {
  leaves(R"(pair @p {
    forward @f(%x: f32[8]) {
      %a: f32[8] = exp(%x)
      %b: f32[8] = neg(%x)
      return(%a saved #0, %b saved #1)
    }
    backward @b(%a: f32[8] saved #0, %b: f32[8] saved #1) {
      %c: f32[8] = fused(%b) {
      ^(%b: f32[8]):
        %c: f32[8] = abs(%b)
        return(%c)
      }
      return(%a, %c)
    }
  })");
}

// What the user gets stays, whatever the backward needs.
TEST_F(DeadCodeEliminationTest, KeepsWhatTheUserGets) {
  leaves(R"(pair @p {
    forward @f(%x: f32[8]) {
      %a: f32[8] = exp(%x)
      return(%a)
    }
    backward @b(%g: f32[8]) { return(%g) }
  })");
}

//===----------------------------------------------------------------------===//
// Writes
//===----------------------------------------------------------------------===//

// A write to an argument is what the caller called for, through a view as well.
TEST_F(DeadCodeEliminationTest, KeepsWritesToArguments) {
  leaves(R"(trace @f(%x: f32[8], %y: f32[8]) {
    %x2: f32[8] = add_(%x, %y)
    %v: f32[4] = slice(%y) {end = 4}
    %v2: f32[4] = zero_(%v)
    return()
  })");
}

// A write to storage made here that nothing looks at afterwards goes, with all it wrote.
TEST_F(DeadCodeEliminationTest, RemovesWritesThatNothingReads) {
  becomes(R"(trace @f(%x: f32[8]) {
            %t: f32[8] = full() {dtype = f32, shape = [8], value = 0}
            %t2: f32[8] = add_(%t, %x)
            %v: f32[4] = slice(%t2) {end = 4}
            %v2: f32[4] = zero_(%v)
            %y: f32[8] = exp(%x)
            return(%y)
          })",
          R"(trace @f(%x: f32[8]) {
            %y: f32[8] = exp(%x)
            return(%y)
          })");
}

// A write to storage made here stays when it is read or returned afterwards, by whichever name.
TEST_F(DeadCodeEliminationTest, KeepsWritesThatAreRead) {
  leaves(R"(trace @f(%x: f32[8]) {
    %t: f32[8] = full() {dtype = f32, shape = [8], value = 0}
    %v: f32[4] = slice(%t) {end = 4}
    %v2: f32[4] = fill_(%v) {scalar = 1}
    %w: f32[8] = as_strided(%v2) {shape = [8], strides = [1]}
    %y: f32[8] = mul(%w, %x)
    %u: f32[8] = exp(%x)
    %u2: f32[8] = add_(%u, %y)
    return(%u2)
  })");
}

// A read before the write does not keep the write: the name is stale afterwards.
TEST_F(DeadCodeEliminationTest, RemovesWritesAfterTheLastRead) {
  becomes(R"(trace @f(%x: f32[8]) {
            %t: f32[8] = exp(%x)
            %y: f32[8] = neg(%t)
            %t2: f32[8] = zero_(%t)
            return(%y)
          })",
          R"(trace @f(%x: f32[8]) {
            %t: f32[8] = exp(%x)
            %y: f32[8] = neg(%t)
            return(%y)
          })");
}

// A write to storage that may be an argument's stays: the `if` may have given that.
TEST_F(DeadCodeEliminationTest, KeepsWritesToWhatMayBeAnArgument) {
  leaves(R"(trace @f(%p: bool, %x: f32[8]) {
    %t: f32[8] = full() {dtype = f32, shape = [8], value = 0}
    %c: f32[8] = if(%p, %x, %t) {
    ^(%x: f32[8], %t: f32[8]):
      return(%x)
    } {
    ^(%x: f32[8], %t: f32[8]):
      return(%t)
    }
    %d: f32[8] = zero_(%c)
    return()
  })");
}

//===----------------------------------------------------------------------===//
// Resources
//===----------------------------------------------------------------------===//

// The generator is advanced even though nothing draws any more; what was drawn for nothing goes.
TEST_F(DeadCodeEliminationTest, KeepsTheGeneratorAdvancing) {
  becomes(R"(trace @f(%x: f32[8]) {
            %s: rng = generator_read()
            %y: f32[8], %mask: bool[8] = dropout(%x, %s) {offset = 0, p = 0.5}
            generator_advance() {count = 8}
            return(%x)
          })",
          R"(trace @f(%x: f32[8]) {
            generator_advance() {count = 8}
            return(%x)
          })");
}

// A collective takes part in what other ranks do; it stays, used or not.
TEST_F(DeadCodeEliminationTest, KeepsCollectives) {
  leaves(R"(trace @f(%x: f32[8]) {
    %y: f32[8] = all_reduce(%x)
    return()
  })");
}

// Waiting for the device is no purpose in itself; printing is.
TEST_F(DeadCodeEliminationTest, RemovesUnusedItemsButNotPrints) {
  becomes(R"(trace @f(%x: f32[]) {
            %i: f64 = item(%x)
            print(%x)
            return()
          })",
          R"(trace @f(%x: f32[]) {
            print(%x)
            return()
          })");
}

// Nothing is known of an opaque op: it stays, and so does every write to storage that it was given,
// which it may look at when it is called again.
TEST_F(DeadCodeEliminationTest, KeepsOpaqueOpsAndWritesTheyMaySee) {
  leaves(R"(trace @f(%x: f32[8]) {
    %t: f32[8] = exp(%x)
    "lib.keep"(%t)
    %t2: f32[8] = zero_(%t)
    %u: f32[8] = "lib.look"()
    return()
  })");
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

// Dead ops inside a region go; its operands and results stay, used or not.
TEST_F(DeadCodeEliminationTest, RemovesOpsInBodies) {
  becomes(R"(pair @p { domain #0 "cuda-graph" forward @f(%x: f32[8], %y: f32[8]) regions {
            %a: f32[8], %b: f32[8] = cuda_graph(%x, %y) {inputs = ["auto", "static"], region = 0} domain #0 {
            ^(%x: f32[8], %y: f32[8]):
              %a: f32[8] = exp(%x)
              %b: f32[8] = neg(%x)
              %t: f32[8] = abs(%y)
              %t2: f32[8] = add_(%t, %x)
              return(%a, %b)
            }
            return(%a)
          } })",
          R"(pair @p { domain #0 "cuda-graph" forward @f(%x: f32[8], %y: f32[8]) regions {
            %a: f32[8], %b: f32[8] = cuda_graph(%x, %y) {inputs = ["auto", "static"], region = 0} domain #0 {
            ^(%x: f32[8], %y: f32[8]):
              %a: f32[8] = exp(%x)
              %b: f32[8] = neg(%x)
              return(%a, %b)
            }
            return(%a)
          } })");
}

// An op whose bodies have no effect that matters goes when none of its results is used.
TEST_F(DeadCodeEliminationTest, RemovesOpsWithBodies) {
  becomes(R"(trace @f(%p: bool, %x: f32[8]) {
            %c: f32[8] = if(%p, %x) {
            ^(%x: f32[8]):
              %a: f32[8] = exp(%x)
              return(%a)
            } {
            ^(%x: f32[8]):
              return(%x)
            }
            return()
          })",
          "trace @f(%p: bool, %x: f32[8]) { return() }");
}

// An op whose body writes an argument, or a resource, stays with all that the write needs; also at
// depth two.
TEST_F(DeadCodeEliminationTest, KeepsEffectsInBodies) {
  leaves(R"(trace @f(%x: f32[8]) {
    fused(%x) {
    ^(%x: f32[8]):
      fused(%x) {
      ^(%x: f32[8]):
        %a: f32[8] = exp(%x)
        %x2: f32[8] = add_(%x, %a)
        return()
      }
      return()
    }
    fused() {
      generator_advance() {count = 8}
      return()
    }
    return()
  })");
}

// A body that writes storage which was made in the trace and which nothing reads again goes, with
// the storage.
TEST_F(DeadCodeEliminationTest, RemovesBodiesThatWriteDeadStorage) {
  becomes(R"(trace @f(%x: f32[8]) {
            %t: f32[8] = exp(%x)
            fused(%t) {
            ^(%t: f32[8]):
              %t2: f32[8] = zero_(%t)
              return()
            }
            return()
          })",
          "trace @f(%x: f32[8]) { return() }");
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

// Where `del`s are placed it is too late.
TEST_F(DeadCodeEliminationTest, IsRefusedAfterDel) {
  EXPECT_THAT(run("trace @f() dels { return() }"), HasSubstr("dce"));
  EXPECT_FALSE(hasChanged);
}
