//===- AttributeTest.cpp - Compile-time constants of ops ------------------===//

#include "rondo/ir/Attribute.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

using namespace rondo;

using Kind = Attribute::Kind;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double fromBits(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

std::string textOf(double value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printDouble(os, value);
  return os.str();
}

std::string quoted(llvm::StringRef text) {
  std::string result;
  llvm::raw_string_ostream os(result);
  printQuoted(os, text);
  return os.str();
}

/// A type that Attribute must not be made of by conversion to bool or to a string.
template <typename T> constexpr bool converts = std::is_convertible_v<T, Attribute>;

//===--- Construction -----------------------------------------------------===//

/// Each literal and each type of number or text becomes the alternative that it looks like.
TEST(Attribute, ImplicitConstruction) {
  EXPECT_EQ(Attribute().kind(), Kind::None);
  EXPECT_EQ(Attribute(true).kind(), Kind::Bool);
  EXPECT_EQ(Attribute(0).kind(), Kind::Int);
  EXPECT_EQ(Attribute(-1).kind(), Kind::Int);
  EXPECT_EQ(Attribute(1u).kind(), Kind::Int);
  EXPECT_EQ(Attribute(int64_t(1)).kind(), Kind::Int);
  EXPECT_EQ(Attribute(1ll).kind(), Kind::Int);
  EXPECT_EQ(Attribute(size_t(1)).kind(), Kind::Int);
  EXPECT_EQ(Attribute(uint8_t(1)).kind(), Kind::Int);
  EXPECT_EQ(Attribute(Dim::symbol("S")).kind(), Kind::Int);
  EXPECT_EQ(Attribute(1.0).kind(), Kind::Float);
  EXPECT_EQ(Attribute(1.0f).kind(), Kind::Float);
  EXPECT_EQ(Attribute("text").kind(), Kind::String);
  EXPECT_EQ(Attribute(std::string("text")).kind(), Kind::String);
  EXPECT_EQ(Attribute(llvm::StringRef("text")).kind(), Kind::String);
  EXPECT_EQ(Attribute(DType::F32).kind(), Kind::DType);
  EXPECT_EQ(Attribute(Device::cuda(0)).kind(), Kind::Device);
  EXPECT_EQ(Attribute(Attribute::List{1, "a"}).kind(), Kind::List);
}

/// Pointers, other than text, and other enumerations become nothing at all.
TEST(Attribute, NoSurprisingConversions) {
  enum class Other { A };
  static_assert(converts<const char *> && converts<bool> && converts<double> && converts<int>);
  static_assert(!converts<const int *>);
  static_assert(!converts<void *>);
  static_assert(!converts<std::nullptr_t>);
  static_assert(!converts<Other>);
}

/// In the pairs that builders take, values convert as well.
TEST(Attribute, ConvertsInPairs) {
  Dims dims = {Dim::symbol("B"), 2};
  llvm::SmallVector<int64_t, 2> ints = {3, 4};
  std::pair<llvm::StringRef, Attribute> pairs[] = {
      {"a", true}, {"b", 0}, {"c", 0.5}, {"d", "x"}, {"e", DType::I8}, {"f", dims}, {"g", ints}};
  std::string text;
  for (const auto &[name, value] : pairs)
    text += name.str() + "=" + value.str() + " ";
  EXPECT_EQ(text, R"(a=true b=0 c=0.5 d="x" e=i8 f=[B, 2] g=[3, 4] )");
}

/// An unsigned number above every int64 is an overflow rather than a negative number.
TEST(Attribute, LargeUnsigned) {
  EXPECT_EQ(Attribute(~uint64_t(0)).asDim()->isOverflow(), true);
  EXPECT_EQ(Attribute(~uint64_t(0) >> 1).asInt(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Attribute(~0u).asInt(), int64_t(4294967295));
}

/// Lists are made of dimensions and of numbers.
TEST(Attribute, ListsFromArrays) {
  Dims dims = {Dim::symbol("B"), 32};
  int64_t numbers[] = {1, -2};
  EXPECT_EQ(Attribute(llvm::ArrayRef<Dim>(dims)).str(), "[B, 32]");
  EXPECT_EQ(Attribute(llvm::ArrayRef<int64_t>(numbers)).str(), "[1, -2]");
  EXPECT_EQ(Attribute(Dims()).str(), "[]");
}

//===--- Access -----------------------------------------------------------===//

/// An accessor answers for its own alternative only.
TEST(Attribute, Accessors) {
  Attribute attributes[] = {Attribute(), true,       7,        1.5,
                            "text",      DType::F32, Device(), Attribute::List{1}};
  for (size_t i = 0; i < std::size(attributes); ++i) {
    const Attribute &a = attributes[i];
    EXPECT_EQ(a.kind(), Kind(i));
    EXPECT_EQ(a.isNone(), i == 0);
    EXPECT_EQ(a.asBool() != nullptr, i == 1);
    EXPECT_EQ(a.asDim() != nullptr, i == 2);
    EXPECT_EQ(a.asInt().has_value(), i == 2);
    EXPECT_EQ(a.asFloat() != nullptr, i == 3);
    EXPECT_EQ(a.asNumber().has_value(), i == 2 || i == 3);
    EXPECT_EQ(a.asString() != nullptr, i == 4);
    EXPECT_EQ(a.asDType() != nullptr, i == 5);
    EXPECT_EQ(a.asDevice() != nullptr, i == 6);
    EXPECT_EQ(a.asList() != nullptr, i == 7);
    EXPECT_EQ(a.asDims().has_value(), i == 7);
    EXPECT_EQ(a.asInts().has_value(), i == 7);
  }
}

/// A symbolic integer is a dimension but neither a constant integer nor a number.
TEST(Attribute, SymbolicIntegers) {
  Attribute symbol = Dim::symbol("S");
  EXPECT_TRUE(symbol.asDim());
  EXPECT_EQ(symbol.asInt(), std::nullopt);
  EXPECT_EQ(symbol.asNumber(), std::nullopt);
  EXPECT_EQ(Attribute(7).asNumber(), 7.0);
}

/// A list gives dimensions or integers only if all its elements are.
TEST(Attribute, ListsOfIntegers) {
  Attribute ints = Attribute::List{1, 2}, dims = Attribute::List{1, Dim::symbol("S")},
            mixed = Attribute::List{1, true}, empty = Attribute::List{};
  EXPECT_EQ(ints.asInts(), (llvm::SmallVector<int64_t, 4>{1, 2}));
  EXPECT_EQ(ints.asDims(), Dims({1, 2}));
  EXPECT_EQ(dims.asInts(), std::nullopt);
  EXPECT_EQ(dims.asDims(), Dims({1, Dim::symbol("S")}));
  EXPECT_EQ(mixed.asDims(), std::nullopt);
  EXPECT_EQ(mixed.asInts(), std::nullopt);
  EXPECT_EQ(empty.asDims(), Dims());
}

/// Symbols are replaced and collected in integers and in lists of lists, nowhere else.
TEST(Attribute, Symbols) {
  Attribute nested = Attribute::List{Dim::symbol("S"), Attribute::List{Dim::symbol("B")}, "S"};
  EXPECT_EQ(nested.substitute({{"S", 2}, {"B", 3}}).str(), "[2, [3], \"S\"]");
  EXPECT_EQ(nested.substitute({{"X", 2}}), nested);
  EXPECT_EQ(Attribute("S").substitute({{"S", 2}}), Attribute("S"));
  llvm::SmallVector<std::string> names;
  nested.collectSymbols(names);
  EXPECT_EQ(names, (llvm::SmallVector<std::string>{"S", "B"}));
}

//===--- Text -------------------------------------------------------------===//

/// Each alternative prints as the text form says.
TEST(Attribute, Print) {
  EXPECT_EQ(Attribute().str(), "none");
  EXPECT_EQ(Attribute(true).str(), "true");
  EXPECT_EQ(Attribute(false).str(), "false");
  EXPECT_EQ(Attribute(7).str(), "7");
  EXPECT_EQ(Attribute(Dim::symbol("S") * 8).str(), "8*S");
  EXPECT_EQ(Attribute(1.5).str(), "1.5");
  EXPECT_EQ(Attribute("text").str(), "\"text\"");
  EXPECT_EQ(Attribute(DType::F32).str(), "f32");
  EXPECT_EQ(Attribute(Device::cuda(0)).str(), "cuda:0");
  EXPECT_EQ(Attribute(Device::host()).str(), "host");
  EXPECT_EQ(Attribute(Attribute::List{1, 2}).str(), "[1, 2]");
  EXPECT_EQ(Attribute(Attribute::List{}).str(), "[]");
  EXPECT_EQ(Attribute(Attribute::List{Attribute(), Attribute::List{1.0, "a, b"}}).str(),
            "[none, [1.0, \"a, b\"]]");
}

/// A float has a '.', an exponent or a name, so that it never reads back as an integer.
TEST(Attribute, PrintDouble) {
  EXPECT_EQ(textOf(0.0), "0.0");
  EXPECT_EQ(textOf(-0.0), "-0.0");
  EXPECT_EQ(textOf(1), "1.0");
  EXPECT_EQ(textOf(-3), "-3.0");
  EXPECT_EQ(textOf(0.1), "0.1");
  EXPECT_EQ(textOf(1e22), "1e+22");
  EXPECT_EQ(textOf(5e-324), "5e-324");
  EXPECT_EQ(textOf(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
  EXPECT_EQ(textOf(-std::numeric_limits<double>::max()), "-1.7976931348623157e+308");
  EXPECT_EQ(textOf(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(textOf(nan), "nan");
  EXPECT_EQ(textOf(inf), "inf");
  EXPECT_EQ(textOf(-inf), "-inf");
}

/// Any finite double reads back bit for bit, and no shorter number of digits would do.
TEST(Attribute, DoublesReadBack) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 2000; ++i) {
    double value = fromBits(random());
    if (!std::isfinite(value))
      continue;
    std::string text = textOf(value);
    double back = std::strtod(text.c_str(), nullptr);
    EXPECT_EQ(std::memcmp(&back, &value, sizeof(value)), 0) << text;
    EXPECT_NE(text.find_first_of(".e"), std::string::npos) << text;

    size_t digits = 0;
    for (char c : text.substr(0, text.find('e')))
      digits += c >= '0' && c <= '9';
    if (digits < 3 || text.find('e') == std::string::npos)
      continue;
    char shorter[64];
    std::snprintf(shorter, sizeof(shorter), "%.*e", int(digits) - 2, value);
    EXPECT_NE(std::strtod(shorter, nullptr), value) << text << " is longer than " << shorter;
  }
}

/// Quotes, backslashes and control bytes are escaped; all else stays.
TEST(Attribute, PrintQuoted) {
  EXPECT_EQ(quoted(""), R"("")");
  EXPECT_EQ(quoted("plain text"), R"("plain text")");
  EXPECT_EQ(quoted("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(quoted("a\nb\tc"), R"("a\nb\tc")");
  EXPECT_EQ(quoted("\r\x01\x1b\x7f"), R"("\x0D\x01\x1B\x7F")");
  EXPECT_EQ(quoted(llvm::StringRef("a\0b", 3)), R"("a\x00b")");
  EXPECT_EQ(quoted("grün"), "\"grün\"");
  EXPECT_EQ(quoted("\xff"), "\"\xff\"");
}

//===--- Comparison -------------------------------------------------------===//

/// Equal attributes compare and hash equal; another kind or value tells them apart.
TEST(Attribute, EqualityAndHash) {
  Attribute attributes[] = {Attribute(),
                            true,
                            false,
                            1,
                            0,
                            Dim::symbol("S"),
                            1.0,
                            0.0,
                            -0.0,
                            nan,
                            inf,
                            "1",
                            "f32",
                            DType::F32,
                            DType::F64,
                            Device::host(),
                            Device::cuda(0),
                            Attribute::List{},
                            Attribute::List{1},
                            Attribute::List{1.0},
                            Attribute::List{1, 2},
                            Attribute::List{Attribute(Attribute::List{1})}};
  for (const Attribute &a : attributes)
    for (const Attribute &b : attributes) {
      EXPECT_EQ(a == b, &a == &b) << a.str() << " and " << b.str();
      EXPECT_EQ(hash_value(a) == hash_value(b), &a == &b) << a.str() << " and " << b.str();
    }
}

/// Whatever bits a nan has, it is the same nan, alone and in lists.
TEST(Attribute, NansAreEqual) {
  Attribute other = fromBits(0xfff8000000000123);
  EXPECT_EQ(other, Attribute(nan));
  EXPECT_EQ(hash_value(other), hash_value(Attribute(nan)));
  EXPECT_EQ(other.str(), "nan");
  EXPECT_EQ(Attribute(Attribute::List{other}), Attribute(Attribute::List{nan}));
}

/// Zeros of different sign differ, alone and in lists.
TEST(Attribute, ZerosDiffer) {
  EXPECT_NE(Attribute(0.0), Attribute(-0.0));
  EXPECT_NE(Attribute(Attribute::List{0.0}), Attribute(Attribute::List{-0.0}));
}

} // namespace
