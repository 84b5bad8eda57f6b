//===- SafetensorsHeader.cpp - What the header of a file says -------------===//
//
// nlohmann's parser reads the header without recursion and without building a tree: it calls
// `Reader` for each event, which knows what may come where and stops at the first thing that may
// not.
//
//===----------------------------------------------------------------------===//

#include "SafetensorsHeader.h"

#include "rondo/ir/Diagnostic.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

#include <nlohmann/json.hpp>

#include <array>
#include <limits>
#include <optional>

using namespace rondo;

/// No tensor type of a trace has more.
static constexpr unsigned maxRank = 64;

llvm::StringRef rondo::safetensorsDTypeName(DType dtype) {
  switch (dtype) {
  case DType::Bool:
    return "BOOL";
  case DType::U8:
    return "U8";
  case DType::I8:
    return "I8";
  case DType::I16:
    return "I16";
  case DType::I32:
    return "I32";
  case DType::I64:
    return "I64";
  case DType::F8E4M3:
    return "F8_E4M3";
  case DType::F8E5M2:
    return "F8_E5M2";
  case DType::F16:
    return "F16";
  case DType::BF16:
    return "BF16";
  case DType::F32:
    return "F32";
  case DType::F64:
    break;
  }
  return "F64";
}

static std::optional<DType> parseSafetensorsDType(llvm::StringRef name) {
  for (DType dtype : allDTypes)
    if (safetensorsDTypeName(dtype) == name)
      return dtype;
  return std::nullopt;
}

/// `'text'`, fit for a message.
static std::string inQuotes(llvm::StringRef text) {
  constexpr size_t most = 200;
  std::string result;
  llvm::raw_string_ostream os(result);
  os << '\'';
  for (char c : text.take_front(most)) {
    if (uint8_t(c) < 0x20 || c == 0x7f)
      os.write_escaped(llvm::StringRef(&c, 1));
    else
      os << c;
  }
  os << (text.size() > most ? "...'" : "'");
  return os.str();
}

std::string rondo::safetensorsTensorText(llvm::StringRef name) {
  return "tensor " + inQuotes(name);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

/// Takes the events of nlohmann's parser, whose names these are. Each returns false to stop.
class Reader {
public:
  explicit Reader(SafetensorsHeader &header) : header_(header) {}

  bool null() { return scalar("null"); }
  bool boolean(bool) { return scalar("a bool"); }
  bool number_integer(int64_t value) { // NOLINT(readability-identifier-naming)
    return scalar("the number " + std::to_string(value));
  }
  bool number_unsigned(uint64_t value); // NOLINT(readability-identifier-naming)
  // NOLINTNEXTLINE(readability-identifier-naming)
  bool number_float(double, const std::string &text) { return scalar("the number " + text); }
  bool string(const std::string &value);
  bool binary(const std::vector<uint8_t> &) { return false; }
  bool start_object(size_t); // NOLINT(readability-identifier-naming)
  bool end_object();         // NOLINT(readability-identifier-naming)
  bool start_array(size_t);  // NOLINT(readability-identifier-naming)
  bool end_array();          // NOLINT(readability-identifier-naming)
  bool key(const std::string &key);

  template <typename Exception>
  bool parse_error(size_t position, // NOLINT(readability-identifier-naming)
                   const std::string &, const Exception &exception) {
    llvm::StringRef what = llvm::StringRef(exception.what()).split("syntax error ").second;
    what = what.split("; last read:").first.split("- ").second.split("; expected").first;
    return fail("header is malformed JSON at byte " + std::to_string(position) +
                (what.empty() ? "" : ": " + what.str()));
  }

  /// What went wrong; empty if nothing did.
  std::string error;

private:
  /// Where the next event happens.
  enum class Place : uint8_t {
    Start,       ///< before everything
    Header,      ///< in the outermost object
    Metadata,    ///< in the object of `__metadata__`
    Entry,       ///< in the object of a tensor
    Shape,       ///< in a list
    DataOffsets, ///< in a list
    Ignored,     ///< in a member that the format does not know
  };
  enum class Member : uint8_t { DType, Shape, DataOffsets, Unknown };

  bool fail(const std::string &message) {
    if (error.empty())
      error = message;
    return false;
  }
  bool failEntry(const std::string &message) {
    return fail(safetensorsTensorText(entry_.name) + ": " + message);
  }

  bool scalar(const std::string &what);
  bool unexpected(const std::string &what);
  bool entryKey(llvm::StringRef key);
  bool finishEntry();

  SafetensorsHeader &header_;
  Place place_ = Place::Start;
  bool isMetadata_ = false; ///< the member of the header that comes is `__metadata__`
  llvm::StringSet<> names_, metadataKeys_;
  SafetensorsEntry entry_;
  Member member_ = Member::Unknown;
  std::array<bool, 3> has_ = {}; ///< by member
  llvm::SmallVector<uint64_t, 2> offsets_;
  unsigned ignoredDepth_ = 0;
};

} // namespace

/// A value of a kind that may not stand here.
bool Reader::unexpected(const std::string &what) {
  switch (place_) {
  case Place::Start: // a brace comes first
    break;
  case Place::Header:
    return isMetadata_ ? fail("'__metadata__' is to be an object, got " + what)
                       : failEntry("is to be described by an object, got " + what);
  case Place::Metadata:
    return fail("'__metadata__': " + inQuotes(header_.metadata.back().first) +
                " is to be a string, got " + what);
  case Place::Shape:
    return failEntry("'shape' is to hold sizes of at least 0 that fit 63 bits, got " + what);
  case Place::DataOffsets:
    return failEntry("'data_offsets' is to hold two offsets of at least 0, got " + what);
  case Place::Entry:
  case Place::Ignored:
    break;
  }
  switch (member_) {
  case Member::DType:
    return failEntry("'dtype' is to be a string, got " + what);
  case Member::Shape:
    return failEntry("'shape' is to be a list, got " + what);
  case Member::DataOffsets:
    return failEntry("'data_offsets' is to be a list, got " + what);
  case Member::Unknown:
    break;
  }
  return true;
}

bool Reader::scalar(const std::string &what) {
  return place_ == Place::Ignored || unexpected(what);
}

bool Reader::number_unsigned(uint64_t value) {
  if (place_ == Place::Shape && value <= uint64_t(std::numeric_limits<int64_t>::max())) {
    if (entry_.shape.size() == maxRank)
      return failEntry("has more than " + std::to_string(maxRank) + " dimensions");
    entry_.shape.push_back(int64_t(value));
    return true;
  }
  if (place_ == Place::DataOffsets && offsets_.size() < 2) {
    offsets_.push_back(value);
    return true;
  }
  if (place_ == Place::DataOffsets)
    return unexpected("more");
  return scalar("the number " + std::to_string(value));
}

bool Reader::string(const std::string &value) {
  if (place_ == Place::Metadata) {
    header_.metadata.back().second = value;
    return true;
  }
  if (place_ != Place::Entry || member_ != Member::DType)
    return scalar("a string");
  std::optional<DType> dtype = parseSafetensorsDType(value);
  if (!dtype)
    return failEntry("dtype " + inQuotes(value) + " is none that can be read");
  entry_.dtype = *dtype;
  return true;
}

bool Reader::start_object(size_t) {
  if (place_ == Place::Ignored || (place_ == Place::Entry && member_ == Member::Unknown)) {
    place_ = Place::Ignored;
    ++ignoredDepth_;
    return true;
  }
  if (place_ == Place::Start) {
    place_ = Place::Header;
    return true;
  }
  if (place_ != Place::Header)
    return unexpected("an object");
  place_ = isMetadata_ ? Place::Metadata : Place::Entry;
  return true;
}

bool Reader::end_object() {
  switch (place_) {
  case Place::Ignored:
    return end_array();
  case Place::Metadata:
    place_ = Place::Header;
    return true;
  case Place::Entry:
    place_ = Place::Header;
    return finishEntry();
  default:
    return true;
  }
}

bool Reader::start_array(size_t) {
  if (place_ == Place::Ignored || (place_ == Place::Entry && member_ == Member::Unknown)) {
    place_ = Place::Ignored;
    ++ignoredDepth_;
    return true;
  }
  if (place_ != Place::Entry || member_ == Member::DType)
    return unexpected("a list");
  place_ = member_ == Member::Shape ? Place::Shape : Place::DataOffsets;
  return true;
}

bool Reader::end_array() {
  if (place_ == Place::DataOffsets && offsets_.size() != 2)
    return failEntry("'data_offsets' is to hold two offsets, got " +
                     std::to_string(offsets_.size()));
  if (place_ != Place::Ignored || --ignoredDepth_ == 0)
    place_ = Place::Entry;
  return true;
}

bool Reader::key(const std::string &key) {
  if (place_ == Place::Ignored)
    return true;
  if (place_ == Place::Entry)
    return entryKey(key);
  if (place_ == Place::Metadata) {
    if (!metadataKeys_.insert(key).second)
      return fail("'__metadata__': " + inQuotes(key) + " is given twice");
    header_.metadata.push_back({key, ""});
    return true;
  }
  isMetadata_ = key == safetensorsMetadataKey;
  if (!names_.insert(key).second)
    return fail((isMetadata_ ? inQuotes(key) : safetensorsTensorText(key)) + " is given twice");
  entry_ = {};
  entry_.name = key;
  has_ = {};
  offsets_.clear();
  return true;
}

bool Reader::entryKey(llvm::StringRef key) {
  member_ = llvm::StringSwitch<Member>(key)
                .Case("dtype", Member::DType)
                .Case("shape", Member::Shape)
                .Case("data_offsets", Member::DataOffsets)
                .Default(Member::Unknown);
  if (member_ == Member::Unknown)
    return true;
  bool &has = has_[size_t(member_)];
  if (has)
    return failEntry("'" + key.str() + "' is given twice");
  return has = true;
}

/// Bytes of a tensor; nothing if they, or its strides, do not fit 63 bits.
static std::optional<uint64_t> sizeInBytes(const SafetensorsEntry &entry) {
  int64_t bytes = dtypeSize(entry.dtype);
  bool isEmpty = false;
  for (int64_t size : entry.shape) {
    isEmpty |= size == 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes))
      return std::nullopt;
  }
  return isEmpty ? 0 : bytes;
}

bool Reader::finishEntry() {
  constexpr const char *members[] = {"dtype", "shape", "data_offsets"};
  for (size_t i = 0; i < has_.size(); ++i)
    if (!has_[i])
      return failEntry("has no '" + std::string(members[i]) + "'");
  entry_.begin = offsets_[0];
  entry_.end = offsets_[1];
  std::string place =
      "data_offsets [" + std::to_string(entry_.begin) + ", " + std::to_string(entry_.end) + "]";
  if (entry_.begin > entry_.end)
    return failEntry(place + " end before they begin");
  std::optional<uint64_t> bytes = sizeInBytes(entry_);
  if (!bytes)
    return failEntry("its size in bytes does not fit 63 bits");
  if (entry_.end - entry_.begin != *bytes)
    return failEntry(place + " hold " + std::to_string(entry_.end - entry_.begin) +
                     " bytes, expected " + std::to_string(*bytes) + " for its dtype and shape");
  header_.entries.push_back(std::move(entry_));
  return true;
}

llvm::Expected<SafetensorsHeader> SafetensorsHeader::parse(llvm::StringRef text,
                                                           llvm::StringRef file) {
  const Location location{file.str(), 0, 0, ""};
  // The parser would take a null byte for the end.
  if (size_t null = text.find('\0'); null != llvm::StringRef::npos)
    return makeError(location,
                     "header is malformed JSON at byte " + llvm::Twine(null) + ": null byte");
  if (text.empty() || text.front() != '{')
    return makeError(location, "header is to begin with '{'");
  SafetensorsHeader header;
  Reader reader(header);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader))
    return makeError(location, reader.error);
  return header;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Appends a JSON string.
static void appendString(std::string &text, const std::string &value) {
  text += nlohmann::json(value).dump(-1, ' ', /*ensure_ascii=*/false,
                                     nlohmann::json::error_handler_t::replace);
}

std::string SafetensorsHeader::text() const {
  std::string text = "{";
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto &[key, value] : metadata) {
      if (text.back() != '{')
        text += ',';
      appendString(text, key);
      text += ':';
      appendString(text, value);
    }
    text += '}';
  }
  for (const SafetensorsEntry &entry : entries) {
    if (text.size() > 1)
      text += ',';
    appendString(text, entry.name);
    text += ":{\"dtype\":\"" + safetensorsDTypeName(entry.dtype).str() + "\",\"shape\":[";
    for (size_t i = 0; i < entry.shape.size(); ++i)
      text += (i == 0 ? "" : ",") + std::to_string(entry.shape[i]);
    text += "],\"data_offsets\":[" + std::to_string(entry.begin) + "," + std::to_string(entry.end) +
            "]}";
  }
  return text + "}";
}
