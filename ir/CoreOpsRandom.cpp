//===- CoreOpsRandom.cpp - Random numbers ---------------------------------===//
//
// A random op takes the state that `generator_read` gave and draws its numbers from `offset`, in
// elements, after the state's base: the same state and offset give the same numbers.
//
//===----------------------------------------------------------------------===//

#include "CoreOpsTable.h"

#include <cmath>

using namespace rondo;
using Kind = AttributeKind;
using C = DTypeClass;

static llvm::Error inferDropout(Inference &in) {
  RONDO_TRY(in.dtypeIn(0, C::Float));
  const TensorType &x = in.tensor(0);
  RONDO_TRY(in.fresh(x.dtype, x.shape));
  return in.fresh(in.dtypeOr("mask_dtype", DType::Bool), x.shape);
}

static llvm::Error inferDropoutBackward(Inference &in) {
  RONDO_TRY(in.dtypeIn(0, C::Float));
  RONDO_TRY(in.shapeIs(1, in.tensor(0).shape));
  return in.fresh(in.tensor(0).dtype, in.tensor(0).shape);
}

static llvm::Error inferDrawn(Inference &in, DTypeClass allowed) {
  RONDO_LET(shape, in.sizes("shape"));
  DType dtype = in.dtypeOr("dtype", DType::F32);
  if (!isIn(allowed, dtype))
    return expects("attribute 'dtype' to be " + dtypeClassName(allowed) + ", got " +
                   dtypeName(dtype));
  return in.fresh(dtype, std::move(shape));
}

static llvm::Error inferFloatsDrawn(Inference &in) {
  return inferDrawn(in, C::Float);
}

static llvm::Error inferRandint(Inference &in) {
  RONDO_LET(low, in.constant("low"));
  RONDO_LET(high, in.constant("high"));
  if (low >= high)
    return expects("attribute 'high' above 'low', got " + llvm::Twine(high) + " and " +
                   llvm::Twine(low));
  return inferDrawn(in, C::Any);
}

static llvm::Error inferBernoulli(Inference &in) {
  RONDO_TRY(in.dtypeIn(0, C::Float));
  return in.fresh(in.tensor(0).dtype, in.tensor(0).shape);
}

static llvm::Error inferMultinomial(Inference &in) {
  RONDO_TRY(in.dtypeIn(0, C::Float));
  RONDO_LET(n, in.size("n"));
  const TensorType &weights = in.tensor(0);
  if (weights.rank() != 1 && weights.rank() != 2)
    return in.expectsOperand(0, "of rank 1 or 2");
  if (!in.op.boolAttribute("replacement") && !isAtMost(n, weights.shape.back()))
    return expects("attribute 'n' of at most " + weights.shape.back().str() +
                   " without replacement, got " + n.str());
  Dims shape = weights.shape;
  shape.back() = n;
  return in.fresh(DType::I64, std::move(shape));
}

static llvm::Error inferGeneratorRead(Inference &in) {
  in.results.emplace_back(RNGStateType{in.device});
  return llvm::Error::success();
}

static llvm::Error checkSeed(const OpContext &op) {
  const Type *seed = op.operand(0);
  if (seed && *seed == Type(ScalarKind::I64))
    return llvm::Error::success();
  return expects("operand 'seed' of type i64, got " + (seed ? seed->str() : std::string("none")));
}

/// One number for each element of the first result.
static Dim drawsPerElement(const OpContext &op) {
  return op.results()[0]->asTensor()->numElements();
}

static OpDef drawn(llvm::StringRef name, llvm::StringRef summary, llvm::StringRef operands) {
  OpDef def(name, summary);
  def.in(operands).attr("offset", Kind::Int).atLeast("offset", 0).random().draws(drawsPerElement);
  return def;
}

static OpDef shapeDrawn(llvm::StringRef name, llvm::StringRef summary) {
  OpDef def = drawn(name, summary, "rng:rng");
  def.attr("shape", Kind::IntList).attr("dtype", Kind::DType);
  return def;
}

static OpDef generator(llvm::StringRef name, llvm::StringRef summary, bool writes) {
  OpDef def(name, summary);
  def.attr("generator", Kind::String, "default").optional("device", Kind::Device);
  def.namedResource(ResourceKind::Generator, "generator", writes);
  return def;
}

static void addGeneratorOps(OpTable &table) {
  table.add(generator("generator_read", "the generator's seed and base offset", /*writes=*/false)
                .out("rng")
                .infer(inferGeneratorRead));
  table.add(generator("generator_advance", "adds count, in elements, to the generator's base",
                      /*writes=*/true)
                .attr("count", Kind::Int)
                .atLeast("count", 0)
                .out("")
                .infer(inferNothing));
  table.add(generator("generator_seed", "seeds the generator and sets its base to 0",
                      /*writes=*/true)
                .in("seed:scalar")
                .out("")
                .verify(checkSeed)
                .infer(inferNothing));
}

void rondo::addRandomOps(OpTable &table) {
  table.add(drawn("dropout", "x / (1 - p) where kept, with probability 1 - p, else 0; what is kept",
                  "x, rng:rng")
                .attr("p", Kind::Number)
                .attr("mask_dtype", Kind::DType, DType::Bool)
                .between("p", 0, 1)
                .out("out, mask")
                .infer(inferDropout));
  table.add(OpDef("dropout_backward", "grad * mask * scale")
                .in("grad, mask")
                .attr("scale", Kind::Number)
                .infer(inferDropoutBackward));
  table.add(shapeDrawn("uniform", "uniform in [low, high)")
                .attr("low", Kind::Number, 0.0)
                .attr("high", Kind::Number, 1.0)
                .infer(inferFloatsDrawn));
  table.add(shapeDrawn("normal", "normally distributed")
                .attr("mean", Kind::Number, 0.0)
                .attr("std", Kind::Number, 1.0)
                .atLeast("std", 0)
                .infer(inferFloatsDrawn));
  table.add(shapeDrawn("randint", "uniform integers in [low, high)")
                .attr("low", Kind::Int, 0)
                .attr("high", Kind::Int)
                .infer(inferRandint));
  table.add(drawn("bernoulli", "1 with probability p, else 0", "p, rng:rng").infer(inferBernoulli));
  table.add(drawn("multinomial", "n indices, each with a probability in proportion to its weight",
                  "w, rng:rng")
                .attr("n", Kind::Int)
                .attr("replacement", Kind::Bool, false)
                .infer(inferMultinomial));
  addGeneratorOps(table);
}
