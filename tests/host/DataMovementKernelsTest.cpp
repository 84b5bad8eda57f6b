//===- DataMovementKernelsTest.cpp ----------------------------------------===//

#include "RunOp.h"

#include <numeric>

using namespace rondo;

namespace {

using List = std::vector<double>;
using Ints = llvm::SmallVector<int64_t, 4>;

constexpr DType dtypes[] = {DType::F32, DType::F64, DType::BF16, DType::I64, DType::U8};

List iota(size_t n, double first = 1) {
  List values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// Calls `fn(x)` for tensors 1, 2, ... of `shape`, in every dtype and layout.
template <typename Fn> void forEachInput(const Ints &shape, Fn &&fn) {
  size_t n = 1;
  for (int64_t size : shape)
    n *= size;
  for (DType dtype : dtypes)
    for (Layout layout : allLayouts) {
      SCOPED_TRACE((dtypeName(dtype) + " " + layoutName(layout)).str());
      fn(withLayout(tensorOf(dtype, shape, iota(n)), layout));
    }
}

/// Copies have the operand's elements, row-major or with the operand's strides.
TEST(DataMovementKernels, Copies) {
  for (const Ints &shape : {Ints{2, 3}, Ints{}, Ints{0, 2}, Ints{2, 1, 3}}) {
    forEachInput(shape, [](const Tensor &x) {
      for (const char *op : {"clone", "contiguous"}) {
        Value out = runOp(op, {x})[0];
        EXPECT_EQ(valuesOf(out), valuesOf(x));
        EXPECT_TRUE(out.asTensor()->isContiguous());
        EXPECT_TRUE(out.asTensor()->numElements() == 0 || out.asTensor()->data() != x.data());
      }
      Value same = runOp("clone", {x}, {{"contiguous", false}})[0];
      EXPECT_EQ(valuesOf(same), valuesOf(x));
      EXPECT_EQ(valuesOf(runOp("to_device", {x}, {{"device", Device::host()}})[0]), valuesOf(x));
    });
  }
  Tensor columns = withLayout(tensorOf(DType::F32, {2, 3}, iota(6)), Layout::Transposed);
  Value kept = runOp("clone", {columns}, {{"contiguous", false}})[0];
  EXPECT_EQ(kept.asTensor()->strides(), columns.strides());
}

/// Copies without a conversion keep all bits, of 8-bit floats, too.
TEST(DataMovementKernels, CopiesKeepBits) {
  Tensor x = poisonedTensor(TensorType(DType::F8E4M3, {3}));
  x.data()[1] = std::byte(0x5a);
  const Tensor out = *runOp("clone", {x})[0].asTensor();
  EXPECT_EQ(std::memcmp(out.data(), x.data(), 3), 0);
}

/// cat puts operands after one another along any dimension, promotes their dtypes, and takes empty
/// ones.
TEST(DataMovementKernels, Cat) {
  forEachInput({2, 2}, [](const Tensor &x) {
    List v = valuesOf(x);
    Tensor y = tensorOf(x.dtype(), {2, 1}, {8, 9}), z = tensorOf(x.dtype(), {1, 2}, {8, 9});
    EXPECT_EQ(valuesOf(runOp("cat", {x, y, x}, {{"dim", 1}})[0]),
              (List{v[0], v[1], 8, v[0], v[1], v[2], v[3], 9, v[2], v[3]}));
    EXPECT_EQ(valuesOf(runOp("cat", {x, z}, {{"dim", -2}})[0]),
              (List{v[0], v[1], v[2], v[3], 8, 9}));
    Tensor none = tensorOf(x.dtype(), {0}, {}), rows = tensorOf(x.dtype(), {0, 2}, {});
    EXPECT_EQ(valuesOf(runOp("cat", {none, x, rows})[0]), v);
  });
  Value mixed =
      runOp("cat", {tensorOf(DType::U8, {1}, {200}), tensorOf(DType::F32, {1}, {0.5})})[0];
  EXPECT_EQ(valuesOf(mixed), (List{200, 0.5}));
}

/// stack puts operands side by side along a new dimension.
TEST(DataMovementKernels, Stack) {
  forEachInput({2, 2}, [](const Tensor &x) {
    List v = valuesOf(x);
    Tensor y = tensorOf(x.dtype(), {2, 2}, {5, 6, 7, 8});
    EXPECT_EQ(valuesOf(runOp("stack", {x, y})[0]), (List{v[0], v[1], v[2], v[3], 5, 6, 7, 8}));
    EXPECT_EQ(valuesOf(runOp("stack", {x, y}, {{"dim", 1}})[0]),
              (List{v[0], v[1], 5, 6, v[2], v[3], 7, 8}));
    EXPECT_EQ(valuesOf(runOp("stack", {x, y}, {{"dim", -1}})[0]),
              (List{v[0], 5, v[1], 6, v[2], 7, v[3], 8}));
  });
  Tensor scalar = tensorOf(DType::F32, {}, {3});
  EXPECT_EQ(valuesOf(runOp("stack", {scalar, scalar})[0]), (List{3, 3}));
}

/// repeat tiles, also along new dimensions and not at all.
TEST(DataMovementKernels, Repeat) {
  forEachInput({2, 2}, [](const Tensor &x) {
    List v = valuesOf(x);
    EXPECT_EQ(valuesOf(runOp("repeat", {x}, {{"repeats", Ints{2, 1}}})[0]),
              (List{v[0], v[1], v[2], v[3], v[0], v[1], v[2], v[3]}));
    EXPECT_EQ(valuesOf(runOp("repeat", {x}, {{"repeats", Ints{2, 1, 2}}})[0]),
              (List{v[0], v[1], v[0], v[1], v[2], v[3], v[2], v[3], //
                    v[0], v[1], v[0], v[1], v[2], v[3], v[2], v[3]}));
    EXPECT_EQ(valuesOf(runOp("repeat", {x}, {{"repeats", Ints{0, 1}}})[0]), List());
  });
  Tensor scalar = tensorOf(DType::F32, {}, {3});
  EXPECT_EQ(valuesOf(runOp("repeat", {scalar}, {{"repeats", Ints{3}}})[0]), (List{3, 3, 3}));
  EXPECT_EQ(valuesOf(runOp("repeat", {scalar}, {{"repeats", Ints{}}})[0]), List{3});
}

/// flip reverses the dimensions named, and no others.
TEST(DataMovementKernels, Flip) {
  forEachInput({2, 3}, [](const Tensor &x) {
    List v = valuesOf(x);
    auto flip = [&](Ints dims) { return valuesOf(runOp("flip", {x}, {{"dims", dims}})[0]); };
    EXPECT_EQ(flip({0}), (List{v[3], v[4], v[5], v[0], v[1], v[2]}));
    EXPECT_EQ(flip({-1}), (List{v[2], v[1], v[0], v[5], v[4], v[3]}));
    EXPECT_EQ(flip({0, 1}), (List{v[5], v[4], v[3], v[2], v[1], v[0]}));
    EXPECT_EQ(flip({}), v);
  });
  EXPECT_EQ(valuesOf(runOp("flip", {tensorOf(DType::F32, {}, {3})}, {{"dims", Ints{0}}})[0]),
            List{3});
  EXPECT_EQ(valuesOf(runOp("flip", {tensorOf(DType::F32, {0}, {})}, {{"dims", Ints{0}}})[0]),
            List());
}

/// roll shifts around, forwards and backwards, further than the size, along dimensions or flat.
TEST(DataMovementKernels, Roll) {
  forEachInput({2, 3}, [](const Tensor &x) {
    List v = valuesOf(x);
    auto roll = [&](Ints shifts, Ints dims) {
      return valuesOf(runOp("roll", {x}, {{"shifts", shifts}, {"dims", dims}})[0]);
    };
    EXPECT_EQ(roll({1}, {1}), (List{v[2], v[0], v[1], v[5], v[3], v[4]}));
    EXPECT_EQ(roll({-4}, {1}), (List{v[1], v[2], v[0], v[4], v[5], v[3]}));
    EXPECT_EQ(roll({1, 1}, {0, 1}), (List{v[5], v[3], v[4], v[2], v[0], v[1]}));
    EXPECT_EQ(roll({2}, {}), (List{v[4], v[5], v[0], v[1], v[2], v[3]}));
    EXPECT_EQ(roll({-8}, {}), (List{v[2], v[3], v[4], v[5], v[0], v[1]}));
    EXPECT_EQ(roll({0}, {0}), v);
  });
  Tensor none = tensorOf(DType::F32, {0, 2}, {});
  EXPECT_EQ(valuesOf(runOp("roll", {none}, {{"shifts", Ints{1}}})[0]), List());
  EXPECT_EQ(valuesOf(runOp("roll", {none}, {{"shifts", Ints{1}}, {"dims", Ints{0}}})[0]), List());
}

/// pad adds its value around, cuts where a number is negative, and leaves other dimensions.
TEST(DataMovementKernels, Pad) {
  forEachInput({2, 3}, [](const Tensor &x) {
    List v = valuesOf(x);
    auto pad = [&](Ints pads) {
      return valuesOf(runOp("pad", {x}, {{"pads", pads}, {"value", 9}})[0]);
    };
    EXPECT_EQ(pad({1, 2}), (List{9, v[0], v[1], v[2], 9, 9, 9, v[3], v[4], v[5], 9, 9}));
    EXPECT_EQ(pad({0, 0, 1, 0}), (List{9, 9, 9, v[0], v[1], v[2], v[3], v[4], v[5]}));
    EXPECT_EQ(pad({-1, 1}), (List{v[1], v[2], 9, v[4], v[5], 9}));
    EXPECT_EQ(pad({0, -2, -1, 0}), List{v[3]});
    EXPECT_EQ(pad({-4, 3}), (List{9, 9, 9, 9}));
    EXPECT_EQ(pad({}), v);
  });
  EXPECT_EQ(valuesOf(runOp("pad", {tensorOf(DType::F32, {0}, {})}, {{"pads", Ints{1, 1}}})[0]),
            (List{0, 0}));
}

/// tril and triu keep the elements on one side of a diagonal of every matrix, any diagonal.
TEST(DataMovementKernels, Triangles) {
  forEachInput({2, 3, 4}, [](const Tensor &x) {
    List v = valuesOf(x);
    for (int64_t diagonal :
         {int64_t(0), int64_t(1), int64_t(-1), int64_t(-3), int64_t(4),
          std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
      List lower = v, upper = v;
      for (size_t i = 0; i < v.size(); ++i) {
        int64_t row = i / 4 % 3, column = i % 4;
        if (column - row > diagonal)
          lower[i] = 0;
        if (column - row < diagonal)
          upper[i] = 0;
      }
      EXPECT_EQ(valuesOf(runOp("tril", {x}, {{"diagonal", diagonal}})[0]), lower) << diagonal;
      EXPECT_EQ(valuesOf(runOp("triu", {x}, {{"diagonal", diagonal}})[0]), upper) << diagonal;
    }
  });
  EXPECT_EQ(valuesOf(runOp("tril", {tensorOf(DType::F32, {2, 0}, {})})[0]), List());
}

/// Results of other strides get the same elements.
TEST(DataMovementKernels, ResultsOfAnyStrides) {
  Tensor x = tensorOf(DType::F32, {2, 3}, iota(6));
  Type columns = TensorType(DType::F32, {2, 3}, {1, 2}, Device::host());
  struct {
    const char *op;
    std::vector<AttributeInit> attributes;
  } cases[] = {{"clone", {}},
               {"flip", {{"dims", Ints{0, 1}}}},
               {"roll", {{"shifts", Ints{2}}}},
               {"roll", {{"shifts", Ints{1, 2}}, {"dims", Ints{0, 1}}}},
               {"pad", {{"pads", Ints{1, -1}}}},
               {"repeat", {{"repeats", Ints{1, 1}}}},
               {"cat", {}},
               {"tril", {}}};
  for (const auto &test : cases)
    EXPECT_EQ(valuesOf(runOp(test.op, {x}, test.attributes, nullptr, {columns})[0]),
              valuesOf(runOp(test.op, {x}, test.attributes)[0]))
        << test.op;
}

TEST(DataMovementKernels, EveryOpHasAKernel) {
  HostExecutor executor;
  for (const char *op : {"clone", "contiguous", "to_device", "cat", "stack", "repeat", "flip",
                         "roll", "pad", "tril", "triu"})
    EXPECT_NE(executor.find(op), nullptr) << op;
}

} // namespace
