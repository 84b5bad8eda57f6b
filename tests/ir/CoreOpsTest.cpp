//===- CoreOpsTest.cpp - What holds for all core ops ----------------------===//

#include "CoreOpsCases.h"

#include "rondo/ir/Text.h"
#include "rondo/ir/TraceBuilder.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <map>
#include <memory>
#include <regex>

using namespace rondo;
using namespace rondo::test;

//===----------------------------------------------------------------------===//
// The tables
//===----------------------------------------------------------------------===//

const OpRegistry &rondo::test::coreOps() {
  static const std::unique_ptr<OpRegistry> registry = [] {
    auto made = std::make_unique<OpRegistry>();
    llvm::cantFail(registerCoreOps(*made));
    return made;
  }();
  return *registry;
}

namespace {

/// A use made ready for the hooks.
class PreparedUse {
public:
  explicit PreparedUse(const Use &use) : spec(coreOps().lookup(use.op)) {
    for (const std::string &text : use.operands)
      if (text != "none")
        types_.push_back(std::make_unique<Type>(cantFail(parseType(text, coreOps()))));
    size_t next = 0;
    for (const std::string &text : use.operands)
      operands.push_back(text == "none" ? nullptr : types_[next++].get());
    for (const auto &[name, value] : use.attributes)
      attributes.push_back({name, value});
    llvm::sort(attributes,
               [](const NamedAttribute &a, const NamedAttribute &b) { return a.name < b.name; });
  }

  const OpSpec *spec;
  std::vector<const Type *> operands;
  std::vector<NamedAttribute> attributes;

private:
  std::vector<std::unique_ptr<Type>> types_;
};

/// The message of a DiagnosticError without "error: ".
std::string messageOf(llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  llvm::StringRef message = text;
  message.consume_front("error: ");
  return message.str();
}

std::vector<Use> allUses() {
  std::vector<Use> all;
  for (auto table :
       {attentionUses, collectiveUses, constantUses, controlUses, convolutionUses, dataMovementUses,
        gradientUses, inPlaceUses, indexUses, lossUses, matmulUses, normalizationUses,
        optimizerUses, pointwiseUses, randomUses, reductionUses, viewUses}) {
    std::vector<Use> uses = table();
    all.insert(all.end(), uses.begin(), uses.end());
  }
  return all;
}

} // namespace

std::string rondo::test::outcomeOf(const Use &use) {
  PreparedUse prepared(use);
  if (!prepared.spec)
    return "no such op";
  llvm::SmallVector<Type, 4> results;
  if (llvm::Error error =
          inferResultTypes(*prepared.spec, prepared.operands, prepared.attributes, results))
    return messageOf(std::move(error));
  std::string outcome = "->";
  std::vector<const Type *> resultTypes;
  for (const Type &type : results) {
    outcome += " " + type.str();
    resultTypes.push_back(&type);
  }
  OpContext context(*prepared.spec, prepared.operands, prepared.attributes, resultTypes);
  if (prepared.spec->verify)
    if (llvm::Error error = prepared.spec->verify(context))
      return messageOf(std::move(error));
  return outcome;
}

std::string rondo::test::effectsOf(const Use &use) {
  TraceBuilder builder(coreOps());
  llvm::SmallVector<ValueId, 4> operands;
  for (const std::string &text : use.operands)
    operands.push_back(text == "none" ? ValueId()
                                      : builder.argument("", cantFail(parseType(text, coreOps()))));
  llvm::SmallVector<AttributeInit, 4> attributes(use.attributes.begin(), use.attributes.end());
  builder.ops(use.op, operands, attributes);
  if (!builder.lastOp())
    return "refused";
  Effects effects = getEffects(builder.trace(), builder.lastOp());
  std::vector<std::string> parts;
  auto list = [&](llvm::StringRef what, llvm::ArrayRef<unsigned> operandList) {
    if (!operandList.empty())
      parts.push_back(
          (what + llvm::join(llvm::map_range(operandList,
                                             [](unsigned i) { return " " + std::to_string(i); }),
                             ""))
              .str());
  };
  list("reads", effects.reads);
  list("writes", effects.writes);
  for (ViewEffect view : effects.views)
    parts.push_back("views " + std::to_string(view.operand) + ":" + std::to_string(view.result));
  for (const ResourceEffect &resource : effects.resources)
    parts.push_back((resourceKindName(resource.kind) + " '" + resource.name + "' " +
                     (resource.writes ? "written" : "read"))
                        .str());
  return parts.empty() ? "nothing" : llvm::join(parts, ", ");
}

void rondo::test::expectOutcomes(const std::vector<Use> &table) {
  for (const Use &use : table)
    EXPECT_EQ(outcomeOf(use), use.outcome) << use.op << ": " << use.says;
}

//===----------------------------------------------------------------------===//
// All ops
//===----------------------------------------------------------------------===//

namespace {

/// The tables accept at least one use of every op and refuse at least one.
TEST(CoreOps, EveryOpHasAnAcceptedAndARefusedUse) {
  std::map<std::string, std::pair<bool, bool>> covered;
  for (const Use &use : allUses())
    (use.isAccepted() ? covered[use.op].first : covered[use.op].second) = true;
  for (const auto &op : coreOps().ops()) {
    EXPECT_TRUE(covered[op->name].first) << "no accepted use of " << op->name;
    EXPECT_TRUE(covered[op->name].second) << "no refused use of " << op->name;
  }
}

/// Every use in the tables says what must hold.
TEST(CoreOps, EveryUseSaysSomething) {
  for (const Use &use : allUses())
    EXPECT_FALSE(use.says.empty()) << use.op;
}

/// Registering twice in one registry is refused, and names the op.
TEST(CoreOps, RegisteringTwiceIsRefused) {
  OpRegistry registry;
  ASSERT_FALSE(bool(registerCoreOps(registry)));
  size_t count = registry.ops().size();
  llvm::Error error = registerCoreOps(registry);
  ASSERT_TRUE(bool(error));
  EXPECT_NE(llvm::toString(std::move(error)).find("'add'"), std::string::npos);
  EXPECT_EQ(registry.ops().size(), count);
}

/// Two registries get the same ops in the same order.
TEST(CoreOps, OrderIsDeterministic) {
  OpRegistry registry;
  ASSERT_FALSE(bool(registerCoreOps(registry)));
  ASSERT_EQ(registry.ops().size(), coreOps().ops().size());
  for (size_t i = 0; i < registry.ops().size(); ++i)
    EXPECT_EQ(registry.ops()[i]->name, coreOps().ops()[i]->name);
}

/// Every op has a one-line summary that starts in lower case and has no full stop.
TEST(CoreOps, SummariesAreOneLine) {
  for (const auto &op : coreOps().ops()) {
    EXPECT_FALSE(op->summary.empty()) << op->name;
    EXPECT_EQ(op->summary.find('\n'), std::string::npos) << op->name;
    EXPECT_NE(op->summary.back(), '.') << op->name;
  }
}

/// A name with an underscore at its end writes operand 0 and renames it, and nothing else is
/// written.
TEST(CoreOps, UnderscoreMeansInPlace) {
  for (const auto &op : coreOps().ops()) {
    bool inPlace = op->name.back() == '_';
    EXPECT_EQ(inPlace, !op->writes.empty()) << op->name;
    for (unsigned operand : op->writes)
      EXPECT_TRUE(llvm::any_of(op->views, [&](ViewEffect v) { return v.operand == operand; }))
          << op->name;
  }
}

/// Views launch nothing, look at no data, and are not commutative or random.
TEST(CoreOps, ViewsOnlyName) {
  unsigned count = 0;
  for (const auto &op : coreOps().ops()) {
    if (!op->isView())
      continue;
    ++count;
    EXPECT_FALSE(op->readsOperands || op->random || op->commutative) << op->name;
  }
  EXPECT_EQ(count, 12u);
}

/// Ops that launch nothing: views, values made of attributes, markers.
TEST(CoreOps, WhatLaunchesNothing) {
  std::vector<std::string> silent;
  for (const auto &op : coreOps().ops())
    if (!op->launches && !op->isView())
      silent.push_back(op->name);
  EXPECT_EQ(silent, (std::vector<std::string>{"empty", "constant", "return", "del"}));
}

/// Exactly the ops that draw numbers are random, and each says where its numbers begin.
TEST(CoreOps, RandomOpsHaveAStateAndAnOffset) {
  std::vector<std::string> random;
  for (const auto &op : coreOps().ops()) {
    if (!op->random)
      continue;
    random.push_back(op->name);
    EXPECT_TRUE(op->findAttribute("offset")) << op->name;
    EXPECT_TRUE(llvm::any_of(op->operands, [](const OperandSpec &operand) {
      return operand.kind == OperandKind::RNGState;
    })) << op->name;
  }
  EXPECT_EQ(random, (std::vector<std::string>{"scaled_dot_product_attention", "dropout", "uniform",
                                              "normal", "randint", "bernoulli", "multinomial"}));
}

/// Exchanging the operands of a commutative op changes neither acceptance nor result types.
TEST(CoreOps, CommutativeOpsAcceptBothOrders) {
  unsigned count = 0;
  for (const auto &op : coreOps().ops()) {
    if (!op->commutative)
      continue;
    ++count;
    Use use{"", op->name, {"bool[8, 1]", "i64[4]"}, {}, ""}, swapped = use;
    std::swap(swapped.operands[0], swapped.operands[1]);
    EXPECT_EQ(outcomeOf(use), outcomeOf(swapped)) << op->name;
  }
  EXPECT_EQ(count, 11u);
}

/// A factor goes with one operand, so what has one is not commutative.
TEST(CoreOps, ScaledOpsAreNotCommutative) {
  for (const auto &op : coreOps().ops())
    EXPECT_FALSE(op->commutative && op->findAttribute("alpha")) << op->name;
}

//===--- Effects ----------------------------------------------------------===//

/// What each kind of op reads, writes, names and orders itself after.
TEST(CoreOps, Effects) {
  const Use uses[] = {
      {"", "add", {"f32[8]", "f32[8]"}, {}, "reads 0 1"},
      {"", "full", {}, {{"shape", List{2}}, {"value", 1}, {"dtype", DType::F32}}, "nothing"},
      {"",
       "layer_norm",
       {"f32[8]", "none", "f32[8]"},
       {{"normalized_shape", List{8}}},
       "reads 0 2"},
      {"", "reshape", {"f32[8]"}, {{"shape", List{2, 4}}}, "views 0:0"},
      {"", "split", {"f32[8]"}, {{"sizes", List{2, 6}}}, "views 0:0, views 0:1"},
      {"", "add_", {"f32[8]", "f32[8]"}, {}, "reads 0 1, writes 0, views 0:0"},
      {"", "copy_", {"f32[8]", "f32[8]"}, {}, "reads 1, writes 0, views 0:0"},
      {"", "fill_", {"f32[8]"}, {{"scalar", 1}}, "writes 0, views 0:0"},
      {"", "fill_", {"f32[8]", "f32[]"}, {}, "reads 1, writes 0, views 0:0"},
      {"", "zero_", {"f32[8]"}, {}, "writes 0, views 0:0"},
      {"", "sgd_", {"f32[8]", "f32[8]"}, {{"lr", 0.1}}, "reads 0 1, writes 0, views 0:0"},
      {"",
       "sgd_",
       {"f32[8]", "f32[8]", "f32[8]"},
       {{"lr", 0.1}},
       "reads 0 1 2, writes 0 2, views 0:0, views 2:1"},
      {"",
       "adam_",
       {"f32[8]", "f32[8]", "f32[8]", "f32[8]", "f32[]"},
       {{"lr", 0.1}},
       "reads 0 1 2 3 4, writes 0 2 3, views 0:0, views 2:1, views 3:2"},
      {"", "generator_read", {}, {}, "generator 'default' read"},
      {"", "generator_read", {}, {{"generator", "g"}}, "generator 'g' read"},
      {"", "generator_advance", {}, {{"count", 8}}, "generator 'default' written"},
      {"", "generator_seed", {"i64"}, {{"generator", "g"}}, "reads 0, generator 'g' written"},
      {"", "dropout", {"f32[8]", "rng"}, {{"p", 0.1}, {"offset", 0}}, "reads 0 1"},
      {"", "all_reduce", {"f32[8]"}, {}, "reads 0, communicator 'world' written"},
      {"",
       "all_reduce_",
       {"f32[8]"},
       {{"group", "tp"}},
       "reads 0, writes 0, views 0:0, communicator 'tp' written"},
      {"", "barrier", {}, {}, "communicator 'world' written"},
      {"", "item", {"f32[]"}, {}, "reads 0, host '' read"},
      {"", "print", {"f32[8]"}, {}, "reads 0, host '' written"},
      {"", "del", {"f32[8]"}, {}, "nothing"},
      {"", "return", {"f32[8]"}, {}, "nothing"},
  };
  for (const Use &use : uses)
    EXPECT_EQ(effectsOf(use), use.outcome) << use.op;
}

/// `item` may be removed when its result is unused, `print` may not; neither is pure.
TEST(CoreOps, HostEffects) {
  auto effects = [](llvm::StringRef op) {
    TraceBuilder builder(coreOps());
    builder.ops(op, {builder.argument("x", TensorType(DType::F32, {}))});
    return getEffects(builder.trace(), builder.lastOp());
  };
  EXPECT_TRUE(effects("item").isRemovable());
  EXPECT_FALSE(effects("print").isRemovable());
  for (llvm::StringRef op : {"item", "print"}) {
    EXPECT_FALSE(effects(op).isPure());
    EXPECT_TRUE(effects(op).synchronisesHost());
  }
}

//===--- Hostile attributes -----------------------------------------------===//

/// `use` with `value` in attribute `name`, or, where the attribute is a list, in a list one longer
/// than `use` gives.
Use withAttribute(Use use, const AttributeSpec &spec, const Attribute &value) {
  auto given = llvm::find_if(use.attributes,
                             [&](const auto &attribute) { return attribute.first == spec.name; });
  if (given == use.attributes.end())
    given = use.attributes.insert(given, {spec.name, spec.defaultValue});
  const List *list = given->second.asList();
  bool isList = spec.kind == AttributeKind::IntList;
  given->second = isList ? Attribute(List(list ? list->size() + 1 : 1, value)) : value;
  return use;
}

/// Whatever numbers stand in attributes, an op answers with types or with one message; types have
/// no negative or overflowed size.
TEST(CoreOps, HostileNumbersGiveTypesOrOneMessage) {
  const int64_t largest = std::numeric_limits<int64_t>::max();
  const int64_t smallest = std::numeric_limits<int64_t>::min();
  const Dim s = Dim::symbol("S");
  const Attribute hostile[] = {largest,     smallest,
                               largest - 1, smallest + 1,
                               -1,          0,
                               1,           int64_t(1) << 62,
                               1 << 30,     s,
                               s - Dim(7),  s * Dim(largest - 1),
                               Dim(0) - s,  std::numeric_limits<double>::infinity(),
                               -1e300,      std::numeric_limits<double>::quiet_NaN()};
  const std::regex negativeSize(R"((\[|, )-[0-9]+(,|;|\]))");
  ASSERT_TRUE(std::regex_search("f32[2, -3; 1]", negativeSize));
  unsigned accepted = 0, refused = 0;
  for (const Use &use : allUses()) {
    if (!use.isAccepted())
      continue;
    for (const AttributeSpec &spec : coreOps().lookup(use.op)->attributes)
      for (const Attribute &value : hostile) {
        std::string outcome = outcomeOf(withAttribute(use, spec, value));
        EXPECT_EQ(outcome.find('\n'), std::string::npos) << use.op << ": " << outcome;
        bool isAccepted = outcome.substr(0, 2) == "->";
        ++(isAccepted ? accepted : refused);
        if (!isAccepted)
          continue;
        EXPECT_EQ(outcome.find("overflow"), std::string::npos) << use.op << ": " << outcome;
        EXPECT_FALSE(std::regex_search(outcome, negativeSize)) << use.op << ": " << outcome;
      }
  }
  EXPECT_GT(accepted, 1000u);
  EXPECT_GT(refused, 1000u);
}

/// Lists of one or no element, where other numbers were, give types or one message.
TEST(CoreOps, ShortListsGiveTypesOrOneMessage) {
  for (const Use &use : allUses())
    for (size_t i = 0; i < use.attributes.size(); ++i) {
      const List *list = use.attributes[i].second.asList();
      for (size_t length = 0; list && length < list->size(); ++length) {
        Use changed = use;
        changed.attributes[i].second = List(list->begin(), list->begin() + length);
        EXPECT_EQ(outcomeOf(changed).find('\n'), std::string::npos) << use.op;
      }
    }
}

/// Every operand replaced by types of other ranks, sizes and dtypes gives types or one message.
TEST(CoreOps, OtherOperandsGiveTypesOrOneMessage) {
  for (const Use &use : allUses())
    for (size_t i = 0; i < use.operands.size(); ++i)
      for (const char *type : {"f32[]", "i64[0]", "bool[1, 1, 1, 1, 1]", "f64[S, S+1]", "i64",
                               "rng", "bf16[2, 0, 3; 0, 0, 0]@cuda:0",
                               "f32[1099511627776, 1099511627776, 1099511627776; 0, 0, 0]"}) {
        Use changed = use;
        changed.operands[i] = type;
        EXPECT_EQ(outcomeOf(changed).find('\n'), std::string::npos) << use.op;
      }
}

/// A type with fewer strides than sizes, or a negative size, is refused rather than read.
TEST(CoreOps, UnsoundOperandTypesAreRefused) {
  const OpSpec &spec = *coreOps().lookup("permute");
  std::vector<NamedAttribute> attributes{{"dims", Attribute(List{1, 0})}};
  for (const TensorType &type : {TensorType(DType::F32, {2, 3}, {1}, Device::host()),
                                 TensorType(DType::F32, {2, -3}, {3, 1}, Device::host())}) {
    Type operand(type);
    llvm::SmallVector<Type, 1> results;
    llvm::Error error = inferResultTypes(spec, {&operand}, attributes, results);
    ASSERT_TRUE(bool(error));
    llvm::consumeError(std::move(error));
    EXPECT_TRUE(results.empty());
  }
}

/// A tensor of 64 dimensions takes part, one of 65 does not.
TEST(CoreOps, RankIsBounded) {
  auto unsqueezed = [](unsigned rank) {
    Use use{"", "unsqueeze", {Type(TensorType(DType::F32, Dims(rank, Dim(1)))).str()}, {}, ""};
    use.attributes = {{"dim", 0}};
    return outcomeOf(use);
  };
  EXPECT_EQ(unsqueezed(63).substr(0, 2), "->");
  EXPECT_EQ(unsqueezed(64), "expects a result of at most 64 dimensions, got 65");
}

} // namespace
