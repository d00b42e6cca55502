#include "src/record/strict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/quote.h"

namespace reshard {
namespace {

using nlohmann::json;

constexpr unsigned char kFirstHigh = 0x80;
constexpr char kFirstPlain = ' ';
constexpr char kLastPlain = '~';

// With two backslashes for each, and, where asked for, \xHH for each byte beyond ASCII.
std::string Escaped(std::string_view bytes, bool escape_high) {
  std::string text;
  text.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      text += "\\\\";
    } else if (escape_high && byte >= kFirstHigh) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text += c;
    }
  }
  return text;
}

// Whether JSON writes these bytes as they are, which is so for nearly all names.
bool IsPlain(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    return c >= kFirstPlain && c <= kLastPlain && c != '"' && c != '\\';
  });
}

using nlohmann::json;

// The document's bytes; tells how far the lexer, which copies its iterator, has come.
class Bytes {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Bytes(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  Bytes& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  friend bool operator==(const Bytes& a, const Bytes& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  const char** reached_;
};

const char* NameOf(JsonKind kind) {
  switch (kind) {
    case JsonKind::kUnsigned:
      return "an unsigned integer below 2^64";
    case JsonKind::kString:
    case JsonKind::kBytes:
      return "a string";
    case JsonKind::kStringOrNull:
      return "a string or null";
    case JsonKind::kObject:
      return "an object";
    case JsonKind::kArray:
      return "an array";
  }
  return "";
}

// Follows the shape while nlohmann's parser calls it; returning false stops the parser.
class ShapeReader {
 public:
  ShapeReader(const char* begin, const std::string& where, const JsonShape& shape,
              const JsonSink& sink)
      : begin_(begin), reached_(begin), where_(where), next_(&shape), sink_(sink) {}

  const char** reached() { return &reached_; }
  Status TakeStatus() { return std::move(status_); }

  // NOLINTBEGIN(readability-identifier-naming): the names that the parser calls
  bool null() {
    if (next_->kind != JsonKind::kStringOrNull) return Unexpected("null");
    return Give({});
  }
  bool boolean(bool value) { return Unexpected(value ? "true" : "false"); }
  bool number_integer(int64_t value) { return Unexpected(fmt::format("{}", value)); }
  bool number_float(double /*value*/, const std::string& text) { return Unexpected(Escape(text)); }
  bool number_unsigned(uint64_t value) {
    if (next_->kind != JsonKind::kUnsigned) return Unexpected(fmt::format("{}", value));
    return Give({.number = value});
  }
  bool string(std::string& text) {
    if (next_->kind == JsonKind::kBytes) return GiveBytes(text);
    if (next_->kind != JsonKind::kString && next_->kind != JsonKind::kStringOrNull) {
      return Unexpected(Quote(text));
    }
    return Give({.text = &text});
  }
  bool binary(std::vector<uint8_t>& /*value*/) { return Unexpected("binary"); }
  bool start_object(size_t /*members*/) { return Enter(JsonKind::kObject, "an object"); }
  bool key(const std::string& name) {
    Open& object = open_.back();
    SkipMissing(object, name);
    if (object.done == object.shape->parts.size()) {
      return Fail(fmt::format("unknown member {}", Quote(name)));
    }
    const JsonShape& expected = object.shape->parts[object.done];
    if (name != expected.name) {
      return Fail(fmt::format("expected the member \"{}\", found {}", expected.name, Quote(name)));
    }
    next_ = &expected;
    return true;
  }
  bool end_object() {
    Open object = open_.back();
    SkipMissing(object, {});
    if (object.done != object.shape->parts.size()) {
      return Fail(
          fmt::format("the member \"{}\" is missing", object.shape->parts[object.done].name));
    }
    open_.pop_back();
    next_ = object.shape;
    return Give({});
  }
  bool start_array(size_t /*elements*/) { return Enter(JsonKind::kArray, "an array"); }
  bool end_array() {
    open_.pop_back();
    Advance();
    return true;
  }
  bool parse_error(size_t position, const std::string& /*token*/, const json::exception& error) {
    // What follows "[json.exception...] parse error at line 1, column 2: ".
    std::string_view what = error.what();
    if (const size_t colon = what.find(": "); colon != std::string_view::npos) {
      what.remove_prefix(colon + 2);
    }
    status_ = CorruptError(
        fmt::format("{}: no JSON at byte {}: {}", Escape(where_), position, Escape(what)));
    return false;
  }
  // NOLINTEND(readability-identifier-naming)

 private:
  struct Open {
    const JsonShape* shape;
    size_t done = 0;  // members or elements
  };

  // Passes over members that may be missing, up to the one called `name`.
  static void SkipMissing(Open& object, std::string_view name) {
    const std::span<const JsonShape> members = object.shape->parts;
    size_t at = object.done;
    while (at < members.size() && members[at].may_miss && members[at].name != name) ++at;
    if (at == members.size() ? name.empty() : members[at].name == name) object.done = at;
  }

  bool Enter(JsonKind kind, const char* found) {
    if (next_->kind != kind) return Unexpected(found);
    open_.push_back({next_});
    if (kind == JsonKind::kArray) next_ = next_->parts.data();
    return true;
  }

  bool Give(const JsonValue& value) {
    if (const Status status = sink_(next_->field, value); !status.ok()) {
      return Fail(OfValue(status.message()), status.code());
    }
    Advance();
    return true;
  }

  bool GiveBytes(const std::string& text) {
    std::optional<std::string> bytes = BytesOfText(text);
    if (!bytes) {
      return Fail(OfValue(fmt::format(
          "{} stands for no bytes: write a backslash as two, bytes that are not UTF-8 as \\xHH",
          Quote(text))));
    }
    return Give({.text = &*bytes});
  }

  void Advance() {
    if (open_.empty()) return;
    ++open_.back().done;
    if (open_.back().shape->kind == JsonKind::kArray) next_ = open_.back().shape->parts.data();
  }

  bool Unexpected(const std::string& found) {
    return Fail(OfValue(fmt::format("expected {}, found {}", NameOf(next_->kind), found)));
  }

  // With the name of the value that comes next; objects and arrays are named by what is in them.
  std::string OfValue(const std::string& what) const {
    if (next_->name == nullptr || next_->kind == JsonKind::kObject) return what;
    return fmt::format("\"{}\": {}", next_->name, what);
  }

  bool Fail(const std::string& what, StatusCode code = StatusCode::kCorrupt) {
    std::string place;
    for (const Open& open : open_) {
      if (open.shape->name != nullptr) place += fmt::format("\"{}\"", open.shape->name);
      if (open.shape->kind == JsonKind::kArray) place += fmt::format("[{}]", open.done);
      if (!place.empty() && !place.ends_with(' ')) place += ": ";
    }
    status_ = Status(
        code, fmt::format("{}: byte {}: {}{}", Escape(where_), reached_ - begin_, place, what));
    return false;
  }

  const char* begin_;
  const char* reached_;
  const std::string& where_;
  const JsonShape* next_;  // of the value that comes next
  const JsonSink& sink_;
  std::vector<Open> open_;  // the objects and arrays around it, outermost first
  Status status_;
};

}  // namespace

std::string BytesAsJson(std::string_view bytes) {
  std::string text;
  AppendBytesAsJson(bytes, text);
  return text;
}

void AppendBytesAsJson(std::string_view bytes, std::string& out) {
  if (IsPlain(bytes)) {
    out += '"';
    out += bytes;
    out += '"';
    return;
  }
  try {
    out += json(Escaped(bytes, false)).dump();
  } catch (const json::type_error&) {  // not UTF-8
    out += json(Escaped(bytes, true)).dump();
  }
}

std::optional<std::string> BytesOfText(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return std::string(text);
  constexpr size_t kHexBytes = 4;  // of \xHH
  std::string bytes;
  for (std::string_view rest = text; !rest.empty();) {
    if (rest[0] != '\\') {
      bytes += rest[0];
      rest.remove_prefix(1);
    } else if (rest.starts_with("\\\\")) {
      bytes += '\\';
      rest.remove_prefix(2);
    } else {
      const char* const end = rest.data() + std::min(rest.size(), kHexBytes);
      unsigned char byte = 0;
      if (!rest.starts_with("\\x") ||
          std::from_chars(rest.data() + 2, end, byte, 16).ptr != rest.data() + kHexBytes) {
        return std::nullopt;
      }
      bytes += static_cast<char>(byte);
      rest.remove_prefix(kHexBytes);
    }
  }
  // Other bytes may not come like this: each comes in one way only.
  if (BytesAsJson(bytes) != json(text).dump()) return std::nullopt;
  return bytes;
}

Status ReadStrictJson(std::string_view bytes, const std::string& where, const JsonShape& shape,
                      const JsonSink& sink) {
  ShapeReader reader(bytes.data(), where, shape, sink);
  const char* const end = bytes.data() + bytes.size();
  json::sax_parse(Bytes(bytes.data(), reader.reached()), Bytes(end, reader.reached()), &reader);
  return reader.TakeStatus();
}

}  // namespace reshard
