//===- Value.h - What programs take and give --------------------*- C++ -*-===//

#pragma once

#include "rondo/executors/Tensor.h"

#include <variant>

namespace rondo {

/// An argument or a result of a program: a tensor, a host scalar, or nothing (a missing gradient).
class Value {
public:
  Value() = default;
  Value(Tensor tensor) : storage_(std::move(tensor)) {}
  Value(int64_t value) : storage_(value) {}
  Value(double value) : storage_(value) {}
  Value(bool value) : storage_(value) {}
  Value(const void *) = delete; // would silently be `true`

  bool isNone() const { return std::holds_alternative<std::monostate>(storage_); }
  const Tensor *asTensor() const { return std::get_if<Tensor>(&storage_); }
  const int64_t *asInt() const { return std::get_if<int64_t>(&storage_); }
  const double *asFloat() const { return std::get_if<double>(&storage_); }
  const bool *asBool() const { return std::get_if<bool>(&storage_); }

  /// `f32[8, 32]`, `i64 7`, `none`.
  std::string description() const;

private:
  std::variant<std::monostate, Tensor, int64_t, double, bool> storage_;
};

} // namespace rondo
