// JsonReader: the base of all readers of JSON, which take a document piece by piece, without a tree
// and without recursion.
//
// Not for use from several threads at once.
#ifndef RESHARD_SRC_BASE_JSON_READER_H_
#define RESHARD_SRC_BASE_JSON_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"

namespace reshard {

// A value other than an object or a list.
struct JsonValue {
  enum class Kind : uint8_t { kNull, kBoolean, kUnsigned, kNegative, kFraction, kString };

  Kind kind = Kind::kNull;
  uint64_t number = 0;          // of kUnsigned; of kNegative, modulo 2^64; of kBoolean, 0 or 1
  double fraction = 0;          // of kFraction, which integers beyond 64 bits are, too
  std::string* text = nullptr;  // of kString, to be moved from; of kFraction, as the file has it

  // The integer, if it is one of 64 bits with a sign.
  std::optional<int64_t> Integer() const;
  // As messages show it: null, true, 12, "text".
  std::string Shown() const;
  // "a number"
  std::string_view KindName() const;
};

class JsonReader {
 public:
  virtual ~JsonReader() = default;

  // Reads one document.
  // Errors:
  //   the constructor's code for text that is not JSON
  //   kCorrupt for a zero byte, which JSON does not allow
  //   errors of the functions below
  Status Read(std::string_view bytes);
  // As above. `next` returns the bytes that come next, valid until its next call, and none at the
  // end. Errors of `next` go before all others. The first byte is at `offset`.
  using NextBytes = std::function<Result<std::string_view>()>;
  Status Read(uint64_t offset, NextBytes next);

 protected:
  // `where`, which has to stay, begins every message. More than `deepest` nested objects and lists
  // are an error.
  explicit JsonReader(std::string_view where, StatusCode code = StatusCode::kCorrupt,
                      size_t deepest = kLevels)
      : where_(where), code_(code), deepest_(deepest) {}

  // The content of a document. An error ends the reading.
  virtual Status OnValue(JsonValue& value) = 0;
  // An object, or a list, begins in the place at hand.
  virtual Status OnOpen(bool is_list) = 0;
  // It has ended, and the place at hand is its own again.
  virtual Status OnClose(bool is_list);
  // The key of the value that comes next.
  virtual Status OnKey(const std::string& key);
  // Returns the error for text that is not JSON, behind the byte at `offset`. It is the last byte
  // of `token`.
  virtual Status SyntaxError(uint64_t offset, std::string_view token, std::string_view why) const;

  // The objects and lists around the place at hand; the outermost has the depth 1. Those beyond
  // kLevels are only counted.
  static constexpr size_t kLevels = 64;
  struct Level {
    bool is_list = false;
    size_t element = 0;  // of a list: the place at hand
    std::string key;     // of an object: the last one
  };
  size_t depth() const { return depth_; }
  const Level& LevelAt(size_t depth) const { return levels_[depth - 1]; }
  const std::string& Key(size_t depth) const { return levels_[depth - 1].key; }
  bool InList() const { return depth_ > 0 && depth_ <= kLevels && LevelAt(depth_).is_list; }

  // In OnKey: passes over the value that comes next, however deep it is.
  void SkipValue() { skips_value_ = true; }

  // Behind the last byte that was read.
  uint64_t offset() const;

  // Returns an error "WHERE: text", with the code of this reader or another one.
  Status Error(std::string_view what) const { return Error(code_, what); }
  Status Error(StatusCode code, std::string_view what) const;

 private:
  class Events;
  class Iterator;

  bool Refill();

  const std::string_view where_;
  const StatusCode code_;
  const size_t deepest_;
  Status status_;

  NextBytes next_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  uint64_t end_offset_ = 0;

  std::vector<Level> levels_;  // those beyond depth_ keep their memory
  size_t depth_ = 0;
  bool skips_value_ = false;
  size_t skipped_ = 0;  // open objects and lists that are passed over
};

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_JSON_READER_H_
