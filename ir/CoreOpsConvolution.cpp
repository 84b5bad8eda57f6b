//===- CoreOpsConvolution.cpp - Convolutions of any rank ------------------===//
//
// Input [N, C, spatial...], weight [K, C / groups, kernel...] or, transposed, [C, K / groups,
// kernel...].
//
//===----------------------------------------------------------------------===//

#include "CoreOpsTable.h"

using namespace rondo;
using Kind = AttributeKind;
using C = DTypeClass;

namespace {
struct Geometry {
  Ints stride, padding, dilation, outputPadding;
  int64_t groups;
  bool transposed;
};
} // namespace

static llvm::Expected<Geometry> geometry(const Inference &in, unsigned spatialRank) {
  RONDO_LET(stride, in.constantsPerDim("stride", spatialRank, 1));
  RONDO_LET(padding, in.constantsPerDim("padding", spatialRank, 0));
  RONDO_LET(dilation, in.constantsPerDim("dilation", spatialRank, 1));
  RONDO_LET(outputPadding, in.constantsPerDim("output_padding", spatialRank, 0));
  RONDO_LET(groups, in.constant("groups"));
  if (groups < 1)
    return expects("attribute 'groups' of at least 1, got " + llvm::Twine(groups));
  return Geometry{std::move(stride),
                  std::move(padding),
                  std::move(dilation),
                  std::move(outputPadding),
                  groups,
                  in.op.boolAttribute("transposed")};
}

/// Spatial size `d` of the result.
static llvm::Expected<Dim> resultSize(const Geometry &g, unsigned d, const Dim &input,
                                      const Dim &kernel) {
  Dim stride = g.stride[d], padding = Dim(2) * Dim(g.padding[d]);
  Dim reach = Dim(g.dilation[d]) * (kernel - Dim(1)) + Dim(1);
  Dim size;
  if (g.transposed) {
    size = (input - Dim(1)) * stride - padding + reach + Dim(g.outputPadding[d]);
  } else {
    Dim steps = input + padding - reach;
    if (steps.isConstant() && steps.value() >= 0)
      size = Dim(steps.value() / g.stride[d]) + Dim(1);
    else if (std::optional<Dim> exact = Dim::exactQuotient(steps, stride))
      size = *exact + Dim(1);
    else
      return expects("a kernel that fits the padded input and, where its size is symbolic, a "
                     "stride that divides it, got sizes " +
                     input.str() + " and " + kernel.str() + " with stride " + stride.str());
  }
  if (size.isOverflow() || (size.isConstant() && size.value() < 1))
    return expects("a kernel that fits the padded input, got sizes " + input.str() + " and " +
                   kernel.str());
  return size;
}

/// The shape of the convolution of operand `x` with operand `x + 1`.
static llvm::Expected<Dims> convolvedShape(const Inference &in, unsigned x) {
  RONDO_TRY(in.rankAtLeast(x, 3));
  llvm::ArrayRef<Dim> input = in.tensor(x).shape, weight = in.tensor(x + 1).shape;
  RONDO_TRY(in.rankIs(x + 1, input.size()));
  RONDO_LET(g, geometry(in, input.size() - 2));
  const Dim &expected = g.transposed ? weight[0] : weight[1] * Dim(g.groups);
  if (input[1] != expected)
    return expects("an input of " + expected.str() + " channels, got " + input[1].str());
  const Dim &grouped = weight[0];
  if (!Dim::exactQuotient(grouped, g.groups))
    return expects("attribute 'groups' to divide " + grouped.str() + ", got " +
                   llvm::Twine(g.groups));
  Dims shape{input[0], g.transposed ? weight[1] * Dim(g.groups) : weight[0]};
  for (unsigned d = 0; d < input.size() - 2; ++d) {
    RONDO_LET(size, resultSize(g, d, input[2 + d], weight[2 + d]));
    shape.push_back(size);
  }
  return shape;
}

static llvm::Error inferConvolution(Inference &in) {
  RONDO_TRY(in.oneDType());
  RONDO_LET(shape, convolvedShape(in, 0));
  RONDO_TRY(in.shapeIs(2, shape[1]));
  return in.fresh(in.tensor(0).dtype, std::move(shape));
}

static llvm::Error inferConvolutionBackward(Inference &in) {
  RONDO_TRY(in.oneDType());
  RONDO_LET(shape, convolvedShape(in, 1));
  RONDO_TRY(in.shapeIs(0, shape));
  RONDO_LET(mask, in.mask("mask", 3));
  for (unsigned i = 0; i < 2; ++i)
    if (mask[i])
      RONDO_TRY(in.fresh(in.tensor(1 + i).dtype, in.tensor(1 + i).shape));
  if (!mask[2])
    return llvm::Error::success();
  if (in.hasAttribute("bias_sizes")) {
    RONDO_LET(sizes, in.sizes("bias_sizes"));
    if (sizes != Dims{shape[1]})
      return expects("attribute 'bias_sizes' to be " + shapeText(shape[1]) + ", got " +
                     shapeText(sizes));
  }
  return in.fresh(in.tensor(1).dtype, {shape[1]});
}

static OpDef &geometryAttributes(OpDef &def) {
  return def.attr("stride", Kind::IntList)
      .attr("padding", Kind::IntList)
      .attr("dilation", Kind::IntList)
      .attr("transposed", Kind::Bool, false)
      .attr("output_padding", Kind::IntList, Attribute::List{0})
      .attr("groups", Kind::Int, 1);
}

void rondo::addConvolutionOps(OpTable &table) {
  OpDef forward("convolution", "convolution, or its transpose, over the spatial dimensions");
  table.add(geometryAttributes(forward.in("x, w, bias?")).infer(inferConvolution));
  OpDef backward("convolution_backward", "gradients of convolution whose mask is true");
  table.add(geometryAttributes(backward.in("grad, x, w").optional("bias_sizes", Kind::IntList))
                .attr("mask", Kind::BoolList, Attribute::List{true, true, true})
                .variadicOut("grad_x, grad_w, grad_bias")
                .infer(inferConvolutionBackward));
}
