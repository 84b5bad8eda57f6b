//===- Copies.h - Copies and fills of any layout ----------------*- C++ -*-===//
//
// What ops that copy are made of: copies and fills of tensors, or parts of them, of which the types
// are known when a kernel is made and the addresses when it runs.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "KernelTypes.h"

namespace rondo::cuda {

/// The number of `symbol` among the functions of `kernel`, to which it is added if it is new.
unsigned addFunction(CUDAKernelFn &kernel, const void *symbol);

/// Puts a copy into the work's sink: from the first element of one tensor to that of another.
using CopyFn = std::function<llvm::Error(const CUDAWork &work, const void *from, void *to)>;
/// Of a tensor to one that it broadcasts to. They do not overlap. Strides of `from` may be
/// negative. Dtypes that differ are converted between, and are no 8-bit floats. What it launches is
/// added to `kernel`. Errors: too many dimensions.
llvm::Expected<CopyFn> makeCopy(const TensorSizes &from, const TensorSizes &to,
                                CUDAKernelFn &kernel);
/// Is that copy one of bytes that lie densely on both sides? Then either may be in host memory.
bool isByteCopy(const TensorSizes &from, const TensorSizes &to);
/// Are all bytes from the first to the last element the tensor's?
bool isDenseInMemory(const TensorSizes &tensor);

/// The constant as an element of `dtype`, which is no 8-bit float, in the lowest bits.
uint64_t elementBits(const ScalarConstant &constant, DType dtype);

/// Puts a fill into the work's sink: with elements that have `bits`, from the first one on.
using ConstantFillFn = std::function<llvm::Error(const CUDAWork &work, void *to)>;
llvm::Expected<ConstantFillFn> makeConstantFill(const TensorSizes &to, uint64_t bits,
                                                CUDAKernelFn &kernel);
/// The kernel of an op all elements of whose result have these bits.
llvm::Expected<CUDAKernelFn> makeConstantResult(const OpContext &op, uint64_t bits);

} // namespace rondo::cuda
