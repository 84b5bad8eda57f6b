//===- JSONCursorTest.cpp - Parsing JSON and walking it -------------------===//

#include "../../ir/JSONCursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace rondo;
using testing::HasSubstr;

namespace {

class JSONCursorTest : public testing::Test {
protected:
  std::optional<JSONDocument> parse(llvm::StringRef text) {
    return JSONDocument::parse(text, "t.json", diagnostics);
  }
  /// All diagnostics so far, which are forgotten.
  std::string messages() {
    std::string text;
    for (const Diagnostic &diagnostic : diagnostics.diagnostics())
      text += diagnostic.str();
    diagnostics = DiagnosticList();
    return text;
  }
  /// What is wrong with `text`.
  std::string errorOf(llvm::StringRef text) {
    EXPECT_FALSE(parse(text).has_value());
    return messages();
  }

  DiagnosticList diagnostics;
};

// Every kind of value is told apart, and read as itself only.
TEST_F(JSONCursorTest, Kinds) {
  auto document = parse(R"([null, true, -3, 2.5, "s", [1, 2], {"a": 1}])");
  ASSERT_TRUE(document);
  JSONCursor root = document->root();
  ASSERT_EQ(root.size(), 7u);
  const JSONKind kinds[] = {JSONKind::Null,   JSONKind::Bool,  JSONKind::Int,   JSONKind::Float,
                            JSONKind::String, JSONKind::Array, JSONKind::Object};
  size_t i = 0;
  for (JSONCursor value : root.elements()) {
    EXPECT_EQ(value.kind(), kinds[i]);
    EXPECT_EQ(value.asBool().has_value(), i == 1);
    EXPECT_EQ(value.asInt().has_value(), i == 2);
    EXPECT_EQ(value.asNumber().has_value(), i == 2 || i == 3);
    EXPECT_EQ(value.asString().has_value(), i == 4);
    EXPECT_EQ(value.size() != 0, i >= 5);
    ++i;
  }
  EXPECT_EQ(i, 7u);
  EXPECT_EQ(root[1].asBool(), true);
  EXPECT_EQ(root[2].asInt(), -3);
  EXPECT_EQ(root[3].asNumber(), 2.5);
  EXPECT_EQ(root[4].asString(), "s");
  EXPECT_EQ(root[6].find("a")->asInt(), 1);
  EXPECT_FALSE(root[6].find("b"));
  EXPECT_FALSE(root[5].find("a"));
  EXPECT_EQ(messages(), "");
}

// Integers are exact to 64 bits; larger ones are integers still, but fit nothing.
TEST_F(JSONCursorTest, Integers) {
  auto document = parse("[9223372036854775807, -9223372036854775808, 9223372036854775808, "
                        "18446744073709551615, 18446744073709551616, -9223372036854775809, 1e3]");
  ASSERT_TRUE(document);
  JSONCursor root = document->root();
  EXPECT_EQ(root[0].expectInt(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(root[1].expectInt(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(root[3].expectUnsigned(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(root[4].asNumber(), 18446744073709551616.0);
  EXPECT_EQ(messages(), "");
  EXPECT_FALSE(root[2].expectInt());
  EXPECT_FALSE(root[4].expectUnsigned());
  EXPECT_FALSE(root[5].expectInt());
  EXPECT_FALSE(root[6].expectInt());
  EXPECT_FALSE(root[0].expectInt(0, 7));
  EXPECT_FALSE(root[1].expectUnsigned(7));
  EXPECT_EQ(messages(),
            "t.json:/2: error: expected an integer from -9223372036854775808 to "
            "9223372036854775807, got 9223372036854775808\n"
            "t.json:/4: error: expected an integer from 0 to 18446744073709551615, got "
            "18446744073709551616\n"
            "t.json:/5: error: expected an integer from -9223372036854775808 to "
            "9223372036854775807, got -9223372036854775809\n"
            "t.json:/6: error: expected an integer, got a floating-point number\n"
            "t.json:/0: error: expected an integer from 0 to 7, got 9223372036854775807\n"
            "t.json:/1: error: expected an integer from 0 to 7, got -9223372036854775808\n");
}

// What was expected and what is there is said at the JSON pointer of the value.
TEST_F(JSONCursorTest, WrongKinds) {
  auto document = parse(R"({"a/b": [{"~": "x"}], "n": null, "l\nf": 1})");
  ASSERT_TRUE(document);
  JSONCursor root = document->root();
  JSONCursor deep = root.find("a/b")->elements().begin().operator*().find("~").value();
  EXPECT_FALSE(deep.expectBool());
  EXPECT_FALSE(deep.expectInt());
  EXPECT_FALSE(deep.expectUnsigned());
  EXPECT_FALSE(deep.expectNumber());
  EXPECT_FALSE(deep.expectArray());
  EXPECT_FALSE(deep.expectObject());
  EXPECT_FALSE(root.find("n")->expectString());
  EXPECT_FALSE(root.find("l\nf")->expectString());
  EXPECT_FALSE(root.expectArray());
  EXPECT_EQ(messages(), "t.json:/a~1b/0/~0: error: expected a boolean, got a string\n"
                        "t.json:/a~1b/0/~0: error: expected an integer, got a string\n"
                        "t.json:/a~1b/0/~0: error: expected an integer, got a string\n"
                        "t.json:/a~1b/0/~0: error: expected a number, got a string\n"
                        "t.json:/a~1b/0/~0: error: expected an array, got a string\n"
                        "t.json:/a~1b/0/~0: error: expected an object, got a string\n"
                        "t.json:/n: error: expected a string, got null\n"
                        "t.json:/l\\u000af: error: expected a string, got an integer\n"
                        "t.json: error: expected an array, got an object\n");
}

// Missing and unknown keys, and unknown words, are errors; the nearest one is named.
TEST_F(JSONCursorTest, KeysAndWords) {
  auto document = parse(R"({"name": "parametr", "opps": [], "zzzzzz": 1})");
  ASSERT_TRUE(document);
  JSONCursor root = document->root();
  EXPECT_TRUE(root.expectObject({"name", "ops"}));
  EXPECT_FALSE(root.require("ops"));
  EXPECT_TRUE(root.require("name"));
  EXPECT_FALSE(root.find("name")->expectWord("a tag", {"buffer", "parameter"}));
  EXPECT_FALSE(root.find("opps")->expectWord("a tag", {"buffer", "parameter"}));
  EXPECT_EQ(root.find("name")->expectWord("a tag", {"buffer", "parametr"}), 1u);
  EXPECT_EQ(messages(),
            "t.json:/opps: error: unknown key 'opps' (did you mean 'ops'?)\n"
            "t.json:/zzzzzz: error: unknown key 'zzzzzz'\n"
            "t.json: error: missing key 'ops'\n"
            "t.json:/name: error: expected a tag, got 'parametr' (did you mean 'parameter'?)\n"
            "t.json:/opps: error: expected a tag, got an array\n");
}

// A key that is named twice in one object is an error; the first counts. In two objects it is none.
TEST_F(JSONCursorTest, DuplicateKeys) {
  auto document = parse(R"({"a": 1, "b": [{"a": 2, "a": 3, "a": 4}], "c": {"a": 1}})");
  ASSERT_TRUE(document);
  EXPECT_EQ((*document->root().find("b"))[0].find("a")->asInt(), 2);
  EXPECT_EQ(messages(), "t.json:/b/0/a: error: key 'a' is given twice\n"
                        "t.json:/b/0/a: error: key 'a' is given twice\n");
}

// Text that is no JSON is answered with line and column and a caret under the fault.
TEST_F(JSONCursorTest, SyntaxErrors) {
  EXPECT_EQ(errorOf("{\n  \"a\": [1, 2\n}\n"),
            "t.json:3:1: error: malformed JSON while parsing array: unexpected '}'; expected ']'\n"
            "}\n^\n");
  EXPECT_EQ(errorOf("[1, fals]"),
            "t.json:1:9: error: malformed JSON while parsing value: invalid literal\n"
            "[1, fals]\n        ^\n");
  EXPECT_EQ(errorOf("{\"a\" \"bcd\"}"),
            "t.json:1:6: error: malformed JSON while parsing object separator: unexpected string "
            "literal; expected ':'\n{\"a\" \"bcd\"}\n     ^\n");
  EXPECT_THAT(errorOf("[1\n false]"), HasSubstr("t.json:2:2: error: "));
  EXPECT_THAT(errorOf("{ null: 1}"), HasSubstr("t.json:1:3: error: "));
  EXPECT_THAT(errorOf("[1   2345]"), HasSubstr("t.json:1:6: error: "));
  EXPECT_EQ(errorOf("[1] [2]"),
            "t.json:1:5: error: malformed JSON while parsing value: unexpected '['; expected end "
            "of input\n[1] [2]\n    ^\n");
  EXPECT_EQ(errorOf("[1,\n2"),
            "t.json:2:2: error: malformed JSON while parsing array: unexpected end of input; "
            "expected ']'\n2\n ^\n");
  EXPECT_THAT(errorOf(""), HasSubstr("t.json:1:1: error: malformed JSON while parsing value: "));
  EXPECT_THAT(errorOf("[1e999]"), HasSubstr("t.json:1:2: error: number is too large for a double"));
  EXPECT_THAT(errorOf("[\"\x80\"]"), HasSubstr("t.json:1:3: error: malformed JSON"));
  EXPECT_THAT(errorOf("[\"\\ud800\"]"), HasSubstr("surrogate"));
  EXPECT_THAT(errorOf("[\"a\nb\"]"), HasSubstr("control character"));
  EXPECT_THAT(errorOf("[NaN]"), HasSubstr("invalid literal"));
  EXPECT_THAT(errorOf("[1, // two\n2]"), HasSubstr("t.json:1:"));
}

// A null byte does not end the text silently; one that is escaped in a string is data.
TEST_F(JSONCursorTest, NullBytes) {
  EXPECT_THAT(errorOf(llvm::StringRef("[1]\0[", 5)),
              HasSubstr("t.json:1:4: error: malformed JSON: null byte"));
  EXPECT_THAT(errorOf(llvm::StringRef("[\"\\\0\"]", 6)), HasSubstr("null byte"));
  auto document = parse("[\"a\\u0000b\"]");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->root()[0].asString(), llvm::StringRef("a\0b", 3));
  EXPECT_EQ(messages(), "");
}

// Text whose lengths do not fit the document is refused before it is looked at.
TEST_F(JSONCursorTest, HugeText) {
  EXPECT_EQ(errorOf(llvm::StringRef("[]", size_t(1) << 32)),
            "t.json: error: text is larger than 4 GiB\n");
}

// A byte order mark is skipped.
TEST_F(JSONCursorTest, ByteOrderMark) {
  auto document = parse("\xef\xbb\xbf[1]");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->root().size(), 1u);
}

// Text may be nested as deep as the limit and no deeper; brackets in strings do not count.
TEST_F(JSONCursorTest, Depth) {
  unsigned limit = JSONDocument::maxDepth;
  EXPECT_TRUE(parse(std::string(limit, '[') + std::string(limit, ']')));
  EXPECT_TRUE(parse("[\"\\\"" + std::string(2 * limit, '[') + "\"]"));
  EXPECT_EQ(messages(), "");
  EXPECT_THAT(errorOf(std::string(1 << 20, '[')),
              HasSubstr("t.json:1:1281: error: nested deeper than 1280 arrays and objects"));
  std::string objects;
  for (unsigned i = 0; i <= limit; ++i)
    objects += "{\"a\":";
  EXPECT_THAT(errorOf(objects), HasSubstr("t.json:1:6401: error: nested deeper than 1280"));
}

// A long line is cut to what is around the fault, and the caret is still under it.
TEST_F(JSONCursorTest, LongLine) {
  std::string text = "[" + std::string(100000, ' ') + "} " + std::string(100000, ' ') + "]";
  std::string message = errorOf(text);
  EXPECT_LT(message.size(), 400u);
  EXPECT_THAT(message, HasSubstr("t.json:1:100002: error: "));
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(message).split(lines, '\n');
  ASSERT_GE(lines.size(), 3u);
  EXPECT_EQ(lines[1].find('}'), lines[2].find('^'));
}

// Strange text in names is quoted so that a message stays one short line.
TEST_F(JSONCursorTest, QuoteForMessage) {
  EXPECT_EQ(quoteForMessage("plain"), "'plain'");
  EXPECT_EQ(quoteForMessage("a\nb\x7f"), "'a\\x0ab\\x7f'");
  EXPECT_EQ(quoteForMessage(std::string(81, 'x')), "'" + std::string(80, 'x') + "...'");
  EXPECT_EQ(quoteForMessage(std::string(80, 'x')), "'" + std::string(80, 'x') + "'");
}

} // namespace
