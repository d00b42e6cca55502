#include "src/record/strict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/json_string.h"
#include "src/base/quote.h"

namespace reshard {
namespace {

constexpr unsigned char kFirstHigh = 0x80;
constexpr size_t kMostDigits = std::numeric_limits<uint64_t>::digits10 + 1;

// With two backslashes for each, and, on request, \xHH for each byte beyond ASCII.
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

const char* JsonKindName(JsonKind kind) {
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

// Follows the rows.
class RowReader final : public JsonReader {
 public:
  RowReader(const std::string& where, const JsonMember& document, void* object)
      : JsonReader(where), next_(&document), document_{object} {}

 private:
  using Kind = JsonValue::Kind;

  struct Open {
    const JsonMember* row;
    JsonPlace place;
    size_t members = 0;  // that have been taken, or may be missing
  };

  Status OnValue(JsonValue& value) override {
    const bool is_text = value.kind == Kind::kString;
    bool fits = false;
    switch (next_->kind) {
      case JsonKind::kUnsigned:
        fits = value.kind == Kind::kUnsigned;
        break;
      case JsonKind::kString:
        fits = is_text;
        break;
      case JsonKind::kStringOrNull:
        fits = is_text || value.kind == Kind::kNull;
        break;
      case JsonKind::kBytes:
        if (is_text) return TakeBytes(value);
        break;
      case JsonKind::kObject:
      case JsonKind::kArray:
        break;
    }
    return fits ? Take(value) : Unexpected(value.Shown());
  }

  Status OnOpen(bool is_list) override {
    if (next_->kind != (is_list ? JsonKind::kArray : JsonKind::kObject)) {
      return Unexpected(is_list ? "an array" : "an object");
    }
    open_.push_back({next_, open_.empty() ? document_ : next_->open(Place())});
    if (is_list) next_ = next_->parts.data();
    return {};
  }

  Status OnKey(const std::string& name) override {
    Open& object = open_.back();
    SkipMissing(object, name);
    if (object.members == object.row->parts.size()) {
      return Fail(fmt::format("unknown member {}", Quote(name)));
    }
    const JsonMember& expected = object.row->parts[object.members];
    if (name != expected.name.bare()) {
      return Fail(
          fmt::format("expected the member \"{}\", found {}", expected.name.bare(), Quote(name)));
    }
    next_ = &expected;
    return {};
  }

  Status OnClose(bool is_list) override {
    Open& open = open_.back();
    if (!is_list) SkipMissing(open, {});
    if (!is_list && open.members != open.row->parts.size()) {
      return Fail(
          fmt::format("the member \"{}\" is missing", open.row->parts[open.members].name.bare()));
    }
    next_ = open.row;
    open_.pop_back();
    return Check();
  }

  Status SyntaxError(uint64_t offset, std::string_view /*token*/,
                     std::string_view why) const override {
    return Error(fmt::format("no JSON at byte {}: {}", offset, Escape(why)));
  }

  // Passes over members that may be missing, up to the one called `name`.
  static void SkipMissing(Open& object, std::string_view name) {
    const std::span<const JsonMember> members = object.row->parts;
    size_t at = object.members;
    while (at < members.size() && members[at].may_miss && members[at].name.bare() != name) ++at;
    if (at == members.size() ? name.empty() : members[at].name.bare() == name) object.members = at;
  }

  JsonPlace Place() const { return open_.empty() ? document_ : open_.back().place; }

  Status Take(JsonValue& value) {
    if (const Status status = next_->take(value, Place().object); !status.ok()) {
      return Fail(OfValue(status.message()), status.code());
    }
    return Check();
  }

  Status TakeBytes(JsonValue value) {
    std::optional<std::string> bytes = BytesOfText(*value.text);
    if (!bytes) {
      return Fail(OfValue(fmt::format(
          "{} stands for no bytes: write a backslash as two, bytes that are not UTF-8 as \\xHH",
          Quote(*value.text))));
    }
    value.text = &*bytes;
    return Take(value);
  }

  // After the value that came.
  Status Check() {
    if (next_->fault != nullptr) {
      const JsonPlace place = Place();
      if (const auto fault = next_->fault(place.object, place.previous)) {
        return Fail(OfValue(*fault));
      }
    }
    if (open_.empty()) return {};
    ++open_.back().members;
    if (open_.back().row->kind == JsonKind::kArray) next_ = open_.back().row->parts.data();
    return {};
  }

  Status Unexpected(const std::string& found) const {
    return Fail(OfValue(fmt::format("expected {}, found {}", JsonKindName(next_->kind), found)));
  }

  // With the name of the next value. Objects and arrays are named by their members.
  std::string OfValue(const std::string& what) const {
    if (next_->name.empty() || next_->kind == JsonKind::kObject) return what;
    return fmt::format("\"{}\": {}", next_->name.bare(), what);
  }

  Status Fail(const std::string& what, StatusCode code = StatusCode::kCorrupt) const {
    std::string place;
    for (size_t i = 0; i < open_.size(); ++i) {
      const JsonMember& row = *open_[i].row;
      if (!row.name.empty()) place += fmt::format("\"{}\"", row.name.bare());
      if (row.kind == JsonKind::kArray) place += fmt::format("[{}]", LevelAt(i + 1).element);
      if (!place.empty() && !place.ends_with(' ')) place += ": ";
    }
    return Error(code, fmt::format("byte {}: {}{}", offset(), place, what));
  }

  const JsonMember* next_;  // of the value that comes next
  const JsonPlace document_;
  std::vector<Open> open_;  // as the levels
};

}  // namespace

std::string BytesAsJson(std::string_view bytes) {
  std::string text;
  AppendBytesAsJson(bytes, text);
  return text;
}

std::string BytesAsJsonOrNull(std::string_view bytes) {
  return bytes.empty() ? "null" : BytesAsJson(bytes);
}

void AppendBytesAsJson(std::string_view bytes, std::string& out) {
  const bool is_utf8 = IsUtf8(bytes);
  if (is_utf8 && bytes.find('\\') == std::string_view::npos) {
    AppendJsonString(bytes, out);
  } else {
    AppendJsonString(Escaped(bytes, !is_utf8), out);
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
  if (BytesAsJson(bytes) != JsonString(text)) return std::nullopt;
  return bytes;
}

Fault JsonText::Finish() {
  out_.resize(size_);
  return std::move(fault_);
}

void JsonText::Refuse(Fault fault) {
  if (!fault_) fault_ = std::move(fault);
}

void JsonText::Number(uint64_t number) {
  char* const to = Room(kMostDigits);
  size_ += static_cast<size_t>(std::to_chars(to, to + kMostDigits, number).ptr - to);
}

void JsonText::Bytes(std::string_view bytes) {
  if (IsPlainJson(bytes)) {
    Word(bytes);
  } else {
    Append(BytesAsJson(bytes));
  }
}

void JsonText::Word(std::string_view word) {
  char* const to = Room(word.size() + 2);
  to[0] = '"';
  std::copy(word.begin(), word.end(), to + 1);
  to[word.size() + 1] = '"';
  size_ += word.size() + 2;
}

void JsonText::Object(std::span<const JsonMember> members, const void* object,
                      const void* previous) {
  ++depth_;
  char before = '{';
  for (const JsonMember& member : members) {
    if (member.may_miss && !member.is_there(object)) continue;
    const std::string_view name = member.name.text();
    if (is_line_) {
      char* const to = Room(JsonName::kMostBytes);
      std::memcpy(to, name.data(), JsonName::kMostBytes);  // a fixed number is faster
      *to = before;
      size_ += name.size();
    } else {
      Append(before);
      NewLine();
      Append(name.substr(1));
      Append(' ');
    }
    before = ',';
    member.put(object, *this);
    if (member.fault != nullptr) Refuse(member.fault(object, previous));
  }
  if (before == '{') Append(before);
  Close('}', before == '{');
}

void JsonText::Grow(size_t bytes) {
  constexpr size_t kLine = 512;
  out_.resize(size_ + std::max(bytes, kLine));
}

void JsonText::Append(std::string_view piece) {
  std::copy(piece.begin(), piece.end(), Room(piece.size()));
  size_ += piece.size();
}

void JsonText::Close(char bracket, bool is_empty) {
  --depth_;
  if (!is_line_ && !is_empty) NewLine();
  Append(bracket);
}

void JsonText::NewLine() {
  Append('\n');
  for (size_t i = 0; i < depth_; ++i) Append("  ");
}

Status ReadStrictJson(std::string_view bytes, const std::string& where, const JsonMember& document,
                      void* object) {
  return RowReader(where, document, object).Read(bytes);
}

Fault AppendJson(const JsonMember& document, const void* object, JsonText::Style style,
                 std::string& out) {
  JsonText text(style, out);
  text.Object(document.parts, object, nullptr);
  if (document.fault != nullptr) text.Refuse(document.fault(object, nullptr));
  return text.Finish();
}

}  // namespace reshard
