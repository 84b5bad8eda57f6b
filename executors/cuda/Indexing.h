//===- Indexing.h - Ops that read or update by index ------------*- C++ -*-===//

#pragma once

#include "IndexDevice.h"
#include "KeySort.h"

namespace rondo::cuda {

/// Which elements an op moves, by its types: IndexDevice.h says how it is to be understood. Each
/// dimension of what is moved is one of the tuples or one of the slices.
struct IndexedDims {
  using Sizes = llvm::SmallVector<int64_t, 5>;
  struct Dims {
    Sizes shape, moved, indexed; ///< sizes, and strides in elements

    void add(int64_t size, int64_t movedStride, int64_t indexedStride) {
      shape.push_back(size);
      moved.push_back(movedStride);
      indexed.push_back(indexedStride);
    }
  };
  struct Index {
    unsigned operand; ///< of the op
    Sizes strides;    ///< for the shape of the tuples
    IndexOperand params;
  };

  Dims tuples, slices;
  Sizes keys; ///< strides of the tuples in their keys
  llvm::SmallVector<Index, 2> indices;
  int64_t numKeys = 1;

  /// gather, scatter: a tuple at every element of index operand 1, whose value counts along `dim`
  /// of `indexed`. Negative ones are out of range. `moved` has strides for the shape of the index.
  static IndexedDims ofElements(const OpContext &op, int64_t dim, const TensorSizes &indexed,
                                llvm::ArrayRef<int64_t> moved);
  /// index_select, index_copy: the indices of `dim` that operand 1, of rank 0 or 1, names. Negative
  /// ones are out of range.
  static IndexedDims ofSlices(const OpContext &op, int64_t dim, const TensorSizes &indexed,
                              const TensorSizes &moved);
  /// embedding: rows, one after the other as operand 1, of any rank, names them.
  static IndexedDims ofRows(const OpContext &op, const TensorSizes &indexed,
                            const TensorSizes &moved);
  /// index, index_put: operands `first` and on index one dimension each, as ir/CoreOpsIndex.cpp
  /// describes. Negative indices count from the end. `moved` broadcasts to what is moved.
  static IndexedDims ofBroadcast(const OpContext &op, unsigned first, const TensorSizes &indexed,
                                 const TensorSizes &moved);
  /// All elements of a shape.
  static IndexedDims ofAll(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> moved,
                           llvm::ArrayRef<int64_t> indexed);

  /// Errors: too many dimensions or tuples.
  llvm::Expected<Indexing> layout() const;
  /// Sets the addresses of the index tensors.
  void bind(Indexing &indexing, const TypedArgs &args) const;
};

/// Elements that are moved as they lie in memory, several at once where their layout allows it.
class IndexedMove {
public:
  static llvm::Expected<IndexedMove> get(IndexedDims dims, DType dtype);

  int64_t numKeys() const { return dims_.numKeys; }
  int64_t numTuples() const { return narrow_.indexing.tuples.count; }
  int64_t numElements() const { return narrow_.indexing.elements.count; }
  /// By the kernel's i-th function, `indexing::take`.
  llvm::Error take(const CUDAWork &work, unsigned i, const TypedArgs &args, const void *indexed,
                   void *moved) const;
  /// Sets all that is moved to 0, by the same function.
  llvm::Error zero(const CUDAWork &work, unsigned i, const TypedArgs &args, void *moved) const;
  /// By functions i and on: `put`, and with `owners`, room for numKeys() of them, `forget` and
  /// `claim`. Without, no two tuples that are somewhere have the same key.
  llvm::Error put(const CUDAWork &work, unsigned i, const TypedArgs &args, const void *moved,
                  void *indexed, uint32_t *owners) const;

private:
  IndexedMoveParams bind(const TypedArgs &args, void *moved, void *indexed) const;

  IndexedDims dims_;
  IndexedMoveParams narrow_, wide_; ///< in units of one element, and of as many as possible
};

/// Slices that are added to their places, sorted by place: the same bits every time. Sums are
/// formed in f64 and rounded once, those of integers and bool modulo 2^64.
class SliceSum {
public:
  struct Options {
    double factor = 1;    ///< of every element
    bool isMean = false;  ///< what is added to a place is divided by how many slices it is
    int64_t dropped = -1; ///< an index that is nowhere
  };
  /// Of elements of `dtype`. Adds what it needs to the workspace and to the functions.
  static llvm::Expected<SliceSum> get(IndexedDims dims, DType dtype, const Options &options,
                                      WorkspaceParts &parts,
                                      llvm::SmallVectorImpl<CUDAFunction> &functions);

  llvm::Error enqueue(const CUDAWork &work, const TypedArgs &args, const void *moved,
                      void *indexed) const;

private:
  explicit SliceSum(KeySort sort) : sort_(sort) {}

  IndexedDims dims_;
  SliceSumParams params_;
  KeySort sort_;
  unsigned firstFunction_ = 0;
  uint64_t heads_ = 0, tails_ = 0; ///< in the workspace
};

/// Threads of the kernels in Index.cu.
inline CUDAGrid indexGrid(int64_t threads) {
  return {{blocksFor(threads, indexBlock), 1, 1}, {indexBlock, 1, 1}};
}

} // namespace rondo::cuda
