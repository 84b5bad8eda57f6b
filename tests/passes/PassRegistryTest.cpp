//===- PassRegistryTest.cpp - Pipelines as text -----------------------------===//

#include "rondo/passes/PassRegistry.h"

#include "PassFixture.h"

#include "rondo/passes/CUDAGraphTransform.h"
#include "rondo/passes/TableClaimSource.h"

#include <cmath>

using namespace rondo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace {

using MadePass = llvm::Expected<std::unique_ptr<Pass>>;

/// Remembers the options it was made of.
class EchoPass : public PairPass {
public:
  EchoPass(llvm::StringRef name, const PassOptions &options) : name_(name.str()) {
    for (const auto &[option, text] : options.values())
      text_ += (text_.empty() ? "" : " ") + option + "=" + quotePipelineValue(text);
  }
  llvm::StringRef name() const override { return name_; }
  std::string optionsText() const override { return text_; }

protected:
  llvm::Expected<PassResult> runOnPair(TracePair &, DiagnosticList &) override {
    return PassResult::Unchanged;
  }

private:
  std::string name_, text_;
};

PassInfo echo(llvm::StringRef name, std::vector<std::string> options = {}) {
  PassInfo info;
  info.name = name.str();
  for (std::string &option : options)
    info.options.push_back({std::move(option), "", ""});
  info.create = [name](const PassOptions &options) -> MadePass {
    return std::make_unique<EchoPass>(name, options);
  };
  return info;
}

class PassRegistryTest : public PassFixture {
protected:
  PassRegistryTest() {
    llvm::cantFail(passes.registerPass(echo("dce")));
    llvm::cantFail(passes.registerPass(echo("cuda-graph", {"partition", "min-ops", "name"})));
    PassInfo any = echo("any");
    any.acceptsAnyOption = true;
    llvm::cantFail(passes.registerPass(std::move(any)));
    llvm::cantFail(passes.registerPass(countingPass()));
  }

  /// Reads an integer from 1 to 9 as option `count`; 7 is refused without saying where.
  static PassInfo countingPass() {
    PassInfo info = echo("counts", {"count"});
    info.create = [](const PassOptions &options) -> MadePass {
      llvm::Expected<int64_t> count = options.getInt("count", 1, 1, 9);
      if (!count)
        return count.takeError();
      if (*count == 7)
        return makeError("seven is not to be had");
      return std::make_unique<EchoPass>("counts", options);
    };
    return info;
  }

  /// The pipeline as it was understood, or the error.
  std::string read(llvm::StringRef text) {
    PassManager manager;
    llvm::Error error = passes.parsePipeline(text, manager);
    EXPECT_TRUE(!error || manager.passes().empty());
    return error ? llvm::toString(std::move(error)) : manager.pipelineText();
  }

  PassRegistry passes;
};

//===----------------------------------------------------------------------===//
// Grammar
//===----------------------------------------------------------------------===//

// Names, options and white space are read; an empty pipeline has no passes.
TEST_F(PassRegistryTest, ReadsPipelines) {
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read(" \n\t"), "");
  EXPECT_EQ(read("dce"), "dce");
  EXPECT_EQ(read("dce,dce"), "dce,dce");
  EXPECT_EQ(read(" dce ,\n cuda-graph { min-ops = 4  partition=dataflow } , dce "),
            "dce,cuda-graph{min-ops=4 partition=dataflow},dce");
  EXPECT_EQ(read("cuda-graph{}"), "cuda-graph");
  EXPECT_EQ(read("cuda-graph{ }"), "cuda-graph");
}

// Bare values hold letters, digits and _-.+:/ ; quoted ones hold anything.
TEST_F(PassRegistryTest, ReadsValues) {
  EXPECT_EQ(read("cuda-graph{name=a_B-1.5+cuda:0/x}"), "cuda-graph{name=a_B-1.5+cuda:0/x}");
  EXPECT_EQ(read("cuda-graph{name=\"my graph, {the} first\"}"),
            "cuda-graph{name=\"my graph, {the} first\"}");
  EXPECT_EQ(read("cuda-graph{name=\"\"}"), "cuda-graph{name=\"\"}");
  EXPECT_EQ(read("cuda-graph{name=\"bare\"}"), "cuda-graph{name=bare}");
}

// Everything that quotePipelineValue writes is read back.
TEST_F(PassRegistryTest, QuotedTextIsReadBack) {
  std::string all;
  for (int c = 1; c < 256; ++c)
    all += char(c);
  std::string pipeline = "cuda-graph{name=" + quotePipelineValue(all) + "}";
  EXPECT_EQ(read(pipeline), pipeline);
  PassManager manager;
  ASSERT_EQ(messageOf(passes.parsePipeline(pipeline, manager)), "success");
}

// What is appended comes after the passes that the manager has; after an error it is as before.
TEST_F(PassRegistryTest, AppendsOrLeavesTheManagerAlone) {
  PassManager manager;
  ASSERT_EQ(messageOf(passes.parsePipeline("dce", manager)), "success");
  ASSERT_EQ(messageOf(passes.parsePipeline("any", manager)), "success");
  EXPECT_EQ(manager.pipelineText(), "dce,any");
  EXPECT_NE(messageOf(passes.parsePipeline("dce,nothing", manager)), "success");
  EXPECT_EQ(manager.pipelineText(), "dce,any");
}

//===----------------------------------------------------------------------===//
// Errors of form
//===----------------------------------------------------------------------===//

// An empty element has no name of a pass, wherever it stands.
TEST_F(PassRegistryTest, EmptyElements) {
  EXPECT_EQ(read(","), "<pipeline>:1:1: error: expected the name of a pass, got ','\n,\n^");
  EXPECT_EQ(read("dce,,dce"),
            "<pipeline>:1:5: error: expected the name of a pass, got ','\ndce,,dce\n    ^");
  EXPECT_EQ(read("dce, "),
            "<pipeline>:1:6: error: expected the name of a pass, got the end\ndce, \n     ^");
  EXPECT_THAT(read("{}"), HasSubstr(":1:1: error: expected the name of a pass, got '{'"));
}

// A brace that is never closed is shown where it opens.
TEST_F(PassRegistryTest, MissingBrace) {
  EXPECT_EQ(read("dce,cuda-graph{min-ops=4"),
            "<pipeline>:1:15: error: '{' of the options of pass 'cuda-graph' is never closed\n"
            "dce,cuda-graph{min-ops=4\n"
            "              ^");
  EXPECT_THAT(read("cuda-graph{"), HasSubstr(":1:11: error: '{' of the options"));
  EXPECT_THAT(read("cuda-graph{min-ops=4}}"),
              HasSubstr(":1:22: error: expected ',' or the end of the pipeline, got '}'"));
}

// Two passes without a comma between them.
TEST_F(PassRegistryTest, MissingComma) {
  EXPECT_THAT(read("dce dce"),
              HasSubstr(":1:5: error: expected ',' or the end of the pipeline, got 'd'"));
  EXPECT_THAT(read("cuda-graph{}dce"), HasSubstr(":1:13: error: expected ',' or the end"));
}

// Options need a name, an '=', a value, and white space between them.
TEST_F(PassRegistryTest, MalformedOptions) {
  EXPECT_THAT(read("cuda-graph{=4}"),
              HasSubstr(":1:12: error: expected the name of an option or '}', got '='"));
  EXPECT_THAT(read("cuda-graph{min-ops}"),
              HasSubstr(":1:19: error: expected '=' and a value after option 'min-ops', got '}'"));
  EXPECT_THAT(read("cuda-graph{min-ops=}"),
              HasSubstr(":1:20: error: expected a value for option 'min-ops', got '}'"));
  EXPECT_THAT(read("cuda-graph{min-ops="),
              HasSubstr(":1:20: error: expected a value for option 'min-ops', got the end"));
  EXPECT_THAT(read("cuda-graph{min-ops=4,name=x}"),
              HasSubstr(":1:21: error: options are separated by white space, not by ','"));
  EXPECT_THAT(read("cuda-graph{name=\"x\"min-ops=4}"),
              HasSubstr(":1:20: error: expected white space or '}' after the value of option "
                        "'name', got 'm'"));
}

// Quotes must be closed, and escapes known.
TEST_F(PassRegistryTest, MalformedQuotes) {
  EXPECT_THAT(read("cuda-graph{name=\"x}"), HasSubstr(":1:17: error: this quote is never closed"));
  EXPECT_THAT(read("cuda-graph{name=\"\\q\"}"), HasSubstr(":1:18: error: unknown escape"));
  EXPECT_THAT(read("cuda-graph{name=\"\\x4\"}"), HasSubstr(":1:18: error: unknown escape"));
  EXPECT_THAT(read("cuda-graph{name=\"\\"), HasSubstr(":1:18: error: unknown escape"));
  EXPECT_EQ(read("cuda-graph{name=\"\\x41\\t\\\\\"}"), "cuda-graph{name=\"A\\t\\\\\"}");
}

// A byte that is no text is shown by its number, and as '?' above the caret.
TEST_F(PassRegistryTest, UnprintableBytes) {
  EXPECT_EQ(read("dce,\x01"),
            "<pipeline>:1:5: error: expected the name of a pass, got byte 0x1\ndce,?\n    ^");
  EXPECT_THAT(read(llvm::StringRef("dce\0", 4)), HasSubstr(":1:4: error: expected ','"));
}

// The place is counted in the line, and only that line is shown.
TEST_F(PassRegistryTest, SeveralLines) {
  EXPECT_EQ(read("dce,\n\tdcee,\ndce"),
            "<pipeline>:2:2: error: unknown pass 'dcee' (did you mean 'dce'?)\n"
            "\tdcee,\n"
            "\t^\n"
            "note: the passes are dce, cuda-graph, any, counts");
}

// Of a very long line only the surroundings of the place are shown.
TEST_F(PassRegistryTest, LongLines) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += "dce,";
  std::string message = read(text + "x!" + text);
  EXPECT_THAT(message, HasSubstr("<pipeline>:1:4002: error: expected ','"));
  EXPECT_LT(message.size(), 1000u);
}

// A pipeline that is cut off, or changed in one byte, is read or refused with a place.
TEST_F(PassRegistryTest, DamagedPipelines) {
  const std::string whole = "dce, cuda-graph{name=\"a\\x41\\n\" min-ops=2},any{x=1}";
  ASSERT_THAT(read(whole), HasSubstr("min-ops=2"));
  unsigned numRefused = 0;
  auto check = [&](llvm::StringRef text) {
    std::string answer = read(text);
    bool isRefused = llvm::StringRef(answer).contains("error: ");
    numRefused += isRefused;
    if (isRefused) {
      EXPECT_THAT(answer, StartsWith("<pipeline>:1:")) << text.str();
    } else {
      EXPECT_EQ(read(answer), answer) << text.str();
    }
  };
  for (size_t end = 0; end < whole.size(); ++end) {
    check(llvm::StringRef(whole).take_front(end));
    for (char c : llvm::StringRef("{}=,\"\\ \0x", 9)) {
      std::string changed = whole;
      changed[end] = c;
      check(changed);
    }
  }
  EXPECT_GT(numRefused, whole.size());
}

// A hostile pipeline gives a bounded number of errors.
TEST_F(PassRegistryTest, ManyErrors) {
  std::string text = "nothing";
  for (int i = 0; i < 10000; ++i)
    text += ",nothing";
  PassManager manager;
  llvm::Error error = passes.parsePipeline(text, manager);
  size_t count = 0;
  llvm::handleAllErrors(std::move(error), [&](const DiagnosticError &failure) {
    count = failure.diagnostics().size();
  });
  EXPECT_GT(count, 10u);
  EXPECT_LT(count, 200u);
}

//===----------------------------------------------------------------------===//
// Errors of meaning
//===----------------------------------------------------------------------===//

// An unknown pass suggests the nearest one, unless none is near.
TEST_F(PassRegistryTest, UnknownPass) {
  EXPECT_EQ(read("dce,cuda_graph"),
            "<pipeline>:1:5: error: unknown pass 'cuda_graph' (did you mean 'cuda-graph'?)\n"
            "dce,cuda_graph\n"
            "    ^\n"
            "note: the passes are dce, cuda-graph, any, counts");
  EXPECT_THAT(read("inline"), HasSubstr("error: unknown pass 'inline'\n"));
  PassRegistry empty;
  PassManager manager;
  EXPECT_THAT(messageOf(empty.parsePipeline("dce", manager)), HasSubstr("there are no passes"));
}

// An unknown option suggests the nearest one of the pass, unless none is near.
TEST_F(PassRegistryTest, UnknownOption) {
  EXPECT_EQ(read("cuda-graph{partitions=dataflow}"),
            "<pipeline>:1:12: error: pass 'cuda-graph' has no option 'partitions' (did you mean "
            "'partition'?)\n"
            "cuda-graph{partitions=dataflow}\n"
            "           ^\n"
            "note: its options are partition, min-ops, name");
  EXPECT_THAT(read("dce{x=1}"), HasSubstr("pass 'dce' has no option 'x'\n"));
  EXPECT_THAT(read("dce{x=1}"), HasSubstr("note: it has no options"));
  EXPECT_EQ(read("any{x=1}"), "any{x=1}");
}

// An option that is given twice is shown at both places.
TEST_F(PassRegistryTest, DuplicateOption) {
  EXPECT_EQ(read("any{x=1 y=2 x=1}"), "<pipeline>:1:13: error: option 'x' is given twice\n"
                                      "any{x=1 y=2 x=1}\n"
                                      "            ^\n"
                                      "<pipeline>:1:5: note: first given here\n"
                                      "any{x=1 y=2 x=1}\n"
                                      "    ^");
}

// A value that does not fit is shown at the value; an error without a place, at the pass.
TEST_F(PassRegistryTest, BadValues) {
  EXPECT_EQ(read("dce,counts{count=ten}"),
            "<pipeline>:1:18: error: option 'count' is 'ten', expected an integer from 1 to 9\n"
            "dce,counts{count=ten}\n"
            "                 ^");
  EXPECT_EQ(read("dce,counts{count=7}"), "<pipeline>:1:5: error: seven is not to be had\n"
                                         "dce,counts{count=7}\n"
                                         "    ^");
  EXPECT_EQ(read("counts{count=8}"), "counts{count=8}");
}

// One error does not hide the next.
TEST_F(PassRegistryTest, SeveralErrors) {
  std::string message = read("nothing,counts{count=0},dce{x=1 y=2},!");
  EXPECT_THAT(message, HasSubstr(":1:1: error: unknown pass"));
  EXPECT_THAT(message, HasSubstr(":1:22: error: option 'count'"));
  EXPECT_THAT(message, HasSubstr(":1:29: error: pass 'dce' has no option 'x'"));
  EXPECT_THAT(message, HasSubstr(":1:33: error: pass 'dce' has no option 'y'"));
  EXPECT_THAT(message, HasSubstr(":1:38: error: expected the name of a pass"));
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

// Getters give the default when the option is absent, and else what its text says.
TEST(PassOptionsTest, Getters) {
  PassOptions none;
  EXPECT_EQ(messageOf(none.getString("s", "x")), "success");
  EXPECT_EQ(unwrap(none.getString("s", "x")), "x");
  EXPECT_EQ(unwrap(none.getInt("i", 5, 0, 9)), 5);
  EXPECT_EQ(unwrap(none.getNumber("n", 0.5, 0)), 0.5);
  EXPECT_TRUE(unwrap(none.getBool("b", true)));
  EXPECT_EQ(unwrap(none.getChoice("c", "one", {"one", "two"})), "one");
  EXPECT_TRUE(unwrap(none.getList("l")).empty());
  EXPECT_FALSE(none.has("s"));

  PassOptions some({{"s", "text"},
                    {"i", "-3"},
                    {"n", "1e-3"},
                    {"b", "false"},
                    {"c", "two"},
                    {"l", "a+b"},
                    {"e", ""}});
  EXPECT_EQ(unwrap(some.getString("s", "x")), "text");
  EXPECT_EQ(unwrap(some.getInt("i", 5, -3, 9)), -3);
  EXPECT_EQ(unwrap(some.getNumber("n", 0.5, 0)), 1e-3);
  EXPECT_FALSE(unwrap(some.getBool("b", true)));
  EXPECT_EQ(unwrap(some.getChoice("c", "one", {"one", "two"})), "two");
  EXPECT_THAT(unwrap(some.getList("l")), ElementsAre("a", "b"));
  EXPECT_TRUE(unwrap(some.getList("e")).empty());
  EXPECT_TRUE(some.has("s"));
}

// An integer outside of its bounds, or that is none, is an error that names the option.
TEST(PassOptionsTest, BadIntegers) {
  PassOptions options({{"i", "10"}, {"f", "1.5"}, {"e", ""}, {"h", "99999999999999999999"}});
  EXPECT_EQ(messageOf(options.getInt("i", 0, 0, 9)),
            "error: option 'i' is '10', expected an integer from 0 to 9");
  EXPECT_EQ(messageOf(options.getInt("i", 0, 11, INT64_MAX)),
            "error: option 'i' is '10', expected an integer of at least 11");
  EXPECT_EQ(messageOf(options.getInt("i", 0, 10, 10)), "success");
  EXPECT_THAT(messageOf(options.getInt("f", 0, 0, 9)), HasSubstr("option 'f' is '1.5'"));
  EXPECT_THAT(messageOf(options.getInt("e", 0, 0, 9)), HasSubstr("option 'e' is ''"));
  EXPECT_THAT(messageOf(options.getInt("h", 0, 0, INT64_MAX)), HasSubstr("option 'h'"));
}

// A number may be infinite, but not nan, too small, or no number.
TEST(PassOptionsTest, BadNumbers) {
  PassOptions options({{"n", "nan"}, {"i", "inf"}, {"m", "-0.5"}, {"w", "much"}});
  EXPECT_EQ(messageOf(options.getNumber("n", 0, 0)),
            "error: option 'n' is 'nan', expected a number of at least 0.0");
  EXPECT_TRUE(std::isinf(unwrap(options.getNumber("i", 0, 0))));
  EXPECT_THAT(messageOf(options.getNumber("m", 0, 0)), HasSubstr("option 'm' is '-0.5'"));
  EXPECT_EQ(messageOf(options.getNumber("m", 0, -0.5)), "success");
  EXPECT_THAT(messageOf(options.getNumber("w", 0, 0)), HasSubstr("option 'w' is 'much'"));
}

// A bool is one of two words, a choice one of those listed; the nearest is suggested.
TEST(PassOptionsTest, BadChoices) {
  PassOptions options({{"b", "yes"}, {"c", "dataflw"}, {"d", "other"}});
  EXPECT_EQ(messageOf(options.getBool("b", false)),
            "error: option 'b' is 'yes', expected 'true' or 'false'");
  EXPECT_EQ(messageOf(options.getChoice("c", "x", {"x", "consecutive", "dataflow"})),
            "error: option 'c' is 'dataflw', expected 'x', 'consecutive' or 'dataflow' (did you "
            "mean 'dataflow'?)");
  EXPECT_EQ(messageOf(options.getChoice("d", "x", {"x"})),
            "error: option 'd' is 'other', expected 'x'");
}

// A list has no empty parts.
TEST(PassOptionsTest, BadLists) {
  for (llvm::StringRef text : {"a++b", "+a", "a+", "+"})
    EXPECT_THAT(messageOf(PassOptions({{"l", text.str()}}).getList("l")),
                HasSubstr("which has an empty part"));
}

//===----------------------------------------------------------------------===//
// Registering
//===----------------------------------------------------------------------===//

// Passes are listed as registered, and found by name.
TEST_F(PassRegistryTest, LooksUpPasses) {
  ASSERT_EQ(passes.passes().size(), 4u);
  EXPECT_EQ(passes.passes()[1].name, "cuda-graph");
  ASSERT_NE(passes.lookup("dce"), nullptr);
  EXPECT_EQ(passes.lookup("dce")->name, "dce");
  EXPECT_EQ(passes.lookup("nothing"), nullptr);
}

// A pass that could not be named, told apart or made is refused, and leaves the registry alone.
TEST_F(PassRegistryTest, RefusesBadPasses) {
  EXPECT_THAT(messageOf(passes.registerPass(echo("dce"))), HasSubstr("is registered already"));
  EXPECT_THAT(messageOf(passes.registerPass(echo(""))), HasSubstr("is not a name for a pass"));
  EXPECT_THAT(messageOf(passes.registerPass(echo("a b"))), HasSubstr("is not a name for a pass"));
  EXPECT_THAT(messageOf(passes.registerPass(echo("p", {"x", "y", "x"}))),
              HasSubstr("two options named 'x'"));
  EXPECT_THAT(messageOf(passes.registerPass(echo("p", {"x=y"}))),
              HasSubstr("cannot be written in a pipeline"));
  PassInfo info;
  info.name = "p";
  EXPECT_THAT(messageOf(passes.registerPass(std::move(info))), HasSubstr("no function"));
  EXPECT_EQ(passes.passes().size(), 4u);
}

//===----------------------------------------------------------------------===//
// The passes that come with Rondo
//===----------------------------------------------------------------------===//

class RegisterPassesTest : public PassFixture {
protected:
  RegisterPassesTest() {
    const ClaimSource *sources[] = {&host, &cublas};
    llvm::cantFail(registerPasses(passes, sources));
  }

  std::string read(llvm::StringRef text) {
    PassManager manager;
    llvm::Error error = passes.parsePipeline(text, manager);
    return error ? llvm::toString(std::move(error)) : manager.pipelineText();
  }

  std::string run(llvm::StringRef pipeline, llvm::StringRef text) {
    PassManager manager;
    if (llvm::Error error = passes.parsePipeline(pipeline, manager))
      return llvm::toString(std::move(error));
    llvm::Expected<TracePair> pair = manager.run(parse(text));
    return pair ? textOf(*pair) : llvm::toString(pair.takeError());
  }

  TableClaimSource host = makeHostClaimTable(registry);
  TableClaimSource cublas{"cublas"};
  PassRegistry passes;
};

constexpr llvm::StringLiteral program = R"(trace @step(%x: f32[B, 8]) {
  %a: f32[B, 8] = relu(%x)
  %b: f32[B, 8] = exp(%a)
  return(%b)
}
)";

// Every pass has a summary, and a name that a pipeline of it alone reads back.
TEST_F(RegisterPassesTest, EveryPassCanBeMadeWithoutOptions) {
  EXPECT_GE(passes.passes().size(), 7u);
  for (const PassInfo &info : passes.passes()) {
    EXPECT_FALSE(info.summary.empty()) << info.name;
    PassManager manager;
    ASSERT_EQ(messageOf(passes.parsePipeline(info.name, manager)), "success") << info.name;
    EXPECT_EQ(manager.passes().front()->name(), info.name);
    std::string text = manager.pipelineText();
    EXPECT_EQ(read(text), text);
  }
}

// Registering them twice is refused.
TEST_F(RegisterPassesTest, NamesAreTaken) {
  EXPECT_THAT(messageOf(registerPasses(passes, {})), HasSubstr("is registered already"));
}

// The usual pipeline reads, prints and runs.
TEST_F(RegisterPassesTest, UsualPipeline) {
  llvm::StringRef pipeline = "canonicalise,dce,cse,specialise{B=4},execution{executors=host},"
                             "cuda-graph{partition=dataflow min-ops=1},del";
  EXPECT_EQ(read(pipeline), pipeline);
  std::string result = run(pipeline, program);
  EXPECT_THAT(result, HasSubstr("forward @step(%x: f32[4, 8]) claimed regions dels {"));
  EXPECT_THAT(result, HasSubstr("cuda_graph(%x)"));
}

// Options at their defaults are left out of the text, others stay.
TEST_F(RegisterPassesTest, OptionsOfCUDAGraph) {
  EXPECT_EQ(read("cuda-graph{partition=consecutive min-ops=2 inputs=auto strict=false}"),
            "cuda-graph");
  std::string all = "cuda-graph{partition=dataflow min-ops=4 max-peak-growth=0.25 device=cuda:1 "
                    "inputs=copied strict=true name=\"my graphs\"}";
  EXPECT_EQ(read(all), all);
}

// Each option of cuda-graph that does not fit is an error at its place.
TEST_F(RegisterPassesTest, BadOptionsOfCUDAGraph) {
  EXPECT_THAT(read("cuda-graph{partition=dataflw}"),
              HasSubstr(":1:22: error: option 'partition' is 'dataflw', expected 'consecutive' or "
                        "'dataflow' (did you mean 'dataflow'?)"));
  EXPECT_THAT(read("cuda-graph{device=cuda}"),
              HasSubstr(":1:19: error: option 'device' is 'cuda', expected a device"));
  EXPECT_THAT(read("cuda-graph{min-ops=-1}"), HasSubstr(":1:20: error: option 'min-ops'"));
  EXPECT_THAT(read("cuda-graph{max-peak-growth=-1}"), HasSubstr("option 'max-peak-growth'"));
  EXPECT_THAT(read("cuda-graph{strict=1}"), HasSubstr("option 'strict'"));
  std::string both = read("cuda-graph{min-ops=x strict=1}");
  EXPECT_THAT(both, HasSubstr("option 'min-ops'"));
  EXPECT_THAT(both, HasSubstr("option 'strict'"));
}

// specialise takes any symbol; its value is a size.
TEST_F(RegisterPassesTest, OptionsOfSpecialise) {
  EXPECT_EQ(read("specialise{S=128 B=8}"), "specialise{B=8 S=128}");
  EXPECT_THAT(read("specialise{B=-1}"), HasSubstr(":1:14: error: option 'B' is '-1', expected an "
                                                  "integer of at least 0"));
  EXPECT_THAT(read("specialise{f32=1}"),
              HasSubstr("option 'f32' is not a name that a symbol can have"));
  EXPECT_THAT(read("specialise{2B=1}"), HasSubstr("not a name"));
}

// place takes two devices that differ; the host is where it goes by default.
TEST_F(RegisterPassesTest, OptionsOfPlace) {
  EXPECT_EQ(read("place"), "place");
  EXPECT_EQ(read("place{from=cuda:1 to=host:0}"), "place{from=cuda:1}");
  EXPECT_EQ(read("place{from=host to=cuda:0}"), "place{from=host to=cuda:0}");
  EXPECT_EQ(read("place{to=host:1}"), "place{to=host:1}");
  EXPECT_THAT(read("place{from=cuda}"),
              HasSubstr(":1:12: error: option 'from' is 'cuda', expected a device such as"));
  EXPECT_THAT(read("place{from=cuda:0 to=gpu}"),
              HasSubstr(":1:22: error: option 'to' is 'gpu', expected a device such as"));
  EXPECT_THAT(read("place{from=host:0}"),
              HasSubstr(":1:12: error: option 'from' is 'host', as 'to' is"));
  EXPECT_THAT(read("place{from=cuda:1 to=cuda:1}"), HasSubstr("as 'to' is"));
  std::string both = read("place{from=x to=y}");
  EXPECT_THAT(both, HasSubstr("option 'from'"));
  EXPECT_THAT(both, HasSubstr("option 'to'"));
}

// execution takes executors by name, in the order given; all of them by default.
TEST_F(RegisterPassesTest, OptionsOfExecution) {
  EXPECT_EQ(read("execution"), "execution{executors=host+cublas}");
  EXPECT_EQ(read("execution{executors=cublas+host}"), "execution{executors=cublas+host}");
  EXPECT_EQ(read("execution{executors=cublas}"), "execution{executors=cublas}");
  EXPECT_EQ(read("execution{executors=\"\"}"), "execution{executors=\"\"}");
  EXPECT_THAT(read("execution{executors=cubla}"),
              HasSubstr(":1:21: error: option 'executors' names 'cubla', which is no executor (did "
                        "you mean 'cublas'?)"));
  EXPECT_THAT(read("execution{executors=host+host}"), HasSubstr("names 'host' twice"));
}

// Passes out of order are refused before anything runs, by the names of both passes.
TEST_F(RegisterPassesTest, PassesOutOfOrder) {
  EXPECT_THAT(run("execution,del,cuda-graph", program),
              HasSubstr("pass 'cuda-graph' forbids 'dels', which pass 'del' sets"));
  std::string message = run("del,cuda-graph", program);
  EXPECT_THAT(message, HasSubstr("pass 'cuda-graph' requires 'claimed', which no pass"));
  EXPECT_THAT(message, HasSubstr("pass 'cuda-graph' forbids 'dels', which pass 'del' sets"));
  EXPECT_THAT(run("cuda-graph,execution", program),
              HasSubstr("note: pass 'execution' sets it, but comes later"));
  EXPECT_THAT(run("execution,specialise{B=4}", program),
              HasSubstr("pass 'specialise' forbids 'claimed', which pass 'execution' sets"));
}

// A trace that holds dels already is refused by cuda-graph before anything runs.
TEST_F(RegisterPassesTest, CUDAGraphRefusesDels) {
  EXPECT_THAT(run("cuda-graph", R"(trace @step(%x: f32[8]) claimed dels {
    %a: f32[8] = relu(%x) claim("host")
    del(%x)
    return(%a)
  })"),
              HasSubstr("pass 'cuda-graph' forbids 'dels', which the trace has from the start"));
}

} // namespace
