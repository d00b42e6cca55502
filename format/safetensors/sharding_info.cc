#include "format/safetensors/sharding_info.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "src/base/json_reader.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

constexpr std::string_view kWhere = "metadata DCP_SHARDING_INFO";

class OffsetsReader final : public JsonReader {
 public:
  OffsetsReader() : JsonReader(kWhere) {}

  SavedOffsets TakeOffsets() { return std::move(found_); }

 private:
  // Depths.
  static constexpr size_t kNames = 1;
  static constexpr size_t kTensor = 2;
  static constexpr size_t kOffsets = 3;

  Status OnValue(JsonValue& value) override {
    const std::optional<int64_t> offset = value.Integer();
    if (depth() != kOffsets || !offset || *offset < 0) return Other();
    offsets_->push_back(*offset);
    return {};
  }
  Status OnOpen(bool is_list) override {
    return is_list == (depth() == kTensor) ? Status() : Other();
  }
  Status OnKey(const std::string& key) override {
    if (depth() == kTensor) return key == "saved_offsets" ? Status() : Other();
    const auto [place, is_new] = found_.try_emplace(key);
    offsets_ = &place->second;
    return is_new ? Status() : Other();
  }

  Status Other() const {
    return Error(
        fmt::format("expected {{NAME: {{\"saved_offsets\": [numbers]}}}}, found something else{}",
                    depth() < kNames ? "" : " near " + Quote(Key(kNames))));
  }

  SavedOffsets found_;
  std::vector<int64_t>* offsets_ = nullptr;
};

}  // namespace

Result<SavedOffsets> ParseShardingInfo(std::string_view text) {
  OffsetsReader reader;
  RESHARD_RETURN_IF_ERROR(reader.Read(text));
  return reader.TakeOffsets();
}

}  // namespace reshard
