//===- TypeTest.cpp - Types of values -------------------------------------===//

#include "rondo/ir/Type.h"

#include <gtest/gtest.h>

using namespace rondo;

namespace {

Dim sym(llvm::StringRef name) {
  return Dim::symbol(name);
}

//===--- Tensors ----------------------------------------------------------===//

/// Without strides a tensor is row-major, and knows its rank, elements and bytes.
TEST(Type, RowMajorTensor) {
  TensorType type(DType::BF16, {2, 3, 4});
  EXPECT_EQ(type.strides, Dims({12, 4, 1}));
  EXPECT_EQ(type.device, Device::host());
  EXPECT_EQ(type.rank(), 3u);
  EXPECT_EQ(type.numElements(), Dim(24));
  EXPECT_EQ(type.numBytes(), Dim(48));
  EXPECT_TRUE(type.isRowMajor());
  EXPECT_TRUE(type.isContiguous());
  EXPECT_FALSE(type.hasSymbols());
}

/// A transposed tensor is not contiguous.
TEST(Type, TransposedTensor) {
  TensorType type(DType::F32, {8, 32}, {1, 8}, Device::cuda(0));
  EXPECT_FALSE(type.isRowMajor());
  EXPECT_FALSE(type.isContiguous());
  EXPECT_EQ(type.numElements(), Dim(256));
}

/// A scalar tensor is contiguous and has one element.
TEST(Type, RankZero) {
  TensorType type(DType::F64, {});
  EXPECT_TRUE(type.isContiguous());
  EXPECT_TRUE(type.isRowMajor());
  EXPECT_EQ(type.numBytes(), Dim(8));
}

/// Strides of dimensions of size 1 do not matter for contiguity but for being row-major.
TEST(Type, SizeOneDimensions) {
  TensorType type(DType::F32, {1, 4}, {77, 1}, Device::host());
  EXPECT_TRUE(type.isContiguous());
  EXPECT_FALSE(type.isRowMajor());
  EXPECT_FALSE(TensorType(DType::F32, {2, 4}, {77, 1}, Device::host()).isContiguous());
  EXPECT_FALSE(TensorType(DType::F32, {4, 1, 3}, {4, 9, 1}, Device::host()).isContiguous());
  EXPECT_TRUE(TensorType(DType::F32, {4, 1, 3}, {3, 9, 1}, Device::host()).isContiguous());
}

/// A tensor without elements is contiguous whatever its strides.
TEST(Type, EmptyTensors) {
  EXPECT_TRUE(TensorType(DType::F32, {2, 0, 3}).isRowMajor());
  TensorType odd(DType::F32, {2, 0, 3}, {5, 7, 9}, Device::host());
  EXPECT_TRUE(odd.isContiguous());
  EXPECT_FALSE(odd.isRowMajor());
}

/// An expanded dimension, of stride 0, is not contiguous unless its size is 1.
TEST(Type, ExpandedDimensions) {
  EXPECT_FALSE(TensorType(DType::F32, {8, 4}, {0, 1}, Device::host()).isContiguous());
  EXPECT_TRUE(TensorType(DType::F32, {1, 4}, {0, 1}, Device::host()).isContiguous());
}

/// A type whose ranks disagree, as bad input may say, is neither contiguous nor a crash.
TEST(Type, RanksDisagree) {
  TensorType type(DType::F32, {2, 3}, {1}, Device::host());
  EXPECT_FALSE(type.isContiguous());
  EXPECT_FALSE(type.isRowMajor());
  EXPECT_EQ(Type(type).str(), "f32[2, 3; 1]");
}

/// Symbols in shape or strides are seen.
TEST(Type, Symbols) {
  TensorType type(DType::F32, {sym("B"), 8});
  EXPECT_TRUE(type.hasSymbols());
  EXPECT_TRUE(type.isRowMajor());
  EXPECT_TRUE(TensorType(DType::F32, {2}, {sym("S")}, Device::host()).hasSymbols());
  EXPECT_FALSE(TensorType(DType::F32, {Dim::overflow()}).hasSymbols());
}

/// Elements that do not fit an int64 are an overflow in bytes, too.
TEST(Type, BytesOverflow) {
  EXPECT_FALSE(TensorType(DType::U8, {int64_t(1) << 62}).numBytes().isOverflow());
  EXPECT_TRUE(TensorType(DType::F64, {int64_t(1) << 62}).numBytes().isOverflow());
}

//===--- Any type ---------------------------------------------------------===//

/// A type is exactly one of the four kinds.
TEST(Type, Kinds) {
  Type tensor = TensorType(DType::F32, {2}), scalar = ScalarKind::F64, rng = RNGStateType{},
       opaque = OpaqueType{"lib.handle", ""};
  EXPECT_TRUE(tensor.isTensor());
  EXPECT_TRUE(tensor.asTensor() && !tensor.asScalar() && !tensor.asRNGState() &&
              !tensor.asOpaque());
  EXPECT_TRUE(!scalar.isTensor() && scalar.asScalar() && !scalar.asRNGState());
  EXPECT_TRUE(!rng.isTensor() && rng.asRNGState() && !rng.asOpaque());
  EXPECT_TRUE(!opaque.isTensor() && opaque.asOpaque() && !opaque.asScalar());
}

/// Tensors and generator states live on a device, other values do not.
TEST(Type, Devices) {
  EXPECT_EQ(Type(TensorType(DType::F32, {2}, Device::cuda(1))).device(), Device::cuda(1));
  EXPECT_EQ(Type(RNGStateType{Device::cuda(2)}).device(), Device::cuda(2));
  EXPECT_EQ(Type(ScalarKind::I64).device(), std::nullopt);
  EXPECT_EQ(Type(OpaqueType{"lib.handle", ""}).device(), std::nullopt);
}

/// Each kind prints as the text form says.
TEST(Type, Print) {
  auto text = [](const Type &type) { return type.str(); };
  EXPECT_EQ(text(TensorType(DType::F32, {8, 32})), "f32[8, 32]");
  EXPECT_EQ(text(TensorType(DType::F32, {})), "f32[]");
  EXPECT_EQ(text(TensorType(DType::F32, {8, 32}, {1, 8}, Device::host())), "f32[8, 32; 1, 8]");
  EXPECT_EQ(text(TensorType(DType::I64, {8}, Device::cuda(0))), "i64[8]@cuda:0");
  EXPECT_EQ(text(TensorType(DType::I64, {8}, Device{DeviceKind::Host, 1})), "i64[8]@host:1");
  EXPECT_EQ(text(TensorType(DType::F16, {sym("B"), sym("S"), 8})), "f16[B, S, 8]");
  EXPECT_EQ(text(TensorType(DType::F32, {4, 2, 0})), "f32[4, 2, 0]");
  EXPECT_EQ(text(TensorType(DType::F32, {1, 4}, {9, 1}, Device::host())), "f32[1, 4; 9, 1]");
  EXPECT_EQ(text(ScalarKind::I64), "i64");
  EXPECT_EQ(text(ScalarKind::Bool), "bool");
  EXPECT_EQ(text(RNGStateType{}), "rng");
  EXPECT_EQ(text(RNGStateType{Device::cuda(0)}), "rng@cuda:0");
  EXPECT_EQ(text(OpaqueType{"lib.handle", ""}), "!lib.handle");
  EXPECT_EQ(text(OpaqueType{"lib.page", "6\"4"}), "!lib.page<\"6\\\"4\">");
}

/// Equal types compare and hash equal; whatever differs in them tells them apart.
TEST(Type, EqualityAndHash) {
  Type types[] = {TensorType(DType::F32, {8, 32}),
                  TensorType(DType::F16, {8, 32}),
                  TensorType(DType::F32, {32, 8}),
                  TensorType(DType::F32, {8, 32}, {1, 8}, Device::host()),
                  TensorType(DType::F32, {8, 32}, Device::cuda(0)),
                  TensorType(DType::F32, {8, 32}, Device::cuda(1)),
                  TensorType(DType::F32, {8, sym("S")}),
                  TensorType(DType::F32, {8, sym("T")}),
                  TensorType(DType::F32, {}),
                  ScalarKind::I64,
                  ScalarKind::F64,
                  RNGStateType{},
                  RNGStateType{Device::cuda(0)},
                  OpaqueType{"a", ""},
                  OpaqueType{"b", ""},
                  OpaqueType{"a", "x"}};
  for (const Type &a : types)
    for (const Type &b : types) {
      EXPECT_EQ(a == b, &a == &b) << a.str() << " and " << b.str();
      EXPECT_EQ(hash_value(a) == hash_value(b), &a == &b) << a.str() << " and " << b.str();
    }
  EXPECT_EQ(types[0], Type(TensorType(DType::F32, {8, 32}, {32, 1}, Device::host())));
  EXPECT_EQ(hash_value(types[6]), hash_value(Type(TensorType(DType::F32, {8, sym("S") * 1 + 0}))));
}

/// Symbols are replaced in shape and strides; types without symbols stay as they are.
TEST(Type, Substitute) {
  Type type = TensorType(DType::F32, {sym("B"), sym("S")}, {1, sym("B")}, Device::cuda(0));
  EXPECT_EQ(type.substitute({{"B", 4}}),
            Type(TensorType(DType::F32, {4, sym("S")}, {1, 4}, Device::cuda(0))));
  EXPECT_EQ(type.substitute({{"X", 4}}), type);
  Type scalar = ScalarKind::I64;
  EXPECT_EQ(scalar.substitute({{"B", 4}}), scalar);
  Type overflow = TensorType(DType::F32, {Dim::overflow()});
  EXPECT_EQ(overflow.substitute({{"B", 4}}), overflow);
}

/// A row-major type stays row-major also when a size becomes 0.
TEST(Type, SubstituteZero) {
  Type type = TensorType(DType::F32, {sym("B"), sym("S"), 8});
  EXPECT_EQ(type.substitute({{"B", 2}, {"S", 0}}), Type(TensorType(DType::F32, {2, 0, 8})));
}

/// Symbols are collected from shape and strides.
TEST(Type, CollectSymbols) {
  llvm::SmallVector<std::string> names;
  Type(TensorType(DType::F32, {sym("S"), 2}, {1, sym("B")}, Device::host())).collectSymbols(names);
  EXPECT_EQ(names, (llvm::SmallVector<std::string>{"S", "B"}));
  names.clear();
  Type(ScalarKind::I64).collectSymbols(names);
  EXPECT_TRUE(names.empty());
}

/// Names of scalar kinds read back; other names are refused.
TEST(Type, ScalarKindNames) {
  for (ScalarKind kind : {ScalarKind::I64, ScalarKind::F64, ScalarKind::Bool})
    EXPECT_EQ(parseScalarKind(scalarKindName(kind)), kind);
  EXPECT_EQ(parseScalarKind("i32"), std::nullopt);
  EXPECT_EQ(parseScalarKind(""), std::nullopt);
}

} // namespace
