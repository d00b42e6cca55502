#include "src/base/json_reader.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostShown = 40;

}  // namespace

std::optional<int64_t> JsonValue::Integer() const {
  if (kind == Kind::kNegative) return static_cast<int64_t>(number);
  if (kind != Kind::kUnsigned || !std::in_range<int64_t>(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

std::string JsonValue::Shown() const {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBoolean:
      return number != 0 ? "true" : "false";
    case Kind::kUnsigned:
      return fmt::format("{}", number);
    case Kind::kNegative:
      return fmt::format("{}", static_cast<int64_t>(number));
    case Kind::kFraction:
      return Escape(*text);
    case Kind::kString:
      return Quote(*text);
  }
  return {};
}

std::string_view JsonValue::KindName() const {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBoolean:
      return "a boolean";
    case Kind::kString:
      return "a string";
    default:
      return "a number";
  }
}

// The reader's bytes as nlohmann's parser takes them, which copies the iterator.
class JsonReader::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  explicit Iterator(JsonReader* reader) : reader_(reader) {}
  reference operator*() const { return *reader_->at_; }
  Iterator& operator++() {
    ++reader_->at_;
    return *this;
  }
  // Only ever compared with the end.
  friend bool operator==(const Iterator& a, const Iterator& /*end*/) { return a.AtEnd(); }

 private:
  bool AtEnd() const { return reader_->at_ == reader_->end_ && !reader_->Refill(); }

  JsonReader* reader_;
};

// The callbacks of nlohmann's parser. A callback that returns false ends the parsing.
class JsonReader::Events {
 public:
  explicit Events(JsonReader& reader) : reader_(reader) {}

  // NOLINTBEGIN(readability-identifier-naming): the names that the parser calls
  bool null() { return Value({}); }
  bool boolean(bool value) { return Value({.kind = Kind::kBoolean, .number = value ? 1U : 0U}); }
  bool number_integer(int64_t value) {
    return Value({.kind = Kind::kNegative, .number = static_cast<uint64_t>(value)});
  }
  bool number_unsigned(uint64_t value) { return Value({.kind = Kind::kUnsigned, .number = value}); }
  bool number_float(double value, const std::string& text) {
    std::string copy = text;
    return Value({.kind = Kind::kFraction, .fraction = value, .text = &copy});
  }
  bool string(std::string& text) { return Value({.kind = Kind::kString, .text = &text}); }
  bool binary(Json::binary_t& /*value*/) { return false; }  // not in JSON text
  bool start_object(size_t /*members*/) { return Open(false); }
  bool start_array(size_t /*elements*/) { return Open(true); }
  bool end_object() { return Close(false); }
  bool end_array() { return Close(true); }
  bool key(std::string& key) {
    if (reader_.skipped_ > 0) return true;
    if (reader_.depth_ > kLevels) return Go(reader_.OnKey(key));
    std::string& kept = reader_.levels_[reader_.depth_ - 1].key;
    kept.swap(key);
    return Go(reader_.OnKey(kept));
  }
  bool parse_error(size_t position, const std::string& token, const Json::exception& error) {
    // The text after "[json.exception...] parse error at line 1, column 2: ".
    std::string_view why = error.what();
    if (const size_t colon = why.find(": "); colon != why.npos) why.remove_prefix(colon + 2);
    return Go(reader_.SyntaxError(begin_ + position, token, why));
  }
  // NOLINTEND(readability-identifier-naming)

 private:
  using Kind = JsonValue::Kind;

  bool Go(Status status) {
    if (status.ok()) return true;
    if (reader_.status_.ok()) reader_.status_ = std::move(status);
    return false;
  }

  // Whether the value that begins here is passed over.
  bool Skips() { return std::exchange(reader_.skips_value_, false) || reader_.skipped_ > 0; }

  // Goes on to the next element, if the place at hand is in a list.
  void Advance() {
    if (reader_.InList()) ++reader_.levels_[reader_.depth_ - 1].element;
  }

  bool Value(JsonValue value) {
    if (Skips()) return true;
    if (!Go(reader_.OnValue(value))) return false;
    Advance();
    return true;
  }

  bool Open(bool is_list) {
    if (Skips()) {
      ++reader_.skipped_;
      return true;
    }
    if (!Go(reader_.OnOpen(is_list))) return false;
    if (reader_.depth_ == reader_.deepest_) {
      return Go(
          reader_.Error(fmt::format("more than {} nested objects and arrays", reader_.deepest_)));
    }
    if (reader_.depth_ >= kLevels) {
      ++reader_.depth_;
      return true;
    }
    if (reader_.levels_.size() == reader_.depth_) reader_.levels_.emplace_back();
    Level& level = reader_.levels_[reader_.depth_++];
    level.is_list = is_list;
    level.element = 0;
    level.key.clear();
    return true;
  }

  bool Close(bool is_list) {
    if (reader_.skipped_ > 0) {
      --reader_.skipped_;
      return true;
    }
    --reader_.depth_;
    if (!Go(reader_.OnClose(is_list))) return false;
    Advance();
    return true;
  }

  JsonReader& reader_;
  const uint64_t begin_ = reader_.end_offset_;
};

Status JsonReader::OnClose(bool /*is_list*/) { return {}; }

Status JsonReader::OnKey(const std::string& /*key*/) { return {}; }

Status JsonReader::SyntaxError(uint64_t offset, std::string_view token,
                               std::string_view /*why*/) const {
  if (offset > end_offset_) {
    return Error(
        fmt::format("expected JSON, found its end at byte {}; is the file cut off?", end_offset_));
  }
  return Error(fmt::format("expected JSON, found an error at byte {}, near {}", offset,
                           Quote(token.substr(0, kMostShown))));
}

uint64_t JsonReader::offset() const { return end_offset_ - static_cast<uint64_t>(end_ - at_); }

Status JsonReader::Error(StatusCode code, std::string_view what) const {
  return {code, fmt::format("{}: {}", Escape(where_), what)};
}

Status JsonReader::Read(std::string_view bytes) {
  return Read(0, [bytes]() mutable -> Result<std::string_view> {
    return std::exchange(bytes, std::string_view());
  });
}

Status JsonReader::Read(uint64_t offset, NextBytes next) {
  next_ = std::move(next);
  end_offset_ = offset;
  Events events(*this);
  Json::sax_parse(Iterator(this), Iterator(this), &events);
  return std::move(status_);
}

// Returns whether there are more bytes.
bool JsonReader::Refill() {
  if (!status_.ok()) return false;
  const Result<std::string_view> bytes = next_();
  if (!bytes.ok()) {
    status_ = bytes.status();
    return false;
  }
  // nlohmann's parser would take it for the end.
  if (const size_t zero = bytes->find('\0'); zero != bytes->npos) {
    status_ = CorruptError(fmt::format("{}: expected JSON, found a zero byte at byte {}",
                                       Escape(where_), end_offset_ + zero + 1));
    return false;
  }
  at_ = bytes->data();
  end_ = at_ + bytes->size();
  end_offset_ += bytes->size();
  return at_ != end_;
}

}  // namespace reshard
