//===- JSONString.cpp - Any bytes as a JSON string ------------------------===//

#include "JSONString.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"

using namespace rondo;

/// The characters that stand for bytes, U+10FF80 to U+10FFFF, are F4 8F BE xx and F4 8F BF xx in
/// UTF-8.
static constexpr llvm::StringLiteral byteCharacterPrefix = "\xf4\x8f";
static constexpr size_t byteCharacterSize = 4;

/// The byte that the character at the front of `text`, which is valid UTF-8, stands for; 0 if it is
/// another character.
static uint8_t byteOfCharacter(llvm::StringRef text) {
  if (text.size() < byteCharacterSize || text.take_front(2) != byteCharacterPrefix)
    return 0;
  auto third = uint8_t(text[2]), fourth = uint8_t(text[3]);
  if (third == 0xbe)
    return fourth;
  return third == 0xbf ? uint8_t(fourth | 0x40) : 0;
}

/// Length of the valid UTF-8 sequence at the front of `text`, or 0 if there is none.
static size_t sequenceLength(llvm::StringRef text) {
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.data());
  size_t length = llvm::getNumBytesForUTF8(*begin);
  return length <= text.size() && llvm::isLegalUTF8Sequence(begin, begin + length) ? length : 0;
}

static void writeASCII(llvm::raw_ostream &os, char c) {
  switch (c) {
  case '"':
    os << "\\\"";
    return;
  case '\\':
    os << "\\\\";
    return;
  case '\n':
    os << "\\n";
    return;
  case '\r':
    os << "\\r";
    return;
  case '\t':
    os << "\\t";
    return;
  default:
    os << "\\u00" << llvm::hexdigit(uint8_t(c) >> 4, /*LowerCase=*/true)
       << llvm::hexdigit(c & 15, /*LowerCase=*/true);
  }
}

void rondo::writeJSONString(llvm::raw_ostream &os, llvm::StringRef bytes) {
  auto isPlain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
  os << '"';
  while (!bytes.empty()) {
    llvm::StringRef plain = bytes.take_while(isPlain);
    os << plain;
    bytes = bytes.drop_front(plain.size());
    if (bytes.empty())
      break;
    if (llvm::isASCII(bytes.front())) {
      writeASCII(os, bytes.front());
      bytes = bytes.drop_front();
      continue;
    }
    size_t length = sequenceLength(bytes);
    if (length && !byteOfCharacter(bytes)) {
      os << bytes.take_front(length);
      bytes = bytes.drop_front(length);
      continue;
    }
    auto byte = uint8_t(bytes.front());
    os << "\\udbff\\udf" << llvm::hexdigit(byte >> 4, /*LowerCase=*/true)
       << llvm::hexdigit(byte & 15, /*LowerCase=*/true);
    bytes = bytes.drop_front();
  }
  os << '"';
}

llvm::StringRef rondo::decodeJSONString(llvm::StringRef content,
                                        llvm::SmallVectorImpl<char> &buffer) {
  size_t at = content.find(byteCharacterPrefix);
  if (at == llvm::StringRef::npos)
    return content;
  buffer.clear();
  while (at != llvm::StringRef::npos) {
    buffer.append(content.begin(), content.begin() + at);
    content = content.drop_front(at);
    if (uint8_t byte = byteOfCharacter(content)) {
      buffer.push_back(char(byte));
      content = content.drop_front(byteCharacterSize);
      at = content.find(byteCharacterPrefix);
    } else {
      at = content.find(byteCharacterPrefix, 1);
    }
  }
  buffer.append(content.begin(), content.end());
  return {buffer.data(), buffer.size()};
}
