//===- GroupOrderTest.cpp - Making groups of ops consecutive ----------------===//
//
// Through the execution transform, which takes the groups that a claim source names.
//
//===----------------------------------------------------------------------===//

#include "PassFixture.h"

#include "rondo/ir/StorageRoots.h"
#include "rondo/ir/TraceBuilder.h"
#include "rondo/passes/Passes.h"
#include "rondo/passes/TableClaimSource.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace rondo;

namespace {

/// Claims the groups that it is given, of the top body, and nothing else.
class GroupSource : public TableClaimSource {
public:
  GroupSource() : TableClaimSource("fuser") {}
  std::vector<std::vector<OpId>> groups;

  void claimGroups(const Trace &, BodyId body, std::vector<GroupClaim> &out) const override {
    for (const std::vector<OpId> &group : groups)
      if (body == Trace::topBody())
        out.push_back({group, ClaimAnswer::accept()});
  }
};

class GroupOrderTest : public PassFixture {
protected:
  TableClaimSource host = makeHostClaimTable(registry);
};

/// A random trace of pure ops, writes in place, views and host effects.
llvm::Expected<Trace> buildRandom(const OpRegistry &registry, std::mt19937 &random) {
  TraceBuilder builder(registry);
  TensorType type(DType::F32, {4});
  std::vector<ValueId> values = {builder.argument("x", type), builder.argument("y", type)};
  auto pick = [&] { return values[random() % values.size()]; };
  unsigned size = 3 + random() % 8;
  for (unsigned i = 0; i < size; ++i) {
    switch (random() % 8) {
    case 0:
      values.push_back(builder.op("add_", {pick(), pick()}));
      break;
    case 1:
      values.push_back(builder.op("detach", {pick()}));
      break;
    case 2:
      builder.ops("print", {pick()});
      break;
    case 3:
    case 4:
      values.push_back(builder.op("add", {pick(), pick()}));
      break;
    default:
      values.push_back(builder.op("relu", {pick()}));
    }
  }
  builder.returnValues({values.back(), values[values.size() / 2]});
  return std::move(builder).finish();
}

/// Pairs of ops of the top body that must keep their order, found by comparing each with each.
class OrderOracle {
public:
  explicit OrderOracle(const Trace &trace) : ops_(trace.ops().vec()) {
    StorageRoots roots(trace);
    size_t size = ops_.size();
    before_.assign(size, std::vector<bool>(size, false));
    for (size_t i = 0; i < size; ++i)
      for (size_t k = i + 1; k < size; ++k)
        before_[i][k] = conflict(trace, roots, trace.op(ops_[i]), trace.op(ops_[k]));
    // A body sees its operands alone, so it must not count from the start of what they are part of.
    for (OpId op : ops_)
      staysOutside_.push_back(trace.op(op).spec().name == "as_strided" &&
                              roots.root(trace.op(op).operand(0)) != trace.op(op).operand(0));
  }

  bool mustPrecede(size_t i, size_t k) const { return before_[i][k]; }
  const std::vector<OpId> &ops() const { return ops_; }
  bool staysOutside(size_t i) const { return staysOutside_[i]; }

  /// Can the ops be ordered such that those of one class are consecutive? `classOf` numbers them
  /// from 0.
  bool isOrderable(const std::vector<unsigned> &classOf) const {
    unsigned classes = 1 + *std::max_element(classOf.begin(), classOf.end());
    std::vector<bool> done(classes, false);
    for (unsigned round = 0; round < classes; ++round) {
      bool progressed = false;
      for (unsigned c = 0; c < classes && !progressed; ++c)
        if (!done[c] && isReady(c, classOf, done))
          done[c] = progressed = true;
      if (!progressed)
        return false;
    }
    return true;
  }

private:
  static bool conflict(const Trace &trace, const StorageRoots &roots, const Op &a, const Op &b) {
    if (b.spec().terminator)
      return true;
    for (ValueId operand : b.operands())
      if (llvm::is_contained(a.results(), operand))
        return true;
    Effects effectsOfA = getEffects(trace, a.id()), effectsOfB = getEffects(trace, b.id());
    if (!effectsOfA.resources.empty() && !effectsOfB.resources.empty())
      return true; // `print` only
    auto writesWhatIsUsed = [&](const Op &writer, const Effects &effects, const Op &user) {
      for (unsigned i : effects.writes)
        for (ValueId operand : user.operands())
          if (roots.mayAlias(writer.operand(i), operand))
            return true;
      return false;
    };
    return writesWhatIsUsed(a, effectsOfA, b) || writesWhatIsUsed(b, effectsOfB, a);
  }

  bool isReady(unsigned c, const std::vector<unsigned> &classOf,
               const std::vector<bool> &done) const {
    for (size_t i = 0; i < ops_.size(); ++i)
      for (size_t k = 0; k < ops_.size(); ++k)
        if (before_[i][k] && classOf[k] == c && classOf[i] != c && !done[classOf[i]])
          return false;
    return true;
  }

  std::vector<OpId> ops_;
  std::vector<std::vector<bool>> before_;
  std::vector<bool> staysOutside_;
};

/// Takes groups as long as all taken so far can be made consecutive. Returns the class of each op,
/// and which groups were taken.
std::vector<std::vector<size_t>> takeGroups(const OrderOracle &oracle,
                                            const std::vector<std::vector<size_t>> &groups) {
  std::vector<unsigned> classOf(oracle.ops().size());
  for (size_t i = 0; i < classOf.size(); ++i)
    classOf[i] = i;
  std::vector<bool> isTaken(classOf.size(), false);
  std::vector<std::vector<size_t>> taken;
  for (const std::vector<size_t> &group : groups) {
    if (llvm::any_of(group, [&](size_t op) { return isTaken[op] || oracle.staysOutside(op); }))
      continue;
    std::vector<unsigned> tried = classOf;
    for (size_t op : group)
      tried[op] = group.front();
    if (!oracle.isOrderable(tried))
      continue;
    classOf = tried;
    for (size_t op : group)
      isTaken[op] = true;
    taken.push_back(group);
  }
  return taken;
}

/// Up to three random groups of at least two ops, by position; never the last op, `return`.
std::vector<std::vector<size_t>> chooseGroups(size_t numOps, std::mt19937 &random) {
  std::vector<std::vector<size_t>> groups(1 + random() % 3);
  for (std::vector<size_t> &group : groups) {
    group.resize(numOps - 1);
    std::iota(group.begin(), group.end(), 0);
    std::shuffle(group.begin(), group.end(), random);
    group.resize(2 + random() % (group.size() - 1));
  }
  return groups;
}

/// What became of the ops of an oracle's trace, by their positions in it.
struct Outcome {
  std::vector<std::vector<size_t>> groups; ///< ops of each `fused` op, in order
  std::vector<size_t> places;              ///< of each op, once bodies are put in line
};

Outcome readOutcome(const Trace &trace, const OrderOracle &oracle) {
  Outcome outcome;
  outcome.places.resize(oracle.ops().size());
  size_t place = 0;
  auto visit = [&](OpId op) {
    size_t position = llvm::find(oracle.ops(), op) - oracle.ops().begin();
    outcome.places.at(position) = place++;
    return position;
  };
  for (OpId op : trace.ops()) {
    if (trace.op(op).bodies().empty()) {
      visit(op);
      continue;
    }
    std::vector<size_t> &group = outcome.groups.emplace_back();
    for (OpId inner : trace.ops(trace.op(op).bodies().front()).drop_back())
      group.push_back(visit(inner));
  }
  return outcome;
}

// On random traces and groups, a group is fused exactly if an order exists in which it and those
// before it are consecutive; and the order of ops that must keep it is kept.
TEST_F(GroupOrderTest, AgreesWithAnOracle) {
  std::mt19937 random(20240607);
  unsigned numTaken = 0, numRefused = 0;
  for (unsigned round = 0; round < 3000; ++round) {
    llvm::Expected<Trace> trace = buildRandom(registry, random);
    ASSERT_TRUE(bool(trace)) << llvm::toString(trace.takeError());
    OrderOracle oracle(*trace);
    std::vector<std::vector<size_t>> groups = chooseGroups(oracle.ops().size(), random);
    std::vector<std::vector<size_t>> expected = takeGroups(oracle, groups);
    numTaken += expected.size();
    numRefused += groups.size() - expected.size();

    GroupSource source;
    for (const std::vector<size_t> &group : groups) {
      source.groups.emplace_back();
      for (size_t position : group)
        source.groups.back().push_back(oracle.ops()[position]);
    }
    PassManager manager;
    manager.add(createExecutionTransform({&source, &host}));
    llvm::Expected<TracePair> result = manager.run(TracePair(std::move(*trace)));
    ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());

    Outcome outcome = readOutcome(result->forward(), oracle);
    for (std::vector<size_t> &group : expected)
      llvm::sort(group); // program order within a group
    llvm::sort(expected);
    llvm::sort(outcome.groups);
    ASSERT_EQ(outcome.groups, expected) << textOf(*result);
    for (size_t i = 0; i < oracle.ops().size(); ++i) {
      for (size_t k = i + 1; k < oracle.ops().size(); ++k) {
        if (oracle.mustPrecede(i, k)) {
          ASSERT_LT(outcome.places[i], outcome.places[k]) << textOf(*result);
        }
      }
    }
  }
  EXPECT_GT(numTaken, 500u);
  EXPECT_GT(numRefused, 500u);
}

// Many groups in a long trace take time about linear in its length.
TEST_F(GroupOrderTest, ManyGroups) {
  TraceBuilder builder(registry);
  ValueId value = builder.argument("x", TensorType(DType::F32, {4}));
  GroupSource source;
  for (unsigned i = 0; i < 5000; ++i) {
    value = builder.op("relu", {value});
    OpId first = builder.lastOp();
    builder.op("neg", {value});
    value = builder.op("exp", {value});
    source.groups.push_back({first, builder.lastOp()});
  }
  builder.returnValues({value});
  llvm::Expected<Trace> trace = std::move(builder).finish();
  ASSERT_TRUE(bool(trace)) << llvm::toString(trace.takeError());
  TracePair pair(std::move(*trace));
  PassManager manager;
  manager.add(createExecutionTransform({&source, &host}));
  llvm::Expected<TracePair> result = manager.run(std::move(pair));
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  EXPECT_EQ(result->forward().ops().size(), 5000u * 2 + 1);
  EXPECT_LT(manager.timings().front().seconds, 5);
}

} // namespace
