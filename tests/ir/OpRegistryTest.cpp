//===- OpRegistryTest.cpp - Registering ops and types ---------------------===//

#include "rondo/ir/OpRegistry.h"

#include "rondo/ir/Diagnostic.h"

#include <gtest/gtest.h>

using namespace rondo;

namespace {

/// An op on `operands` tensors with `results` results.
OpSpec makeSpec(std::string name, unsigned operands = 1, unsigned results = 1) {
  OpSpec spec;
  spec.name = std::move(name);
  for (unsigned i = 0; i < operands; ++i)
    spec.operands.push_back({"x" + std::to_string(i)});
  for (unsigned i = 0; i < results; ++i)
    spec.results.push_back("y" + std::to_string(i));
  return spec;
}

/// The message of registering `spec` in an empty registry; empty when it was accepted. What was
/// refused must not be there afterwards.
std::string registering(OpSpec spec) {
  OpRegistry registry;
  std::string name = spec.name;
  llvm::Error error = registry.registerOp(std::move(spec));
  bool failed = bool(error);
  EXPECT_EQ(registry.ops().size(), failed ? 0u : 1u);
  EXPECT_EQ(registry.lookup(name) == nullptr, failed);
  return llvm::toString(std::move(error));
}

/// An op is found by its name, with what it was registered with.
TEST(OpRegistry, Lookup) {
  OpRegistry registry;
  ASSERT_FALSE(bool(registry.registerOp(makeSpec("add", 2))));
  ASSERT_FALSE(bool(registry.registerOp(makeSpec("mylib.gather", 3))));
  ASSERT_TRUE(registry.lookup("add"));
  EXPECT_EQ(registry.lookup("add")->operands.size(), 2u);
  EXPECT_EQ(registry.lookup("mylib.gather")->name, "mylib.gather");
  EXPECT_EQ(registry.lookup("gather"), nullptr);
  EXPECT_EQ(registry.lookup(""), nullptr);
}

/// Ops are listed in the order of registration, and pointers to them stay valid.
TEST(OpRegistry, OrderAndStability) {
  OpRegistry registry;
  ASSERT_FALSE(bool(registry.registerOp(makeSpec("z"))));
  const OpSpec *first = registry.lookup("z");
  for (int i = 0; i < 1000; ++i)
    ASSERT_FALSE(bool(registry.registerOp(makeSpec("op" + std::to_string(i)))));
  EXPECT_EQ(registry.lookup("z"), first);
  EXPECT_EQ(registry.ops()[0].get(), first);
  EXPECT_EQ(registry.ops()[1000]->name, "op999");
}

/// A registry holds what was put into it and nothing that was put into another.
TEST(OpRegistry, RegistriesShareNothing) {
  OpRegistry one, other;
  ASSERT_FALSE(bool(one.registerOp(makeSpec("add"))));
  EXPECT_EQ(other.lookup("add"), nullptr);
  EXPECT_FALSE(bool(other.registerOp(makeSpec("add"))));
}

/// Names are identifiers with dots between them.
TEST(OpRegistry, Names) {
  for (const char *name : {"add", "add_", "_to_copy", "mylib.gather", "a.b.c2", "conv2d"})
    EXPECT_EQ(registering(makeSpec(name)), "") << name;
  for (const char *name : {"", ".", "a.", ".a", "a..b", "2d", "a.2", "a-b", "a b", "a\"b", "é"})
    EXPECT_NE(registering(makeSpec(name)), "") << name;
  EXPECT_EQ(
      registering(makeSpec("a b\n")),
      R"(error: the name "a b\n" of an op must be letters, digits and '_', with dots between )"
      "parts, no part empty or starting with a digit");
}

/// A name is taken once; the first registration stays.
TEST(OpRegistry, TakenName) {
  OpRegistry registry;
  ASSERT_FALSE(bool(registry.registerOp(makeSpec("add", 2))));
  EXPECT_EQ(llvm::toString(registry.registerOp(makeSpec("add", 3))),
            "error: op 'add': is registered already");
  EXPECT_EQ(registry.lookup("add")->operands.size(), 2u);
  EXPECT_EQ(registry.ops().size(), 1u);
}

/// The last operand may be variadic, an earlier one may not.
TEST(OpRegistry, VariadicOperands) {
  OpSpec spec = makeSpec("cat", 2);
  spec.operands[1].arity = Arity::Variadic;
  EXPECT_EQ(registering(spec), "");
  spec.operands[0].arity = Arity::Variadic;
  EXPECT_EQ(registering(spec), "error: op 'cat': operand 'x0' is variadic but not the last");
}

/// A write needs a result that renames the operand.
TEST(OpRegistry, WritesAreRenamed) {
  OpSpec spec = makeSpec("add_", 2);
  spec.writes = {0};
  EXPECT_EQ(registering(spec), "error: op 'add_': writes operand #0 but no result renames it");
  spec.views = {{1, 0}};
  EXPECT_EQ(registering(spec), "error: op 'add_': writes operand #0 but no result renames it");
  spec.views = {{0, 0}};
  EXPECT_EQ(registering(spec), "");
}

/// An op whose results all view operand 0 renames that one, if it has results.
TEST(OpRegistry, WholeViewsRename) {
  OpSpec spec = makeSpec("fill_parts_", 2, 0);
  spec.allResultsViewFirst = true;
  spec.writes = {0};
  EXPECT_NE(registering(spec), "");
  spec.variadicResults = true;
  EXPECT_EQ(registering(spec), "");
  spec.writes = {1};
  EXPECT_NE(registering(spec), "");
}

/// Only an operand that exists can be written; a variadic one has any number.
TEST(OpRegistry, WritesExist) {
  OpSpec spec = makeSpec("update_", 2);
  spec.writes = {2};
  spec.views = {{2, 0}};
  EXPECT_EQ(registering(spec),
            "error: op 'update_': result #0 views operand #2, which does not exist");
  spec.views = {};
  EXPECT_EQ(registering(spec), "error: op 'update_': writes operand #2, which does not exist");
  spec.views = {{2, 0}};
  spec.operands[1].arity = Arity::Variadic;
  EXPECT_EQ(registering(spec), "");
}

/// A view's operand and result exist; variadic results are any number.
TEST(OpRegistry, ViewsExist) {
  OpSpec spec = makeSpec("view");
  spec.views = {{0, 0}};
  EXPECT_EQ(registering(spec), "");
  spec.views = {{1, 0}};
  EXPECT_EQ(registering(spec),
            "error: op 'view': result #0 views operand #1, which does not exist");
  spec.views = {{0, 1}};
  EXPECT_EQ(registering(spec), "error: op 'view': result #1, a view of operand #0, does not exist");
  spec.variadicResults = true;
  EXPECT_EQ(registering(spec), "");
}

/// An op whose results all view operand 0 has one.
TEST(OpRegistry, WholeViewsHaveAnOperand) {
  OpSpec spec = makeSpec("split", 0);
  spec.allResultsViewFirst = true;
  EXPECT_EQ(registering(spec), "error: op 'split': results view operand #0, which does not exist");
  spec.operands.push_back({"x"});
  EXPECT_EQ(registering(spec), "");
}

/// An attribute is listed once, under an identifier.
TEST(OpRegistry, AttributeNames) {
  OpSpec spec = makeSpec("sum");
  spec.attributes = {{"dim", AttributeKind::Int}, {"keep", AttributeKind::Bool}};
  EXPECT_EQ(registering(spec), "");
  spec.attributes.push_back({"dim", AttributeKind::Int});
  EXPECT_EQ(registering(spec), "error: op 'sum': attribute 'dim' is listed twice");
  for (const char *name : {"", "a b", "a.b", "1a"}) {
    spec.attributes.back().name = name;
    EXPECT_NE(registering(spec), "") << name;
  }
}

/// A default is of the attribute's kind.
TEST(OpRegistry, AttributeDefaults) {
  OpSpec spec = makeSpec("sum");
  spec.attributes = {{"p", AttributeKind::Number, false, 0.5}};
  EXPECT_EQ(registering(spec), "");
  spec.attributes = {{"p", AttributeKind::Int, false, 0.5}};
  EXPECT_EQ(registering(spec),
            "error: op 'sum': the default 0.5 of attribute 'p' is not of kind int");
}

//===--- Types ------------------------------------------------------------===//

/// A type is found by its name, in the order of registration.
TEST(OpRegistry, Types) {
  OpRegistry registry;
  ASSERT_FALSE(bool(registry.registerType({"mylib.handle", "a handle"})));
  ASSERT_FALSE(bool(registry.registerType({"mylib.page", "a page"})));
  ASSERT_TRUE(registry.lookupType("mylib.handle"));
  EXPECT_EQ(registry.lookupType("mylib.handle")->summary, "a handle");
  EXPECT_EQ(registry.types()[1]->name, "mylib.page");
  EXPECT_EQ(registry.lookupType("handle"), nullptr);
  EXPECT_EQ(registry.lookup("mylib.handle"), nullptr);
}

/// The name of a type is well formed and taken once.
TEST(OpRegistry, TypeNames) {
  OpRegistry registry;
  EXPECT_EQ(llvm::toString(registry.registerType({"a<b", ""})),
            R"(error: the name "a<b" of a type must be letters, digits and '_', with dots between )"
            "parts, no part empty or starting with a digit");
  ASSERT_FALSE(bool(registry.registerType({"ab", "first"})));
  EXPECT_EQ(llvm::toString(registry.registerType({"ab", "second"})),
            "error: type '!ab' is registered already");
  EXPECT_EQ(registry.lookupType("ab")->summary, "first");
  EXPECT_EQ(registry.types().size(), 1u);
}

} // namespace
