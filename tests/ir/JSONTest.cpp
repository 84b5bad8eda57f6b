//===- JSONTest.cpp - Write, read, write ----------------------------------===//
//
// What the writer writes the reader reads back, for everything that a trace can hold; and what the
// text form holds goes through JSON unchanged. Errors are in JSONErrorsTest.cpp. With
// RONDO_REGENERATE=1 in the environment tests/data/sample.json is written anew.
//
//===----------------------------------------------------------------------===//

#include "support/TestPaths.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/JSON.h"
#include "rondo/ir/Text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <random>

using namespace rondo;
using testing::HasSubstr;
using testing::Not;

namespace {

template <typename Write> std::string textOf(Write &&write) {
  std::string text;
  llvm::raw_string_ostream os(text);
  write(os);
  return os.str();
}
std::string written(const TracePair &pair) {
  return textOf([&](llvm::raw_ostream &os) { writeJSON(pair, os); });
}
std::string printed(const TracePair &pair) {
  return textOf([&](llvm::raw_ostream &os) { print(pair, os); });
}

class JSONTest : public testing::Test {
protected:
  JSONTest() {
    llvm::cantFail(registerCoreOps(registry));
    OpaqueTypeSpec page;
    page.name = "mylib.page";
    llvm::cantFail(registry.registerType(std::move(page)));
  }

  TracePair succeed(llvm::Expected<TracePair> pair, llvm::StringRef text) {
    if (pair)
      return std::move(*pair);
    ADD_FAILURE() << llvm::toString(pair.takeError()) << "\n" << text.str();
    return TracePair(Trace(registry, "failed"));
  }
  TracePair read(llvm::StringRef text) { return succeed(readJSON(text, "t.json", registry), text); }
  TracePair parse(llvm::StringRef text) {
    return succeed(parsePair(text, "t.trace", registry), text);
  }

  /// Writes `pair`, reads that back, and expects the same bytes, in JSON and in text.
  TracePair expectFixpoint(const TracePair &pair) {
    std::string json = written(pair);
    TracePair again = read(json);
    EXPECT_EQ(written(again), json);
    EXPECT_EQ(printed(again), printed(pair));
    return again;
  }

  /// A pair whose forward has one opaque op with the attribute `a`.
  TracePair withAttribute(Attribute value) {
    Trace trace(registry, "t");
    OpInit init;
    init.spec = trace.opaqueSpec("mylib.op");
    init.attributes.emplace_back("a", std::move(value));
    trace.append(Trace::topBody(), trace.createOp(std::move(init)));
    finish(trace, {});
    return TracePair(std::move(trace));
  }

  void finish(Trace &trace, llvm::ArrayRef<ValueId> values) {
    OpInit init;
    init.spec = registry.lookup(core::returnOp);
    init.operands.assign(values.begin(), values.end());
    trace.append(Trace::topBody(), trace.createOp(std::move(init)));
  }

  std::string fileAt(const llvm::Twine &path) {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    EXPECT_TRUE(buffer) << path.str() << " is missing";
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }
  std::string dataFile(llvm::StringRef name) { return fileAt(testDataDir() + "/" + name.str()); }

  OpRegistry registry;
};

//===--- The sample -------------------------------------------------------===//

// The sample trace, which holds every construct of the text form, is written as the sample file.
TEST_F(JSONTest, SampleIsWritten) {
  std::string json = written(parse(dataFile("sample.trace")));
  if (std::getenv("RONDO_REGENERATE"))
    std::ofstream(testDataDir() + "/sample.json", std::ios::binary) << json;
  EXPECT_EQ(json, dataFile("sample.json"));
}

// The sample file is read back and written as the same bytes; as text it is the sample trace.
TEST_F(JSONTest, SampleIsAFixpoint) {
  TracePair pair = read(dataFile("sample.json"));
  EXPECT_EQ(written(pair), dataFile("sample.json"));
  EXPECT_EQ(printed(pair), dataFile("sample.trace"));
}

// Each op stands on a line of its own, and so does each argument of a trace.
TEST_F(JSONTest, OneOpALine) {
  TracePair pair = read(dataFile("sample.json"));
  size_t expected = pair.forward().arguments().size() + pair.backward().arguments().size();
  for (Side side : {Side::Forward, Side::Backward})
    forEachOp(pair.trace(side), [&](const Op &op) {
      ++expected;
      for (BodyId body : op.bodies())
        expected += pair.trace(side).arguments(body).size();
    });
  size_t lines = 0;
  llvm::SmallVector<llvm::StringRef, 0> all;
  std::string json = dataFile("sample.json");
  llvm::StringRef(json).split(all, '\n');
  for (llvm::StringRef line : all) {
    llvm::StringRef start = line.ltrim();
    lines += start.consume_front("{\"op\": ") || start.consume_front("{\"name\": ");
    EXPECT_LE(line.count("\"op\": "), 1u) << line.str();
  }
  EXPECT_EQ(lines, expected);
}

// What the sample says is in the trace that was read.
TEST_F(JSONTest, SampleIsUnderstood) {
  TracePair pair = read(dataFile("sample.json"));
  ASSERT_TRUE(pair.hasBackward());
  const Trace &forward = pair.forward();
  EXPECT_EQ(pair.name(), "sample");
  EXPECT_EQ(pair.backward().name(), "backward of sample");
  EXPECT_TRUE(forward.has(TraceProperties::Claimed | TraceProperties::HasRegions |
                          TraceProperties::HasDels));
  EXPECT_EQ(pair.backward().properties(), TraceProperties::None);
  ValueId weight = forward.arguments()[1], bias = forward.arguments()[2];
  EXPECT_EQ(forward.name(weight), "w");
  EXPECT_EQ(forward.tags(bias), ValueTags::Parameter | ValueTags::Static);
  EXPECT_EQ(forward.valuePath(weight), "blocks.0.mlp.weight");
  EXPECT_TRUE(forward.name(forward.arguments().back()).empty());
  EXPECT_EQ(forward.type(weight), Type(TensorType(DType::F32, {32, 32}, Device::cuda(0))));

  llvm::SmallVector<SavedLink, 0> links = pair.saved();
  ASSERT_EQ(links.size(), 3u);
  EXPECT_EQ(links[1].id, SavedId(3));
  EXPECT_EQ(links[1].forward, weight);

  const Op &read = forward.op(forward.ops()[0]);
  EXPECT_EQ(*read.claim(), (Claim{"host", false, "reads the \"generator\"\n", 4096}));
  const Op &permute = forward.op(forward.ops()[1]);
  EXPECT_EQ(permute.modulePath(), "blocks.0.mlp");
  EXPECT_EQ(*permute.location(), (Location{"model.py", 12, 3, ""}));
  EXPECT_TRUE(permute.hasExplicitLocation());
  EXPECT_EQ(*permute.fusionRecord(), (FusionRecord{false, FusionDecider::Region, "views only"}));
  const Op &dropout = forward.op(forward.ops()[2]);
  EXPECT_EQ(*dropout.location(), (Location{"model.json", 0, 0, "/forward/ops/3"}));
  EXPECT_EQ(dropout.claim()->workspaceBytes, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(forward.tags(dropout.result(0)), ValueTags::Recompute);
  const Op &graph = forward.op(forward.ops()[3]);
  ASSERT_TRUE(graph.domain());
  EXPECT_EQ(graph.domain()->name(), "cuda-graph");
  EXPECT_EQ(forward.op(forward.ops()[4]).domain()->name(), "other \"transform\"");
}

// The example of the documentation is what the writer writes.
TEST_F(JSONTest, DocumentedExample) {
  std::string document = fileAt(RONDO_SOURCE_DIR "/docs/trace-format.md");
  auto [before, rest] = llvm::StringRef(document).split("```json\n");
  llvm::StringRef example = rest.split("```").first;
  ASSERT_FALSE(example.empty());
  EXPECT_EQ(written(read(example)), example);
}

//===--- Values, types, attributes ----------------------------------------===//

// An op without a location of its own is located in the file by its JSON pointer; that is not
// written.
TEST_F(JSONTest, OpsAreLocatedByPointer) {
  TracePair pair = read(dataFile("sample.json"));
  const Op &graph = pair.forward().op(pair.forward().ops()[3]);
  EXPECT_FALSE(graph.hasExplicitLocation());
  EXPECT_EQ(graph.location()->str(), "t.json:/forward/ops/3");
  const Op &inner = pair.forward().op(pair.forward().ops(graph.bodies()[0])[1]);
  EXPECT_EQ(inner.location()->str(), "t.json:/forward/ops/3/bodies/0/ops/1");
  EXPECT_THAT(written(pair), Not(HasSubstr("t.json")));
}

// Values without a name have numbers that count from 0 in each body, and stay without a name.
TEST_F(JSONTest, UnnamedValues) {
  TracePair pair = parse(R"(trace @t(%0: f32[8], %x: f32[8]) {
  %1: f32[8] = fused(%0) {
  ^(%0: f32[8]):
    %1: f32[8] = relu(%0)
    %2: f32[8] = relu(%1)
    return(%2)
  }
  %2: f32[8] = add(%1, %x)
  return(%2)
})");
  TracePair again = expectFixpoint(pair);
  EXPECT_THAT(written(pair),
              HasSubstr(R"({"op": "add", "operands": [1, "x"], "results": [{"name": 2,)"));
  EXPECT_TRUE(again.forward().name(again.forward().arguments()[0]).empty());
  EXPECT_EQ(again.forward().name(again.forward().arguments()[1]), "x");
}

// Any number that is not taken may stand for an unnamed value; it is written in program order.
TEST_F(JSONTest, NumbersNeedNoOrder) {
  std::string scalar = R"("type": {"kind": "scalar", "dtype": "i64"}})";
  TracePair pair = read(R"({"schema_version": 1, "name": "p", "forward": {"name": "t",
    "arguments": [{"name": 7, )" +
                        scalar + R"(, {"name": 1073741824, )" + scalar + R"(],
    "ops": [{"op": "return", "operands": [1073741824, 7], "results": []}]}})");
  const Trace &trace = pair.forward();
  ASSERT_TRUE(trace.terminator());
  EXPECT_EQ(trace.terminator()->operand(0), trace.arguments()[1]);
  EXPECT_EQ(trace.terminator()->operand(1), trace.arguments()[0]);
  EXPECT_THAT(written(pair), HasSubstr(R"("operands": [1, 0])"));
}

// Every type goes through unchanged.
TEST_F(JSONTest, Types) {
  Dim b = Dim::symbol("B"), s = Dim::symbol("S");
  std::vector<Type> types = {TensorType(DType::F32, {}),
                             TensorType(DType::F32, {0, 3}),
                             TensorType(DType::BF16, {2, 3}, {1, 2}, Device::cuda(65535)),
                             TensorType(DType::I64, {b, s, 8}, Device::cuda(1)),
                             TensorType(DType::F16, {b * s + Dim(1), 4}, {8, 2}, Device::host()),
                             Type(ScalarKind::I64),
                             Type(ScalarKind::F64),
                             Type(ScalarKind::Bool),
                             RNGStateType{Device::host()},
                             RNGStateType{Device::cuda(3)},
                             OpaqueType{"mylib.page", ""},
                             OpaqueType{"mylib.page", "64 \"KiB\""}};
  for (DType dtype : allDTypes)
    types.push_back(TensorType(dtype, {4}));
  Trace trace(registry, "t");
  for (const Type &type : types)
    trace.addArgument(type);
  finish(trace, {});
  TracePair again = expectFixpoint(TracePair(std::move(trace)));
  ASSERT_EQ(again.forward().arguments().size(), types.size());
  for (size_t i = 0; i < types.size(); ++i)
    EXPECT_EQ(again.forward().type(again.forward().arguments()[i]), types[i]);
}

// Every attribute goes through unchanged: kind and value, floats to the bit.
TEST_F(JSONTest, Attributes) {
  using Limits = std::numeric_limits<double>;
  using Ints = std::numeric_limits<int64_t>;
  Dim b = Dim::symbol("B");
  std::vector<Attribute> attributes = {
      Attribute(),
      true,
      false,
      0,
      1,
      -7,
      Ints::max(),
      Ints::min(),
      b,
      b * b - Dim(3),
      0.0,
      -0.0,
      1.0,
      0.1,
      1e300,
      -1e-300,
      Limits::denorm_min(),
      Limits::max(),
      Limits::lowest(),
      Limits::infinity(),
      -Limits::infinity(),
      Limits::quiet_NaN(),
      "",
      "text",
      "nan",
      "f32",
      "8*S",
      DType::F8E4M3,
      DType::Bool,
      Device::host(),
      Device::cuda(7),
      Attribute::List{},
      Attribute::List{1, 1.0, "1", true, Attribute(), Attribute::List{Attribute::List{}, b}}};
  for (const Attribute &attribute : attributes) {
    TracePair again = expectFixpoint(withAttribute(attribute));
    const Attribute *value = again.forward().op(again.forward().ops()[0]).attribute("a");
    ASSERT_TRUE(value) << attribute.str();
    EXPECT_EQ(value->kind(), attribute.kind()) << attribute.str();
    EXPECT_TRUE(*value == attribute) << attribute.str() << " became " << value->str();
  }
}

// Integers and floats are told apart even when a program in between writes 1.0 as 1.
TEST_F(JSONTest, FloatsSurviveOtherPrograms) {
  std::string json = written(withAttribute(1.0));
  size_t at = json.find(R"({"float": 1.0})");
  ASSERT_NE(at, std::string::npos);
  json.erase(json.find(".0", at), 2);
  TracePair pair = read(json);
  EXPECT_EQ(*pair.forward().op(pair.forward().ops()[0]).attribute("a"), Attribute(1.0));
}

// Random floats go through to the bit.
TEST_F(JSONTest, RandomFloats) {
  std::mt19937_64 random(1);
  Attribute::List list;
  while (list.size() < 1000) {
    uint64_t bits = random();
    double value = std::bit_cast<double>(bits);
    if (!std::isnan(value))
      list.push_back(value);
  }
  TracePair again = expectFixpoint(withAttribute(list));
  EXPECT_TRUE(*again.forward().op(again.forward().ops()[0]).attribute("a") == Attribute(list));
}

//===--- Strings ----------------------------------------------------------===//

bool isUTF8(llvm::StringRef text) {
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.begin());
  return llvm::isLegalUTF8String(&begin, reinterpret_cast<const llvm::UTF8 *>(text.end()));
}

// Strings of any bytes go through unchanged, and what is written is valid UTF-8 all the same.
TEST_F(JSONTest, AnyBytes) {
  std::vector<std::string> strings = {"plain",
                                      "\" \\ / \b\f\n\r\t\x7f",
                                      "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\xb5",
                                      "cut \xe2\x82",
                                      "overlong \xc0\xaf",
                                      "surrogate \xed\xa0\x80",
                                      "beyond \xf4\x90\x80\x80",
                                      "\xf4\x8f\xbe\x80 \xf4\x8f\xbf\xbf \xf4\x8f\xbd\xbf \xf4\x8f",
                                      "\\udbff\\udf80"};
  std::string all;
  for (unsigned byte = 0; byte < 256; ++byte)
    all += char(byte);
  strings.push_back(all);
  std::mt19937 random(2);
  const llvm::StringRef pieces[] = {"\xf4", "\x8f", "\xbe", "\xbf", "\x80", "\xc3", "\xa9", "a"};
  for (unsigned i = 0; i < 300; ++i) {
    std::string text;
    for (unsigned k = 0; k < 12; ++k)
      text += pieces[random() % 8];
    strings.push_back(text);
  }
  for (const std::string &text : strings) {
    TracePair pair = withAttribute(text);
    EXPECT_TRUE(isUTF8(written(pair))) << llvm::toHex(text);
    TracePair again = expectFixpoint(pair);
    EXPECT_EQ(*again.forward().op(again.forward().ops()[0]).attribute("a"), Attribute(text))
        << llvm::toHex(text);
  }
}

// The escape of a byte names the byte; valid UTF-8 is not escaped.
TEST_F(JSONTest, EscapedBytes) {
  EXPECT_THAT(written(withAttribute("a\xff\xc3\xa9")),
              HasSubstr("{\"a\": \"a\\udbff\\udfff\xc3\xa9\"}"));
}

// Every other string of a trace may hold any bytes, too: names, paths, files, reasons.
TEST_F(JSONTest, AnyBytesEverywhere) {
  std::string odd = "\xff \"\n";
  Trace trace(registry, odd);
  ValueId argument = trace.addArgument(TensorType(DType::F32, {8}), "x");
  trace.setValuePath(argument, odd);
  OpInit init;
  init.spec = trace.opaqueSpec(odd);
  init.operands.push_back(argument);
  init.attributes.emplace_back(odd, odd);
  OpId op = trace.createOp(std::move(init));
  trace.append(Trace::topBody(), op);
  trace.setValuePath(trace.addResult(op, TensorType(DType::F32, {8})), odd);
  trace.setModulePath(op, odd);
  trace.setLocation(op, {odd, 1, 2, odd});
  trace.setClaim(op, {odd, true, odd, 0});
  trace.setFusionRecord(op, {true, FusionDecider::Executor, odd});
  finish(trace, {});
  TracePair pair(std::move(trace));
  pair.setName(odd);
  TracePair again = expectFixpoint(pair);
  EXPECT_EQ(again.name(), odd);
  const Op &readOp = again.forward().op(again.forward().ops()[0]);
  EXPECT_EQ(readOp.name(), odd);
  EXPECT_EQ(*readOp.location(), (Location{odd, 1, 2, odd}));
  EXPECT_EQ(readOp.claim()->why, odd);
}

//===--- Structure --------------------------------------------------------===//

// Keys that say nothing may be left out: they have the defaults of the schema.
TEST_F(JSONTest, Defaults) {
  TracePair pair = read(R"({"schema_version": 1, "name": "p", "forward": {"name": "t",
    "arguments": [
      {"name": "x", "type": {"kind": "tensor", "dtype": "f32", "shape": [2, "S"]}},
      {"name": "s", "type": {"kind": "rng"}}],
    "ops": [{"op": "return", "operands": [], "results": []}]}})");
  const Trace &trace = pair.forward();
  ASSERT_EQ(trace.arguments().size(), 2u);
  EXPECT_EQ(trace.type(trace.arguments()[0]),
            Type(TensorType(DType::F32, {2, Dim::symbol("S")}, Device::host())));
  EXPECT_EQ(trace.type(trace.arguments()[1]), Type(RNGStateType{Device::host()}));
  EXPECT_EQ(trace.properties(), TraceProperties::None);
  EXPECT_FALSE(pair.hasBackward());
  expectFixpoint(pair);
}

// Domains are made afresh by each reading; ops that name one index share one.
TEST_F(JSONTest, DomainsAreFreshAndShared) {
  TracePair pair = parse(R"(pair @p {
  domain #4 "d"
  domain #2 "d"
  forward @f(%x: f32[8]) regions {
    %a: f32[8] = cuda_graph(%x) {region = 0} domain #4 {
    ^(%x: f32[8]):
      return(%x)
    }
    %b: f32[8] = cuda_graph(%a) {region = 1} domain #2 {
    ^(%x: f32[8]):
      return(%x)
    }
    return(%b)
  }
  backward @b(%g: f32[8]) regions {
    %a: f32[8] = cuda_graph(%g) {region = 0} domain #4 {
    ^(%x: f32[8]):
      return(%x)
    }
    return(%a)
  }
})");
  TracePair again = expectFixpoint(pair);
  auto domain = [](const Trace &trace, unsigned op) { return trace.op(trace.ops()[op]).domain(); };
  ASSERT_TRUE(domain(again.forward(), 0));
  EXPECT_EQ(domain(again.forward(), 0), domain(again.backward(), 0));
  EXPECT_NE(domain(again.forward(), 0), domain(again.forward(), 1));
  EXPECT_NE(domain(again.forward(), 0), domain(pair.forward(), 0));
}

// An op that the registry does not know becomes opaque; one that it knows does not.
TEST_F(JSONTest, UnknownOps) {
  TracePair pair = expectFixpoint(parse("trace @t(%x: f32[8]) {\n"
                                        "  %y: f32[8] = \"no such op\"(%x)\n"
                                        "  %z: f32[8] = relu(%y)\n"
                                        "  return(%z)\n}\n"));
  EXPECT_TRUE(pair.forward().op(pair.forward().ops()[0]).spec().opaque);
  EXPECT_FALSE(pair.forward().op(pair.forward().ops()[1]).spec().opaque);
}

// A broken trace is written, too, for those who look for the fault: what it uses without defining
// it is -1, which the reader refuses.
TEST_F(JSONTest, BrokenTracesAreWritten) {
  Trace trace(registry, "t");
  OpInit init;
  init.spec = trace.opaqueSpec("mylib.op");
  OpId detached = trace.createOp(std::move(init));
  ValueId lost = trace.addResult(detached, Type(ScalarKind::I64));
  finish(trace, {lost, ValueId(1000)});
  std::string json = written(TracePair(std::move(trace)));
  EXPECT_THAT(json, HasSubstr(R"("operands": [-1, -1])"));
  llvm::Expected<TracePair> pair = readJSON(json, "t.json", registry);
  ASSERT_FALSE(pair);
  EXPECT_THAT(llvm::toString(pair.takeError()), HasSubstr("t.json:/forward/ops/0/operands/0"));
}

// Bodies may be nested as deep as the verifier allows.
TEST_F(JSONTest, DeepBodies) {
  std::string text = "trace @t(%x: f32[8]) {\n", close;
  for (unsigned i = 0; i < 256; ++i) {
    text += "%y: f32[8] = fused(%x) {\n^(%x: f32[8]):\n";
    close += "return(%x)\n}\n";
  }
  // The innermost body returns its argument, the others what their op gives.
  text += "return(%x)\n}\n";
  for (unsigned i = 1; i < 256; ++i)
    text += "return(%y)\n}\n";
  text += "return(%y)\n}\n";
  expectFixpoint(parse(text));
}

// A long trace goes through, and writing twice gives the same bytes.
TEST_F(JSONTest, LongTrace) {
  Trace trace(registry, "t");
  Type type = TensorType(DType::F32, {8, 32}, Device::cuda(0));
  ValueId value = trace.addArgument(type, "x");
  for (unsigned i = 0; i < 5000; ++i) {
    OpInit init;
    init.spec = registry.lookup("relu");
    init.operands.push_back(value);
    OpId op = trace.createOp(std::move(init));
    value = trace.addResult(op, type, i % 3 ? "v" + std::to_string(i) : "");
    trace.append(Trace::topBody(), op);
  }
  finish(trace, {value});
  TracePair pair(std::move(trace));
  EXPECT_EQ(written(pair), written(pair.clone()));
  expectFixpoint(pair);
}

} // namespace
