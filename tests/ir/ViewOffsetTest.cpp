//===- ViewOffsetTest.cpp - Where do views start? -------------------------===//
//
// Every offset is written down as PyTorch's storage_offset arithmetic gives it, and checked against
// an independent reading of what the op means: storage that holds 0, 1, 2 … is viewed, once through
// strides and the offset, once index by index.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/StorageRoots.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/Text.h"
#include "rondo/ir/TraceBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>

using namespace rondo;
using List = Attribute::List;
using Ints = std::vector<int64_t>;

namespace {

constexpr int64_t intMax = std::numeric_limits<int64_t>::max();
constexpr int64_t intMin = std::numeric_limits<int64_t>::min();

/// Elements of a tensor in row-major order, or a part of them.
struct Dense {
  Ints shape;
  std::vector<int64_t> elements;
};

struct View {
  std::string says;
  std::string op, operand;
  std::vector<std::pair<std::string, Attribute>> attributes;
  Ints offsets; ///< of each result
  /// What result `i` consists of. Null where strides alone say it.
  std::function<Dense(const Dense &x, unsigned i)> meaning;
};

} // namespace

/// What a tensor holds whose storage, from `offset`, holds offset, offset + 1 …
static Dense read(const TensorType &type, int64_t offset) {
  Dense dense{{}, {offset}};
  for (unsigned dim = 0; dim < type.rank(); ++dim) {
    std::vector<int64_t> elements;
    for (int64_t element : dense.elements)
      for (int64_t i = 0; i < type.shape[dim].value(); ++i)
        elements.push_back(element + i * type.strides[dim].value());
    dense.shape.push_back(type.shape[dim].value());
    dense.elements = std::move(elements);
  }
  return dense;
}

/// The elements of `x` whose indices `keep` accepts, in order, in another shape.
static Dense pick(const Dense &x, Ints shape, const std::function<bool(const Ints &)> &keep) {
  Dense picked{std::move(shape), {}};
  for (size_t i = 0; i < x.elements.size(); ++i) {
    Ints index(x.shape.size());
    size_t rest = i;
    for (size_t dim = index.size(); dim-- > 0; rest /= x.shape[dim])
      index[dim] = rest % x.shape[dim];
    if (keep(index))
      picked.elements.push_back(x.elements[i]);
  }
  return picked;
}

/// The indices from `start` to before `end` in steps, of dimension `dim`.
static auto sliced(unsigned dim, int64_t start, int64_t end, int64_t step) {
  return [=](const Dense &x, unsigned) {
    Ints shape = x.shape;
    shape[dim] = 0;
    for (int64_t i = start; i < end; i += step)
      ++shape[dim];
    return pick(x, shape, [=](const Ints &index) {
      return index[dim] >= start && index[dim] < end && (index[dim] - start) % step == 0;
    });
  };
}

/// Index `at` of dimension `dim`; of an op with several results, the result's number.
static auto selected(unsigned dim, std::optional<int64_t> at = std::nullopt) {
  return [=](const Dense &x, unsigned result) {
    Ints shape = x.shape;
    shape.erase(shape.begin() + dim);
    return pick(x, shape, [=](const Ints &index) { return index[dim] == at.value_or(result); });
  };
}

/// Parts of dimension `dim` of these sizes.
static auto parted(unsigned dim, Ints sizes) {
  return [=](const Dense &x, unsigned result) {
    int64_t start = 0;
    for (unsigned i = 0; i < result; ++i)
      start += sizes[i];
    return sliced(dim, start, start + sizes[result], 1)(x, result);
  };
}

/// The elements of a matrix whose column is `offset` more than their row; rows are dimension
/// `dim1`.
static auto diagonalOf(unsigned dim1, int64_t offset) {
  return [=](const Dense &x, unsigned) {
    Dense diagonal =
        pick(x, {0}, [=](const Ints &index) { return index[1 - dim1] - index[dim1] == offset; });
    diagonal.shape = {int64_t(diagonal.elements.size())};
    return diagonal;
  };
}

static Dense unchanged(const Dense &x, unsigned) {
  return x;
}

static std::vector<View> sliceViews() {
  const std::string rows = "f32[5, 6]", strided = "f32[5, 6; 1, 7]";
  const auto slice = [](int64_t dim, int64_t start, int64_t end, int64_t step = 1) {
    return std::vector<std::pair<std::string, Attribute>>{
        {"dim", dim}, {"start", start}, {"end", end}, {"step", step}};
  };
  return {
      {"starts at its start", "slice", rows, slice(0, 2, 4), {12}, sliced(0, 2, 4, 1)},
      {"multiplies by the stride", "slice", strided, slice(1, 2, 5, 2), {14}, sliced(1, 2, 5, 2)},
      {"counts dimensions from the end", "slice", rows, slice(-1, 1, 3), {1}, sliced(1, 1, 3, 1)},
      {"counts from the end", "slice", rows, slice(1, -4, -1), {2}, sliced(1, 2, 5, 1)},
      {"starts at 0 when before it", "slice", rows, slice(0, -9, 2), {0}, sliced(0, 0, 2, 1)},
      {"does so for any number", "slice", rows, slice(0, intMin, intMax), {0}, sliced(0, 0, 5, 1)},
      {"starts at the end when beyond", "slice", rows, slice(0, 9, 12), {30}, sliced(0, 5, 5, 1)},
      {"starts where it is told when empty",
       "slice",
       rows,
       slice(1, 4, 2),
       {4},
       sliced(1, 4, 4, 1)},
      {"starts at its default", "slice", rows, {}, {0}, unchanged},
      {"does not move in an empty dimension", "slice", "f32[0, 6]", slice(0, 3, 4), {0}, unchanged},
  };
}

static std::vector<View> otherViews() {
  const std::string rows = "f32[5, 6]", strided = "f32[5, 6; 1, 7]";
  const auto diagonal = [](int64_t offset, int64_t dim1 = 0, int64_t dim2 = 1) {
    return std::vector<std::pair<std::string, Attribute>>{
        {"offset", offset}, {"dim1", dim1}, {"dim2", dim2}};
  };
  return {
      {"is at its index", "select", rows, {{"dim", 0}, {"index", 3}}, {18}, selected(0, 3)},
      {"counts both from the end",
       "select",
       strided,
       {{"dim", -1}, {"index", -2}},
       {28},
       selected(1, 4)},
      {"has an index in empty tensors",
       "select",
       "f32[2, 0]",
       {{"dim", 0}, {"index", 1}},
       {1},
       selected(0, 1)},
      {"starts after the parts before",
       "split",
       rows,
       {{"sizes", List{2, 0, 3}}, {"dim", 0}},
       {0, 12, 12},
       parted(0, {2, 0, 3})},
      {"splits strided dimensions",
       "split",
       strided,
       {{"sizes", List{1, 5}}, {"dim", -1}},
       {0, 7},
       parted(1, {1, 5})},
      {"starts at each index", "unbind", "f32[3, 4]", {{"dim", 0}}, {0, 4, 8}, selected(0)},
      {"unbinds strided dimensions",
       "unbind",
       "f32[4, 3; 1, 5]",
       {{"dim", -1}},
       {0, 5, 10},
       selected(1)},
      {"is the main one by default", "diagonal", rows, {}, {0}, diagonalOf(0, 0)},
      {"goes right", "diagonal", rows, diagonal(2), {2}, diagonalOf(0, 2)},
      {"goes down", "diagonal", rows, diagonal(-2), {12}, diagonalOf(0, -2)},
      {"goes down in strided tensors", "diagonal", strided, diagonal(-2), {2}, diagonalOf(0, -2)},
      {"exchanges dimensions", "diagonal", rows, diagonal(1, -1, 0), {6}, diagonalOf(1, 1)},
      {"ends in the corner", "diagonal", rows, diagonal(-4), {24}, diagonalOf(0, -4)},
      {"stays when right of all", "diagonal", rows, diagonal(6), {0}, diagonalOf(0, 6)},
      {"stays when below all", "diagonal", rows, diagonal(-5), {0}, diagonalOf(0, -5)},
      {"stays for any number", "diagonal", rows, diagonal(intMin), {0}, diagonalOf(0, intMin)},
      {"counts from the storage",
       "as_strided",
       strided,
       {{"shape", List{2, 2}}, {"strides", List{3, 1}}, {"offset", 4}},
       {4},
       [](const Dense &, unsigned) {
         return Dense{{2, 2}, {4, 5, 7, 8}};
       }},
      {"is 0 without a hook",
       "reshape",
       rows,
       {{"shape", List{30}}},
       {0},
       [](const Dense &x, unsigned) {
         return Dense{{30}, x.elements};
       }},
      {"is 0 for expand",
       "expand",
       "f32[1, 3]",
       {{"shape", List{2, 3}}},
       {0},
       [](const Dense &, unsigned) {
         return Dense{{2, 3}, {0, 1, 2, 0, 1, 2}};
       }},
      {"is 0 for permute",
       "permute",
       "f32[2, 3]",
       {{"dims", List{1, 0}}},
       {0},
       [](const Dense &, unsigned) {
         return Dense{{3, 2}, {0, 3, 1, 4, 2, 5}};
       }},
      {"is 0 for squeeze",
       "squeeze",
       "f32[1, 3]",
       {{"dims", List{0}}},
       {0},
       [](const Dense &x, unsigned) {
         return Dense{{3}, x.elements};
       }},
      {"is 0 for unsqueeze",
       "unsqueeze",
       "f32[3]",
       {{"dim", 0}},
       {0},
       [](const Dense &x, unsigned) {
         return Dense{{1, 3}, x.elements};
       }},
      {"is 0 for detach", "detach", strided, {}, {0}, unchanged},
      {"is 0 for a new name", "zero_", strided, {}, {0}, unchanged},
  };
}

static std::vector<View> symbolicViews() {
  return {
      {"multiplies symbolic strides", "select", "f32[4, S]", {{"dim", 0}, {"index", 3}}, {}, {}},
      {"counts from a symbolic end", "slice", "f32[S]", {{"start", -2}}, {}, {}},
      {"takes symbolic sizes", "split", "f32[S+8]", {{"sizes", List{Dim::symbol("S"), 8}}}, {}, {}},
  };
}

namespace {
class ViewOffsetTest : public ::testing::Test {
protected:
  ViewOffsetTest() { llvm::cantFail(registerCoreOps(registry)); }

  /// A trace of an argument and one use of an op.
  Trace traceOf(const View &view) {
    TraceBuilder builder(registry);
    llvm::Expected<Type> type = parseType(view.operand, registry);
    ValueId x = builder.argument("x", llvm::cantFail(std::move(type)));
    std::vector<AttributeInit> attributes;
    for (const auto &[name, value] : view.attributes)
      attributes.emplace_back(name, value);
    auto results = builder.ops(view.op, {x}, attributes);
    builder.returnValues(results);
    llvm::Expected<Trace> trace = std::move(builder).finish();
    if (trace)
      return std::move(*trace);
    ADD_FAILURE() << llvm::toString(trace.takeError());
    return Trace(registry);
  }

  static std::vector<Dim> offsetsOf(const Trace &trace) {
    std::vector<Dim> offsets;
    OpId op = trace.ops(Trace::topBody()).front();
    for (unsigned i = 0; i < trace.op(op).results().size(); ++i)
      offsets.push_back(viewOffset(trace, op, i));
    return offsets;
  }

  OpRegistry registry;
};
} // namespace

// Each view starts where PyTorch's storage_offset has it, and names the elements that it should.
TEST_F(ViewOffsetTest, OfConstantShapes) {
  std::vector<View> views = sliceViews();
  for (View &view : otherViews())
    views.push_back(std::move(view));
  for (const View &view : views) {
    SCOPED_TRACE(view.op + " " + view.says);
    Trace trace = traceOf(view);
    std::vector<Dim> offsets = offsetsOf(trace);
    ASSERT_EQ(offsets, std::vector<Dim>(view.offsets.begin(), view.offsets.end()));
    const Op &op = trace.op(trace.ops(Trace::topBody()).front());
    Dense x = read(*trace.type(op.operand(0)).asTensor(), 0);
    for (unsigned i = 0; i < offsets.size(); ++i) {
      Dense expected = view.meaning(x, i);
      Dense result = read(*trace.type(op.result(i)).asTensor(), offsets[i].value());
      EXPECT_EQ(result.shape, expected.shape);
      EXPECT_EQ(result.elements, expected.elements);
    }
  }
}

// Every core op that makes views and does not start where its operand does is in the tables above.
TEST_F(ViewOffsetTest, TablesCoverEveryView) {
  std::set<std::string> covered;
  for (const View &view : sliceViews())
    covered.insert(view.op);
  for (const View &view : otherViews())
    covered.insert(view.op);
  for (const auto &spec : registry.ops()) {
    EXPECT_TRUE(!spec->isView() || covered.count(spec->name)) << spec->name;
  }
}

// Offsets of symbolic shapes are symbolic, and those of their parts follow.
TEST_F(ViewOffsetTest, OfSymbolicShapes) {
  const Dim s = Dim::symbol("S");
  const std::vector<std::vector<Dim>> expected = {{Dim(3) * s}, {s - Dim(2)}, {0, s}};
  const std::vector<View> views = symbolicViews();
  for (size_t i = 0; i < views.size(); ++i)
    EXPECT_EQ(offsetsOf(traceOf(views[i])), expected[i]) << views[i].says;
}

// The hook answers an op that inference refuses, and an offset that does not fit, with overflow.
TEST_F(ViewOffsetTest, OfWhatDoesNotVerify) {
  const TensorType x(DType::F32, {4}), huge(DType::F32, {4}, {intMax / 2}, Device::host());
  const auto offsetOf = [&](const TensorType &operand, int64_t dim) {
    const Type type(operand);
    const Type *operands[] = {&type};
    const NamedAttribute attributes[] = {{"dim", dim}, {"index", 3}};
    const OpSpec &spec = *registry.lookup("select");
    return spec.viewOffset(OpContext(spec, operands, attributes), 0);
  };
  EXPECT_EQ(offsetOf(x, 0), Dim(3));
  EXPECT_TRUE(offsetOf(x, 1).isOverflow());
  EXPECT_TRUE(offsetOf(huge, 0).isOverflow());
}
