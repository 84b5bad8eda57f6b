//===- RegionEditTest.cpp - Making, splitting and dissolving regions --------===//

#include "rondo/ir/RegionEdit.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"
#include "rondo/ir/Verifier.h"

#include "llvm/ADT/STLExtras.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace rondo;
using ::testing::ElementsAre;

namespace {

const char *const chain = "trace @t(%x: f32[4], %w: f32[4] parameter) {\n"
                          "  %a: f32[4] = exp(%x) module \"m.0\"\n"
                          "  %b: f32[4] = mul(%a, %w) module \"m.1\"\n"
                          "  %c: f32[4] = sin(%b) module \"m.1\"\n"
                          "  %d: f32[4] = add(%c, %a) module \"m.10\"\n"
                          "  return(%d, %b)\n"
                          "}\n";

class RegionEditTest : public ::testing::Test {
protected:
  RegionEditTest() { llvm::cantFail(registerCoreOps(registry)); }

  Trace parse(llvm::StringRef text) {
    llvm::Expected<Trace> trace = parseTrace(text, "test", registry);
    if (!trace) {
      ADD_FAILURE() << llvm::toString(trace.takeError());
      return Trace(registry);
    }
    return std::move(*trace);
  }

  /// Outlines as the transform does: with domain, region id and policies.
  std::vector<OpId> outline(Trace &trace, llvm::ArrayRef<RegionRange> ranges) {
    std::vector<OpId> regions =
        outlineRegions(trace, Trace::topBody(), ranges, *registry.lookup(core::cudaGraphOp));
    for (size_t i = 0; i < regions.size(); ++i) {
      trace.setDomain(regions[i], domain);
      trace.setAttribute(regions[i], "region", int64_t(i));
      Attribute::List inputs;
      for (ValueId operand : trace.op(regions[i]).operands())
        inputs.push_back(any(trace.tags(operand) & staticTags) ? "static" : "auto");
      trace.setAttribute(regions[i], "inputs", std::move(inputs));
    }
    trace.setProperties(TraceProperties::HasRegions);
    return regions;
  }

  static std::string textOf(const Trace &trace) {
    std::string text;
    llvm::raw_string_ostream os(text);
    print(trace, os);
    return os.str();
  }

  static void expectSound(const Trace &trace) {
    llvm::Error error = verify(trace);
    EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error)) << textOf(trace);
  }

  static std::vector<std::string> names(const Trace &trace, llvm::ArrayRef<ValueId> values) {
    std::vector<std::string> names;
    for (ValueId value : values)
      names.push_back(trace.name(value).str());
    return names;
  }

  static std::vector<std::string> opNames(const Trace &trace, BodyId body = Trace::topBody()) {
    std::vector<std::string> names;
    for (OpId op : trace.ops(body))
      names.push_back(trace.op(op).name().str());
    return names;
  }

  OpRegistry registry;
  CaptureDomainRef domain = CaptureDomain::create("test");
};

// Inputs come in order of first use, results in order of definition; ids of what moved are kept,
// and outside a new value takes the name.
TEST_F(RegionEditTest, OutlineOrdersInputsAndResults) {
  Trace trace = parse(chain);
  std::vector<OpId> before = trace.ops().vec();
  ValueId b = trace.op(before[1]).result();
  OpId region = outline(trace, {{1, 4}}).front();
  expectSound(trace);
  const Op &op = trace.op(region);
  EXPECT_THAT(names(trace, op.operands()), ElementsAre("a", "w"));
  EXPECT_THAT(names(trace, op.results()), ElementsAre("b", "d"));
  EXPECT_THAT(opNames(trace, op.bodies().front()), ElementsAre("mul", "sin", "add", "return"));
  EXPECT_EQ(trace.ops(op.bodies().front())[0], before[1]);
  EXPECT_EQ(trace.op(before[1]).result(), b);
  EXPECT_NE(op.result(0), b);
}

// Two regions in one sweep: the second takes what the first gives.
TEST_F(RegionEditTest, OutlineSeveralRanges) {
  Trace trace = parse(chain);
  std::vector<OpId> regions = outline(trace, {{0, 2}, {2, 4}});
  expectSound(trace);
  EXPECT_EQ(trace.op(regions[1]).operand(0), trace.op(regions[0]).result(1));
  EXPECT_THAT(opNames(trace), ElementsAre("cuda_graph", "cuda_graph", "return"));
}

// The region's module path is what its ops have in common, by whole parts: m.1 and m.10 share m.
TEST_F(RegionEditTest, OutlineTakesTheCommonPath) {
  Trace shared = parse(chain);
  EXPECT_EQ(shared.op(outline(shared, {{1, 3}}).front()).modulePath(), "m.1");
  Trace parts = parse(chain);
  EXPECT_EQ(parts.op(outline(parts, {{1, 4}}).front()).modulePath(), "m");
}

// No ranges, no change.
TEST_F(RegionEditTest, OutlineNothing) {
  Trace trace = parse(chain);
  EXPECT_TRUE(
      outlineRegions(trace, Trace::topBody(), {}, *registry.lookup(core::cudaGraphOp)).empty());
  EXPECT_EQ(textOf(trace), textOf(parse(chain)));
}

// Dissolving the regions gives the trace back to the byte.
TEST_F(RegionEditTest, InlineUndoesOutline) {
  Trace trace = parse(chain);
  for (OpId region : outline(trace, {{0, 2}, {2, 4}}))
    inlineRegion(trace, region);
  trace.setProperties(TraceProperties::None);
  expectSound(trace);
  EXPECT_EQ(textOf(trace), textOf(parse(chain)));
}

// A name inside that is taken outside gets a number.
TEST_F(RegionEditTest, InlineKeepsNamesUnique) {
  Trace trace = parse("trace @t(%x: f32[4]) regions {\n"
                      "  domain #0 \"d\"\n"
                      "  %a: f32[4] = exp(%x)\n"
                      "  %r: f32[4] = cuda_graph(%a) {region = 0} domain #0 {\n"
                      "  ^(%p: f32[4]):\n"
                      "    %a: f32[4] = sin(%p)\n"
                      "    %x: f32[4] = cos(%a)\n"
                      "    return(%x)\n"
                      "  }\n"
                      "  return(%a, %r)\n"
                      "}\n");
  ASSERT_EQ(trace.ops().size(), 3u);
  inlineRegion(trace, trace.ops()[1]);
  expectSound(trace);
  EXPECT_THAT(names(trace, trace.terminator()->operands()), ElementsAre("a", "x_1"));
}

// Splitting around an op in the middle: a region, the op, a region; ids stay unique, policies
// follow their values, what is new between the parts is `auto`, and the domain stays.
TEST_F(RegionEditTest, SplitInTheMiddle) {
  Trace trace = parse(chain);
  OpId middle = trace.ops()[1];
  OpId region = outline(trace, {{0, 4}}).front();
  llvm::SmallVector<OpId, 2> parts = splitRegion(trace, region, middle);
  expectSound(trace);
  EXPECT_THAT(opNames(trace), ElementsAre("cuda_graph", "mul", "cuda_graph", "return"));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0], trace.ops()[0]);
  EXPECT_EQ(parts[1], trace.ops()[2]);
  EXPECT_EQ(trace.op(parts[0]).domain(), domain.get());
  EXPECT_EQ(trace.op(parts[1]).domain(), domain.get());
  EXPECT_EQ(trace.op(parts[0]).attribute("region")->asInt(), 0);
  EXPECT_EQ(trace.op(parts[1]).attribute("region")->asInt(), 1);
  EXPECT_EQ(trace.op(parts[0]).attribute("inputs")->str(), "[\"auto\"]");
  EXPECT_THAT(names(trace, trace.op(parts[1]).operands()), ElementsAre("b", "a"));
  EXPECT_EQ(trace.op(parts[1]).attribute("inputs")->str(), "[\"auto\", \"auto\"]");
}

// A static input stays static in the part that takes it.
TEST_F(RegionEditTest, SplitKeepsPolicies) {
  Trace trace = parse(chain);
  OpId first = trace.ops()[0];
  llvm::SmallVector<OpId, 2> parts = splitRegion(trace, outline(trace, {{0, 4}}).front(), first);
  expectSound(trace);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_THAT(names(trace, trace.op(parts[0]).operands()), ElementsAre("a", "w"));
  EXPECT_EQ(trace.op(parts[0]).attribute("inputs")->str(), "[\"auto\", \"static\"]");
}

// Splitting around the first, the last, or the only op leaves out the empty part.
TEST_F(RegionEditTest, SplitLeavesOutEmptyParts) {
  Trace first = parse(chain);
  OpId op = first.ops()[0];
  EXPECT_EQ(splitRegion(first, outline(first, {{0, 4}}).front(), op).size(), 1u);
  EXPECT_THAT(opNames(first), ElementsAre("exp", "cuda_graph", "return"));
  Trace last = parse(chain);
  op = last.ops()[3];
  EXPECT_EQ(splitRegion(last, outline(last, {{0, 4}}).front(), op).size(), 1u);
  EXPECT_THAT(opNames(last), ElementsAre("cuda_graph", "add", "return"));
  Trace only = parse(chain);
  op = only.ops()[2];
  EXPECT_TRUE(splitRegion(only, outline(only, {{2, 3}}).front(), op).empty());
  EXPECT_EQ(opNames(only), opNames(parse(chain)));
  for (const Trace *trace : {&first, &last, &only})
    expectSound(*trace);
}

// A claimed region gives its claim to its parts.
TEST_F(RegionEditTest, SplitKeepsTheClaim) {
  Trace trace = parse(chain);
  OpId middle = trace.ops()[1], region = outline(trace, {{0, 4}}).front();
  trace.setClaim(region, Claim{"runtime", true, "", 0});
  for (OpId part : splitRegion(trace, region, middle)) {
    ASSERT_TRUE(trace.op(part).claim());
    EXPECT_EQ(trace.op(part).claim()->executor, "runtime");
  }
}

} // namespace
