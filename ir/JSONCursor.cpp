//===- JSONCursor.cpp - Reading JSON with located diagnostics -------------===//
//
// nlohmann's parser reads the text without recursion and calls `Builder` for each event. What comes
// of it is compact, for traces of a million ops: a node is 16 bytes, keys are interned, and the
// children of an array or object lie side by side in a block that knows its own place in the block
// above it. A cursor is a block and an index; its JSON pointer is found by walking up.
//
// The parser gives no positions but that of a syntax error, so depth and null bytes (which it would
// take for the end) are looked for in the text beforehand.
//
//===----------------------------------------------------------------------===//

#include "JSONCursor.h"
#include "SourceText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Allocator.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

using namespace rondo;

//===--- The document -----------------------------------------------------===//

/// One value. The length of strings and of integers beyond 64 bits, whose digits are kept, is in
/// `length`.
struct JSONCursor::Node {
  JSONKind kind = JSONKind::Null;
  bool isBig = false; ///< an `Int` that is no int64: `text` holds its digits
  uint32_t length = 0;
  union {
    bool boolean;
    int64_t integer;
    double floating;
    const char *text;
    Block *block;
  };

  Node() : integer(0) {}
  llvm::StringRef string() const { return {text, length}; }
};

/// The children of an array or object: this, then the nodes, then, for an object, for each node the
/// index of its key in `Storage::keys`. A text below 4 GiB has fewer than 2^31 of them.
struct JSONCursor::Block {
  const Block *parent = nullptr; ///< null for the root
  uint32_t indexInParent = 0;
  uint32_t size : 31;
  uint32_t hasKeys : 1;

  Block(uint32_t size, bool hasKeys) : size(size), hasKeys(hasKeys) {}
  static Block *create(llvm::BumpPtrAllocator &allocator, size_t size, bool hasKeys) {
    size_t bytes = sizeof(Block) + size * (sizeof(Node) + (hasKeys ? sizeof(uint32_t) : 0));
    return new (allocator.Allocate(bytes, alignof(Block))) Block(uint32_t(size), hasKeys);
  }

  Node *nodes() { return reinterpret_cast<Node *>(this + 1); }
  const Node *nodes() const { return reinterpret_cast<const Node *>(this + 1); }
  uint32_t *keys() { return reinterpret_cast<uint32_t *>(nodes() + size); }
  const uint32_t *keys() const { return reinterpret_cast<const uint32_t *>(nodes() + size); }
};

struct JSONCursor::Storage {
  std::string file;
  DiagnosticList *diagnostics;
  llvm::BumpPtrAllocator allocator;
  Node root;
  std::vector<llvm::StringRef> keys;
  llvm::StringMap<uint32_t> keyIndices;

  Storage(llvm::StringRef file, DiagnosticList &diagnostics)
      : file(file.str()), diagnostics(&diagnostics) {}

  uint32_t internKey(llvm::StringRef key) {
    auto [entry, isNew] = keyIndices.try_emplace(key, uint32_t(keys.size()));
    if (isNew)
      keys.push_back(entry->getKey());
    return entry->second;
  }
};

//===--- Building ---------------------------------------------------------===//

/// Takes the events of nlohmann's parser, whose names these are.
class JSONCursor::Builder {
public:
  explicit Builder(Storage &storage) : storage_(storage) {}

  bool null() { return add(Node()); }
  bool boolean(bool value) {
    Node node;
    node.kind = JSONKind::Bool;
    node.boolean = value;
    return add(node);
  }
  bool number_integer(int64_t value) { // NOLINT(readability-identifier-naming)
    Node node;
    node.kind = JSONKind::Int;
    node.integer = value;
    return add(node);
  }
  bool number_unsigned(uint64_t value) { // NOLINT(readability-identifier-naming)
    if (value <= uint64_t(std::numeric_limits<int64_t>::max()))
      return number_integer(int64_t(value));
    return addText(JSONKind::Int, std::to_string(value));
  }
  // NOLINTNEXTLINE(readability-identifier-naming)
  bool number_float(double value, const std::string &text) {
    if (text.find_first_of(".eE") == std::string::npos)
      return addText(JSONKind::Int, text);
    Node node;
    node.kind = JSONKind::Float;
    node.floating = value;
    return add(node);
  }
  bool string(const std::string &value) { return addText(JSONKind::String, value); }
  bool binary(const std::vector<uint8_t> &) { return false; }

  bool start_array(size_t) { return start(false); }   // NOLINT(readability-identifier-naming)
  bool end_array() { return end(JSONKind::Array); }   // NOLINT(readability-identifier-naming)
  bool start_object(size_t) { return start(true); }   // NOLINT(readability-identifier-naming)
  bool end_object() { return end(JSONKind::Object); } // NOLINT(readability-identifier-naming)
  bool key(const std::string &key) {
    pendingKeys_.push_back(storage_.internKey(key));
    return true;
  }

  template <typename Exception>
  bool parse_error(size_t position, // NOLINT(readability-identifier-naming)
                   const std::string &token, const Exception &exception) {
    errorPosition = position;
    errorToken = token;
    errorText = exception.what();
    return false;
  }

  /// Of the syntax error: bytes read when it was found, the token it was found in, what was wrong.
  size_t errorPosition = 0;
  std::string errorToken, errorText;
  /// Members whose key an earlier member of the same object has.
  std::vector<std::pair<const Block *, size_t>> duplicates;

private:
  struct Frame {
    size_t firstNode, firstKey;
    bool isObject;
  };

  bool add(const Node &node) {
    if (frames_.empty())
      storage_.root = node;
    else
      pendingNodes_.push_back(node);
    return true;
  }

  bool addText(JSONKind kind, const std::string &text) {
    Node node;
    node.kind = kind;
    node.isBig = kind == JSONKind::Int;
    node.length = uint32_t(text.size());
    char *copy = storage_.allocator.Allocate<char>(text.size());
    std::copy(text.begin(), text.end(), copy);
    node.text = copy;
    return add(node);
  }

  bool start(bool isObject) {
    frames_.push_back({pendingNodes_.size(), pendingKeys_.size(), isObject});
    return true;
  }

  bool end(JSONKind kind) {
    Frame frame = frames_.back();
    frames_.pop_back();
    Block *block =
        Block::create(storage_.allocator, pendingNodes_.size() - frame.firstNode, frame.isObject);
    for (uint32_t i = 0; i < block->size; ++i) {
      auto *node = new (&block->nodes()[i]) Node(pendingNodes_[frame.firstNode + i]);
      if (node->kind == JSONKind::Array || node->kind == JSONKind::Object) {
        node->block->parent = block;
        node->block->indexInParent = i;
      }
    }
    pendingNodes_.resize(frame.firstNode);
    if (frame.isObject) {
      std::copy(pendingKeys_.begin() + frame.firstKey, pendingKeys_.end(), block->keys());
      pendingKeys_.resize(frame.firstKey);
      findDuplicates(*block);
    }
    Node node;
    node.kind = kind;
    node.block = block;
    return add(node);
  }

  void findDuplicates(const Block &block) {
    lastSeen_.resize(storage_.keys.size(), nullptr);
    for (size_t i = 0; i < block.size; ++i) {
      const Block *&seen = lastSeen_[block.keys()[i]];
      if (seen == &block)
        duplicates.emplace_back(&block, i);
      seen = &block;
    }
  }

  Storage &storage_;
  std::vector<Node> pendingNodes_;
  std::vector<uint32_t> pendingKeys_;
  std::vector<Frame> frames_;
  std::vector<const Block *> lastSeen_; ///< per key: the last object that has it
};

//===--- Syntax errors ----------------------------------------------------===//

static void syntaxError(llvm::StringRef text, llvm::StringRef file, size_t offset,
                        const llvm::Twine &message, DiagnosticList &diagnostics) {
  offset = std::min(offset, text.size());
  llvm::StringRef before = text.take_front(offset);
  size_t lineStart = before.rfind('\n') + 1; // npos + 1 is 0
  SourceText source(text, file);
  Location location =
      source.location(uint32_t(before.count('\n') + 1), uint32_t(offset - lineStart + 1));
  source.addSnippets(diagnostics.error(location, message));
}

/// nlohmann's message without the position, which the location gives, and the bytes read, which the
/// snippet gives: `malformed JSON while parsing array: unexpected '}'; expected ']'`.
static std::string syntaxMessage(llvm::StringRef what) {
  if (what.contains("number overflow"))
    return "number is too large for a double";
  llvm::StringRef message = what.split("syntax error ").second.split("; last read:").first;
  auto [context, problem] = message.split("- ");
  return ("malformed JSON " + context.rtrim() + (context.empty() ? "" : ": ") + problem).str();
}

/// `position` is where the parser stopped; the fault is the byte before it or the token that ends
/// there. The parser gives the text of a string or number only.
static size_t faultOffset(llvm::StringRef text, size_t position, llvm::StringRef token,
                          llvm::StringRef what) {
  if (what.contains("unexpected end of input"))
    return text.rtrim().size();
  size_t length = 1;
  if (what.contains("unexpected true") || what.contains("unexpected null"))
    length = 4;
  else if (what.contains("unexpected false"))
    length = 5;
  else if (what.contains("unexpected string") || what.contains("unexpected number") ||
           what.contains("number overflow"))
    length = token.size();
  return position - std::min(position, length);
}

/// Looks for what the parser would not refuse. Returns false after an error.
static bool checkText(llvm::StringRef text, llvm::StringRef file, DiagnosticList &diagnostics) {
  if (text.size() > std::numeric_limits<uint32_t>::max()) {
    diagnostics.error({file.str(), 0, 0, ""}, "text is larger than 4 GiB");
    return false;
  }
  unsigned depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '\0':
      syntaxError(text, file, i, "malformed JSON: null byte", diagnostics);
      return false;
    case '"':
      inString = !inString;
      break;
    case '\\':
      if (inString && i + 1 < text.size() && text[i + 1] != '\0')
        ++i;
      break;
    case '[':
    case '{':
      if (!inString && ++depth > JSONDocument::maxDepth) {
        syntaxError(text, file, i,
                    "nested deeper than " + llvm::Twine(JSONDocument::maxDepth) +
                        " arrays and objects",
                    diagnostics);
        return false;
      }
      break;
    case ']':
    case '}':
      if (!inString && depth)
        --depth;
      break;
    default:
      break;
    }
  }
  return true;
}

//===--- JSONDocument -----------------------------------------------------===//

JSONDocument::JSONDocument(std::unique_ptr<JSONCursor::Storage> storage)
    : storage_(std::move(storage)) {}
JSONDocument::JSONDocument(JSONDocument &&) noexcept = default;
JSONDocument &JSONDocument::operator=(JSONDocument &&) noexcept = default;
JSONDocument::~JSONDocument() = default;

JSONCursor JSONDocument::root() const {
  return JSONCursor(*storage_, nullptr, 0);
}

std::optional<JSONDocument> JSONDocument::parse(llvm::StringRef text, llvm::StringRef file,
                                                DiagnosticList &diagnostics) {
  if (!checkText(text, file, diagnostics))
    return std::nullopt;
  auto storage = std::make_unique<JSONCursor::Storage>(file, diagnostics);
  JSONCursor::Builder builder(*storage);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    size_t offset = faultOffset(text, builder.errorPosition, builder.errorToken, builder.errorText);
    syntaxError(text, file, offset, syntaxMessage(builder.errorText), diagnostics);
    return std::nullopt;
  }
  for (auto [block, index] : builder.duplicates) {
    JSONCursor cursor(*storage, block, index);
    cursor.error("key " + quoteForMessage(cursor.key()) + " is given twice");
  }
  return JSONDocument(std::move(storage));
}

//===--- JSONCursor -------------------------------------------------------===//

llvm::StringRef rondo::jsonKindName(JSONKind kind) {
  switch (kind) {
  case JSONKind::Null:
    return "null";
  case JSONKind::Bool:
    return "a boolean";
  case JSONKind::Int:
    return "an integer";
  case JSONKind::Float:
    return "a floating-point number";
  case JSONKind::String:
    return "a string";
  case JSONKind::Array:
    return "an array";
  case JSONKind::Object:
    return "an object";
  }
  return "nothing";
}

std::string rondo::quoteForMessage(llvm::StringRef text) {
  constexpr size_t limit = 80;
  std::string quoted = "'";
  for (char c : text.take_front(limit)) {
    if (uint8_t(c) < 0x20 || c == 0x7f)
      quoted += "\\x" + llvm::toHex(llvm::StringRef(&c, 1), /*LowerCase=*/true);
    else
      quoted += c;
  }
  return quoted + (text.size() > limit ? "...'" : "'");
}

const JSONCursor::Node &JSONCursor::node() const {
  return block_ ? block_->nodes()[index_] : storage_->root;
}

JSONKind JSONCursor::kind() const {
  return node().kind;
}

std::optional<bool> JSONCursor::asBool() const {
  return kind() == JSONKind::Bool ? std::optional(node().boolean) : std::nullopt;
}

std::optional<int64_t> JSONCursor::asInt() const {
  const Node &value = node();
  return value.kind == JSONKind::Int && !value.isBig ? std::optional(value.integer) : std::nullopt;
}

std::optional<uint64_t> JSONCursor::asUnsigned() const {
  if (std::optional<int64_t> integer = asInt())
    return *integer >= 0 ? std::optional(uint64_t(*integer)) : std::nullopt;
  uint64_t big = 0;
  if (kind() != JSONKind::Int || node().string().getAsInteger(10, big))
    return std::nullopt;
  return big;
}

std::optional<double> JSONCursor::asNumber() const {
  const Node &value = node();
  if (value.kind == JSONKind::Float)
    return value.floating;
  if (value.kind != JSONKind::Int)
    return std::nullopt;
  if (!value.isBig)
    return double(value.integer);
  double big = 0;
  return value.string().getAsDouble(big) ? std::nullopt : std::optional(big);
}

std::optional<llvm::StringRef> JSONCursor::asString() const {
  return kind() == JSONKind::String ? std::optional(node().string()) : std::nullopt;
}

void JSONCursor::unexpected(const llvm::Twine &expected) const {
  error("expected " + expected + ", got " + jsonKindName(kind()));
}

template <typename Bound> static std::string rangeText(Bound min, Bound max) {
  return "an integer from " + std::to_string(min) + " to " + std::to_string(max);
}

/// An integer as it was written, for messages.
std::string JSONCursor::integerText() const {
  const Node &value = node();
  if (!value.isBig)
    return std::to_string(value.integer);
  constexpr size_t limit = 40;
  llvm::StringRef digits = value.string();
  return digits.take_front(limit).str() + (digits.size() > limit ? "..." : "");
}

std::optional<bool> JSONCursor::expectBool() const {
  std::optional<bool> value = asBool();
  if (!value)
    unexpected("a boolean");
  return value;
}

std::optional<int64_t> JSONCursor::expectInt(int64_t min, int64_t max) const {
  std::optional<int64_t> value = asInt();
  if (value && *value >= min && *value <= max)
    return value;
  if (kind() == JSONKind::Int)
    error("expected " + rangeText(min, max) + ", got " + integerText());
  else
    unexpected("an integer");
  return std::nullopt;
}

std::optional<uint64_t> JSONCursor::expectUnsigned(uint64_t max) const {
  std::optional<uint64_t> value = asUnsigned();
  if (value && *value <= max)
    return value;
  if (kind() == JSONKind::Int)
    error("expected " + rangeText(uint64_t(0), max) + ", got " + integerText());
  else
    unexpected("an integer");
  return std::nullopt;
}

std::optional<double> JSONCursor::expectNumber() const {
  std::optional<double> value = asNumber();
  if (!value)
    unexpected("a number");
  return value;
}

std::optional<llvm::StringRef> JSONCursor::expectString() const {
  std::optional<llvm::StringRef> value = asString();
  if (!value)
    unexpected("a string");
  return value;
}

std::optional<size_t> JSONCursor::expectWord(llvm::StringRef what,
                                             llvm::ArrayRef<llvm::StringRef> words) const {
  std::optional<llvm::StringRef> value = asString();
  if (!value) {
    unexpected(what);
    return std::nullopt;
  }
  for (size_t i = 0; i < words.size(); ++i) {
    if (*value == words[i])
      return i;
  }
  error("expected " + what + ", got " + quoteForMessage(*value) + didYouMean(*value, words));
  return std::nullopt;
}

bool JSONCursor::expectArray() const {
  if (!isArray())
    unexpected("an array");
  return isArray();
}

bool JSONCursor::expectObject() const {
  if (!isObject())
    unexpected("an object");
  return isObject();
}

bool JSONCursor::expectObject(llvm::ArrayRef<llvm::StringRef> keys) const {
  if (!expectObject())
    return false;
  for (JSONCursor member : elements()) {
    llvm::StringRef key = member.key();
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      member.error("unknown key " + quoteForMessage(key) + didYouMean(key, keys));
  }
  return true;
}

size_t JSONCursor::size() const {
  return isArray() || isObject() ? node().block->size : 0;
}

JSONCursor JSONCursor::operator[](size_t i) const {
  assert(i < size() && "no such element");
  return JSONCursor(*storage_, node().block, i);
}

JSONRange JSONCursor::elements() const {
  size_t count = size();
  return JSONRange(JSONCursor(*storage_, count ? node().block : nullptr, 0), count);
}

std::optional<JSONCursor> JSONCursor::find(llvm::StringRef key) const {
  if (!isObject())
    return std::nullopt;
  const Block &block = *node().block;
  for (size_t i = 0; i < block.size; ++i) {
    if (storage_->keys[block.keys()[i]] == key)
      return JSONCursor(*storage_, &block, i);
  }
  return std::nullopt;
}

std::optional<JSONCursor> JSONCursor::require(llvm::StringRef key) const {
  std::optional<JSONCursor> member = find(key);
  if (!member && isObject())
    error("missing key '" + key + "'");
  return member;
}

llvm::StringRef JSONCursor::key() const {
  return block_ && block_->hasKeys ? storage_->keys[block_->keys()[index_]] : llvm::StringRef();
}

std::string JSONCursor::pointer() const {
  llvm::SmallVector<JSONCursor, 16> path;
  for (JSONCursor cursor = *this; cursor.block_;
       cursor = JSONCursor(*storage_, cursor.block_->parent, cursor.block_->indexInParent))
    path.push_back(cursor);
  std::string pointer;
  for (const JSONCursor &step : llvm::reverse(path)) {
    pointer += '/';
    if (!step.block_->hasKeys) {
      pointer += std::to_string(step.index_);
      continue;
    }
    for (char c : step.key()) {
      if (c == '~')
        pointer += "~0";
      else if (c == '/')
        pointer += "~1";
      else if (uint8_t(c) < 0x20 || c == 0x7f)
        pointer += "\\u00" + llvm::toHex(llvm::StringRef(&c, 1), /*LowerCase=*/true);
      else
        pointer += c;
    }
  }
  return pointer;
}

Location JSONCursor::location() const {
  return {storage_->file, 0, 0, pointer()};
}

Diagnostic &JSONCursor::error(const llvm::Twine &message) const {
  return storage_->diagnostics->error(location(), message);
}

DiagnosticList &JSONCursor::diagnostics() const {
  return *storage_->diagnostics;
}
