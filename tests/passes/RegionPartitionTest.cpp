//===- RegionPartitionTest.cpp - Partitions against a brute-force oracle ----===//
//
// Random programs of up to 12 ops with views, in-place writes, host synchronisation and random
// verdicts. The oracle knows the programs from how they were generated, not from Rondo's effects:
// it derives the pairs of ops that must keep their order, finds the least number of regions over
// all orders, and runs the programs on hashes instead of numbers.
//
//===----------------------------------------------------------------------===//

#include "rondo/passes/RegionPartition.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"
#include "rondo/ir/TraceBuilder.h"
#include "rondo/ir/Verifier.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>

using namespace rondo;

namespace {

/// What the generator knows of one op.
struct KnownOp {
  enum Kind { Pure, View, InPlace, Sync } kind;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  int written = -1; ///< storage written in place
};

/// A random trace and all that the oracle needs to know of it.
struct RandomProgram {
  Trace trace;
  std::vector<KnownOp> ops; // by position; the last is `return`
  std::map<ValueId, int> storage;
  std::vector<FusionClass> classes;
};

class ProgramGenerator {
public:
  ProgramGenerator(const OpRegistry &registry, unsigned seed)
      : random_(seed), builder_(registry, "random") {}

  RandomProgram generate() {
    RandomProgram program{Trace(builder_.trace().registry()), {}, {}, {}};
    for (const char *name : {"x", "y"})
      define(program, builder_.argument(name, TensorType(DType::F32, {4})), nextStorage_++);
    unsigned numOps = 1 + pick(12);
    while (program.ops.size() < numOps)
      addOp(program);
    std::vector<ValueId> returned;
    for (ValueId value : fresh_)
      if (pick(3) == 0)
        returned.push_back(value);
    builder_.returnValues(returned);
    program.ops.push_back({KnownOp::Pure, returned, {}, -1});
    program.classes.push_back(FusionClass::Outside);
    program.trace = llvm::cantFail(std::move(builder_).finish());
    return program;
  }

private:
  unsigned pick(unsigned below) { return random_() % below; }
  ValueId pickValue() { return fresh_[pick(fresh_.size())]; }

  void define(RandomProgram &program, ValueId value, int storage) {
    fresh_.push_back(value);
    program.storage[value] = storage;
  }

  void addOp(RandomProgram &program) {
    ValueId a = pickValue(), b = pickValue();
    KnownOp op;
    ValueId result;
    switch (pick(8)) {
    case 0:
    case 1:
      op = {KnownOp::View, {a}, {}, -1};
      result = builder_.op("detach", {a});
      break;
    case 2:
      op = {KnownOp::InPlace, {a, b}, {}, program.storage[a]};
      result = builder_.op("add_", {a, b});
      // Every older name of the storage is stale now.
      llvm::erase_if(fresh_, [&](ValueId value) { return program.storage[value] == op.written; });
      break;
    case 3:
      op = {KnownOp::Sync, {a}, {}, -1};
      builder_.ops("print", {a});
      break;
    case 4:
    case 5:
      op = {KnownOp::Pure, {a, b}, {}, -1};
      result = builder_.op("add", {a, b});
      break;
    default:
      op = {KnownOp::Pure, {a}, {}, -1};
      result = builder_.op("relu", {a});
      break;
    }
    if (result) {
      bool aliases = op.kind == KnownOp::View || op.kind == KnownOp::InPlace;
      define(program, result, aliases ? program.storage[a] : nextStorage_++);
      op.results = {result};
    }
    bool mayFuse = op.kind != KnownOp::Sync && pick(5) < 3;
    program.classes.push_back(!mayFuse                   ? FusionClass::Outside
                              : op.kind == KnownOp::View ? FusionClass::FusibleView
                                                         : FusionClass::Fusible);
    program.ops.push_back(std::move(op));
  }

  std::mt19937 random_;
  TraceBuilder builder_;
  std::vector<ValueId> fresh_; // names that are not stale
  int nextStorage_ = 0;
};

/// Must the op at `i` stay before the one at `j` (i < j)?
bool mustKeepOrder(const RandomProgram &program, size_t i, size_t j) {
  const KnownOp &a = program.ops[i], &b = program.ops[j];
  auto touches = [&](const KnownOp &op, int storage) {
    return llvm::any_of(op.operands,
                        [&](ValueId value) { return program.storage.at(value) == storage; });
  };
  bool data = llvm::any_of(b.operands, [&](ValueId v) { return llvm::is_contained(a.results, v); });
  bool storage =
      (a.written >= 0 && touches(b, a.written)) || (b.written >= 0 && touches(a, b.written));
  bool host = a.kind == KnownOp::Sync && b.kind == KnownOp::Sync;
  bool end = j + 1 == program.ops.size();
  return data || storage || host || end;
}

/// The least number of regions over all orders, by dynamic programming over sets of executed ops.
unsigned leastRegions(const RandomProgram &program) {
  const size_t n = program.ops.size();
  std::vector<uint32_t> before(n, 0);
  for (size_t j = 0; j < n; ++j)
    for (size_t i = 0; i < j; ++i)
      if (mustKeepOrder(program, i, j))
        before[j] |= 1u << i;
  const unsigned impossible = 1000;
  // cost[set][open]: regions opened so far; is the last one still open?
  std::vector<std::array<unsigned, 2>> cost(size_t(1) << n, {impossible, impossible});
  cost[0][0] = 0;
  for (uint32_t set = 0; set < cost.size(); ++set)
    for (unsigned open : {0u, 1u})
      for (size_t i = 0; cost[set][open] < impossible && i < n; ++i) {
        if ((set >> i & 1) || (before[i] & ~set))
          continue;
        auto relax = [&](unsigned nextOpen, unsigned price) {
          unsigned &best = cost[set | 1u << i][nextOpen];
          best = std::min(best, cost[set][open] + price);
        };
        if (program.classes[i] == FusionClass::Outside)
          relax(0, 0);
        else if (program.classes[i] == FusionClass::Fusible)
          relax(1, open ? 0 : 1);
        else
          relax(open, 0);
      }
  return std::min(cost.back()[0], cost.back()[1]);
}

/// Runs a body on hashes: a storage holds a number, a pure op hashes its inputs, an in-place op
/// hashes into the storage.
class HashInterpreter {
public:
  explicit HashInterpreter(const Trace &trace) : trace_(trace) {}

  /// What the trace returns and prints, and what its arguments hold at the end.
  std::vector<uint64_t> run() {
    for (ValueId argument : trace_.arguments())
      bind(argument, makeStorage(llvm::hash_value(trace_.name(argument))));
    runBody(Trace::topBody());
    for (ValueId argument : trace_.arguments())
      observed_.push_back(storage_[names_[argument]]);
    return observed_;
  }

private:
  size_t makeStorage(uint64_t content) {
    storage_.push_back(content);
    return storage_.size() - 1;
  }
  void bind(ValueId value, size_t storage) { names_[value] = storage; }

  std::vector<size_t> runBody(BodyId body) {
    for (OpId id : trace_.ops(body)) {
      const Op &op = trace_.op(id);
      std::vector<size_t> inputs;
      uint64_t hash = llvm::hash_value(op.name());
      for (ValueId operand : op.operands()) {
        inputs.push_back(names_.at(operand));
        hash = llvm::hash_combine(hash, storage_[inputs.back()]);
      }
      if (op.name() == "return") {
        if (body == Trace::topBody())
          for (size_t input : inputs)
            observed_.push_back(storage_[input]);
        return inputs;
      }
      if (op.name() == "print")
        observed_.push_back(hash);
      else if (op.name() == "cuda_graph")
        runRegion(op, inputs);
      else if (op.name() == "detach")
        bind(op.result(), inputs[0]);
      else if (op.name() == "add_") {
        storage_[inputs[0]] = hash;
        bind(op.result(), inputs[0]);
      } else
        bind(op.result(), makeStorage(hash));
    }
    return {};
  }

  void runRegion(const Op &op, const std::vector<size_t> &inputs) {
    BodyId body = op.bodies().front();
    for (size_t i = 0; i < inputs.size(); ++i)
      bind(trace_.arguments(body)[i], inputs[i]);
    std::vector<size_t> results = runBody(body);
    for (size_t i = 0; i < results.size(); ++i)
      bind(op.result(i), results[i]);
  }

  const Trace &trace_;
  std::map<ValueId, size_t> names_;
  std::vector<uint64_t> storage_, observed_;
};

class RegionPartitionTest : public ::testing::Test {
protected:
  RegionPartitionTest() { llvm::cantFail(registerCoreOps(registry)); }

  /// Checks what every plan must keep, whichever partition made it.
  void checkPlan(RandomProgram &program, const RegionPlan &plan) {
    llvm::ArrayRef<OpId> original = program.trace.ops();
    std::map<OpId, size_t> position;
    for (size_t i = 0; i < plan.order.size(); ++i)
      position[plan.order[i]] = i;
    ASSERT_EQ(position.size(), original.size()) << "the order is no permutation";
    for (size_t j = 0; j < original.size(); ++j)
      for (size_t i = 0; i < j; ++i)
        if (mustKeepOrder(program, i, j)) {
          ASSERT_LT(position.at(original[i]), position.at(original[j]))
              << "ops " << i << " and " << j << " changed their order";
        }

    std::map<OpId, FusionClass> classOf;
    for (size_t i = 0; i < original.size(); ++i)
      classOf[original[i]] = program.classes[i];
    std::vector<bool> inside(plan.order.size(), false);
    for (RegionRange range : plan.ranges) {
      ASSERT_LT(range.begin, range.end);
      ASSERT_EQ(classOf[plan.order[range.begin]], FusionClass::Fusible);
      ASSERT_EQ(classOf[plan.order[range.end - 1]], FusionClass::Fusible);
      for (size_t i = range.begin; i < range.end; ++i) {
        ASSERT_NE(classOf[plan.order[i]], FusionClass::Outside);
        ASSERT_FALSE(inside[i]) << "regions overlap";
        inside[i] = true;
      }
    }
    for (size_t i = 0; i < plan.order.size(); ++i)
      if (classOf[plan.order[i]] == FusionClass::Fusible) {
        ASSERT_TRUE(inside[i]) << "a fusible op is in no region";
      }
  }

  /// Rewrites a copy by the plan and runs it.
  std::vector<uint64_t> runRewritten(const Trace &trace, const RegionPlan &plan) {
    Trace copy = trace.clone();
    copy.setOps(Trace::topBody(), plan.order);
    std::vector<OpId> regions =
        outlineRegions(copy, Trace::topBody(), plan.ranges, *registry.lookup(core::cudaGraphOp));
    CaptureDomainRef domain = CaptureDomain::create("test");
    for (size_t i = 0; i < regions.size(); ++i) {
      copy.setDomain(regions[i], domain);
      copy.setAttribute(regions[i], "region", int64_t(i));
    }
    copy.setProperties(TraceProperties::HasRegions);
    DiagnosticList diagnostics;
    verify(copy, diagnostics);
    if (diagnostics.hasErrors()) {
      std::string text;
      llvm::raw_string_ostream os(text);
      diagnostics.print(os);
      print(copy, os);
      ADD_FAILURE() << os.str();
    }
    return HashInterpreter(copy).run();
  }

  OpRegistry registry;
};

// 20,000 random programs: `dataflow` opens the least number of regions that any valid order needs,
// `consecutive` keeps program order and takes the maximal runs, both keep what the oracle says must
// keep its order, and both rewrites compute what the program computed.
TEST_F(RegionPartitionTest, AgreesWithTheOracle) {
  for (unsigned seed = 0; seed < 20000 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram program = ProgramGenerator(registry, seed).generate();
    StorageRoots roots(program.trace);
    std::vector<uint64_t> expected = HashInterpreter(program.trace).run();

    RegionPlan dataflow =
        partitionDataflow(program.trace, Trace::topBody(), program.classes, roots);
    checkPlan(program, dataflow);
    ASSERT_EQ(dataflow.ranges.size(), leastRegions(program));
    ASSERT_EQ(runRewritten(program.trace, dataflow), expected);

    RegionPlan consecutive = partitionConsecutive(program.trace, Trace::topBody(), program.classes);
    checkPlan(program, consecutive);
    ASSERT_TRUE(llvm::equal(consecutive.order, program.trace.ops()));
    unsigned runs = 0;
    bool open = false;
    for (FusionClass fusionClass : program.classes) {
      runs += fusionClass == FusionClass::Fusible && !open;
      open = fusionClass != FusionClass::Outside && (open || fusionClass == FusionClass::Fusible);
    }
    ASSERT_EQ(consecutive.ranges.size(), runs) << "not the maximal runs";
    ASSERT_EQ(runRewritten(program.trace, consecutive), expected);
  }
}

// The generator makes what the test is about: programs with writes, views, syncs, and some where
// moving ops saves regions.
TEST_F(RegionPartitionTest, GeneratorCoversTheCases) {
  unsigned saved = 0, writes = 0, views = 0, syncs = 0, several = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    RandomProgram program = ProgramGenerator(registry, seed).generate();
    StorageRoots roots(program.trace);
    size_t dataflow =
        partitionDataflow(program.trace, Trace::topBody(), program.classes, roots).ranges.size();
    size_t consecutive =
        partitionConsecutive(program.trace, Trace::topBody(), program.classes).ranges.size();
    saved += dataflow < consecutive;
    several += dataflow > 1;
    for (const KnownOp &op : program.ops) {
      writes += op.kind == KnownOp::InPlace;
      views += op.kind == KnownOp::View;
      syncs += op.kind == KnownOp::Sync;
    }
  }
  EXPECT_GT(saved, 100u);
  EXPECT_GT(several, 100u);
  EXPECT_GT(writes, 500u);
  EXPECT_GT(views, 500u);
  EXPECT_GT(syncs, 500u);
}

/// How many regions the dataflow partition makes of relu(%x), `op`, which gives %u and is in none,
/// and exp(%x).
size_t numRegionsAround(const std::string &op, const OpRegistry &registry) {
  llvm::Expected<Trace> trace = parseTrace("trace @t(%x: f32[4]) {\n"
                                           "  %a: f32[4] = relu(%x)\n" +
                                               op +
                                               "  %b: f32[4] = exp(%x)\n"
                                               "  return(%a, %u, %b)\n"
                                               "}\n",
                                           "t", registry);
  if (!trace) {
    ADD_FAILURE() << llvm::toString(trace.takeError());
    return 0;
  }
  StorageRoots roots(*trace);
  FusionClass classes[] = {FusionClass::Fusible, FusionClass::Outside, FusionClass::Fusible,
                           FusionClass::Outside};
  return partitionDataflow(*trace, Trace::topBody(), classes, roots).ranges.size();
}

// An op of which nothing is known keeps its place among all others, even where no data connects
// them.
TEST_F(RegionPartitionTest, UnknownEffectsAreABarrier) {
  EXPECT_EQ(numRegionsAround("  %u: f32[4] = \"their.op\"(%x)\n", registry), 2u);
}

// Its twin: an op with known effects and no data in common does not keep them apart.
TEST_F(RegionPartitionTest, UnrelatedOpsAreNoBarrier) {
  EXPECT_EQ(numRegionsAround("  %u: f32[4] = sin(%x)\n", registry), 1u);
}

} // namespace
