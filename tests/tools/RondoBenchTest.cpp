//===- RondoBenchTest.cpp - The tool rondo-bench --------------------------===//
//
// Exit codes, messages and what is written; figures vary.
//
//===----------------------------------------------------------------------===//

#include "ToolTesting.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <map>

using namespace rondo;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace {

class RondoBenchTest : public ToolTest {
protected:
  RondoBenchTest() : ToolTest("rondo-bench") {}
};

} // namespace

// Each benchmark gives its lines, and the file has all figures of the table.
TEST_F(RondoBenchTest, All) {
  ToolOutcome outcome = run({"--rounds=2", "--calls=2", "--largest=8",
                             "--traces=" + traces + "mlp.json", "--json=" + path("figures.json")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  for (const char *line :
       {"\nreplay      nodes of the graph ", "\nreplay      Program::forward, CPU time ",
        "\nreplay      device allocations per call ",
        "\neager       Kernel::enqueue of add, CPU time ",
        "\ncapture     Graph::instantiate, per node ", "\nhandover    4 KiB, 1 consumer, unmoved, ",
        "\npolicies    BufferCosts, node patched ", "\nmemory      mlp, peak of 3 steps ",
        "\nremat       mlp, budget 100 %, saved ", "\ncheckpoint  f32, GELU by erf, until done ",
        "\ntraces      mlp, replayed step, CPU time "})
    EXPECT_THAT(outcome.out, HasSubstr(line));

  auto json = nlohmann::json::parse(textOf(path("figures.json")), nullptr,
                                    /*allow_exceptions=*/false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["device"], "host");
  EXPECT_EQ(json["figures"].size(), size_t(llvm::StringRef(outcome.out).count('\n')) - 2)
      << "what it runs on, and the titles";
  for (const auto &figure : json["figures"]) {
    if (figure["what"] == "nodes of the graph") {
      EXPECT_EQ(figure["value"], 64);
    } else if (figure["what"] == "device allocations per call") {
      EXPECT_EQ(figure["value"], 0);
    } else if (figure["what"] == "Program::forward, CPU time") {
      EXPECT_GT(figure["ratio"], 0.0);
    }
  }
}

namespace {

/// The figures of one run of named benchmarks on the host.
class RondoBenchFiguresTest : public RondoBenchTest {
protected:
  /// By what they are of.
  std::map<std::string, nlohmann::json> figuresOf(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--rounds=2", "--calls=3", "--json=" + path("x.json")});
    ToolOutcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::map<std::string, nlohmann::json> figures;
    auto json = nlohmann::json::parse(textOf(path("x.json")), nullptr, /*allow_exceptions=*/false);
    if (json.is_object())
      for (const auto &figure : json["figures"])
        figures[figure["what"]] = figure;
    return figures;
  }
};

} // namespace

// An input's hand-over is measured for each size and number of consumers, beside a copy, and has a
// bar where it is used by few.
TEST_F(RondoBenchFiguresTest, Handover) {
  auto figures = figuresOf({"handover"});
  EXPECT_EQ(figures.size(), 20u) << "2 sizes, 5 numbers of consumers; the host has no clock";
  for (const char *size : {"4 KiB", "1 MiB"}) {
    for (unsigned consumers : {1, 2, 4, 16, 64}) {
      std::string shape = std::string(size) + ", " + std::to_string(consumers) + " consumer" +
                          (consumers == 1 ? "" : "s");
      SCOPED_TRACE(shape);
      ASSERT_TRUE(figures.count(shape + ", unmoved, CPU time"));
      EXPECT_GT(figures[shape + ", unmoved, CPU time"]["value"], 0.0);
      nlohmann::json added = figures[shape + ", added if patched, CPU time"];
      ASSERT_TRUE(added.is_object());
      EXPECT_EQ(added["baseline_name"], "copied");
      EXPECT_EQ(added.contains("bar"), consumers <= 4);
      if (consumers > 4)
        continue;
      EXPECT_EQ(added["bar"], 4);
      EXPECT_EQ(added["bar_on"], "value") << "what a copy costs does not matter";
      EXPECT_EQ(added["meets_bar"], added["value"].get<double>() <= 4);
    }
  }
}

// Each shape is measured patched, copied, and as chosen, which is compared with the better one.
TEST_F(RondoBenchFiguresTest, Policies) {
  auto figures = figuresOf({"policies", "--largest=16"});
  EXPECT_EQ(figures.size(), 4u + 2 * (3 * 5 + 1)) << "costs; 1, 8 and 16 KiB, and several inputs";
  for (const char *cost : {"node patched", "node that copies", "node that gathers", "MiB copied"})
    EXPECT_TRUE(figures.count(std::string("BufferCosts, ") + cost)) << cost;
  ASSERT_TRUE(figures.count("1 KiB, 1 consumer, auto: patched"))
      << "a copy would change as many nodes";
  unsigned numChosen = 0;
  for (const auto &entry : figures) {
    llvm::StringRef what = entry.first;
    if (!what.contains(", auto: "))
      continue;
    SCOPED_TRACE(entry.first);
    ++numChosen;
    std::string shape = what.split(", auto: ").first.str();
    ASSERT_TRUE(figures.count(shape + ", patched"));
    const nlohmann::json &patched = figures[shape + ", patched"];
    EXPECT_EQ(patched["baseline_name"], "copied");
    EXPECT_EQ(entry.second["baseline"].get<double>(),
              std::min(patched["value"].get<double>(), patched["baseline"].get<double>()));
    EXPECT_EQ(entry.second["bar"], 1.1);
    EXPECT_EQ(entry.second["bar_on"], "ratio");
  }
  EXPECT_EQ(numChosen, 16u);
  EXPECT_TRUE(figures.count("8 x 1 KiB, 4 consumers each, patched"));
}

// Steps take what was planned for them, which is no less than they need and more than the
// arguments; beyond that at most what making a graph takes for a moment: 512 KiB.
TEST_F(RondoBenchFiguresTest, Memory) {
  auto figures = figuresOf({"memory", "--traces=" + traces + "gpt_tiny.json"});
  ASSERT_EQ(figures.size(), 3u);
  nlohmann::json peak = figures["gpt_tiny, peak of 3 steps"],
                 planned = figures["gpt_tiny, planned"];
  ASSERT_TRUE(peak.is_object() && planned.is_object());
  for (const nlohmann::json &figure : {peak, planned}) {
    EXPECT_EQ(figure["baseline_name"], "lower bound");
    EXPECT_GE(figure["ratio"], 1.0);
  }
  EXPECT_GE(peak["value"], planned["value"]);
  EXPECT_LE(peak["value"].get<double>(), planned["value"].get<double>() + 512);
  EXPECT_LT(figures["gpt_tiny, arguments"]["value"], planned["value"]);
}

// Of a folder without the larger trace the smaller one is taken; without both that is an error.
TEST_F(RondoBenchFiguresTest, MemoryOfFolder) {
  ToolOutcome outcome = run({"memory", "--traces=" + path("")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("neither gpt2_small_bf16.json nor gpt_tiny.json"));
  copyHere("gpt_tiny.json");
  EXPECT_TRUE(figuresOf({"memory", "--traces=" + path("")}).count("gpt_tiny, peak of 3 steps"));
}

// Each dtype and form of GELU is measured with checkpoints and without; with them a step is planned
// in less memory. PyTorch's are compared by these names.
TEST_F(RondoBenchFiguresTest, Checkpoint) {
  auto figures = figuresOf({"checkpoint", "--blocks=3", "--batch=8", "--width=16"});
  EXPECT_EQ(figures.size(), 2u * 2 * 4) << "the host has no clock";
  for (const char *dtype : {"f32", "bf16"}) {
    for (const char *form : {"erf", "tanh"}) {
      std::string name = std::string(dtype) + ", GELU by " + form + ", ";
      SCOPED_TRACE(name);
      for (const char *what : {"CPU time", "until done", "peak", "planned"}) {
        ASSERT_TRUE(figures.count(name + what)) << what;
        const nlohmann::json &figure = figures[name + what];
        EXPECT_EQ(figure["bench"], "checkpoint");
        EXPECT_EQ(figure["baseline_name"], "all saved");
        EXPECT_EQ(figure["unit"], llvm::StringRef(what).startswith("p") ? "KiB" : "us");
        EXPECT_GT(figure["value"], 0.0);
      }
      EXPECT_LT(figures[name + "planned"]["ratio"], 0.5);
      EXPECT_GE(figures[name + "peak"]["value"], figures[name + "planned"]["value"]);
      EXPECT_LE(figures[name + "peak"]["value"].get<double>(),
                figures[name + "planned"]["value"].get<double>() + 512)
          << "what making a graph takes";
    }
  }
}

// Sizes are those that are asked for: twice the rows take about twice the memory.
TEST_F(RondoBenchFiguresTest, CheckpointSizes) {
  auto planned = [&](const char *batch) {
    auto figures = figuresOf({"checkpoint", "--blocks=2", "--width=16", batch});
    return figures["f32, GELU by erf, planned"]["value"].get<double>();
  };
  double few = planned("--batch=32"), many = planned("--batch=64");
  EXPECT_GT(many, 1.8 * few);
  EXPECT_LT(many, 2.2 * few);
}

// A step is planned for every budget: what is saved stays within it, and memory falls as work
// rises. The host runs none.
TEST_F(RondoBenchFiguresTest, Remat) {
  auto figures = figuresOf({"remat", "--traces=" + traces + "gpt_tiny.json"});
  EXPECT_EQ(figures.size(), 8u * 3 + 2) << "no times, no measured peaks";
  auto of = [&](unsigned percent, const char *what) {
    return figures["gpt_tiny, budget " + std::to_string(percent) + " %, " + what];
  };
  double full = of(100, "saved")["value"], work = 0, planned = of(100, "planned peak")["value"];
  EXPECT_EQ(of(100, "work repeated, of the forward's")["value"], 0);
  for (unsigned percent = 90; percent >= 30; percent -= 10) {
    SCOPED_TRACE(percent);
    EXPECT_LE(of(percent, "saved")["value"].get<double>(), full * percent / 100);
    EXPECT_EQ(of(percent, "saved")["baseline"].get<double>(), full);
    EXPECT_GT(of(percent, "work repeated, of the forward's")["value"].get<double>(), work);
    EXPECT_LT(of(percent, "planned peak")["value"].get<double>(), planned);
    EXPECT_GE(of(percent, "planned peak")["ratio"].get<double>(), 1.0);
    work = of(percent, "work repeated, of the forward's")["value"];
    planned = of(percent, "planned peak")["value"];
  }
  nlohmann::json gained = of(50, "saved less");
  EXPECT_EQ(gained["value"].get<double>(), full - of(50, "saved")["value"].get<double>());
  EXPECT_EQ(gained["baseline_name"], "planned less");
  EXPECT_EQ(gained["bar"], 1.25);
  EXPECT_EQ(gained["meets_bar"], true);
  nlohmann::json rises =
      figures["gpt_tiny, smaller budgets with a higher planned peak or less work"];
  EXPECT_EQ(rises["value"], 0);
  EXPECT_EQ(rises["meets_bar"], true);
}

// Without a backward there is nothing to recompute for.
TEST_F(RondoBenchFiguresTest, RematWithoutBackward) {
  ToolOutcome outcome = run({"remat", "--traces=" + traces + "adam.json"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err,
              HasSubstr("adam.json: error: recomputation needs a trace with a backward"));
}

// Those that are named run alone.
TEST_F(RondoBenchTest, Some) {
  ToolOutcome outcome = run({"eager", "--rounds=1", "--calls=1"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\neager  "));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("\nreplay")));
}

// What is wrong is said, with the code that belongs to it.
TEST_F(RondoBenchTest, Errors) {
  struct Case {
    std::vector<std::string> arguments;
    int code;
    std::vector<std::string> says;
  };
  const Case cases[] = {
      {{"--device=cuda"}, 1, {"error: no CUDA device: ", "; use the host device"}},
      {{"--device=tpu"}, 2, {"'tpu' is no device", "devices are: host, cuda"}},
      {{"speed"},
       2,
       {"'speed' is no benchmark",
        "replay, eager, capture, handover, policies, memory, remat, checkpoint, traces"}},
      {{"traces", "--traces=" + path("nothing")}, 1, {"there are no traces at", "--traces"}},
      {{"traces", "--traces=" + traces + "convnet.json"}, 1, {"'convolution' op"}},
      {{"eager", "--rounds=1", "--json=" + path("no/such/folder/x.json")},
       3,
       {"cannot be written"}},
      {{"policies", "--largest=0"}, 2, {"--largest is 0"}},
      {{"checkpoint", "--blocks=0"}, 2, {"--blocks is 0; it has to be 1 to "}},
      {{"checkpoint", "--batch=0"}, 2, {"--batch is 0"}},
      {{"checkpoint", "--width=2000000"}, 2, {"--width is 2000000"}},
      {{"memory", "--traces=" + path("nothing")}, 1, {"there are no traces at", "--traces"}},
      {{"--no-such-option"}, 2, {"--no-such-option"}},
  };
  for (const Case &item : cases) {
    SCOPED_TRACE(item.arguments.front());
    ToolOutcome outcome = run(item.arguments);
    EXPECT_EQ(outcome.code, item.code);
    for (const std::string &part : item.says)
      EXPECT_THAT(outcome.err, HasSubstr(part));
  }
}
