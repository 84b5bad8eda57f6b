//===- FXText.cpp - Small fx-aten-1 files, written tersely ------------------===//

#include "support/FXText.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cassert>

using namespace rondo::test;

/// Makes `{"ref":"x"}` of every `%x`.
static std::string withReferences(llvm::StringRef text) {
  std::string result;
  while (!text.empty()) {
    auto [before, after] = text.split('%');
    result += before;
    if (before.size() == text.size())
      break;
    llvm::StringRef name =
        after.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
    result += ("{\"ref\":\"" + name + "\"}").str();
    text = after.drop_front(name.size());
  }
  return result;
}

static std::string rowMajorStrides(llvm::StringRef shape) {
  llvm::SmallVector<llvm::StringRef, 4> sizes;
  shape.split(sizes, ',', -1, /*KeepEmpty=*/false);
  std::string strides;
  long stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides = std::to_string(stride) + (strides.empty() ? "" : ",") + strides;
    long size = 0;
    bool isMalformed = sizes[i].trim().getAsInteger(10, size);
    stride *= isMalformed || size < 1 ? 1 : size;
  }
  return strides;
}

/// The members of an input or result of this type.
static std::string typeMembers(llvm::StringRef type) {
  type = type.trim();
  if (type == "None")
    return R"("kind":"NoneType","value":null)";
  auto [dtype, rest] = type.split('[');
  if (dtype.size() == type.size()) {
    auto [kind, value] = type.split('=');
    return ("\"kind\":\"" + kind + "\"" + (value.empty() ? "" : ",\"value\":" + value)).str();
  }
  auto [dims, device] = rest.split(']');
  auto [shape, strides] = dims.split(';');
  std::string given = dims.contains(';') ? strides.str() : rowMajorStrides(shape);
  return ("\"kind\":\"tensor\",\"shape\":[" + shape + "],\"stride\":[" + given + "],\"dtype\":\"" +
          dtype + "\",\"device\":\"" + (device.empty() ? "cuda" : device.drop_front()) + "\"")
      .str();
}

/// Splits at commas outside brackets and parentheses.
static std::vector<llvm::StringRef> splitTypes(llvm::StringRef list) {
  std::vector<llvm::StringRef> types;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; !list.empty() && i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && depth == 0)) {
      types.push_back(list.slice(start, i));
      start = i + 1;
    } else {
      depth += llvm::StringRef("[(").contains(list[i])   ? 1
               : llvm::StringRef("])").contains(list[i]) ? -1
                                                         : 0;
    }
  }
  return types;
}

static std::string resultObject(llvm::StringRef result) {
  result = result.trim();
  if (result.take_front(1) != "(")
    return "{" + typeMembers(result) + "}";
  std::string elements;
  for (llvm::StringRef type : splitTypes(result.drop_front().drop_back()))
    elements += (elements.empty() ? "" : ",") + resultObject(type);
  return R"({"kind":"tuple","elements":[)" + elements + "]}";
}

FXText &FXText::input(llvm::StringRef name, llvm::StringRef type, llvm::StringRef members) {
  inputs_.push_back(("{\"name\":\"" + name + "\"," + typeMembers(type) +
                     (members.empty() ? "" : ",") + members + "}")
                        .str());
  return *this;
}

FXText &FXText::node(llvm::StringRef name, llvm::StringRef op, llvm::StringRef args,
                     llvm::StringRef result, llvm::StringRef kwargs, llvm::StringRef members) {
  nodes_.push_back(("{\"name\":\"" + name + "\",\"op\":\"" + op + "\",\"args\":[" +
                    withReferences(args) + "],\"kwargs\":{" + withReferences(kwargs) +
                    "},\"result\":" + resultObject(result) + (members.empty() ? "" : ",") +
                    members + "}")
                       .str());
  return *this;
}

FXText &FXText::outputs(llvm::StringRef list) {
  outputs_ = withReferences(list);
  std::string user;
  for (size_t i = 0; !list.empty() && i <= list.count(','); ++i)
    user += (i ? "," : "") + std::to_string(i);
  return roles("", user, "");
}

FXText &FXText::roles(llvm::StringRef mutated, llvm::StringRef user, llvm::StringRef saved) {
  llvm::SmallVector<llvm::StringRef, 4> names;
  mutated.split(names, ',', -1, /*KeepEmpty=*/false);
  std::string quoted;
  for (llvm::StringRef name : names)
    quoted += ((quoted.empty() ? "\"" : ",\"") + name.trim() + "\"").str();
  roles_ = ("{\"mutated_inputs\":[" + quoted + "],\"user\":[" + user +
            "],\"saved_for_backward\":[" + saved + "]}")
               .str();
  return *this;
}

std::string FXText::str() const {
  std::string text = R"({"format":"fx-aten-1","kind":")" + kind_ + R"(","inputs":[)" +
                     llvm::join(inputs_, ",") + R"(],"nodes":[)" + llvm::join(nodes_, ",") +
                     R"(],"outputs":[)" + outputs_ + "]";
  if (kind_ == "forward")
    text += ",\"outputs_are\":" + roles_;
  return text + "}";
}

std::string rondo::test::fxProgram(const FXText &forward) {
  return R"({"model":"test","forward":)" + forward.str() + R"(,"backward":null})";
}

std::string rondo::test::fxProgram(const FXText &forward, const FXText &backward) {
  return R"({"model":"test","forward":)" + forward.str() + R"(,"backward":)" + backward.str() + "}";
}
