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
// words. Plain C++, for CUDA device code, too.
//
//===----------------------------------------------------------------------===//

#pragma once

#include <cmath>
#include <cstdint>

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

/// A normal number by Box and Muller: positions n and n ^ 1 share their words, those of the even
/// position first; the even one takes the cosine, the odd one the sine.
RONDO_HOST_DEVICE inline double normal(uint64_t seed, uint64_t n) {
  Block words = blockOf(seed, n);
  double first = words.words[n & 2], second = words.words[(n & 2) + 1];
  double radius = std::sqrt(-2.0 * std::log((first + 1.0) / 4294967296.0)); // of (0, 1]
  double angle = 6.283185307179586477 / 4294967296.0 * second;
  return radius * (n & 1 ? std::sin(angle) : std::cos(angle));
}

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
