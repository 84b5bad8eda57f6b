//===- JSONScope.cpp - The names of one body in JSON ----------------------===//

#include "JSONScope.h"

using namespace rondo;

const JSONScope::Definition *JSONScope::find(JSONCursor name) const {
  if (std::optional<llvm::StringRef> text = name.asString()) {
    auto it = named_.find(*text);
    return it == named_.end() ? nullptr : &it->second;
  }
  std::optional<uint64_t> number = name.asUnsigned();
  if (!number || *number > maxNumber)
    return nullptr;
  auto it = numbered_.find(uint32_t(*number));
  return it == numbered_.end() ? nullptr : &it->second;
}

const JSONScope::Definition *JSONScope::define(JSONCursor name, ValueId value) {
  Definition definition{value, name};
  if (std::optional<llvm::StringRef> text = name.asString()) {
    auto [it, isNew] = named_.try_emplace(*text, definition);
    if (!isNew)
      return &it->second;
    names_.push_back(it->getKey());
  } else if (std::optional<uint64_t> number = name.asUnsigned(); number && *number <= maxNumber) {
    auto [it, isNew] = numbered_.try_emplace(uint32_t(*number), definition);
    if (!isNew)
      return &it->second;
  }
  return nullptr;
}

const JSONScope::Definition *JSONScope::findOutside(JSONCursor name) const {
  for (const JSONScope *scope = parent_; scope; scope = scope->parent_) {
    if (const Definition *definition = scope->find(name))
      return definition;
  }
  return nullptr;
}

std::string JSONScope::suggestion(JSONCursor name) const {
  constexpr size_t candidates = 1000; // edit distances take time
  llvm::ArrayRef<llvm::StringRef> names = names_;
  std::optional<llvm::StringRef> text = name.asString();
  return text ? didYouMean(*text, names.take_back(candidates)) : std::string();
}

std::string JSONScope::describe(JSONCursor name) {
  if (std::optional<llvm::StringRef> text = name.asString())
    return quoteForMessage(("%" + *text).str());
  return "'%" + std::to_string(name.asInt().value_or(-1)) + "'";
}
