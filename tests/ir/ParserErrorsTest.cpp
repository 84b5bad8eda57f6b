//===- ParserErrorsTest.cpp - What the parser says of bad text --------------===//

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"

#include "gtest/gtest.h"

using namespace rondo;

namespace {

std::vector<Diagnostic> diagnosticsOf(llvm::Error error) {
  std::vector<Diagnostic> diagnostics;
  llvm::handleAllErrors(std::move(error), [&](const DiagnosticError &collected) {
    diagnostics = collected.diagnostics();
  });
  return diagnostics;
}

/// `line:column: message`, and behind it each note as ` [line:column: message]`.
std::string brief(const Diagnostic &diagnostic) {
  Location place = diagnostic.location;
  place.file.clear();
  std::string text = (place.isKnown() ? place.str() + ": " : "") + diagnostic.message;
  for (const Diagnostic &note : diagnostic.notes)
    text += " [" + brief(note) + "]";
  return text;
}

class ParserErrorsTest : public testing::Test {
protected:
  ParserErrorsTest() { llvm::cantFail(registerCoreOps(registry_)); }

  std::vector<std::string> errorsOf(llvm::StringRef text) {
    llvm::Expected<TracePair> pair = parsePair(text, "t.trace", registry_);
    std::vector<std::string> errors;
    if (!pair)
      for (const Diagnostic &diagnostic : diagnosticsOf(pair.takeError())) {
        EXPECT_EQ(diagnostic.severity, Severity::Error);
        EXPECT_TRUE(diagnostic.location.file == "t.trace" || !diagnostic.location.isKnown());
        errors.push_back(brief(diagnostic));
      }
    return errors;
  }

  /// `bad` gives exactly `expected`, and `good`, which is close to it, nothing.
  void expectErrors(llvm::StringRef bad, std::vector<std::string> expected, llvm::StringRef good) {
    EXPECT_EQ(errorsOf(bad), expected) << bad.str();
    EXPECT_EQ(errorsOf(good), std::vector<std::string>()) << good.str();
  }
  void expectError(llvm::StringRef bad, llvm::StringRef expected, llvm::StringRef good) {
    expectErrors(bad, {expected.str()}, good);
  }

  /// The same within `trace @t(%x: f32[8]) {`, whose first line is line 1; ops are on line 2.
  void expectOpError(llvm::StringRef bad, llvm::StringRef expected, llvm::StringRef good) {
    auto wrap = [](llvm::StringRef ops) {
      return ("trace @t(%x: f32[8]) {\n" + ops + "\nreturn() }").str();
    };
    expectError(wrap(bad), expected, wrap(good));
  }

  void expectTypeError(llvm::StringRef bad, llvm::StringRef expected, llvm::StringRef good) {
    llvm::Expected<Type> type = parseType(bad, registry_);
    ASSERT_FALSE(bool(type)) << bad.str();
    std::vector<Diagnostic> diagnostics = diagnosticsOf(type.takeError());
    ASSERT_EQ(diagnostics.size(), 1u);
    EXPECT_EQ(brief(diagnostics[0]), expected);
    EXPECT_TRUE(bool(parseType(good, registry_))) << good.str();
  }

  OpRegistry registry_;
};

//===----------------------------------------------------------------------===//
// Form of a message
//===----------------------------------------------------------------------===//

// A message has file, line and column, the line with a caret, and notes of the same form.
TEST_F(ParserErrorsTest, MessageForm) {
  auto pair = parsePair("trace @t(%x: f32[8]) {\n\t%x: f32[8] = relu(%x)\r\n  return(%x)\n}\n",
                        "dir/t.trace", registry_);
  ASSERT_FALSE(bool(pair));
  EXPECT_EQ(llvm::toString(pair.takeError()), "dir/t.trace:2:2: error: redefinition of value '%x'\n"
                                              "\t%x: f32[8] = relu(%x)\n"
                                              "\t^\n"
                                              "dir/t.trace:1:10: note: previous definition here\n"
                                              "trace @t(%x: f32[8]) {\n"
                                              "         ^");
}

// Columns count bytes, the caret stands under the character, and a long line is cut around it.
TEST_F(ParserErrorsTest, CaretUnderUTF8AndInLongLines) {
  auto pair = parsePair("trace @\"\xC3\xA9\xC3\xA9\"(?) { return() }", "t", registry_);
  ASSERT_FALSE(bool(pair));
  EXPECT_EQ(llvm::toString(pair.takeError()), "t:1:15: error: unexpected character '?'\n"
                                              "trace @\"\xC3\xA9\xC3\xA9\"(?) { return() }\n"
                                              "            ^");
  std::string blanks(1000, ' ');
  pair = parsePair("trace @t(" + blanks + "?" + blanks + ") { return() }", "t", registry_);
  ASSERT_FALSE(bool(pair));
  EXPECT_EQ(llvm::toString(pair.takeError()),
            "t:1:1010: error: unexpected character '?'\n..." + std::string(80, ' ') + "?" +
                std::string(79, ' ') + "...\n   " + std::string(80, ' ') + "^");
}

// What the verifier finds in a text has a caret, too.
TEST_F(ParserErrorsTest, VerifierFaultsHaveCarets) {
  auto pair = parsePair("trace @t(%x: f32[8]) {\n  %y: f32[9] = relu(%x)\n  return(%y)\n}\n", "t",
                        registry_);
  ASSERT_FALSE(bool(pair));
  std::vector<Diagnostic> diagnostics = diagnosticsOf(pair.takeError());
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].location, (Location{"t", 2, 3, ""}));
  EXPECT_EQ(diagnostics[0].snippet, "  %y: f32[9] = relu(%x)\n  ^");
}

// A location that the text gives to an op is no place in the text.
TEST_F(ParserErrorsTest, VerifierFaultsElsewhereHaveNone) {
  auto pair = parsePair("trace @t(%x: f32[8]) {\n  %y: f32[9] = relu(%x) loc(\"m.py\":1:1)\n  "
                        "return(%y)\n}\n",
                        "t", registry_);
  ASSERT_FALSE(bool(pair));
  std::vector<Diagnostic> diagnostics = diagnosticsOf(pair.takeError());
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].location, (Location{"m.py", 1, 1, ""}));
  EXPECT_EQ(diagnostics[0].snippet, "");
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

// Bytes outside of strings and comments that are no token; a run of them is one error.
TEST_F(ParserErrorsTest, UnexpectedBytes) {
  expectOpError("foo(~)", "2:5: unexpected character '~'", "foo()");
  expectOpError("foo(\xC3\xA9\xC3\xA9)", "2:5: unexpected character '\xC3\xA9'", "foo()");
  expectOpError("foo(\xFF\xFE)", "2:5: invalid UTF-8: byte 0xFF", "foo() module \"\xFF\xFE\"");
  expectOpError("foo(\x01)", "2:5: unexpected control byte 0x01", "foo() // \x01");
  expectOpError("foo(/)", "2:5: unexpected character '/'", "foo( //)\n)");
  expectError(llvm::StringRef("trace @t() { return() }\0", 24),
              "1:24: unexpected control byte 0x00", "trace @t() { return() }\n");
}

// A string ends on its line.
TEST_F(ParserErrorsTest, UnterminatedString) {
  expectOpError("foo() module \"abc\nfoo()", "2:14: string is not closed on its line",
                "foo() module \"abc\"\nfoo()");
  expectOpError("foo() module \"abc\\\"\nfoo()", "2:14: string is not closed on its line",
                "foo() module \"abc\\\\\"\nfoo()");
  expectError("trace @\"t", "1:8: string is not closed on its line", "trace @\"t\"() { return() }");
  expectError("trace @\"t\\", "1:8: string is not closed on its line",
              "trace @\"t\\\\\"() { return() }");
}

// Only the escapes that the printer writes are known; the place is that of the backslash.
TEST_F(ParserErrorsTest, BadEscapes) {
  llvm::StringRef known = " in a string; there are \\\" \\\\ \\n \\t \\xHH";
  expectOpError("foo() module \"ab\\q\"", ("2:17: unknown escape '\\q'" + known).str(),
                "foo() module \"ab\\n\"");
  expectOpError("foo() module \"\\x1\"", ("2:15: unknown escape '\\x'" + known).str(),
                "foo() module \"\\x1F\"");
  expectOpError("foo() module \"\\\xC3\xA9\"", ("2:15: unknown escape '\\\xC3\xA9'" + known).str(),
                "foo() module \"\xC3\xA9\"");
}

// Numbers are decimal, with digits on both sides of a point.
TEST_F(ParserErrorsTest, MalformedNumbers) {
  expectOpError("foo() {a = 1.}", "2:12: malformed number '1.'", "foo() {a = 1.0}");
  expectOpError("foo() {a = 0x1F}", "2:12: malformed number '0x1F'", "foo() {a = 31}");
  expectOpError("foo() {a = 1e}", "2:12: malformed number '1e'", "foo() {a = 1e1}");
  expectOpError("foo() {a = 1.2.3}", "2:12: malformed number '1.2.3'", "foo() {a = 1.23}");
  expectOpError("foo() {a = 8S}", "2:12: malformed number '8S'", "foo() {a = 8*S}");
}

// A value's name has a letter or '_' first, or digits only.
TEST_F(ParserErrorsTest, MalformedValueNames) {
  llvm::StringRef rule = "; '%' is followed by digits, or by a letter or '_' and letters, digits, "
                         "'_', '.', '$'";
  expectOpError("foo(%1a)", ("2:5: malformed value name '%1a'" + rule).str(), "foo(%x)");
  expectOpError("foo(%)", ("2:5: malformed value name '%'" + rule).str(), "foo(%x)");
  expectOpError("foo(%.x)", ("2:5: malformed value name '%.x'" + rule).str(), "foo(%x)");
}

//===----------------------------------------------------------------------===//
// Numbers out of range
//===----------------------------------------------------------------------===//

// Integers and dimensions fit in an int64, floats in a double.
TEST_F(ParserErrorsTest, IntegerOverflow) {
  expectOpError("foo() {a = 9223372036854775808}",
                "2:12: integer '9223372036854775808' does not fit in 64 bits",
                "foo() {a = 9223372036854775807}");
  expectOpError("foo() {a = -9223372036854775809}",
                "2:13: integer '9223372036854775809' does not fit in 64 bits",
                "foo() {a = -9223372036854775808}");
  expectOpError("foo() {a = 99999999999999999999999}",
                "2:12: integer '99999999999999999999999' does not fit in 64 bits",
                "foo() {a = 99999999999999999999999.0}");
  expectOpError("foo() {a = 4294967296*4294967296}", "2:23: dimension is out of range",
                "foo() {a = 4294967296*4294967}");
  expectOpError("foo() {a = 9223372036854775807 + 1}", "2:12: dimension is out of range",
                "foo() {a = 9223372036854775806 + 1}");
  expectOpError("foo() {a = 1e400}", "2:12: number '1e400' is out of range", "foo() {a = 1e300}");
  expectTypeError("f32[9223372036854775808]",
                  "1:5: integer '9223372036854775808' does not fit in 64 bits",
                  "f32[9223372036854775807]");
  expectTypeError("f32[4294967296, 4294967296, 4294967296]",
                  "1:5: strides of this shape are out of range",
                  "f32[4294967296, 4294967296, 4294967296; 1, 1, 1]");
}

// Numbers of other things have their own limits.
TEST_F(ParserErrorsTest, OtherLimits) {
  expectTypeError("f32[8]@cuda:65536", "1:13: a device index is at most 65535",
                  "f32[8]@cuda:65535");
  expectOpError("foo() loc(\"f\":4294967296:1)", "2:15: a line number is at most 4294967295",
                "foo() loc(\"f\":4294967295:1)");
  expectOpError("foo() loc(\"f\":1:4294967296)", "2:17: a column number is at most 4294967295",
                "foo() loc(\"f\":1:4294967295)");
  expectOpError("foo() claim(\"e\", workspace 18446744073709551616)",
                "2:28: a number of bytes is at most 18446744073709551615",
                "foo() claim(\"e\", workspace 18446744073709551615)");
  llvm::StringRef head = "pair @p { forward @f(%x: f32[8]) { return(%x saved #";
  llvm::StringRef middle = ") } backward @b(%x: f32[8] saved #", tail = ") { return(%x) } }";
  std::string largest = "1073741823", tooLarge = "1073741824";
  expectErrors((head + tooLarge + middle + tooLarge + tail).str(),
               {"1:53: a saved id is at most 1073741823", "1:97: a saved id is at most 1073741823"},
               (head + largest + middle + largest + tail).str());
}

// Lists and bodies are nested at most 256 deep.
TEST_F(ParserErrorsTest, Nesting) {
  auto list = [](size_t depth) {
    return "foo() {a = " + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  expectOpError(list(257), "2:268: lists are nested more than 256 deep", list(256));
  auto bodies = [](size_t depth) {
    std::string text;
    for (size_t i = 0; i < depth; ++i)
      text += "fused() {";
    for (size_t i = 0; i < depth; ++i)
      text += " return() }";
    return text;
  };
  expectOpError(bodies(257), "2:2313: bodies are nested more than 256 deep", bodies(256));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

// A value must be defined, before its use, in the same body.
TEST_F(ParserErrorsTest, UndefinedValues) {
  expectOpError("foo(%y)", "2:5: use of undefined value '%y' (did you mean '%x'?)", "foo(%x)");
  expectOpError("foo(%someone)", "2:5: use of undefined value '%someone'", "foo(%x)");
  expectOpError("foo(%0)", "2:5: use of undefined value '%0'", "%0: i64 = foo() foo(%0)");
  expectOpError("foo(%late)\n%late: i64 = bar()",
                "2:5: value '%late' is used before its definition [3:1: defined here]",
                "%late: i64 = bar()\nfoo(%late)");
  expectOpError("%y: f32[8] = foo(%y)",
                "2:18: value '%y' is used before its definition [2:1: defined here]",
                "%y: f32[8] = foo(%x)");
  expectOpError("fused() {\nfoo(%x) return() }",
                "3:5: value '%x' is not visible here: a body sees its arguments only "
                "[1:10: defined outside of the body here]",
                "fused(%x) {\n^(%x: f32[8]): foo(%x) return() }");
  expectOpError("fused() { %y: i64 = foo() return() }\nfoo(%y)",
                "3:5: use of undefined value '%y' (did you mean '%x'?)",
                "fused() { %y: i64 = foo() return() }\nfoo(%x)");
}

// A name is given once in a body, be it a name or a number; other bodies may use it again.
TEST_F(ParserErrorsTest, Redefinitions) {
  expectOpError("%x: i64 = foo()",
                "2:1: redefinition of value '%x' [1:10: previous definition here]",
                "%y: i64 = foo()");
  expectOpError("%y: i64, %y: i64 = foo()",
                "2:10: redefinition of value '%y' [2:1: previous definition here]",
                "%y: i64, %z: i64 = foo()");
  expectOpError("%0: i64 = foo()\n%0: i64 = foo()",
                "3:1: redefinition of value '%0' [2:1: previous definition here]",
                "%0: i64 = foo()\n%1: i64 = foo()");
  expectError("trace @t(%a: i64, %a: i64) { return() }",
              "1:19: redefinition of value '%a' [1:10: previous definition here]",
              "trace @t(%a: i64, %b: i64) { return() }");
  expectOpError("fused(%x, %x) { ^(%a: f32[8], %a: f32[8]): return() }",
                "2:31: redefinition of value '%a' [2:19: previous definition here]",
                "fused(%x, %x) { ^(%a: f32[8], %x: f32[8]): return() }");
}

// Tags and other words behind a type are known, and given once.
TEST_F(ParserErrorsTest, Tags) {
  expectError("trace @t(%x: f32[8] paramter) { return() }",
              "1:21: unknown tag 'paramter' (did you mean 'parameter'?)",
              "trace @t(%x: f32[8] parameter) { return() }");
  expectError("trace @t(%x: f32[8] safed #0) { return() }",
              "1:21: unknown tag 'safed' (did you mean 'saved'?)",
              "trace @t(%x: f32[8] static) { return() }");
  expectError("trace @t(%x: f32[8] static static) { return() }",
              "1:28: tag 'static' is given twice",
              "trace @t(%x: f32[8] static buffer) { return() }");
  expectError("trace @t(%x: f32[8] path \"a\" path \"b\") { return() }",
              "1:30: 'path' is given twice", "trace @t(%x: f32[8] path \"a\") { return() }");
  expectError("trace @t(%x: f32[8] path b) { return() }",
              "1:26: expected the path of '%x' in double quotes, found 'b'",
              "trace @t(%x: f32[8] path \"b\") { return() }");
  expectError("trace @t(%x f32[8]) { return() }",
              "1:13: expected ':' and the type of '%x', found 'f32'",
              "trace @t(%x: f32[8]) { return() }");
  expectError("trace @t(x: f32[8]) { return() }", "1:10: expected a value, found 'x'",
              "trace @t(%x: f32[8]) { return() }");
  expectError("trace @t(%x: f32[8] %y: f32[8]) { return() }",
              "1:21: expected ',' or ')' after an argument, found '%y'",
              "trace @t(%x: f32[8], %y: f32[8]) { return() }");
}

// Saved ids stand on arguments of a trace and on operands of its `return`, once on each side.
TEST_F(ParserErrorsTest, SavedIds) {
  llvm::StringRef rule = "only arguments of a trace and operands of its 'return' can be saved";
  auto pairOf = [](llvm::StringRef returned, llvm::StringRef arguments) {
    return ("pair @p {\nforward @f(%x: f32[8]) { return(" + returned + ") }\nbackward @b(" +
            arguments + ") { return() } }")
        .str();
  };
  std::string good = pairOf("%x saved #0, %x saved #1", "%a: f32[8] saved #0, %b: f32[8] saved #1");
  expectErrors(pairOf("%x saved #0, %x saved #0", "%a: f32[8] saved #0"),
               {"2:56: saved id #0 is used twice on one side [2:43: previous use here]"}, good);
  expectErrors(pairOf("%x saved #0", "%a: f32[8] saved #0, %b: f32[8] saved #0"),
               {"3:52: saved id #0 is used twice on one side [3:31: previous use here]"}, good);
  expectErrors(pairOf("%x saved 0, %x saved #1", "%a: f32[8] saved #0, %b: f32[8] saved #1"),
               {"2:42: expected '#' and a number after 'saved', found '0'"}, good);
  expectOpError("%y: f32[8] saved #0 = relu(%x)", ("2:12: " + rule).str(),
                "%y: f32[8] static = relu(%x)");
  expectOpError("foo(%x saved #0)", ("2:8: " + rule).str(), "foo(%x)");
  expectOpError("fused(%x) { ^(%x: f32[8] saved #0): return() }", ("2:26: " + rule).str(),
                "fused(%x) { ^(%x: f32[8]): return() }");
  expectOpError("%y: f32[8] = fused(%x) { ^(%x: f32[8]): return(%x saved #0) }",
                ("2:51: " + rule).str(), "%y: f32[8] = fused(%x) { ^(%x: f32[8]): return(%x) }");
  expectError("trace @t(%x: f32[8] saved #0 saved #1) { return() }", "1:30: 'saved' is given twice",
              "trace @t(%x: f32[8]) { return() }");
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

// Unknown types and dtypes are named, with the nearest known one.
TEST_F(ParserErrorsTest, UnknownTypes) {
  expectTypeError("f33[8]", "1:1: unknown type 'f33' (did you mean 'f32'?)", "f32[8]");
  expectTypeError("rnq", "1:1: unknown type 'rnq' (did you mean 'rng'?)", "rng");
  expectTypeError("tensor", "1:1: unknown type 'tensor'", "i64");
  expectTypeError("f32", "1:4: expected '[' and the shape after dtype 'f32', found end of file",
                  "f64");
  expectTypeError("", "1:1: expected a type, found end of file", "f64");
  expectTypeError("f32[8]@gpu:0", "1:8: unknown device 'gpu'", "f32[8]@cuda:0");
  expectTypeError("f32[8]@coda:0", "1:8: unknown device 'coda' (did you mean 'cuda'?)",
                  "f32[8]@cuda:0");
  expectTypeError("f32[8]@cuda", "1:12: expected ':' and an index after 'cuda', found end of file",
                  "f32[8]@host");
  expectTypeError("f32[8] x", "1:8: expected the end of the text after the type, found 'x'",
                  "f32[8] ");
}

// Dimensions are not negative, are numbers or symbols, and have a stride each if there are any.
TEST_F(ParserErrorsTest, WrongDimensions) {
  expectTypeError("f32[8, -1]", "1:8: dimension -1 is negative", "f32[8, 1]");
  expectTypeError("f32[8 9]", "1:7: expected ']', ',' or ';' after a dimension, found '9'",
                  "f32[8, 9]");
  expectTypeError("f32[8,]", "1:7: expected an integer or a symbol, found ']'", "f32[8]");
  expectTypeError("f32[8.0]", "1:5: expected an integer or a symbol, found '8.0'", "f32[8]");
  expectTypeError("f32[none]", "1:5: 'none' is no name of a symbolic dimension", "f32[N]");
  expectTypeError("f32[i8]", "1:5: 'i8' is no name of a symbolic dimension", "f32[i9]");
  expectTypeError("f32[8, 32; 1]", "1:10: shape has rank 2, but the number of strides is 1",
                  "f32[8, 32; 1, 8]");
  expectTypeError("f32[8; 1, 2]", "1:6: shape has rank 1, but the number of strides is 2",
                  "f32[8; 1]");
  expectTypeError("f32[8", "1:6: expected ']', ',' or ';' after a dimension, found end of file",
                  "f32[8]");
}

// Opaque types are those of the registry, with parameters that it accepts.
TEST_F(ParserErrorsTest, OpaqueTypes) {
  OpaqueTypeSpec page;
  page.name = "mylib.page";
  page.verify = [](llvm::StringRef parameters) {
    return parameters == "64" ? llvm::Error::success() : makeError("a page has 64 bytes");
  };
  llvm::cantFail(registry_.registerType(std::move(page)));
  expectTypeError("!mylib.pages<\"64\">",
                  "1:2: unknown type '!mylib.pages' (did you mean 'mylib.page'?)",
                  "!mylib.page<\"64\">");
  expectTypeError("!mylib.page<\"63\">", "1:13: type '!mylib.page': error: a page has 64 bytes",
                  "!mylib.page<\"64\">");
  expectTypeError("!mylib.page", "1:2: type '!mylib.page': error: a page has 64 bytes",
                  "!mylib.page<\"64\">");
  expectTypeError("!mylib.page<64>",
                  "1:13: expected the parameters of a type in double quotes, found '64'",
                  "!mylib.page<\"64\">");
  expectTypeError("!", "1:2: expected the name of a type after '!', found end of file",
                  "!mylib.page<\"64\">");
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

// Attributes have a name, '=' and a value, once each.
TEST_F(ParserErrorsTest, Attributes) {
  expectOpError("foo() {a = 1, b = 2, a = 3}",
                "2:22: duplicate attribute 'a' [2:8: previous one here]",
                "foo() {a = 1, b = 2, c = 3}");
  expectOpError("foo() {\"\\x61\" = 1, a = 3}",
                "2:20: duplicate attribute 'a' [2:8: previous one here]",
                "foo() {\"\\x62\" = 1, a = 3}");
  expectOpError("foo() {a 1}", "2:10: expected '=' after the name of an attribute, found '1'",
                "foo() {a = 1}");
  expectOpError("foo() {a = 1 b = 2}", "2:14: expected ',' or '}' after an attribute, found 'b'",
                "foo() {a = 1, b = 2}");
  expectOpError("foo() {a = 1,}", "2:14: expected the name of an attribute, found '}'",
                "foo() {a = 1}");
  expectOpError("foo() {a = }", "2:12: expected an attribute value, found '}'", "foo() {a = 1}");
  expectOpError("foo() {a = [1 2]}",
                "2:15: expected ',' or ']' after an element of a list, found '2'",
                "foo() {a = [1, 2]}");
  expectOpError("foo() {a = [1,]}", "2:15: expected an attribute value, found ']'",
                "foo() {a = [1]}");
  expectOpError("foo() {a = a.b}",
                "2:12: unknown word 'a.b' as an attribute value; strings stand in double quotes",
                "foo() {a = \"a.b\"}");
  expectOpError("foo() {a = cude:0}", "2:12: unknown device 'cude' (did you mean 'cuda'?)",
                "foo() {a = cuda:0}");
  expectOpError("foo() {a = 8*}", "2:14: expected an integer or a symbol, found '}'",
                "foo() {a = 8*S}");
  expectOpError("foo() module \"m\" {a = 1}", "2:19: attributes come directly after the operands",
                "foo() {a = 1} module \"m\"");
}

// Operands are values or `none`, separated by commas, in brackets.
TEST_F(ParserErrorsTest, Operands) {
  expectOpError("foo(1)", "2:5: expected a value or 'none', found '1'", "foo(none)");
  expectOpError("foo(%x %x)", "2:8: expected ',' or ')' after an operand, found '%x'",
                "foo(%x, %x)");
  expectOpError("foo(%x,)", "2:8: expected a value or 'none', found ')'", "foo(%x)");
  expectOpError("foo %x", "2:5: expected '(' and the operands of 'foo', found '%x'", "foo(%x)");
}

// Results have types and are followed by '=' and the name of an op.
TEST_F(ParserErrorsTest, Results) {
  expectOpError("%y = foo()", "2:4: expected ':' and the type of '%y', found '='",
                "%y: i64 = foo()");
  expectOpError("%y: i64 foo()", "2:9: unknown tag 'foo'", "%y: i64 = foo()");
  expectOpError("%y: i64, = foo()", "2:10: expected a value, found '='", "%y: i64 = foo()");
  expectOpError("%y: i64 (", "2:9: expected '=' or ',' after the type of a result, found '('",
                "%y: i64 = foo()");
  expectOpError("%y: i64 = 1", "2:11: expected the name of an op, found '1'", "%y: i64 = foo()");
  expectOpError("= foo()", "2:1: expected an op, found '='", "foo()");
  expectOpError("\"\"()", "2:1: the name of an op is empty", "\"a\"()");
}

// An op that the registry does not know is opaque, not an error.
TEST_F(ParserErrorsTest, UnknownOpsAreFine) {
  EXPECT_EQ(errorsOf("trace @t(%x: f32[8]) { %y: f32[8] = rleu(%x) return(%y) }"),
            std::vector<std::string>());
}

// Annotations are known words, once each, with what belongs to them.
TEST_F(ParserErrorsTest, Annotations) {
  expectOpError("foo() modul \"m\"", "2:7: unknown annotation 'modul' (did you mean 'module'?)",
                "foo() module \"m\"");
  expectOpError("foo() clam(\"e\")", "2:7: unknown annotation 'clam' (did you mean 'claim'?)",
                "foo() claim(\"e\")");
  expectOpError("foo() module \"m\" module \"n\"", "2:18: 'module' is given twice",
                "foo() module \"m\"");
  expectOpError("foo() module m", "2:14: expected the path of a module in double quotes, found 'm'",
                "foo() module \"m\"");
  expectOpError("foo() loc(f:1:2)", "2:11: expected a file name in double quotes, found 'f'",
                "foo() loc(\"f\":1:2)");
  expectOpError("foo() loc(\"f\":x)", "2:15: expected a line number, found 'x'",
                "foo() loc(\"f\":1)");
  expectOpError("foo() loc(\"f\" 1)", "2:15: expected ')' after a location, found '1'",
                "foo() loc(\"f\")");
  expectOpError("foo() claim(e)",
                "2:13: expected the name of an executor in double quotes, "
                "found 'e'",
                "foo() claim(\"e\")");
  expectOpError("foo() claim(\"e\", uncapturble)",
                "2:18: unknown word 'uncapturble' in a claim (did you mean 'uncapturable'?)",
                "foo() claim(\"e\", uncapturable)");
  expectOpError("foo() claim(\"e\", why \"a\", why \"b\")", "2:27: 'why' is given twice",
                "foo() claim(\"e\", why \"a\", uncapturable)");
  expectOpError("foo() claim(\"e\", workspace -1)", "2:28: expected a number of bytes, found '-'",
                "foo() claim(\"e\", workspace 1)");
  expectOpError("foo() claim(\"e\", \"w\")",
                "2:18: expected 'uncapturable', 'why' or 'workspace', found string \"w\"",
                "foo() claim(\"e\", why \"w\")");
  expectOpError("foo() fusion(maybe, policy)", "2:14: expected 'yes' or 'no', found 'maybe'",
                "foo() fusion(yes, policy)");
  expectOpError("foo() fusion(no, polcy)", "2:18: unknown decider 'polcy' (did you mean 'policy'?)",
                "foo() fusion(no, policy)");
  expectOpError("foo() fusion(no)", "2:16: expected ',' and who decided, found ')'",
                "foo() fusion(no, executor)");
  expectOpError("foo() fusion(no, policy, why)",
                "2:26: expected a reason in double quotes, found "
                "'why'",
                "foo() fusion(no, policy, \"why\")");
}

// A domain is declared once, before it is used.
TEST_F(ParserErrorsTest, Domains) {
  auto regionOf = [](llvm::StringRef domains, llvm::StringRef use) {
    return ("trace @t(%x: f32[8]) regions {\n" + domains +
            "\n%y: f32[8] = cuda_graph(%x) {region = 0} " + use +
            " {\n^(%x: f32[8]): %y: f32[8] = relu(%x) return(%y) }\nreturn(%y) }")
        .str();
  };
  std::string good = regionOf("domain #0 \"a\"", "domain #0");
  expectError(regionOf("domain #0 \"a\"", "domain #1"), "3:50: unknown domain #1", good);
  expectError(regionOf("domain #0 \"a\" domain #0 \"b\"", "domain #0"),
              "2:23: redefinition of domain #0 [2:9: previous definition here]", good);
  expectError(regionOf("domain #0 \"a\"", "domain 0"),
              "3:49: expected '#' and a number after 'domain', found '0'", good);
  expectError(regionOf("domain #0", "domain #0"),
              "3:1: expected the name of a domain in double quotes, found '%y'", good);
}

//===----------------------------------------------------------------------===//
// Traces and pairs
//===----------------------------------------------------------------------===//

// A text is one pair or one trace and nothing behind it.
TEST_F(ParserErrorsTest, Top) {
  expectError("", "1:1: expected 'pair' or 'trace', found end of file", "trace @t() { return() }");
  expectError("// nothing\n", "2:1: expected 'pair' or 'trace', found end of file",
              "// something\ntrace @t() { return() }");
  expectError("trase @t() { return() }",
              "1:1: expected 'pair' or 'trace', found 'trase' (did you mean 'trace'?)",
              "trace @t() { return() }");
  expectError("trace @t() { return() } trace @u() { return() }",
              "1:25: expected the end of the text after the trace, found 'trace'",
              "trace @t() { return() } // trace @u() { return() }");
  expectError("pair @p { forward @f() { return() } } }",
              "1:39: expected the end of the text after the pair, found '}'",
              "pair @p { forward @f() { return() } }");
}

// parseTrace reads traces only.
TEST_F(ParserErrorsTest, TraceOnly) {
  auto trace = parseTrace("pair @p { forward @f() { return() } }", "t", registry_);
  ASSERT_FALSE(bool(trace));
  EXPECT_EQ(brief(diagnosticsOf(trace.takeError())[0]), "1:1: expected 'trace', found 'pair'");
  EXPECT_TRUE(bool(parseTrace("trace @p() { return() }", "t", registry_)));
}

// A pair has a forward, then perhaps a backward.
TEST_F(ParserErrorsTest, Pairs) {
  llvm::StringRef good = "pair @p {\nforward @f() { return() }\nbackward @b() { return() }\n}";
  expectError("pair @p {\n}", "2:1: the pair has no 'forward'", good);
  expectErrors("pair @p {\nbackward @b() { return() }\n}",
               {"2:1: 'backward' comes after 'forward'", "3:1: the pair has no 'forward'"}, good);
  expectError("pair @p {\nforward @f() { return() }\nforward @g() { return() }\n}",
              "3:1: the pair has two traces 'forward'", good);
  expectError("pair @p {\nforwad @f() { return() }\nforward @g() { return() }\n}",
              "2:1: expected 'domain', 'forward', 'backward' or '}', found 'forwad' (did you mean "
              "'forward'?)",
              good);
  expectError("pair @p {\nforward @f() { return() }\n",
              "3:1: expected '}' at the end of the pair, found end of file "
              "[1:9: the pair begins here]",
              good);
  expectError("pair p {\nforward @f() { return() }\n}",
              "1:6: expected '@' and the name of the pair, found 'p'", good);
  expectError("pair @p\nforward @f() { return() }\n}",
              "2:1: expected '{' after the name of the pair, found 'forward'", good);
}

// A trace has a name, arguments, known properties and a body in braces.
TEST_F(ParserErrorsTest, Traces) {
  llvm::StringRef good = "trace @t() claimed dels {\nreturn()\n}";
  expectError("trace t() {\nreturn()\n}", "1:7: expected '@' and the name of the trace, found 't'",
              good);
  expectError("trace @1() {\nreturn()\n}",
              "1:8: expected the name of the trace after '@', found "
              "'1'",
              good);
  expectError("trace @t {\nreturn()\n}", "1:10: expected '(' before the arguments, found '{'",
              good);
  expectError("trace @t() claimd {\nreturn()\n}",
              "1:12: unknown property 'claimd' (did you mean 'claimed'?)", good);
  expectError("trace @t() claimed claimed {\nreturn()\n}",
              "1:20: property 'claimed' is given twice", good);
  expectError("trace @t() = {\nreturn()\n}",
              "1:12: expected '{' or a property of the trace, found '='", good);
  expectError("trace @t() {\nreturn()\n",
              "3:1: expected an op or '}', found end of file [1:12: '{' is here]", good);
}

// A body's arguments are followed by ':'.
TEST_F(ParserErrorsTest, Bodies) {
  expectOpError("fused(%x) {\n^(%x: f32[8])\nreturn() }",
                "4:1: expected ':' after the arguments of a body, found 'return'",
                "fused(%x) {\n^(%x: f32[8]):\nreturn() }");
  expectOpError("fused(%x) {\n^ %x: f32[8]:\nreturn() }",
                "3:3: expected '(' before the arguments, found '%x'",
                "fused(%x) {\n^(%x: f32[8]):\nreturn() }");
}

//===----------------------------------------------------------------------===//
// Several errors
//===----------------------------------------------------------------------===//

// One run reports the faults of several ops, in the order of the text, and no faults that follow
// from them.
TEST_F(ParserErrorsTest, SeveralErrors) {
  expectErrors(R"(trace @t(%x: f32[8]) {
  foo(%nowhere)
  %a: f33[8] = relu(%x)
  %b: f32[8] = relu(%a) {dims = }
  %c: f32[8], %d: f32[8] = add(%b, %c,
    %x
  %e: f32[8] = add(%b, %d) module 7
  fused(%e) {
  ^(%x: f32[8]):
    %f: f32[8] = relu(%x, )
    return(%f)
  }
  return(%e)
}
)",
               {"3:7: unknown type 'f33' (did you mean 'f32'?)",
                "4:33: expected an attribute value, found '}'",
                "7:3: expected ',' or ')' after an operand, found '%e'",
                "7:35: expected the path of a module in double quotes, found '7'",
                "10:27: expected a value or 'none', found ')'"},
               "trace @t() { return() }");
}

// Where all names are known, undefined values are reported along with the other faults.
TEST_F(ParserErrorsTest, UndefinedAmongOthers) {
  expectErrors("trace @t(%x: f32[8]) {\n  foo(%nowhere)\n  foo(%x) {a = }\n  foo(%gone)\n"
               "  return()\n}\n",
               {"2:7: use of undefined value '%nowhere'",
                "3:16: expected an attribute value, found '}'",
                "4:7: use of undefined value '%gone'"},
               "trace @t() { return() }");
}

// Braces left open or closed too often do not hide the rest of a pair.
TEST_F(ParserErrorsTest, ErrorsInBothTraces) {
  expectErrors("pair @p {\n  forward @f(%x: f3[8]) {\n    return(%x)\n  }\n"
               "  backward @b(%g: f32[8]) {\n    return(%g %g)\n  }\n}\n",
               {"2:18: unknown type 'f3' (did you mean 'f32'?)",
                "6:15: expected ',' or ')' after an operand, found '%g'"},
               "trace @t() { return() }");
}

// Reading ends after a hundred errors.
TEST_F(ParserErrorsTest, TooManyErrors) {
  std::string text = "trace @t() {\n";
  for (int i = 0; i < 1000; ++i)
    text += "foo(1)\n";
  std::vector<std::string> errors = errorsOf(text);
  ASSERT_EQ(errors.size(), 101u);
  EXPECT_EQ(errors[99], "101:5: expected a value or 'none', found '1'");
  EXPECT_EQ(errors[100], "too many errors: the rest of the text was not read");
}

} // namespace
