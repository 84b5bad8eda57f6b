//===- Buckets.h - Sizes that calls are padded to ---------------*- C++ -*-===//
//
// A pair with symbols has a variant, and graphs, per size. With buckets a size that lies between is
// rounded up, so that few variants serve every size:
//
//   B: 1, 2, 4     %x: f32[B, 2] of 3 rows  -->  the variant B = 4, called with
//                  f32[4, 2] in memory of the program: the 3 rows, and a row of padding
//                  %y: f32[B] of it         -->  a view of the first 3 elements of f32[4]
//
// An input that has its bucket's size is handed on as it is.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Block.h"
#include "Schedule.h"

namespace rondo {

class ProgramImpl;
struct Variant;

/// An input of a variant that may have to be padded.
struct PaddedInput {
  unsigned input = 0;
  LayoutRef layout;    ///< in the bucket's sizes
  uint64_t offset = 0; ///< in the block
  uint8_t byte = 0;    ///< the padding, if all its bytes are the same
  StorageRef pattern;  ///< else as many bytes of padding as `layout` extends over
};

/// What a variant needs to be called with smaller sizes.
struct Padding {
  std::vector<PaddedInput> inputs; ///< none: it cannot be
  llvm::SmallVector<uint64_t, 1> blockBytes;
  BlockPool blocks; ///< padded inputs of a call
};

/// Checks buckets and padding. Errors: DiagnosticError, several; see ProgramOptions::buckets.
llvm::Error checkBuckets(const ProgramOptions &options, llvm::ArrayRef<std::string> symbols,
                         llvm::ArrayRef<ParameterInfo> inputs,
                         llvm::ArrayRef<ParameterInfo> results, bool hasBackward, Device device);

/// Replaces every size by its bucket. Errors: DiagnosticError: a size above the greatest one.
llvm::Error roundUpToBuckets(const ProgramOptions &options, SymbolBindings &bindings);

/// The padding of a variant whose forward has this schedule. `inputs` and `results` are the pair's,
/// with symbols. Errors: DiagnosticError: a result is a part of an argument that may be padded. Of
/// the device.
llvm::Expected<Padding> planPadding(const ProgramOptions &options, const Schedule &schedule,
                                    llvm::ArrayRef<ParameterInfo> inputs,
                                    llvm::ArrayRef<ParameterInfo> results,
                                    llvm::ArrayRef<DeviceRef> devices);

/// One forward of a variant that has buckets, in the caller's sizes.
class PaddedCall {
public:
  PaddedCall(ProgramImpl &program, Variant &variant, Stream &stream, bool isCaptured)
      : program_(program), variant_(variant), stream_(stream), isCaptured_(isCaptured) {}

  /// Runs `call` with inputs in the bucket's sizes; `results` is what it fills. The symbols of
  /// `inputs` are known to have sizes. Errors: as Program::forwardInto.
  llvm::Error run(llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Tensor> outputs,
                  llvm::SmallVectorImpl<Value> &results,
                  llvm::function_ref<llvm::Error(llvm::ArrayRef<Value>)> call);

private:
  /// An input of this call that is smaller than its bucket.
  struct Padded {
    const PaddedInput *plan;
    const Tensor *real; ///< the caller's
  };

  llvm::Error runPadded(llvm::ArrayRef<Value> inputs,
                        llvm::function_ref<llvm::Error(llvm::ArrayRef<Value>)> call);
  llvm::Error checkOutputs(llvm::ArrayRef<Tensor> outputs) const;
  llvm::Error check(llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Tensor> outputs) const;
  llvm::Error lease();
  void keepForCapture() const;
  llvm::Error pad(const Padded &padded);
  llvm::Error copyBack(const Padded &padded);
  llvm::Error release();
  void giveResults(llvm::MutableArrayRef<Value> results) const;

  bool isWritten(unsigned input) const;
  std::byte *dataOf(const PaddedInput &plan) const;
  const ParameterInfo &info(unsigned input) const;
  std::string text(unsigned input) const;

  ProgramImpl &program_;
  Variant &variant_;
  Stream &stream_;
  const bool isCaptured_; ///< the stream, by the caller
  SymbolBindings sizes_;  ///< the caller's
  llvm::SmallVector<Padded, 4> padded_;
  BlockRef block_;
};

} // namespace rondo
