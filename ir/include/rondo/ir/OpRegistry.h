//===- OpRegistry.h - The ops and opaque types a program may use -*- C++ -*-===//

#pragma once

#include "rondo/ir/OpSpec.h"

#include "llvm/ADT/StringMap.h"

#include <memory>

namespace rondo {

/// A type that an embedder brings. Parameters are opaque text, checked by `verify` (may be null).
struct OpaqueTypeSpec {
  std::string name; ///< `mylib.handle`
  std::string summary;
  std::function<llvm::Error(llvm::StringRef parameters)> verify = nullptr;
};

/// The ops and opaque types that traces may use. The caller owns it and keeps it alive, unmoved, as
/// long as any trace made with it; nothing registers itself. Filling it is for one thread; reading
/// is for many.
class OpRegistry {
public:
  OpRegistry() = default;
  OpRegistry(const OpRegistry &) = delete;
  OpRegistry &operator=(const OpRegistry &) = delete;

  /// Adds `spec`. Errors: the name is malformed or taken; an operand after a variadic one; a write
  /// to an operand that does not exist or that no result renames; a view of an operand or by a
  /// result that does not exist; an attribute whose name is malformed or used twice, or whose
  /// default is not of its kind. After an error the registry is as before.
  llvm::Error registerOp(OpSpec spec);
  /// Adds `spec`. Errors: the name is malformed (as for ops) or taken.
  llvm::Error registerType(OpaqueTypeSpec spec);

  /// Null when unknown. The pointer stays valid as long as the registry.
  const OpSpec *lookup(llvm::StringRef name) const;
  const OpaqueTypeSpec *lookupType(llvm::StringRef name) const;

  /// In the order of registration.
  const std::vector<std::unique_ptr<OpSpec>> &ops() const { return ops_; }
  const std::vector<std::unique_ptr<OpaqueTypeSpec>> &types() const { return types_; }

private:
  std::vector<std::unique_ptr<OpSpec>> ops_;
  std::vector<std::unique_ptr<OpaqueTypeSpec>> types_;
  llvm::StringMap<const OpSpec *> opsByName_;
  llvm::StringMap<const OpaqueTypeSpec *> typesByName_;
};

} // namespace rondo
