//===- FillValueTest.cpp - What fills write -------------------------------===//

#include "rondo/executors/DeviceAPI.h"

#include <gtest/gtest.h>

using namespace rondo;

/// A value is known by its shortest period.
TEST(FillValue, ShortestPeriod) {
  EXPECT_EQ(FillValue(0x07070707, 4), FillValue(7));
  EXPECT_EQ(FillValue(0x01020102, 4), FillValue(0x0102, 2));
  EXPECT_EQ(FillValue(0xff07, 1), FillValue(7));
  EXPECT_NE(FillValue(0x0102, 2), FillValue(0x0102, 4));
  EXPECT_NE(FillValue(7), FillValue(8));
  EXPECT_EQ(FillValue(0x01020304, 4).elementBytes(), 4u);
  EXPECT_EQ(FillValue(0x0102, 2).repeated(), 0x01020102u);
  EXPECT_EQ(FillValue(7).repeated(), 0x07070707u);
}

/// Only memory that begins at a multiple of the element's size and is a multiple of it is filled.
TEST(FillValue, Fits) {
  alignas(4) uint8_t memory[8] = {};
  EXPECT_TRUE(FillValue::fits(memory, 8, 4));
  EXPECT_TRUE(FillValue::fits(memory + 2, 6, 2));
  EXPECT_TRUE(FillValue::fits(memory + 1, 7, 1));
  EXPECT_FALSE(FillValue::fits(memory + 2, 4, 4));
  EXPECT_FALSE(FillValue::fits(memory, 6, 4));
  EXPECT_FALSE(FillValue::fits(memory + 1, 4, 2));
}
