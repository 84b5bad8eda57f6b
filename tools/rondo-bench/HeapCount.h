//===- HeapCount.h - Allocations of host memory -----------------*- C++ -*-===//

#pragma once

#include <cstdint>
#include <optional>

namespace rondo {

/// How often this thread has asked the C library for memory so far, by `new`, too; nothing where
/// that is not counted.
std::optional<uint64_t> countHeapAllocations();

} // namespace rondo
