//===- JSONString.h - Any bytes as a JSON string ----------------*- C++ -*-===//
//
// JSON strings are Unicode; strings in traces are bytes (file names, attributes). Valid UTF-8 is
// written as it is. A byte 0xHH that is no part of valid UTF-8 becomes the private-use character
// U+10FFHH, written `\udbff\udfHH`; to keep this reversible, the bytes of a character in the range
// U+10FF80 to U+10FFFF that the string does hold are written that way, too.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace rondo {

/// Writes `bytes` as a JSON string, with its quotes. What is written is valid UTF-8.
void writeJSONString(llvm::raw_ostream &os, llvm::StringRef bytes);

/// The bytes that `writeJSONString` was given, from the content of the string that a JSON parser
/// read. The content itself where it has no such characters, else `buffer`.
llvm::StringRef decodeJSONString(llvm::StringRef content, llvm::SmallVectorImpl<char> &buffer);

} // namespace rondo
