#include "format/rename_map/rename_map_codec.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/base/zero_byte.h"

namespace reshard {
namespace {

using Json = nlohmann::json;

// Receives the parser's events; the first that has no place in a rename map ends the parsing.
class RenameReader : public Json::json_sax_t {
 public:
  explicit RenameReader(const std::string& path) : path_(path) {}

  const Status& status() const { return status_; }
  Renames TakeRenames() { return std::move(renames_); }

  bool null() override { return Other("null"); }
  bool boolean(bool) override { return Other("a boolean"); }
  bool number_integer(int64_t) override { return Other("a number"); }
  bool number_unsigned(uint64_t) override { return Other("a number"); }
  bool number_float(double, const std::string&) override { return Other("a number"); }
  bool binary(Json::binary_t&) override { return Other("binary"); }
  bool start_array(size_t) override { return Other("an array"); }
  bool end_array() override { return true; }

  bool string(std::string& value) override {
    if (depth_ == 0) return Other("a string");
    Map()[name_] = std::move(value);
    return true;
  }

  bool start_object(size_t) override {
    // A parameter called so has a string there.
    if (depth_ == 2 || (depth_ == 1 && name_ != kPatterns)) return Other("an object");
    if (depth_ == 1) has_patterns_ = true;
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }

  bool key(std::string& key) override {
    if (Map().contains(key) || (depth_ == 1 && key == kPatterns && has_patterns_)) {
      return Fail(fmt::format("the name {} occurs twice; remove one of them", Quote(key)));
    }
    name_ = std::move(key);
    return true;
  }

  bool parse_error(size_t position, const std::string& token, const Json::exception&) override {
    return Fail(
        fmt::format("expected JSON, found an error at byte {}, near {}", position, Quote(token)));
  }

 private:
  static constexpr std::string_view kPatterns = "patterns";

  std::map<std::string, std::string>& Map() {
    return depth_ == 2 ? renames_.patterns : renames_.names;
  }

  bool Other(std::string_view found) {
    return Fail(
        depth_ > 0
            ? fmt::format("the new name of {}: expected a string, found {}", Quote(name_), found)
            : fmt::format("expected an object {{\"old name\": \"new name\", ...}}, found {}",
                          found));
  }

  bool Fail(std::string_view what) {
    status_ = InvalidArgumentError(fmt::format("{}: {}", Escape(path_), what));
    return false;
  }

  const std::string& path_;
  Status status_;
  Renames renames_;
  int depth_ = 0;              // of the object that is open
  bool has_patterns_ = false;  // there was their object
  std::string name_;           // the last key
};

}  // namespace

Result<Renames> ParseRenameMap(const std::string& path, std::string_view bytes) {
  RESHARD_RETURN_IF_ERROR(CheckNoZeroByte(path, bytes));
  RenameReader reader(path);
  if (!Json::sax_parse(bytes.begin(), bytes.end(), &reader)) return reader.status();
  return reader.TakeRenames();
}

}  // namespace reshard
