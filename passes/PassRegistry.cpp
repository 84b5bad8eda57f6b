//===- PassRegistry.cpp - Passes by name and their options ------------------===//

#include "rondo/passes/PassRegistry.h"

#include "PipelineText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace rondo;

//===----------------------------------------------------------------------===//
// PassOptions
//===----------------------------------------------------------------------===//

const std::string *PassOptions::find(llvm::StringRef name) const {
  auto it = values_.find(name.str());
  return it == values_.end() ? nullptr : &it->second;
}

void PassOptions::setOrigin(llvm::StringRef name, Location location, std::string snippet) {
  origins_[name.str()] = {std::move(location), std::move(snippet)};
}

llvm::Error PassOptions::error(llvm::StringRef name, const llvm::Twine &message) const {
  Diagnostic error;
  error.message = ("option '" + name + "' " + message).str();
  if (auto origin = origins_.find(name.str()); origin != origins_.end()) {
    error.location = origin->second.location;
    error.snippet = origin->second.snippet;
  }
  return llvm::make_error<DiagnosticError>(std::vector<Diagnostic>{std::move(error)});
}

llvm::Expected<std::string> PassOptions::getString(llvm::StringRef name,
                                                   llvm::StringRef fallback) const {
  const std::string *text = find(name);
  return text ? *text : fallback.str();
}

llvm::Expected<int64_t> PassOptions::getInt(llvm::StringRef name, int64_t fallback, int64_t least,
                                            int64_t most) const {
  const std::string *text = find(name);
  if (!text)
    return fallback;
  int64_t value;
  bool isBad = llvm::StringRef(*text).getAsInteger(10, value);
  if (!isBad && value >= least && value <= most)
    return value;
  std::string range = most == INT64_MAX
                          ? " of at least " + std::to_string(least)
                          : " from " + std::to_string(least) + " to " + std::to_string(most);
  return error(name, "is '" + *text + "', expected an integer" + range);
}

llvm::Expected<double> PassOptions::getNumber(llvm::StringRef name, double fallback,
                                              double least) const {
  const std::string *text = find(name);
  if (!text)
    return fallback;
  double value;
  bool isBad = llvm::StringRef(*text).getAsDouble(value);
  if (!isBad && value >= least) // false for nan
    return value;
  return error(name, "is '" + *text + "', expected a number of at least " + Attribute(least).str());
}

llvm::Expected<bool> PassOptions::getBool(llvm::StringRef name, bool fallback) const {
  const std::string *text = find(name);
  if (!text)
    return fallback;
  if (*text == "true" || *text == "false")
    return *text == "true";
  return error(name, "is '" + *text + "', expected 'true' or 'false'");
}

/// `'a', 'b' or 'c'`.
static std::string listOf(llvm::ArrayRef<llvm::StringRef> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0)
      text += i + 1 == names.size() ? " or " : ", ";
    text += "'" + names[i].str() + "'";
  }
  return text;
}

llvm::Expected<std::string> PassOptions::getChoice(llvm::StringRef name, llvm::StringRef fallback,
                                                   llvm::ArrayRef<llvm::StringRef> choices) const {
  const std::string *text = find(name);
  if (!text)
    return fallback.str();
  if (llvm::is_contained(choices, *text))
    return *text;
  return error(name,
               "is '" + *text + "', expected " + listOf(choices) + didYouMean(*text, choices));
}

llvm::Expected<std::vector<std::string>> PassOptions::getList(llvm::StringRef name) const {
  std::vector<std::string> items;
  const std::string *text = find(name);
  if (!text || text->empty())
    return items;
  llvm::SmallVector<llvm::StringRef, 8> parts;
  llvm::StringRef(*text).split(parts, '+');
  for (llvm::StringRef part : parts) {
    if (part.empty())
      return error(name, "is '" + *text + "', which has an empty part");
    items.push_back(part.str());
  }
  return items;
}

//===----------------------------------------------------------------------===//
// PassRegistry
//===----------------------------------------------------------------------===//

static bool isPipelineName(llvm::StringRef name) {
  return !name.empty() && llvm::all_of(name, isPipelineNameChar);
}

llvm::Error PassRegistry::registerPass(PassInfo info) {
  if (!isPipelineName(info.name))
    return makeError("'" + info.name +
                     "' is not a name for a pass: it needs letters, digits, '_', "
                     "'-' and '.' only");
  if (lookup(info.name))
    return makeError("a pass named '" + info.name + "' is registered already");
  if (!info.create)
    return makeError("pass '" + info.name + "' has no function that makes it");
  llvm::StringSet<> names;
  for (const PassOptionInfo &option : info.options) {
    if (!isPipelineName(option.name))
      return makeError("pass '" + info.name + "' has an option named '" + option.name +
                       "', which cannot be written in a pipeline");
    if (!names.insert(option.name).second)
      return makeError("pass '" + info.name + "' has two options named '" + option.name + "'");
  }
  passes_.push_back(std::move(info));
  return llvm::Error::success();
}

const PassInfo *PassRegistry::lookup(llvm::StringRef name) const {
  auto it = llvm::find_if(passes_, [&](const PassInfo &info) { return info.name == name; });
  return it == passes_.end() ? nullptr : &*it;
}
