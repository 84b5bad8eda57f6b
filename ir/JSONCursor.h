//===- JSONCursor.h - Reading JSON with located diagnostics -----*- C++ -*-===//
//
// What the readers of JSON share. A `JSONDocument` is a parsed text: compact and read-only, keys in
// the order of the text. A `JSONCursor` points at one value of it and knows its JSON pointer, so
// that whoever walks the document can say `step.json:/forward/ops/3/operands/1: error: expected a
// string, got an array` at any place:
//
//   std::optional<JSONDocument> document = JSONDocument::parse(text, file, diagnostics);
//   if (!document)
//     return diagnostics.takeError();
//   JSONCursor root = document->root();
//   if (root.expectObject({"name", "ops"}))          // unknown keys are errors
//     if (std::optional<JSONCursor> ops = root.require("ops"))
//       if (ops->expectArray())
//         for (JSONCursor op : ops->elements())
//           ...
//
// Functions named `asX` are silent; those named `expectX` and `require` report what is wrong.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/Diagnostic.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/iterator_range.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

namespace rondo {

/// `Int` is a number without fraction and exponent, of any size; `Float` is any other number.
enum class JSONKind : uint8_t { Null, Bool, Int, Float, String, Array, Object };
/// With its article, for messages: `null`, `a boolean`, `an integer`, `a string`, `an array`,
/// `an object`; `Float` is `a floating-point number`.
llvm::StringRef jsonKindName(JSONKind kind);

/// `text` in single quotes, cut when long, control bytes as `\xHH`: for messages about strings and
/// keys that somebody else wrote.
std::string quoteForMessage(llvm::StringRef text);

class JSONRange;

/// A value in a JSONDocument. Cheap to copy; valid as long as the document.
class JSONCursor {
public:
  JSONKind kind() const;
  bool isNull() const { return kind() == JSONKind::Null; }
  bool isArray() const { return kind() == JSONKind::Array; }
  bool isObject() const { return kind() == JSONKind::Object; }

  /// The value if it is of that kind (and fits, for integers); nothing else.
  std::optional<bool> asBool() const;
  std::optional<int64_t> asInt() const;
  std::optional<uint64_t> asUnsigned() const;
  /// An integer or a float, rounded to the nearest double.
  std::optional<double> asNumber() const;
  /// UTF-8, may hold null bytes. Borrowed from the document.
  std::optional<llvm::StringRef> asString() const;

  /// The same; otherwise says what was expected and what is there, or that the number is out of
  /// range, and returns nothing. The bounds are inclusive.
  std::optional<bool> expectBool() const;
  std::optional<int64_t> expectInt(int64_t min = std::numeric_limits<int64_t>::min(),
                                   int64_t max = std::numeric_limits<int64_t>::max()) const;
  std::optional<uint64_t> expectUnsigned(uint64_t max = std::numeric_limits<uint64_t>::max()) const;
  std::optional<double> expectNumber() const;
  std::optional<llvm::StringRef> expectString() const;
  /// A string that is one of `words`: its index. Names the nearest one otherwise. `what` is what
  /// the words are (`a tag`), for the message.
  std::optional<size_t> expectWord(llvm::StringRef what,
                                   llvm::ArrayRef<llvm::StringRef> words) const;
  bool expectArray() const;
  bool expectObject() const;
  /// An object. Every key that is not in `keys` is an error at that key, which names the nearest
  /// one; the answer is true nevertheless, so that the known keys can be read.
  bool expectObject(llvm::ArrayRef<llvm::StringRef> keys) const;

  /// Number of elements of an array or members of an object; 0 for anything else.
  size_t size() const;
  /// The i-th element or member, i < size().
  JSONCursor operator[](size_t i) const;
  /// In the order of the text. For an object: the values; `key` gives the keys.
  JSONRange elements() const;
  /// The first member with that key, or nothing. Also nothing if this is no object.
  std::optional<JSONCursor> find(llvm::StringRef key) const;
  /// The same for an object; a missing key is an error at this object.
  std::optional<JSONCursor> require(llvm::StringRef key) const;
  /// The key of a member of an object; empty for anything else.
  llvm::StringRef key() const;

  /// RFC 6901, from the root: `/forward/ops/3`; empty for the root. Control characters in keys are
  /// written `\u000a`.
  std::string pointer() const;
  /// File and pointer.
  Location location() const;
  /// Adds an error here. The reference is valid until the next diagnostic.
  Diagnostic &error(const llvm::Twine &message) const;
  DiagnosticList &diagnostics() const;

private:
  friend class JSONDocument;
  friend class JSONRange;
  struct Node;
  struct Block;
  struct Storage;
  class Builder;

  JSONCursor(const Storage &storage, const Block *block, size_t index)
      : storage_(&storage), block_(block), index_(index) {}
  const Node &node() const;
  void unexpected(const llvm::Twine &expected) const;
  std::string integerText() const;

  const Storage *storage_;
  /// The container that the value is in; null for the root.
  const Block *block_;
  size_t index_;
};

/// The elements of an array or object, for range-based `for`.
class JSONRange {
public:
  class Iterator {
  public:
    JSONCursor operator*() const { return cursor_; }
    Iterator &operator++() {
      ++cursor_.index_;
      return *this;
    }
    bool operator==(const Iterator &other) const { return cursor_.index_ == other.cursor_.index_; }

  private:
    friend class JSONRange;
    explicit Iterator(JSONCursor cursor) : cursor_(cursor) {}
    JSONCursor cursor_;
  };

  Iterator begin() const { return Iterator(begin_); }
  Iterator end() const {
    JSONCursor end = begin_;
    end.index_ += size_;
    return Iterator(end);
  }

private:
  friend class JSONCursor;
  JSONRange(JSONCursor begin, size_t size) : begin_(begin), size_(size) {}
  JSONCursor begin_;
  size_t size_;
};

/// A parsed JSON text. Owns all that cursors point to. One thread.
class JSONDocument {
public:
  /// Arrays and objects may be nested this deep; deeper text is an error.
  static constexpr unsigned maxDepth = 1280;

  /// `diagnostics` must outlive the document: cursors report there. Nothing if the text is no JSON
  /// (RFC 8259; a byte order mark is skipped), with one error located by line and column. Keys
  /// named twice in an object are errors too, located by JSON pointer, but the document is
  /// returned: the first of them counts. Never throws or recurses, whatever the text.
  static std::optional<JSONDocument> parse(llvm::StringRef text, llvm::StringRef file,
                                           DiagnosticList &diagnostics);
  JSONDocument(JSONDocument &&) noexcept;
  JSONDocument &operator=(JSONDocument &&) noexcept;
  ~JSONDocument();

  JSONCursor root() const;

private:
  explicit JSONDocument(std::unique_ptr<JSONCursor::Storage> storage);
  std::unique_ptr<JSONCursor::Storage> storage_;
};

} // namespace rondo
