//===- TableClaimSourceTest.cpp - Claims from a table -----------------------===//

#include "rondo/passes/TableClaimSource.h"

#include "PassFixture.h"

using namespace rondo;

namespace {

class TableClaimSourceTest : public PassFixture {
protected:
  /// What `source` says of the first op of the trace: `capturable`, `uncapturable: why`, `no: why`.
  std::string ask(const ClaimSource &source, llvm::StringRef text) {
    TracePair pair = parse(text);
    ClaimAnswer answer = source.claim(pair.forward(), pair.forward().ops().front());
    if (!answer.accepted)
      return "no: " + answer.why;
    return answer.capturable ? "capturable" : "uncapturable: " + answer.why;
  }
};

constexpr llvm::StringLiteral relu = R"(trace @t(%x: f32[8]) {
  %y: f32[8] = relu(%x)
  return(%y)
})";
constexpr llvm::StringLiteral reluOnCUDA = R"(trace @t(%x: bf16[8]@cuda:0) {
  %y: bf16[8]@cuda:0 = relu(%x)
  return(%y)
})";
constexpr llvm::StringLiteral item = R"(trace @t(%x: i64[]) {
  %y: i64 = item(%x)
  return(%y)
})";
constexpr llvm::StringLiteral opaque = R"(trace @t(%x: f32[8]) {
  %y: f32[8] = mylib.magic(%x)
  return(%y)
})";
constexpr llvm::StringLiteral cast = R"(trace @t(%x: f32[8]) {
  %y: f16[8] = cast(%x) {dtype = f16}
  return(%y)
})";
constexpr llvm::StringLiteral toDevice = R"(trace @t(%x: f32[8]) {
  %y: f32[8]@cuda:0 = to_device(%x) {device = cuda:0}
  return(%y)
})";

// The table answers by the op's name, and else by its default.
TEST_F(TableClaimSourceTest, AnswersByName) {
  TableClaimSource source("table");
  EXPECT_EQ(source.name(), "table");
  EXPECT_EQ(ask(source, relu), "no: it is not in the table");
  source.set("relu", ClaimAnswer::accept()).set("item", ClaimAnswer::acceptUncapturable("waits"));
  EXPECT_EQ(ask(source, relu), "capturable");
  EXPECT_EQ(ask(source, item), "uncapturable: waits");
  EXPECT_EQ(ask(source, cast), "no: it is not in the table");

  TableClaimSource generous("generous", ClaimAnswer::accept());
  generous.set("relu", ClaimAnswer::decline("no activations"));
  EXPECT_EQ(ask(generous, relu), "no: no activations");
  EXPECT_EQ(ask(generous, cast), "capturable");
}

// A later answer for the same name replaces the earlier one; workspace bytes are handed on.
TEST_F(TableClaimSourceTest, LaterAnswersReplaceEarlierOnes) {
  TableClaimSource source("table");
  source.set("relu", ClaimAnswer::decline("no")).set("relu", ClaimAnswer::accept(64));
  TracePair pair = parse(relu);
  ClaimAnswer answer = source.claim(pair.forward(), pair.forward().ops().front());
  EXPECT_TRUE(answer.accepted);
  EXPECT_EQ(answer.workspaceBytes, 64u);
}

// An op with an operand or result on a device that is not named is declined.
TEST_F(TableClaimSourceTest, Devices) {
  TableClaimSource source("table", ClaimAnswer::accept());
  source.setDevices({DeviceKind::CUDA});
  EXPECT_EQ(ask(source, reluOnCUDA), "capturable");
  EXPECT_EQ(ask(source, relu), "no: it does not run on host");
  EXPECT_EQ(ask(source, toDevice), "no: it does not run on host");
  source.setDevices({DeviceKind::CUDA, DeviceKind::Host});
  EXPECT_EQ(ask(source, toDevice), "capturable");
  source.setDevices({DeviceKind::Host});
  EXPECT_EQ(ask(source, toDevice), "no: it does not run on cuda:0");
}

// An op with an operand or result of a dtype that is not named is declined; values that are no
// tensors have none.
TEST_F(TableClaimSourceTest, DTypes) {
  TableClaimSource source("table", ClaimAnswer::accept());
  source.setDTypes({DType::F32, DType::I64});
  EXPECT_EQ(ask(source, relu), "capturable");
  EXPECT_EQ(ask(source, reluOnCUDA), "no: it has no kernel for bf16");
  EXPECT_EQ(ask(source, cast), "no: it has no kernel for f16");
  EXPECT_EQ(ask(source, item), "capturable");
}

// Operands that are left out do not matter.
TEST_F(TableClaimSourceTest, AbsentOperands) {
  TableClaimSource source("table", ClaimAnswer::accept());
  source.setDTypes({DType::F32}).setDevices({DeviceKind::Host});
  EXPECT_EQ(ask(source, R"(trace @t(%x: f32[8, 4], %b: f32[4]) {
    %y: f32[8, 4], %m: f32[8, 1], %s: f32[8, 1] = layer_norm(%x, none, %b) {normalized_shape = [4]}
    return(%y)
  })"),
            "capturable");
}

// The host's table accepts every op of the registry on host and cuda devices; only those that
// synchronise with the host cannot be captured.
TEST_F(TableClaimSourceTest, HostTable) {
  TableClaimSource host = makeHostClaimTable(registry);
  EXPECT_EQ(host.name(), "host");
  EXPECT_EQ(ask(host, relu), "capturable");
  EXPECT_EQ(ask(host, reluOnCUDA), "capturable");
  EXPECT_EQ(ask(host, item), "uncapturable: it synchronises with the host");
  EXPECT_EQ(ask(host, opaque), "no: the registry does not know the op");
}

} // namespace
