//===- VerifierStorageTest.cpp - Stale and deleted names --------------------===//

#include "VerifierCases.h"

using namespace rondo;
using namespace rondo::test;

static const std::vector<TextCase> cases = {
    {22,
     "OperandAfterWrite",
     "the operand of an in-place op is stale after it",
     R"(
trace @t(%x: f32[8], %b: f32[8]) {
  %x1: f32[8] = add_(%x, %b)
  %y: f32[8] = relu(%x)
  return(%y)
}
)",
     {"t.trace:3:3: error: 'relu' op operand #0 ('%x') is a stale name: its storage was written "
      "since",
      "t.trace:2:3: note: storage written here, through '%x'",
      "t.trace:2:3: note: the newest name of the storage is '%x1'"},
     R"(
trace @t(%x: f32[8], %b: f32[8]) {
  %x1: f32[8] = add_(%x, %b)
  %y: f32[8] = relu(%x1)
  return(%y)
}
)"},
    {22,
     "BaseAfterWriteThroughView",
     "the base of a view is stale after a write through the view",
     R"(
trace @t(%x: f32[8], %b: f32[4]) {
  %v: f32[4] = slice(%x) {dim = 0, end = 4}
  %v1: f32[4] = add_(%v, %b)
  %y: f32[8] = relu(%x)
  return(%y)
}
)",
     {"t.trace:4:3: error: 'relu' op operand #0 ('%x') is a stale name",
      "t.trace:3:3: note: storage written here, through '%v'",
      "t.trace:3:3: note: the newest name of the storage is '%v1'"},
     R"(
trace @t(%x: f32[8], %b: f32[4]) {
  %v: f32[4] = slice(%x) {dim = 0, end = 4}
  %v1: f32[4] = add_(%v, %b)
  %x1: f32[8; 1] = as_strided(%v1) {offset = 0, shape = [8], strides = [1]}
  %y: f32[8] = relu(%x1)
  return(%y)
}
)"},
    {22,
     "OtherViewAfterWrite",
     "other views of a storage are stale after a write through one",
     R"(
trace @t(%x: f32[8], %b: f32[4]) {
  %v: f32[4], %w: f32[4] = split(%x) {dim = 0, sizes = [4, 4]}
  %v1: f32[4] = add_(%v, %b)
  return(%v1, %w)
}
)",
     {"t.trace:4:3: error: 'return' op operand #1 ('%w') is a stale name",
      "t.trace:3:3: note: the newest name of the storage is '%v1'"},
     R"(
trace @t(%x: f32[8], %b: f32[4]) {
  %v: f32[4], %w: f32[4] = split(%x) {dim = 0, sizes = [4, 4]}
  %c: f32[4] = relu(%w)
  %v1: f32[4] = add_(%v, %b)
  return(%v1, %c)
}
)"},
    {22,
     "ViewOfOldNameIsAUse",
     "a view of a stale name is a use of it; later views are fresh",
     R"(
trace @t(%x: f32[8]) {
  %a: f32[8] = zero_(%x)
  %v: f32[8] = detach(%x)
  %y: f32[8] = relu(%v)
  return(%y)
}
)",
     {"t.trace:3:3: error: 'detach' op operand #0 ('%x') is a stale name"},
     R"(
trace @t(%x: f32[8]) {
  %v: f32[8] = detach(%x)
  %a: f32[8] = zero_(%v)
  %w: f32[8] = detach(%a)
  %y: f32[8] = relu(%w)
  return(%y, %a)
}
)"},
    {22,
     "ReturnOfOldName",
     "what is returned is no stale name",
     R"(
trace @t(%x: f32[8]) {
  %a: f32[8] = zero_(%x)
  return(%x)
}
)",
     {"t.trace:3:3: error: 'return' op operand #0 ('%x') is a stale name"},
     R"(
trace @t(%x: f32[8]) {
  %a: f32[8] = zero_(%x)
  return(%a)
}
)"},
    {22,
     "WrittenAgainByOldName",
     "a storage is written by its newest name; its views do for reading",
     R"(
trace @t(%x: f32[8]) {
  %v: f32[8] = detach(%x)
  %a: f32[8] = copy_(%x, %v)
  %b: f32[8] = copy_(%a, %v)
  return(%b)
}
)",
     {"t.trace:4:3: error: 'copy_' op operand #1 ('%v') is a stale name"},
     R"(
trace @t(%x: f32[8]) {
  %v: f32[8] = detach(%x)
  %a: f32[8] = copy_(%x, %v)
  %b: f32[8] = copy_(%a, %a)
  return(%b)
}
)"},
    {22,
     "SeveralStoragesAtOnce",
     "an optimiser step renames all that it writes",
     R"(
trace @t(%p: f32[8], %g: f32[8], %m: f32[8]) {
  %p1: f32[8], %m1: f32[8] = sgd_(%p, %g, %m) {lr = 0.1, momentum = 0.9}
  return(%p1, %m)
}
)",
     {"t.trace:3:3: error: 'return' op operand #1 ('%m') is a stale name",
      "t.trace:2:3: note: storage written here, through '%m'",
      "t.trace:2:3: note: the newest name of the storage is '%m1'"},
     R"(
trace @t(%p: f32[8], %g: f32[8], %m: f32[8]) {
  %p1: f32[8], %m1: f32[8] = sgd_(%p, %g, %m) {lr = 0.1, momentum = 0.9}
  return(%p1, %m1, %g)
}
)"},
    {22,
     "WriteInsideARegion",
     "a write inside a body makes the names outside stale",
     R"(
trace @t(%x: f32[8]) {
  %x1: f32[8] = fused(%x) {
  ^(%a: f32[8]):
    %b: f32[8] = zero_(%a)
    return(%b)
  }
  return(%x)
}
)",
     {"t.trace:7:3: error: 'return' op operand #0 ('%x') is a stale name",
      "t.trace:4:5: note: storage written here, through '%a'",
      "t.trace:2:3: note: the newest name of the storage is '%x1'"},
     R"(
trace @t(%x: f32[8]) {
  %x1: f32[8] = fused(%x) {
  ^(%a: f32[8]):
    %b: f32[8] = zero_(%a)
    return(%b)
  }
  return(%x1)
}
)"},
    {22,
     "UnnamedWriteInsideARegion",
     "a storage that a body writes and does not return has no name",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = fused(%x) {
  ^(%a: f32[8]):
    %b: f32[8] = zero_(%a)
    %c: f32[8] = relu(%b)
    return(%c)
  }
  return(%x, %y)
}
)",
     {"t.trace:8:3: error: 'return' op operand #0 ('%x') is a stale name",
      "t.trace:4:5: note: storage written here, through '%a'",
      "t.trace:4:5: note: the storage has no newer name in this body"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = fused(%x) {
  ^(%a: f32[8]):
    %b: f32[8] = zero_(%a)
    %c: f32[8] = relu(%b)
    return(%c)
  }
  return(%y)
}
)"},
    {22,
     "TwoArgumentsOfOneStorage",
     "arguments that are given one storage are two names of it",
     R"(
trace @t(%x: f32[8]) {
  %v: f32[8] = detach(%x)
  %x1: f32[8] = fused(%x, %v) {
  ^(%a: f32[8], %b: f32[8]):
    %c: f32[8] = zero_(%a)
    %d: f32[8] = add(%c, %b)
    return(%d)
  }
  return(%x1)
}
)",
     {"t.trace:6:5: error: 'add' op operand #1 ('%b') is a stale name",
      "t.trace:5:5: note: storage written here, through '%a'"},
     R"(
trace @t(%x: f32[8], %v: f32[8]) {
  %x1: f32[8] = fused(%x, %v) {
  ^(%a: f32[8], %b: f32[8]):
    %c: f32[8] = zero_(%a)
    %d: f32[8] = add(%c, %b)
    return(%d)
  }
  return(%x1)
}
)"},
    {22,
     "WriteInOneBranch",
     "a write in one branch is enough; the other branch does not see it",
     R"(
trace @t(%p: bool, %x: f32[8]) {
  %y: f32[8] = if(%p, %x) {
  ^(%a: f32[8]):
    %b: f32[8] = zero_(%a)
    return(%b)
  } {
  ^(%a: f32[8]):
    %b: f32[8] = relu(%a)
    return(%a)
  }
  %z: f32[8] = add(%x, %y)
  return(%z)
}
)",
     {"t.trace:11:3: error: 'add' op operand #0 ('%x') is a stale name",
      "t.trace:2:3: note: the newest name of the storage is '%y'"},
     R"(
trace @t(%p: bool, %x: f32[8]) {
  %y: f32[8] = if(%p, %x) {
  ^(%a: f32[8]):
    %b: f32[8] = zero_(%a)
    return(%b)
  } {
  ^(%a: f32[8]):
    %b: f32[8] = relu(%a)
    return(%a)
  }
  %z: f32[8] = add(%y, %y)
  return(%z)
}
)"},
    {22,
     "EitherOfTwoStorages",
     "a value that may name either of two storages stales both",
     R"(
trace @t(%p: bool, %x: f32[8], %y: f32[8]) {
  %z: f32[8] = if(%p, %x, %y) {
  ^(%a: f32[8], %b: f32[8]):
    return(%a)
  } {
  ^(%a: f32[8], %b: f32[8]):
    return(%b)
  }
  %w: f32[8] = zero_(%z)
  return(%x, %y, %w)
}
)",
     {"t.trace:10:3: error: 'return' op operand #0 ('%x') is a stale name",
      "t.trace:10:3: error: 'return' op operand #1 ('%y') is a stale name",
      "t.trace:9:3: note: storage written here, through '%z'"},
     R"(
trace @t(%p: bool, %x: f32[8], %y: f32[8]) {
  %z: f32[8] = if(%p, %x, %y) {
  ^(%a: f32[8], %b: f32[8]):
    return(%a)
  } {
  ^(%a: f32[8], %b: f32[8]):
    return(%a)
  }
  %w: f32[8] = zero_(%z)
  return(%y, %w)
}
)"},
    {22,
     "EitherWritten",
     "a value that may name either of two storages is stale after a write to one",
     R"(
trace @t(%p: bool, %x: f32[8], %y: f32[8]) {
  %z: f32[8] = if(%p, %x, %y) {
  ^(%a: f32[8], %b: f32[8]):
    return(%a)
  } {
  ^(%a: f32[8], %b: f32[8]):
    return(%b)
  }
  %w: f32[8] = zero_(%y)
  return(%z)
}
)",
     {"t.trace:10:3: error: 'return' op operand #0 ('%z') is a stale name"},
     R"(
trace @t(%p: bool, %x: f32[8], %y: f32[8]) {
  %z: f32[8] = if(%p, %x, %y) {
  ^(%a: f32[8], %b: f32[8]):
    return(%a)
  } {
  ^(%a: f32[8], %b: f32[8]):
    %c: f32[8] = relu(%b)
    return(%c)
  }
  %w: f32[8] = zero_(%y)
  return(%z)
}
)"},
    {22,
     "ResultsOfALoopThatSwaps",
     "results of a loop may name what was carried in another place",
     R"(
trace @t(%p: bool, %x: f32[8], %y: f32[8]) {
  %q: bool, %a: f32[8], %b: f32[8] = while(%p, %x, %y) {
  ^(%p: bool, %x: f32[8], %y: f32[8]):
    return(%p)
  } {
  ^(%p: bool, %x: f32[8], %y: f32[8]):
    return(%p, %y, %x)
  }
  %c: f32[8] = zero_(%a)
  return(%y, %c)
}
)",
     {"t.trace:10:3: error: 'return' op operand #0 ('%y') is a stale name"},
     R"(
trace @t(%p: bool, %x: f32[8], %y: f32[8]) {
  %q: bool, %a: f32[8], %b: f32[8] = while(%p, %x, %y) {
  ^(%p: bool, %x: f32[8], %y: f32[8]):
    return(%p)
  } {
  ^(%p: bool, %x: f32[8], %y: f32[8]):
    %z: f32[8] = relu(%x)
    return(%p, %z, %y)
  }
  %c: f32[8] = zero_(%a)
  return(%y, %b, %c)
}
)"},
    {23,
     "WriteOfExpandedView",
     "a value whose indices share elements is not written",
     R"(
trace @t(%x: f32[8, 1], %b: f32[8, 4]) {
  %v: f32[8, 4; 1, 0] = expand(%x) {shape = [8, 4]}
  %w: f32[8, 4; 1, 0] = add_(%v, %b)
  return(%w)
}
)",
     {"t.trace:3:3: error: 'add_' op operand #0 ('%v') is written but has type f32[8, 4; 1, 0], in "
      "which several indices share an element",
      "t.trace:2:3: note: '%v' of type f32[8, 4; 1, 0] is defined here"},
     R"(
trace @t(%x: f32[8, 1], %b: f32[8, 1]) {
  %v: f32[8, 1] = expand(%x) {shape = [8, 1]}
  %w: f32[8, 1] = add_(%v, %b)
  return(%w)
}
)"},
    {24,
     "LoopOfOneStorageTwice",
     "a loop that writes a storage does not carry it under two names",
     R"(
trace @t(%p: bool, %x: f32[8], %y: f32[8]) {
  %q: bool, %a: f32[8], %b: f32[8] = while(%p, %x, %y) {
  ^(%p: bool, %x: f32[8], %y: f32[8]):
    return(%p)
  } {
  ^(%p: bool, %x: f32[8], %y: f32[8]):
    %z: f32[8] = add_(%x, %y)
    return(%p, %z, %z)
  }
  return(%a, %b)
}
)",
     {"t.trace:8:5: error: 'return' op operand #2 ('%z') names the storage of operand #1; 'while' "
      "op writes what it carries as '%x' or '%y'",
      "t.trace:2:3: note: the op is here"},
     R"(
trace @t(%p: bool, %x: f32[8], %y: f32[8]) {
  %q: bool, %a: f32[8], %b: f32[8] = while(%p, %x, %y) {
  ^(%p: bool, %x: f32[8], %y: f32[8]):
    return(%p)
  } {
  ^(%p: bool, %x: f32[8], %y: f32[8]):
    %z: f32[8] = add_(%x, %y)
    return(%p, %y, %z)
  }
  return(%a, %b)
}
)"},
    {24,
     "LoopThatOnlyReads",
     "a loop that writes none of two names may carry them",
     R"(
trace @t(%p: bool, %x: f32[8], %y: f32[8]) {
  %q: bool, %a: f32[8], %b: f32[8] = while(%p, %x, %y) {
  ^(%p: bool, %x: f32[8], %y: f32[8]):
    return(%p)
  } {
  ^(%p: bool, %x: f32[8], %y: f32[8]):
    %w: f32[8] = zero_(%y)
    %v: f32[8] = detach(%x)
    return(%p, %x, %v)
  }
  return(%a, %b)
}
)",
     {"t.trace:9:5: error: 'return' op operand #2 ('%v') names the storage of operand #1"},
     R"(
trace @t(%p: bool, %x: f32[8], %y: f32[8]) {
  %q: bool, %a: f32[8], %b: f32[8] = while(%p, %x, %y) {
  ^(%p: bool, %x: f32[8], %y: f32[8]):
    return(%p)
  } {
  ^(%p: bool, %x: f32[8], %y: f32[8]):
    %v: f32[8] = detach(%x)
    return(%p, %x, %v)
  }
  return(%a, %b)
}
)"},
    {25,
     "UseAfterDel",
     "a name ends with its del; other names of the storage do not",
     R"(
trace @t(%x: f32[8]) dels {
  %y: f32[8] = relu(%x)
  del(%y)
  %z: f32[8] = exp(%y)
  return(%z)
}
)",
     {"t.trace:4:3: error: 'exp' op operand #0 ('%y') is used after it was deleted",
      "t.trace:3:3: note: '%y' is deleted here"},
     R"(
trace @t(%x: f32[8]) dels {
  %y: f32[8] = relu(%x)
  %v: f32[8] = detach(%y)
  del(%y)
  %z: f32[8] = exp(%v)
  del(%v, %x)
  return(%z)
}
)"},
    {25,
     "ReturnAfterDel",
     "what a body returns is not deleted in it",
     R"(
trace @t(%x: f32[8]) dels {
  %y: f32[8] = fused(%x) {
  ^(%x: f32[8]):
    %y: f32[8] = relu(%x)
    del(%y)
    return(%y)
  }
  return(%y)
}
)",
     {"t.trace:6:5: error: 'return' op operand #0 ('%y') is used after it was deleted",
      "t.trace:5:5: note: '%y' is deleted here"},
     R"(
trace @t(%x: f32[8]) dels {
  %y: f32[8] = fused(%x) {
  ^(%x: f32[8]):
    %t: f32[8] = exp(%x)
    %y: f32[8] = relu(%t)
    del(%t)
    return(%y)
  }
  return(%y)
}
)"},
    {26,
     "DeletedTwice",
     "a name is deleted once; stale names may be deleted",
     R"(
trace @t(%x: f32[8]) dels {
  %y: f32[8] = relu(%x)
  del(%y, %y)
  return(%x)
}
)",
     {"t.trace:3:3: error: 'del' op operand #1 ('%y') is deleted twice",
      "t.trace:3:3: note: '%y' is deleted here"},
     R"(
trace @t(%x: f32[8]) dels {
  %y: f32[8] = relu(%x)
  %z: f32[8] = zero_(%y)
  del(%y)
  return(%z)
}
)"},
    {26,
     "ArgumentDeletedInside",
     "an argument of a nested body has its owner outside",
     R"(
trace @t(%x: f32[8]) dels {
  %y: f32[8] = fused(%x) {
  ^(%x: f32[8]):
    %y: f32[8] = relu(%x)
    del(%x)
    return(%y)
  }
  return(%y)
}
)",
     {"t.trace:5:5: error: 'del' op operand #0 ('%x') is an argument of a nested body; its owner "
      "is "
      "outside"},
     R"(
trace @t(%x: f32[8]) dels {
  %y: f32[8] = fused(%x) {
  ^(%x: f32[8]):
    %y: f32[8] = relu(%x)
    return(%y)
  }
  del(%x)
  return(%y)
}
)"},
    {38,
     "OneGradientTwice",
     "a list of gradients that are written has each of them once",
     R"(
trace @t(%f: f32[], %i: f32[], %g: f32[4], %h: f32[4]) {
  %f1: f32[], %a: f32[4], %b: f32[4], %c: f32[4] = unscale_(%f, %i, %g, %h, %g)
  return(%f1, %a, %b, %c)
}
)",
     {"t.trace:2:3: error: 'unscale_' op operand #4 ('%g') shares memory with operand #2 ('%g'); "
      "the op writes both"},
     R"(
trace @t(%f: f32[], %i: f32[], %g: f32[4], %h: f32[4]) {
  %f1: f32[], %a: f32[4], %b: f32[4] = unscale_(%f, %i, %g, %h)
  return(%f1, %a, %b)
}
)"},
    {38,
     "GradientAndItsView",
     "nor has it one and a view of it",
     R"(
trace @t(%n: f32[], %g: f32[4, 2]) {
  %v: f32[8] = reshape(%g) {shape = [8]}
  %w: f32[2] = slice(%v) {dim = 0, start = 6}
  %a: f32[4, 2], %b: f32[2] = clip_(%n, %g, %w) {max_norm = 1.0}
  return(%a, %b)
}
)",
     {"t.trace:4:3: error: 'clip_' op operand #2 ('%w') shares memory with operand #1 ('%g'); the "
      "op writes both",
      "t.trace:3:3: note: '%w' of type f32[2] is defined here"},
     R"(
trace @t(%n: f32[], %g: f32[4, 2]) {
  %v: f32[8] = reshape(%g) {shape = [8]}
  %u: f32[6], %w: f32[2] = split(%v) {dim = 0, sizes = [6, 2]}
  %a: f32[6], %b: f32[2] = clip_(%n, %u, %w) {max_norm = 1.0}
  return(%a, %b)
}
)"},
    {38,
     "InterleavedViews",
     "columns lie among each other and share nothing, unless they are the same ones",
     R"(
trace @t(%n: f32[], %g: f32[4, 2]) {
  %v: f32[4; 2] = select(%g) {dim = 1, index = 1}
  %w: f32[4; 2] = select(%g) {dim = 1, index = -1}
  %a: f32[4; 2], %b: f32[4; 2] = clip_(%n, %v, %w) {max_norm = 1.0}
  return(%a, %b)
}
)",
     {"t.trace:4:3: error: 'clip_' op operand #2 ('%w') shares memory with operand #1 ('%v')"},
     R"(
trace @t(%n: f32[], %g: f32[4, 2]) {
  %v: f32[4; 2] = select(%g) {dim = 1, index = 1}
  %w: f32[4; 2] = select(%g) {dim = 1, index = 0}
  %a: f32[4; 2], %b: f32[4; 2] = clip_(%n, %v, %w) {max_norm = 1.0}
  return(%a, %b)
}
)"},
    {38,
     "StatesOfAnOptimizer",
     "a state of an optimiser is no other one; what is only read may be written too",
     R"(
trace @t(%p: f32[4], %g: f32[4], %m: f32[4], %s: f32[]) {
  %p1: f32[4], %m1: f32[4], %v1: f32[4] = adam_(%p, %g, %m, %m, %s) {lr = 0.1}
  return(%p1)
}
)",
     {"t.trace:2:3: error: 'adam_' op operand #3 ('%m') shares memory with operand #2 ('%m'); the "
      "op writes both"},
     R"(
trace @t(%p: f32[4], %m: f32[4], %v: f32[4], %s: f32[]) {
  %p1: f32[4], %m1: f32[4], %v1: f32[4] = adam_(%p, %p, %m, %v, %s) {lr = 0.1}
  return(%p1)
}
)"},
};

INSTANTIATE_TEST_SUITE_P(Storage, VerifierTextTest, testing::ValuesIn(cases), nameOf<TextCase>);

std::vector<unsigned> rondo::test::invariantsOfStorageCases() {
  return invariantsOf(cases);
}
