//===- PhiloxTest.cpp -----------------------------------------------------===//

#include "rondo/executors/Philox.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

using namespace rondo;

namespace {

using Words = std::array<uint32_t, 4>;

Words words(const philox::Block &block) {
  return {block.words[0], block.words[1], block.words[2], block.words[3]};
}

/// The published known answers of Random123 (tests/kat_vectors, lines "philox4x32 10") come out.
TEST(Philox, KnownAnswers) {
  constexpr uint32_t ones = 0xffffffff;
  EXPECT_EQ(words(philox::block({{0, 0, 0, 0}}, 0, 0)),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(words(philox::block({{ones, ones, ones, ones}}, ones, ones)),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words(philox::block({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822,
                                0x299f31d0)),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

/// Position n is word n % 4 of the block with counter n / 4, and the seed is the key.
TEST(Philox, PositionsAreWordsOfBlocks) {
  constexpr uint64_t seed = 0x299f31d0a4093822, n = (uint64_t(0x05a308d3) << 34) + 5;
  philox::Block block = philox::block({{1, 0x05a308d3, 0, 0}}, 0xa4093822, 0x299f31d0);
  EXPECT_EQ(philox::word(seed, n), block.words[1]);
  EXPECT_EQ(philox::word(seed, n + 2), block.words[3]);
  EXPECT_NE(philox::word(seed, n + 3), block.words[0]); // the next block
  EXPECT_NE(philox::word(seed, n, 1), block.words[1]);  // another plane
  EXPECT_NE(philox::word(seed + 1, n), block.words[1]);
}

/// A uniform number is the word's first bits over their count: never 1, exact.
TEST(Philox, UniformIsBelowOne) {
  for (unsigned bits : {8U, 11U, 24U, 32U}) {
    EXPECT_EQ(philox::uniform(0, bits), 0);
    EXPECT_EQ(philox::uniform(0x80000000, bits), 0.5);
    EXPECT_EQ(philox::uniform(0xffffffff, bits), 1 - std::ldexp(1.0, -int(bits)));
  }
}

/// `happens` compares as the uniform number of 24 bits does, also at the ends and for no number.
TEST(Philox, HappensBelowP) {
  uint32_t edges[] = {0, 1, 255, 256, 0x7fffffff, 0x80000000, 0x80000100, 0xffffff00, 0xffffffff};
  for (double p : {0.0, 1e-9, 0x1p-24, 0.25, 0.5, 0.5 + 0x1p-24, 0.5 + 0x1p-30, 1 - 0x1p-24,
                   1 - 0x1p-40, 1.0, -1.0, 2.0})
    for (uint32_t word : edges)
      EXPECT_EQ(philox::happens(word, philox::threshold(p)), philox::uniform(word, 24) < p)
          << word << " " << p;
  EXPECT_FALSE(philox::happens(0, philox::threshold(std::numeric_limits<double>::quiet_NaN())));
}

/// The upper half of a 128-bit product.
TEST(Philox, MultiplyHigh) {
  constexpr uint64_t most = ~uint64_t(0);
  EXPECT_EQ(philox::multiplyHigh(most, most), most - 1);
  EXPECT_EQ(philox::multiplyHigh(uint64_t(1) << 63, 2), 1U);
  EXPECT_EQ(philox::multiplyHigh(uint64_t(1) << 63, 1), 0U);
  EXPECT_EQ(philox::multiplyHigh(0x123456789abcdef0, 0xfedcba9876543210), 0x121fa00ad77d7422U);
}

/// Integers stay in their range and reach both ends, for counts of one word and of two.
TEST(Philox, IntegersAreInRange) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  bool lowest = false, highest = false;
  for (uint64_t n = 0; n < 100; ++n) {
    int64_t small = philox::integer(7, n, -2, 3);
    EXPECT_GE(small, -2);
    EXPECT_LE(small, 0);
    lowest |= small == -2;
    highest |= small == 0;
    EXPECT_EQ(philox::integer(7, n, 5, 1), 5);
    int64_t large = philox::integer(7, n, -1, (uint64_t(1) << 40) + 1);
    EXPECT_GE(large, -1);
    EXPECT_LT(large, int64_t(1) << 40);
    EXPECT_EQ(philox::integer(7, n, 0, uint64_t(1) << 32), int64_t(philox::word(7, n)));
  }
  EXPECT_TRUE(lowest && highest);
  EXPECT_NE(philox::integer(7, 0, least, ~uint64_t(0)), philox::integer(7, 1, least, ~uint64_t(0)));
}

/// The logarithm is that of the fraction to the last places, at both ends and where its parts meet.
TEST(Philox, Logarithm) {
  constexpr uint64_t one = uint64_t(1) << 32;
  auto check = [](uint64_t k) {
    double expected = double(std::log((long double)(k) / 4294967296.0L));
    EXPECT_NEAR(philox::logOfFraction(k), expected, 4e-16 * std::abs(expected)) << k;
  };
  EXPECT_EQ(philox::logOfFraction(one), 0);
  for (uint64_t i = 0; i < 2000; ++i)
    for (uint64_t k : {i + 1, one - 1 - i, one / 2 - 1000 + i, uint64_t(3037000499) - 1000 + i,
                       uint64_t(philox::word(1, i)) + 1})
      check(k);
}

/// The sine is that of the turn, at every eighth and around it; it is 0 and 1 exactly where it
/// should be, and odd and even.
TEST(Philox, Sine) {
  constexpr uint32_t quarter = uint32_t(1) << 30;
  EXPECT_EQ(philox::sineOfTurn(0), 0);
  EXPECT_EQ(philox::sineOfTurn(quarter), 1);
  EXPECT_EQ(philox::sineOfTurn(2 * quarter), 0);
  EXPECT_EQ(philox::sineOfTurn(3 * quarter), -1);
  auto check = [](uint32_t turn) {
    double value = philox::sineOfTurn(turn);
    EXPECT_NEAR(value, double(std::sin(6.283185307179586476925L * turn / 4294967296.0L)), 2.3e-16)
        << turn;
    EXPECT_EQ(philox::sineOfTurn(0 - turn), -value) << turn;
    EXPECT_EQ(philox::sineOfTurn(2 * quarter - turn), value) << turn;
  };
  for (uint32_t i = 0; i < 2000; ++i) {
    for (uint32_t eighth = 0; eighth < 8; ++eighth)
      check(eighth * (quarter / 2) - 1000 + i);
    check(philox::word(2, i));
  }
}

/// The bits of normal numbers, which are the same everywhere.
TEST(Philox, NormalBits) {
  EXPECT_EQ(philox::normal(42, 0), -0x1.f0bcb7534294bp-1);
  EXPECT_EQ(philox::normal(42, 1), 0x1.8d59cf77b07cap-3);
  EXPECT_EQ(philox::normal(42, 2), -0x1.3c51a41326fdap+0);
  EXPECT_EQ(philox::normal(42, 3), 0x1.ec8676a775e6cp+0);
  EXPECT_EQ(philox::normal(42, 1000003), -0x1.6188a7ea21f64p-2);
  EXPECT_EQ(philox::normal(42, 17179869191), -0x1.aa1777ce04022p-1);
}

/// Two neighbours of one pair are the two coordinates of one point: their words give radius and
/// angle.
TEST(Philox, NormalPairs) {
  for (uint64_t n : {0U, 2U, 10U}) {
    double x = philox::normal(3, n), y = philox::normal(3, n + 1);
    double radius = (double(philox::word(3, n)) + 1) / 4294967296.0;
    EXPECT_NEAR(std::exp(-(x * x + y * y) / 2), radius, 1e-12);
    double turns = std::atan2(y, x) / 6.283185307179586;
    EXPECT_NEAR(turns < 0 ? turns + 1 : turns, philox::word(3, n + 1) / 4294967296.0, 1e-12);
  }
}

} // namespace
