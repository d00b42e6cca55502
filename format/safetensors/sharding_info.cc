#include "format/safetensors/sharding_info.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/quote.h"

namespace reshard {
namespace {

using json = nlohmann::json;

// Takes the tokens of the text. A function that returns false ends the parsing.
class OffsetTokens {
 public:
  // What nlohmann's parser calls.
  bool null() { return Other(); }
  bool boolean(bool /*value*/) { return Other(); }
  bool number_integer(int64_t /*value*/) { return Other(); }
  bool number_float(double /*value*/, const std::string& /*text*/) { return Other(); }
  bool binary(json::binary_t& /*value*/) { return Other(); }
  bool string(std::string& /*value*/) { return Other(); }
  bool number_unsigned(uint64_t value) {
    if (!in_offsets_ || depth_ != kOffsets || value > kMost) return Other();
    offsets_->push_back(static_cast<int64_t>(value));
    return true;
  }
  bool start_object(size_t /*elements*/) {
    ++depth_;
    return depth_ <= kTensor || Other();
  }
  bool end_object() {
    --depth_;
    return true;
  }
  bool start_array(size_t /*elements*/) {
    ++depth_;
    return (in_offsets_ && depth_ == kOffsets) || Other();
  }
  bool end_array() {
    --depth_;
    in_offsets_ = false;
    return true;
  }
  bool key(std::string& name) {
    if (depth_ == kNames) {
      const auto [place, is_new] = found_.try_emplace(name);
      offsets_ = &place->second;
      return is_new || Other();
    }
    in_offsets_ = name == "saved_offsets";
    return in_offsets_ || Other();
  }
  bool parse_error(size_t position, const std::string& /*token*/, const json::exception& /*e*/) {
    is_json_ = false;
    place_ = position;
    return false;
  }

  Result<SavedOffsets> Finish(bool parsed) && {
    if (parsed && depth_ == 0) return std::move(found_);
    if (!is_json_) {
      return CorruptError(
          fmt::format("metadata {}: expected JSON, which ends at byte {}", kShardingInfo, place_));
    }
    return CorruptError(fmt::format(
        "metadata {}: expected {{NAME: {{\"saved_offsets\": [numbers]}}}}, found something else{}",
        kShardingInfo, found_.empty() ? "" : " near " + Quote(found_.rbegin()->first)));
  }

 private:
  // Depths of brackets.
  static constexpr int kNames = 1;
  static constexpr int kTensor = 2;
  static constexpr int kOffsets = 3;
  static constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

  static bool Other() { return false; }

  SavedOffsets found_;
  std::vector<int64_t>* offsets_ = nullptr;
  bool in_offsets_ = false;
  bool is_json_ = true;
  size_t place_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<SavedOffsets> ParseShardingInfo(std::string_view text) {
  OffsetTokens tokens;
  const bool parsed = json::sax_parse(text.begin(), text.end(), &tokens);
  return std::move(tokens).Finish(parsed);
}

}  // namespace reshard
