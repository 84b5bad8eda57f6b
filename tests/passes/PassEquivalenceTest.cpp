//===- PassEquivalenceTest.cpp - Passes keep what a pair does -------------===//
//
// Random pairs with views, copies, writes in place, regions and an op that nothing is known of are
// run before and after each pass, on a machine of its own with storages, offsets and strides. The
// caller is a difficult one: arguments may overlap, and between forward and backward it writes to
// everything it holds. What it can see must not change: the numbers in all it holds, which of its
// tensors are one storage, and what the unknown op does.
//
// The machine is strict about names, so that it tells whether `del`s are right: a name is not used
// after it ended, and at the end of a body no name is left but of arguments and results.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/TraceBuilder.h"
#include "rondo/passes/Passes.h"

#include "support/PassTesting.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <random>

using namespace rondo;

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

namespace {

/// A tensor: some elements of a storage. `start` is where its storage root begins.
struct Tensor {
  size_t storage = 0;
  int64_t offset = 0, start = 0;
  llvm::SmallVector<int64_t, 4> shape, strides;
};
using Tensors = std::vector<std::optional<Tensor>>; // nothing: absent

class Machine {
public:
  static constexpr int64_t modulus = 10007;

  Tensor allocate(const TensorType &type) {
    Tensor tensor;
    tensor.shape = *asConstants(type.shape);
    tensor.strides = *asConstants(type.strides);
    size_t size = 1;
    for (size_t i = 0; i < tensor.shape.size(); ++i)
      size += (tensor.shape[i] - 1) * tensor.strides[i];
    tensor.storage = storages_.size();
    storages_.emplace_back(size);
    return tensor;
  }

  /// The places of the elements in the storage, in order.
  static std::vector<int64_t> places(const Tensor &tensor) {
    std::vector<int64_t> places{tensor.offset};
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      std::vector<int64_t> next;
      for (int64_t place : places)
        for (int64_t k = 0; k < tensor.shape[i]; ++k)
          next.push_back(place + k * tensor.strides[i]);
      places = std::move(next);
    }
    return places;
  }

  std::vector<int64_t> read(const Tensor &tensor) const {
    std::vector<int64_t> elements;
    for (int64_t place : places(tensor))
      elements.push_back(storages_[tensor.storage][place]);
    return elements;
  }
  void write(const Tensor &tensor, const std::vector<int64_t> &elements) {
    std::vector<int64_t> where = places(tensor);
    for (size_t i = 0; i < where.size(); ++i)
      storages_[tensor.storage][where[i]] = ((elements[i] % modulus) + modulus) % modulus;
  }
  void addTo(const Tensor &tensor, int64_t amount) {
    for (int64_t &element : storages_[tensor.storage])
      element = (element + amount) % modulus;
  }
  /// From now on "lib.touch" knows the tensor.
  void expose(const Tensor &tensor) {
    if (!llvm::is_contained(exposed_, tensor.storage))
      exposed_.push_back(tensor.storage);
  }

  Tensors run(const Trace &trace, const Tensors &arguments) {
    return runBody(trace, Trace::topBody(), arguments);
  }

private:
  using Names = std::map<ValueId, Tensor>;

  Tensors runBody(const Trace &trace, BodyId body, const Tensors &arguments) {
    Names names;
    for (size_t i = 0; i < arguments.size(); ++i)
      names[trace.arguments(body)[i]] = *arguments[i];
    for (OpId id : trace.ops(body)) {
      const Op &op = trace.op(id);
      Tensors operands;
      for (ValueId operand : op.operands()) {
        EXPECT_TRUE(!operand || names.count(operand)) << "used after its name ended";
        operands.push_back(operand ? std::optional(names[operand]) : std::nullopt);
      }
      if (op.spec().terminator) {
        checkEnded(trace, body, op, names);
        return operands;
      }
      if (op.name() == core::delOp) {
        for (ValueId operand : op.operands())
          names.erase(operand);
        continue;
      }
      Tensors results = runOp(trace, op, operands);
      for (size_t i = 0; i < results.size(); ++i)
        names[op.result(i)] = *results[i];
    }
    ADD_FAILURE() << "a body without terminator";
    return {};
  }

  static void checkEnded(const Trace &trace, BodyId body, const Op &ret, const Names &names) {
    if (!trace.has(TraceProperties::HasDels))
      return;
    for (const auto &[value, tensor] : names)
      EXPECT_TRUE(llvm::is_contained(ret.operands(), value) ||
                  llvm::is_contained(trace.arguments(body), value))
          << "a name outlives its body";
  }

  Tensors runOp(const Trace &trace, const Op &op, const Tensors &operands) {
    if (op.spec().bodies == BodyKind::Region) {
      Tensors arguments = operands;
      for (std::optional<Tensor> &argument : arguments)
        argument->start = argument->offset; // inside, an argument is the start of its storage
      Tensors results = runBody(trace, op.bodies().front(), arguments);
      for (std::optional<Tensor> &result : results)
        result->start = 0;
      return results;
    }
    if (op.name() == "lib.touch") {
      for (const std::optional<Tensor> &operand : operands)
        expose(*operand);
      for (size_t storage : exposed_)
        for (int64_t &element : storages_[storage])
          element = (element * 3 + 1) % modulus;
      return {};
    }
    if (op.spec().isView())
      return {runView(trace, op, *operands[0])};
    bool isInPlace = !op.spec().writes.empty();
    Tensor result = isInPlace ? *operands[0] : allocate(trace.tensorType(op.result()));
    write(result, compute(op, operands, places(result).size()));
    return {result};
  }

  std::vector<int64_t> compute(const Op &op, const Tensors &operands, size_t size) const {
    std::vector<int64_t> a(size), b(size);
    if (!operands.empty())
      a = read(*operands[0]);
    if (operands.size() > 1)
      b = read(*operands[1]);
    llvm::StringRef name = op.name();
    for (size_t i = 0; i < size; ++i) {
      if (name == "neg")
        a[i] = -a[i];
      else if (name == "exp")
        a[i] = a[i] * 31 + 7;
      else if (name == "mul")
        a[i] = a[i] * b[i];
      else if (name == "sub")
        a[i] = a[i] - b[i];
      else if (name == "add_")
        a[i] = a[i] + b[i];
      else if (name == "zero_")
        a[i] = 0;
      else if (name == "full")
        a[i] = *op.attribute("value")->asInt();
      else
        EXPECT_TRUE(name == "clone" || name == "cast" || name == "contiguous") << name.str();
    }
    return a;
  }

  /// Shape and strides are those of the result type; only the offset is left to find.
  static Tensor runView(const Trace &trace, const Op &op, Tensor tensor) {
    if (op.name() == "slice") {
      int64_t dim = *op.attribute("dim")->asInt(), start = *op.attribute("start")->asInt();
      dim += dim < 0 ? tensor.shape.size() : 0;
      start += start < 0 ? tensor.shape[dim] : 0;
      tensor.offset += std::min(start, tensor.shape[dim]) * tensor.strides[dim];
    } else if (op.name() == "as_strided") {
      tensor.offset = tensor.start + *op.attribute("offset")->asInt();
    }
    const TensorType &type = trace.tensorType(op.result());
    tensor.shape = *asConstants(type.shape);
    tensor.strides = *asConstants(type.strides);
    return tensor;
  }

  std::vector<std::vector<int64_t>> storages_;
  std::vector<size_t> exposed_;
};

//===----------------------------------------------------------------------===//
// The caller
//===----------------------------------------------------------------------===//

/// Runs forward and backward and writes down all that can be seen from outside.
class Caller {
public:
  explicit Caller(unsigned seed) : random_(seed) {}

  std::vector<int64_t> observe(const TracePair &pair) {
    Tensors arguments = makeArguments(pair.forward());
    Tensors results = machine_.run(pair.forward(), arguments);
    std::map<SavedId, Tensor> saved;
    for (size_t i = 0; i < results.size(); ++i)
      if (SavedId id = pair.forward().savedReturn(i))
        saved[id] = *results[i];
      else
        held_.push_back(*results[i]);
    look();
    for (size_t i = 0; i < held_.size(); ++i)
      machine_.addTo(held_[i], 1000 + i);
    if (pair.hasBackward())
      observeBackward(pair.backward(), saved);
    return std::move(seen_);
  }

private:
  Tensors makeArguments(const Trace &trace, const std::map<SavedId, Tensor> &saved = {}) {
    Tensors arguments;
    for (size_t i = 0; i < trace.arguments().size(); ++i) {
      if (SavedId id = trace.savedArgument(i)) {
        arguments.push_back(saved.at(id));
        continue;
      }
      // One in four is the argument before.
      bool overlaps = i > 0 && !trace.savedArgument(i - 1) && random_() % 4 == 0;
      arguments.push_back(overlaps ? *arguments.back()
                                   : machine_.allocate(trace.tensorType(trace.arguments()[i])));
      for (size_t k = 0; !overlaps && k < 8; ++k)
        machine_.addTo(*arguments.back(), random_() % 100);
      machine_.expose(*arguments.back());
      held_.push_back(*arguments.back());
    }
    return arguments;
  }

  void observeBackward(const Trace &backward, const std::map<SavedId, Tensor> &saved) {
    Tensors arguments = makeArguments(backward, saved);
    for (const std::optional<Tensor> &result : machine_.run(backward, arguments))
      held_.push_back(*result);
    look();
  }

  void look() {
    for (const Tensor &tensor : held_) {
      llvm::append_range(seen_, machine_.read(tensor));
      size_t first = 0;
      while (held_[first].storage != tensor.storage)
        ++first;
      seen_.push_back(first);
    }
  }

  std::mt19937 random_;
  Machine machine_;
  std::vector<Tensor> held_; ///< all that the caller has
  std::vector<int64_t> seen_;
};

//===----------------------------------------------------------------------===//
// Random pairs
//===----------------------------------------------------------------------===//

class Generator {
public:
  Generator(const OpRegistry &registry, unsigned seed) : registry_(registry), random_(seed) {}

  /// Nothing if the pair would break a rule: where names of one storage meet in a region, the
  /// generator does not keep track.
  std::optional<TracePair> generate() {
    TraceBuilder forward(registry_, "f");
    Values values = addArguments(forward);
    addOps(forward, values, 4 + pick(16));
    Values returned = choose(forward, values, 1 + pick(4));
    size_t numGiven = returned.size();
    bool hasBackward = pick(4) != 0;
    if (hasBackward)
      llvm::append_range(returned, choose(forward, values, pick(4)));
    if (forward.hasErrors())
      return std::nullopt;
    forward.returnValues(returned);

    TraceBuilder backward(registry_, "b");
    Values inputs;
    for (size_t i = numGiven; i < returned.size(); ++i)
      inputs.push_back(backward.argument("s", forward.trace().type(returned[i])));
    llvm::append_range(inputs, addArguments(backward));
    addOps(backward, inputs, 2 + pick(10));
    backward.returnValues(choose(backward, inputs, 1 + pick(3)));

    std::optional<Trace> first = finish(std::move(forward)), second = finish(std::move(backward));
    if (!first || !second)
      return std::nullopt;
    if (!hasBackward)
      return TracePair(std::move(*first));
    TracePair pair(std::move(*first), std::move(*second));
    for (size_t i = numGiven; i < returned.size(); ++i)
      pair.linkSaved(i, i - numGiven);
    return pair;
  }

private:
  using Values = llvm::SmallVector<ValueId, 4>;

  unsigned pick(unsigned below) { return random_() % below; }
  ValueId pick(const Values &values) { return values[pick(values.size())]; }

  static std::optional<Trace> finish(TraceBuilder builder) {
    llvm::Expected<Trace> trace = std::move(builder).finish();
    if (trace)
      return std::move(*trace);
    llvm::consumeError(trace.takeError());
    return std::nullopt;
  }

  Values addArguments(TraceBuilder &builder) {
    Values values;
    for (unsigned i = 0; i < 2; ++i)
      values.push_back(builder.argument("x", TensorType(DType::F32, {2, 4})));
    return values;
  }

  Values choose(TraceBuilder &builder, const Values &values, unsigned count) {
    Values chosen;
    for (unsigned i = 0; i < count && !builder.hasErrors(); ++i)
      if (ValueId value = builder.current(pick(values)))
        chosen.push_back(value);
    return chosen;
  }

  void addOps(TraceBuilder &builder, Values &values, unsigned count) {
    for (unsigned i = 0; i < count && !builder.hasErrors(); ++i)
      if (ValueId value = addOp(builder, values))
        values.push_back(value);
  }

  ValueId addOp(TraceBuilder &builder, Values &values) {
    ValueId x = pick(values);
    switch (pick(16)) {
    case 0:
    case 1:
      return builder.op("neg", {x});
    case 2:
      return builder.op("exp", {x});
    case 3:
      return addBinary(builder, values, x, pick(2) ? "mul" : "sub");
    case 4:
      return builder.op("full", {},
                        {{"shape", llvm::ArrayRef<int64_t>({2, 4})},
                         {"value", int64_t(pick(2))},
                         {"dtype", DType::F32}});
    case 5:
    case 6:
      return builder.op("clone", {x}, {{"contiguous", bool(pick(2))}});
    case 7:
      return pick(2) ? builder.op("cast", {x}, {{"dtype", DType::F32}})
                     : builder.op("contiguous", {x});
    case 8:
    case 9:
      return isDense(builder, x) ? addBinary(builder, values, x, "add_") : ValueId();
    case 10:
      return isDense(builder, x) ? builder.op("zero_", {x}) : ValueId();
    case 11:
      if (pick(2) == 0)
        builder.ops("lib.touch", pick(2) ? llvm::ArrayRef<ValueId>() : llvm::ArrayRef<ValueId>(x));
      return {};
    case 12:
      return addRegion(builder, values);
    default:
      return addView(builder, x);
    }
  }

  static bool isDense(const TraceBuilder &builder, ValueId x) {
    return llvm::none_of(builder.trace().tensorType(x).strides,
                         [](const Dim &stride) { return stride.isConstant(0); });
  }

  ValueId addBinary(TraceBuilder &builder, const Values &values, ValueId x, llvm::StringRef name) {
    const TensorType &type = builder.trace().tensorType(x);
    Values fitting;
    for (ValueId value : values)
      if (builder.trace().tensorType(value).shape == type.shape)
        fitting.push_back(value);
    return builder.op(name, {x, pick(fitting)});
  }

  ValueId addView(TraceBuilder &builder, ValueId x) {
    const TensorType type = builder.trace().tensorType(x);
    unsigned rank = type.rank();
    switch (pick(7)) {
    case 0:
    case 1: {
      if (!type.isContiguous())
        return {};
      if (pick(2) == 0)
        return builder.op("reshape", {x}, {{"shape", llvm::ArrayRef<int64_t>({-1})}});
      return builder.op("reshape", {x}, {{"shape", llvm::ArrayRef<int64_t>({1, -1})}});
    }
    case 2: {
      llvm::SmallVector<int64_t, 4> dims;
      for (unsigned i = 0; i < rank; ++i)
        dims.push_back((i + 1) % rank);
      return builder.op("permute", {x}, {{"dims", dims}});
    }
    case 3:
      return builder.op("detach", {x});
    case 4:
      if (rank == 0 || type.shape[0].value() < 2)
        return {};
      return builder.op("slice", {x},
                        {{"start", int64_t(pick(2))}, {"step", int64_t(1 + pick(2))}});
    case 5:
      return rank < 4 ? builder.op("unsqueeze", {x}, {{"dim", int64_t(pick(rank + 1))}})
                      : ValueId();
    default: {
      llvm::SmallVector<int64_t, 4> dims;
      for (unsigned i = 0; i < rank; ++i)
        dims.push_back(i);
      return builder.op("squeeze", {x}, {{"dims", dims}});
    }
    }
  }

  ValueId addRegion(TraceBuilder &builder, Values &values) {
    auto body = [&](TraceBuilder &inner, llvm::ArrayRef<ValueId> arguments) {
      Values own(arguments.begin(), arguments.end());
      addOps(inner, own, 2 + pick(5));
      return choose(inner, own, 2);
    };
    Values results = builder.opWithBodies("fused", {pick(values), pick(values)}, {},
                                          {TraceBuilder::BuildBody(body)});
    if (results.size() != 2)
      return {};
    values.push_back(results[0]);
    return results[1];
  }

  const OpRegistry &registry_;
  std::mt19937 random_;
};

//===----------------------------------------------------------------------===//
// The tests
//===----------------------------------------------------------------------===//

using Create = std::unique_ptr<Pass> (*)();

class PassEquivalenceTest : public ::testing::TestWithParam<std::pair<const char *, Create>> {
protected:
  PassEquivalenceTest() {
    llvm::cantFail(registerCoreOps(registry));
    OpSpec touch;
    touch.name = "lib.touch";
    touch.operands = {{"operands", OperandKind::Any, Arity::Variadic}};
    touch.resources = {{ResourceKind::Unknown, "", true}};
    llvm::cantFail(registry.registerOp(std::move(touch)));
  }

  static std::string textOf(const TracePair &pair) {
    std::string text;
    llvm::raw_string_ostream os(text);
    print(pair, os);
    return os.str();
  }

  /// Runs the pass on `pair`. Returns true if it changed anything.
  bool apply(TracePair &pair) {
    PassManager manager;
    manager.setCheckUnchanged(true);
    manager.add(GetParam().second());
    std::string before = textOf(pair);
    llvm::Expected<TracePair> result = manager.run(std::move(pair));
    if (!result) {
      ADD_FAILURE() << llvm::toString(result.takeError()) << "\n" << before;
      pair = TracePair(Trace(registry));
      return false;
    }
    pair = std::move(*result);
    return manager.timings().back().changed;
  }

  OpRegistry registry;
};

} // namespace

// The caller sees the same before and after, and a second run finds nothing to do.
TEST_P(PassEquivalenceTest, TheCallerSeesNoDifference) {
  constexpr unsigned wanted = 1000;
  unsigned numPairs = 0, numChanged = 0;
  for (unsigned seed = 0; numPairs < wanted && seed < 3 * wanted && !HasFailure(); ++seed) {
    std::optional<TracePair> pair = Generator(registry, seed).generate();
    if (!pair)
      continue;
    ++numPairs;
    std::string before = textOf(*pair);
    std::vector<int64_t> expected = Caller(seed).observe(*pair);
    numChanged += apply(*pair);
    EXPECT_EQ(Caller(seed).observe(*pair), expected) << "seed " << seed << "\n"
                                                     << before << "becomes\n"
                                                     << textOf(*pair);
    EXPECT_FALSE(apply(*pair)) << "seed " << seed << ": a second run changes something\n" << before;
  }
  if (!HasFailure()) {
    EXPECT_EQ(numPairs, wanted) << "most pairs must be valid";
    EXPECT_GT(numChanged, wanted / 4) << "most pairs give the pass nothing to do";
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, PassEquivalenceTest,
                         ::testing::Values(std::pair{"dce", &createDeadCodeEliminationPass},
                                           std::pair{"cse",
                                                     &createCommonSubexpressionEliminationPass},
                                           std::pair{"canonicalise", &createCanonicalisePass},
                                           std::pair{"del", &createDelPass}),
                         [](const auto &info) { return std::string(info.param.first); });
