//===- DelPassTest.cpp - Where names end ----------------------------------===//

#include "rondo/passes/Passes.h"

#include "support/PassTesting.h"

#include <gmock/gmock.h>

using namespace rondo;
using ::testing::HasSubstr;

namespace {
class DelPassTest : public PassTest {
protected:
  DelPassTest() : PassTest(createDelPass) {}
};
} // namespace

// A value dies right after its last use, and one that is never used after its definition.
TEST_F(DelPassTest, EndsNamesAfterTheirLastUse) {
  becomes(R"(trace @f(%x: f32[8]) {
            %a: f32[8] = exp(%x)
            %b: f32[8] = neg(%a)
            %c: f32[8] = mul(%a, %b)
            %d: f32[8] = relu(%b)
            return(%d)
          })",
          R"(trace @f(%x: f32[8]) dels {
            %a: f32[8] = exp(%x)
            %b: f32[8] = neg(%a)
            %c: f32[8] = mul(%a, %b)
            del(%a, %c)
            %d: f32[8] = relu(%b)
            del(%b)
            return(%d)
          })");
}

// Values that die together are listed in order of definition, not of use.
TEST_F(DelPassTest, ListsInOrderOfDefinition) {
  becomes(R"(trace @f(%x: f32[8]) {
            %b: f32[8] = exp(%x)
            %a: f32[8] = neg(%x)
            %c: f32[8] = addcmul(%x, %a, %b)
            return(%c)
          })",
          R"(trace @f(%x: f32[8]) dels {
            %b: f32[8] = exp(%x)
            %a: f32[8] = neg(%x)
            %c: f32[8] = addcmul(%x, %a, %b)
            del(%b, %a)
            return(%c)
          })");
}

// Neither what is returned, once or twice, nor an argument is deleted, whether the caller keeps it
// or it is saved.
TEST_F(DelPassTest, KeepsArgumentsAndReturnedValues) {
  becomes(R"(pair @p {
            forward @f(%x: f32[8], %w: f32[8] parameter, %n: i64) {
              %a: f32[8] = mul(%x, %w)
              return(%a, %a saved #0)
            }
            backward @b(%a: f32[8] saved #0, %g: f32[8]) {
              %t: f32[8] = mul(%a, %g)
              %r: f32[8] = neg(%t)
              return(%r, %g, none)
            }
          })",
          R"(pair @p {
            forward @f(%x: f32[8], %w: f32[8] parameter, %n: i64) dels {
              %a: f32[8] = mul(%x, %w)
              return(%a, %a saved #0)
            }
            backward @b(%a: f32[8] saved #0, %g: f32[8]) dels {
              %t: f32[8] = mul(%a, %g)
              %r: f32[8] = neg(%t)
              del(%t)
              return(%r, %g, none)
            }
          })");
}

// Nothing to delete: the property is set, and nothing else changes.
TEST_F(DelPassTest, LeavesTrivialTraces) {
  EXPECT_EQ(run("trace @f() { return() }"), normalise("trace @f() dels { return() }"));
  EXPECT_FALSE(hasChanged);
  EXPECT_EQ(run("trace @f(%x: f32[8]) { return(%x) }"),
            normalise("trace @f(%x: f32[8]) dels { return(%x) }"));
  EXPECT_FALSE(hasChanged);
  leaves("trace @f() dels { return() }");
}

// Case 1: a region's result lives until its last use outside; there is no `del` of it inside.
TEST_F(DelPassTest, EndsRegionResultsOutside) {
  becomes(R"(pair @p { domain #0 "cuda-graph" forward @f(%x: f32[8]) claimed regions {
            %s: f32[] = cuda_graph(%x) {region = 0} domain #0 {
            ^(%x: f32[8]):
              %s: f32[] = sum(%x) claim("host")
              return(%s)
            }
            %i: f64 = item(%s) claim("host", uncapturable)
            return(%i)
          } })",
          R"(pair @p { domain #0 "cuda-graph" forward @f(%x: f32[8]) claimed regions dels {
            %s: f32[] = cuda_graph(%x) {region = 0} domain #0 {
            ^(%x: f32[8]):
              %s: f32[] = sum(%x) claim("host")
              return(%s)
            }
            %i: f64 = item(%s) claim("host", uncapturable)
            del(%s)
            return(%i)
          } })");
}

// Case 3: where a region ends the trace, its result is returned and not deleted.
TEST_F(DelPassTest, KeepsResultsOfTheLastRegion) {
  becomes(R"(pair @p { domain #0 "cuda-graph" forward @f(%x: f32[8]) claimed regions {
            %t: f32[8], %s: f32[] = cuda_graph(%x) {region = 0} domain #0 {
            ^(%x: f32[8]):
              %e: f32[8] = exp(%x) claim("host")
              %t: f32[8] = neg(%e) claim("host")
              %s: f32[] = sum(%t) claim("host")
              return(%t, %s)
            }
            return(%s)
          } })",
          R"(pair @p { domain #0 "cuda-graph" forward @f(%x: f32[8]) claimed regions dels {
            %t: f32[8], %s: f32[] = cuda_graph(%x) {region = 0} domain #0 {
            ^(%x: f32[8]):
              %e: f32[8] = exp(%x) claim("host")
              %t: f32[8] = neg(%e) claim("host")
              del(%e)
              %s: f32[] = sum(%t) claim("host")
              return(%t, %s)
            }
            del(%t)
            return(%s)
          } })");
}

// Inside bodies, at any depth, a body's own values die; its arguments are owned outside.
TEST_F(DelPassTest, WorksInBodies) {
  becomes(R"(trace @f(%p: bool, %x: f32[8]) {
            %t: f32[8] = exp(%x)
            %c: f32[8] = if(%p, %t) {
            ^(%t: f32[8]):
              %u: f32[8] = neg(%t)
              %c: f32[8] = fused(%u, %t) {
              ^(%u: f32[8], %t: f32[8]):
                %v: f32[8] = mul(%u, %t)
                %c: f32[8] = abs(%v)
                return(%c)
              }
              return(%c)
            } {
            ^(%t: f32[8]):
              return(%t)
            }
            return(%c)
          })",
          R"(trace @f(%p: bool, %x: f32[8]) dels {
            %t: f32[8] = exp(%x)
            %c: f32[8] = if(%p, %t) {
            ^(%t: f32[8]):
              %u: f32[8] = neg(%t)
              %c: f32[8] = fused(%u, %t) {
              ^(%u: f32[8], %t: f32[8]):
                %v: f32[8] = mul(%u, %t)
                %c: f32[8] = abs(%v)
                del(%v)
                return(%c)
              }
              del(%u)
              return(%c)
            } {
            ^(%t: f32[8]):
              return(%t)
            }
            del(%t)
            return(%c)
          })");
}

// A `del` ends a name, not a storage: a view dies on its own, before or after what it views, and a
// name that a write made stale dies at the write.
TEST_F(DelPassTest, EndsNamesNotStorage) {
  becomes(R"(trace @f(%x: f32[8]) {
            %a: f32[8] = exp(%x)
            %v: f32[2, 4] = reshape(%a) {shape = [2, 4]}
            %s: f32[2] = sum(%v) {dims = [1]}
            %a2: f32[8] = add_(%a, %x)
            %d: f32[8] = detach(%a2)
            return(%d, %s)
          })",
          R"(trace @f(%x: f32[8]) dels {
            %a: f32[8] = exp(%x)
            %v: f32[2, 4] = reshape(%a) {shape = [2, 4]}
            %s: f32[2] = sum(%v) {dims = [1]}
            del(%v)
            %a2: f32[8] = add_(%a, %x)
            del(%a)
            %d: f32[8] = detach(%a2)
            del(%a2)
            return(%d, %s)
          })");
}

// Scalars and generator states die like tensors.
TEST_F(DelPassTest, EndsValuesOfEveryType) {
  becomes(R"(trace @f(%x: f32[8]) {
            %s: rng = generator_read()
            %n: i64 = constant() {value = 3}
            %y: f32[8], %mask: bool[8] = dropout(%x, %s) {offset = 0, p = 0.5}
            %z: f32[8] = mul(%y, %n)
            generator_advance() {count = 8}
            return(%z)
          })",
          R"(trace @f(%x: f32[8]) dels {
            %s: rng = generator_read()
            %n: i64 = constant() {value = 3}
            %y: f32[8], %mask: bool[8] = dropout(%x, %s) {offset = 0, p = 0.5}
            del(%s, %mask)
            %z: f32[8] = mul(%y, %n)
            del(%n, %y)
            generator_advance() {count = 8}
            return(%z)
          })");
}

// In a trace that holds some `del`s, what is missing is added and what is there stays.
TEST_F(DelPassTest, CompletesDels) {
  becomes(R"(trace @f(%x: f32[8]) dels {
            %a: f32[8] = exp(%x)
            %b: f32[8] = neg(%x)
            %c: f32[8] = mul(%a, %b)
            del(%b)
            return(%c)
          })",
          R"(trace @f(%x: f32[8]) dels {
            %a: f32[8] = exp(%x)
            %b: f32[8] = neg(%x)
            %c: f32[8] = mul(%a, %b)
            del(%a)
            del(%b)
            return(%c)
          })");
}

// A registry without `del` gives an error, not a crash.
TEST_F(DelPassTest, NeedsTheOp) {
  OpRegistry bare;
  TracePair pair{Trace(bare, "f")};
  DiagnosticList diagnostics;
  llvm::Expected<PassResult> result = createDelPass()->run(pair, diagnostics);
  ASSERT_FALSE(bool(result));
  EXPECT_THAT(llvm::toString(result.takeError()), HasSubstr("does not have"));
}
