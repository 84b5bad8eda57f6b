//===- HeapCount.cpp - Allocations of host memory -------------------------===//
//
// The C library's allocator, with a count. Everything in the process goes through it: `new`, LLVM's
// vectors, drivers that are loaded later. Sanitizers have an allocator of their own, which is left
// alone.
//
//===----------------------------------------------------------------------===//

#include "HeapCount.h"

#include <cstdlib>

#if defined(__has_feature)
#define RONDO_HAS_FEATURE(x) __has_feature(x)
#else
#define RONDO_HAS_FEATURE(x) 0
#endif

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&       \
    !RONDO_HAS_FEATURE(address_sanitizer) && !RONDO_HAS_FEATURE(thread_sanitizer)

static constinit thread_local uint64_t numAllocations = 0;

extern "C" {
// The C library's own, which what is defined here stands before.
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *data, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes) noexcept {
  ++numAllocations;
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) noexcept {
  ++numAllocations;
  return __libc_calloc(count, bytes);
}
void *realloc(void *data, size_t bytes) noexcept {
  ++numAllocations;
  return __libc_realloc(data, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) noexcept {
  ++numAllocations;
  return __libc_memalign(alignment, bytes);
}
}

std::optional<uint64_t> rondo::countHeapAllocations() {
  return numAllocations;
}

#else

std::optional<uint64_t> rondo::countHeapAllocations() {
  return std::nullopt;
}

#endif
