//===- TextTest.cpp - Print, parse, print -----------------------------------===//
//
// What the printer prints the parser reads back to the same bytes, for everything that a trace can
// hold. Errors are in ParserErrorsTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "support/TestPaths.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"
#include "rondo/ir/TraceBuilder.h"

#include "llvm/Support/MemoryBuffer.h"

#include "gtest/gtest.h"

#include <limits>
#include <random>

using namespace rondo;

namespace {

template <typename T> std::string printed(const T &trace, PrintOptions options = {}) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(trace, os, options);
  return os.str();
}

std::string printedOp(const Trace &trace, OpId op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printOp(trace, op, os);
  return os.str();
}

class TextTest : public testing::Test {
protected:
  TextTest() {
    llvm::cantFail(registerCoreOps(registry_));
    OpaqueTypeSpec page;
    page.name = "mylib.page";
    page.verify = [](llvm::StringRef parameters) {
      return parameters == "odd" ? makeError("a page is even") : llvm::Error::success();
    };
    llvm::cantFail(registry_.registerType(std::move(page)));
  }

  TracePair parse(llvm::StringRef text) {
    llvm::Expected<TracePair> pair = parsePair(text, "t.trace", registry_);
    if (pair)
      return std::move(*pair);
    ADD_FAILURE() << llvm::toString(pair.takeError()) << "\n" << text.str();
    return TracePair(Trace(registry_, "failed"));
  }

  Trace parseLone(llvm::StringRef text) {
    llvm::Expected<Trace> trace = parseTrace(text, "t.trace", registry_);
    if (trace)
      return std::move(*trace);
    ADD_FAILURE() << llvm::toString(trace.takeError()) << "\n" << text.str();
    return Trace(registry_, "failed");
  }

  /// `text` is a lone trace as the printer writes it.
  void expectFixpoint(llvm::StringRef text) { EXPECT_EQ(printed(parseLone(text)), text.str()); }

  /// `ops` as the body of a trace, as the printer writes them.
  void expectOpsFixpoint(llvm::StringRef ops, llvm::StringRef arguments = "",
                         llvm::StringRef properties = "") {
    expectFixpoint(("trace @t(" + arguments + ")" + properties + " {\n" + ops + "}\n").str());
  }

  std::string sample() {
    auto buffer = llvm::MemoryBuffer::getFile(testDataDir() + "/sample.trace");
    EXPECT_TRUE(buffer) << "tests/data/sample.trace is missing";
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }

  OpRegistry registry_;
};

//===----------------------------------------------------------------------===//
// The sample
//===----------------------------------------------------------------------===//

// The sample file, which holds every construct, parses and prints to its own bytes.
TEST_F(TextTest, SampleIsAFixpoint) {
  EXPECT_EQ(printed(parse(sample())), sample());
}

// What the sample says is in the trace: names, tags, paths, links, claims, records, domains.
TEST_F(TextTest, SampleIsUnderstood) {
  TracePair pair = parse(sample());
  ASSERT_TRUE(pair.hasBackward());
  const Trace &forward = pair.forward();
  EXPECT_EQ(pair.name(), "sample");
  EXPECT_EQ(forward.name(), "forward");
  EXPECT_EQ(pair.backward().name(), "backward of sample");
  EXPECT_TRUE(forward.has(TraceProperties::Claimed | TraceProperties::HasRegions |
                          TraceProperties::HasDels));
  EXPECT_EQ(pair.backward().properties(), TraceProperties::None);

  ValueId weight = forward.arguments()[1], bias = forward.arguments()[2];
  EXPECT_EQ(forward.name(weight), "w");
  EXPECT_EQ(forward.tags(weight), ValueTags::Parameter);
  EXPECT_EQ(forward.tags(bias), ValueTags::Parameter | ValueTags::Static);
  EXPECT_EQ(forward.valuePath(weight), "blocks.0.mlp.weight");
  EXPECT_TRUE(forward.name(forward.arguments().back()).empty());
  EXPECT_EQ(forward.type(weight), Type(TensorType(DType::F32, {32, 32}, Device::cuda(0))));

  llvm::SmallVector<SavedLink, 0> links = pair.saved();
  ASSERT_EQ(links.size(), 3u);
  EXPECT_EQ(links[1].id, SavedId(3));
  EXPECT_EQ(links[1].forward, weight);
  EXPECT_EQ(pair.backward().name(links[1].backward), "w");

  const Op &read = forward.op(forward.ops()[0]);
  EXPECT_EQ(*read.claim(), (Claim{"host", false, "reads the \"generator\"\n", 4096}));
  const Op &permute = forward.op(forward.ops()[1]);
  EXPECT_EQ(permute.modulePath(), "blocks.0.mlp");
  EXPECT_EQ(*permute.location(), (Location{"model.py", 12, 3, ""}));
  EXPECT_EQ(*permute.fusionRecord(), (FusionRecord{false, FusionDecider::Region, "views only"}));
  const Op &dropout = forward.op(forward.ops()[2]);
  EXPECT_EQ(*dropout.location(), (Location{"model.json", 0, 0, "/forward/ops/3"}));
  EXPECT_EQ(dropout.claim()->workspaceBytes, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(forward.tags(dropout.result(0)), ValueTags::Recompute);
  const Op &graph = forward.op(forward.ops()[3]);
  ASSERT_TRUE(graph.domain());
  EXPECT_EQ(graph.domain()->name(), "cuda-graph");
  EXPECT_EQ(graph.bodies().size(), 1u);
  EXPECT_EQ(forward.op(forward.ops()[4]).domain()->name(), "other \"transform\"");
}

// Capture domains are made afresh by each parse, one per number.
TEST_F(TextTest, DomainsAreFreshAndShared) {
  llvm::StringRef text = R"(trace @t(%x: f32[8]) regions {
  domain #0 "d"
  domain #1 "d"
  %a: f32[8] = cuda_graph(%x) {region = 0} domain #0 {
  ^(%x: f32[8]):
    %y: f32[8] = relu(%x)
    return(%y)
  }
  %b: f32[8] = cuda_graph(%a) {region = 1} domain #1 {
  ^(%x: f32[8]):
    %y: f32[8] = relu(%x)
    return(%y)
  }
  %c: f32[8] = cuda_graph(%b) {region = 2} domain #0 {
  ^(%x: f32[8]):
    %y: f32[8] = relu(%x)
    return(%y)
  }
  return(%c)
}
)";
  Trace first = parseLone(text), second = parseLone(text);
  auto domain = [](const Trace &trace, unsigned i) { return trace.op(trace.ops()[i]).domain(); };
  ASSERT_EQ(first.ops().size(), 4u);
  ASSERT_EQ(second.ops().size(), 4u);
  EXPECT_EQ(domain(first, 0), domain(first, 2));
  EXPECT_NE(domain(first, 0), domain(first, 1));
  EXPECT_NE(domain(first, 0), domain(second, 0));
  EXPECT_EQ(printed(first), text.str());
}

//===----------------------------------------------------------------------===//
// Fixpoints
//===----------------------------------------------------------------------===//

// Every kind of type is read back: scalars, 0-d, strides, symbols, devices, opaque ones.
TEST_F(TextTest, Types) {
  for (llvm::StringRef type :
       {"i64", "f64", "bool", "rng", "rng@cuda:3", "f32[]", "bool[2]", "i64[0]", "f8e4m3[1]@host:1",
        "f32[8, 32; 1, 8]", "f32[8, 32; 0, 1]@cuda:65535", "bf16[B, S, 8]", "f16[B*S+1, 2*N-3]",
        "f32[B, S; 1, B]", "!mylib.page", "!mylib.page<\"6\\\"4\">", "i64[9223372036854775807]"}) {
    llvm::Expected<Type> parsed = parseType(type, registry_);
    ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
    EXPECT_EQ(parsed->str(), type);
  }
}

// A type without strides is row-major, one without device is on the host, blanks do not matter.
TEST_F(TextTest, TypeDefaults) {
  EXPECT_EQ(llvm::cantFail(parseType(" f32 [ 8,32 ;32 , 1 ] @ host : 0 ", registry_)),
            Type(TensorType(DType::F32, {8, 32})));
  EXPECT_EQ(llvm::cantFail(parseType("bf16[B,3]@cuda:1", registry_)),
            Type(TensorType(DType::BF16, {Dim::symbol("B"), 3}, Device::cuda(1))));
}

// Every kind of attribute is read back to the same bits.
TEST_F(TextTest, Attributes) {
  for (llvm::StringRef value : {"none",
                                "true",
                                "false",
                                "0",
                                "-1",
                                "9223372036854775807",
                                "-9223372036854775808",
                                "S",
                                "8*S",
                                "-S",
                                "B*S+1",
                                "B*B-9223372036854775808",
                                "0.0",
                                "-0.0",
                                "1.5",
                                "1e-05",
                                "5e-324",
                                "-1.7976931348623157e+308",
                                "nan",
                                "inf",
                                "-inf",
                                "\"\"",
                                "\"a\\\"b\\\\c\\n\\t\\x00\\x7F\"",
                                "f32",
                                "bool",
                                "host",
                                "host:7",
                                "cuda:0",
                                "[]",
                                "[1, -2.5, \"x\", [none, []], S, f16]"})
    expectOpsFixpoint(("  x.y() {a = " + value + "}\n  return()\n").str());
}

// Other spellings of a number give the same attribute.
TEST_F(TextTest, AttributeSpellings) {
  auto reprinted = [&](llvm::StringRef value) {
    Trace trace = parseLone(("trace @t() { foo() {a = " + value + "} return() }").str());
    return trace.ops().empty() ? std::string() : trace.op(trace.ops()[0]).attribute("a")->str();
  };
  EXPECT_EQ(reprinted("1.50"), "1.5");
  EXPECT_EQ(reprinted("1e2"), "100.0");
  EXPECT_EQ(reprinted("1E+2"), "100.0");
  EXPECT_EQ(reprinted("007"), "7");
  EXPECT_EQ(reprinted("- 3"), "-3");
  EXPECT_EQ(reprinted("S * 8 - 2 + 3*S"), "11*S-2");
  EXPECT_EQ(reprinted("host:0"), "host");
  EXPECT_EQ(reprinted("S-S"), "0");
  EXPECT_EQ(reprinted("-1*9223372036854775808"), "-9223372036854775808");
}

// A string may hold any byte; those that are not printable are escaped or, above 0x7F, kept.
TEST_F(TextTest, AllBytesInStrings) {
  std::string bytes;
  for (int c = 0; c < 256; ++c)
    bytes += char(c);
  TraceBuilder builder(registry_, "t");
  builder.returnValues({});
  Trace trace = llvm::cantFail(std::move(builder).finish());
  trace.setModulePath(trace.ops()[0], bytes);
  std::string text = printed(trace);
  Trace again = parseLone(text);
  ASSERT_EQ(again.ops().size(), 1u);
  EXPECT_EQ(again.op(again.ops()[0]).modulePath(), bytes);
  EXPECT_EQ(printed(again), text);
}

// Bytes in strings need no escapes but for '"', '\' and the end of line.
TEST_F(TextTest, RawBytesInStrings) {
  Trace trace = parseLone("trace @t() { return() module \"\x01\xFF\ttab \xC3\xA9\" }");
  ASSERT_EQ(trace.ops().size(), 1u);
  EXPECT_EQ(trace.op(trace.ops()[0]).modulePath(), "\x01\xFF\ttab \xC3\xA9");
}

// A name of an op, attribute, trace or pair that is no identifier stands in quotes, and so does an
// op with the name of an annotation.
TEST_F(TextTest, QuotedNames) {
  expectOpsFixpoint("  \"2d.conv\"()\n  \"a b\"() {\"\" = 2, \"c d\" = 1, e.f = 3}\n"
                    "  \"module\"()\n  \"loc\"() module \"m\"\n  \"claim\"() {a = 1}\n"
                    "  \"fusion\"()\n  \"domain\"()\n  modules()\n  return()\n");
  expectFixpoint("trace @\"two words\"() {\n  return()\n}\n");
  expectFixpoint("trace @\"\"() {\n  return()\n}\n");
  llvm::StringRef pair = "pair @\"1\" {\n  forward @\"\\n\"() {\n    return()\n  }\n}\n";
  EXPECT_EQ(printed(parse(pair)), pair.str());
}

// Values without a name are numbered anew in each body, and are without a name when read.
TEST_F(TextTest, UnnamedValues) {
  expectFixpoint(R"(trace @t(%0: f32[8], %a: f32[8], %1: f32[8]) {
  %2: f32[8] = add(%0, %1)
  %3: f32[8] = fused(%2, %a) {
  ^(%0: f32[8], %1: f32[8]):
    %2: f32[8] = add(%0, %1)
    return(%2)
  }
  %b: f32[8] = relu(%3)
  %4: f32[8] = relu(%b)
  return(%4)
}
)");
  Trace trace = parseLone("trace @t(%7: f32[8]) { %00: f32[8] = relu(%7) return(%00) }");
  ASSERT_EQ(trace.arguments().size(), 1u);
  EXPECT_TRUE(trace.name(trace.arguments()[0]).empty());
  EXPECT_EQ(printed(trace), "trace @t(%0: f32[8]) {\n  %1: f32[8] = relu(%0)\n  return(%1)\n}\n");
}

// Tags, paths and saved ids follow a type in one order and are read in any.
TEST_F(TextTest, ValueAnnotations) {
  expectFixpoint("trace @t(%x: f32[8] parameter buffer static recompute path \"p\") {\n"
                 "  %y: f32[8] static path \"q\" = relu(%x)\n  return(%y)\n}\n");
  EXPECT_EQ(printed(parseLone("trace @t(%x: f32[8] path \"p\" recompute static) { return() }")),
            "trace @t(%x: f32[8] static recompute path \"p\") {\n  return()\n}\n");
}

// All annotations of an op, in one order when printed, in any when read.
TEST_F(TextTest, OpAnnotations) {
  expectOpsFixpoint("  foo() module \"m\" loc(\"a.py\":1:2) claim(\"e\") fusion(yes, policy)\n"
                    "  foo() loc(\"a.py\")\n  foo() loc(\"a.py\":7:0)\n  foo() loc(\"\")\n"
                    "  foo() loc(\"a\":3:4, \"/p\")\n  foo() loc(\"\", \"/p\")\n"
                    "  foo() claim(\"e\", uncapturable)\n  foo() claim(\"e\", why \"w\")\n"
                    "  foo() claim(\"e\", uncapturable, why \"\\\"\", workspace 7)\n"
                    "  foo() fusion(no, legality, \"r\")\n  foo() fusion(no, executor)\n"
                    "  foo() fusion(yes, region)\n  return()\n");
  EXPECT_EQ(printed(parseLone("trace @t() { foo() fusion(yes, policy, \"\") claim(\"e\", workspace "
                              "0, why \"\") loc(\"f\":2) module \"m\" return() }")),
            "trace @t() {\n  foo() module \"m\" loc(\"f\":2:0) claim(\"e\") fusion(yes, policy)\n"
            "  return()\n}\n");
}

// Absent operands are `none`, opaque ops keep operands, attributes and result types.
TEST_F(TextTest, OpaqueOps) {
  expectOpsFixpoint("  %p: !mylib.page<\"64\">, %1: i64, %2: rng@cuda:1 = "
                    "aten.foo.bar(none, %x, none) {k = 1}\n"
                    "  %3: f32[2, 2; 0, 1] = \"a-b\"(%p, %1, %2)\n  return(%3)\n",
                    "%x: f32[8], %0: bool");
  Trace trace = parseLone("trace @t() { foo() foo() return() }");
  ASSERT_EQ(trace.ops().size(), 3u);
  EXPECT_TRUE(trace.op(trace.ops()[0]).spec().opaque);
  EXPECT_EQ(&trace.op(trace.ops()[0]).spec(), &trace.op(trace.ops()[1]).spec());
  EXPECT_FALSE(trace.op(trace.ops()[2]).spec().opaque);
}

// Properties of a trace are printed in one order and read in any.
TEST_F(TextTest, Properties) {
  expectFixpoint("trace @t() claimed {\n  return()\n}\n");
  expectFixpoint("trace @t() regions dels {\n  return()\n}\n");
  EXPECT_EQ(printed(parseLone("trace @t() dels claimed { return() }")),
            "trace @t() claimed dels {\n  return()\n}\n");
}

// Arguments stand on one line of up to 100 columns, else one per line; the same in nested bodies.
TEST_F(TextTest, ArgumentLines) {
  std::string prefix = "trace @t(%x: f32[8], %", suffix = ": f32[8]) {";
  std::string name(100 - prefix.size() - suffix.size(), 'a');
  std::string fits = prefix + name + suffix + "\n  return()\n}\n";
  expectFixpoint(fits);
  Trace trace = parseLone(fits);
  ASSERT_EQ(trace.arguments().size(), 2u);
  trace.setName(trace.arguments()[1], name + "b");
  EXPECT_EQ(printed(trace),
            "trace @t(\n  %x: f32[8],\n  %" + name + "b: f32[8]\n) {\n  return()\n}\n");
  EXPECT_EQ(printed(parseLone(printed(trace))), printed(trace));

  std::string wide(60, 'w');
  expectFixpoint("trace @t(%x: f32[8]) {\n  %y: f32[8] = fused(%x, %x) {\n  ^(\n    %" + wide +
                 "1: f32[8],\n    %" + wide + "2: f32[8]\n  ):\n    return(%" + wide +
                 "1)\n  }\n  return(%y)\n}\n");
}

// A body without arguments has no header, and an empty first body is not taken for attributes.
TEST_F(TextTest, BodiesWithoutArguments) {
  expectOpsFixpoint("  fused() {\n    foo()\n    return()\n  }\n"
                    "  fused() module \"m\" {\n    \"a b\"()\n    return()\n  }\n"
                    "  fused() {\n    %0: i64 = constant() {value = 1}\n    return()\n  }\n"
                    "  return()\n");
  Trace trace(registry_, "t");
  OpInit init;
  init.spec = registry_.lookup("if");
  init.numBodies = 2;
  trace.append(Trace::topBody(), trace.createOp(std::move(init)));
  EXPECT_EQ(printed(trace), "trace @t() {\n  if() {} {\n  } {\n  }\n}\n");
}

// Bodies may be nested to the limit that the reader sets.
TEST_F(TextTest, NestedBodies) {
  std::string ops;
  for (int i = 0; i < 256; ++i)
    ops += std::string(2 + 2 * i, ' ') + "fused() {\n";
  for (int i = 255; i >= 0; --i)
    ops += std::string(4 + 2 * i, ' ') + "return()\n" + std::string(2 + 2 * i, ' ') + "}\n";
  expectOpsFixpoint(ops + "  return()\n");
}

// A lone trace keeps its ends of saved links, whichever side it is of.
TEST_F(TextTest, LoneTracesKeepSavedIds) {
  expectFixpoint("trace @t(%x: f32[8], %y: f32[8] saved #2, %z: f32[8] saved #1073741823) {\n"
                 "  return(%y saved #7, %x, %z saved #0)\n}\n");
}

// A lone trace becomes a pair of its name without backward.
TEST_F(TextTest, LoneTraceAsPair) {
  TracePair pair = parse("trace @one(%x: f32[8]) { return(%x) }");
  EXPECT_FALSE(pair.hasBackward());
  EXPECT_EQ(pair.name(), "one");
  EXPECT_EQ(printed(pair), "pair @one {\n  forward @one(%x: f32[8]) {\n    return(%x)\n  }\n}\n");
  EXPECT_EQ(printed(parse(printed(pair))), printed(pair));
}

// A pair that was read counts on from the ids it has.
TEST_F(TextTest, SavedIdsGoOn) {
  TracePair pair = parse("pair @p { forward @f(%x: f32[8], %y: f32[8]) { return(%x saved #4) } "
                         "backward @b(%x: f32[8] saved #4) { return(%x) } }");
  EXPECT_EQ(pair.addSaved(pair.forward().arguments()[1]), SavedId(5));
  EXPECT_EQ(printed(parse(printed(pair))), printed(pair));
}

//===----------------------------------------------------------------------===//
// Spelling
//===----------------------------------------------------------------------===//

/// Every way to write the same text that `vary` makes of the sample's lines parses to the same.
template <typename Vary> std::string varied(llvm::StringRef text, Vary &&vary) {
  std::string result;
  llvm::SmallVector<llvm::StringRef, 0> lines;
  text.split(lines, '\n');
  for (llvm::StringRef line : lines)
    result += vary(line);
  return result;
}

// Line ends have no meaning: the sample on one line is the same.
TEST_F(TextTest, OnOneLine) {
  std::string text = varied(sample(), [](llvm::StringRef line) { return line.trim().str() + " "; });
  EXPECT_EQ(printed(parse(text)), sample());
}

// Comments and blank lines may stand between lines, and lines may end in CR LF.
TEST_F(TextTest, CommentsAndBlanks) {
  std::string text = varied(sample(), [](llvm::StringRef line) {
    return ("\t// comment \" { %x \xFF\r\n\n" + line + "  // another }\r\n").str();
  });
  EXPECT_EQ(printed(parse(text)), sample());
}

// Blanks and comments may stand between any two tokens.
TEST_F(TextTest, BlanksBetweenTokens) {
  llvm::StringRef dense = "trace@t(%x:f32[8,4;4,1]@cuda:0 static path\"p\")dels{%y:f32[8,4]@cuda:0="
                          "foo(%x,none){a=[1,-2],b=8*S+1}module\"m\"loc(\"f\":1:2)claim(\"e\","
                          "workspace 7)fusion(no,policy)return(%y saved#0)}";
  std::string expected = printed(parseLone(dense));
  std::string spaced;
  bool isInString = false;
  for (size_t i = 0; i < dense.size(); ++i) {
    char c = dense[i];
    spaced += c;
    isInString ^= c == '"';
    if (!isInString && c != '%' && !llvm::isAlnum(c) && c != ' ')
      spaced += " // c\n ";
  }
  EXPECT_EQ(printed(parseLone(spaced)), expected);
  EXPECT_NE(expected.find("fusion(no, policy)"), std::string::npos);
}

//===----------------------------------------------------------------------===//
// Locations and options
//===----------------------------------------------------------------------===//

// An op without `loc` has the place where it stands in the file as its location; it is not printed.
TEST_F(TextTest, ImplicitLocations) {
  Trace trace = parseLone("trace @t() {\n  // here\n   foo()\n foo() loc(\"m.py\":7:8) return() }");
  ASSERT_EQ(trace.ops().size(), 3u);
  const Op &implicit = trace.op(trace.ops()[0]), &explicitly = trace.op(trace.ops()[1]);
  EXPECT_EQ(*implicit.location(), (Location{"t.trace", 3, 4, ""}));
  EXPECT_FALSE(implicit.hasExplicitLocation());
  EXPECT_EQ(*explicitly.location(), (Location{"m.py", 7, 8, ""}));
  EXPECT_TRUE(explicitly.hasExplicitLocation());
  EXPECT_EQ(printed(trace).find("t.trace"), std::string::npos);
}

// Without annotations, claims, records and module paths are left out; the rest stays.
TEST_F(TextTest, WithoutAnnotations) {
  Trace trace = parseLone("trace @t(%x: f32[8] static) { foo() {a = 1} module \"m\" claim(\"e\") "
                          "fusion(no, policy) loc(\"f\":1:2) return(%x) }");
  PrintOptions options;
  options.annotations = false;
  EXPECT_EQ(printed(trace, options),
            "trace @t(%x: f32[8] static) {\n  foo() {a = 1} loc(\"f\":1:2)\n  return(%x)\n}\n");
}

// One op for a message: one line, bodies and annotations left out, numbers as in the whole text.
TEST_F(TextTest, OneOp) {
  Trace trace = parseLone(R"(trace @t(%0: f32[8], %x: f32[8]) {
  %1: f32[8] = add(%0, %x)
  %2: f32[8] = fused(%1) {
  ^(%0: f32[8]):
    %1: f32[8] = relu(%0)
    return(%1)
  }
  return(%2)
}
)");
  ASSERT_EQ(trace.ops().size(), 3u);
  EXPECT_EQ(printedOp(trace, trace.ops()[0]), "%1: f32[8] = add(%0, %x)");
  EXPECT_EQ(printedOp(trace, trace.ops()[1]), "%2: f32[8] = fused(%1) {...}");
  EXPECT_EQ(printedOp(trace, trace.ops()[2]), "return(%2)");
  BodyId body = trace.op(trace.ops()[1]).bodies()[0];
  EXPECT_EQ(printedOp(trace, trace.ops(body)[0]), "%1: f32[8] = relu(%0)");
}

// Broken traces print, too: a detached op, an operand that does not exist.
TEST_F(TextTest, BrokenTracesPrint) {
  Trace trace(registry_, "t");
  OpInit init;
  init.spec = trace.opaqueSpec("foo");
  init.operands = {ValueId(1000), ValueId()};
  init.resultTypes = {Type(ScalarKind::I64)};
  OpId op = trace.createOp(std::move(init));
  EXPECT_EQ(printedOp(trace, op), "%?0: i64 = foo(%?1000, none)");
  trace.append(Trace::topBody(), op);
  EXPECT_EQ(printed(trace), "trace @t() {\n  %0: i64 = foo(%?1000, none)\n}\n");
}

//===----------------------------------------------------------------------===//
// Hostile text
//===----------------------------------------------------------------------===//

/// Any text gives an error or a pair that prints to a fixpoint.
void survive(llvm::StringRef text, const OpRegistry &registry) {
  llvm::Expected<TracePair> pair = parsePair(text, "t.trace", registry);
  if (!pair) {
    EXPECT_NE(llvm::toString(pair.takeError()).find("error: "), std::string::npos);
    return;
  }
  std::string once = printed(*pair);
  llvm::Expected<TracePair> again = parsePair(once, "t.trace", registry);
  ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError()) << "\n" << once;
  EXPECT_EQ(printed(*again), once);
}

// The sample cut at any byte gives an error, or a valid pair where only the end of line is lost.
TEST_F(TextTest, TruncationAtEveryByte) {
  std::string text = sample();
  for (size_t length = 0; length + 1 < text.size(); ++length) {
    llvm::Expected<TracePair> pair =
        parsePair(llvm::StringRef(text).take_front(length), "t.trace", registry_);
    ASSERT_FALSE(bool(pair)) << length;
    EXPECT_NE(llvm::toString(pair.takeError()).find("error: "), std::string::npos);
  }
}

// The sample with one byte changed, removed or added gives an error or a pair.
TEST_F(TextTest, SingleByteMutations) {
  const std::string text = sample();
  std::mt19937 random(20240607);
  static constexpr llvm::StringLiteral interesting = "{}()[]<>,:;=+-*@#!^%\"\\/ \n\xFF"
                                                     "09azS_.$e";
  for (int i = 0; i < 4000; ++i) {
    std::string mutated = text;
    size_t at = random() % mutated.size();
    char byte = random() % 2 ? char(random()) : interesting[random() % interesting.size()];
    switch (random() % 3) {
    case 0:
      mutated[at] = byte;
      break;
    case 1:
      mutated.erase(at, 1);
      break;
    default:
      mutated.insert(at, 1, byte);
    }
    survive(mutated, registry_);
  }
}

// Random sequences of tokens give errors.
TEST_F(TextTest, RandomTokens) {
  static constexpr llvm::StringRef tokens[] = {
      "pair",          "trace",    "@t",       "(",   ")",     "{",      "}",   "[",   "]",
      "forward",       "backward", "domain",   "#0",  "%x",    ":",      "f32", "[8]", "=",
      "relu",          "(%x)",     "return()", ",",   "^",     "\"s\"",  "1",   "-",   "1.5",
      "none",          "saved",    "module",   "loc", "claim", "fusion", "if",  "\n",  "{a = 1}",
      "^(%x: f32[8]):"};
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string text = random() % 2 ? "trace @t(%x: f32[8]) {" : "";
    for (unsigned k = random() % 40; k > 0; --k)
      text += (tokens[random() % std::size(tokens)] + " ").str();
    survive(text, registry_);
  }
}

// Text nested without end is refused without running out of stack or time.
TEST_F(TextTest, DeepNesting) {
  for (llvm::StringRef open : {"fused() {", "foo() {a = [", "[", "{", "(", "fused() {\n^("}) {
    std::string text = "trace @t() {\n foo() {a = ";
    if (open != "[")
      text = "trace @t() {\n";
    for (int i = 0; i < 100000; ++i)
      text += open;
    survive(text, registry_);
  }
}

} // namespace
