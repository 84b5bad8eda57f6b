//===- JSONLiterals.h - Types and attributes from JSON ----------*- C++ -*-===//

#pragma once

#include "JSONCursor.h"

#include "rondo/ir/OpRegistry.h"

#include "llvm/Support/StringSaver.h"

namespace rondo {

/// Reads the small parts of the JSON form of traces. What is wrong is reported where it is; nothing
/// is returned then.
class JSONLiterals {
public:
  explicit JSONLiterals(const OpRegistry &registry) : registry_(registry) {}

  /// The bytes that a string stands for (see JSONString.h). Lives as long as the document and this.
  std::optional<llvm::StringRef> readString(JSONCursor cursor);
  /// The same for the key of a member.
  llvm::StringRef readKey(JSONCursor member);
  std::optional<Type> readType(JSONCursor cursor);
  std::optional<Attribute> readAttribute(JSONCursor cursor) { return readAttribute(cursor, 0); }

private:
  std::optional<Attribute> readAttribute(JSONCursor cursor, unsigned depth);
  std::optional<Attribute> readList(JSONCursor cursor, unsigned depth);
  std::optional<Attribute> readTagged(JSONCursor cursor);
  std::optional<double> readFloat(JSONCursor cursor);
  std::optional<DType> readDType(JSONCursor cursor);
  std::optional<Device> readDevice(JSONCursor cursor);
  std::optional<Dim> readSymbolic(JSONCursor cursor);
  std::optional<Dims> readDims(JSONCursor cursor);
  std::optional<Type> readTensor(JSONCursor cursor);
  std::optional<Type> readScalar(JSONCursor cursor);
  std::optional<Type> readRNGState(JSONCursor cursor);
  std::optional<Type> readOpaque(JSONCursor cursor);

  const OpRegistry &registry_;
  llvm::BumpPtrAllocator allocator_;
  llvm::StringSaver decoded_{allocator_};
};

} // namespace rondo
