//===- CoreOpsMatmul.cpp - Matrix products --------------------------------===//

#include "CoreOpsTable.h"

using namespace rondo;
using Kind = AttributeKind;

/// The inner size of the product of operands `a` and `b`, `right` from the left and the right.
static llvm::Error innerSizesAgree(const Dim &left, const Dim &right) {
  if (left == right)
    return llvm::Error::success();
  return expects("equal inner sizes, got " + left.str() + " and " + right.str());
}

/// Operand `a` times operand `a + 1`, both of `rank` 2, or 3 with a batch; and operand 0 to be
/// added if `a` is 1.
static llvm::Error inferProduct(Inference &in, unsigned a, unsigned rank) {
  RONDO_TRY(in.oneDType());
  RONDO_TRY(in.rankIs(a, rank));
  RONDO_TRY(in.rankIs(a + 1, rank));
  const TensorType &left = in.tensor(a), &right = in.tensor(a + 1);
  if (rank == 3 && left.shape[0] != right.shape[0])
    return expects("equal batch sizes, got " + left.shape[0].str() + " and " +
                   right.shape[0].str());
  RONDO_TRY(innerSizesAgree(left.shape[rank - 1], right.shape[rank - 2]));
  Dims shape = left.shape;
  shape[rank - 1] = right.shape[rank - 1];
  if (a == 1)
    RONDO_TRY(in.broadcastsTo(0, shape));
  return in.fresh(left.dtype, std::move(shape));
}

/// Vectors and batches of matrices, as numpy's `@`.
static llvm::Error inferMatmul(Inference &in) {
  RONDO_TRY(in.oneDType());
  RONDO_TRY(in.rankAtLeast(0, 1));
  RONDO_TRY(in.rankAtLeast(1, 1));
  llvm::ArrayRef<Dim> a = in.tensor(0).shape, b = in.tensor(1).shape;
  bool aIsVector = a.size() == 1, bIsVector = b.size() == 1;
  RONDO_TRY(innerSizesAgree(a.back(), bIsVector ? b[0] : b[b.size() - 2]));
  llvm::ArrayRef<Dim> aBatch = a.drop_back(aIsVector ? 1 : 2);
  llvm::ArrayRef<Dim> bBatch = b.drop_back(bIsVector ? 1 : 2);
  Dims shape(aBatch.begin(), aBatch.end());
  if (!broadcast(shape, bBatch))
    return expects("batch sizes that broadcast, got " + shapeText(aBatch) + " and " +
                   shapeText(bBatch));
  if (!aIsVector)
    shape.push_back(a[a.size() - 2]);
  if (!bIsVector)
    shape.push_back(b.back());
  return in.fresh(in.tensor(0).dtype, std::move(shape));
}

static llvm::Error inferLinear(Inference &in) {
  RONDO_TRY(in.oneDType());
  RONDO_TRY(in.rankAtLeast(0, 1));
  RONDO_TRY(in.rankIs(1, 2));
  const TensorType &x = in.tensor(0), &w = in.tensor(1);
  RONDO_TRY(innerSizesAgree(x.shape.back(), w.shape[1]));
  RONDO_TRY(in.shapeIs(2, w.shape[0]));
  Dims shape = x.shape;
  shape.back() = w.shape[0];
  return in.fresh(x.dtype, std::move(shape));
}

void rondo::addMatmulOps(OpTable &table) {
  table.add(OpDef("mm", "product of two matrices").in("a, b").infer([](Inference &in) {
    return inferProduct(in, 0, 2);
  }));
  table.add(OpDef("bmm", "products of two batches of matrices").in("a, b").infer([](Inference &in) {
    return inferProduct(in, 0, 3);
  }));
  table.add(OpDef("matmul", "product of vectors, matrices or batches that broadcast")
                .in("a, b")
                .infer(inferMatmul));
  table.add(OpDef("addmm", "beta * bias + alpha * (a @ b)")
                .in("bias, a, b")
                .attr("beta", Kind::Number, 1)
                .attr("alpha", Kind::Number, 1)
                .infer([](Inference &in) { return inferProduct(in, 1, 2); }));
  table.add(OpDef("baddbmm", "beta * bias + alpha * (a @ b), in batches")
                .in("bias, a, b")
                .attr("beta", Kind::Number, 1)
                .attr("alpha", Kind::Number, 1)
                .infer([](Inference &in) { return inferProduct(in, 1, 3); }));
  table.add(OpDef("linear", "x @ transposed w + bias, over the last dimension of x")
                .in("x, w, bias?")
                .infer(inferLinear));
}
