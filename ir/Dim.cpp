//===- Dim.cpp - Constant and symbolic dimensions -------------------------===//
//
// A polynomial is a sorted list of terms, each a coefficient that is not zero and a monomial: the
// sorted names of its symbols, with repetition (S*S is {S, S}). Terms fall in degree, then rise in
// name. That is a graded lexicographic order: it is kept by multiplication, so that exact division
// can go term by term (Cox, Little, O'Shea, "Ideals, Varieties, and Algorithms", 2.3). Polynomials
// of at most one constant term are never stored: such a Dim is a constant.
//
// Coefficients are int64; sums and products of them are made in 128 bits and then checked, so that
// whether arithmetic overflows does not depend on the order of its steps.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/Dim.h"

#include "rondo/ir/DType.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <atomic>
#include <vector>

namespace rondo {

namespace {

using Monomial = std::vector<std::string>;

using Coefficient = __int128;

struct Term {
  Monomial symbols;
  Coefficient coefficient = 0;

  friend bool operator==(const Term &, const Term &) = default;
};
using Terms = std::vector<Term>;

bool precedes(const Monomial &a, const Monomial &b) {
  return a.size() != b.size() ? a.size() > b.size() : a < b;
}

bool fitsInt64(Coefficient coefficient) {
  return coefficient == int64_t(coefficient);
}

Monomial multiplyMonomials(const Monomial &a, const Monomial &b) {
  Monomial product;
  product.reserve(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(product));
  return product;
}

/// Sorts, adds up terms of equal monomial, drops zeros. Nothing when a coefficient, the number of
/// terms or the degree is out of bounds.
std::optional<Terms> canonicalise(Terms terms) {
  llvm::sort(terms, [](const Term &a, const Term &b) { return precedes(a.symbols, b.symbols); });
  Terms result;
  for (auto term = terms.begin(); term != terms.end();) {
    Term sum = std::move(*term);
    for (++term; term != terms.end() && term->symbols == sum.symbols; ++term)
      if (__builtin_add_overflow(sum.coefficient, term->coefficient, &sum.coefficient))
        return std::nullopt;
    if (!fitsInt64(sum.coefficient))
      return std::nullopt;
    if (sum.coefficient != 0)
      result.push_back(std::move(sum));
  }
  if (result.size() > Dim::maxTerms ||
      (!result.empty() && result.front().symbols.size() > Dim::maxDegree))
    return std::nullopt;
  return result;
}

/// Appends factor * terms to `sum`. The coefficients of `terms` and `factor` fit an int64, so that
/// products fit a Coefficient.
void addProducts(Terms &sum, const Terms &terms, const Term &factor) {
  for (const Term &term : terms)
    sum.push_back(
        {multiplyMonomials(term.symbols, factor.symbols), term.coefficient * factor.coefficient});
}

/// a + factor * b.
std::optional<Terms> addScaled(const Terms &a, const Terms &b, const Term &factor) {
  Terms sum = a;
  sum.reserve(a.size() + b.size());
  addProducts(sum, b, factor);
  return canonicalise(std::move(sum));
}

std::optional<Terms> multiplyTerms(const Terms &a, const Terms &b) {
  Terms product;
  product.reserve(a.size() * b.size());
  for (const Term &term : b)
    addProducts(product, a, term);
  return canonicalise(std::move(product));
}

/// a / b if b divides a with an integer coefficient that an int64 holds.
std::optional<Term> divideTerms(const Term &a, const Term &b) {
  if (a.coefficient % b.coefficient != 0 || !fitsInt64(a.coefficient / b.coefficient) ||
      !std::includes(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end()))
    return std::nullopt;
  Term quotient;
  quotient.coefficient = a.coefficient / b.coefficient;
  std::set_difference(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end(),
                      std::back_inserter(quotient.symbols));
  return quotient;
}

bool isIdentifierStart(char c) {
  return llvm::isAlpha(c) || c == '_';
}
bool isIdentifierPart(char c) {
  return llvm::isAlnum(c) || c == '_';
}

} // namespace

namespace detail {

/// The shared, immutable part of symbolic dimensions: canonical terms, or the mark of an overflow.
class Polynomial {
public:
  /// The dimension that is the sum of `terms`; overflow when there are none to be had.
  static Dim makeDim(std::optional<Terms> terms) {
    if (!terms)
      return Dim::overflow();
    if (terms->empty())
      return 0;
    if (terms->size() == 1 && terms->front().symbols.empty())
      return int64_t(terms->front().coefficient);
    return Dim(*new Polynomial(std::move(*terms)));
  }
  static Dim makeOverflow() { return Dim(*new Polynomial({})); }
  /// The terms of `dim`; nothing for an overflow.
  static std::optional<Terms> termsOf(const Dim &dim) {
    if (dim.isOverflow())
      return std::nullopt;
    if (!dim.isConstant())
      return dim.polynomial_->terms_;
    if (dim.constant_ == 0)
      return Terms();
    return Terms{{{}, dim.constant_}};
  }

  /// An overflow has no terms; a zero polynomial, which has none either, is a constant.
  bool isOverflow() const { return terms_.empty(); }
  const Terms &terms() const { return terms_; }
  llvm::hash_code hash() const { return hash_; }
  void retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete this;
  }

private:
  explicit Polynomial(Terms terms) : terms_(std::move(terms)), hash_(hashTerms(terms_)) {}

  static llvm::hash_code hashTerms(const Terms &terms) {
    llvm::hash_code hash = llvm::hash_value(terms.size());
    for (const Term &term : terms)
      hash = llvm::hash_combine(hash, int64_t(term.coefficient),
                                llvm::hash_combine_range(term.symbols.begin(), term.symbols.end()));
    return hash;
  }

  const Terms terms_;
  const llvm::hash_code hash_;
  mutable std::atomic<uint32_t> references_ = 0;
};

void retainPolynomial(const Polynomial *polynomial) {
  polynomial->retain();
}
void releasePolynomial(const Polynomial *polynomial) {
  polynomial->release();
}
bool isOverflow(const Polynomial *polynomial) {
  return polynomial->isOverflow();
}

} // namespace detail

using detail::Polynomial;

//===--- Construction and arithmetic --------------------------------------===//

bool Dim::isSymbolName(llvm::StringRef name) {
  if (name.empty() || !isIdentifierStart(name.front()) || !llvm::all_of(name, isIdentifierPart))
    return false;
  static constexpr llvm::StringLiteral reserved[] = {"none", "true", "false", "nan", "inf", "host"};
  return !llvm::is_contained(reserved, name) && !parseDType(name);
}

Dim Dim::symbol(llvm::StringRef name) {
  assert(isSymbolName(name) && "no name for a symbol");
  return Polynomial::makeDim(Terms{{{name.str()}, 1}});
}

Dim Dim::overflow() {
  return Polynomial::makeOverflow();
}

Dim Dim::addSlow(const Dim &a, const Dim &b) {
  std::optional<Terms> x = Polynomial::termsOf(a), y = Polynomial::termsOf(b);
  return Polynomial::makeDim(x && y ? addScaled(*x, *y, {{}, 1}) : std::nullopt);
}

Dim Dim::subtractSlow(const Dim &a, const Dim &b) {
  std::optional<Terms> x = Polynomial::termsOf(a), y = Polynomial::termsOf(b);
  return Polynomial::makeDim(x && y ? addScaled(*x, *y, {{}, -1}) : std::nullopt);
}

Dim Dim::multiplySlow(const Dim &a, const Dim &b) {
  std::optional<Terms> x = Polynomial::termsOf(a), y = Polynomial::termsOf(b);
  return Polynomial::makeDim(x && y ? multiplyTerms(*x, *y) : std::nullopt);
}

std::optional<Dim> Dim::exactQuotient(const Dim &a, const Dim &b) {
  std::optional<Terms> rest = Polynomial::termsOf(a), divisor = Polynomial::termsOf(b);
  if (!rest || !divisor || divisor->empty())
    return std::nullopt;
  Terms quotient;
  while (!rest->empty()) {
    std::optional<Term> term = divideTerms(rest->front(), divisor->front());
    if (!term || quotient.size() == maxTerms)
      return std::nullopt;
    rest = addScaled(*rest, *divisor, {term->symbols, -term->coefficient});
    if (!rest)
      return std::nullopt;
    quotient.push_back(std::move(*term));
  }
  return Polynomial::makeDim(std::move(quotient));
}

bool Dim::equalSlow(const Dim &a, const Dim &b) {
  if (a.polynomial_ == b.polynomial_)
    return true;
  if (a.isConstant() || b.isConstant())
    return false;
  return a.polynomial_->hash() == b.polynomial_->hash() &&
         a.polynomial_->terms() == b.polynomial_->terms();
}

llvm::hash_code Dim::hashSlow(const Dim &dim) {
  return dim.polynomial_->hash();
}

//===--- Symbols ----------------------------------------------------------===//

Dim Dim::substitute(const SymbolBindings &bindings) const {
  if (isConstant() || isOverflow() || bindings.empty())
    return *this;
  Terms terms;
  for (const Term &term : polynomial_->terms()) {
    Term bound;
    bound.coefficient = term.coefficient;
    for (const std::string &symbol : term.symbols) {
      auto binding = bindings.find(symbol);
      if (binding == bindings.end())
        bound.symbols.push_back(symbol);
      else if (__builtin_mul_overflow(bound.coefficient, binding->second, &bound.coefficient))
        return overflow();
    }
    terms.push_back(std::move(bound));
  }
  return Polynomial::makeDim(canonicalise(std::move(terms)));
}

void Dim::collectSymbols(llvm::SmallVectorImpl<std::string> &names) const {
  if (isConstant())
    return;
  std::vector<std::string> mine;
  for (const Term &term : polynomial_->terms())
    mine.insert(mine.end(), term.symbols.begin(), term.symbols.end());
  llvm::sort(mine);
  mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
  names.append(mine.begin(), mine.end());
}

//===--- Text -------------------------------------------------------------===//

static void printTerm(llvm::raw_ostream &os, const Term &term, bool isFirst) {
  bool isNegative = term.coefficient < 0;
  if (isNegative)
    os << '-';
  else if (!isFirst)
    os << '+';
  auto magnitude = uint64_t(isNegative ? -term.coefficient : term.coefficient);
  if (term.symbols.empty()) {
    os << magnitude;
    return;
  }
  if (magnitude != 1)
    os << magnitude << '*';
  llvm::interleave(term.symbols, os, "*");
}

void Dim::print(llvm::raw_ostream &os) const {
  if (isConstant()) {
    os << constant_;
    return;
  }
  if (isOverflow()) {
    os << "<overflow>";
    return;
  }
  bool isFirst = true;
  for (const Term &term : polynomial_->terms()) {
    printTerm(os, term, isFirst);
    isFirst = false;
  }
}

std::string Dim::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return os.str();
}

/// Removes a factor, a number or a symbol, from the front of `text` and multiplies `term` by it.
static bool consumeFactor(llvm::StringRef &text, Term &term) {
  text = text.ltrim();
  if (text.empty())
    return false;
  if (llvm::isDigit(text.front())) {
    uint64_t magnitude;
    return !text.consumeInteger(10, magnitude) &&
           !__builtin_mul_overflow(term.coefficient, magnitude, &term.coefficient);
  }
  llvm::StringRef symbol = text.take_while(isIdentifierPart);
  if (!Dim::isSymbolName(symbol))
    return false;
  text = text.drop_front(symbol.size());
  term.symbols.push_back(symbol.str());
  return true;
}

/// Removes `token`, after any white space, from the front of `text` if it is there.
static bool consumeToken(llvm::StringRef &text, char token) {
  llvm::StringRef rest = text.ltrim();
  if (rest.empty() || rest.front() != token)
    return false;
  text = rest.drop_front();
  return true;
}

std::optional<Dim> Dim::parse(llvm::StringRef text) {
  if (int64_t constant; !text.getAsInteger(10, constant)) // nearly every dimension
    return Dim(constant);
  Terms terms;
  bool isNegative = consumeToken(text, '-');
  while (true) {
    Term term;
    term.coefficient = isNegative ? -1 : 1;
    do {
      if (!consumeFactor(text, term))
        return std::nullopt;
    } while (consumeToken(text, '*'));
    llvm::sort(term.symbols);
    terms.push_back(std::move(term));

    isNegative = consumeToken(text, '-');
    if (!isNegative && !consumeToken(text, '+'))
      break;
  }
  std::optional<Terms> sum = canonicalise(std::move(terms));
  if (!text.trim().empty() || !sum)
    return std::nullopt;
  return Polynomial::makeDim(std::move(sum));
}

//===--- Shapes -----------------------------------------------------------===//

Dim numElements(llvm::ArrayRef<Dim> shape) {
  Dim product = 1;
  bool isEmpty = false, overflows = false;
  for (const Dim &dim : shape) {
    product = product * dim;
    isEmpty |= dim.isConstant(0);
    overflows |= dim.isOverflow();
  }
  // Whether the other sizes of an empty shape overflow must not depend on where the 0 stands.
  return isEmpty && !overflows ? Dim(0) : product;
}

Dims contiguousStrides(llvm::ArrayRef<Dim> shape) {
  Dims strides(shape.size());
  Dim stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    if (i != 0 && !shape[i].isConstant(0))
      stride = stride * shape[i];
  }
  return strides;
}

std::optional<llvm::SmallVector<int64_t, 4>> asConstants(llvm::ArrayRef<Dim> dims) {
  llvm::SmallVector<int64_t, 4> constants;
  constants.reserve(dims.size());
  for (const Dim &dim : dims) {
    if (!dim.isConstant())
      return std::nullopt;
    constants.push_back(dim.value());
  }
  return constants;
}

} // namespace rondo
