//===- VerifierTest.cpp - Ops that do not fit their specs -------------------===//

#include "VerifierCases.h"

#include "support/TestPaths.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>

using namespace rondo;
using namespace rondo::test;

static const std::vector<TextCase> cases = {
    {14,
     "TooFewOperands",
     "an op has the operands that its spec asks for",
     R"(
trace @t(%x: f32[8, 8]) {
  %y: f32[8, 8] = mm(%x)
  return(%y)
}
)",
     {"t.trace:2:3: error: 'mm' op expects 2 operands, got 1"},
     R"(
trace @t(%x: f32[8, 8]) {
  %y: f32[8, 8] = mm(%x, %x)
  return(%y)
}
)"},
    {14,
     "TooManyOperands",
     "an op has no more operands than its spec has",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = relu(%x, %x)
  return(%y)
}
)",
     {"t.trace:2:3: error: 'relu' op expects 1 operand, got 2"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = relu(%x)
  return(%y)
}
)"},
    {14,
     "AbsentOperand",
     "only optional operands are absent",
     R"(
trace @t(%x: f32[8, 8]) {
  %y: f32[8, 8] = linear(%x, none, none)
  return(%y)
}
)",
     {"t.trace:2:3: error: 'linear' op operand #1 (w) may not be absent"},
     R"(
trace @t(%x: f32[8, 8]) {
  %y: f32[8, 8] = linear(%x, %x, none)
  return(%y)
}
)"},
    {15,
     "ScalarForTensor",
     "operands are of the kind that the spec asks for",
     R"(
trace @t() {
  %s: i64 = constant() {value = 3}
  %y: f32[8] = relu(%s)
  return(%y)
}
)",
     {"t.trace:3:3: error: 'relu' op operand #0 (x) has type i64, expected tensor",
      "t.trace:2:3: note: '%s' of type i64 is defined here"},
     R"(
trace @t(%x: f32[8]) {
  %s: i64 = constant() {value = 3}
  %y: f32[8] = add(%x, %s)
  return(%y)
}
)"},
    {16,
     "UnknownAttribute",
     "attributes are those of the spec; a near one is suggested",
     R"(
trace @t(%x: f32[8, 8]) {
  %y: f32[8] = sum(%x) {dims = [0], keepdims = false}
  return(%y)
}
)",
     {"t.trace:2:3: error: 'sum' op has no attribute 'keepdims' (did you mean 'keepdim'?)"},
     R"(
trace @t(%x: f32[8, 8]) {
  %y: f32[8] = sum(%x) {dims = [0], keepdim = false}
  return(%y)
}
)"},
    {16,
     "WrongKindOfAttribute",
     "attributes are of the kind that the spec asks for",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = softmax(%x) {dim = "last"}
  return(%y)
}
)",
     {"t.trace:2:3: error: 'softmax' op attribute 'dim' is \"last\", expected int"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = softmax(%x) {dim = -1}
  return(%y)
}
)"},
    {16,
     "MissingAttribute",
     "required attributes are there",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = softmax(%x)
  return(%y)
}
)",
     {"t.trace:2:3: error: 'softmax' op needs attribute 'dim' (int)"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = softmax(%x) {dim = 0}
  return(%y)
}
)"},
    {17,
     "TooManyResults",
     "an op has the results that follow from its spec",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8], %z: f32[8] = relu(%x)
  return(%y)
}
)",
     {"t.trace:2:3: error: 'relu' op has 2 results, expected 1"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = relu(%x)
  return(%y)
}
)"},
    {17,
     "TooFewResults",
     "the number of results of a split follows from its sizes",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[4] = split(%x) {dim = 0, sizes = [4, 4]}
  return(%y)
}
)",
     {"t.trace:2:3: error: 'split' op has 1 result, expected 2"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[4], %z: f32[4] = split(%x) {dim = 0, sizes = [4, 4]}
  return(%y)
}
)"},
    {18,
     "ShapesThatDoNotFit",
     "inference accepts the operands",
     R"(
trace @t(%x: f32[8, 4], %w: f32[8, 4]) {
  %y: f32[8, 4] = mm(%x, %w)
  return(%y)
}
)",
     {"t.trace:2:3: error: 'mm' op expects "},
     R"(
trace @t(%x: f32[8, 4], %w: f32[4, 4]) {
  %y: f32[8, 4] = mm(%x, %w)
  return(%y)
}
)"},
    {19,
     "WrongDType",
     "the dtype of a result is the inferred one",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = isnan(%x)
  return(%y)
}
)",
     {"t.trace:2:3: error: 'isnan' op result #0 ('%y') has type f32[8], expected bool[8]"},
     R"(
trace @t(%x: f32[8]) {
  %y: bool[8] = isnan(%x)
  return(%y)
}
)"},
    {19,
     "WrongShape",
     "the shape of a result is the inferred one, symbols included",
     R"(
trace @t(%x: f32[B, 8]) {
  %y: f32[8] = sum(%x) {dims = [1]}
  return(%y)
}
)",
     {"t.trace:2:3: error: 'sum' op result #0 ('%y') has type f32[8], expected f32[B]"},
     R"(
trace @t(%x: f32[B, 8]) {
  %y: f32[B] = sum(%x) {dims = [1]}
  return(%y)
}
)"},
    {19,
     "WrongDevice",
     "a result is on the inferred device",
     R"(
trace @t(%x: f32[8]@cuda:0) {
  %y: f32[8] = relu(%x)
  return(%y)
}
)",
     {"t.trace:2:3: error: 'relu' op result #0 ('%y') has type f32[8], expected f32[8]@cuda:0"},
     R"(
trace @t(%x: f32[8]@cuda:0) {
  %y: f32[8]@cuda:0 = relu(%x)
  return(%y)
}
)"},
    {19,
     "WrongStridesOfView",
     "the strides of a view are exact",
     R"(
trace @t(%x: f32[8, 4]) {
  %y: f32[4, 8] = permute(%x) {dims = [1, 0]}
  return(%y)
}
)",
     {"t.trace:2:3: error: 'permute' op result #0 ('%y') has type f32[4, 8], expected f32[4, 8; 1, "
      "4]"},
     R"(
trace @t(%x: f32[8, 4]) {
  %y: f32[4, 8; 1, 4] = permute(%x) {dims = [1, 0]}
  return(%y)
}
)"},
    {19,
     "WrongStridesOfInPlaceResult",
     "the new name of a storage has its strides",
     R"(
trace @t(%x: f32[4, 8; 1, 4]) {
  %y: f32[4, 8] = relu_(%x)
  return(%y)
}
)",
     {"t.trace:2:3: error: 'relu_' op result #0 ('%y') has type f32[4, 8], expected f32[4, 8; 1, "
      "4]"},
     R"(
trace @t(%x: f32[4, 8; 1, 4]) {
  %y: f32[4, 8; 1, 4] = relu_(%x)
  return(%y)
}
)"},
    {20,
     "FreshResultThatOverlaps",
     "a fresh result may have any strides that do not overlap",
     R"(
trace @t(%x: f32[8, 4]) {
  %y: f32[8, 4; 1, 1] = relu(%x)
  return(%y)
}
)",
     {"t.trace:2:3: error: 'relu' op result #0 ('%y') has type f32[8, 4; 1, 1], whose elements "
      "overlap; the storage is fresh"},
     R"(
trace @t(%x: f32[8, 4]) {
  %y: f32[8, 4; 6, 1] = relu(%x)
  return(%y)
}
)"},
    {20,
     "FreshResultThatIsExpanded",
     "a fresh result is not expanded, not even by a symbol",
     R"(
trace @t(%x: f32[B, 4]) {
  %y: f32[B, 4; 0, 1] = relu(%x)
  return(%y)
}
)",
     {"t.trace:2:3: error: 'relu' op result #0 ('%y') has type f32[B, 4; 0, 1], whose elements "
      "overlap; the storage is fresh"},
     R"(
trace @t(%x: f32[B, 4]) {
  %y: f32[B, 4; 1, B] = relu(%x)
  return(%y)
}
)"},
    {21,
     "RefusedByHook",
     "the verify hook of the spec accepts the op",
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = gelu(%x) {approximate = "fast"}
  return(%y)
}
)",
     {"t.trace:2:3: error: 'gelu' op expects attribute 'approximate' to be 'none' or 'tanh', got "
      "'fast'"},
     R"(
trace @t(%x: f32[8]) {
  %y: f32[8] = gelu(%x) {approximate = "tanh"}
  return(%y)
}
)"},
};

namespace {

/// A text that breaks an invariant is refused where it breaks it; its sound twin is not.
TEST_P(VerifierTextTest, Invariant) {
  check();
}

INSTANTIATE_TEST_SUITE_P(Ops, VerifierTextTest, testing::ValuesIn(cases), nameOf<TextCase>);

class VerifierTest : public VerifierTestBase, public testing::Test {};

/// One run reports every fault, in program order.
TEST_F(VerifierTest, ReportsManyFaults) {
  std::string text = diagnose(R"(
trace @t(%x: f32[8], %s: i64) {
  %a: f32[8] = relu(%s)
  %b: f32[8] = softmax(%x) {dims = 0, mode = 1}
  %c: f32[4] = add(%x, %x)
  %d: f32[8] = exp(%a, %b)
  return(%c, %d)
}
)");
  std::string errors;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (line.find("error:") != std::string::npos)
      errors += line + "\n";
  EXPECT_EQ(errors, R"(t.trace:2:3: error: 'relu' op operand #0 (x) has type i64, expected tensor
t.trace:3:3: error: 'softmax' op has no attribute 'dims' (did you mean 'dim'?)
t.trace:3:3: error: 'softmax' op has no attribute 'mode'
t.trace:3:3: error: 'softmax' op needs attribute 'dim' (int)
t.trace:4:3: error: 'add' op result #0 ('%c') has type f32[4], expected f32[8]
t.trace:5:3: error: 'exp' op expects 1 operand, got 2
)");
}

/// An op that is like one before but for an attribute or a type is checked for itself.
TEST_F(VerifierTest, NearRepetitionsAreChecked) {
  std::string text = diagnose(R"(
trace @t(%x: f32[8], %y: f32[4]) {
  %a: f32[8] = softmax(%x) {dim = 0}
  %b: f32[8] = softmax(%x) {dim = 0}
  %c: f32[8] = softmax(%x) {dim = 1}
  %d: f32[8] = softmax(%y) {dim = 0}
  %e: f32[4] = softmax(%x) {dim = 0}
  %f: f32[4] = softmax(%y) {dim = 0}
  return(%a, %b, %c, %d, %e, %f)
}
)");
  EXPECT_EQ(text.find("t.trace:2:"), std::string::npos) << text;
  EXPECT_EQ(text.find("t.trace:3:"), std::string::npos) << text;
  EXPECT_NE(text.find("t.trace:4:3: error: 'softmax' op expects "), std::string::npos) << text;
  EXPECT_NE(text.find("t.trace:5:3: error: 'softmax' op result #0 ('%d')"), std::string::npos)
      << text;
  EXPECT_NE(text.find("t.trace:6:3: error: 'softmax' op result #0 ('%e')"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("t.trace:7:"), std::string::npos) << text;
}

/// Views and writes that an effects hook finds count as those of the spec do.
TEST_F(VerifierTest, EffectsOfHooks) {
  OpSpec spec;
  spec.name = "mylib.update";
  spec.operands = {{"x"}};
  spec.attributes = {{"in_place", AttributeKind::Bool, /*required=*/true}};
  spec.results = {"out"};
  spec.infer = [](const OpContext &op, llvm::SmallVectorImpl<Type> &results) {
    results.push_back(*op.operand(0));
    return llvm::Error::success();
  };
  spec.effects = [](const OpContext &op, Effects &effects) {
    if (!op.boolAttribute("in_place"))
      return;
    effects.addWrite(0);
    effects.addView(0, 0);
  };
  llvm::cantFail(registry.registerOp(std::move(spec)));
  EXPECT_EQ(diagnose(R"(
trace @t(%x: f32[8, 4]) {
  %y: f32[8, 4; 1, 8] = mylib.update(%x) {in_place = false}
  %z: f32[8, 4] = mylib.update(%x) {in_place = true}
  return(%y, %z)
}
)"),
            "");
  std::string text = diagnose(R"(
trace @t(%x: f32[8, 4]) {
  %y: f32[8, 4; 1, 8] = mylib.update(%x) {in_place = true}
  %z: f32[8, 4] = mylib.update(%y) {in_place = false}
  %u: f32[8, 4] = mylib.update(%z) {in_place = true}
  return(%z, %u)
}
)");
  EXPECT_NE(text.find("t.trace:2:3: error: 'mylib.update' op result #0 ('%y') has type f32[8, 4; "
                      "1, 8], expected f32[8, 4]"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("t.trace:5:3: error: 'return' op operand #0 ('%z') is a stale name"),
            std::string::npos)
      << text;
}

/// An embedder's op that writes several parts of a storage, each a result, renames them together.
TEST_F(VerifierTest, WriteOfAnOpWhoseResultsAreViews) {
  OpSpec spec;
  spec.name = "mylib.zero_parts";
  spec.operands = {{"x"}};
  spec.results = {"first", "second"};
  spec.writes = {0};
  spec.allResultsViewFirst = true;
  llvm::cantFail(registry.registerOp(std::move(spec)));
  std::string text = diagnose(R"(
trace @t(%x: f32[8]) {
  %a: f32[4], %b: f32[4] = mylib.zero_parts(%x)
  %c: f32[4] = add(%a, %b)
  return(%c, %x)
}
)");
  EXPECT_EQ(text.find("t.trace:3:"), std::string::npos) << text;
  EXPECT_NE(text.find("t.trace:4:3: error: 'return' op operand #1 ('%x') is a stale name"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("note: the newest name of the storage is '%a'"), std::string::npos) << text;
}

/// The condition of an embedder's op with two branches is one bool, too.
TEST_F(VerifierTest, ConditionOfAnEmbeddersIf) {
  OpSpec spec;
  spec.name = "mylib.choose";
  spec.operands = {{"condition", OperandKind::Any}};
  spec.variadicResults = true;
  spec.bodies = BodyKind::If;
  llvm::cantFail(registry.registerOp(std::move(spec)));
  auto withCondition = [&](const std::string &type) {
    return diagnose("trace @t(%p: " + type + R"() {
  mylib.choose(%p) {
    return()
  } {
    return()
  }
  return()
}
)");
  };
  EXPECT_EQ(withCondition("bool"), "");
  EXPECT_EQ(withCondition("bool[1, 1]"), "");
  for (const char *type : {"i64", "f32[]", "bool[2]", "bool[B]"}) {
    std::string expected = "t.trace:2:3: error: 'mylib.choose' op operand #0 ('%p'), the "
                           "condition, has type " +
                           std::string(type) + ", expected one bool";
    std::string text = withCondition(type);
    EXPECT_NE(text.find(expected), std::string::npos) << text;
  }
}

/// Values without a name are called as the printer prints them.
TEST_F(VerifierTest, NumbersUnnamedValues) {
  std::string text = diagnose(R"(
trace @t(%x: f32[8]) {
  %0: f32[8] = relu(%x)
  %1: f32[4] = relu(%0)
  return(%1)
}
)");
  EXPECT_NE(text.find("'relu' op result #0 ('%1') has type f32[4]"), std::string::npos) << text;
}

/// The list at the top of the verifier and the cases name the same invariants.
TEST(VerifierInvariants, EachHasACase) {
  std::ifstream file(testDataDir() + "/../../ir/Verifier.cpp");
  ASSERT_TRUE(file.good());
  std::vector<unsigned> listed;
  std::regex entry("^// +([0-9]+)\\. .*");
  std::smatch match;
  for (std::string line; std::getline(file, line) && line.substr(0, 2) == "//";)
    if (std::regex_match(line, match, entry))
      listed.push_back(std::stoi(match[1]));

  std::set<unsigned> covered;
  for (const auto &numbers :
       {invariantsOf(cases), invariantsOfBodyCases(), invariantsOfStorageCases(),
        invariantsOfRegionCases(), invariantsOfStructureCases()})
    covered.insert(numbers.begin(), numbers.end());
  EXPECT_EQ(listed, std::vector<unsigned>(covered.begin(), covered.end()));
}

} // namespace
