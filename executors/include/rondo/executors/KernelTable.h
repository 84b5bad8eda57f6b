//===- KernelTable.h - Executors that look kernels up -----------*- C++ -*-===//
//
// What executors that have a table of kernels, one entry for each kind of op, share. An entry, a
// `Spec`, has the name of an op, `op`, and a function `make` that makes the op's kernel for
// concrete types.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/Executor.h"
#include "rondo/executors/TypedArgs.h"

#include "rondo/ir/Diagnostic.h"

#include "llvm/ADT/StringMap.h"

namespace rondo {

/// Adding is for one thread, before use.
template <typename Spec> class KernelTable {
public:
  /// Adds an entry, in place of one for the same op. Errors: no name or no `make`. `kind` is that
  /// of the kernels, for messages: `host`, `CUDA`.
  llvm::Error add(Spec spec, llvm::StringRef kind) {
    if (spec.op.empty())
      return makeError("a " + kind + " kernel needs the name of an op");
    if (!spec.make)
      return makeError("the " + kind + " kernel of op '" + spec.op + "' has no 'make'");
    std::string op = spec.op;
    specs_[op] = std::move(spec);
    return llvm::Error::success();
  }
  const Spec *find(llvm::StringRef op) const {
    auto found = specs_.find(op);
    return found == specs_.end() ? nullptr : &found->second;
  }

private:
  llvm::StringMap<Spec> specs_;
};

/// What an executor answers for an op whatever its table says: nothing for an op that it has to
/// look up. It takes views, which launch nothing, and ops with one body, whose ops answer for
/// themselves. `isOurs` says on which devices, which messages call `devices`, its tensors are.
std::optional<ClaimAnswer> claimWithoutKernel(const OpView &op,
                                              llvm::function_ref<bool(Device)> isOurs,
                                              llvm::StringRef devices);

} // namespace rondo
