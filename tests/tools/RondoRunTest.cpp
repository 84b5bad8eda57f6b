//===- RondoRunTest.cpp - The tool rondo-run ------------------------------===//
//
// Exit codes and messages of the tool, which is run as a process. What its report looks like is in
// tests/filecheck/run.
//
//===----------------------------------------------------------------------===//

#include "ToolTesting.h"

#include "rondo/executors/Safetensors.h"
#include "rondo/host/HostDevice.h"

#include "llvm/ADT/StringExtras.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

using namespace rondo;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

namespace {

class RondoRunTest : public ToolTest {
protected:
  RondoRunTest() : ToolTest("rondo-run") {}

  /// Writes the recorded values of trace `name` with one element of tensor `changed` changed by
  /// `difference`, beside a copy of the trace.
  void change(llvm::StringRef name, llvm::StringRef changed, float difference) const {
    copyHere((name + ".json").str());
    Safetensors file = cantFail(Safetensors::open(traces + name.str() + ".safetensors"));
    unsigned found = 0;
    for (const NamedTensor &item : file) {
      if (item.name != changed)
        continue;
      ++found;
      ASSERT_EQ(item.tensor.dtype(), DType::F32);
      std::byte *last =
          item.tensor.data() + (item.tensor.numElements() - 1) * int64_t(sizeof(float));
      float value;
      std::memcpy(&value, last, sizeof value);
      value += difference;
      std::memcpy(last, &value, sizeof value);
    }
    ASSERT_EQ(found, 1u) << changed.str();
    cantFail(
        writeSafetensors(path((name + ".safetensors").str()), file.tensors(), file.metadata()));
  }
};

/// The entry of the table's line for `trace` in the column with this title.
std::string cell(const std::string &out, const std::string &trace, const std::string &title) {
  llvm::SmallVector<llvm::StringRef, 0> lines;
  llvm::StringRef(out).split(lines, '\n');
  llvm::StringRef header, line;
  for (llvm::StringRef candidate : lines) {
    if (candidate.substr(0, 6) == "trace ")
      header = candidate;
    else if (!header.empty() && candidate.substr(0, trace.size() + 1) == trace + " ")
      line = candidate;
  }
  size_t end = header.find(title);
  if (end == llvm::StringRef::npos || line.empty())
    return "no column '" + title + "'";
  end += title.size();
  return line.substr(0, end).rsplit(' ').second.str();
}

} // namespace

//===----------------------------------------------------------------------===//
// --check
//===----------------------------------------------------------------------===//

// Traces whose results are PyTorch's pass, together, too.
TEST_F(RondoRunTest, CheckPasses) {
  ToolOutcome both = run({"--check", "--steps=2", traces + "mlp.json", traces + "gpt_tiny.json"});
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(both.err, IsEmpty());
  EXPECT_EQ(cell(both.out, "mlp", "bits"), "equal");
  EXPECT_EQ(cell(both.out, "gpt_tiny", "bits"), "equal");
}

// One wrong element of one recorded value fails the check, which names the value.
TEST_F(RondoRunTest, CheckFindsOneElement) {
  struct Case {
    const char *changed;
    float difference;
    std::string says;
  };
  const Case cases[] = {
      {"forward.out.0", 0.1f, "result of the forward is off by"},
      {"backward.out.0", 0.5f, "gradient 0 is off by"},
      {"backward.out.5", 0.5f, "gradient 5 is off by"},
  };
  for (const Case &item : cases) {
    SCOPED_TRACE(item.changed);
    change("mlp", item.changed, item.difference);
    ToolOutcome outcome = run({"--check", "--steps=1", path("mlp.json")});
    EXPECT_EQ(outcome.code, 4);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("error: mlp: "), HasSubstr(item.says)));
    EXPECT_EQ(run({"--steps=1", path("mlp.json")}).code, 0) << "nothing was to be checked";
  }
}

// So does one of a value that is saved for the backward, or of an argument that is written.
TEST_F(RondoRunTest, CheckFindsSavedAndWritten) {
  change("gpt_tiny", "forward.out.3", 5.0f);
  ToolOutcome saved = run({"--check", "--steps=1", path("gpt_tiny.json")});
  EXPECT_EQ(saved.code, 4);
  EXPECT_THAT(saved.err, AllOf(HasSubstr("error: gpt_tiny: saved '"), HasSubstr("is off by")));

  change("adam", "forward.out.0", 5.0f);
  ToolOutcome written = run({"--check", "--steps=1", path("adam.json")});
  EXPECT_EQ(written.code, 4);
  EXPECT_THAT(written.err, AllOf(HasSubstr("error: adam: argument '"), HasSubstr("is off by")));
}

// Without recorded values there is nothing to check against, which is no success.
TEST_F(RondoRunTest, CheckNeedsValues) {
  copyHere("mlp.json");
  ToolOutcome outcome = run({"--check", "--steps=1", path("mlp.json")});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("no values were recorded"));
}

// A bound of one's own is the one that counts.
TEST_F(RondoRunTest, Bounds) {
  EXPECT_EQ(run({"--check", "--steps=1", "--bound=1e-12", traces + "mlp.json"}).code, 4);
  EXPECT_EQ(run({"--check", "--steps=1", "--memory-bound=0.5", traces + "mlp.json"}).code, 4);
  change("mlp", "backward.out.0", 0.5f);
  EXPECT_EQ(run({"--check", "--steps=1", "--bound=100", path("mlp.json")}).code, 0);
}

//===----------------------------------------------------------------------===//
// Bad input, wrong usage
//===----------------------------------------------------------------------===//

// What cannot be read or run ends with 1, wrong usage with 2; either says what is wrong.
TEST_F(RondoRunTest, Errors) {
  const std::string mlp = traces + "mlp.json";
  write("text.safetensors", "these are no tensors");
  write("short.safetensors", "abc");
  write("empty.json", "");
  write("bad.trace", "trace @t(%x: f32[2]) {\n  %y: f32[3] = neg(%x)\n  return(%y)\n}");
  struct Case {
    std::vector<std::string> arguments;
    int code;
    std::vector<std::string> says;
  };
  const Case cases[] = {
      {{traces + "convnet.json"},
       1,
       {"convnet.json", "'convolution' op", "add one with HostExecutor::add"}},
      {{path("nothing.json")}, 1, {"nothing.json: error: cannot be read: No such file"}},
      {{path("")}, 1, {"is a directory"}},
      {{path("empty.json")}, 1, {"empty.json"}},
      {{path("bad.trace")}, 1, {"bad.trace:2:", "f32[3]"}},
      {{"--values=" + path("text.safetensors"), mlp}, 1, {"text.safetensors: error: "}},
      {{"--values=" + path("short.safetensors"), mlp}, 1, {"short.safetensors: error: "}},
      {{"--values=" + path("nothing"), mlp}, 1, {"nothing: error: ", "No such file"}},
      {{"--values=" + traces + "branchy.safetensors", mlp},
       1,
       {"error: argument 'primals_1' of the forward: expected f32[32, 32], the recorded value is"}},
      {{"--values=" + traces + "adam.safetensors", mlp},
       1,
       {"error: no value is recorded for argument 'primals_1' of the forward"}},
      {{"--device=cuda", mlp}, 1, {"error: no CUDA device: ", "; use the host device"}},
      {{"--device=cuda:3", mlp}, 1, {"error: no CUDA device: ", "; use the host device"}},
      {{"--device=tpu", mlp}, 2, {"'tpu' is no device", "devices are: host, cuda"}},
      {{"-p", "execution,cuda-grph", mlp}, 1, {"cuda-grph", "did you mean 'cuda-graph'"}},
      {{"-p", "dce", mlp}, 1, {"'addmm' op", "no executor claims it"}},
      {{"--no-such-option", mlp}, 2, {"--no-such-option"}},
      {{"--steps=many", mlp}, 2, {"--steps", "many"}},
      {{}, 2, {"positional"}},
  };
  for (const Case &item : cases) {
    SCOPED_TRACE(llvm::join(item.arguments, " "));
    ToolOutcome outcome = run(item.arguments);
    EXPECT_EQ(outcome.code, item.code);
    for (const std::string &part : item.says)
      EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
}

// A trace that cannot be run does not keep the others from running.
TEST_F(RondoRunTest, GoesOn) {
  ToolOutcome outcome =
      run({"--steps=1", path("nothing.json"), traces + "mlp.json", traces + "convnet.json"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("nothing.json"), HasSubstr("'convolution' op")));
  EXPECT_EQ(cell(outcome.out, "mlp", "bits"), "equal");
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

// --steps says how often each graph is replayed after its first call.
TEST_F(RondoRunTest, Steps) {
  for (const char *steps : {"1", "3"}) {
    ToolOutcome outcome = run({std::string("--steps=") + steps, traces + "mlp.json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(cell(outcome.out, "mlp", "captures"), "2"); // one of each side
    EXPECT_EQ(cell(outcome.out, "mlp", "replays"), std::to_string(2 * std::stoi(steps)));
  }
}

// --no-graphs captures and replays nothing.
TEST_F(RondoRunTest, NoGraphs) {
  ToolOutcome outcome = run({"--no-graphs", "--check", "--steps=1", traces + "mlp.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(cell(outcome.out, "mlp", "captures"), "0");
  EXPECT_EQ(cell(outcome.out, "mlp", "replays"), "0");
  EXPECT_EQ(cell(outcome.out, "mlp", "replay ms"), "-");
  EXPECT_THAT(outcome.out, HasSubstr("0 held, 0 captured, 0 replays"));
}

// Without recorded values arguments are random, and no error is given.
TEST_F(RondoRunTest, RandomArguments) {
  copyHere("mlp.json");
  ToolOutcome outcome = run({"--seed=7", "--steps=1", path("mlp.json")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(cell(outcome.out, "mlp", "loss err"), "-");
  EXPECT_EQ(cell(outcome.out, "mlp", "max err"), "-");
  EXPECT_EQ(cell(outcome.out, "mlp", "bits"), "equal");
  EXPECT_THAT(outcome.out, Not(HasSubstr("error:")));
  EXPECT_THAT(cell(run({"--steps=1", traces + "mlp.json"}).out, "mlp", "max err"), Not("-"));
}

// --values names the file wherever the trace is; --table prints the table alone.
TEST_F(RondoRunTest, ValuesAndTable) {
  copyHere("mlp.json");
  ToolOutcome outcome = run({"--check", "--steps=1", "--table",
                             "--values=" + traces + "mlp.safetensors", path("mlp.json")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.substr(0, 6), "trace ");
  EXPECT_EQ(llvm::StringRef(outcome.out).count('\n'), 2u);
}

// Masks of dropout that are fed make its results PyTorch's; drawn ones are others.
TEST_F(RondoRunTest, FeedMasks) {
  std::string trace = traces + "gpt_tiny_dropout.json";
  EXPECT_EQ(run({"--check", "--steps=1", "--feed-masks", trace}).code, 0);
  EXPECT_EQ(run({"--check", "--steps=1", trace}).code, 4);
}
