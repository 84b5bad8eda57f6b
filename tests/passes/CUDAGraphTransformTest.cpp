//===- CUDAGraphTransformTest.cpp - Policy, legality, verdicts --------------===//

#include "rondo/passes/CUDAGraphTransform.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Liveness.h"
#include "rondo/ir/RegionEdit.h"
#include "rondo/ir/Text.h"
#include "rondo/ir/Verifier.h"
#include "rondo/passes/Explain.h"
#include "rondo/passes/PassManager.h"
#include "rondo/passes/Passes.h"

#include "llvm/ADT/STLExtras.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace rondo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

/// A transform whose policy is given by functions, and that remembers what it was asked.
class TestTransform : public CUDAGraphTransform {
public:
  using CUDAGraphTransform::CUDAGraphTransform;

  std::function<FusionVerdict(const FusionQuery &)> fuse;
  std::function<InputPolicy(const InputQuery &)> input;
  std::function<FusionVerdict(const RegionQuery &)> keep;
  mutable std::vector<std::string> asked;

protected:
  FusionVerdict canFuse(const FusionQuery &query) const override {
    asked.push_back(query.op.name().str());
    return fuse ? fuse(query) : CUDAGraphTransform::canFuse(query);
  }
  InputPolicy inputPolicy(const InputQuery &query) const override {
    return input ? input(query) : CUDAGraphTransform::inputPolicy(query);
  }
  FusionVerdict keepRegion(const RegionQuery &query) const override {
    return keep ? keep(query) : CUDAGraphTransform::keepRegion(query);
  }
};

CUDAGraphOptions minOps(unsigned minOps, Partition partition = Partition::Consecutive) {
  CUDAGraphOptions options;
  options.minOps = minOps;
  options.partition = partition;
  return options;
}

class CUDAGraphTransformTest : public ::testing::Test {
protected:
  CUDAGraphTransformTest() { llvm::cantFail(registerCoreOps(registry)); }

  /// Parses and gives every op a capturable claim, unless the text holds claims.
  TracePair parse(llvm::StringRef text) {
    llvm::Expected<TracePair> pair = parsePair(text, "test", registry);
    if (!pair) {
      ADD_FAILURE() << llvm::toString(pair.takeError());
      return TracePair(Trace(registry));
    }
    claim(pair->forward());
    if (pair->hasBackward())
      claim(pair->backward());
    return std::move(*pair);
  }

  static void claim(Trace &trace) {
    std::vector<OpId> ops;
    forEachOp(trace, [&](const Op &op) {
      if (!op.claim() && !op.spec().terminator)
        ops.push_back(op.id());
    });
    for (OpId op : ops)
      trace.setClaim(op, Claim{"test", true, "", 0});
    trace.setProperties(trace.properties() | TraceProperties::Claimed);
  }

  /// Runs the transform as a pipeline of one, verified. Nothing on an error, which is kept in
  /// `error`.
  std::optional<TracePair> run(std::unique_ptr<CUDAGraphTransform> transform, TracePair pair) {
    PassManager manager;
    manager.add(std::move(transform));
    llvm::Expected<TracePair> result = manager.run(std::move(pair));
    warnings = manager.diagnostics().diagnostics();
    if (!result) {
      error = llvm::toString(result.takeError());
      return std::nullopt;
    }
    return std::move(*result);
  }
  std::optional<TracePair> run(llvm::StringRef text, CUDAGraphOptions options = {}) {
    return run(std::make_unique<TestTransform>(options), parse(text));
  }

  /// Names of the ops of every region of the top body.
  static std::vector<std::string> regions(const Trace &trace) {
    std::vector<std::string> regions;
    for (OpId id : trace.ops()) {
      if (!trace.op(id).domain())
        continue;
      std::string names;
      for (OpId inner : trace.ops(trace.op(id).bodies().front()))
        if (!trace.op(inner).spec().terminator)
          names += (names.empty() ? "" : " ") + trace.op(inner).name().str();
      regions.push_back(names);
    }
    return regions;
  }

  /// The verdict on the first op of that name, in any body.
  static std::string verdict(const Trace &trace, llvm::StringRef name) {
    std::string text = "no such op";
    forEachOp(trace, [&](const Op &op) {
      if (op.name() != name || text != "no such op")
        return;
      const FusionRecord *record = op.fusionRecord();
      text = !record ? "none"
                     : ((record->captured ? "yes " : "no ") + fusionDeciderName(record->decider) +
                        (record->reason.empty() ? "" : ": ") + record->reason)
                           .str();
    });
    return text;
  }

  /// The `inputs` of the first region: `name=policy`.
  static std::vector<std::string> inputs(const Trace &trace) {
    std::vector<std::string> inputs;
    for (OpId id : trace.ops()) {
      const Op &op = trace.op(id);
      if (!op.domain())
        continue;
      const Attribute::List &policies = *op.attribute("inputs")->asList();
      for (unsigned i = 0; i < op.operands().size(); ++i)
        inputs.push_back((trace.name(op.operand(i)) + "=" + *policies[i].asString()).str());
      break;
    }
    return inputs;
  }

  static int64_t livenessPeakOf(const Trace &trace) {
    return livenessPeak(trace, trace.ops(), StorageRoots(trace)).bytes;
  }

  /// The peak with every region dissolved: of the order the ops run in.
  static int64_t flatPeakOf(const TracePair &pair) {
    Trace flat = pair.forward().clone();
    for (OpId op : flat.ops().vec())
      if (flat.op(op).domain())
        inlineRegion(flat, op);
    return livenessPeakOf(flat);
  }

  static std::string text(const TracePair &pair) {
    std::string text;
    llvm::raw_string_ostream os(text);
    print(pair, os);
    return os.str();
  }

  OpRegistry registry;
  std::string error;
  std::vector<Diagnostic> warnings;
};

//===----------------------------------------------------------------------===//
// The cases of the field
//===----------------------------------------------------------------------===//

// Case 1: `s = sum(x); i = item(s)`: item stays out, the region gives s, and the del pass ends s
// after item, not inside.
TEST_F(CUDAGraphTransformTest, ItemStaysOutAndDelComesAfterIt) {
  PassManager manager;
  manager.add(std::make_unique<CUDAGraphTransform>(minOps(1))).add(createDelPass());
  llvm::Expected<TracePair> pair = manager.run(parse("trace @t(%x: f32[4]) {\n"
                                                     "  %e: f32[4] = exp(%x)\n"
                                                     "  %s: f32[] = sum(%e)\n"
                                                     "  %i: f64 = item(%s)\n"
                                                     "  return(%i)\n"
                                                     "}\n"));
  ASSERT_TRUE(bool(pair)) << llvm::toString(pair.takeError());
  const Trace &trace = pair->forward();
  EXPECT_THAT(regions(trace), ElementsAre("exp sum del"));
  std::vector<std::string> order;
  for (OpId op : trace.ops())
    order.push_back(trace.op(op).name().str());
  EXPECT_THAT(order, ElementsAre("cuda_graph", "item", "del", "return"));
  EXPECT_EQ(verdict(trace, "item"), "no legality: synchronises with the host");
  // The del outside ends the region's result, the one inside a value that the region does not give.
  const Op &region = trace.op(trace.ops()[0]);
  EXPECT_EQ(trace.op(trace.ops()[2]).operand(0), region.result());
}

// Case 1: a trace that already holds dels is refused before anything runs.
TEST_F(CUDAGraphTransformTest, RefusesDels) {
  TracePair pair = parse("trace @t(%x: f32[4]) dels {\n"
                         "  %e: f32[4] = exp(%x)\n"
                         "  %s: f32[] = sum(%e)\n"
                         "  del(%e)\n"
                         "  return(%s)\n"
                         "}\n");
  auto transform = std::make_unique<TestTransform>();
  TestTransform &asked = *transform;
  PassManager manager;
  manager.add(std::move(transform));
  llvm::Expected<TracePair> result = manager.run(std::move(pair));
  ASSERT_FALSE(bool(result));
  EXPECT_THAT(llvm::toString(result.takeError()), HasSubstr("dels"));
  EXPECT_TRUE(asked.asked.empty());
}

// Case 2: independent recompute chains between ops that stay out: `consecutive` keeps program
// order; `dataflow` needs fewer regions, and neither raises the liveness peak beyond the bound.
TEST_F(CUDAGraphTransformTest, RecomputeChainsKeepThePeak) {
  std::string source = "trace @t(%s0: f32[1024], %s1: f32[1024], %s2: f32[1024], %g: f32[4]) {\n";
  std::string gradient = "%g";
  for (int i = 0; i < 3; ++i) {
    std::string n = std::to_string(i);
    source += "  %a" + n + ": f32[1024] = exp(%s" + n + ")\n  %b" + n + ": f32[1024] = sin(%a" + n +
              ")\n  %c" + n + ": f32[] = sum(%b" + n + ")\n  print(%c" + n + ")\n  %g" + n +
              ": f32[4] = mul(" + gradient + ", %c" + n + ")\n";
    gradient = "%g" + n;
  }
  source += "  return(" + gradient + ")\n}\n";
  TracePair pair = parse(source);
  int64_t before = livenessPeakOf(pair.forward());

  std::optional<TracePair> consecutive =
      run(std::make_unique<TestTransform>(minOps(1)), pair.clone());
  ASSERT_TRUE(consecutive) << error;
  EXPECT_EQ(regions(consecutive->forward()).size(), 4u);

  CUDAGraphOptions options = minOps(1, Partition::Dataflow);
  std::optional<TracePair> dataflow = run(std::make_unique<TestTransform>(options), pair.clone());
  ASSERT_TRUE(dataflow) << error;
  EXPECT_TRUE(warnings.empty());
  EXPECT_LE(double(flatPeakOf(*dataflow)), double(before) * (1 + options.maxPeakGrowth));

  // A bound that cannot be kept: program order, and a warning that says so.
  options.maxPeakGrowth = -1;
  std::optional<TracePair> bounded = run(std::make_unique<TestTransform>(options), pair.clone());
  ASSERT_TRUE(bounded) << error;
  EXPECT_EQ(regions(bounded->forward()).size(), 4u);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0].message, HasSubstr("max-peak-growth"));
}

// Case 3: a region that ends at `return` holds the last op, whose value is a region result.
TEST_F(CUDAGraphTransformTest, RegionReachesReturn) {
  auto pair = run("trace @t(%x: f32[4]) {\n"
                  "  %a: f32[4] = exp(%x)\n"
                  "  %b: f32[4] = relu(%a)\n"
                  "  return(%b)\n"
                  "}\n");
  ASSERT_TRUE(pair) << error;
  EXPECT_THAT(regions(pair->forward()), ElementsAre("exp relu"));
  const Trace &trace = pair->forward();
  EXPECT_EQ(trace.terminator()->operand(0), trace.op(trace.ops()[0]).result());
}

// Case 4: an op with one CPU scalar tensor among its operands is not captured, though its result is
// on the GPU.
TEST_F(CUDAGraphTransformTest, LooksAtEveryOperandsDevice) {
  auto pair = run("trace @t(%x: f32[4]@cuda:0, %c: f32[]) {\n"
                  "  %a: f32[4]@cuda:0 = exp(%x)\n"
                  "  %b: f32[4]@cuda:0 = relu(%a)\n"
                  "  %d: f32[4]@cuda:0 = add(%b, %c)\n"
                  "  return(%d)\n"
                  "}\n");
  ASSERT_TRUE(pair) << error;
  EXPECT_THAT(regions(pair->forward()), ElementsAre("exp relu"));
  EXPECT_EQ(verdict(pair->forward(), "add"), "no legality: has an operand on host, not on cuda:0");
}

// Case 5: `ones(5, 5) * 2` has no inputs: captured, with no operands, on the device of its ops.
TEST_F(CUDAGraphTransformTest, NoInputs) {
  auto pair = run("trace @t() {\n"
                  "  %o: f32[5, 5]@cuda:0 = full() {device = cuda:0, dtype = f32, shape = [5, 5], "
                  "value = 1.0}\n"
                  "  %m: f32[5, 5]@cuda:0 = mul(%o) {scalar = 2}\n"
                  "  return(%m)\n"
                  "}\n");
  ASSERT_TRUE(pair) << error;
  EXPECT_THAT(regions(pair->forward()), ElementsAre("full mul"));
  EXPECT_TRUE(inputs(pair->forward()).empty());
}

// Case 5: a view-only region stays eager, and says why.
TEST_F(CUDAGraphTransformTest, ViewsAloneStayEager) {
  auto pair = run("trace @t(%x: f32[4, 2]) {\n"
                  "  %p: f32[2, 4; 1, 2] = permute(%x) {dims = [1, 0]}\n"
                  "  %d: f32[2, 4; 1, 2] = detach(%p)\n"
                  "  return(%d)\n"
                  "}\n",
                  minOps(0));
  ASSERT_TRUE(pair) << error;
  EXPECT_TRUE(regions(pair->forward()).empty());
  EXPECT_THAT(verdict(pair->forward(), "permute"), HasSubstr("launches nothing"));
}

// Case 6: in the backward, what the forward saves of parameters, buffers, views of them and region
// results is static; fresh inputs and incoming gradients are not.
TEST_F(CUDAGraphTransformTest, SavedValuesAreStatic) {
  auto pair = run("pair @p {\n"
                  "  forward @f(%w: f32[4, 4] parameter, %r: f32[4, 4] buffer, %x: f32[4, 4]) {\n"
                  "    %t: f32[4, 4; 1, 4] = permute(%w) {dims = [1, 0]}\n"
                  "    %y: f32[4, 4] = mm(%x, %t)\n"
                  "    %z: f32[4, 4] = relu(%y)\n"
                  "    return(%z, %y saved #0, %t saved #1, %x saved #2, %r saved #3)\n"
                  "  }\n"
                  "  backward @b(%y: f32[4, 4] saved #0, %t: f32[4, 4; 1, 4] saved #1, "
                  "%x: f32[4, 4] saved #2, %r: f32[4, 4] saved #3, %g: f32[4, 4]) {\n"
                  "    %h: f32[4, 4] = mul(%g, %y)\n"
                  "    %i: f32[4, 4] = mul(%h, %t)\n"
                  "    %j: f32[4, 4] = mul(%i, %x)\n"
                  "    %k: f32[4, 4] = mul(%j, %r)\n"
                  "    return(%k)\n"
                  "  }\n"
                  "}\n");
  ASSERT_TRUE(pair) << error;
  EXPECT_THAT(inputs(pair->forward()), ElementsAre("x=auto", "t=static"));
  EXPECT_THAT(inputs(pair->backward()),
              ElementsAre("g=auto", "y=static", "t=static", "x=auto", "r=static"));
}

// Case 6, the twin: what an op outside of any region made is not static.
TEST_F(CUDAGraphTransformTest, SavedEagerValuesAreNotStatic) {
  auto transform = std::make_unique<TestTransform>(minOps(1));
  transform->fuse = [](const FusionQuery &query) { return query.side == Side::Backward; };
  auto pair = run(std::move(transform), parse("pair @p {\n"
                                              "  forward @f(%x: f32[4]) {\n"
                                              "    %y: f32[4] = exp(%x)\n"
                                              "    return(%y, %y saved #0)\n"
                                              "  }\n"
                                              "  backward @b(%y: f32[4] saved #0, %g: f32[4]) {\n"
                                              "    %h: f32[4] = mul(%g, %y)\n"
                                              "    return(%h)\n"
                                              "  }\n"
                                              "}\n"));
  ASSERT_TRUE(pair) << error;
  EXPECT_THAT(inputs(pair->backward()), ElementsAre("g=auto", "y=auto"));
}

// Case 24: every refusal names op, rule and reason; strict mode makes it an error that points at
// the op.
TEST_F(CUDAGraphTransformTest, StrictModeReportsRefusals) {
  const char *source = "trace @t(%x: f32[4]) {\n"
                       "  %a: f32[4] = exp(%x) claim(\"e\", uncapturable, why \"allocates\")\n"
                       "  %b: f32[4] = relu(%a)\n"
                       "  %c: f32[4] = sin(%b)\n"
                       "  return(%c)\n"
                       "}\n";
  auto lenient = run(source);
  ASSERT_TRUE(lenient) << error;
  EXPECT_EQ(verdict(lenient->forward(), "exp"), "no executor: allocates");
  EXPECT_EQ(verdict(lenient->forward(), "sin"), "yes policy");

  CUDAGraphOptions options;
  options.strict = true;
  EXPECT_FALSE(run(source, options));
  EXPECT_THAT(error, HasSubstr("test:2:"));
  EXPECT_THAT(error, HasSubstr("'exp' op is not captured: allocates"));
}

// Case 24: strict mode lets policy leave ops out.
TEST_F(CUDAGraphTransformTest, StrictModeAllowsPolicy) {
  CUDAGraphOptions options = minOps(1);
  options.strict = true;
  auto transform = std::make_unique<TestTransform>(options);
  transform->fuse = [](const FusionQuery &query) { return query.op.name() != "exp"; };
  EXPECT_TRUE(run(std::move(transform), parse("trace @t(%x: f32[4]) {\n"
                                              "  %a: f32[4] = exp(%x)\n"
                                              "  %b: f32[4] = relu(%a)\n"
                                              "  return(%b)\n"
                                              "}\n")))
      << error;
}

// Case 26: two pairs through one transform, one of them without backward: each works, both name the
// one domain.
TEST_F(CUDAGraphTransformTest, TwoPairsThroughOneTransform) {
  TestTransform transform;
  DiagnosticList diagnostics;
  for (const char *name : {"exp", "sin"}) {
    TracePair pair = parse(std::string("trace @t(%x: f32[4]) {\n  %a: f32[4] = ") + name +
                           "(%x)\n  %b: f32[4] = relu(%a)\n  return(%b)\n}\n");
    llvm::Expected<PassResult> result = transform.run(pair, diagnostics);
    ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
    EXPECT_EQ(*result, PassResult::Changed);
    EXPECT_EQ(pair.forward().op(pair.forward().ops()[0]).domain(), &transform.domain());
  }
  EXPECT_THAT(transform.asked, ElementsAre("exp", "relu", "sin", "relu"));
}

// Case 26: two transforms share nothing.
TEST_F(CUDAGraphTransformTest, TwoTransformsHaveTwoDomains) {
  TestTransform a, b;
  EXPECT_NE(&a.domain(), &b.domain());
}

// Case 27: a CPU op between GPU ops is never frozen into a graph; it parts the regions.
TEST_F(CUDAGraphTransformTest, HostOpBetweenDeviceOps) {
  auto pair = run("trace @t(%x: f32[4]@cuda:0, %h: f32[4]) {\n"
                  "  %a: f32[4]@cuda:0 = exp(%x)\n"
                  "  %b: f32[4]@cuda:0 = relu(%a)\n"
                  "  %c: f32[4] = exp(%h)\n"
                  "  %d: f32[4]@cuda:0 = sin(%b)\n"
                  "  %e: f32[4]@cuda:0 = cos(%d)\n"
                  "  return(%c, %e)\n"
                  "}\n");
  ASSERT_TRUE(pair) << error;
  EXPECT_THAT(regions(pair->forward()), ElementsAre("exp relu", "sin cos"));
}

//===----------------------------------------------------------------------===//
// Policy
//===----------------------------------------------------------------------===//

const char *const chain = "trace @t(%x: f32[4]) {\n"
                          "  %a: f32[4] = exp(%x)\n"
                          "  %b: f32[4] = relu(%a)\n"
                          "  %c: f32[4] = sin(%b)\n"
                          "  %d: f32[4] = cos(%c)\n"
                          "  return(%d)\n"
                          "}\n";

// canFuse is asked once per claimed op, in program order.
TEST_F(CUDAGraphTransformTest, AsksOncePerOpInOrder) {
  TestTransform transform;
  TracePair pair = parse(chain);
  DiagnosticList diagnostics;
  llvm::cantFail(transform.run(pair, diagnostics).takeError());
  EXPECT_THAT(transform.asked, ElementsAre("exp", "relu", "sin", "cos"));
}

// A denial parts the run, and its reason is recorded; `false` without a reason is recorded as the
// override's.
TEST_F(CUDAGraphTransformTest, DenialsPartTheRun) {
  auto transform = std::make_unique<TestTransform>(minOps(1));
  transform->fuse = [](const FusionQuery &query) -> FusionVerdict {
    if (query.op.name() == "relu")
      return deny("too small");
    return query.op.name() != "cos";
  };
  auto pair = run(std::move(transform), parse(chain));
  ASSERT_TRUE(pair) << error;
  EXPECT_THAT(regions(pair->forward()), ElementsAre("exp", "sin"));
  EXPECT_EQ(verdict(pair->forward(), "relu"), "no policy: too small");
  EXPECT_EQ(verdict(pair->forward(), "cos"), "no policy: canFuse said no");
}

// The option `deny` leaves ops out by name; others are not touched.
TEST_F(CUDAGraphTransformTest, DenyByName) {
  CUDAGraphOptions options = minOps(1);
  options.deny = {"relu"};
  auto pair = run(chain, options);
  ASSERT_TRUE(pair) << error;
  EXPECT_THAT(regions(pair->forward()), ElementsAre("exp", "sin cos"));
  EXPECT_EQ(verdict(pair->forward(), "relu"), "no policy: named by the option 'deny'");
}

// `must` on an op that is not legal in a region is an error that names the op.
TEST_F(CUDAGraphTransformTest, MustOnAnIllegalOpIsAnError) {
  auto transform = std::make_unique<TestTransform>();
  transform->fuse = [](const FusionQuery &) { return must(); };
  EXPECT_FALSE(run(std::move(transform), parse("trace @t(%x: f32[]) {\n"
                                               "  %i: f64 = item(%x)\n"
                                               "  return(%i)\n"
                                               "}\n")));
  EXPECT_THAT(error, HasSubstr("'item' op must be in a region, but synchronises with the host"));
}

// `must` keeps a region that would be too small.
TEST_F(CUDAGraphTransformTest, MustKeepsASmallRegion) {
  auto transform = std::make_unique<TestTransform>(minOps(100));
  transform->fuse = [](const FusionQuery &query) -> FusionVerdict {
    return query.op.name() == "exp" ? must() : allow();
  };
  auto pair = run(std::move(transform), parse(chain));
  ASSERT_TRUE(pair) << error;
  EXPECT_EQ(regions(pair->forward()).size(), 1u);
}

// A region with a single launch is not graphed by default; with min-ops 1 it is.
TEST_F(CUDAGraphTransformTest, SingleLaunchStaysEager) {
  const char *source = "trace @t(%x: f32[4]) {\n"
                       "  %a: f32[4] = exp(%x)\n"
                       "  return(%a)\n"
                       "}\n";
  auto eager = run(source);
  ASSERT_TRUE(eager) << error;
  EXPECT_TRUE(regions(eager->forward()).empty());
  EXPECT_EQ(verdict(eager->forward(), "exp"),
            "no region: the region launches too little (1, at least 2 wanted)");
  auto graphed = run(source, minOps(1));
  ASSERT_TRUE(graphed) << error;
  EXPECT_EQ(regions(graphed->forward()).size(), 1u);
}

// keepRegion sees ops and launches; its refusal is recorded for every op of the region.
TEST_F(CUDAGraphTransformTest, KeepRegionDecides) {
  auto transform = std::make_unique<TestTransform>();
  transform->keep = [](const RegionQuery &query) {
    EXPECT_EQ(query.ops.size(), 4u);
    EXPECT_EQ(query.launches, 4u);
    return deny("not today");
  };
  auto pair = run(std::move(transform), parse(chain));
  ASSERT_TRUE(pair) << error;
  EXPECT_TRUE(regions(pair->forward()).empty());
  EXPECT_EQ(verdict(pair->forward(), "cos"), "no region: not today");
}

// inputPolicy overrides per input; what it is told is right.
TEST_F(CUDAGraphTransformTest, InputPolicyOverrides) {
  auto transform = std::make_unique<TestTransform>(minOps(1));
  transform->input = [](const InputQuery &query) {
    llvm::StringRef name = query.trace.name(query.value);
    EXPECT_EQ(query.isWritten, name == "s");
    EXPECT_EQ(query.consumers, name == "x" ? 2u : 1u);
    EXPECT_EQ(query.isStatic, name == "s");
    return name == "x" ? InputPolicy::Patched : InputPolicy::Copied;
  };
  auto pair = run(std::move(transform), parse("trace @t(%x: f32[4], %s: f32[4] buffer) {\n"
                                              "  %a: f32[4] = mul(%x, %x)\n"
                                              "  %s1: f32[4] = add_(%s, %a)\n"
                                              "  %b: f32[4] = relu(%x)\n"
                                              "  return(%b)\n"
                                              "}\n"));
  ASSERT_TRUE(pair) << error;
  EXPECT_THAT(inputs(pair->forward()), ElementsAre("x=patched", "s=copied"));
}

// By default an input whose address stays is static, and an option says what others are.
TEST_F(CUDAGraphTransformTest, InputsOption) {
  for (InputPolicy policy : {InputPolicy::Auto, InputPolicy::Patched, InputPolicy::Copied}) {
    CUDAGraphOptions options = minOps(1);
    options.inputs = policy;
    auto pair = run("trace @t(%x: f32[4], %w: f32[4] parameter) {\n"
                    "  %a: f32[4] = mul(%x, %w)\n"
                    "  return(%a)\n"
                    "}\n",
                    options);
    ASSERT_TRUE(pair) << error;
    EXPECT_THAT(inputs(pair->forward()),
                ElementsAre("x=" + inputPolicyName(policy).str(), "w=static"));
  }
}

//===----------------------------------------------------------------------===//
// Legality
//===----------------------------------------------------------------------===//

// An opaque op is never captured: nothing is known of its effects.
TEST_F(CUDAGraphTransformTest, OpaqueOpsStayOut) {
  auto pair = run("trace @t(%x: f32[4]) {\n"
                  "  %a: f32[4] = \"their.op\"(%x)\n"
                  "  return(%a)\n"
                  "}\n",
                  minOps(1));
  ASSERT_TRUE(pair) << error;
  EXPECT_EQ(verdict(pair->forward(), "their.op"), "no legality: its effects are unknown");
}

// `as_strided` counts from the start of the storage: of a later part it stays out, of a whole
// storage it goes in.
TEST_F(CUDAGraphTransformTest, StorageStartIsKept) {
  auto source = [](llvm::StringRef viewed) {
    return ("trace @t(%x: f32[8]) {\n"
            "  %v: f32[4] = slice(%x) {start = 4}\n"
            "  %a: f32[4] = exp(%v)\n"
            "  %s: f32[2] = as_strided(" +
            viewed +
            ") {offset = 0, shape = [2], strides = [1]}\n"
            "  %b: f32[2] = relu(%s)\n"
            "  return(%a, %b)\n"
            "}\n")
        .str();
  };
  auto part = run(source("%v"), minOps(1));
  ASSERT_TRUE(part) << error;
  EXPECT_THAT(regions(part->forward()), ElementsAre("exp", "relu"));
  auto whole = run(source("%x"), minOps(1));
  ASSERT_TRUE(whole) << error;
  EXPECT_THAT(regions(whole->forward()), ElementsAre("exp as_strided relu"));
}

// An op with bodies is capturable if its bodies are; one op in them that is not keeps it out, and
// is named.
TEST_F(CUDAGraphTransformTest, BodiesDecideForTheirOp) {
  auto source = [](llvm::StringRef inner) {
    return ("trace @t(%p: bool[], %x: f32[1]) {\n"
            "  %a: f32[1] = exp(%x)\n"
            "  %r: f32[1] = if(%p, %a) {\n"
            "  ^(%a: f32[1]):\n    " +
            inner +
            "\n    %b: f32[1] = relu(%a)\n"
            "    return(%b)\n"
            "  } {\n"
            "  ^(%a: f32[1]):\n"
            "    %c: f32[1] = sin(%a)\n"
            "    return(%c)\n"
            "  }\n"
            "  return(%r)\n"
            "}\n")
        .str();
  };
  auto capturable = run(source("%n: f32[1] = neg(%a)"));
  ASSERT_TRUE(capturable) << error;
  EXPECT_THAT(regions(capturable->forward()), ElementsAre("exp if"));
  auto refused = run(source("%n: f64 = item(%a)"));
  ASSERT_TRUE(refused) << error;
  EXPECT_TRUE(regions(refused->forward()).empty());
  EXPECT_EQ(verdict(refused->forward(), "if"),
            "no legality: holds 'item', which synchronises with the host");
}

// A region that writes its input in place gives the storage's new name, which still is a view of
// the input.
TEST_F(CUDAGraphTransformTest, InPlaceWritesGoThroughRegions) {
  auto pair = run("trace @t(%x: f32[4], %s: f32[4] buffer) {\n"
                  "  %a: f32[4] = mul(%x, %x)\n"
                  "  %s1: f32[4] = add_(%s, %a)\n"
                  "  print(%s1)\n"
                  "  return(%s1)\n"
                  "}\n");
  ASSERT_TRUE(pair) << error;
  const Trace &trace = pair->forward();
  const Op &region = trace.op(trace.ops()[0]);
  Effects effects = getEffects(trace, region.id());
  EXPECT_THAT(effects.writes, ElementsAre(1u));
  EXPECT_EQ(StorageRoots(trace).root(region.result()), trace.arguments()[1]);
}

//===----------------------------------------------------------------------===//
// Again, and names
//===----------------------------------------------------------------------===//

// Running it twice changes nothing the second time, for either partition.
TEST_F(CUDAGraphTransformTest, TwiceChangesNothing) {
  for (Partition partition : {Partition::Consecutive, Partition::Dataflow}) {
    TestTransform transform(minOps(2, partition));
    TracePair pair = parse("trace @t(%x: f32[4]) {\n"
                           "  %a: f32[4] = exp(%x)\n"
                           "  %b: f32[4] = relu(%a)\n"
                           "  print(%b)\n"
                           "  %v: f32[2, 2] = reshape(%b) {shape = [2, 2]}\n"
                           "  %c: f32[2, 2] = sin(%v)\n"
                           "  return(%c)\n"
                           "}\n");
    DiagnosticList diagnostics;
    EXPECT_EQ(llvm::cantFail(transform.run(pair, diagnostics)), PassResult::Changed);
    std::string once = text(pair);
    EXPECT_EQ(llvm::cantFail(transform.run(pair, diagnostics)), PassResult::Unchanged);
    EXPECT_EQ(text(pair), once);
  }
}

// A trace with nothing but `return` is left alone.
TEST_F(CUDAGraphTransformTest, EmptyTrace) {
  auto pair = run("trace @t() {\n  return()\n}\n", minOps(0));
  ASSERT_TRUE(pair) << error;
  EXPECT_TRUE(regions(pair->forward()).empty());
}

// Renaming every value changes names and nothing else.
TEST_F(CUDAGraphTransformTest, NamesDoNotMatter) {
  for (Partition partition : {Partition::Consecutive, Partition::Dataflow}) {
    auto named = run(chain, minOps(1, partition));
    std::string renamed = chain;
    for (auto [from, to] : {std::pair("%a", "%zz"), {"%b", "%aa"}, {"%c", "%mm"}})
      for (size_t at; (at = renamed.find(from)) != std::string::npos;)
        renamed.replace(at, 2, to);
    auto other = run(renamed, minOps(1, partition));
    ASSERT_TRUE(named && other) << error;
    EXPECT_EQ(regions(named->forward()), regions(other->forward()));
  }
}

} // namespace
