//===- Philox.h - Random numbers by position --------------------*- C++ -*-===//
//
// Philox-4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11)
// and what ops make of its words. Every number has a position: element i of an op with offset o,
// drawn with the state {seed, offset b}, is number n = b + o + i (mod 2^64) of the stream `seed`,
// and costs one 32-bit word:
//
//   word(n) = word n % 4 of the block with counter {n / 4 mod 2^32, n / 2^34, 0, 0} and
//             key {seed mod 2^32, seed / 2^32}
//
// So neither strides, threads nor the order of execution matter, and every device draws the same
// words and makes the same bits of them. It is the word that cuRAND's device generator gives after
// curand_init(seed, 0, n), and that of plane p, below, the one after curand_init(seed, p, n). Plain
// C++, for CUDA device code, too.
//
//===----------------------------------------------------------------------===//

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define RONDO_HOST_DEVICE __host__ __device__
#else
#define RONDO_HOST_DEVICE
#endif

namespace rondo::philox {

struct Block {
  uint32_t words[4];
};

/// The ten rounds. Words and keys in the order of the paper's reference implementation, Random123.
RONDO_HOST_DEVICE constexpr Block block(Block counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    uint64_t product0 = uint64_t(0xD2511F53) * counter.words[0];
    uint64_t product1 = uint64_t(0xCD9E8D57) * counter.words[2];
    counter = {{uint32_t(product1 >> 32) ^ counter.words[1] ^ key0, uint32_t(product1),
                uint32_t(product0 >> 32) ^ counter.words[3] ^ key1, uint32_t(product0)}};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

/// The block that holds numbers n - n % 4 to n - n % 4 + 3. `plane` other than 0 gives further
/// words that belong to the same positions.
RONDO_HOST_DEVICE constexpr Block blockOf(uint64_t seed, uint64_t n, uint32_t plane = 0) {
  return block({{uint32_t(n >> 2), uint32_t(n >> 34), plane, 0}}, uint32_t(seed),
               uint32_t(seed >> 32));
}

RONDO_HOST_DEVICE constexpr uint32_t word(uint64_t seed, uint64_t n, uint32_t plane = 0) {
  return blockOf(seed, n, plane).words[n & 3];
}

//===----------------------------------------------------------------------===//
// What numbers are made of words
//===----------------------------------------------------------------------===//

/// The first `bits` bits of the word as a number in [0, 1), exact. Uniform numbers take as many
/// bits as the dtype has digits, or all: 24 for f32, 11 for f16, 8 for bf16, 32 for f64.
RONDO_HOST_DEVICE constexpr double uniform(uint32_t word, unsigned bits) {
  return double(word >> (32 - bits)) / double(uint64_t(1) << bits);
}

/// `uniform(word, 24) < p` is `(word >> 8) < threshold(p)`: how bernoulli draws 1 and dropout
/// drops. A p that is not above 0, nan included, is 0; one of 1 or more is 1.
RONDO_HOST_DEVICE constexpr uint32_t threshold(double p) {
  constexpr uint32_t one = uint32_t(1) << 24;
  if (!(p > 0))
    return 0;
  if (p >= 1)
    return one;
  uint32_t below = uint32_t(p * one); // exact: scaling by a power of two
  return below + (double(below) < p * one);
}
/// Is an event of probability p drawn, by `threshold(p)`?
RONDO_HOST_DEVICE constexpr bool happens(uint32_t word, uint32_t threshold) {
  return (word >> 8) < threshold;
}

//===----------------------------------------------------------------------===//
// Normal numbers
//===----------------------------------------------------------------------===//
// Logarithm, sine and cosine are made of sums, products, quotients and square roots that are
// rounded one by one, in double: every device gives the same bits.

/// a * b and a + b, never contracted to one operation.
RONDO_HOST_DEVICE inline double product(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}
RONDO_HOST_DEVICE inline double sum(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}

/// terms[0] + x (terms[1] + x (terms[2] + ...)).
template <int n> RONDO_HOST_DEVICE inline double polynomial(const double (&terms)[n], double x) {
  double value = terms[n - 1];
  for (int i = n - 2; i >= 0; --i)
    value = sum(terms[i], product(x, value));
  return value;
}

/// log(k / 2^32), k in [1, 2^32]: where k is 2^e f, f near 1, it is (e - 32) log 2 + 2 artanh s
/// with s = (f - 1) / (f + 1), |s| < 0.172. The series leaves out terms below 2^-60 of its sum.
RONDO_HOST_DEVICE inline double logOfFraction(uint64_t k) {
  constexpr double artanh[] = {1,        1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                               1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
  double f = double(k);
  uint64_t bits;
  std::memcpy(&bits, &f, sizeof bits);
  int exponent = int(bits >> 52) - 1023 - 32;
  bits = (bits & 0xFFFFFFFFFFFFF) | uint64_t(1023) << 52;
  std::memcpy(&f, &bits, sizeof f);
  if (f > 1.4142135623730951) {
    f *= 0.5;
    ++exponent;
  }
  double s = (f - 1) / (f + 1);
  double logarithm = product(2 * s, polynomial(artanh, product(s, s)));
  // log 2 in two parts: the product of the first with an exponent is exact.
  logarithm = sum(logarithm, product(exponent, 0x1.473de6af278edp-34));
  return sum(logarithm, product(exponent, 0x1.62e42fefp-1));
}

/// sin(x) and cos(x) for x in [0, pi / 4], by their series.
RONDO_HOST_DEVICE inline double sineOf(double x) {
  constexpr double terms[] = {1,
                              -1.0 / 6,
                              1.0 / 120,
                              -1.0 / 5040,
                              1.0 / 362880,
                              -1.0 / 39916800,
                              1.0 / 6227020800,
                              -1.0 / 1307674368000,
                              1.0 / 355687428096000};
  return product(x, polynomial(terms, product(x, x)));
}
RONDO_HOST_DEVICE inline double cosineOf(double x) {
  constexpr double terms[] = {1,
                              -1.0 / 2,
                              1.0 / 24,
                              -1.0 / 720,
                              1.0 / 40320,
                              -1.0 / 3628800,
                              1.0 / 479001600,
                              -1.0 / 87178291200,
                              1.0 / 20922789888000};
  return polynomial(terms, product(x, x));
}

/// sin(2 pi turn / 2^32). By symmetry an angle of at most an eighth of a turn remains, exactly.
RONDO_HOST_DEVICE inline double sineOfTurn(uint32_t turn) {
  constexpr uint32_t quarter = uint32_t(1) << 30;
  uint32_t rest = turn % quarter;
  bool isFalling = (turn >> 30) & 1, isNegative = turn >> 31;
  if (isFalling)
    rest = quarter - rest;
  constexpr double unit = 6.283185307179586477 / 4294967296.0;
  double value =
      rest <= quarter / 2 ? sineOf(product(rest, unit)) : cosineOf(product(quarter - rest, unit));
  return isNegative ? -value : value;
}

/// A normal number by Box and Muller: positions n and n ^ 1 share their words, those of the even
/// position first; the even one takes the cosine, the odd one the sine.
RONDO_HOST_DEVICE inline double normal(uint64_t seed, uint64_t n) {
  Block words = blockOf(seed, n);
  uint32_t first = words.words[n & 2], second = words.words[(n & 2) + 1];
  double radius = std::sqrt(product(-2, logOfFraction(uint64_t(first) + 1))); // of (0, 1]
  // The cosine is the sine a quarter further on.
  return product(radius, sineOfTurn(second + (n & 1 ? 0 : uint32_t(1) << 30)));
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// The upper 64 bits of a * b.
RONDO_HOST_DEVICE constexpr uint64_t multiplyHigh(uint64_t a, uint64_t b) {
  uint64_t a0 = uint32_t(a), a1 = a >> 32, b0 = uint32_t(b), b1 = b >> 32;
  uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + uint32_t(middle);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

/// An integer in [low, low + count), `count` not 0, for position n: the upper half of the product
/// of `count` and word(n), or, for a count above 2^32, and the 64 bits of word(n) and the same word
/// of plane 1.
RONDO_HOST_DEVICE constexpr int64_t integer(uint64_t seed, uint64_t n, int64_t low,
                                            uint64_t count) {
  uint64_t first = word(seed, n);
  uint64_t index = count <= (uint64_t(1) << 32)
                       ? (first * count) >> 32
                       : multiplyHigh(first << 32 | word(seed, n, 1), count);
  return int64_t(uint64_t(low) + index);
}

} // namespace rondo::philox
