//===- DiagnosticTest.cpp - Located messages about bad input --------------===//

#include "rondo/ir/Diagnostic.h"

#include <gtest/gtest.h>

using namespace rondo;

namespace {

std::string textOf(const DiagnosticList &list) {
  std::string text;
  llvm::raw_string_ostream os(text);
  list.print(os);
  return os.str();
}

/// The diagnostics that `error` carries; consumes it.
std::vector<Diagnostic> carried(llvm::Error error) {
  std::vector<Diagnostic> diagnostics;
  llvm::handleAllErrors(std::move(error),
                        [&](const DiagnosticError &e) { diagnostics = e.diagnostics(); });
  return diagnostics;
}

//===--- Locations --------------------------------------------------------===//

/// A location prints the parts that are known.
TEST(Location, Text) {
  EXPECT_EQ((Location{"gpt.trace", 14, 9, ""}.str()), "gpt.trace:14:9");
  EXPECT_EQ((Location{"gpt.trace", 14, 0, ""}.str()), "gpt.trace:14");
  EXPECT_EQ((Location{"gpt.trace", 0, 0, ""}.str()), "gpt.trace");
  EXPECT_EQ((Location{"step.json", 0, 0, "/forward/ops/3"}.str()), "step.json:/forward/ops/3");
  EXPECT_EQ((Location{"", 0, 0, "%0 = relu(%x)"}.str()), "%0 = relu(%x)");
  EXPECT_EQ((Location{"", 14, 9, ""}.str()), "14:9");
  EXPECT_EQ((Location{"gpt.trace", 0, 9, ""}.str()), "gpt.trace");
}

/// Any part makes a location known; a default one is not.
TEST(Location, IsKnown) {
  EXPECT_FALSE(Location().isKnown());
  EXPECT_EQ(Location().str(), "");
  EXPECT_TRUE((Location{"a", 0, 0, ""}.isKnown()));
  EXPECT_TRUE((Location{"", 3, 0, ""}.isKnown()));
  EXPECT_TRUE((Location{"", 0, 0, "/ops/3"}.isKnown()));
}

//===--- One diagnostic ---------------------------------------------------===//

/// Location, severity and message stand on one line, then come snippet and notes.
TEST(Diagnostic, Print) {
  Diagnostic diagnostic{
      Severity::Error, {"a.trace", 2, 7, ""}, "unknown op 'reluu'", "  text\n  ^", {}};
  diagnostic.note({"a.trace", 1, 1, ""}, "trace begins here").note({}, "no place");
  EXPECT_EQ(diagnostic.str(), "a.trace:2:7: error: unknown op 'reluu'\n"
                              "  text\n"
                              "  ^\n"
                              "a.trace:1:1: note: trace begins here\n"
                              "note: no place\n");
}

/// A snippet that ends with a newline gets no second one.
TEST(Diagnostic, SnippetWithNewline) {
  Diagnostic diagnostic{Severity::Warning, {}, "odd", "  text\n", {}};
  EXPECT_EQ(diagnostic.str(), "warning: odd\n  text\n");
}

//===--- Lists ------------------------------------------------------------===//

/// A list keeps diagnostics in order; only errors make it fail.
TEST(DiagnosticList, CollectsInOrder) {
  DiagnosticList list;
  list.warning({}, "first");
  EXPECT_FALSE(list.hasErrors());
  list.error({}, "second").note({}, "about it");
  list.error({}, "third");
  EXPECT_TRUE(list.hasErrors());
  EXPECT_EQ(list.numErrors(), 2u);
  EXPECT_FALSE(list.isFull());
  EXPECT_EQ(textOf(list), "warning: first\nerror: second\nnote: about it\nerror: third\n");
}

/// Beyond the limit errors are counted and dropped, and what was dropped is said.
TEST(DiagnosticList, Limit) {
  DiagnosticList list(2);
  list.error({}, "a");
  EXPECT_FALSE(list.isFull());
  list.error({}, "b");
  EXPECT_TRUE(list.isFull());
  EXPECT_EQ(textOf(list), "error: a\nerror: b\n");
  list.error({}, "c").note({}, "goes nowhere");
  EXPECT_EQ(list.numErrors(), 3u);
  EXPECT_EQ(list.diagnostics().size(), 2u);
  EXPECT_EQ(textOf(list), "error: a\nerror: b\nerror: too many errors: 1 more is not shown\n");
  list.error({}, "d");
  EXPECT_EQ(textOf(list), "error: a\nerror: b\nerror: too many errors: 2 more are not shown\n");
}

/// Warnings have the same limit of their own and do not use up that of errors.
TEST(DiagnosticList, LimitOfWarnings) {
  DiagnosticList list(2);
  for (int i = 0; i < 5; ++i)
    list.warning({}, "w");
  EXPECT_EQ(list.diagnostics().size(), 2u);
  list.error({}, "e");
  EXPECT_EQ(list.diagnostics().size(), 3u);
  EXPECT_EQ(list.diagnostics().back().message, "e");
}

/// A hundred thousand errors take no more room than the limit.
TEST(DiagnosticList, HostileInput) {
  DiagnosticList list;
  for (int i = 0; i < 100000; ++i)
    list.error({}, "again").note({}, "and again");
  EXPECT_EQ(list.diagnostics().size(), 100u);
  EXPECT_EQ(list.numErrors(), 100000u);
}

/// A list of limit 0 keeps nothing but still fails.
TEST(DiagnosticList, LimitZero) {
  DiagnosticList list(0);
  EXPECT_TRUE(list.isFull());
  list.error({}, "a");
  EXPECT_TRUE(list.hasErrors());
  EXPECT_EQ(llvm::toString(list.takeError()), "error: too many errors: 1 more is not shown");
}

/// Taking empties the list and makes it reusable.
TEST(DiagnosticList, Take) {
  DiagnosticList list(1);
  list.error({}, "a");
  EXPECT_EQ(list.take().size(), 1u);
  EXPECT_TRUE(list.diagnostics().empty());
  EXPECT_FALSE(list.hasErrors());
  list.error({}, "b");
  EXPECT_EQ(textOf(list), "error: b\n");
}

/// A list without errors, warnings or not, gives success and keeps its warnings.
TEST(DiagnosticList, TakeErrorOfNone) {
  DiagnosticList list;
  list.warning({}, "only this");
  EXPECT_FALSE(bool(list.takeError()));
  EXPECT_EQ(list.diagnostics().size(), 1u);
}

/// An error takes everything with it, how much was dropped included.
TEST(DiagnosticList, TakeError) {
  DiagnosticList list(1);
  list.warning({}, "w");
  list.error({"a.trace", 1, 2, ""}, "a");
  list.error({}, "b");
  std::vector<Diagnostic> diagnostics = carried(list.takeError());
  ASSERT_EQ(diagnostics.size(), 3u);
  EXPECT_EQ(diagnostics[0].severity, Severity::Warning);
  EXPECT_EQ(diagnostics[1].location.line, 1u);
  EXPECT_EQ(diagnostics[2].message, "too many errors: 1 more is not shown");
  EXPECT_FALSE(list.hasErrors());
  EXPECT_FALSE(bool(list.takeError()));
}

//===--- Errors -----------------------------------------------------------===//

/// The text of an error is that of its diagnostics, without the last newline.
TEST(DiagnosticError, Text) {
  EXPECT_EQ(llvm::toString(makeError(Location{"a.trace", 1, 2, ""}, "bad")),
            "a.trace:1:2: error: bad");
  EXPECT_EQ(llvm::toString(makeError("bad")), "error: bad");
  DiagnosticList list;
  list.error({}, "a");
  list.error({}, "b");
  EXPECT_EQ(llvm::toString(list.takeError()), "error: a\nerror: b");
}

/// An error can be told apart by its class and carries its location.
TEST(DiagnosticError, CanBeHandled) {
  llvm::Error error = makeError(Location{"", 0, 0, "/ops/1"}, "bad");
  EXPECT_TRUE(error.isA<DiagnosticError>());
  EXPECT_EQ(carried(std::move(error)).at(0).location.path, "/ops/1");
  EXPECT_EQ(llvm::errorToErrorCode(makeError("bad")), std::errc::invalid_argument);
}

//===--- Suggestions ------------------------------------------------------===//

/// The nearest name is suggested; of equally near ones the first.
TEST(DidYouMean, Nearest) {
  EXPECT_EQ(didYouMean("reluu", {"add", "relu", "gelu"}), " (did you mean 'relu'?)");
  EXPECT_EQ(didYouMean("layernorm", {"layer_norm", "rms_norm"}), " (did you mean 'layer_norm'?)");
  EXPECT_EQ(didYouMean("partiton", {"min_ops", "partition"}), " (did you mean 'partition'?)");
  EXPECT_EQ(didYouMean("xelu", {"gelu", "relu"}), " (did you mean 'gelu'?)");
  EXPECT_EQ(didYouMean("softmaxx", {"softmin", "softmax"}), " (did you mean 'softmax'?)");
}

/// A name that differs by case only is near, however long.
TEST(DidYouMean, OtherCase) {
  EXPECT_EQ(didYouMean("RELU", {"gelu", "relu"}), " (did you mean 'relu'?)");
}

/// When nothing is near, nothing is suggested, and never the name itself.
TEST(DidYouMean, NothingNear) {
  EXPECT_EQ(didYouMean("frobnicate", {"add", "relu"}), "");
  EXPECT_EQ(didYouMean("relu", {}), "");
  EXPECT_EQ(didYouMean("", {"a"}), "");
  EXPECT_EQ(didYouMean("relu", {"relu"}), "");
  EXPECT_EQ(didYouMean("ab", {"cd"}), "");
  EXPECT_EQ(didYouMean("x", {""}), "");
}

/// A name of a megabyte is answered at once.
TEST(DidYouMean, HugeName) {
  std::string name(1 << 20, 'x');
  EXPECT_EQ(didYouMean(name, {"x", "relu"}), "");
}

} // namespace
