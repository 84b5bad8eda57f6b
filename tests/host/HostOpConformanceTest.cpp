//===- HostOpConformanceTest.cpp - The host's kernels against themselves --===//
//
// In f32, f16 and bf16 against f64, and in every layout against row-major.
//
//===----------------------------------------------------------------------===//

#include "support/OpConformance.h"

#include "support/OpCases.h"

#include "rondo/host/HostExecutor.h"

#include "llvm/ADT/StringSet.h"

#include <gmock/gmock.h>

using namespace rondo;

namespace {

const OpCases *findCases(llvm::StringRef op) {
  for (const OpCases &cases : opCaseTable())
    if (cases.op == op)
      return &cases;
  return nullptr;
}

// The table has exactly the core ops for which the host executor has a kernel, each once.
TEST(OpCaseTable, HasEveryOp) {
  HostExecutor executor;
  for (const auto &spec : coreOps().ops())
    EXPECT_EQ(findCases(spec->name) != nullptr, executor.find(spec->name) != nullptr) << spec->name;
  llvm::StringSet<> seen;
  for (const OpCases &cases : opCaseTable()) {
    EXPECT_TRUE(seen.insert(cases.op).second) << cases.op;
    EXPECT_NE(coreOps().lookup(cases.op), nullptr) << cases.op;
    EXPECT_FALSE(cases.dtypes.empty()) << cases.op;
  }
}

/// Has a tensor of the case `count` elements, or its result by the attribute `shape`?
bool mentionsCount(const OpCase &test, int64_t count) {
  auto isIt = [&](llvm::ArrayRef<int64_t> shape) { return countOf(shape) == count; };
  for (const Arg &arg : test.args)
    if (arg.isTensor() && isIt(arg.shape))
      return true;
  return llvm::any_of(test.attributes, [&](const AttributeInit &attribute) {
    auto shape = attribute.second.asInts();
    return !shape || (attribute.first == "shape" && isIt(*shape)) || test.args.empty();
  });
}

// Every op is run on no elements and on one, but for those that say why not.
TEST(OpCaseTable, HasTheDegenerateSizes) {
  for (const OpCases &cases : opCaseTable()) {
    std::vector<OpCase> tests = cases.cases();
    for (auto [name, count] : {std::pair("empty", 0), std::pair("one element", 1)}) {
      bool lacks = cases.lacks.find(name) != std::string::npos;
      bool has = llvm::any_of(tests, [&, name = name, count = count](const OpCase &test) {
        return test.name == name && mentionsCount(test, count);
      });
      EXPECT_NE(has, lacks) << cases.op << ": " << name;
    }
  }
}

/// Copies what is in operand 0 into the result, but for the last `numMissing` elements.
void copyRow(const HostArgs &args, int64_t numMissing) {
  const TensorRef &x = args.operand(0), &out = args.result();
  forEachElement(x.shape, x.strides, [&](int64_t i, int64_t offset) {
    if (i + numMissing >= x.numElements())
      return;
    int64_t place = 0, rest = i;
    for (unsigned d = x.rank(); d-- > 0; rest /= x.shape[d])
      place += rest % x.shape[d] * out.strides[d];
    out.as<float>()[place] = x.as<float>()[offset];
  });
}

/// What is said of `clone` in f32 by a kernel that does `run`.
std::vector<std::string> disagreementsOf(void (*run)(const HostArgs &)) {
  HostExecutor executor("mine");
  cantFail(executor.add(
      {.op = "clone", .make = [run](const OpContext &) -> HostKernelFn { return run; }}));
  return findDisagreements({hostOpTarget().device, {&executor}}, *findCases("clone"), DType::F32);
}

// What a kernel does wrong is noticed: a number that is off, an element that is left out, one that
// is written beside the result or between its elements, an operand that is changed. A kernel that
// does nothing wrong has no disagreements, and an op without a kernel has.
TEST(OpConformanceSuite, NoticesWhatIsWrong) {
  EXPECT_THAT(disagreementsOf([](const HostArgs &args) { copyRow(args, 0); }), testing::IsEmpty());
  auto expectNoticed = [](void (*run)(const HostArgs &), const char *text) {
    EXPECT_THAT(disagreementsOf(run), testing::Contains(testing::HasSubstr(text)));
  };
  expectNoticed(
      [](const HostArgs &args) {
        copyRow(args, 0);
        if (args.result().numElements() > 0)
          *args.result().as<float>() += 1e-3f;
      },
      "relative error");
  expectNoticed([](const HostArgs &args) { copyRow(args, 1); }, "nan, expected");
  expectNoticed(
      [](const HostArgs &args) {
        copyRow(args, 0);
        args.result().as<float>()[-1] = 0;
      },
      "bytes beside");
  expectNoticed(
      [](const HostArgs &args) {
        copyRow(args, 0);
        if (args.result().numElements() > 1)
          args.result().as<float>()[1] = *args.operand(0).as<float>();
      },
      "results with gaps: result 0: bytes between");
  expectNoticed(
      [](const HostArgs &args) {
        copyRow(args, 0);
        if (args.operand(0).numElements() > 0)
          *args.operand(0).as<float>() = 7;
      },
      "an operand that the op does not write");
  HostExecutor none("none");
  EXPECT_THAT(findDisagreements({hostOpTarget().device, {&none}}, *findCases("clone"), DType::F32),
              testing::Contains(testing::HasSubstr("no executor claims 'clone'; none: it has no")));
}

} // namespace

namespace rondo {
INSTANTIATE_TEST_SUITE_P(Host, OpConformance,
                         testing::ValuesIn(opConformanceTests({[] { return hostOpTarget(); }})),
                         opConformanceName);
} // namespace rondo
