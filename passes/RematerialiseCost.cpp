//===- RematerialiseCost.cpp - What does it cost to compute an op? --------===//
//
// A roofline: the time of an op is that of its memory traffic or that of its arithmetic, whichever
// is more, in bytes of traffic. Traffic follows from types and effects. Arithmetic only matters
// where a byte is used many times, in contractions; what they contract is no effect, so they are
// listed by name here, and nowhere else; so are lookups, which read as much as they give.
//
//===----------------------------------------------------------------------===//

#include "rondo/passes/Rematerialise.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;

namespace {

/// Multiplications of result 0 are its elements times a contracted size.
struct Contraction {
  llvm::StringLiteral name;
  unsigned operand; ///< the last dimension of which is contracted
};

} // namespace

constexpr Contraction contractions[] = {{"mm", 0},     {"bmm", 0},   {"matmul", 0},
                                        {"linear", 0}, {"addmm", 1}, {"baddbmm", 1}};

/// Read as many elements of operand 0 as the result has, not all of it.
constexpr llvm::StringLiteral lookups[] = {"embedding", "gather", "index_select", "index"};

static double numElementsOf(llvm::ArrayRef<Dim> shape) {
  double count = 1;
  for (const Dim &size : shape)
    count *= double(size.asConstant().value_or(1));
  return count;
}

static double numElementsOf(const Trace &trace, ValueId value) {
  const TensorType *tensor = trace.type(value).asTensor();
  return tensor ? numElementsOf(tensor->shape) : 0;
}

static double bytesOf(const Trace &trace, ValueId value) {
  const TensorType *tensor = trace.type(value).asTensor();
  return tensor ? numElementsOf(tensor->shape) * double(dtypeSize(tensor->dtype)) : 0;
}

static llvm::ArrayRef<Dim> shapeOf(const Trace &trace, const Op &op, unsigned operand) {
  if (operand >= op.operands().size() || !op.operand(operand))
    return {};
  const TensorType *tensor = trace.type(op.operand(operand)).asTensor();
  return tensor ? llvm::ArrayRef<Dim>(tensor->shape) : llvm::ArrayRef<Dim>();
}

/// Multiplications and additions of an op that contracts; 0 for others.
static double flopsOf(const Trace &trace, const Op &op) {
  if (op.results().empty())
    return 0;
  double results = numElementsOf(trace, op.result());
  for (const Contraction &contraction : contractions)
    if (op.name() == contraction.name)
      return 2 * results * numElementsOf(shapeOf(trace, op, contraction.operand).take_back());
  if (op.name() == "scaled_dot_product_attention") {
    // Scores are queries times keys, and are contracted with the values: S times each.
    double keys = numElementsOf(shapeOf(trace, op, 1).drop_back().take_back());
    return 2 * keys * (numElementsOf(shapeOf(trace, op, 0)) + results);
  }
  if (op.name() == "convolution") {
    // A weight of [K, C / groups, kernel...]: all but K for each element of the result. Transposed,
    // it is [C, K / groups, kernel...]: all but C for each element of the input.
    const Attribute *transposed = op.attribute("transposed");
    bool isTransposed = transposed && transposed->asBool() && *transposed->asBool();
    double elements = isTransposed ? numElementsOf(shapeOf(trace, op, 0)) : results;
    llvm::ArrayRef<Dim> weight = shapeOf(trace, op, 1);
    return 2 * elements * numElementsOf(weight.empty() ? weight : weight.drop_front());
  }
  return 0;
}

double rondo::estimateOpCost(const Trace &trace, const Op &op) {
  double cost = 0;
  for (BodyId body : op.bodies())
    for (OpId inner : trace.ops(body))
      cost += estimateOpCost(trace, trace.op(inner));
  if (!op.bodies().empty() || !op.spec().launches)
    return cost;
  for (ValueId operand : op.operands())
    if (operand)
      cost += bytesOf(trace, operand);
  if (llvm::is_contained(lookups, op.name()))
    cost += bytesOf(trace, op.result()) - bytesOf(trace, op.operand(0));
  for (ValueId result : op.results())
    cost += bytesOf(trace, result);
  return std::max(cost, flopsOf(trace, op) / flopsPerByte);
}
