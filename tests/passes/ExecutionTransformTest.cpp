//===- ExecutionTransformTest.cpp - Who executes each op? -------------------===//

#include "PassFixture.h"

#include "rondo/passes/Passes.h"
#include "rondo/passes/TableClaimSource.h"

#include "llvm/Support/Format.h"

using namespace rondo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

/// A table that also claims groups: of ops by the names of their first results, or by their ids.
class GroupSource : public TableClaimSource {
public:
  using TableClaimSource::TableClaimSource;

  std::vector<std::vector<std::string>> groups;
  std::vector<std::vector<OpId>> groupsOfIds;
  ClaimAnswer answer = ClaimAnswer::accept();

  void claimGroups(const Trace &trace, BodyId body, std::vector<GroupClaim> &out) const override {
    for (const std::vector<std::string> &names : groups) {
      GroupClaim group{{}, answer};
      for (const std::string &name : names)
        for (OpId op : trace.ops(body))
          if (!trace.op(op).results().empty() && trace.name(trace.op(op).result()) == name)
            group.ops.push_back(op);
      if (group.ops.size() == names.size())
        out.push_back(std::move(group));
    }
    if (body == Trace::topBody())
      for (const std::vector<OpId> &ids : groupsOfIds)
        out.push_back({ids, answer});
  }
};

class ExecutionTransformTest : public PassFixture {
protected:
  std::string execute(std::vector<const ClaimSource *> sources, llvm::StringRef text) {
    return runPass(createExecutionTransform(std::move(sources)), parse(text));
  }

  TableClaimSource host = makeHostClaimTable(registry);
  GroupSource fuser{"fuser"};
};

constexpr llvm::StringLiteral chain = R"(trace @t(%x: f32[8]) {
  %a: f32[8] = exp(%x)
  %b: f32[8] = relu(%a)
  %c: f32[8] = neg(%b)
  return(%c)
}
)";

//===----------------------------------------------------------------------===//
// Single ops
//===----------------------------------------------------------------------===//

// Every op gets the claim of the first source that accepts it, in both traces.
TEST_F(ExecutionTransformTest, FirstSourceThatAccepts) {
  TableClaimSource first("first");
  first.set("exp", ClaimAnswer::accept(256)).set("item", ClaimAnswer::acceptUncapturable("waits"));
  llvm::StringRef text = R"(pair @p {
  forward @fw(%x: f32[]) {
    %a: f32[] = exp(%x)
    %b: f32[] = relu(%a)
    %i: f64 = item(%b)
    return(%i, %a saved #0)
  }
  backward @bw(%a: f32[] saved #0) {
    %d: f32[] = exp(%a)
    return(%d)
  }
}
)";
  EXPECT_EQ(execute({&first, &host}, text), R"(pair @p {
  forward @fw(%x: f32[]) claimed {
    %a: f32[] = exp(%x) claim("first", workspace 256)
    %b: f32[] = relu(%a) claim("host")
    %i: f64 = item(%b) claim("first", uncapturable, why "waits")
    return(%i, %a saved #0)
  }
  backward @bw(%a: f32[] saved #0) claimed {
    %d: f32[] = exp(%a) claim("first", workspace 256)
    return(%d)
  }
}
)");
  EXPECT_TRUE(changed);
  std::string reversed = execute({&host, &first}, text);
  EXPECT_THAT(reversed, Not(HasSubstr("first")));
  EXPECT_THAT(reversed, HasSubstr("why \"it synchronises with the host\""));
}

// A claim that an op has already stays, whatever the sources would say.
TEST_F(ExecutionTransformTest, KeepsClaims) {
  std::string result = execute({&host}, R"(trace @t(%x: f32[8]) {
  %a: f32[8] = exp(%x) claim("mine", uncapturable, why "so")
  %b: f32[8] = mylib.magic(%a) claim("mine")
  %c: f32[8] = relu(%b)
  return(%c)
}
)");
  EXPECT_THAT(result, HasSubstr("exp(%x) claim(\"mine\", uncapturable, why \"so\")"));
  EXPECT_THAT(result, HasSubstr("mylib.magic(%a) claim(\"mine\")"));
  EXPECT_THAT(result, HasSubstr("relu(%b) claim(\"host\")"));
}

// Twice gives the same as once, and the second run says that it changed nothing.
TEST_F(ExecutionTransformTest, TwiceChangesNothing) {
  fuser.groups = {{"a", "b"}};
  std::string once = execute({&fuser, &host}, chain);
  EXPECT_TRUE(changed);
  EXPECT_EQ(execute({&fuser, &host}, once), once);
  EXPECT_FALSE(changed);
}

// A trace without ops that execute needs no source.
TEST_F(ExecutionTransformTest, NothingToClaim) {
  EXPECT_EQ(execute({}, "trace @t(%x: f32[8]) {\n  return(%x)\n}\n"),
            "pair @t {\n  forward @t(%x: f32[8]) claimed {\n    return(%x)\n  }\n}\n");
  EXPECT_FALSE(changed);
}

// Each op that nobody claims is an error at the op, with what each source answered, of both traces.
TEST_F(ExecutionTransformTest, UnclaimedOps) {
  TableClaimSource matmuls("cublas", ClaimAnswer::decline("it does matmuls only"));
  EXPECT_EQ(execute({&matmuls, &host}, R"(pair @p {
  forward @fw(%x: f32[8]) {
    %a: f32[8] = mylib.magic(%x)
    %b: f32[8] = relu(%a)
    return(%b)
  }
  backward @bw(%g: f32[8]) {
    %d: f32[8] = mylib.other(%g)
    return(%d)
  }
}
)"),
            "test:3:5: error: no claim source accepts 'mylib.magic' op\n"
            "note: 'cublas' answers: it does matmuls only\n"
            "note: 'host' answers: the registry does not know the op\n"
            "test:8:5: error: no claim source accepts 'mylib.other' op\n"
            "note: 'cublas' answers: it does matmuls only\n"
            "note: 'host' answers: the registry does not know the op");
  EXPECT_THAT(execute({}, chain), HasSubstr("note: there are no claim sources"));
  TableClaimSource silent("silent", ClaimAnswer::decline(""));
  EXPECT_THAT(execute({&silent}, chain), HasSubstr("note: 'silent' gives no reason"));
}

// Dels are placed last: a trace that holds them is refused before anything runs.
TEST_F(ExecutionTransformTest, RefusesDels) {
  EXPECT_THAT(execute({&host}, R"(trace @t(%x: f32[8]) dels {
    %a: f32[8] = exp(%x)
    del(%x)
    return(%a)
  })"),
              HasSubstr("pass 'execution' forbids 'dels', which the trace has from the start"));
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

// Ops with bodies are claimed by the first source that accepts them, and so are the ops inside;
// what `return` gives needs none at any depth.
TEST_F(ExecutionTransformTest, NestedBodies) {
  TableClaimSource control("runtime");
  control.set("if", ClaimAnswer::accept());
  std::string result = execute({&control, &host}, R"(trace @t(%c: bool, %x: f32[8]) {
  %y: f32[8] = if(%c, %x) {
  ^(%x: f32[8]):
    %a: f32[8] = checkpoint(%x) {
    ^(%x: f32[8]):
      %a: f32[8] = exp(%x)
      return(%a)
    }
    return(%a)
  } {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%y)
}
)");
  EXPECT_THAT(result, HasSubstr("if(%c, %x) claim(\"runtime\") {"));
  EXPECT_THAT(result, HasSubstr("checkpoint(%x) claim(\"host\") {"));
  EXPECT_THAT(result, HasSubstr("exp(%x) claim(\"host\")"));
  EXPECT_THAT(result, HasSubstr("        return(%a)\n"));
}

// An op in a body that nobody claims is an error, unless it is in a region claimed as a whole: then
// it runs with that.
TEST_F(ExecutionTransformTest, UnclaimedOpInABody) {
  llvm::StringRef text = R"(trace @t(%x: f32[8]) {
  %y: f32[8] = checkpoint(%x) {
  ^(%x: f32[8]):
    %a: f32[8] = exp(%x)
    %b: f32[8] = relu(%a)
    return(%b)
  }
  return(%y)
}
)";
  TableClaimSource whole("whole");
  whole.set("checkpoint", ClaimAnswer::accept()).set("exp", ClaimAnswer::accept());
  std::string result = execute({&whole}, text);
  EXPECT_THAT(result, HasSubstr("checkpoint(%x) claim(\"whole\")"));
  EXPECT_THAT(result, HasSubstr("exp(%x) claim(\"whole\")"));
  EXPECT_THAT(result, HasSubstr("relu(%a)\n"));
  EXPECT_EQ(execute({&whole}, result), result);
  EXPECT_FALSE(changed);

  TableClaimSource inner("inner");
  inner.set("exp", ClaimAnswer::accept());
  std::string message = execute({&inner}, text);
  EXPECT_THAT(message, HasSubstr("test:2:3: error: no claim source accepts 'checkpoint' op"));
  EXPECT_THAT(message, HasSubstr("test:5:5: error: no claim source accepts 'relu' op"));
  EXPECT_THAT(message, Not(HasSubstr("'exp'")));
}

// The body of a claimed `if` is no region: its ops need claims of their own.
TEST_F(ExecutionTransformTest, BodiesOfIfNeedClaims) {
  TableClaimSource control("runtime");
  control.set("if", ClaimAnswer::accept());
  EXPECT_THAT(execute({&control}, R"(trace @t(%c: bool, %x: f32[8]) {
  %y: f32[8] = if(%c, %x) {
  ^(%x: f32[8]):
    %a: f32[8] = exp(%x)
    return(%a)
  } {
  ^(%x: f32[8]):
    return(%x)
  }
  return(%y)
}
)"),
              HasSubstr("test:4:5: error: no claim source accepts 'exp' op"));
}

// A `cuda_graph` op is not offered; the ops in it are.
TEST_F(ExecutionTransformTest, RegionsThatExist) {
  TableClaimSource noGraphs("host", ClaimAnswer::accept());
  noGraphs.set("cuda_graph", ClaimAnswer::decline("not asked"));
  std::string result = execute({&noGraphs}, R"(trace @t(%x: f32[8]) regions {
  domain #0 "mine"
  %y: f32[8] = cuda_graph(%x) {region = 0} domain #0 {
  ^(%x: f32[8]):
    %a: f32[8] = exp(%x)
    return(%a)
  }
  return(%y)
}
)");
  EXPECT_THAT(result, HasSubstr("cuda_graph(%x) {region = 0} domain #0 {"));
  EXPECT_THAT(result, HasSubstr("exp(%x) claim(\"host\")"));
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

// The ops of a group become one `fused` op; it has the claim with the workspace, the ops in it the
// claim without.
TEST_F(ExecutionTransformTest, GroupBecomesOneOp) {
  fuser.groups = {{"a", "b"}};
  fuser.answer = ClaimAnswer::accept(64);
  EXPECT_EQ(execute({&fuser, &host}, chain), R"(pair @t {
  forward @t(%x: f32[8]) claimed {
    %b: f32[8] = fused(%x) claim("fuser", workspace 64) {
    ^(%x: f32[8]):
      %a: f32[8] = exp(%x) claim("fuser")
      %b: f32[8] = relu(%a) claim("fuser")
      return(%b)
    }
    %c: f32[8] = neg(%b) claim("host")
    return(%c)
  }
}
)");
}

// A group that ends at `return` gives its result there, and a saved link follows it.
TEST_F(ExecutionTransformTest, GroupBeforeReturn) {
  fuser.groups = {{"a", "b"}};
  std::string result = execute({&fuser, &host}, R"(pair @p {
  forward @fw(%x: f32[8]) {
    %a: f32[8] = exp(%x)
    %b: f32[8] = relu(%a)
    return(%b, %a saved #0)
  }
  backward @bw(%a: f32[8] saved #0) {
    return(%a)
  }
}
)");
  EXPECT_THAT(result, HasSubstr("%a: f32[8], %b: f32[8] = fused(%x)"));
  EXPECT_THAT(result, HasSubstr("return(%b, %a saved #0)"));
}

// A group with `as_strided` of a part of a storage is ignored: in a body it would count from that
// part. Of a whole storage it is fused.
TEST_F(ExecutionTransformTest, GroupKeepsTheStartOfAStorage) {
  fuser.groups = {{"s", "r"}};
  const char *const source = R"(trace @t(%%x: f32[8]) {
  %%v: f32[4] = slice(%%x) {start = 4}
  %%s: f32[2] = as_strided(%s) {offset = 0, shape = [2], strides = [1]}
  %%r: f32[2] = relu(%%s)
  return(%%r, %%v)
}
)";
  for (auto [viewed, isFused] : {std::pair("%v", false), {"%x", true}}) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format(source, viewed);
    std::string result = execute({&fuser, &host}, text);
    EXPECT_EQ(llvm::StringRef(result).contains("fused("), isFused) << result;
  }
}

// A group need not be consecutive: what it needs moves before it, what needs it behind.
TEST_F(ExecutionTransformTest, GroupIsMadeConsecutive) {
  fuser.groups = {{"a", "d"}};
  EXPECT_EQ(execute({&fuser, &host}, R"(trace @t(%x: f32[8]) {
  %a: f32[8] = exp(%x)
  %b: f32[8] = relu(%a)
  %c: f32[8] = neg(%x)
  %d: f32[8] = add(%a, %c)
  %e: f32[8] = mul(%b, %d)
  return(%e)
}
)"),
            R"(pair @t {
  forward @t(%x: f32[8]) claimed {
    %c: f32[8] = neg(%x) claim("host")
    %a: f32[8], %d: f32[8] = fused(%x, %c) claim("fuser") {
    ^(%x: f32[8], %c: f32[8]):
      %a: f32[8] = exp(%x) claim("fuser")
      %d: f32[8] = add(%a, %c) claim("fuser")
      return(%a, %d)
    }
    %b: f32[8] = relu(%a) claim("host")
    %e: f32[8] = mul(%b, %d) claim("host")
    return(%e)
  }
}
)");
}

// A group that data leaves and comes back to is ignored; its ops are claimed one by one.
TEST_F(ExecutionTransformTest, GroupThatIsNotConvexByData) {
  fuser.groups = {{"a", "c"}};
  std::string result = execute({&fuser, &host}, chain);
  EXPECT_EQ(result, execute({&host}, chain));
  EXPECT_THAT(result, Not(HasSubstr("fused")));
}

// The same by effects: the write between the two reads of one storage must stay there.
TEST_F(ExecutionTransformTest, GroupThatIsNotConvexByEffects) {
  llvm::StringRef text = R"(trace @t(%x: f32[8], %y: f32[8]) {
  %a: f32[8] = exp(%x)
  %w: f32[8] = add_(%x, %y)
  %b: f32[8] = neg(%w)
  return(%a, %b)
}
)";
  fuser.groups = {{"a", "b"}};
  EXPECT_THAT(execute({&fuser, &host}, text), Not(HasSubstr("fused")));
  fuser.groups = {{"a", "w"}};
  EXPECT_THAT(execute({&fuser, &host}, text), HasSubstr("= fused(%x, %y) claim(\"fuser\")"));
  fuser.groups = {{"a", "w", "b"}};
  EXPECT_THAT(execute({&fuser, &host}, text), HasSubstr("= fused(%x, %y) claim(\"fuser\")"));
}

// Nothing moves across an op of which nothing is known, and it is in no group.
TEST_F(ExecutionTransformTest, UnknownEffectsAreInNoGroup) {
  llvm::StringRef text = R"(trace @t(%x: f32[8]) {
  %a: f32[8] = exp(%x)
  %m: f32[8] = mylib.magic(%x)
  %b: f32[8] = neg(%x)
  return(%a, %m, %b)
}
)";
  host.set("mylib.magic", ClaimAnswer::accept());
  for (std::vector<std::string> group :
       {std::vector<std::string>{"a", "b"}, {"a", "m"}, {"m", "b"}}) {
    fuser.groups = {group};
    EXPECT_THAT(execute({&fuser, &host}, text), Not(HasSubstr("fused")));
  }
}

// Of groups that overlap, the first is taken; what is left of the other is claimed one by one.
TEST_F(ExecutionTransformTest, OverlappingGroups) {
  fuser.groups = {{"a", "b"}, {"b", "c"}};
  std::string result = execute({&fuser, &host}, chain);
  EXPECT_THAT(result, HasSubstr("%b: f32[8] = fused(%x)"));
  EXPECT_THAT(result, HasSubstr("neg(%b) claim(\"host\")"));
  fuser.groups = {{"b", "c"}, {"a", "b"}};
  EXPECT_THAT(execute({&fuser, &host}, chain), HasSubstr("%c: f32[8] = fused(%a)"));
}

// Two groups of which each is convex, but that need each other, are not both taken.
TEST_F(ExecutionTransformTest, GroupsThatNeedEachOther) {
  fuser.groups = {{"a", "d"}, {"b", "c"}};
  std::string result = execute({&fuser, &host}, R"(trace @t(%x: f32[8], %y: f32[8]) {
  %a: f32[8] = exp(%x)
  %b: f32[8] = exp(%y)
  %c: f32[8] = neg(%a)
  %d: f32[8] = neg(%b)
  return(%c, %d)
}
)");
  EXPECT_THAT(result, HasSubstr("%a: f32[8], %d: f32[8] = fused(%x, %b)"));
  EXPECT_THAT(result, HasSubstr("exp(%y) claim(\"host\")"));
  EXPECT_THAT(result, HasSubstr("neg(%a) claim(\"host\")"));
}

// A group that moves takes an earlier one along as a whole.
TEST_F(ExecutionTransformTest, GroupsMoveAsAWhole) {
  fuser.groups = {{"b", "d"}, {"a", "e"}};
  std::string result = execute({&fuser, &host}, R"(trace @t(%x: f32[8], %y: f32[8]) {
  %a: f32[8] = exp(%x)
  %b: f32[8] = neg(%y)
  %c: f32[8] = relu(%y)
  %d: f32[8] = add(%a, %b)
  %e: f32[8] = mul(%a, %c)
  return(%d, %e)
}
)");
  EXPECT_THAT(result, HasSubstr("%a: f32[8], %e: f32[8] = fused(%x, %c)"));
  EXPECT_THAT(result, HasSubstr("%d: f32[8] = fused(%y, %a)"));
}

// A source of higher priority keeps its ops: a group that wants one of them is ignored.
TEST_F(ExecutionTransformTest, GroupsRespectPriority) {
  fuser.groups = {{"a", "b"}};
  TableClaimSource first("first");
  first.set("relu", ClaimAnswer::accept());
  std::string result = execute({&first, &fuser, &host}, chain);
  EXPECT_THAT(result, Not(HasSubstr("fused")));
  EXPECT_THAT(result, HasSubstr("relu(%a) claim(\"first\")"));
  EXPECT_THAT(result, HasSubstr("exp(%x) claim(\"host\")"));
  first.set("relu", ClaimAnswer::decline("not today"));
  EXPECT_THAT(execute({&first, &fuser, &host}, chain), HasSubstr("fused"));
}

// A group of one op needs no `fused` around it; a declined group is none.
TEST_F(ExecutionTransformTest, SmallAndDeclinedGroups) {
  fuser.groups = {{"b"}};
  fuser.answer = ClaimAnswer::accept(32);
  std::string result = execute({&fuser, &host}, chain);
  EXPECT_THAT(result, Not(HasSubstr("fused")));
  EXPECT_THAT(result, HasSubstr("relu(%a) claim(\"fuser\", workspace 32)"));
  fuser.groups = {{"a", "b"}};
  fuser.answer = ClaimAnswer::decline("no");
  EXPECT_EQ(execute({&fuser, &host}, chain), execute({&host}, chain));
}

// A group that cannot be captured says so on every op.
TEST_F(ExecutionTransformTest, UncapturableGroup) {
  fuser.groups = {{"a", "b"}};
  fuser.answer = ClaimAnswer::acceptUncapturable("allocates");
  std::string result = execute({&fuser, &host}, chain);
  llvm::StringRef claim = "claim(\"fuser\", uncapturable, why \"allocates\")";
  EXPECT_EQ(llvm::StringRef(result).count(claim), 3u);
}

// Groups that name what is not there, the same op twice, a terminator, or ops of several bodies are
// ignored.
TEST_F(ExecutionTransformTest, MalformedGroups) {
  llvm::StringRef text = R"(trace @t(%x: f32[8]) {
  %a: f32[8] = exp(%x)
  %b: f32[8] = checkpoint(%a) {
  ^(%a: f32[8]):
    %c: f32[8] = neg(%a)
    return(%c)
  }
  return(%b)
}
)";
  TracePair pair = parse(text);
  const Trace &trace = pair.forward();
  OpId a = trace.ops()[0], b = trace.ops()[1], ret = trace.ops()[2];
  OpId c = trace.ops(trace.op(b).bodies().front())[0];
  fuser.groupsOfIds = {{}, {a, a}, {a, OpId()}, {a, OpId(1000)}, {b, ret}, {a, c}, {c}};
  EXPECT_EQ(execute({&fuser, &host}, text), execute({&host}, text));
  fuser.groupsOfIds = {{b, a}};
  EXPECT_THAT(execute({&fuser, &host}, text), HasSubstr("%b: f32[8] = fused(%x)"));
}

// Groups in nested bodies are fused there; an op with bodies can be in a group, and runs with it
// though nobody claims what is in its body.
TEST_F(ExecutionTransformTest, GroupsAndBodies) {
  llvm::StringRef text = R"(trace @t(%x: f32[8]) {
  %a: f32[8] = exp(%x)
  %b: f32[8] = checkpoint(%a) {
  ^(%a: f32[8]):
    %c: f32[8] = neg(%a)
    %d: f32[8] = relu(%c)
    return(%d)
  }
  return(%b)
}
)";
  fuser.groups = {{"c", "d"}};
  std::string inside = execute({&fuser, &host}, text);
  EXPECT_THAT(inside, HasSubstr("%b: f32[8] = checkpoint(%a) claim(\"host\")"));
  EXPECT_THAT(inside, HasSubstr("%d: f32[8] = fused(%a) claim(\"fuser\")"));

  fuser.groups = {{"a", "b"}};
  std::string outside = execute({&fuser}, text);
  EXPECT_THAT(outside, HasSubstr("%b: f32[8] = fused(%x) claim(\"fuser\")"));
  EXPECT_THAT(outside, HasSubstr("checkpoint(%a) claim(\"fuser\")"));
  EXPECT_THAT(outside, HasSubstr("neg(%a)\n"));
  EXPECT_EQ(execute({&fuser}, outside), outside);

  fuser.groups = {{"a", "b"}, {"c", "d"}};
  EXPECT_THAT(execute({&fuser}, text), HasSubstr("%d: f32[8] = fused(%a) claim(\"fuser\")"));
}

} // namespace
