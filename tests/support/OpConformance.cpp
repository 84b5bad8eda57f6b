//===- OpConformance.cpp - What every executor must compute ---------------===//

#include "support/OpConformance.h"

#include "support/OpCases.h"
#include "support/Sanitizers.h"
#include "support/TensorTesting.h"

#include "rondo/ir/Diagnostic.h"

using namespace rondo;

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// The numbers of `arg` as `dtype` holds them: a tested integer dtype has no fractions, and in bool
/// both values are as likely.
static std::vector<double> numbersFor(const Arg &arg, DType dtype) {
  std::vector<double> values = arg.values;
  if (arg.kind != ArgKind::Element || isFloat(dtype))
    return values;
  for (double &value : values) {
    if (dtype == DType::Bool)
      value = value > 0;
    else
      value = std::floor(value * 4);
    if (dtype == DType::U8)
      value = std::fabs(value);
  }
  return values;
}

/// The operand of `arg`; its RNG state is borrowed.
static OperandInit operandOf(Arg &arg, DType tested, Layout layout) {
  if (arg.kind == ArgKind::Scalar)
    return OperandInit(arg.scalar);
  if (arg.kind == ArgKind::RNG)
    return OperandInit(arg.state);
  if (arg.kind == ArgKind::None)
    return OperandInit();
  DType dtype = dtypeOf(arg, tested);
  return OperandInit(withLayout(tensorOf(dtype, arg.shape, numbersFor(arg, dtype)), layout));
}

/// A row-major copy, of floats in f64 if asked for.
static OperandInit copyOf(const OperandInit &operand, bool inDouble) {
  const Tensor *tensor = operand.value.asTensor();
  if (!tensor)
    return operand;
  if (!inDouble || !isFloat(tensor->dtype()))
    return OperandInit(withLayout(*tensor, Layout::Contiguous));
  return OperandInit(tensorOf(DType::F64, tensor->shape(), valuesOf(*tensor)));
}

/// With f64 in place of every floating-point dtype.
static std::vector<AttributeInit> inDouble(std::vector<AttributeInit> attributes) {
  for (AttributeInit &attribute : attributes)
    if (const DType *dtype = attribute.second.asDType(); dtype && isFloat(*dtype))
      attribute.second = DType::F64;
  return attributes;
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

/// What the elements are compared as: bool as the bytes that it consists of.
static TensorRef comparable(const Tensor &tensor) {
  TensorRef ref = tensor.ref();
  if (ref.dtype == DType::Bool)
    ref.dtype = DType::U8;
  return ref;
}

static bool isSame(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

/// `[1, 4] is 3.5, expected 3`: the first element that differs by more than `tolerance` of the size
/// of a typical one.
static std::string firstDifference(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<double> actual,
                                   llvm::ArrayRef<double> expected, double tolerance) {
  double squares = 0;
  int64_t count = 0;
  for (double value : expected)
    if (std::isfinite(value)) {
      squares += value * value;
      ++count;
    }
  double bound = count > 0 ? tolerance * std::sqrt(squares / double(count)) : 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (isSame(actual[i], expected[i]) || std::fabs(actual[i] - expected[i]) <= bound)
      continue;
    std::string place;
    int64_t rest = i;
    for (int64_t size : llvm::reverse(shape)) {
      place = std::to_string(rest % size) + (place.empty() ? "" : ", ") + place;
      rest /= size;
    }
    std::string text;
    llvm::raw_string_ostream(text) << '[' << place << "] is " << llvm::format("%.9g", actual[i])
                                   << ", expected " << llvm::format("%.9g", expected[i]);
    return text;
  }
  return "many elements are slightly off";
}

/// What `dtype` makes of a number that is too large or too small for it; else the number itself.
static double inRangeOf(DType dtype, double value) {
  return host::dispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    using Limits = std::numeric_limits<T>;
    double size = std::fabs(value);
    bool isInRange =
        size <= static_cast<double>(Limits::max()) && size >= static_cast<double>(Limits::min());
    return isInRange ? value : host::convert<double>(host::convert<T>(value));
  });
}

/// Equal as numbers of the kind that both are.
static bool isSameScalar(const Value &a, const Value &b, double tolerance) {
  if (a.asFloat() && b.asFloat())
    return isSame(*a.asFloat(), *b.asFloat()) ||
           std::fabs(*a.asFloat() - *b.asFloat()) <= tolerance * std::fabs(*b.asFloat());
  if (a.asInt() && b.asInt())
    return *a.asInt() == *b.asInt();
  if (a.asBool() && b.asBool())
    return *a.asBool() == *b.asBool();
  return a.isNone() && b.isNone();
}

namespace {

/// The difference between results, as text.
class Comparison {
public:
  Comparison(const OpCases &cases, const OpCase &test) : cases_(cases), test_(test) {}

  /// Empty if `actual` is as good as it has to be.
  std::string compare(const OpResults &actual, const OpResults &expected) const {
    if (actual.values.size() != expected.values.size())
      return std::to_string(actual.values.size()) + " results, expected " +
             std::to_string(expected.values.size());
    for (size_t i = 0; i < actual.values.size(); ++i) {
      std::string text = compareValue(actual.values[i], expected.values[i]);
      if (text.empty() && !isSameState(actual.states[i], expected.states[i]))
        text = "another RNG state";
      if (!text.empty())
        return "result " + std::to_string(i) + ": " + text;
    }
    return "";
  }

  static bool isSameState(RNGState a, RNGState b) {
    return a.seed == b.seed && a.offset == b.offset;
  }

private:
  double tolerance(DType dtype) const {
    if (cases_.check == OpCheck::SameDType)
      return 0;
    switch (dtype) {
    case DType::F64:
      return 1e-12;
    case DType::F32:
      return cases_.f32Tolerance;
    case DType::F16:
      return 2e-3;
    case DType::BF16:
      return 1e-2;
    default:
      return 0;
    }
  }

  std::string compareValue(const Value &actual, const Value &expected) const {
    const Tensor *a = actual.asTensor(), *b = expected.asTensor();
    if (!a || !b)
      return isSameScalar(actual, expected, 0)
                 ? ""
                 : actual.description() + ", expected " + expected.description();
    if (a->shape() != b->shape())
      return actual.description() + ", expected " + expected.description();
    if (!gapsArePoisoned(*a))
      return "bytes between the elements of " + actual.description() + " were written";
    if (cases_.check == OpCheck::Nothing)
      return "";
    if (isFloat(a->dtype()) != isFloat(b->dtype()))
      return actual.description() + ", expected " + expected.description();
    return isFloat(a->dtype()) ? compareFloats(*a, *b) : compareIntegers(*a, *b);
  }

  std::string compareFloats(const Tensor &a, const Tensor &b) const {
    std::vector<double> actual = valuesOf(a), expected = valuesOf(b);
    for (double &value : expected)
      value = inRangeOf(a.dtype(), value);
    double error = relativeError(actual, expected), bound = tolerance(a.dtype());
    if (test_.leastNorm > 0)
      error = std::min(error, absoluteError(actual, expected) / test_.leastNorm);
    if (error <= bound)
      return "";
    std::string text;
    llvm::raw_string_ostream(text)
        << Value(a).description() << ": relative error " << llvm::format("%.3g", error) << ", "
        << firstDifference(a.shape(), actual, expected, bound);
    return text;
  }

  /// ‖a − b‖; infinite if the two differ in what is nan or infinite.
  static double absoluteError(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
    double squares = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      if (std::isfinite(a[i]) && std::isfinite(b[i]))
        squares += (a[i] - b[i]) * (a[i] - b[i]);
      else if (a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i])))
        return std::numeric_limits<double>::infinity();
    }
    return std::sqrt(squares);
  }

  std::string compareIntegers(const Tensor &a, const Tensor &b) const {
    std::vector<int64_t> actual = host::toDense<int64_t>(comparable(a)),
                         expected = host::toDense<int64_t>(comparable(b));
    if (a.dtype() == b.dtype() && actual == expected)
      return "";
    return Value(a).description() + ": " +
           firstDifference(a.shape(), std::vector<double>(actual.begin(), actual.end()),
                           std::vector<double>(expected.begin(), expected.end()), 0);
  }

  const OpCases &cases_;
  const OpCase &test_;
};

/// How the tensors of a case lie in memory.
struct Arrangement {
  const char *name;
  std::optional<Layout> operands; ///< none: another one for each operand
  Layout results = Layout::Contiguous;
  bool reusesOperands = false;

  Layout operand(unsigned i) const { return operands ? *operands : allLayouts[(i + 1) % 4]; }
  /// The operands have the numbers of the case, none repeated.
  bool keepsNumbers() const { return operands && *operands != Layout::Expanded; }
};
constexpr Arrangement arrangements[] = {
    {"contiguous", Layout::Contiguous},
    {"transposed", Layout::Transposed},
    {"expanded", Layout::Expanded},
    {"sliced", Layout::Sliced},
    {"mixed layouts", std::nullopt},
    {"transposed results", Layout::Contiguous, Layout::Transposed},
    {"results with gaps", Layout::Contiguous, Layout::Sliced},
    {"results in operands", Layout::Contiguous, Layout::Contiguous, true},
    {"results in transposed operands", Layout::Transposed, Layout::Transposed, true},
};

/// The arrangements of one case in one dtype.
class CaseRun {
public:
  CaseRun(const OpTarget &target, const OpCases &cases, OpCase test, DType dtype,
          Arrangements which)
      : target_(target), cases_(cases), test_(std::move(test)), dtype_(dtype), which_(which),
        inDouble_(isFloat(dtype) && cases.check == OpCheck::InDouble),
        spec_(*coreOps().lookup(cases.op)) {
    if (cases.takesDType)
      test_.attributes.push_back({"dtype", dtype});
  }

  /// What is wrong, a line for each arrangement.
  std::vector<std::string> failures() {
    std::vector<std::string> failures;
    for (const Arrangement &arrangement : arrangements) {
      if (!isWorthwhile(arrangement) || isLeftOut(&arrangement - arrangements))
        continue;
      std::string text = run(arrangement);
      if (!text.empty())
        failures.push_back("'" + test_.name + "', " + arrangement.name + ": " + text);
    }
    return failures;
  }

private:
  bool isLeftOut(size_t arrangement) const {
    size_t dtype = llvm::find(cases_.dtypes, dtype_) - cases_.dtypes.begin();
    return which_ == Arrangements::Third && cases_.dtypes.size() > 2 &&
           (arrangement + dtype) % 3 != 0;
  }

  bool isWorthwhile(const Arrangement &arrangement) const {
    size_t numTensors = llvm::count_if(test_.args, [](const Arg &arg) { return arg.isTensor(); });
    if (arrangement.reusesOperands && (test_.isLarge || !spec_.writes.empty()))
      return false;
    if (arrangement.results != Layout::Contiguous)
      return !test_.isLarge && spec_.writes.empty() && !spec_.results.empty() &&
             !resultTypes(arrangement.results).empty();
    if (arrangement.operands == Layout::Contiguous)
      return true;
    return !test_.isLarge && numTensors > (arrangement.operands ? 0 : 1);
  }

  /// Does the op write the operand? All that are variadic, if it writes the first of them.
  bool isWritten(unsigned i) const {
    unsigned last = spec_.operands.size() - 1;
    return llvm::is_contained(spec_.writes, spec_.isVariadic() ? std::min(i, last) : i);
  }

  /// Of what the case gave row-major, in another layout; empty unless all results are tensors.
  std::vector<Type> resultTypes(Layout layout) const {
    std::vector<Type> types;
    for (const Value &value : rowMajor_.values) {
      const Tensor *tensor = value.asTensor();
      if (!tensor)
        return {};
      LayoutStrides place = layoutStrides(tensor->shape(), layout);
      types.emplace_back(TensorType(tensor->dtype(), tensor->type().shape,
                                    Dims(place.strides.begin(), place.strides.end()),
                                    Device::host()));
    }
    return types;
  }

  /// What is wrong; empty if nothing is.
  std::string run(const Arrangement &arrangement) {
    std::vector<OperandInit> operands, copies;
    for (unsigned i = 0; i < test_.args.size(); ++i) {
      Layout layout = arrangement.operand(i);
      if (layout == Layout::Expanded && isWritten(i))
        layout = Layout::Sliced;
      operands.push_back(operandOf(test_.args[i], dtype_, layout));
      copies.push_back(copyOf(operands.back(), inDouble_ && !test_.args[i].isOnlyDType));
    }
    RNGState state = initialState;
    std::vector<Type> types;
    if (arrangement.results != Layout::Contiguous)
      types = resultTypes(arrangement.results);
    std::string printed;
    OpTarget target = target_;
    target.reusesOperands = arrangement.reusesOperands;
    llvm::Expected<OpResults> actual = observe(target, operands, false, state, types, printed);
    if (!actual)
      return llvm::toString(actual.takeError());
    if (std::string text = expect(arrangement, copies); !text.empty())
      return text;
    if (arrangement.operands == Layout::Contiguous && arrangement.results == Layout::Contiguous)
      rowMajor_ = *actual;
    if (printed != expectedPrinted_)
      return "prints '" + printed + "', expected '" + expectedPrinted_ + "'";
    if (!Comparison::isSameState(state, expectedState_))
      return "another state of the generator";
    return Comparison(cases_, test_).compare(*actual, expected_);
  }

  /// Works out what the host gives unless it is known already.
  std::string expect(const Arrangement &arrangement, llvm::ArrayRef<OperandInit> copies) {
    bool isKnown = keepsNumbers_ && arrangement.keepsNumbers();
    if (isKnown)
      return "";
    expectedState_ = initialState;
    llvm::Expected<OpResults> expected =
        observe(hostOpTarget(), copies, inDouble_, expectedState_, {}, expectedPrinted_);
    if (!expected)
      return "on the host: " + llvm::toString(expected.takeError());
    expected_ = std::move(*expected);
    keepsNumbers_ = arrangement.keepsNumbers();
    return "";
  }

  llvm::Expected<OpResults> observe(const OpTarget &target, llvm::ArrayRef<OperandInit> operands,
                                    bool wantsDouble, RNGState &state, llvm::ArrayRef<Type> types,
                                    std::string &printed) const {
    std::vector<AttributeInit> attributes = test_.attributes;
    if (wantsDouble)
      attributes = inDouble(std::move(attributes));
    if (cases_.takesDevice)
      attributes.push_back({"device", target.device->device()});
    if (cases_.check == OpCheck::Printed)
      testing::internal::CaptureStderr();
    auto results = runOpOn(target, cases_.op, operands, attributes, &state, types);
    if (cases_.check == OpCheck::Printed)
      printed = testing::internal::GetCapturedStderr();
    return results;
  }

  static constexpr RNGState initialState = {0x123456789abcdef, (uint64_t(1) << 34) - 3};

  const OpTarget &target_;
  const OpCases &cases_;
  OpCase test_;
  DType dtype_;
  Arrangements which_;
  bool inDouble_; ///< the host computes in f64
  const OpSpec &spec_;
  OpResults rowMajor_; ///< what the target gave for contiguous operands
  OpResults expected_;
  RNGState expectedState_;
  std::string expectedPrinted_;
  bool keepsNumbers_ = false; ///< what is expected holds for all arrangements that keep numbers
};

} // namespace

//===----------------------------------------------------------------------===//
// The suite
//===----------------------------------------------------------------------===//

std::vector<std::string> rondo::findDisagreements(const OpTarget &target, const OpCases &cases,
                                                  DType dtype, Arrangements arrangements) {
  // The size of a large case is the point, not its dtype.
  bool isLargeRun =
      dtype == (llvm::is_contained(cases.dtypes, DType::F32) ? DType::F32 : cases.dtypes.front());
  std::vector<std::string> failures;
  for (const OpCase &test : cases.cases()) {
    if ((test.floatsOnly && !isFloat(dtype)) || (test.isLarge && !isLargeRun))
      continue;
    for (std::string &text : CaseRun(target, cases, test, dtype, arrangements).failures())
      failures.push_back(std::move(text));
  }
  return failures;
}

std::vector<OpConformanceParam> rondo::opConformanceTests(OpConformanceTarget target) {
  auto create = [create = std::move(target.create),
                 made = std::make_shared<std::optional<OpTarget>>()] {
    if (!*made)
      *made = create();
    return **made;
  };
  target.create = create;
  auto shared = std::make_shared<const OpConformanceTarget>(std::move(target));
  std::vector<OpConformanceParam> params;
  for (const OpCases &cases : opCaseTable())
    for (DType dtype : cases.dtypes)
      params.push_back({shared, &cases, dtype});
  return params;
}

std::string rondo::opConformanceName(const testing::TestParamInfo<OpConformanceParam> &info) {
  return info.param.cases->op + "_" + dtypeName(info.param.dtype).str();
}

void rondo::PrintTo(const OpConformanceParam &param, std::ostream *os) {
  *os << param.cases->op << ' ' << dtypeName(param.dtype).str();
}

namespace rondo {

// Not by every program that is linked with it.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpConformance);

// The kernel gives what the host gives in double, in every case and arrangement of operands and
// results.
TEST_P(OpConformance, AgreesWithTheHost) {
  const OpConformanceParam &param = GetParam();
  if (llvm::is_contained(param.target->withoutKernel, param.cases->op))
    GTEST_SKIP() << "need not have a kernel for " << param.cases->op;
  OpTarget target = param.target->create();
  if (HasFatalFailure())
    return;
  if (!target.device)
    GTEST_SKIP() << "no device";
  constexpr size_t maxShown = 5;
  // What sanitizers look for depends little on the dtype, and with them all this takes long.
  std::vector<std::string> failures =
      findDisagreements(target, *param.cases, param.dtype,
                        RONDO_IS_SANITIZED ? Arrangements::Third : Arrangements::All);
  for (size_t i = 0; i < std::min(failures.size(), maxShown); ++i)
    ADD_FAILURE() << param.cases->op << ' ' << dtypeName(param.dtype).str() << ' ' << failures[i];
  if (failures.size() > maxShown)
    ADD_FAILURE() << "and " << failures.size() - maxShown << " more";
}

} // namespace rondo
