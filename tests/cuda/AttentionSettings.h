//===- AttentionSettings.h - Attentions for cuDNN ---------------*- C++ -*-===//

#pragma once

#include "llvm/ADT/StringRef.h"

#include <regex>
#include <string>
#include <vector>

namespace rondo {

struct AttentionSetting {
  const char *dtype;
  bool causal;
  int head, rows;

  std::string name() const {
    return std::string(dtype) + (causal ? ", causal" : "") + ", heads of " + std::to_string(head) +
           ", " + std::to_string(rows) + " rows";
  }
  /// Forward and backward; the tensors are on the device that `where` names: `@cuda:0`, or nothing
  /// for the host.
  std::string text(llvm::StringRef where) const {
    std::string text = R"(trace @t(%g: M, %q: M, %k: M, %v: M) {
  %y: M, %l: f32[2, 3, R]D = scaled_dot_product_attention(%q, %k, %v) {causal = C}
  %a: M, %b: M, %c: M = scaled_dot_product_attention_backward(%g, %q, %k, %v, %y, %l) {causal = C}
  return(%y, %l, %a, %b, %c)
})";
    text = std::regex_replace(text, std::regex("\\bM\\b"),
                              std::string(dtype) + "[2, 3, R, " + std::to_string(head) + "]D");
    text = std::regex_replace(text, std::regex("\\bR\\b"), std::to_string(rows));
    text = std::regex_replace(text, std::regex("\\bC\\b"), causal ? "true" : "false");
    return std::regex_replace(text, std::regex("D"), where.str());
  }
};

inline std::vector<AttentionSetting> attentionSettings() {
  std::vector<AttentionSetting> all;
  for (const char *dtype : {"bf16", "f16"})
    for (bool causal : {false, true})
      for (int head : {64, 128})
        for (int rows : {77, 128, 1024})
          all.push_back({dtype, causal, head, rows});
  return all;
}

} // namespace rondo
