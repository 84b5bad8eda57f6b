//===- JSONErrorsTest.cpp - What the reader says of bad JSON --------------===//
//
// Each case changes one place of a file that reads without errors, which is its good twin, and asks
// for the pointer and the message. Then files are cut and changed at random: whatever the bytes,
// the reader answers with errors or with a trace that can be written and read again.
//
//===----------------------------------------------------------------------===//

#include "support/TestPaths.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/JSON.h"
#include "rondo/ir/Text.h"

#include "llvm/Support/MemoryBuffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

using namespace rondo;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

/// Reads without errors, and has every key.
constexpr llvm::StringLiteral goodText = R"({
  "schema_version": 1,
  "name": "pair",
  "domains": [{"name": "first"}],
  "forward": {
    "name": "fw",
    "properties": ["claimed", "regions"],
    "arguments": [
      {"name": "x", "type": {"kind": "tensor", "dtype": "f32", "shape": [8, "S"], "strides": ["S", 1], "device": "cuda:0"}, "tags": ["static"], "path": "in"},
      {"name": 3, "type": {"kind": "scalar", "dtype": "f64"}},
      {"name": "page", "type": {"kind": "opaque", "name": "mylib.page", "parameters": "64"}}
    ],
    "ops": [
      {"op": "relu", "operands": ["x"], "results": [{"name": 0, "type": {"kind": "tensor", "dtype": "f32", "shape": [8, "S"], "device": "cuda:0"}}], "claim": {"executor": "host", "capturable": true, "why": "w", "workspace_bytes": 64}, "fusion": {"captured": true, "decider": "policy", "reason": "r"}},
      {"op": "mylib.op", "operands": [0, null, 3], "attributes": {"a": [1, {"float": 2}], "b": {"symbolic": "S+1"}, "c": {"dtype": "f16"}, "d": {"device": "host"}}, "results": [], "module": "m", "location": {"file": "m.py", "line": 1, "column": 2}, "claim": {"executor": "host", "capturable": false}},
      {"op": "cuda_graph", "operands": ["x"], "attributes": {"region": 0}, "results": [{"name": "y", "type": {"kind": "tensor", "dtype": "f32", "shape": [8, "S"], "device": "cuda:0"}}], "domain": 0, "bodies": [{
        "arguments": [{"name": "a", "type": {"kind": "tensor", "dtype": "f32", "shape": [8, "S"], "device": "cuda:0"}}],
        "ops": [
          {"op": "neg", "operands": ["a"], "results": [{"name": "n", "type": {"kind": "tensor", "dtype": "f32", "shape": [8, "S"], "device": "cuda:0"}}], "claim": {"executor": "host", "capturable": true}},
          {"op": "return", "operands": ["n"], "results": []}
        ]
      }]},
      {"op": "return", "operands": ["y", {"value": "x", "saved": 5}, {"value": 0, "saved": 6}], "results": []}
    ]
  },
  "backward": {
    "name": "bw",
    "properties": [],
    "arguments": [
      {"name": "x", "type": {"kind": "tensor", "dtype": "f32", "shape": [8, "S"], "device": "cuda:0"}, "saved": 5},
      {"name": "r", "type": {"kind": "tensor", "dtype": "f32", "shape": [8, "S"], "device": "cuda:0"}, "saved": 6}
    ],
    "ops": [
      {"op": "return", "operands": [], "results": []}
    ]
  }
}
)";

class JSONErrorsTest : public testing::Test {
protected:
  JSONErrorsTest() {
    llvm::cantFail(registerCoreOps(registry));
    OpaqueTypeSpec page;
    page.name = "mylib.page";
    page.verify = [](llvm::StringRef parameters) {
      return parameters == "odd" ? makeError("a page is even") : llvm::Error::success();
    };
    llvm::cantFail(registry.registerType(std::move(page)));
  }

  /// The diagnostics for `text`, one a line; empty if it reads without errors.
  std::string errorsOf(llvm::StringRef text) {
    llvm::Expected<TracePair> pair = readJSON(text, "f.json", registry);
    return pair ? std::string() : llvm::toString(pair.takeError());
  }

  /// The good text with `from`, which it has exactly once, replaced.
  std::string changed(llvm::StringRef from, llvm::StringRef to, llvm::StringRef text = goodText) {
    EXPECT_EQ(text.count(from), 1u) << from.str();
    auto [before, after] = text.split(from);
    return (before + to + after).str();
  }

  /// `from` replaced by `to` gives these diagnostics and no others.
  void expectErrors(llvm::StringRef from, llvm::StringRef to, llvm::StringRef expected) {
    EXPECT_EQ(errorsOf(changed(from, to)), expected.str()) << from.str() << " -> " << to.str();
  }

  std::string dataFile(llvm::StringRef name) {
    auto buffer = llvm::MemoryBuffer::getFile(testDataDir() + "/" + name.str());
    EXPECT_TRUE(buffer) << "tests/data/" << name.str() << " is missing";
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }

  std::string written(const TracePair &pair) {
    std::string text;
    llvm::raw_string_ostream os(text);
    writeJSON(pair, os);
    return os.str();
  }

  /// `text` is read with errors, or gives a trace that goes unchanged through the writer and the
  /// reader, and through the text form.
  void expectSane(llvm::StringRef text) {
    llvm::Expected<TracePair> pair = readJSON(text, "f.json", registry);
    if (!pair) {
      llvm::handleAllErrors(pair.takeError(), [&](const DiagnosticError &error) {
        EXPECT_FALSE(error.diagnostics().empty());
        for (const Diagnostic &diagnostic : error.diagnostics())
          EXPECT_FALSE(diagnostic.message.empty());
      });
      return;
    }
    std::string json = written(*pair);
    llvm::Expected<TracePair> again = readJSON(json, "f.json", registry);
    ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError()) << text.str();
    EXPECT_EQ(written(*again), json);
    std::string asText;
    llvm::raw_string_ostream os(asText);
    print(*pair, os);
    llvm::Expected<TracePair> parsed = parsePair(os.str(), "f.trace", registry);
    ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError()) << text.str();
    EXPECT_EQ(written(*parsed), json);
  }

  OpRegistry registry;
};

//===--- The file ---------------------------------------------------------===//

// The text that all cases start from has no errors.
TEST_F(JSONErrorsTest, GoodText) {
  EXPECT_EQ(errorsOf(goodText), "");
}

// Text that is no JSON has one error with line, column and caret.
TEST_F(JSONErrorsTest, NoJSON) {
  expectErrors(R"("name": "pair",)", R"("name" "pair",)",
               "f.json:3:10: error: malformed JSON while parsing object separator: unexpected "
               "string literal; expected ':'\n"
               "  \"name\" \"pair\",\n"
               "         ^");
  EXPECT_THAT(errorsOf(""), StartsWith("f.json:1:1: error: malformed JSON"));
  EXPECT_THAT(errorsOf("pair @p {}"), StartsWith("f.json:1:1: error: malformed JSON"));
  EXPECT_EQ(errorsOf("[]"), "f.json: error: expected an object, got an array");
}

// A file of another version is refused with one error, whatever else is wrong with it.
TEST_F(JSONErrorsTest, Version) {
  expectErrors(R"("schema_version": 1)", R"("schema_version": 2, "new": 0)",
               "f.json:/schema_version: error: schema version 2 is not supported: this reader "
               "reads version 1");
  expectErrors(R"("schema_version": 1,)", "", "f.json: error: missing key 'schema_version'");
  expectErrors(R"("schema_version": 1)", R"("schema_version": "1")",
               "f.json:/schema_version: error: expected an integer, got a string");
  expectErrors(R"("schema_version": 1)", R"("schema_version": 1.0)",
               "f.json:/schema_version: error: expected an integer, got a floating-point number");
}

// Unknown keys are errors that name the nearest known one.
TEST_F(JSONErrorsTest, UnknownKeys) {
  expectErrors(R"("domains")", R"("domain_")",
               "f.json:/domain_: error: unknown key 'domain_' (did you mean 'domains'?)\n"
               "f.json:/forward/ops/2/domain: error: there is no domain 0: 'domains' has 0");
  expectErrors(R"({"name": "first"})", R"({"name": "first", "id": 0})",
               "f.json:/domains/0/id: error: unknown key 'id'");
  expectErrors(R"("name": "fw")", R"("name": "fw", "op": [])",
               "f.json:/forward/op: error: unknown key 'op' (did you mean 'ops'?)");
  expectErrors(R"("path": "in")", R"("pth": "in")",
               "f.json:/forward/arguments/0/pth: error: unknown key 'pth' (did you mean 'path'?)");
  expectErrors(R"({"op": "relu")", R"({"operand": [], "op": "relu")",
               "f.json:/forward/ops/0/operand: error: unknown key 'operand' (did you mean "
               "'operands'?)");
  expectErrors(R"({"name": "y", )", R"({"name": "y", "saved": 0, )",
               "f.json:/forward/ops/2/results/0/saved: error: unknown key 'saved'");
  expectErrors(R"("reason": "r")", R"("why": "r")",
               "f.json:/forward/ops/0/fusion/why: error: unknown key 'why'");
  expectErrors(R"("why": "w")", R"("reason": "w")",
               "f.json:/forward/ops/0/claim/reason: error: unknown key 'reason'");
  expectErrors(R"("column": 2)", R"("column": 2, "col": 2)",
               "f.json:/forward/ops/1/location/col: error: unknown key 'col'");
  expectErrors(R"({"value": "x", )", R"({"value": "x", "id": 5, )",
               "f.json:/forward/ops/3/operands/1/id: error: unknown key 'id'");
  expectErrors(R"("bodies": [{)", R"("bodies": [{"name": "b", )",
               "f.json:/forward/ops/2/bodies/0/name: error: unknown key 'name'");
}

// Missing keys are errors at the object that lacks them.
TEST_F(JSONErrorsTest, MissingKeys) {
  expectErrors(R"("name": "pair",)", "", "f.json: error: missing key 'name'");
  expectErrors(R"({"name": "first"})", "{}", "f.json:/domains/0: error: missing key 'name'");
  expectErrors(R"("name": "fw",)", "", "f.json:/forward: error: missing key 'name'");
  expectErrors(R"("name": 3, )", "", "f.json:/forward/arguments/1: error: missing key 'name'");
  expectErrors(R"(, "type": {"kind": "scalar", "dtype": "f64"})", "",
               "f.json:/forward/arguments/1: error: missing key 'type'");
  expectErrors(R"("kind": "scalar", )", "",
               "f.json:/forward/arguments/1/type: error: missing key 'kind'");
  expectErrors(R"("kind": "scalar", "dtype": "f64")", R"("kind": "scalar")",
               "f.json:/forward/arguments/1/type: error: missing key 'dtype'");
  expectErrors(R"("kind": "scalar", "dtype": "f64")", R"("kind": "tensor")",
               "f.json:/forward/arguments/1/type: error: missing key 'dtype'\n"
               "f.json:/forward/arguments/1/type: error: missing key 'shape'");
  expectErrors(R"("kind": "scalar", "dtype": "f64")", R"("kind": "opaque")",
               "f.json:/forward/arguments/1/type: error: missing key 'name'");
  expectErrors(R"("op": "neg", )", "",
               "f.json:/forward/ops/2/bodies/0/ops/0: error: missing key 'op'");
  expectErrors(R"("operands": [0, null, 3], )", "",
               "f.json:/forward/ops/1: error: missing key 'operands'");
  expectErrors(R"("results": [], "module")", R"("module")",
               "f.json:/forward/ops/1: error: missing key 'results'");
  // Where a value lost its name, uses that find no definition are not reported, too.
  expectErrors(R"("name": 0, )", "", "f.json:/forward/ops/0/results/0: error: missing key 'name'");
  expectErrors(R"("file": "m.py", "line": 1, "column": 2)", "",
               "f.json:/forward/ops/1/location: error: missing key 'file'\n"
               "f.json:/forward/ops/1/location: error: missing key 'line'\n"
               "f.json:/forward/ops/1/location: error: missing key 'column'");
  expectErrors(R"("executor": "host", "capturable": false)", "",
               "f.json:/forward/ops/1/claim: error: missing key 'executor'\n"
               "f.json:/forward/ops/1/claim: error: missing key 'capturable'");
  expectErrors(R"("captured": true, "decider": "policy", )", "",
               "f.json:/forward/ops/0/fusion: error: missing key 'captured'\n"
               "f.json:/forward/ops/0/fusion: error: missing key 'decider'");
  expectErrors(R"({"value": "x", "saved": 5})", "{}",
               "f.json:/forward/ops/3/operands/1: error: missing key 'value'\n"
               "f.json:/forward/ops/3/operands/1: error: missing key 'saved'");
  EXPECT_EQ(errorsOf(R"({"schema_version": 1})"), "f.json: error: missing key 'name'\n"
                                                  "f.json: error: missing key 'forward'");
  EXPECT_EQ(errorsOf(R"({"schema_version": 1, "name": "p", "forward": {}})"),
            "f.json:/forward: error: missing key 'name'\n"
            "f.json:/forward: error: missing key 'arguments'\n"
            "f.json:/forward: error: missing key 'ops'");
}

// A key given twice is an error, even with the same value.
TEST_F(JSONErrorsTest, DuplicateKeys) {
  expectErrors(R"("name": "pair")", R"("name": "pair", "name": "pair")",
               "f.json:/name: error: key 'name' is given twice");
  expectErrors(R"("module": "m")", R"("module": "m", "module": "n")",
               "f.json:/forward/ops/1/module: error: key 'module' is given twice");
  expectErrors(R"("b": {"symbolic": "S+1"})", R"("a": 0)",
               "f.json:/forward/ops/1/attributes/a: error: key 'a' is given twice");
}

//===--- Wrong kinds ------------------------------------------------------===//

// A value of the wrong kind is an error that says what was expected.
TEST_F(JSONErrorsTest, WrongKinds) {
  expectErrors(R"("name": "pair")", R"("name": 1)",
               "f.json:/name: error: expected a string, got an integer");
  expectErrors(R"("domains": [{"name": "first"}])", R"("domains": {})",
               "f.json:/domains: error: expected an array, got an object\n"
               "f.json:/forward/ops/2/domain: error: there is no domain 0: 'domains' has 0");
  expectErrors(R"([{"name": "first"}])", R"(["first"])",
               "f.json:/domains/0: error: expected an object, got a string");
  expectErrors(R"("properties": [])", R"("properties": "claimed")",
               "f.json:/backward/properties: error: expected an array, got a string");
  expectErrors(
      R"("name": "x", "type": {"kind": "tensor", "dtype": "f32", "shape": [8, "S"], "strides")",
      R"("name": ["x"], "type": {"kind": "tensor", "dtype": "f32", "shape": [8, "S"], "strides")",
      "f.json:/forward/arguments/0/name: error: expected a name, or a number for an "
      "unnamed value, got an array");
  expectErrors(R"({"kind": "scalar", "dtype": "f64"})", R"("f64")",
               "f.json:/forward/arguments/1/type: error: expected an object, got a string");
  expectErrors(R"(["static"])", R"({"static": true})",
               "f.json:/forward/arguments/0/tags: error: expected an array, got an object");
  expectErrors(R"("path": "in")", R"("path": null)",
               "f.json:/forward/arguments/0/path: error: expected a string, got null");
  expectErrors(R"("op": "neg")", R"("op": null)",
               "f.json:/forward/ops/2/bodies/0/ops/0/op: error: expected a string, got null");
  expectErrors(R"("op": "neg")", R"("op": "")",
               "f.json:/forward/ops/2/bodies/0/ops/0/op: error: expected the name of an op, got "
               "an empty string");
  expectErrors(R"("operands": ["n"])", R"("operands": "n")",
               "f.json:/forward/ops/2/bodies/0/ops/1/operands: error: expected an array, got a "
               "string");
  expectErrors(R"("operands": ["n"])", R"("operands": [["n"]])",
               "f.json:/forward/ops/2/bodies/0/ops/1/operands/0: error: expected the name or "
               "number of a value, or null, got an array");
  expectErrors(R"("operands": ["n"])", R"("operands": [true])",
               "f.json:/forward/ops/2/bodies/0/ops/1/operands/0: error: expected the name or "
               "number of a value, or null, got a boolean");
  expectErrors(R"("attributes": {"region": 0})", R"("attributes": [0])",
               "f.json:/forward/ops/2/attributes: error: expected an object, got an array");
  expectErrors(R"("module": "m")", R"("module": 1)",
               "f.json:/forward/ops/1/module: error: expected a string, got an integer");
  expectErrors(R"("location": {"file": "m.py", "line": 1, "column": 2})",
               R"("location": "m.py:1:2")",
               "f.json:/forward/ops/1/location: error: expected an object, got a string");
  expectErrors(R"("file": "m.py")", R"("file": 1)",
               "f.json:/forward/ops/1/location/file: error: expected a string, got an integer");
  expectErrors(R"("capturable": false)", R"("capturable": 0)",
               "f.json:/forward/ops/1/claim/capturable: error: expected a boolean, got an integer");
  expectErrors(R"("fusion": {"captured": true, "decider": "policy", "reason": "r"})",
               R"("fusion": true)",
               "f.json:/forward/ops/0/fusion: error: expected an object, got a boolean");
  expectErrors(R"("domain": 0)", R"("domain": "first")",
               "f.json:/forward/ops/2/domain: error: expected an integer, got a string");
  // Where a value or an op is no object, nothing can be said of uses that find no definition.
  expectErrors(R"({"name": 3, "type": {"kind": "scalar", "dtype": "f64"}})", "3",
               "f.json:/forward/arguments/1: error: expected an object, got an integer");
  EXPECT_EQ(errorsOf(changed(R"("ops": [
      {"op": "relu")",
                             R"("ops": [[], {"op": "relu")")),
            "f.json:/forward/ops/0: error: expected an object, got an array");
  EXPECT_EQ(errorsOf(changed(R"("bodies": [{)", R"("bodies": [3, {)")),
            "f.json:/forward/ops/2/bodies/0: error: expected an object, got an integer");
  EXPECT_EQ(errorsOf(R"({"schema_version": 1, "name": "p", "forward": []})"),
            "f.json:/forward: error: expected an object, got an array");
}

// Unknown words are errors that name the nearest known one.
TEST_F(JSONErrorsTest, UnknownWords) {
  expectErrors(R"(["claimed", "regions"])", R"(["claimed", "regions", "claim"])",
               "f.json:/forward/properties/2: error: expected a property of a trace, got 'claim' "
               "(did you mean 'claimed'?)");
  expectErrors(R"(["static"])", R"(["statik"])",
               "f.json:/forward/arguments/0/tags/0: error: expected a tag, got 'statik' (did you "
               "mean 'static'?)");
  expectErrors(R"("kind": "scalar")", R"("kind": "skalar")",
               "f.json:/forward/arguments/1/type/kind: error: expected a kind of type, got "
               "'skalar' (did you mean 'scalar'?)");
  expectErrors(R"("dtype": "f64")", R"("dtype": "f32")",
               "f.json:/forward/arguments/1/type/dtype: error: expected the dtype of a scalar "
               "(i64, f64, bool), got 'f32'");
  expectErrors(R"({"dtype": "f16"})", R"({"dtype": "bf17"})",
               "f.json:/forward/ops/1/attributes/c/dtype: error: expected a dtype, got 'bf17' "
               "(did you mean 'bf16'?)");
  expectErrors(R"({"device": "host"})", R"({"device": "cuda"})",
               "f.json:/forward/ops/1/attributes/d/device: error: expected a device ('host' or "
               "'cuda:0'), got 'cuda'");
  expectErrors(R"({"device": "host"})", R"({"device": "cuda:65536"})",
               "f.json:/forward/ops/1/attributes/d/device: error: expected a device ('host' or "
               "'cuda:0'), got 'cuda:65536'");
  expectErrors(R"("decider": "policy")", R"("decider": "polcy")",
               "f.json:/forward/ops/0/fusion/decider: error: expected who decided, got 'polcy' "
               "(did you mean 'policy'?)");
  expectErrors(R"("name": "mylib.page")", R"("name": "mylib.pages")",
               "f.json:/forward/arguments/2/type/name: error: unknown opaque type 'mylib.pages' "
               "(did you mean 'mylib.page'?)");
}

// Tags and properties stand in a list once.
TEST_F(JSONErrorsTest, GivenTwice) {
  expectErrors(R"(["static"])", R"(["static", "static"])",
               "f.json:/forward/arguments/0/tags/1: error: tag 'static' is given twice");
  expectErrors(R"(["claimed", "regions"])", R"(["claimed", "regions", "claimed"])",
               "f.json:/forward/properties/2: error: property 'claimed' is given twice");
}

// Numbers that are out of range are errors that give the range.
TEST_F(JSONErrorsTest, Ranges) {
  expectErrors(R"("line": 1)", R"("line": 4294967296)",
               "f.json:/forward/ops/1/location/line: error: expected an integer from 0 to "
               "4294967295, got 4294967296");
  expectErrors(R"("column": 2)", R"("column": -1)",
               "f.json:/forward/ops/1/location/column: error: expected an integer from 0 to "
               "4294967295, got -1");
  expectErrors(R"("workspace_bytes": 64)", R"("workspace_bytes": 18446744073709551616)",
               "f.json:/forward/ops/0/claim/workspace_bytes: error: expected an integer from 0 to "
               "18446744073709551615, got 18446744073709551616");
  expectErrors(R"([1, {"float": 2}])", R"(9223372036854775808)",
               "f.json:/forward/ops/1/attributes/a: error: expected an integer from "
               "-9223372036854775808 to 9223372036854775807, got 9223372036854775808");
  expectErrors(R"("name": 3, )", R"("name": 1073741825, )",
               "f.json:/forward/arguments/1/name: error: expected an integer from 0 to "
               "1073741824, got 1073741825");
  expectErrors(R"([0, null, 3])", R"([0, null, -3])",
               "f.json:/forward/ops/1/operands/2: error: expected an integer from 0 to "
               "1073741824, got -3");
  expectErrors(R"({"value": "x", "saved": 5})", R"({"value": "x", "saved": 1073741824})",
               "f.json:/forward/ops/3/operands/1/saved: error: expected an integer from 0 to "
               "1073741823, got 1073741824");
  expectErrors(R"("domain": 0)", R"("domain": 1)",
               "f.json:/forward/ops/2/domain: error: there is no domain 1: 'domains' has 1");
  expectErrors(R"("domain": 0)", R"("domain": -1)",
               "f.json:/forward/ops/2/domain: error: expected an integer from 0 to "
               "18446744073709551615, got -1");
  EXPECT_EQ(errorsOf(R"({"schema_version": 1e400})").substr(0, 55),
            "f.json:1:20: error: number is too large for a double\n{\"");
}

//===--- Types and attributes ---------------------------------------------===//

// A shape is a list of integers and symbolic dimensions, with as many strides.
TEST_F(JSONErrorsTest, Shapes) {
  expectErrors(R"("strides": ["S", 1])", R"("strides": ["S", 1, 1])",
               "f.json:/forward/arguments/0/type/strides: error: expected one stride for each of "
               "the 2 dimensions, got 3");
  expectErrors(R"("strides": ["S", 1])", R"("strides": ["S+", true])",
               "f.json:/forward/arguments/0/type/strides/0: error: expected a symbolic dimension "
               "('8*S+1'), got 'S+'\n"
               "f.json:/forward/arguments/0/type/strides/1: error: expected an integer, got a "
               "boolean");
  expectErrors(R"("strides": ["S", 1])", R"("strides": ["S", 1.5])",
               "f.json:/forward/arguments/0/type/strides/1: error: expected an integer, got a "
               "floating-point number");
  expectErrors(R"("strides": ["S", 1])", R"("strides": "S")",
               "f.json:/forward/arguments/0/type/strides: error: expected an array, got a string");
  expectErrors(R"({"symbolic": "S+1"})", R"({"symbolic": 1})",
               "f.json:/forward/ops/1/attributes/b/symbolic: error: expected a string, got an "
               "integer");
  expectErrors(R"({"symbolic": "S+1"})", R"({"symbolic": "f32"})",
               "f.json:/forward/ops/1/attributes/b/symbolic: error: expected a symbolic dimension "
               "('8*S+1'), got 'f32'");
}

// A floating-point attribute says so; an object is one of the four that stand for what JSON lacks.
TEST_F(JSONErrorsTest, Attributes) {
  expectErrors(R"({"float": 2})", "2.5",
               "f.json:/forward/ops/1/attributes/a/1: error: expected {\"float\": ...} around a "
               "floating-point attribute");
  expectErrors(R"({"float": 2})", R"({"float": "1"})",
               "f.json:/forward/ops/1/attributes/a/1/float: error: expected a number, 'nan', "
               "'inf' or '-inf', got '1'");
  expectErrors(R"({"float": 2})", R"({"float": null})",
               "f.json:/forward/ops/1/attributes/a/1/float: error: expected a number, got null");
  expectErrors(R"({"float": 2})", "{}",
               "f.json:/forward/ops/1/attributes/a/1: error: expected an object with one key: "
               "'float', 'symbolic', 'dtype' or 'device'");
  expectErrors(R"({"float": 2})", R"({"float": 2, "dtype": "f16"})",
               "f.json:/forward/ops/1/attributes/a/1: error: expected an object with one key: "
               "'float', 'symbolic', 'dtype' or 'device'");
  expectErrors(R"({"float": 2})", R"({"flaot": 2})",
               "f.json:/forward/ops/1/attributes/a/1/flaot: error: unknown key 'flaot' (did you "
               "mean 'float'?)");
}

//===--- Values and links -------------------------------------------------===//

// An operand is defined above, in the same body.
TEST_F(JSONErrorsTest, UndefinedValues) {
  expectErrors(R"("operands": [0, null, 3])", R"("operands": ["pag", 4, 3])",
               "f.json:/forward/ops/1/operands/0: error: use of undefined value '%pag' (did you "
               "mean 'page'?)\n"
               "f.json:/forward/ops/1/operands/1: error: use of undefined value '%4'");
  expectErrors(R"("operands": [0, null, 3])", R"("operands": ["y", null, 3])",
               "f.json:/forward/ops/1/operands/0: error: value '%y' is used before its definition\n"
               "f.json:/forward/ops/2/results/0/name: note: defined here");
  expectErrors(R"("operands": ["n"])", R"("operands": ["x"])",
               "f.json:/forward/ops/2/bodies/0/ops/1/operands/0: error: value '%x' is not visible "
               "here: a body sees its arguments only\n"
               "f.json:/forward/arguments/0/name: note: defined outside of the body here");
  expectErrors(R"("operands": ["n"])", R"("operands": [0])",
               "f.json:/forward/ops/2/bodies/0/ops/1/operands/0: error: value '%0' is not visible "
               "here: a body sees its arguments only\n"
               "f.json:/forward/ops/0/results/0/name: note: defined outside of the body here");
  // What a body defines is not seen outside of it.
  expectErrors(R"("operands": ["y", {)", R"("operands": ["n", {)",
               "f.json:/forward/ops/3/operands/0: error: use of undefined value '%n' (did you "
               "mean 'x'?)");
}

// A name or number is defined once in a body.
TEST_F(JSONErrorsTest, Redefinitions) {
  expectErrors(R"({"name": "y", )", R"({"name": "x", )",
               "f.json:/forward/ops/2/results/0/name: error: redefinition of value '%x'\n"
               "f.json:/forward/arguments/0/name: note: previous definition here\n"
               "f.json:/forward/ops/3/operands/0: error: use of undefined value '%y' (did you "
               "mean 'x'?)");
  expectErrors(R"({"name": 0, )", R"({"name": 3, )",
               "f.json:/forward/ops/0/results/0/name: error: redefinition of value '%3'\n"
               "f.json:/forward/arguments/1/name: note: previous definition here\n"
               "f.json:/forward/ops/1/operands/0: error: use of undefined value '%0'\n"
               "f.json:/forward/ops/3/operands/2/value: error: use of undefined value '%0'");
  // In another body it is another value.
  EXPECT_EQ(errorsOf(changed(R"({"op": "neg", "operands": ["a"], "results": [{"name": "n", )",
                             R"({"op": "neg", "operands": ["a"], "results": [{"name": "x", )",
                             changed(R"("operands": ["n"])", R"("operands": ["x"])"))),
            "");
}

// A name has the form of a name.
TEST_F(JSONErrorsTest, MalformedNames) {
  expectErrors(R"("name": "page")", R"("name": "%page")",
               "f.json:/forward/arguments/2/name: error: malformed value name '%page'");
  expectErrors(R"("name": "page")", R"("name": "")",
               "f.json:/forward/arguments/2/name: error: malformed value name ''");
  expectErrors(R"("name": "page")", R"("name": "caf\u00e9")",
               "f.json:/forward/arguments/2/name: error: malformed value name 'caf\xc3\xa9'");
  expectErrors(R"("name": "page")", R"("name": "a\u0000b\n")",
               "f.json:/forward/arguments/2/name: error: malformed value name 'a\\x00b\\x0a'");
}

// Saved links stand on operands of the forward's `return` and arguments of the backward, once.
TEST_F(JSONErrorsTest, SavedLinks) {
  expectErrors(R"("path": "in")", R"("saved": 5)",
               "f.json:/forward/arguments/0/saved: error: only arguments of the backward can be "
               "saved");
  expectErrors(R"("operands": ["n"])", R"("operands": [{"value": "n", "saved": 7}])",
               "f.json:/forward/ops/2/bodies/0/ops/1/operands/0: error: only operands of the "
               "forward's 'return' can be saved");
  expectErrors(R"("saved": 6}], "results")", R"("saved": 5}], "results")",
               "f.json:/forward/ops/3/operands/2/saved: error: saved id 5 is used twice on one "
               "side\n"
               "f.json:/forward/ops/3/operands/1/saved: note: previous use here");
  expectErrors(R"("device": "cuda:0"}, "saved": 6})", R"("device": "cuda:0"}, "saved": 5})",
               "f.json:/backward/arguments/1/saved: error: saved id 5 is used twice on one side\n"
               "f.json:/backward/arguments/0/saved: note: previous use here");
  // One end only is what the verifier finds.
  EXPECT_THAT(errorsOf(changed(R"("saved": 6}], "results")", R"("saved": 7}], "results")")),
              HasSubstr("error: "));
}

//===--- Verification -----------------------------------------------------===//

// What was read without errors is verified, and the verifier's errors are located by pointer.
TEST_F(JSONErrorsTest, VerifierErrorsAreLocated) {
  EXPECT_THAT(errorsOf(changed(R"({"op": "relu", "operands": ["x"])",
                               R"({"op": "relu", "operands": ["x", "x"])")),
              StartsWith("f.json:/forward/ops/0: error: "));
  EXPECT_THAT(
      errorsOf(changed(R"({"op": "neg", "operands": ["a"])", R"({"op": "neg", "operands": [])")),
      StartsWith("f.json:/forward/ops/2/bodies/0/ops/0: error: "));
  EXPECT_THAT(errorsOf(changed(R"("parameters": "64")", R"("parameters": "odd")")),
              HasSubstr("a page is even"));
  EXPECT_THAT(errorsOf(changed(R"("region": 0)", R"("region": "zero")")),
              StartsWith("f.json:/forward/ops/2: error: "));
  // What is said of a trace as a whole is located at the trace, whatever the names of both.
  llvm::StringRef argument =
      R"("name": "r", "type": {"kind": "tensor", "dtype": "f32", "shape": [)";
  std::string negative = changed((argument + "8").str(), (argument + "-8").str());
  EXPECT_THAT(errorsOf(negative), StartsWith("f.json:/backward: error: "));
  EXPECT_THAT(errorsOf(changed(R"("name": "bw")", R"("name": "fw")", negative)),
              StartsWith("f.json: error: "));
  EXPECT_THAT(errorsOf(changed(R"("strides": ["S", 1])", R"("strides": ["S", -1])")),
              StartsWith("f.json:/forward: error: "));
}

// Several errors are reported in one run, but not without end.
TEST_F(JSONErrorsTest, ManyErrors) {
  EXPECT_EQ(errorsOf(changed(R"("module": "m")", R"("module": 1)",
                             changed(R"("name": "pair")", R"("name": 1)"))),
            "f.json:/name: error: expected a string, got an integer\n"
            "f.json:/forward/ops/1/module: error: expected a string, got an integer");
  for (llvm::StringRef op : {R"({"op": "relu", "operands": ["nothing"], "results": []},)",
                             R"({"op": "relu", "operands": [], "results": [0]},)"}) {
    std::string ops;
    for (unsigned i = 0; i < 20000; ++i)
      ops += op;
    std::string errors = errorsOf(changed(R"({"op": "relu")", ops + R"({"op": "relu")"));
    EXPECT_EQ(llvm::StringRef(errors).count('\n'), 100u);
    EXPECT_THAT(errors, HasSubstr("\nerror: too many errors: the rest of the file was not read"));
  }
}

//===--- Hostile text -----------------------------------------------------===//

// Brackets without end are an error, not a stack overflow.
TEST_F(JSONErrorsTest, DepthBombs) {
  EXPECT_THAT(errorsOf(std::string(1 << 20, '[')), HasSubstr("nested deeper than"));
  std::string lists = std::string(257, '[') + std::string(257, ']');
  EXPECT_THAT(errorsOf(changed(R"({"float": 2})", lists)),
              HasSubstr("error: lists are nested more than 256 deep"));
  EXPECT_EQ(errorsOf(changed(R"([1, {"float": 2}])", lists.substr(1, 512))), "");
  std::string bodies, close;
  for (unsigned i = 0; i < 257; ++i) {
    bodies +=
        R"({"op": "fused", "operands": [], "results": [], "claim": {"executor": "e", "capturable": true}, "bodies": [{"arguments": [], "ops": [)";
    close += "]}]}";
  }
  EXPECT_THAT(errorsOf(changed(R"({"op": "relu")", bodies + close + R"(, {"op": "relu")")),
              HasSubstr("error: bodies are nested more than 256 deep"));
}

// Very many undefined uses are not compared with very many names.
TEST_F(JSONErrorsTest, ManyUndefinedUses) {
  std::string results, uses;
  for (unsigned i = 0; i < 5000; ++i) {
    std::string number = std::to_string(i);
    results += R"({"name": "some_long_name_)" + number +
               R"(", "type": {"kind": "scalar", "dtype": "i64"}},)";
    uses += "\"some_long_nam_" + number + "\",";
  }
  results.pop_back();
  std::string text =
      changed(R"([0, null, 3])", "[" + uses + "0, null, 3]",
              changed(R"("results": [], "module")", "\"results\": [" + results + "], \"module\""));
  EXPECT_EQ(llvm::StringRef(errorsOf(text)).count('\n'), 100u);
}

// Very long strings and lists are read, or refused in one short message.
TEST_F(JSONErrorsTest, LongStrings) {
  std::string longText(1 << 20, 'x');
  EXPECT_EQ(errorsOf(changed(R"("module": "m")", "\"module\": \"" + longText + "\"")), "");
  EXPECT_LT(errorsOf(changed(R"("name": "mylib.page")", "\"name\": \"" + longText + "\"")).size(),
            1000u);
  EXPECT_LT(errorsOf(changed(R"("name": "page")", "\"name\": \"%" + longText + "\"")).size(),
            1000u);
  EXPECT_LT(errorsOf(changed(R"([0, null, 3])", "[\"" + longText + "\"]")).size(), 1000u);
  EXPECT_LT(errorsOf(changed(R"("saved": 6}], "results")",
                             "\"saved\": " + std::string(1 << 20, '7') + "}], \"results\""))
                .size(),
            1000u);
}

// A file that was cut anywhere is refused.
TEST_F(JSONErrorsTest, TruncatedAtEveryByte) {
  std::string text = dataFile("sample.json");
  size_t end = llvm::StringRef(text).rtrim().size();
  for (size_t size = 0; size < end; ++size)
    ASSERT_NE(errorsOf(llvm::StringRef(text).take_front(size)), "") << size;
  EXPECT_EQ(errorsOf(llvm::StringRef(text).take_front(end)), "");
}

// Any byte may be changed to any other.
TEST_F(JSONErrorsTest, MutatedBytes) {
  std::mt19937 random(1);
  const llvm::StringRef likely = "{}[]:,\"\\0123456789-+.eEnulltruefalse abS\x80\xff";
  for (const std::string &original : {goodText.str(), dataFile("sample.json")}) {
    for (unsigned i = 0; i < 3000; ++i) {
      std::string text = original;
      size_t at = random() % text.size();
      text[at] = i % 2 ? likely[random() % likely.size()] : char(random());
      expectSane(text);
    }
  }
}

// Any piece of the text may be left out, doubled or put elsewhere.
TEST_F(JSONErrorsTest, MutatedPieces) {
  std::mt19937 random(2);
  for (unsigned i = 0; i < 3000; ++i) {
    std::string text = goodText.str();
    size_t at = random() % text.size(), length = random() % 40;
    std::string piece = text.substr(at, length);
    if (i % 3 == 0)
      text.erase(at, length);
    else
      text.insert(i % 3 == 1 ? at : random() % text.size(), piece);
    expectSane(text);
  }
}

} // namespace
