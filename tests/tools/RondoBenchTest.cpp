//===- RondoBenchTest.cpp - The tool rondo-bench --------------------------===//
//
// Exit codes, messages and what is written; figures vary.
//
//===----------------------------------------------------------------------===//

#include "ToolTesting.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

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
  ToolOutcome outcome = run({"--rounds=2", "--calls=2", "--traces=" + traces + "mlp.json",
                             "--json=" + path("figures.json")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  for (const char *line :
       {"\nreplay   nodes of the graph ", "\nreplay   Program::forward, CPU time ",
        "\nreplay   device allocations per call ", "\neager    Kernel::enqueue of add, CPU time ",
        "\ncapture  Graph::instantiate, per node ", "\ntraces   mlp, replayed step, CPU time "})
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
      {{"speed"}, 2, {"'speed' is no benchmark", "replay, eager, capture, traces"}},
      {{"traces", "--traces=" + path("nothing")}, 1, {"there are no traces at", "--traces"}},
      {{"traces", "--traces=" + traces + "convnet.json"}, 1, {"'convolution' op"}},
      {{"eager", "--rounds=1", "--json=" + path("no/such/folder/x.json")},
       3,
       {"cannot be written"}},
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
