//===- Pointwise.h - Kernels that work element by element -------*- C++ -*-===//
//
// A pointwise op is a function on dense rows of numbers of one type, and a rule that says which
// type: what broadcasts, has strides, another dtype or is a host scalar is made such rows before.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "DTypeSupport.h"
#include "ElementRows.h"
#include "HostKernels.h"

#include "rondo/executors/PointwiseTypes.h"

#include <optional>
#include <utility>

namespace rondo::host {

/// Computes `n` elements of `out` from those of each of `in`. All are of one compute dtype; `out`
/// may be one of `in`, and does not overlap them otherwise.
using RowFunction = void (*)(const void *const *in, void *out, int64_t n);

/// A function on elements for each compute dtype that it supports; null for others.
struct RowFunctions {
  RowFunction i64 = nullptr, f32 = nullptr, f64 = nullptr;

  /// For the compute dtype of `dtype`.
  RowFunction find(DType dtype) const;
};

template <typename C, typename Fn, size_t... I>
void applyToRow(const void *const *in, void *out, int64_t n) {
  std::array<const C *, sizeof...(I)> operands = {static_cast<const C *>(in[I])...};
  C *result = static_cast<C *>(out);
  for (int64_t i = 0; i < n; ++i)
    result[i] = static_cast<C>(Fn()(operands[I][i]...));
}
template <typename C, typename Fn, size_t... I>
constexpr RowFunction rowFunction(std::index_sequence<I...>) {
  return &applyToRow<C, Fn, I...>;
}

/// Of a captureless function of N numbers, all int64_t, all float or all double.
template <size_t N, typename Fn> constexpr RowFunctions onNumbers(Fn) {
  std::make_index_sequence<N> operands;
  return {rowFunction<int64_t, Fn>(operands), rowFunction<float, Fn>(operands),
          rowFunction<double, Fn>(operands)};
}
/// Of a captureless function of N numbers, all float or all double.
template <size_t N, typename Fn> constexpr RowFunctions onFloats(Fn) {
  std::make_index_sequence<N> operands;
  return {nullptr, rowFunction<float, Fn>(operands), rowFunction<double, Fn>(operands)};
}
/// Of a captureless function of N int64_t.
template <size_t N, typename Fn> constexpr RowFunctions onIntegers(Fn) {
  return {rowFunction<int64_t, Fn>(std::make_index_sequence<N>()), nullptr, nullptr};
}

/// A pointwise op.
struct PointwiseSpec {
  llvm::StringRef op;
  ComputeRule rule = ComputeRule::Promoted;
  /// Of the op's operands, then the parameters. Integer arithmetic is modulo 2^64 and rounded to
  /// the result's dtype.
  RowFunctions rows = {};
  /// Numbers that follow the operands: names of attributes, "" for none.
  std::array<llvm::StringRef, 2> parameters = {};
  /// The parameters count when the dtype is promoted; else they are rounded to it.
  bool parametersPromote = false;
  /// This operand is a condition: 0 or 1.
  std::optional<unsigned> condition = std::nullopt;
};

/// The kernel of `op`, whose result may be a new name of operand 0's storage. An operand that is
/// left out is the attribute `scalar`. Errors: dtypes without a kernel.
llvm::Expected<HostKernelFn> makePointwise(const OpContext &op, const PointwiseSpec &spec);
/// Adds the op, and with `inPlace` also the one with an underscore at the end of its name.
void addPointwise(HostExecutor &executor, const PointwiseSpec &spec, bool inPlace = false);

/// The constant as a 0-d tensor; borrows from it.
inline TensorRef constantTensor(const ScalarConstant &constant) {
  return {const_cast<Slot *>(&constant.value), constant.dtype, {}, {}};
}

} // namespace rondo::host
