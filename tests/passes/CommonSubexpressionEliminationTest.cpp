//===- CommonSubexpressionEliminationTest.cpp - What may be merged --------===//

#include "rondo/passes/Passes.h"

#include "support/PassTesting.h"

#include <gmock/gmock.h>

using namespace rondo;
using ::testing::HasSubstr;

namespace {
class CommonSubexpressionEliminationTest : public PassTest {
protected:
  CommonSubexpressionEliminationTest() : PassTest(createCommonSubexpressionEliminationPass) {}
};
} // namespace

//===----------------------------------------------------------------------===//
// Equal ops
//===----------------------------------------------------------------------===//

// Equal ops become one, and so do ops that this makes equal, whatever their names.
TEST_F(CommonSubexpressionEliminationTest, MergesChains) {
  becomes(R"(trace @f(%x: f32[8]) {
            %a: f32[8] = exp(%x)
            %b: f32[8] = exp(%x)
            %c: f32[8] = clamp(%a) {max = 1.0}
            %d: f32[8] = clamp(%b) {max = 1.0}
            %e: f32[8] = mul(%c, %d)
            return(%e)
          })",
          R"(trace @f(%x: f32[8]) {
            %a: f32[8] = exp(%x)
            %c: f32[8] = clamp(%a) {max = 1.0}
            %e: f32[8] = mul(%c, %c)
            return(%e)
          })");
}

// Spec, operands, their order, attributes and result types all count.
TEST_F(CommonSubexpressionEliminationTest, KeepsDifferentOps) {
  leaves(R"(trace @f(%x: f32[2, 2], %y: f32[2, 2]) {
    %a: f32[2, 2] = exp(%x)
    %b: f32[2, 2] = exp(%y)
    %c: f32[2, 2; 1, 2] = exp(%x)
    %d: f32[2, 2] = expm1(%x)
    %e: f32[2] = sum(%x) {dims = [0]}
    %f: f32[2] = sum(%x) {dims = [1]}
    %g: f32[2, 2] = sub(%x, %y)
    %h: f32[2, 2] = sub(%y, %x)
    %i: f32[2, 2] = clamp(%x) {max = 1.0}
    %j: f32[2, 2] = clamp(%x) {min = 1.0}
    return()
  })");
}

// An attribute that is written out with its default is the same as one left out.
TEST_F(CommonSubexpressionEliminationTest, KnowsDefaults) {
  becomes(R"(trace @f(%x: f32[4, 8]) {
            %a: f32[4] = sum(%x) {dims = [1], keepdim = false}
            %b: f32[4] = sum(%x) {dims = [1]}
            %c: f32[4] = mul(%a, %b)
            return(%c)
          })",
          R"(trace @f(%x: f32[4, 8]) {
            %a: f32[4] = sum(%x) {dims = [1], keepdim = false}
            %c: f32[4] = mul(%a, %a)
            return(%c)
          })");
}

// The operands of a commutative op may be exchanged; those of `add` may not, since `alpha` goes
// with the second.
TEST_F(CommonSubexpressionEliminationTest, ExchangesOperandsOfCommutativeOps) {
  becomes(R"(trace @f(%x: f32[8], %y: f32[8]) {
            %a: f32[8] = mul(%x, %y)
            %b: f32[8] = mul(%y, %x)
            %c: f32[8] = sub(%a, %b)
            return(%c)
          })",
          R"(trace @f(%x: f32[8], %y: f32[8]) {
            %a: f32[8] = mul(%x, %y)
            %c: f32[8] = sub(%a, %a)
            return(%c)
          })");
  leaves(R"(trace @f(%x: f32[8], %y: f32[8]) {
    %a: f32[8] = add(%x, %y) {alpha = 2}
    %b: f32[8] = add(%y, %x) {alpha = 2}
    %c: f32[8] = sub(%a, %b)
    return(%c)
  })");
}

// All results of an op with several are replaced.
TEST_F(CommonSubexpressionEliminationTest, MergesAllResults) {
  becomes(R"(trace @f(%x: f32[4, 8]) {
            %n: f32[4, 8], %mean: f32[4, 1], %rstd: f32[4, 1] = layer_norm(%x) {normalized_shape = [8]}
            %0: f32[4, 8], %1: f32[4, 1], %2: f32[4, 1] = layer_norm(%x) {normalized_shape = [8]}
            %a: f32[4, 8] = mul(%n, %2)
            %b: f32[4, 8] = mul(%a, %1)
            return(%b)
          })",
          R"(trace @f(%x: f32[4, 8]) {
            %n: f32[4, 8], %mean: f32[4, 1], %rstd: f32[4, 1] = layer_norm(%x) {normalized_shape = [8]}
            %a: f32[4, 8] = mul(%n, %rstd)
            %b: f32[4, 8] = mul(%a, %mean)
            return(%b)
          })");
}

// Ops without operands are merged too: constants in memory and by value.
TEST_F(CommonSubexpressionEliminationTest, MergesConstants) {
  becomes(R"(trace @f(%x: f32[8]) {
            %a: f32[8] = full() {dtype = f32, shape = [8], value = 1}
            %b: f32[8] = full() {dtype = f32, shape = [8], value = 1}
            %m: i64 = constant() {value = 3}
            %n: i64 = constant() {value = 3}
            %c: f32[8] = addcmul(%x, %a, %b)
            %d: f32[8] = mul(%c, %m)
            %e: f32[8] = mul(%d, %n)
            return(%e)
          })",
          R"(trace @f(%x: f32[8]) {
            %a: f32[8] = full() {dtype = f32, shape = [8], value = 1}
            %m: i64 = constant() {value = 3}
            %c: f32[8] = addcmul(%x, %a, %a)
            %d: f32[8] = mul(%c, %m)
            %e: f32[8] = mul(%d, %m)
            return(%e)
          })");
}

// An absent operand equals an absent operand only.
TEST_F(CommonSubexpressionEliminationTest, TellsAbsentOperands) {
  becomes(R"(trace @f(%x: f32[4, 8], %w: f32[8]) {
            %0: f32[4, 8], %1: f32[4, 1], %2: f32[4, 1] = layer_norm(%x, none, %w) {normalized_shape = [8]}
            %3: f32[4, 8], %4: f32[4, 1], %5: f32[4, 1] = layer_norm(%x, %w) {normalized_shape = [8]}
            %6: f32[4, 8], %7: f32[4, 1], %8: f32[4, 1] = layer_norm(%x, none, %w) {normalized_shape = [8]}
            %a: f32[4, 8] = addcmul(%0, %3, %6)
            return(%a)
          })",
          R"(trace @f(%x: f32[4, 8], %w: f32[8]) {
            %0: f32[4, 8], %1: f32[4, 1], %2: f32[4, 1] = layer_norm(%x, none, %w) {normalized_shape = [8]}
            %3: f32[4, 8], %4: f32[4, 1], %5: f32[4, 1] = layer_norm(%x, %w) {normalized_shape = [8]}
            %a: f32[4, 8] = addcmul(%0, %3, %0)
            return(%a)
          })");
}

// Ops that differ in who executes them stay apart; equal claims do not.
TEST_F(CommonSubexpressionEliminationTest, ComparesClaims) {
  becomes(R"(trace @f(%x: f32[8]) claimed {
            %a: f32[8] = exp(%x) claim("host", workspace 64)
            %b: f32[8] = exp(%x) claim("host")
            %c: f32[8] = exp(%x) claim("host", workspace 64)
            %d: f32[8] = addcmul(%a, %b, %c) claim("host")
            return(%d)
          })",
          R"(trace @f(%x: f32[8]) claimed {
            %a: f32[8] = exp(%x) claim("host", workspace 64)
            %b: f32[8] = exp(%x) claim("host")
            %d: f32[8] = addcmul(%a, %b, %a) claim("host")
            return(%d)
          })");
}

// A value that is to be recomputed is not merged with one that is to be saved.
TEST_F(CommonSubexpressionEliminationTest, ComparesTags) {
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[8] = exp(%x)
    %b: f32[8] recompute = exp(%x)
    %c: f32[8] = mul(%a, %b)
    return(%c)
  })");
}

// A `return` only, with or without values, and ops without results are left alone.
TEST_F(CommonSubexpressionEliminationTest, LeavesTrivialTraces) {
  leaves("trace @f() { return() }");
  leaves("trace @f(%x: f32[8]) { return(%x, none, %x) }");
  leaves(R"(trace @f(%x: f32[8]) {
    print(%x)
    print(%x)
    return()
  })");
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

// Case 25: random ops are never merged, even with equal offsets, nor is reading the generator.
TEST_F(CommonSubexpressionEliminationTest, KeepsRandomOps) {
  leaves(R"(trace @f(%x: f32[8]) {
    %s: rng = generator_read()
    %r: rng = generator_read()
    %a: f32[8], %m: bool[8] = dropout(%x, %s) {offset = 0, p = 0.5}
    %b: f32[8], %n: bool[8] = dropout(%x, %s) {offset = 0, p = 0.5}
    %c: f32[8] = uniform(%r) {dtype = f32, offset = 8, shape = [8]}
    %d: f32[8] = uniform(%r) {dtype = f32, offset = 8, shape = [8]}
    generator_advance() {count = 16}
    return()
  })");
}

// The host's reads keep their order with what the host does; collectives are what ranks agreed on.
TEST_F(CommonSubexpressionEliminationTest, KeepsOpsWithResources) {
  leaves(R"(trace @f(%x: f32[]) {
    %i: f64 = item(%x)
    %j: f64 = item(%x)
    %a: f32[] = all_reduce(%x)
    %b: f32[] = all_reduce(%x)
    return(%i, %j)
  })");
}

// Nothing is known of an opaque op, so two are two.
TEST_F(CommonSubexpressionEliminationTest, KeepsOpaqueOps) {
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[8] = "lib.f"(%x)
    %b: f32[8] = "lib.f"(%x)
    return()
  })");
}

// Storages that are written in place are not merged, whichever of the two is written.
TEST_F(CommonSubexpressionEliminationTest, KeepsStorageThatIsWritten) {
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[8] = full() {dtype = f32, shape = [8], value = 0}
    %b: f32[8] = full() {dtype = f32, shape = [8], value = 0}
    %a2: f32[8] = add_(%a, %x)
    %c: f32[8] = mul(%a2, %b)
    return(%c)
  })");
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[8] = exp(%x)
    %b: f32[8] = exp(%x)
    %v: f32[2, 4] = reshape(%b) {shape = [2, 4]}
    %v2: f32[2, 4] = zero_(%v)
    %c: f32[2] = sum(%v2) {dims = [1]}
    return(%a, %c)
  })");
}

// A storage that an op with unknown effects, or a body, may write is not merged either.
TEST_F(CommonSubexpressionEliminationTest, KeepsStorageThatMayBeWritten) {
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[8] = exp(%x)
    %b: f32[8] = exp(%x)
    "lib.f"(%b)
    %c: f32[8] = mul(%a, %b)
    return(%c)
  })");
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[8] = exp(%x)
    %b: f32[8] = exp(%x)
    %b2: f32[8] = fused(%b) {
    ^(%b: f32[8]):
      %b2: f32[8] = zero_(%b)
      return(%b2)
    }
    %c: f32[8] = mul(%a, %b2)
    return(%c)
  })");
}

// Two views of one storage are one, also when the storage is written afterwards: both are stale
// then.
TEST_F(CommonSubexpressionEliminationTest, MergesViews) {
  becomes(R"(trace @f(%x: f32[8]) {
            %v: f32[2, 4] = reshape(%x) {shape = [2, 4]}
            %w: f32[2, 4] = reshape(%x) {shape = [2, 4]}
            %s: f32[2] = sum(%v) {dims = [1]}
            %w2: f32[2, 4] = zero_(%w)
            return(%s, %w2)
          })",
          R"(trace @f(%x: f32[8]) {
            %v: f32[2, 4] = reshape(%x) {shape = [2, 4]}
            %s: f32[2] = sum(%v) {dims = [1]}
            %w2: f32[2, 4] = zero_(%v)
            return(%s, %w2)
          })");
}

// After a write the storage has a new name: what is read by it is not what was read before.
TEST_F(CommonSubexpressionEliminationTest, KeepsReadsAroundWrites) {
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[8] = exp(%x)
    %x2: f32[8] = add_(%x, %a)
    %b: f32[8] = exp(%x2)
    %c: f32[8] = mul(%a, %b)
    return(%c)
  })");
}

// A write to one argument may be one to another, which the caller passed the same memory for; a
// write to storage that was made here is no write to an argument.
TEST_F(CommonSubexpressionEliminationTest, KnowsThatArgumentsMayOverlap) {
  leaves(R"(trace @f(%x: f32[8], %y: f32[8]) {
    %a: f32[8] = exp(%x)
    %y2: f32[8] = zero_(%y)
    %b: f32[8] = exp(%x)
    %c: f32[8] = mul(%a, %b)
    return(%c)
  })");
  becomes(R"(trace @f(%x: f32[8], %y: f32[8]) {
            %t: f32[8] = neg(%y)
            %a: f32[8] = exp(%x)
            %t2: f32[8] = add_(%t, %x)
            %b: f32[8] = exp(%x)
            %c: f32[8] = addcmul(%t2, %a, %b)
            return(%c)
          })",
          R"(trace @f(%x: f32[8], %y: f32[8]) {
            %t: f32[8] = neg(%y)
            %a: f32[8] = exp(%x)
            %t2: f32[8] = add_(%t, %x)
            %c: f32[8] = addcmul(%t2, %a, %a)
            return(%c)
          })");
}

// A scalar is no memory: nothing in between changes it.
TEST_F(CommonSubexpressionEliminationTest, MergesOpsOfScalarsAcrossWrites) {
  becomes(R"(trace @f(%x: f32[8], %n: f64) {
            %t: f32[8] = full() {dtype = f32, shape = [8], value = 2}
            %a: f32[8] = mul(%t, %n)
            %x2: f32[8] = add_(%x, %a)
            %b: f32[8] = mul(%t, %n)
            %x3: f32[8] = add_(%x2, %b)
            return()
          })",
          R"(trace @f(%x: f32[8], %n: f64) {
            %t: f32[8] = full() {dtype = f32, shape = [8], value = 2}
            %a: f32[8] = mul(%t, %n)
            %x2: f32[8] = add_(%x, %a)
            %x3: f32[8] = add_(%x2, %a)
            return()
          })");
}

// An op with unknown effects may write arguments, and what any such op was given; not what it
// cannot reach.
TEST_F(CommonSubexpressionEliminationTest, KnowsWhatOpaqueOpsReach) {
  becomes(R"(trace @f(%x: f32[8]) {
            %t: f32[8] = neg(%x)
            %u: f32[8] = abs(%x)
            "lib.keep"(%u)
            %a: f32[8] = exp(%t)
            %b: f32[8] = exp(%u)
            %c: f32[8] = exp(%x)
            %v: f32[2, 4] = reshape(%x) {shape = [2, 4]}
            "lib.touch"()
            %d: f32[8] = exp(%t)
            %e: f32[8] = exp(%u)
            %f: f32[8] = exp(%x)
            %w: f32[2, 4] = reshape(%x) {shape = [2, 4]}
            %g: f32[8] = addcmul(%a, %b, %c)
            %h: f32[8] = addcmul(%d, %e, %f)
            %i: f32[2, 4] = mul(%v, %w)
            return(%g, %h, %i)
          })",
          R"(trace @f(%x: f32[8]) {
            %t: f32[8] = neg(%x)
            %u: f32[8] = abs(%x)
            "lib.keep"(%u)
            %a: f32[8] = exp(%t)
            %b: f32[8] = exp(%u)
            %c: f32[8] = exp(%x)
            %v: f32[2, 4] = reshape(%x) {shape = [2, 4]}
            "lib.touch"()
            %e: f32[8] = exp(%u)
            %f: f32[8] = exp(%x)
            %w: f32[2, 4] = reshape(%x) {shape = [2, 4]}
            %g: f32[8] = addcmul(%a, %b, %c)
            %h: f32[8] = addcmul(%a, %e, %f)
            %i: f32[2, 4] = mul(%v, %w)
            return(%g, %h, %i)
          })");
}

//===----------------------------------------------------------------------===//
// What leaves the trace
//===----------------------------------------------------------------------===//

// Two results that the user gets stay two tensors, also if it gets them as views.
TEST_F(CommonSubexpressionEliminationTest, KeepsResultsOfTheUserApart) {
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[8] = exp(%x)
    %b: f32[8] = exp(%x)
    %v: f32[2, 4] = reshape(%b) {shape = [2, 4]}
    return(%a, %v)
  })");
}

// One result of the user and one that stays inside are one; a third, which the user gets too, is
// not merged into it.
TEST_F(CommonSubexpressionEliminationTest, MergesOneResultOfTheUser) {
  becomes(R"(trace @f(%x: f32[8]) {
            %a: f32[8] = exp(%x)
            %b: f32[8] = exp(%x)
            %c: f32[8] = exp(%x)
            %s: f32[] = sum(%a)
            return(%b, %s, %c)
          })",
          R"(trace @f(%x: f32[8]) {
            %a: f32[8] = exp(%x)
            %c: f32[8] = exp(%x)
            %s: f32[] = sum(%a)
            return(%a, %s, %c)
          })");
}

// Two names that the user gets of one storage may be one name.
TEST_F(CommonSubexpressionEliminationTest, MergesReturnedViews) {
  becomes(R"(trace @f(%x: f32[8]) {
            %v: f32[2, 4] = reshape(%x) {shape = [2, 4]}
            %w: f32[2, 4] = reshape(%x) {shape = [2, 4]}
            return(%v, %w)
          })",
          R"(trace @f(%x: f32[8]) {
            %v: f32[2, 4] = reshape(%x) {shape = [2, 4]}
            return(%v, %v)
          })");
}

// What is saved is not merged with what the user gets and may write before the backward runs.
TEST_F(CommonSubexpressionEliminationTest, KeepsSavedValuesFromTheUser) {
  leaves(R"(pair @p {
    forward @f(%x: f32[8]) {
      %a: f32[8] = exp(%x)
      %b: f32[8] = exp(%x)
      return(%a, %b saved #0)
    }
    backward @b(%b: f32[8] saved #0, %g: f32[8]) {
      %r: f32[8] = mul(%g, %b)
      return(%r)
    }
  })");
}

// Two values that are saved and only read are one, saved once; what the backward does with them is
// merged in turn.
TEST_F(CommonSubexpressionEliminationTest, SavesOnce) {
  becomes(R"(pair @p {
            forward @f(%x: f32[8]) {
              %a: f32[8] = exp(%x)
              %b: f32[8] = exp(%x)
              %y: f32[8] = mul(%a, %b)
              return(%a saved #4, %y, %b saved #7)
            }
            backward @b(%g: f32[8], %b: f32[8] saved #7, %a: f32[8] saved #4) {
              %p: f32[8] = mul(%g, %a)
              %q: f32[8] = mul(%b, %g)
              %r: f32[8] = add(%p, %q)
              return(%r)
            }
          })",
          R"(pair @p {
            forward @f(%x: f32[8]) {
              %a: f32[8] = exp(%x)
              %y: f32[8] = mul(%a, %a)
              return(%a saved #4, %y)
            }
            backward @b(%g: f32[8], %a: f32[8] saved #4) {
              %p: f32[8] = mul(%g, %a)
              %r: f32[8] = add(%p, %p)
              return(%r)
            }
          })");
}

// Values are saved apart if the backward writes or returns one of them.
TEST_F(CommonSubexpressionEliminationTest, SavesApartWhatTheBackwardWrites) {
  leaves(R"(pair @p {
    forward @f(%x: f32[8]) {
      %a: f32[8] = exp(%x)
      %b: f32[8] = exp(%x)
      return(%a saved #0, %b saved #1)
    }
    backward @b(%a: f32[8] saved #0, %b: f32[8] saved #1, %g: f32[8]) {
      %r: f32[8] = mul_(%a, %g)
      %q: f32[8] = mul(%r, %b)
      return(%q)
    }
  })");
  leaves(R"(pair @p {
    forward @f(%x: f32[8]) {
      %a: f32[8] = exp(%x)
      %b: f32[8] = exp(%x)
      return(%a saved #0, %b saved #1, %x saved #2, %x saved #3)
    }
    backward @b(%a: f32[8] saved #0, %b: f32[8] saved #1, %x: f32[8] saved #2,
                %x2: f32[8] parameter saved #3) {
      %q: f32[8] = addcmul(%b, %x, %x2)
      return(%a, %q)
    }
  })");
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

// Each body is a scope of its own: equal ops merge inside one, not across.
TEST_F(CommonSubexpressionEliminationTest, MergesInsideBodies) {
  becomes(R"(trace @f(%p: bool, %x: f32[8]) {
            %a: f32[8] = exp(%x)
            %c: f32[8] = if(%p, %x, %a) {
            ^(%x: f32[8], %a: f32[8]):
              %b: f32[8] = exp(%x)
              %c: f32[8] = exp(%x)
              %d: f32[8] = addcmul(%a, %b, %c)
              return(%d)
            } {
            ^(%x: f32[8], %a: f32[8]):
              %b: f32[8] = exp(%x)
              return(%b)
            }
            return(%c)
          })",
          R"(trace @f(%p: bool, %x: f32[8]) {
            %a: f32[8] = exp(%x)
            %c: f32[8] = if(%p, %x, %a) {
            ^(%x: f32[8], %a: f32[8]):
              %b: f32[8] = exp(%x)
              %d: f32[8] = addcmul(%a, %b, %b)
              return(%d)
            } {
            ^(%x: f32[8], %a: f32[8]):
              %b: f32[8] = exp(%x)
              return(%b)
            }
            return(%c)
          })");
}

// What a body returns under two names stays two storages: outside, one may be written.
TEST_F(CommonSubexpressionEliminationTest, KeepsResultsOfBodiesApart) {
  leaves(R"(trace @f(%x: f32[8]) {
    %a: f32[8], %b: f32[8] = fused(%x) {
    ^(%x: f32[8]):
      %a: f32[8] = exp(%x)
      %b: f32[8] = exp(%x)
      return(%a, %b)
    }
    %a2: f32[8] = zero_(%a)
    return(%a2, %b)
  })");
}

// Ops with bodies are not merged themselves; their operands follow what was merged outside.
TEST_F(CommonSubexpressionEliminationTest, KeepsOpsWithBodies) {
  becomes(R"(trace @f(%x: f32[8]) {
            %a: f32[8] = exp(%x)
            %b: f32[8] = exp(%x)
            %c: f32[8] = fused(%a, %b) {
            ^(%a: f32[8], %b: f32[8]):
              %c: f32[8] = mul(%a, %b)
              return(%c)
            }
            %d: f32[8] = fused(%a, %b) {
            ^(%a: f32[8], %b: f32[8]):
              %c: f32[8] = mul(%a, %b)
              return(%c)
            }
            %e: f32[8] = mul(%c, %d)
            return(%e)
          })",
          R"(trace @f(%x: f32[8]) {
            %a: f32[8] = exp(%x)
            %c: f32[8] = fused(%a, %a) {
            ^(%a: f32[8], %b: f32[8]):
              %c: f32[8] = mul(%a, %b)
              return(%c)
            }
            %d: f32[8] = fused(%a, %a) {
            ^(%a: f32[8], %b: f32[8]):
              %c: f32[8] = mul(%a, %b)
              return(%c)
            }
            %e: f32[8] = mul(%c, %d)
            return(%e)
          })");
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

// After `del` a merged value might be used by a name that has ended.
TEST_F(CommonSubexpressionEliminationTest, IsRefusedAfterDel) {
  EXPECT_THAT(run("trace @f() dels { return() }"), HasSubstr("cse"));
  EXPECT_FALSE(hasChanged);
}
