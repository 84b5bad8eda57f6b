//===- TypedArgs.h - The arguments of a run with their layouts --*- C++ -*-===//
//
// What an executor that makes kernels from a table of ops needs: the op as its table entries see
// it, and the operands and results of a run as tensors rather than addresses.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/Kernel.h"
#include "rondo/executors/Tensor.h"

#include "rondo/ir/OpSpec.h"
#include "rondo/ir/Trace.h"

namespace rondo {

/// An op as an OpContext, and what that borrows from. Borrows the trace.
class OpView {
public:
  OpView(const Trace &trace, OpId id);

  const Op &op() const { return op_; }
  llvm::ArrayRef<const Type *> operands() const { return operands_; }
  llvm::ArrayRef<const Type *> results() const { return results_; }
  OpContext context() const;

private:
  llvm::SmallVector<const Type *, 4> operands_;
  llvm::SmallVector<const Type *, 2> results_;
  const Op &op_;
};

/// Why no executor for tensors on `isOurs` devices can take the op whatever it is: a tensor that is
/// elsewhere, or symbolic sizes. Empty if nothing is wrong.
std::string findForeignType(const OpView &op, llvm::function_ref<bool(Device)> isOurs,
                            llvm::StringRef devices);

/// Operands and results of one run, typed. Borrowed for the call.
class TypedArgs {
public:
  /// `operands` and `results` have an entry for each of `raw`; `present` says which operands the op
  /// lists.
  TypedArgs(llvm::ArrayRef<TensorRef> operands, llvm::ArrayRef<TensorRef> results,
            llvm::ArrayRef<bool> present, const KernelArgs &raw)
      : operands_(operands), results_(results), present_(present), raw_(raw) {}

  unsigned numOperands() const { return operands_.size(); }
  unsigned numResults() const { return results_.size(); }
  /// False for an optional operand that was left out.
  bool has(unsigned i) const { return i < present_.size() && present_[i]; }
  /// Of a tensor operand that is there.
  const TensorRef &operand(unsigned i) const { return operands_[i]; }
  /// An operand that is a host scalar: which member of the slot counts is for its type to say.
  Slot scalar(unsigned i) const { return raw_.operands[i]; }
  /// In memory of the device, as all RNG states.
  const RNGState *rng(unsigned i) const {
    return static_cast<const RNGState *>(raw_.operands[i].address);
  }
  const TensorRef &result(unsigned i = 0) const { return results_[i]; }
  /// The slot in host memory that receives a scalar result.
  Slot &scalarResult(unsigned i = 0) const { return *static_cast<Slot *>(raw_.results[i].address); }
  RNGState *rngResult(unsigned i = 0) const {
    return static_cast<RNGState *>(raw_.results[i].address);
  }
  /// The state of the i-th generator that the op names in its effects.
  RNGState *generator(unsigned i = 0) const { return raw_.generators[i]; }
  void *workspace() const { return raw_.workspace; }

protected:
  const KernelArgs &raw() const { return raw_; }

private:
  llvm::ArrayRef<TensorRef> operands_, results_;
  llvm::ArrayRef<bool> present_;
  const KernelArgs &raw_;
};

/// The layouts of an op's operands and results: all of TypedArgs that is the same in every run.
class ArgLayouts {
public:
  explicit ArgLayouts(const OpView &op);

  unsigned numOperands() const { return operands_.size(); }
  unsigned numResults() const { return results_.size(); }
  /// True if an operand and a result are tensors whose elements lie at the same bytes of their
  /// memory.
  bool haveSameLayout(unsigned operand, unsigned result) const;
  /// Calls `run(operands, results, present)`, tensors without sizes for what is none.
  template <typename Run> auto bind(const KernelArgs &args, Run &&run) const {
    assert(args.operands.size() == operands_.size() && args.results.size() == results_.size() &&
           "arguments of another op");
    llvm::SmallVector<TensorRef, 8> operands, results;
    for (size_t i = 0; i < operands_.size(); ++i)
      operands.push_back(operands_[i].at(args.operands[i].address));
    for (size_t i = 0; i < results_.size(); ++i)
      results.push_back(results_[i].at(args.results[i].address));
    return run(llvm::ArrayRef<TensorRef>(operands), llvm::ArrayRef<TensorRef>(results),
               llvm::ArrayRef<bool>(present_));
  }

private:
  struct Layout {
    bool isTensor = false;
    DType dtype = DType::F32;
    llvm::SmallVector<int64_t, 5> shape, strides;

    explicit Layout(const Type *type);
    TensorRef at(void *address) const { return {address, dtype, shape, strides}; }
  };

  llvm::SmallVector<Layout, 4> operands_;
  llvm::SmallVector<Layout, 2> results_;
  llvm::SmallVector<bool, 4> present_;
};

} // namespace rondo
