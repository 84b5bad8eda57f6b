//===- RealTracesTest.cpp - PyTorch's training steps through the pipeline ---===//
//
// Every trace in tests/data/traces goes through the whole pipeline, in both partitions: what comes
// out verifies and survives text and JSON to the byte, and depends neither on names nor on hash
// seeds nor on addresses.
//
//===----------------------------------------------------------------------===//

#include "support/TestPaths.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/ImportFX.h"
#include "rondo/ir/JSON.h"
#include "rondo/ir/Text.h"
#include "rondo/passes/PassRegistry.h"
#include "rondo/passes/TableClaimSource.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace rondo;

namespace {

const char *const traceNames[] = {"adam",
                                  "branchy",
                                  "convnet",
                                  "decode_tiny",
                                  "gpt2_small_bf16",
                                  "gpt_tiny",
                                  "gpt_tiny_checkpoint",
                                  "gpt_tiny_checkpoint_dropout",
                                  "gpt_tiny_dropout",
                                  "gpt_tiny_math",
                                  "llama_tiny",
                                  "llama_tiny_bf16",
                                  "mlp"};

const char *const pipelines[] = {
    "dce,cse,canonicalise,execution{executors=host},cuda-graph,del",
    "dce,cse,canonicalise,execution{executors=host},cuda-graph{partition=dataflow},del"};

std::string textOf(const TracePair &pair) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(pair, os);
  return os.str();
}

std::string jsonOf(const TracePair &pair) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeJSON(pair, os);
  return os.str();
}

/// Takes the names of all values away: printing numbers them in program order.
void clearNames(Trace &trace) {
  for (uint32_t i = 0; i < trace.numValues(); ++i)
    trace.setName(ValueId(i), "");
}

/// Gives every value a name that has nothing to do with its old one and sorts in another order.
void scrambleNames(Trace &trace) {
  for (uint32_t i = 0; i < trace.numValues(); ++i)
    trace.setName(ValueId(i), "v" + std::to_string((i * 7919u + 17u) % 1000003u));
}

void forBothTraces(TracePair &pair, void (*change)(Trace &)) {
  change(pair.forward());
  if (pair.hasBackward())
    change(pair.backward());
}

/// Imports and runs; makes everything anew for each test.
class PipelineTest : public ::testing::Test {
protected:
  PipelineTest() {
    llvm::cantFail(registerCoreOps(registry));
    host = std::make_unique<TableClaimSource>(makeHostClaimTable(registry));
    llvm::cantFail(registerPasses(passes, {host.get()}));
  }

  TracePair import(llvm::StringRef name) {
    std::string path = testDataDir() + "/traces/" + name.str() + ".json";
    auto buffer = llvm::MemoryBuffer::getFile(path);
    if (!buffer)
      llvm::report_fatal_error(llvm::Twine(path) + ": " + buffer.getError().message());
    return llvm::cantFail(importFX((*buffer)->getBuffer(), path, registry));
  }

  TracePair run(llvm::StringRef pipeline, TracePair pair) {
    PassManager manager;
    llvm::cantFail(passes.parsePipeline(pipeline, manager));
    llvm::Expected<TracePair> result = manager.run(std::move(pair));
    if (!result) {
      ADD_FAILURE() << llvm::toString(result.takeError());
      return TracePair(Trace(registry));
    }
    return std::move(*result);
  }

  static unsigned countRegions(const Trace &trace) {
    unsigned regions = 0;
    for (OpId op : trace.ops())
      regions += trace.op(op).domain() != nullptr;
    return regions;
  }

  OpRegistry registry;
  std::unique_ptr<TableClaimSource> host;
  PassRegistry passes;
};

class RealTracesTest : public PipelineTest, public ::testing::WithParamInterface<const char *> {};

// With every op capturable, forward and backward are one region each, in both partitions.
TEST_P(RealTracesTest, OneRegionEachWay) {
  for (const char *pipeline : pipelines) {
    TracePair pair = run(pipeline, import(GetParam()));
    EXPECT_EQ(countRegions(pair.forward()), 1u) << pipeline;
    if (pair.hasBackward()) {
      EXPECT_EQ(countRegions(pair.backward()), 1u) << pipeline;
    }
  }
}

// What comes out of the pipeline survives text and JSON, and the way from one to the other, to the
// byte.
TEST_P(RealTracesTest, ResultRoundTrips) {
  for (const char *pipeline : pipelines) {
    TracePair pair = run(pipeline, import(GetParam()));
    std::string text = textOf(pair), json = jsonOf(pair);
    llvm::Expected<TracePair> fromText = parsePair(text, "text", registry);
    ASSERT_TRUE(bool(fromText)) << llvm::toString(fromText.takeError());
    EXPECT_EQ(textOf(*fromText), text);
    EXPECT_EQ(jsonOf(*fromText), json);
    llvm::Expected<TracePair> fromJSON = readJSON(json, "json", registry);
    ASSERT_TRUE(bool(fromJSON)) << llvm::toString(fromJSON.takeError());
    EXPECT_EQ(jsonOf(*fromJSON), json);
    EXPECT_EQ(textOf(*fromJSON), text);
  }
}

// Every pass of the pipeline, run again right after itself, changes nothing.
TEST_P(RealTracesTest, TwiceChangesNothing) {
  TracePair pair = import(GetParam());
  for (const char *pass :
       {"dce", "cse", "canonicalise", "execution", "cuda-graph{partition=dataflow}", "del"}) {
    pair = run(pass, std::move(pair));
    std::string once = textOf(pair);
    pair = run(pass, std::move(pair));
    EXPECT_EQ(textOf(pair), once) << pass;
  }
}

// Names decide nothing: with every value renamed, the result is the same but for names.
TEST_P(RealTracesTest, NamesDecideNothing) {
  for (const char *pipeline : pipelines) {
    TracePair original = import(GetParam());
    TracePair renamed = original.clone();
    forBothTraces(renamed, scrambleNames);
    original = run(pipeline, std::move(original));
    renamed = run(pipeline, std::move(renamed));
    forBothTraces(original, clearNames);
    forBothTraces(renamed, clearNames);
    EXPECT_EQ(textOf(original), textOf(renamed)) << pipeline;
  }
}

INSTANTIATE_TEST_SUITE_P(Traces, RealTracesTest, ::testing::ValuesIn(traceNames),
                         [](const auto &info) { return std::string(info.param); });

//===----------------------------------------------------------------------===//
// Hash seeds and addresses
//===----------------------------------------------------------------------===//

class DeterminismTest : public PipelineTest {};

// Runs in a process of its own, started by the test below: one run with the hash seed of
// RONDO_TEST_SEED and with the heap moved by an amount that depends on it; writes what came out to
// RONDO_TEST_OUTPUT.
TEST_F(DeterminismTest, DISABLED_Worker) {
  const char *output = std::getenv("RONDO_TEST_OUTPUT");
  if (!output)
    GTEST_SKIP() << "started by SeedsAndAddressesDecideNothing";
  std::vector<std::unique_ptr<char[]>> moved;
  for (int i = 0, n = std::atoi(std::getenv("RONDO_TEST_SEED")); i < n * 97; ++i)
    moved.push_back(std::make_unique<char[]>(16 + (i * 31) % 4000));
  for (size_t i = 0; i < moved.size(); i += 3)
    moved[i].reset();
  std::error_code code;
  llvm::raw_fd_ostream os(output, code);
  ASSERT_FALSE(code) << code.message();
  for (const char *name : {"gpt_tiny_dropout", "branchy", "decode_tiny"})
    for (const char *pipeline : pipelines) {
      TracePair pair = run(pipeline, import(name));
      print(pair, os);
      writeJSON(pair, os);
    }
}

// 20 processes with different hash seeds and heaps give the same bytes.
TEST_F(DeterminismTest, SeedsAndAddressesDecideNothing) {
  std::string self = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  llvm::SmallString<128> output;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("rondo-determinism", "txt", output));
  std::string first;
  for (int seed = 1; seed <= 20; ++seed) {
    // The worker is not among the tests of a shard.
    std::string command = "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX"
                          " RONDO_TEST_SEED=" +
                          std::to_string(seed) + " RONDO_TEST_OUTPUT=" + output.str().str() + " '" +
                          self +
                          "' --gtest_also_run_disabled_tests"
                          " --gtest_filter=DeterminismTest.DISABLED_Worker > /dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    auto buffer = llvm::MemoryBuffer::getFile(output);
    ASSERT_TRUE(bool(buffer));
    if (seed == 1)
      first = (*buffer)->getBuffer().str();
    EXPECT_GT(first.size(), 10000u);
    EXPECT_TRUE((*buffer)->getBuffer() == first) << "seed " << seed;
  }
  llvm::sys::fs::remove(output);
}

#if LLVM_VERSION_MAJOR < 19
/// Sets LLVM's hash seed before anything is hashed; newer versions of LLVM have no such switch.
const bool seedIsSet = [] {
  if (const char *seed = std::getenv("RONDO_TEST_SEED"))
    llvm::set_fixed_execution_hash_seed(std::atoi(seed) * 0x9e3779b97f4a7c15ull);
  return true;
}();
#endif

} // namespace
