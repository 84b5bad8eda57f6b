//===- IndexKernelsTest.cpp - Reading and updating by index on the host ---===//

#include "KernelTesting.h"

using namespace rondo;

namespace {

using Shape = std::vector<int64_t>;
using Values = std::vector<double>;
using Attributes = llvm::SmallVector<AttributeInit, 4>;
constexpr double infinity = std::numeric_limits<double>::infinity();

Arg indexArg(Shape shape, Values values) {
  return {std::move(shape), std::move(values), ArgKind::Index};
}
/// 0, 1, 2, ...
Arg countingArg(Shape shape) {
  Arg arg = randomArg(std::move(shape), 0);
  for (size_t i = 0; i < arg.values.size(); ++i)
    arg.values[i] = double(i);
  return arg;
}

/// What an op gives for f64 operands, worked out by hand.
struct Case {
  const char *op;
  std::vector<Arg> args;
  Attributes attributes;
  Values expected;
};

void check(const Case &test) {
  SCOPED_TRACE(test.op);
  std::vector<Values> results = resultsOf(test.op, test.args, test.attributes);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(relativeError(results[0], test.expected), 0)
      << testing::PrintToString(results[0]) << ", expected "
      << testing::PrintToString(test.expected);
}

/// x = [[0, 1, 2], [3, 4, 5]] and source = [[10, 20, 30], [40, 50, 60]]
const Arg x = {{2, 3}, {0, 1, 2, 3, 4, 5}}, source = {{2, 3}, {10, 20, 30, 40, 50, 60}};

// Every op that reads picks the elements that its indices name.
TEST(IndexKernels, Reads) {
  Arg cube = countingArg({2, 3, 2});
  const Case cases[] = {
      {"gather", {x, indexArg({2, 2}, {2, 0, 1, 1})}, {{"dim", 1}}, {2, 0, 4, 4}},
      {"gather", {x, indexArg({1, 3}, {1, 0, 1})}, {{"dim", -2}}, {3, 1, 5}},
      {"gather", {{{}, {7}}, indexArg({}, {0})}, {{"dim", 0}}, {7}},
      {"gather", {x, indexArg({0, 3}, {})}, {{"dim", 0}}, {}},
      {"index_select", {x, indexArg({3}, {2, 2, 0})}, {{"dim", 1}}, {2, 2, 0, 5, 5, 3}},
      {"index_select", {x, indexArg({}, {1})}, {{"dim", -2}}, {3, 4, 5}},
      {"index_select", {x, indexArg({0}, {})}, {{"dim", 1}}, {}},
      {"embedding", {x, indexArg({2, 1}, {1, 0})}, {}, {3, 4, 5, 0, 1, 2}},
      {"embedding", {x, indexArg({}, {1})}, {}, {3, 4, 5}},
      {"embedding", {x, indexArg({0}, {})}, {}, {}},
      {"index", {x, indexArg({2}, {1, -2})}, {}, {3, 4, 5, 0, 1, 2}},
      {"index", {x, noArg, indexArg({2}, {-1, 0})}, {}, {2, 0, 5, 3}},
      {"index", {x, indexArg({2, 1}, {1, 0}), indexArg({2}, {0, 2})}, {}, {3, 5, 0, 2}},
      // Indices that are no neighbours stand in front, neighbours where they are.
      {"index",
       {cube, indexArg({2}, {1, 0}), noArg, indexArg({2}, {0, 1})},
       {},
       {6, 8, 10, 1, 3, 5}},
      {"index", {cube, noArg, indexArg({2}, {2, 0}), indexArg({}, {1})}, {}, {5, 1, 11, 7}},
      {"one_hot", {indexArg({3}, {2, 0, 1})}, {{"classes", 3}}, {0, 0, 1, 1, 0, 0, 0, 1, 0}},
      {"one_hot", {indexArg({}, {1})}, {{"classes", 2}}, {0, 1}},
  };
  for (const Case &test : cases) {
    check(test);
    expectSameInAllDTypesAndLayouts(test.op, test.args, test.attributes);
    expectSameInAllResultLayouts(test.op, test.args, test.attributes);
  }
}

// Every update writes what its indices name and nothing else; of two writes to one place the later
// one stays, and sums have all of them. The op in place does the same.
TEST(IndexKernels, Updates) {
  const Case cases[] = {
      {"scatter", {x, indexArg({2, 2}, {2, 0, 1, 1}), source}, {{"dim", 1}}, {20, 1, 10, 3, 50, 5}},
      {"scatter", {x, indexArg({1, 2}, {1, 0}), source}, {{"dim", 0}}, {0, 20, 2, 10, 4, 5}},
      {"scatter", {{{}, {7}}, indexArg({}, {0}), {{}, {8}}}, {{"dim", 0}}, {8}},
      {"scatter_add",
       {x, indexArg({2, 2}, {2, 0, 1, 1}), source},
       {{"dim", -1}},
       {20, 1, 12, 3, 94, 5}},
      {"index_copy", {x, indexArg({2}, {1, 0}), source}, {{"dim", 0}}, {40, 50, 60, 10, 20, 30}},
      {"index_copy", {x, indexArg({}, {2}), {{2, 1}, {8, 9}}}, {{"dim", 1}}, {0, 1, 8, 3, 4, 9}},
      {"index_add",
       {x, indexArg({2}, {1, 1}), source},
       {{"dim", 0}, {"alpha", 2}},
       {0, 1, 2, 103, 144, 185}},
      {"index_put",
       {x, {{2}, {8, 9}}, indexArg({2}, {1, 0}), indexArg({2}, {-1, 0})},
       {},
       {9, 1, 2, 3, 4, 8}},
      {"index_put", {x, {{}, {7}}, noArg, indexArg({2}, {0, -1})}, {}, {7, 1, 7, 7, 4, 7}},
      {"index_put",
       {x, {{3}, {1, 2, 3}}, indexArg({2, 1}, {0, 0}), indexArg({3}, {0, 0, 2})},
       {{"accumulate", true}},
       {6, 1, 8, 3, 4, 5}},
      {"index_put", {x, {{0}, {}}, indexArg({0}, {}), indexArg({0}, {})}, {}, x.values},
  };
  for (const Case &test : cases) {
    check(test);
    expectSameInAllDTypesAndLayouts(test.op, test.args, test.attributes);
    expectSameInAllResultLayouts(test.op, test.args, test.attributes);
    std::string inPlace = std::string(test.op) + "_";
    check({inPlace.c_str(), test.args, test.attributes, test.expected});
    expectSameInAllDTypesAndLayouts(inPlace, test.args, test.attributes, {0});
  }
}

// select_scatter and slice_scatter write the part that their attributes name.
TEST(IndexKernels, UpdatesOfAPart) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  const Case cases[] = {
      {"select_scatter", {x, {{2}, {8, 9}}}, {{"dim", 1}, {"index", -1}}, {0, 1, 8, 3, 4, 9}},
      {"select_scatter", {x, {{3}, {7, 8, 9}}}, {{"dim", -2}, {"index", 1}}, {0, 1, 2, 7, 8, 9}},
      {"select_scatter", {{{1}, {4}}, {{}, {5}}}, {{"dim", 0}, {"index", 0}}, {5}},
      {"slice_scatter", {x, {{2, 2}, {6, 7, 8, 9}}}, {{"dim", 1}, {"step", 2}}, {6, 1, 7, 8, 4, 9}},
      {"slice_scatter", {x, {{1, 3}, {7, 8, 9}}}, {{"start", -1}}, {0, 1, 2, 7, 8, 9}},
      {"slice_scatter",
       {x, {{1, 3}, {7, 8, 9}}},
       {{"start", -9}, {"end", 1}, {"step", most}},
       {7, 8, 9, 3, 4, 5}},
      {"slice_scatter", {x, {{0, 3}, {}}}, {{"start", 9}}, x.values},
  };
  for (const Case &test : cases) {
    check(test);
    expectSameInAllDTypesAndLayouts(test.op, test.args, test.attributes);
    expectSameInAllResultLayouts(test.op, test.args, test.attributes);
  }
}

// An index out of range reads nan, or 0 where there is no nan, and writes nothing. Only the ops
// that count from the end take negative ones.
TEST(IndexKernels, OutOfRange) {
  double nan = std::nan("");
  Arg bad = indexArg({1, 4}, {3, -1, 1, 0x1p62}), badList = indexArg({4}, bad.values);
  Arg row{{1, 3}, {0, 1, 2}}, src{{1, 4}, {10, 20, 30, 40}};
  const Case cases[] = {
      {"gather", {row, bad}, {{"dim", 1}}, {nan, nan, 1, nan}},
      {"index_select", {row, badList}, {{"dim", 1}}, {nan, nan, 1, nan}},
      {"index", {row, noArg, badList}, {}, {nan, 2, 1, nan}},
      {"index", {row, indexArg({1}, {5}), indexArg({1}, {0})}, {}, {nan}},
      {"index", {{{0, 2}, {}}, indexArg({1}, {0})}, {}, {nan, nan}},
      {"embedding", {{{3, 1}, {0, 1, 2}}, badList}, {}, {nan, nan, 1, nan}},
      {"scatter", {row, bad, src}, {{"dim", 1}}, {0, 30, 2}},
      {"scatter_add", {row, bad, src}, {{"dim", 1}}, {0, 31, 2}},
      {"index_copy", {row, badList, src}, {{"dim", 1}}, {0, 30, 2}},
      {"index_add", {row, badList, src}, {{"dim", 1}}, {0, 31, 2}},
      {"index_put", {row, src, noArg, badList}, {}, {0, 30, 20}},
      {"embedding_backward", {{{4, 1}, src.values}, badList}, {{"num_weights", 3}}, {0, 30, 0}},
      {"one_hot", {indexArg({2}, {3, -1})}, {{"classes", 2}}, {0, 0, 0, 0}},
  };
  for (const Case &test : cases)
    check(test);
  Tensor integers = tensorOf(DType::I32, {3}, {5, 6, 7});
  Tensor index = tensorOf(DType::I64, {2}, {2, 3});
  EXPECT_EQ(valuesOf(runOp("gather", {integers, index}, {{"dim", 0}})[0]), (Values{7, 0}));
}

// Indices may be i32.
TEST(IndexKernels, NarrowIndices) {
  Tensor values = tensorOf(DType::F32, {3}, {5, 6, 7}), index = tensorOf(DType::I32, {2}, {2, -1});
  EXPECT_EQ(valuesOf(runOp("index", {values, index})[0]), (Values{7, 7}));
}

// Moving keeps every bit of every dtype; sums of integers wrap, those of bool are an or.
TEST(IndexKernels, OtherDTypes) {
  for (DType dtype : {DType::Bool, DType::U8, DType::I8, DType::I16, DType::I32, DType::I64}) {
    Tensor values = tensorOf(dtype, {3}, {0, 1, 1}), index = tensorOf(DType::I64, {2}, {0, 0});
    Tensor added = tensorOf(dtype, {2}, {1, 1});
    EXPECT_EQ(valuesOf(runOp("gather", {values, index}, {{"dim", 0}})[0]), (Values{0, 0}));
    EXPECT_EQ(valuesOf(runOp("scatter", {values, index, added}, {{"dim", 0}})[0]),
              (Values{1, 1, 1}));
    Values sums = valuesOf(runOp("scatter_add", {values, index, added}, {{"dim", 0}})[0]);
    EXPECT_EQ(sums, (Values{dtype == DType::Bool ? 1.0 : 2.0, 1, 1}));
  }
  Tensor bytes = tensorOf(DType::I8, {1}, {100}), zero = tensorOf(DType::I64, {1}, {0});
  EXPECT_EQ(valuesOf(runOp("index_add", {bytes, zero, bytes}, {{"dim", 0}})[0]), Values{-56});
  int64_t least = std::numeric_limits<int64_t>::min();
  Tensor large = tensorOf(DType::I64, {1}, {0});
  *large.ref().as<int64_t>() = least + 1; // no double
  EXPECT_EQ(*runOp("gather", {large, zero}, {{"dim", 0}})[0].asTensor()->ref().as<int64_t>(),
            least + 1);
  EXPECT_EQ(
      *runOp("index_add", {large, zero, large}, {{"dim", 0}})[0].asTensor()->ref().as<int64_t>(),
      2);
}

// Sums of 16-bit floats are rounded once: 4096 ones added to 0 give 4096.
TEST(IndexKernels, SumsAreRoundedOnce) {
  for (DType dtype : {DType::F16, DType::BF16}) {
    Tensor zero = tensorOf(dtype, {1}, {0}), ones = tensorOf(dtype, {4096}, Values(4096, 1)),
           index = tensorOf(DType::I64, {4096}, Values(4096, 0));
    EXPECT_EQ(valuesOf(runOp("index_add", {zero, index, ones}, {{"dim", 0}})[0]), Values{4096});
    Tensor grad = tensorOf(dtype, {4096, 1}, Values(4096, 1));
    EXPECT_EQ(valuesOf(runOp("embedding_backward", {grad, index}, {{"num_weights", 1}})[0]),
              Values{4096});
  }
}

// In place, the source may share memory with what is written: it counts as it was before.
TEST(IndexKernels, SourceMayOverlap) {
  auto run = [](llvm::StringRef op, Attributes attributes) {
    Tensor whole = tensorOf(DType::F32, {4}, {1, 2, 3, 4});
    auto part = [&](int64_t first) {
      return Tensor(whole.storage(), first * 4, DType::F32, {3}, {1});
    };
    Tensor index = tensorOf(DType::I64, {3}, {0, 1, 2});
    std::vector<OperandInit> operands{part(1), index, part(0)};
    if (op == "index_put_")
      std::swap(operands[1], operands[2]);
    runOp(op, operands, attributes);
    return valuesOf(whole);
  };
  for (const char *op : {"scatter_", "index_copy_"})
    EXPECT_EQ(run(op, {{"dim", 0}}), (Values{1, 1, 2, 3}));
  for (const char *op : {"scatter_add_", "index_add_"})
    EXPECT_EQ(run(op, {{"dim", 0}}), (Values{1, 3, 5, 7}));
  EXPECT_EQ(run("index_put_", {}), (Values{1, 1, 2, 3}));
  EXPECT_EQ(run("index_put_", {{"accumulate", true}}), (Values{1, 3, 5, 7}));
}

// embedding_backward sums what each row got, leaves out the padding, and divides by how often a row
// was named if asked to.
TEST(IndexKernels, EmbeddingBackward) {
  Arg grad{{3, 2}, {1, 2, 3, 4, 5, 6}}, indices = indexArg({3}, {2, 0, 2});
  AttributeInit rows{"num_weights", 3};
  const Case cases[] = {
      {"embedding_backward", {grad, indices}, {rows}, {3, 4, 0, 0, 6, 8}},
      {"embedding_backward", {grad, indices}, {rows, {"padding_idx", 2}}, {3, 4, 0, 0, 0, 0}},
      {"embedding_backward",
       {grad, indices},
       {rows, {"scale_grad_by_freq", true}},
       {3, 4, 0, 0, 3, 4}},
      {"embedding_backward", {{{0, 2}, {}}, indexArg({0}, {})}, {rows}, Values(6, 0)},
  };
  for (const Case &test : cases) {
    check(test);
    expectSameInAllDTypesAndLayouts(test.op, test.args, test.attributes);
    expectSameInAllResultLayouts(test.op, test.args, test.attributes);
  }
}

// sort and topk order along any dimension; equal values keep their order, nan is the greatest.
TEST(IndexKernels, Sorts) {
  double nan = std::nan("");
  Arg row{{6}, {2, nan, 1, 2, infinity, -infinity}};
  struct {
    const char *op;
    Arg x;
    Attributes attributes;
    Values values, indices;
  } cases[] = {
      {"sort", row, {}, {-infinity, 1, 2, 2, infinity, nan}, {5, 2, 0, 3, 4, 1}},
      {"sort",
       row,
       {{"descending", true}},
       {nan, infinity, 2, 2, 1, -infinity},
       {1, 4, 0, 3, 2, 5}},
      {"sort", {{2, 2}, {4, 1, 3, 2}}, {{"dim", 0}}, {3, 1, 4, 2}, {1, 0, 0, 1}},
      {"sort", {{}, {3}}, {}, {3}, {0}},
      {"sort", {{0, 2}, {}}, {{"dim", 0}}, {}, {}},
      {"topk", row, {{"k", 3}}, {nan, infinity, 2}, {1, 4, 0}},
      {"topk", row, {{"k", 2}, {"largest", false}}, {-infinity, 1}, {5, 2}},
      {"topk", {{2, 3}, {4, 1, 3, 2, 5, 0}}, {{"k", 1}, {"dim", 0}}, {4, 5, 3}, {0, 1, 0}},
      {"topk", {{2, 3}, {4, 1, 3, 2, 5, 0}}, {{"k", 2}}, {4, 3, 5, 2}, {0, 2, 1, 0}},
      {"topk", row, {{"k", 0}}, {}, {}},
  };
  for (const auto &test : cases) {
    SCOPED_TRACE(test.op);
    std::vector<Values> results = resultsOf(test.op, {test.x}, test.attributes);
    EXPECT_EQ(relativeError(results[0], test.values), 0) << testing::PrintToString(results[0]);
    EXPECT_EQ(results[1], test.indices);
    expectSameInAllDTypesAndLayouts(test.op, {test.x}, test.attributes);
    expectSameInAllResultLayouts(test.op, {test.x}, test.attributes);
  }
}

// Integers are ordered exactly, beyond what a double tells apart.
TEST(IndexKernels, SortsLargeIntegers) {
  Tensor integers = tensorOf(DType::I64, {2}, {0, 0});
  int64_t *data = integers.ref().as<int64_t>();
  data[0] = (int64_t(1) << 60) + 1;
  data[1] = int64_t(1) << 60;
  EXPECT_EQ(valuesOf(runOp("sort", {integers})[1]), (Values{1, 0}));
}

// 8-bit floats are declined, bool is not.
TEST(IndexKernels, DeclinesDTypes) {
  auto why = [](llvm::StringRef op, DType dtype) {
    return whyDeclined(op, {{dtype, {2, 2}}, {DType::I64, {1}}},
                       op == "index_select" ? Attributes{{"dim", 0}} : Attributes());
  };
  for (const char *op : {"index_select", "embedding", "index"}) {
    EXPECT_EQ(why(op, DType::F8E4M3), "has no host kernel for dtype f8e4m3");
    EXPECT_EQ(why(op, DType::Bool), "");
  }
}

} // namespace
