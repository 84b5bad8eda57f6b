//===- SharedLibrary.h - Libraries that are loaded at run time --*- C++ -*-===//
//
// A binary does not link to what not every machine has: it starts without it, and asks for it when
// an executor is made.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace rondo::cuda {

/// An open library. Never closed: what it gave may be used for as long as the process runs.
class SharedLibrary {
public:
  /// The first of `files` that the loader opens. `name` is that of the library, for messages.
  /// Errors: InvalidArgument; what the loader answered for each file.
  static llvm::Expected<SharedLibrary> open(llvm::StringRef name,
                                            llvm::ArrayRef<std::string> files);

  /// Looks up a function, null if there is none.
  template <typename Function> void find(Function &function, const char *symbol) {
    function = reinterpret_cast<Function>(lookUp(symbol));
  }
  /// Errors: InvalidArgument; names the first function that was looked for in vain.
  llvm::Error checkFound() const;

private:
  SharedLibrary(void *handle, std::string file) : handle_(handle), file_(std::move(file)) {}
  void *lookUp(const char *symbol);

  void *handle_;
  std::string file_;
  const char *missing_ = nullptr;
};

} // namespace rondo::cuda
