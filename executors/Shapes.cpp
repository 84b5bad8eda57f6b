//===- Shapes.cpp - Sizes and strides as kernels see them -----------------===//

#include "rondo/executors/Shapes.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace rondo;

ReducedDims ReducedDims::get(const OpContext &op) {
  unsigned rank = op.tensor(0)->rank();
  llvm::SmallVector<int64_t, 5> listed = constantDims(op.dimsAttribute("dims"));
  if (op.attribute("dim"))
    listed.push_back(op.intAttribute("dim"));
  llvm::SmallBitVector isReduced(std::max(rank, 1U), listed.empty());
  for (int64_t dim : listed)
    isReduced.set(dim < 0 ? dim + isReduced.size() : dim);
  ReducedDims dims;
  dims.keepdim = op.boolAttribute("keepdim");
  for (unsigned d = 0; d < rank; ++d)
    (isReduced[d] ? dims.reduced : dims.kept).push_back(d);
  return dims;
}

llvm::SmallVector<unsigned, 5> rondo::listedDims(const OpContext &op, llvm::StringRef attribute,
                                                 unsigned rank) {
  llvm::SmallVector<unsigned, 5> result;
  for (int64_t dim : constantDims(op.dimsAttribute(attribute)))
    if (rank > 0)
      result.push_back(wrapDim(dim, rank));
  return result;
}
