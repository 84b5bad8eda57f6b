//===- DimTest.cpp - Constant and symbolic dimensions ---------------------===//

#include "rondo/ir/Dim.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

using namespace rondo;

namespace {

constexpr int64_t least = std::numeric_limits<int64_t>::min();
constexpr int64_t greatest = std::numeric_limits<int64_t>::max();

Dim sym(llvm::StringRef name) {
  return Dim::symbol(name);
}

Dim parsed(llvm::StringRef text) {
  std::optional<Dim> dim = Dim::parse(text);
  EXPECT_TRUE(dim.has_value()) << text.str();
  return dim.value_or(Dim::overflow());
}

//===--- Constants --------------------------------------------------------===//

/// A number is a constant dimension; a default one is 0; a symbol is no constant.
TEST(Dim, Constants) {
  EXPECT_TRUE(Dim(7).isConstant());
  EXPECT_EQ(Dim(7).asConstant(), 7);
  EXPECT_EQ(Dim(7).value(), 7);
  EXPECT_EQ(Dim(), Dim(0));
  EXPECT_TRUE(Dim(7).isConstant(7));
  EXPECT_FALSE(Dim(7).isConstant(8));
  EXPECT_FALSE(sym("S").isConstant());
  EXPECT_FALSE(sym("S").isConstant(0));
  EXPECT_EQ(sym("S").asConstant(), std::nullopt);
}

/// Constant arithmetic is that of int64.
TEST(Dim, ConstantArithmetic) {
  EXPECT_EQ(Dim(3) + 4, Dim(7));
  EXPECT_EQ(Dim(3) - 4, Dim(-1));
  EXPECT_EQ(Dim(-3) * 4, Dim(-12));
  EXPECT_EQ(Dim(greatest) + least, Dim(-1));
  EXPECT_EQ(Dim(least) - least, Dim(0));
  EXPECT_EQ(Dim(-1) - greatest, Dim(least));
}

/// What an int64 does not hold is an overflow; one step less is not.
TEST(Dim, ConstantOverflow) {
  EXPECT_TRUE((Dim(greatest) + 1).isOverflow());
  EXPECT_FALSE((Dim(greatest - 1) + 1).isOverflow());
  EXPECT_TRUE((Dim(least) - 1).isOverflow());
  EXPECT_TRUE((Dim(0) - least).isOverflow());
  EXPECT_FALSE((Dim(-1) - least).isOverflow());
  EXPECT_TRUE((Dim(int64_t(1) << 62) * 2).isOverflow());
  EXPECT_EQ(Dim(int64_t(1) << 62) * -2, Dim(least));
  EXPECT_TRUE((Dim(least) * -1).isOverflow());
}

/// An overflow equals only an overflow, is no constant, and no arithmetic leaves it.
TEST(Dim, OverflowIsSticky) {
  Dim overflow = Dim::overflow();
  EXPECT_EQ(overflow, Dim::overflow());
  EXPECT_EQ(hash_value(overflow), hash_value(Dim::overflow()));
  EXPECT_NE(overflow, Dim(0));
  EXPECT_NE(overflow, sym("S"));
  EXPECT_FALSE(overflow.isConstant());
  EXPECT_EQ(overflow.asConstant(), std::nullopt);
  EXPECT_TRUE((overflow * 0).isOverflow());
  EXPECT_TRUE((overflow - overflow).isOverflow());
  EXPECT_TRUE((sym("S") + overflow).isOverflow());
  EXPECT_TRUE(overflow.substitute({{"S", 1}}).isOverflow());
  EXPECT_EQ(Dim::exactQuotient(overflow, 1), std::nullopt);
  EXPECT_EQ(Dim::exactQuotient(0, overflow), std::nullopt);
  llvm::SmallVector<std::string> names;
  overflow.collectSymbols(names);
  EXPECT_TRUE(names.empty());
}

//===--- Polynomials ------------------------------------------------------===//

/// Equal polynomials are equal, hash and print alike, however they were made.
TEST(Dim, CanonicalForm) {
  Dim b = sym("B"), s = sym("S");
  Dim one = (b + 1) * (s + 1), other = s + b * s + 1 + b;
  EXPECT_EQ(one, other);
  EXPECT_EQ(hash_value(one), hash_value(other));
  EXPECT_EQ(one.str(), "B*S+B+S+1");
  EXPECT_EQ(other.str(), "B*S+B+S+1");
  EXPECT_NE(one, other + 1);
  EXPECT_NE(one, other * 2);
  EXPECT_NE(b * s, b + s);
  EXPECT_NE(b * b, b);
}

/// When the symbols cancel, what is left is a constant that equals and hashes as one.
TEST(Dim, CancelsToConstant) {
  Dim s = sym("S");
  EXPECT_EQ(s - s, Dim(0));
  EXPECT_TRUE((s - s).isConstant(0));
  EXPECT_TRUE((s + 3 - s).isConstant(3));
  EXPECT_EQ(hash_value(s + 3 - s), hash_value(Dim(3)));
  EXPECT_EQ(s * 0, Dim(0));
  EXPECT_EQ((s + 1) - 1, s);
  EXPECT_EQ(hash_value((s + 1) - 1), hash_value(s));
  EXPECT_EQ((s + 1) * (s - 1) - s * s, Dim(-1));
}

/// A coefficient that does not fit is an overflow, unless the sum it is part of does fit.
TEST(Dim, SymbolicOverflow) {
  Dim s = sym("S");
  EXPECT_TRUE((s * greatest + s).isOverflow());
  EXPECT_EQ(s * greatest + s * -1, s * (greatest - 1));
  EXPECT_TRUE((s - least).isOverflow());
  EXPECT_EQ((s + least) - (s + least), Dim(0));
  EXPECT_EQ((s + 1) * least - s * least, Dim(least));
  EXPECT_TRUE((s * (int64_t(1) << 62) * 2).isOverflow());
  EXPECT_TRUE(((s + (int64_t(1) << 40)) * (s + (int64_t(1) << 40))).isOverflow());
}

/// Degree and number of terms are bounded, so that no input makes polynomials explode.
TEST(Dim, SizeIsBounded) {
  Dim power = 1;
  for (unsigned i = 0; i < Dim::maxDegree; ++i)
    power = power * sym("S");
  EXPECT_FALSE(power.isOverflow());
  EXPECT_TRUE((power * sym("S")).isOverflow());

  Dim sum = 0;
  for (unsigned i = 0; i < Dim::maxTerms; ++i)
    sum = sum + sym("S" + std::to_string(i));
  EXPECT_FALSE(sum.isOverflow());
  EXPECT_TRUE((sum + 1).isOverflow());
  EXPECT_TRUE((sum * sum).isOverflow());
  EXPECT_EQ(sum - sym("S0") + 1 - 1 + sym("S0"), sum);
}

/// A quotient exists exactly when there is a polynomial with integer coefficients.
TEST(Dim, ExactQuotient) {
  Dim b = sym("B"), s = sym("S");
  EXPECT_EQ(Dim::exactQuotient(12, 4), Dim(3));
  EXPECT_EQ(Dim::exactQuotient(13, 4), std::nullopt);
  EXPECT_EQ(Dim::exactQuotient(-12, 4), Dim(-3));
  EXPECT_EQ(Dim::exactQuotient(b * s * 8, s * 2), b * 4);
  EXPECT_EQ(Dim::exactQuotient(b * s * 8, s * 3), std::nullopt);
  EXPECT_EQ(Dim::exactQuotient(b * 8, s), std::nullopt);
  EXPECT_EQ(Dim::exactQuotient(s * s, s), s);
  EXPECT_EQ(Dim::exactQuotient(s, s * s), std::nullopt);
  EXPECT_EQ(Dim::exactQuotient(s * 8 + 8, s + 1), Dim(8));
  EXPECT_EQ(Dim::exactQuotient(s * 8 + 8, 8), s + 1);
  EXPECT_EQ(Dim::exactQuotient(s * 8 + 7, s + 1), std::nullopt);
  EXPECT_EQ(Dim::exactQuotient((b + s) * (b - s), b - s), b + s);
}

/// Zero is divided by everything but zero, and nothing is divided by zero.
TEST(Dim, QuotientsOfZero) {
  EXPECT_EQ(Dim::exactQuotient(0, 5), Dim(0));
  EXPECT_EQ(Dim::exactQuotient(0, sym("S")), Dim(0));
  EXPECT_EQ(Dim::exactQuotient(0, 0), std::nullopt);
  EXPECT_EQ(Dim::exactQuotient(5, 0), std::nullopt);
  EXPECT_EQ(Dim::exactQuotient(sym("S"), 0), std::nullopt);
}

/// The one quotient of int64s that is no int64 is refused, its neighbours are not.
TEST(Dim, QuotientsOfTheLeast) {
  EXPECT_EQ(Dim::exactQuotient(least, -1), std::nullopt);
  EXPECT_EQ(Dim::exactQuotient(sym("S") * least, -1), std::nullopt);
  EXPECT_EQ(Dim::exactQuotient(least, 1), Dim(least));
  EXPECT_EQ(Dim::exactQuotient(least + 1, -1), Dim(greatest));
  EXPECT_EQ(Dim::exactQuotient(least, least), Dim(1));
}

/// Random sums and products agree with what they give for numbers, and dividing undoes multiplying.
TEST(Dim, AgreesWithNumbers) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int64_t> number(-9, 9);
  SymbolBindings values{{"A", 3}, {"B", -2}, {"C", 5}};
  auto draw = [&] {
    Dim dim = number(random);
    for (const char *name : {"A", "B", "C"})
      dim = dim + sym(name) * number(random) + sym(name) * sym("A") * number(random);
    return dim;
  };
  auto valueOf = [&](const Dim &dim) { return dim.substitute(values).value(); };
  for (int i = 0; i < 300; ++i) {
    Dim x = draw(), y = draw();
    EXPECT_EQ(valueOf(x + y), valueOf(x) + valueOf(y));
    EXPECT_EQ(valueOf(x - y), valueOf(x) - valueOf(y));
    EXPECT_EQ(valueOf(x * y), valueOf(x) * valueOf(y));
    EXPECT_EQ(x * y, y * x);
    EXPECT_EQ(hash_value(x * y), hash_value(y * x));
    EXPECT_EQ(Dim::parse((x * y).str()), x * y);
    if (y != Dim(0)) {
      EXPECT_EQ(Dim::exactQuotient(x * y, y), x) << x.str() << " times " << y.str();
    }
  }
}

//===--- Symbols ----------------------------------------------------------===//

/// Names of symbols are identifiers that mean nothing else.
TEST(Dim, SymbolNames) {
  for (const char *name : {"B", "_", "s0", "batch_size", "none_", "f33", "cuda", "Inf"})
    EXPECT_TRUE(Dim::isSymbolName(name)) << name;
  for (const char *name : {"", "0s", "a.b", "a-b", "a b", "é", "none", "true", "false", "nan",
                           "inf", "host", "f32", "bool", "f8e4m3"})
    EXPECT_FALSE(Dim::isSymbolName(name)) << name;
  EXPECT_FALSE(Dim::isSymbolName(llvm::StringRef("a\0b", 3)));
}

/// Bound symbols become numbers, the others stay; bindings of other names do nothing.
TEST(Dim, Substitute) {
  Dim dim = sym("B") * sym("S") * 8 + sym("S") + 1;
  EXPECT_EQ(dim.substitute({{"S", 4}}), sym("B") * 32 + 5);
  EXPECT_EQ(dim.substitute({{"S", 4}, {"B", 2}}), Dim(69));
  EXPECT_EQ(dim.substitute({{"X", 4}}), dim);
  EXPECT_EQ(dim.substitute({}), dim);
  EXPECT_EQ(dim.substitute({{"S", 0}}), Dim(1));
  EXPECT_EQ((sym("S") * sym("S") - sym("B")).substitute({{"S", 3}, {"B", 9}}), Dim(0));
  EXPECT_EQ(Dim(5).substitute({{"S", 4}}), Dim(5));
  EXPECT_TRUE(dim.substitute({{"S", greatest}}).isOverflow());
  EXPECT_EQ((sym("S") - sym("B")).substitute({{"S", greatest}, {"B", greatest}}), Dim(0));
}

/// Symbols come sorted and once each, after what the list held before.
TEST(Dim, CollectSymbols) {
  llvm::SmallVector<std::string> names = {"before"};
  (sym("S") * sym("S") + sym("B") * sym("S") + 1).collectSymbols(names);
  EXPECT_EQ(names, (llvm::SmallVector<std::string>{"before", "B", "S"}));
  Dim(4).collectSymbols(names);
  EXPECT_EQ(names.size(), 3u);
}

//===--- Text -------------------------------------------------------------===//

/// Terms are printed by falling degree, then by name, with signs instead of negative coefficients.
TEST(Dim, Print) {
  EXPECT_EQ(Dim(7).str(), "7");
  EXPECT_EQ(Dim(-7).str(), "-7");
  EXPECT_EQ(Dim(least).str(), "-9223372036854775808");
  EXPECT_EQ(sym("B").str(), "B");
  EXPECT_EQ((sym("S") * 8).str(), "8*S");
  EXPECT_EQ((sym("S") * sym("B") + 1).str(), "B*S+1");
  EXPECT_EQ((Dim(3) - sym("S")).str(), "-S+3");
  EXPECT_EQ((sym("S") * sym("S") - sym("S") * 2 - 1).str(), "S*S-2*S-1");
  EXPECT_EQ((sym("S") * least).str(), "-9223372036854775808*S");
  EXPECT_EQ(Dim::overflow().str(), "<overflow>");
}

/// What was printed reads back as the same dimension.
TEST(Dim, PrintedTextReadsBack) {
  Dim b = sym("B"), s = sym("S");
  for (const Dim &dim : {Dim(0), Dim(greatest), Dim(least), b, s * least, s * greatest - 1,
                         b * s * 8 - s * s + 3, Dim(least) - s * 2}) {
    EXPECT_EQ(parsed(dim.str()), dim) << dim.str();
    EXPECT_EQ(parsed(dim.str()).str(), dim.str());
  }
}

/// Order, repetition and white space are free.
TEST(Dim, ParsesOtherOrders) {
  EXPECT_EQ(parsed(" 8 * S "), sym("S") * 8);
  EXPECT_EQ(parsed("S*8"), sym("S") * 8);
  EXPECT_EQ(parsed("1+S*B"), sym("B") * sym("S") + 1);
  EXPECT_EQ(parsed("S + S\t- 2"), sym("S") * 2 - 2);
  EXPECT_EQ(parsed("2*3*S"), sym("S") * 6);
  EXPECT_EQ(parsed("- 5"), Dim(-5));
  EXPECT_EQ(parsed("-0"), Dim(0));
  EXPECT_EQ(parsed("S-S"), Dim(0));
  EXPECT_EQ(parsed("9223372036854775808-1"), Dim(greatest));
}

/// Malformed text gives nothing.
TEST(Dim, RefusesMalformedText) {
  for (const char *text :
       {"",     " ",    "-",   "+",      "+5",   "--5",        "S+",  "S-",  "*S",
        "S*",   "S**B", "S B", "2S",     "S*-1", "S+-1",       "(S)", "S/2", "1.5",
        "0x10", "none", "f32", "S+true", "é",    "<overflow>", "1,2", "S;"})
    EXPECT_EQ(Dim::parse(text), std::nullopt) << text;
  EXPECT_EQ(Dim::parse(llvm::StringRef("4\0", 2)), std::nullopt);
}

/// Numbers, sums and products that do not fit give nothing; the last that fit are read.
TEST(Dim, RefusesOverflowInText) {
  EXPECT_EQ(parsed("9223372036854775807"), Dim(greatest));
  EXPECT_EQ(parsed("-9223372036854775808"), Dim(least));
  for (const char *text :
       {"9223372036854775808", "-9223372036854775809", "99999999999999999999999999",
        "9223372036854775807*2", "9223372036854775807*S+S", "4294967296*4294967296*S",
        "9999999999*9999999999*9999999999*9999999999*9999999999*S"})
    EXPECT_EQ(Dim::parse(text), std::nullopt) << text;
}

/// Text of a hundred thousand factors or terms is refused at once, not read for hours.
TEST(Dim, RefusesHugeText) {
  std::string power = "S", sum = "S0";
  for (int i = 1; i < 100000; ++i) {
    power += "*S";
    sum += "+S" + std::to_string(i);
  }
  EXPECT_EQ(Dim::parse(power), std::nullopt);
  EXPECT_EQ(Dim::parse(sum), std::nullopt);
}

//===--- Shapes -----------------------------------------------------------===//

/// The number of elements is the product; that of a scalar is 1.
TEST(Dim, NumElements) {
  EXPECT_EQ(numElements({}), Dim(1));
  EXPECT_EQ(numElements({2, 3, 4}), Dim(24));
  EXPECT_EQ(numElements({sym("B"), 8, sym("S")}), sym("B") * sym("S") * 8);
  EXPECT_TRUE(numElements({int64_t(1) << 40, int64_t(1) << 40}).isOverflow());
}

/// An empty shape has no elements wherever its 0 stands, unless a size is itself unknown.
TEST(Dim, NumElementsOfEmptyShapes) {
  Dim huge = int64_t(1) << 40;
  EXPECT_EQ(numElements({0, huge, huge}), Dim(0));
  EXPECT_EQ(numElements({huge, huge, 0}), Dim(0));
  EXPECT_EQ(numElements({sym("S"), 0}), Dim(0));
  EXPECT_TRUE(numElements({0, Dim::overflow()}).isOverflow());
}

/// Row-major strides are products of the sizes to the right.
TEST(Dim, ContiguousStrides) {
  EXPECT_EQ(contiguousStrides({}), Dims());
  EXPECT_EQ(contiguousStrides({5}), Dims{1});
  EXPECT_EQ(contiguousStrides({2, 3, 4}), Dims({12, 4, 1}));
  EXPECT_EQ(contiguousStrides({sym("B"), sym("S"), 8}), Dims({sym("S") * 8, 8, 1}));
}

/// In strides a size of 0 counts as 1, and the leftmost size does not count.
TEST(Dim, ContiguousStridesOfEmptyShapes) {
  EXPECT_EQ(contiguousStrides({2, 0, 3}), Dims({3, 3, 1}));
  EXPECT_EQ(contiguousStrides({0}), Dims{1});
  EXPECT_EQ(contiguousStrides({2, 0}), Dims({1, 1}));
  EXPECT_EQ(contiguousStrides({greatest, 2}), Dims({2, 1}));
  EXPECT_TRUE(contiguousStrides({1, greatest, 2})[0].isOverflow());
}

/// All dimensions become numbers or none does.
TEST(Dim, AsConstants) {
  EXPECT_EQ(asConstants({2, 3}), (llvm::SmallVector<int64_t, 4>{2, 3}));
  EXPECT_EQ(asConstants({}), (llvm::SmallVector<int64_t, 4>()));
  EXPECT_EQ(asConstants({2, sym("S")}), std::nullopt);
  EXPECT_EQ(asConstants({Dim::overflow()}), std::nullopt);
}

/// Copies, moves and assignments, to itself too, keep the value.
TEST(Dim, ValueSemantics) {
  Dim s = sym("S") + 1, copy = s;
  Dim moved = std::move(copy);
  EXPECT_EQ(moved, s);
  Dim &alias = moved;
  moved = alias;
  EXPECT_EQ(moved, s);
  moved = 4;
  EXPECT_EQ(moved, Dim(4));
  EXPECT_EQ(s, sym("S") + 1);
}

} // namespace
