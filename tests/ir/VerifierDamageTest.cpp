//===- VerifierDamageTest.cpp - Traces that were damaged at random ----------===//

#include "VerifierCases.h"

#include "llvm/ADT/STLExtras.h"

#include <random>

using namespace rondo;
using namespace rondo::test;

namespace {

const TensorType f32x8(DType::F32, {8});

/// Damages a trace through its public functions, within their contracts.
class Vandal {
public:
  Vandal(Trace &trace, unsigned seed) : trace_(trace), random_(seed) {}

  void strike() {
    switch (below(12)) {
    case 0:
    case 1:
      return setOperand();
    case 2:
    case 3:
      return setOps();
    case 4:
      return setType();
    case 5:
      return trace_.setProperties(TraceProperties(below(8)));
    case 6:
      return rename();
    case 7:
      return setAttribute();
    case 8:
      return dropOperands();
    case 9:
      return changeArguments();
    case 10:
      return annotate();
    case 11:
      return eraseOp();
    }
  }

private:
  unsigned below(unsigned bound) { return bound ? random_() % bound : 0; }
  ValueId anyValue() {
    switch (below(8)) {
    case 0:
      return {};
    case 1:
      return ValueId(trace_.numValues() + below(100));
    default:
      return ValueId(below(trace_.numValues()));
    }
  }
  OpId anyOp() {
    for (;;)
      if (OpId op(below(trace_.numOps())); !trace_.isErased(op))
        return op;
  }
  BodyId anyBody() { return BodyId(below(trace_.numBodies())); }

  void setOperand() {
    OpId op = anyOp();
    if (unsigned count = trace_.op(op).operands().size())
      trace_.setOperand(op, below(count), anyValue());
  }
  void dropOperands() {
    OpId op = anyOp();
    llvm::SmallVector<ValueId> operands(trace_.op(op).operands().begin(),
                                        trace_.op(op).operands().end());
    operands.resize(below(operands.size() + 2));
    trace_.setOperands(op, operands);
  }
  void setOps() {
    BodyId body = anyBody();
    std::vector<OpId> order;
    for (OpId op : trace_.ops(body))
      if (below(8) && !trace_.isErased(op))
        order.push_back(op);
    if (below(2))
      order.insert(order.begin() + below(order.size() + 1), anyOp());
    if (order.size() > 1 && below(2))
      std::swap(order[below(order.size())], order[below(order.size())]);
    trace_.setOps(body, order);
  }
  void setType() {
    const Type types[] = {TensorType(DType::F32, {8}),
                          TensorType(DType::Bool, {}),
                          TensorType(DType::F32, {8}, {0}, Device::cuda(1)),
                          TensorType(DType::F32, {Dim::overflow()}),
                          TensorType(DType::F32, {Dim::symbol("B"), -4}),
                          ScalarKind::Bool,
                          RNGStateType{},
                          OpaqueType{"nobody.knows", "this"}};
    trace_.setType(ValueId(below(trace_.numValues())), types[below(std::size(types))]);
  }
  void rename() {
    const char *names[] = {"", "x", "y", "z"};
    trace_.setName(ValueId(below(trace_.numValues())), names[below(4)]);
  }
  void setAttribute() {
    const char *names[] = {"dim", "region", "inputs", "offset", "shape", "generator", "count"};
    const Attribute values[] = {{},
                                -1,
                                Dim::overflow(),
                                "text",
                                Attribute::List{8, -1},
                                Attribute::List{"auto", "static"},
                                1e300,
                                Device::host()};
    llvm::StringRef name = names[below(std::size(names))];
    if (below(4))
      trace_.setAttribute(anyOp(), name, values[below(std::size(values))]);
    else
      trace_.removeAttribute(anyOp(), name);
  }
  void changeArguments() {
    BodyId body = anyBody();
    if (unsigned count = trace_.arguments(body).size(); count && below(2))
      trace_.eraseArgument(body, below(count));
    else
      trace_.addArgument(body, f32x8, "x");
  }
  void annotate() {
    OpId op = anyOp();
    if (below(2))
      return trace_.setDomain(op, CaptureDomain::create("d"));
    Claim claim;
    claim.executor = below(2) ? "host" : "";
    trace_.setClaim(op, claim);
  }
  void eraseOp() {
    OpId op = anyOp();
    // An op that its body does not list may not be erased.
    if (!trace_.op(op).body() || llvm::is_contained(trace_.ops(trace_.op(op).body()), op))
      trace_.eraseOp(op);
    if (trace_.numOps() < 100)
      trace_.createOp(OpInit{trace_.registry().lookup("relu"), {anyValue()}, {f32x8}, {}, {}, 0});
  }

  Trace &trace_;
  std::mt19937 random_;
};

class VerifierDamageTest : public VerifierTestBase, public testing::Test {};

/// No damage makes the verifier crash or hang, and its answer depends on the trace only.
TEST_F(VerifierDamageTest, SurvivesRandomDamage) {
  llvm::StringRef text = R"(trace @t(%p: bool, %x: f32[8], %b: f32[8]) regions dels {
  domain #0 "d"
  %s: rng = generator_read()
  %v: f32[8] = detach(%x)
  %x1: f32[8] = add_(%x, %b)
  %y: f32[8] = cuda_graph(%x1, %b) {inputs = ["auto", "static"], region = 0} domain #0 {
  ^(%x: f32[8], %b: f32[8]):
    %x1: f32[8] = add_(%x, %b)
    return(%x1)
  }
  %z: f32[8] = if(%p, %y, %b) {
  ^(%x: f32[8], %y: f32[8]):
    %z: f32[8] = fused(%y) {
    ^(%x: f32[8]):
      %y: f32[8] = zero_(%x)
      return(%y)
    }
    return(%z)
  } {
  ^(%x: f32[8], %y: f32[8]):
    return(%x)
  }
  %q: bool, %c: f32[8], %d: f32[8] = while(%p, %z, %z) {
  ^(%p: bool, %x: f32[8], %y: f32[8]):
    return(%p)
  } {
  ^(%p: bool, %x: f32[8], %y: f32[8]):
    %z: f32[8] = zero_(%x)
    return(%p, %z, %z)
  }
  %e: f32[4], %f: f32[4] = split(%c) {dim = 0, sizes = [4, 4]}
  %g: f32[8] = all_reduce(%d)
  generator_advance() {count = 8}
  del(%e)
  return(%g, %f, none)
})";
  Trace original = llvm::cantFail(parseTrace(text, "t.trace", registry));
  unsigned refused = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    Trace trace = original.clone();
    Vandal vandal(trace, seed);
    for (unsigned i = 0; i < 1 + seed % 20; ++i)
      vandal.strike();
    std::string first = diagnose(trace);
    ASSERT_EQ(first, diagnose(trace)) << "seed " << seed;
    refused += !first.empty();
  }
  EXPECT_GT(refused, 1200u);
}

} // namespace
