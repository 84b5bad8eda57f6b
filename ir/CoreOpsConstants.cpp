//===- CoreOpsConstants.cpp - Tensors and scalars made from attributes ----===//

#include "CoreOpsTable.h"

#include <cmath>
#include <limits>

using namespace rondo;
using Kind = AttributeKind;

/// ceil(extent / step), at least 0. `step` is not 0.
static llvm::Expected<Dim> arangeCount(const Dim &extent, const Dim &step) {
  if (extent.isConstant() && step.isConstant()) {
    int64_t length = extent.value(), stride = step.value();
    if ((length < 0) != (stride < 0) && length != 0)
      return expects("attribute 'step' to lead from 'start' to 'end', got " + step.str());
    uint64_t a = length < 0 ? -uint64_t(length) : length;
    uint64_t b = stride < 0 ? -uint64_t(stride) : stride;
    uint64_t count = a / b + (a % b != 0);
    if (count > uint64_t(std::numeric_limits<int64_t>::max()))
      return expects("a number of elements that fits 63 bits");
    return Dim(int64_t(count));
  }
  std::optional<Dim> count = Dim::exactQuotient(extent, step);
  if (count && !(count->isConstant() && count->value() < 0))
    return *count;
  return expects("attribute 'step' to divide the symbolic extent " + extent.str() + ", got " +
                 step.str());
}

static llvm::Error inferArange(Inference &in) {
  const Attribute &start = *in.op.attribute("start"), &end = *in.op.attribute("end"),
                  &step = *in.op.attribute("step");
  DType dtype = in.dtypeOr("dtype", DType::I64);
  if (start.asDim() && end.asDim() && step.asDim()) {
    Dim extent = *end.asDim() - *start.asDim();
    if (extent.isOverflow())
      return expects("a number of elements that fits 63 bits");
    if (step.asDim()->isConstant(0))
      return expects("attribute 'step' other than 0");
    RONDO_LET(count, arangeCount(extent, *step.asDim()));
    return in.fresh(dtype, {count});
  }
  std::optional<double> from = start.asNumber(), to = end.asNumber(), by = step.asNumber();
  double count = from && to && by ? std::ceil((*to - *from) / *by) : NAN;
  constexpr double most = 0x1p53; // beyond, doubles skip integers
  if (!(count >= 0 && count <= most))
    return expects("attributes 'start', 'end' and 'step' that make a finite sequence, got " +
                   start.str() + ", " + end.str() + " and " + step.str());
  return in.fresh(dtype, {Dim(int64_t(count))});
}

static llvm::Error inferShaped(Inference &in) {
  RONDO_LET(shape, in.sizes("shape"));
  return in.fresh(in.dtypeOr("dtype", DType::F32), std::move(shape));
}

static llvm::Error inferEye(Inference &in) {
  RONDO_LET(n, in.size("n"));
  Dim m = n;
  if (in.hasAttribute("m")) {
    RONDO_LET(columns, in.size("m"));
    m = columns;
  }
  return in.fresh(in.dtypeOr("dtype", DType::F32), {n, m});
}

static llvm::Error inferConstant(Inference &in) {
  const Attribute &value = *in.op.attribute("value");
  if (value.asBool())
    in.results.emplace_back(ScalarKind::Bool);
  else if (value.asDim())
    in.results.emplace_back(ScalarKind::I64);
  else if (value.asFloat())
    in.results.emplace_back(ScalarKind::F64);
  else
    return expects("attribute 'value' to be a bool, an integer or a float, got " + value.str());
  return llvm::Error::success();
}

void rondo::addConstantOps(OpTable &table) {
  table.add(OpDef("full", "a tensor of one value")
                .attr("shape", Kind::IntList)
                .attr("value", Kind::Number)
                .attr("dtype", Kind::DType)
                .optional("device", Kind::Device)
                .infer(inferShaped));
  table.add(OpDef("empty", "a tensor whose values are unspecified")
                .attr("shape", Kind::IntList)
                .attr("dtype", Kind::DType)
                .optional("device", Kind::Device)
                .noLaunch()
                .infer(inferShaped));
  table.add(OpDef("arange", "start, start + step, ... up to but without end")
                .attr("start", Kind::Number, 0)
                .attr("end", Kind::Number)
                .attr("step", Kind::Number, 1)
                .attr("dtype", Kind::DType)
                .optional("device", Kind::Device)
                .infer(inferArange));
  table.add(OpDef("eye", "ones on the diagonal, zeros elsewhere; n rows, m (default n) columns")
                .attr("n", Kind::Int)
                .optional("m", Kind::Int)
                .attr("dtype", Kind::DType)
                .optional("device", Kind::Device)
                .infer(inferEye));
  table.add(OpDef("constant", "a host scalar: bool, i64 or f64 by the kind of value")
                .attr("value", Kind::Number)
                .noLaunch()
                .infer(inferConstant));
}
