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
constexpr std::string_view kWhereOfSet = "metadata reshard";

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
    return depth() <= kTensor && is_list == (depth() == kTensor) ? Status() : Other();
  }
  Status OnKey(const std::string& key) override {
    if (depth() == kTensor) {
      const bool is_first = key == "saved_offsets" && !std::exchange(has_offsets_, true);
      return is_first ? Status() : Other();
    }
    const auto [place, is_new] = found_.try_emplace(key);
    offsets_ = &place->second;
    has_offsets_ = false;
    return is_new ? Status() : Other();
  }

  Status Other() const {
    return Error(
        fmt::format("expected {{NAME: {{\"saved_offsets\": [numbers]}}}}, found something else{}",
                    depth() < kNames ? "" : " near " + Quote(Key(kNames))));
  }

  SavedOffsets found_;
  std::vector<int64_t>* offsets_ = nullptr;
  bool has_offsets_ = false;  // of the name at hand
};

class ShardSetReader final : public JsonReader {
 public:
  ShardSetReader() : JsonReader(kWhereOfSet) {}

  ShardSet TakeSet() { return std::move(set_); }

 private:
  // Depths.
  static constexpr size_t kMembers = 1;
  static constexpr size_t kNames = 2;
  static constexpr size_t kShape = 3;

  Status OnValue(JsonValue& value) override {
    const std::optional<int64_t> number = value.Integer();
    if (!number || *number < 0) return Other();
    if (depth() == kShape) {
      if (shape_->size() == kMaxDims) return Other();
      shape_->push_back(*number);
      return {};
    }
    if (depth() != kMembers || Key(kMembers) != "files") return Other();
    set_.files = static_cast<uint64_t>(*number);
    return {};
  }
  Status OnOpen(bool is_list) override {
    if (depth() == kMembers && Key(kMembers) == "files") return Other();
    return depth() <= kNames && is_list == (depth() == kNames) ? Status() : Other();
  }
  Status OnKey(const std::string& key) override {
    if (depth() == kNames) {
      const auto [place, is_new] = set_.full_shapes.try_emplace(key);
      shape_ = &place->second;
      return is_new ? Status() : Other();
    }
    const bool is_files = key == "files";
    if (!is_files && key != "global_shapes") {
      SkipValue();
      return {};
    }
    bool& seen = is_files ? has_files_ : has_shapes_;
    return std::exchange(seen, true) ? Other() : Status();
  }

  Status Other() const {
    return Error(fmt::format(
        "expected {{\"global_shapes\": {{NAME: [numbers]}}, \"files\": number}}, found something "
        "else{}",
        depth() < kMembers ? "" : " near " + Quote(Key(depth() < kNames ? kMembers : kNames))));
  }

  ShardSet set_;
  Shape* shape_ = nullptr;
  bool has_files_ = false;
  bool has_shapes_ = false;
};

}  // namespace

Result<ShardSet> ParseShardSet(std::string_view text) {
  ShardSetReader reader;
  RESHARD_RETURN_IF_ERROR(reader.Read(text));
  return reader.TakeSet();
}

Result<SavedOffsets> ParseShardingInfo(std::string_view text) {
  OffsetsReader reader;
  RESHARD_RETURN_IF_ERROR(reader.Read(text));
  return reader.TakeOffsets();
}

}  // namespace reshard
