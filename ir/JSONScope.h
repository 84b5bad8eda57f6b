//===- JSONScope.h - The names of one body in JSON --------------*- C++ -*-===//

#pragma once

#include "JSONCursor.h"

#include "rondo/ir/Ids.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace rondo {

/// The values of one body: those with a name by name, the others by number.
class JSONScope {
public:
  /// The largest number that may stand for a value without a name.
  static constexpr uint64_t maxNumber = 1u << 30;

  struct Definition {
    ValueId value;
    JSONCursor where; ///< its name
  };

  /// `parent`: the scope of the enclosing body, or null. It must outlive this one.
  explicit JSONScope(const JSONScope *parent) : parent_(parent) {}

  /// A value as in the text form, for messages: `'%x'`, `'%3'`.
  static std::string describe(JSONCursor name);

  /// `name` is a string or a number, else nothing is found.
  const Definition *find(JSONCursor name) const;
  /// Adds a definition; the one that was there already, or null. Anything but a string or a number
  /// is ignored.
  const Definition *define(JSONCursor name, ValueId value);
  /// The same in the enclosing bodies, from the inside outwards.
  const Definition *findOutside(JSONCursor name) const;
  /// The name nearest to `name` among those defined last, for a message.
  std::string suggestion(JSONCursor name) const;

  /// The name of some value was lost to an error: nothing can be said of uses that are not found.
  bool isIncomplete = false;

private:
  const JSONScope *parent_;
  llvm::StringMap<Definition> named_;
  llvm::DenseMap<uint32_t, Definition> numbered_;
  std::vector<llvm::StringRef> names_; ///< in the order of definition
};

} // namespace rondo
