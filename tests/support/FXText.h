//===- FXText.h - Small fx-aten-1 files, written tersely --------*- C++ -*-===//
//
//   FXText forward("forward");
//   forward.input("x", "float32[2,3]");
//   forward.node("y", "aten.relu.default", "%x", "float32[2,3]");
//   forward.outputs("%y");
//   std::string file = fxProgram(forward);
//
//===----------------------------------------------------------------------===//

#pragma once

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace rondo::test {

/// One graph.
class FXText {
public:
  explicit FXText(llvm::StringRef kind) : kind_(kind.str()) {}

  /// `type`: `float32[2,3]` (row-major, on `cuda`), `float32[2,3;1,2]@cpu`, `Generator`, `int`.
  /// `members`: further members, `"role":"parameter"`.
  FXText &input(llvm::StringRef name, llvm::StringRef type, llvm::StringRef members = "");
  /// `args` and `kwargs`: JSON without the outer brackets, where `%x` is a reference. `result`: a
  /// type, or `None`, `unused`, `int=3`, or a tuple of them or of tuples, `((float32[2],
  /// float32[2]), None)`.
  FXText &node(llvm::StringRef name, llvm::StringRef op, llvm::StringRef args,
               llvm::StringRef result, llvm::StringRef kwargs = "", llvm::StringRef members = "");
  /// References and `null`. All are the user's, unless `roles` says otherwise.
  FXText &outputs(llvm::StringRef list);
  /// Of a forward: names of mutated inputs, and indices; separated by commas.
  FXText &roles(llvm::StringRef mutated, llvm::StringRef user, llvm::StringRef saved);

  std::string str() const;

private:
  std::string kind_, outputs_, roles_;
  std::vector<std::string> inputs_, nodes_;
};

/// A file named `test`.
std::string fxProgram(const FXText &forward);
std::string fxProgram(const FXText &forward, const FXText &backward);

} // namespace rondo::test
