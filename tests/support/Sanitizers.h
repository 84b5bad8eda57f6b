//===- Sanitizers.h - Is this build sanitized? ------------------*- C++ -*-===//
//
// RONDO_IS_SANITIZED is 1 in builds with AddressSanitizer or ThreadSanitizer, which are many times
// slower and bring an operator new of their own.
//
//===----------------------------------------------------------------------===//

#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RONDO_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RONDO_IS_SANITIZED 1
#endif
#endif
#ifndef RONDO_IS_SANITIZED
#define RONDO_IS_SANITIZED 0
#endif
