//===- RecordedValues.h - The values of a run elsewhere ---------*- C++ -*-===//
//
// Arguments and results of one run of a pair, in a safetensors file whose tensors are named
//
//   forward.in.NAME    argument NAME of the forward
//   forward.out.I      its I-th output: result, or what else `outputs` says
//   backward.in.NAME   argument NAME of the backward
//   backward.out.I     its I-th result; missing ones are counted and not recorded
//
// which is how the fx-aten-1 files in tests/data/traces keep PyTorch's own results.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/Safetensors.h"
#include "rondo/ir/ImportFX.h"
#include "rondo/ir/TracePair.h"

namespace rondo {

/// Row-major host tensors. Look-ups give null for what was not recorded.
class RecordedValues {
public:
  /// `outputs` are those of the imported file that the values belong to; none: the outputs of the
  /// forward are its results. Errors: of Safetensors::open.
  static llvm::Expected<RecordedValues> open(llvm::StringRef path,
                                             llvm::ArrayRef<FXOutput> outputs = {});

  const Tensor *input(Side side, llvm::StringRef name) const;
  /// The i-th result that the caller gets.
  const Tensor *result(Side side, unsigned i) const;
  /// What is saved for argument `name` of the backward.
  const Tensor *saved(llvm::StringRef name) const;
  /// Argument `name` of the forward after the forward has written it.
  const Tensor *mutated(llvm::StringRef name) const;
  /// The arguments that are written, by name.
  llvm::ArrayRef<std::string> mutatedInputs() const { return mutatedInputs_; }

private:
  explicit RecordedValues(Safetensors file) : file_(std::move(file)) {}

  Safetensors file_;
  bool hasOutputs_ = false;
  std::vector<unsigned> results_; ///< by result of the forward: output
  llvm::StringMap<unsigned> saved_, mutated_;
  std::vector<std::string> mutatedInputs_;
};

} // namespace rondo
