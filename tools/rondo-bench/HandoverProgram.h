//===- HandoverProgram.h - A program whose inputs move ----------*- C++ -*-===//
//
// One region, whose kernels stay as small as they are whatever the size of its inputs: each uses 64
// elements. What a call costs more than one whose inputs are where they were is the handing over.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "Bench.h"

#include "rondo/passes/CUDAGraphTransform.h"

namespace rondo {

/// Inputs of one size, of f32, each of which is used as often as the others.
struct HandoverShape {
  static constexpr uint64_t leastBytes = 256;

  uint64_t bytes = leastBytes; ///< of an input; a multiple of 4, at least leastBytes
  unsigned consumers = 1;      ///< ops that use an input
  unsigned inputs = 1;

  /// `4 KiB, 16 consumers`, `8 x 1 KiB, 4 consumers each`.
  std::string name() const;
};

/// The same inputs in two places of the device's memory.
class HandoverArguments {
public:
  static llvm::Expected<HandoverArguments> create(const BenchSetup &setup,
                                                  const HandoverShape &shape, Stream &stream);
  llvm::ArrayRef<Value> at(unsigned place) const { return places_[place % 2]; }

private:
  std::vector<Value> places_[2];
};

/// Arguments and stream are borrowed.
class HandoverProgram {
public:
  /// Inputs reach the graph by `inputs`; Auto decides by `costs`. The graph is there when this
  /// returns, and has followed its inputs to both places. Errors: the region is not what it should
  /// be, and those of what is used.
  static llvm::Expected<std::unique_ptr<HandoverProgram>>
  create(const BenchSetup &setup, const HandoverShape &shape, InputPolicy inputs,
         const BufferCosts &costs, const HandoverArguments &arguments, Stream &stream);

  // A forward whose results are dropped; neither waits.

  /// The inputs are where those of the last call were.
  llvm::Error callInPlace() { return call(); }
  /// They are in the other place.
  llvm::Error callMoved() {
    place_ ^= 1;
    return call();
  }

  /// What the inputs' policies are: `patched`, `copied`, `3 patched, 5 copied`.
  std::string policies() const;

private:
  HandoverProgram(Program program, const HandoverArguments &arguments, Stream &stream)
      : program_(std::move(program)), arguments_(arguments), stream_(stream) {}

  llvm::Error call() {
    llvm::Error error = program_.forward(stream_, arguments_.at(place_), results_);
    results_.clear();
    return error;
  }
  llvm::Error checkRegion(const HandoverShape &shape) const;
  /// How the inputs reach the graph, in order.
  std::vector<BufferInfo> inputBuffers() const;

  Program program_;
  const HandoverArguments &arguments_;
  Stream &stream_;
  unsigned place_ = 0;
  llvm::SmallVector<Value> results_;
};

} // namespace rondo
