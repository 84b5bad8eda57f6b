//===- CuBLASGroupTexts.h - Traces with groups for cuBLASLt -----*- C++ -*-===//
//
// One trace for each epilogue, as CUDATraceTesting.h reads it.
//
//===----------------------------------------------------------------------===//

#pragma once

namespace rondo {

inline constexpr const char *withGELU = R"(trace @t(%x: T[32, 64]$, %w: T[16, 64]$, %c: T[16]$) {
  %h: T[32, 16]$ = linear(%x, %w, %c)
  %y: T[32, 16]$ = gelu(%h) {approximate = "tanh"}
  return(%y)
})";
inline constexpr const char *withSavedGELU =
    R"(trace @t(%x: T[32, 64]$, %w: T[16, 64]$, %c: T[16]$) {
  %t: T[64, 16; 1, 64]$ = permute(%w) {dims = [1, 0]}
  %h: T[32, 16]$ = addmm(%c, %x, %t)
  %v: T[2, 16, 16]$ = reshape(%h) {shape = [2, 16, 16]}
  %y: T[2, 16, 16]$ = gelu(%v) {approximate = "tanh"}
  return(%y, %v)
})";
inline constexpr const char *withRelu = R"(trace @t(%x: T[32, 64]$, %w: T[16, 64]$) {
  %h: T[32, 16]$ = linear(%x, %w)
  %y: T[32, 16]$ = relu(%h)
  return(%y)
})";
inline constexpr const char *withGELUGradient =
    R"(trace @t(%g: T[32, 64]$, %w: T[64, 16]$, %h: T[2, 16, 16]$) {
  %a: T[32, 16]$ = mm(%g, %w)
  %b: T[2, 16, 16]$ = reshape(%a) {shape = [2, 16, 16]}
  %d: T[2, 16, 16]$ = gelu_backward(%b, %h) {approximate = "tanh"}
  %e: T[32, 16]$ = reshape(%d) {shape = [32, 16]}
  %s: T[1, 16]$ = sum(%e) {dims = [0], keepdim = true}
  return(%e, %s)
})";
inline constexpr const char *withWideGELUGradient =
    R"(trace @t(%g: T[128, 256]$, %w: T[256, 768]$, %h: T[128, 768]$) {
  %a: T[128, 768]$ = mm(%g, %w)
  %d: T[128, 768]$ = gelu_backward(%a, %h) {approximate = "tanh"}
  %s: T[768]$ = sum(%d) {dims = [0]}
  return(%d, %s)
})";
inline constexpr const char *withGELUGradientAlone =
    R"(trace @t(%g: T[128, 256]$, %w: T[256, 768]$, %h: T[128, 768]$) {
  %a: T[128, 768]$ = mm(%g, %w)
  %d: T[128, 768]$ = gelu_backward(%a, %h) {approximate = "tanh"}
  return(%d)
})";
inline constexpr const char *withBiasGradient = R"(trace @t(%g: T[32, 16]$, %x: T[32, 64]$) {
  %t: T[16, 32; 1, 16]$ = permute(%g) {dims = [1, 0]}
  %w: T[16, 64]$ = mm(%t, %x)
  %s: T[16]$ = sum(%g) {dims = [0]}
  return(%w, %s)
})";
inline constexpr const char *withTransposedGradient = R"(trace @t(%g: T[32, 16]$, %x: T[32, 64]$) {
  %t: T[64, 32; 1, 64]$ = permute(%x) {dims = [1, 0]}
  %w: T[64, 16]$ = mm(%t, %g)
  %s: T[16]$ = sum(%g) {dims = [0]}
  return(%w, %s)
})";

struct CuBLASGroupText {
  const char *name, *text;
};
inline constexpr CuBLASGroupText cublasGroups[] = {
    {"gelu", withGELU},
    {"saved_gelu", withSavedGELU},
    {"relu", withRelu},
    {"gelu_gradient", withGELUGradient},
    {"wide_gelu_gradient", withWideGELUGradient},
    {"gelu_gradient_alone", withGELUGradientAlone},
    {"bias_gradient", withBiasGradient},
    {"transposed_bias_gradient", withTransposedGradient},
};

} // namespace rondo
