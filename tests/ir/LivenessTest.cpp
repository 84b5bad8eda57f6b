//===- LivenessTest.cpp - Last uses and live bytes --------------------------===//

#include "rondo/ir/Liveness.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"

#include <gtest/gtest.h>

using namespace rondo;

namespace {

class LivenessTest : public ::testing::Test {
protected:
  LivenessTest() { llvm::cantFail(registerCoreOps(registry)); }

  Trace parse(llvm::StringRef text) { return llvm::cantFail(parseTrace(text, "test", registry)); }
  static ValueId result(const Trace &trace, size_t op) {
    return trace.op(trace.ops()[op]).result();
  }

  OpRegistry registry;
};

const char *const viewed = "trace @t(%x: f32[256], %unused: f32[4]) {\n"
                           "  %a: f32[256] = exp(%x)\n"
                           "  %v: f32[16, 16] = reshape(%a) {shape = [16, 16]}\n"
                           "  %b: f32[16, 16] = sin(%v)\n"
                           "  %c: f32[16, 16] = cos(%v)\n"
                           "  %d: f32[16, 16] = neg(%b)\n"
                           "  return(%d)\n"
                           "}\n";

// A name ends with its own last use, its storage with the last use of any name.
TEST_F(LivenessTest, NamesAndStorage) {
  Trace trace = parse(viewed);
  StorageRoots roots(trace);
  Liveness liveness(trace, Trace::topBody(), roots);
  ValueId a = result(trace, 0), v = result(trace, 1), b = result(trace, 2), c = result(trace, 3);
  EXPECT_EQ(liveness.lastUse(a), 1u);
  EXPECT_EQ(liveness.lastUse(v), 3u);
  EXPECT_EQ(liveness.lastUseOfStorage(a), 3u);
  EXPECT_EQ(liveness.lastUse(b), 4u);
  EXPECT_EQ(liveness.lastUse(c), Liveness::neverUsed);
  EXPECT_EQ(liveness.lastUseOfStorage(c), 3u) << "unused storage lives where it is made";
  EXPECT_EQ(liveness.lastUse(trace.arguments()[1]), Liveness::neverUsed);
}

// The peak counts arguments throughout, views not at all, and a storage up to its last use: at
// `cos` x, a, b and c are live.
TEST_F(LivenessTest, Peak) {
  Trace trace = parse(viewed);
  LivenessPeak peak = livenessPeak(trace, trace.ops(), StorageRoots(trace));
  EXPECT_EQ(peak.bytes, 16 + 4 * 1024);
  EXPECT_EQ(peak.position, 3u);
}

// Another order has another peak: with `neg` before `cos`, b is dead when c is made, but d is live.
TEST_F(LivenessTest, PeakFollowsTheOrder) {
  Trace trace = parse("trace @t(%x: f32[256]) {\n"
                      "  %a: f32[256] = exp(%x)\n"
                      "  %b: f32[256] = sin(%x)\n"
                      "  %s: f32[] = sum(%a)\n"
                      "  %t: f32[] = sum(%b)\n"
                      "  return(%s, %t)\n"
                      "}\n");
  StorageRoots roots(trace);
  EXPECT_EQ(livenessPeak(trace, trace.ops(), roots).bytes, 3 * 1024 + 4);
  std::vector<OpId> order = trace.ops().vec();
  std::swap(order[1], order[2]);
  EXPECT_EQ(livenessPeak(trace, order, roots).bytes, 2 * 1024 + 8);
}

// An empty order: the arguments alone.
TEST_F(LivenessTest, PeakOfNothing) {
  Trace trace = parse("trace @t(%x: f32[256]) {\n  return()\n}\n");
  EXPECT_EQ(livenessPeak(trace, {}, StorageRoots(trace)).bytes, 1024);
}

// Bytes follow the strided extent; nothing for symbols and for what no int64 holds; 0 for what is
// no tensor or empty.
TEST_F(LivenessTest, StorageBytes) {
  EXPECT_EQ(storageBytes(TensorType(DType::F16, {4, 8})), 64);
  EXPECT_EQ(storageBytes(TensorType(DType::F32, {4, 8}, {16, 1}, Device::host())), 4 * 56);
  EXPECT_EQ(storageBytes(TensorType(DType::F32, {4, 8}, {0, 1}, Device::host())), 4 * 8);
  EXPECT_EQ(storageBytes(TensorType(DType::F32, {4, 0})), 0);
  EXPECT_EQ(storageBytes(TensorType(DType::F32, {Dim::symbol("B")})), std::nullopt);
  EXPECT_EQ(storageBytes(TensorType(DType::F32, {INT64_MAX})), std::nullopt);
  EXPECT_EQ(storageBytes(ScalarKind::I64), 0);
}

} // namespace
