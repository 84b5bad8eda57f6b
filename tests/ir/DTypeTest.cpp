//===- DTypeTest.cpp - Element types of tensors ---------------------------===//

#include "rondo/ir/DType.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

using namespace rondo;

namespace {

/// Every dtype has a name of its own that reads back as itself.
TEST(DType, NamesReadBack) {
  std::set<std::string> names;
  for (DType dtype : allDTypes) {
    EXPECT_EQ(parseDType(dtypeName(dtype)), dtype);
    names.insert(dtypeName(dtype).str());
  }
  EXPECT_EQ(names.size(), 12u);
  EXPECT_EQ(dtypeName(DType::F8E4M3), "f8e4m3");
}

/// What is no name of a dtype, by case, white space or spelling, is refused.
TEST(DType, RefusesOtherNames) {
  for (const char *name : {"", "F32", " f32", "f32 ", "float32", "f8", "u16"})
    EXPECT_EQ(parseDType(name), std::nullopt) << name;
}

/// Sizes are those of the formats.
TEST(DType, Sizes) {
  EXPECT_EQ(dtypeSize(DType::Bool), 1u);
  EXPECT_EQ(dtypeSize(DType::F8E5M2), 1u);
  EXPECT_EQ(dtypeSize(DType::BF16), 2u);
  EXPECT_EQ(dtypeSize(DType::I32), 4u);
  EXPECT_EQ(dtypeSize(DType::F64), 8u);
}

/// bool is neither a float nor an integer, 8-bit floats are floats.
TEST(DType, Kinds) {
  EXPECT_FALSE(isFloat(DType::Bool));
  EXPECT_FALSE(isInteger(DType::Bool));
  EXPECT_TRUE(isInteger(DType::U8));
  EXPECT_FALSE(isFloat(DType::I64));
  EXPECT_TRUE(isFloat(DType::F8E4M3));
  EXPECT_FALSE(isInteger(DType::F8E4M3));
}

/// Promotion does not depend on the order of its operands and leaves equal dtypes alone.
TEST(DType, PromotionIsCommutativeAndIdempotent) {
  for (DType a : allDTypes) {
    EXPECT_EQ(promote(a, a), a);
    for (DType b : allDTypes)
      EXPECT_EQ(promote(a, b), promote(b, a)) << dtypeName(a).str() << " " << dtypeName(b).str();
  }
}

/// bool gives way to everything, integers to wider ones, all of them to floats of any width.
TEST(DType, PromotesAcrossKinds) {
  EXPECT_EQ(promote(DType::Bool, DType::U8), DType::U8);
  EXPECT_EQ(promote(DType::Bool, DType::F16), DType::F16);
  EXPECT_EQ(promote(DType::U8, DType::I16), DType::I16);
  EXPECT_EQ(promote(DType::I32, DType::I64), DType::I64);
  EXPECT_EQ(promote(DType::I64, DType::F16), DType::F16);
  EXPECT_EQ(promote(DType::F32, DType::F64), DType::F64);
  EXPECT_EQ(promote(DType::F16, DType::F32), DType::F32);
  EXPECT_EQ(promote(DType::I8, DType::F8E5M2), DType::F8E5M2);
}

/// Where neither dtype holds the numbers of the other, the result is a third one.
TEST(DType, PromotesToAThird) {
  EXPECT_EQ(promote(DType::U8, DType::I8), DType::I16);
  EXPECT_EQ(promote(DType::F16, DType::BF16), DType::F32);
  EXPECT_EQ(promote(DType::F8E4M3, DType::F8E5M2), DType::F16);
}

} // namespace
