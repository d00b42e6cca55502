#include "src/mindspore/spec_parser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/base/zero_byte.h"

namespace reshard {
namespace {

using Json = nlohmann::json;

// Checks what a tree of the file no longer shows: that it is JSON and where it stops being so, that
// no key comes twice in an object; and that it is not nested deeper than the schema.
class SyntaxCheck : public Json::json_sax_t {
 public:
  SyntaxCheck(const std::string& path, uint64_t size) : path_(path), size_(size) {}

  const Status& status() const { return status_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool start_object(size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool key(std::string& key) override {
    return open_.back().insert(key).second ||
           Fail(fmt::format("the key {} comes twice in one object", Quote(key)));
  }
  bool parse_error(size_t position, const std::string& token, const Json::exception&) override {
    return Fail(position > size_ ? fmt::format("expected JSON, found its end at byte {}", size_)
                                 : fmt::format("expected JSON, found an error at byte {}, near {}",
                                               position, Quote(token)));
  }

 private:
  static constexpr size_t kDeepest = 5;  // {"stages": [[{"cuts": []}]]}

  bool Open() {
    open_.emplace_back();
    return open_.size() <= kDeepest || Fail("is nested deeper than a specification is");
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  bool Fail(std::string_view what) {
    status_ = CorruptError(fmt::format("{}: {}", Escape(path_), what));
    return false;
  }

  const std::string& path_;
  const uint64_t size_;
  Status status_;
  std::vector<std::set<std::string>> open_;  // keys of the open objects; arrays have none
};

std::string Found(const Json& json) {
  if (json.is_object()) return "an object";
  if (json.is_array()) return fmt::format("a list of {}", json.size());
  if (json.is_string()) return Quote(json.get_ref<const std::string&>());
  return json.dump();
}

// Reads the tree of the file; places are as in "stages[0][2].cuts".
class SpecReader {
 public:
  explicit SpecReader(const std::string& path) { spec_.path = path; }

  Result<StrategySpec> Read(const Json& json) {
    RESHARD_RETURN_IF_ERROR(
        CheckObject(json, "", "devices", {"devices", "stage", "parameters", "stages"}));
    RESHARD_ASSIGN_OR_RETURN(spec_.devices, Number(json["devices"], "devices", 1, kMaxRanks));
    const int64_t most = kMaxRanks / spec_.devices;
    spec_.is_pipeline = json.contains("stages");
    if (json.contains("parameters") == spec_.is_pipeline) {
      return Bad("", "either \"parameters\" or \"stages\"", spec_.is_pipeline ? "both" : "neither");
    }
    if (!spec_.is_pipeline) {
      int64_t number = 0;
      if (json.contains("stage")) {
        RESHARD_ASSIGN_OR_RETURN(number, Number(json["stage"], "stage", 0, most - 1));
      }
      RESHARD_RETURN_IF_ERROR(ReadStage(json["parameters"], "parameters", number));
      return std::move(spec_);
    }
    if (json.contains("stage")) {
      return Bad("stage", "no such key beside \"stages\", which are 0, 1 and so on", "it");
    }
    const Json& stages = json["stages"];
    if (!stages.is_array() || stages.empty() || stages.size() > static_cast<size_t>(most)) {
      return Bad("stages", fmt::format("a list of 1 to {} lists of entries", most), Found(stages));
    }
    for (size_t i = 0; i < stages.size(); ++i) {
      RESHARD_RETURN_IF_ERROR(
          ReadStage(stages[i], fmt::format("stages[{}]", i), static_cast<int64_t>(i)));
    }
    return std::move(spec_);
  }

 private:
  Status ReadStage(const Json& entries, const std::string& place, int64_t number) {
    if (!entries.is_array() || entries.empty()) {
      return Bad(place, "a list of entries, one at least", Found(entries));
    }
    SpecStage stage{number, {}};
    std::set<std::string> patterns;
    for (size_t i = 0; i < entries.size(); ++i) {
      RESHARD_ASSIGN_OR_RETURN(SpecEntry entry,
                               ReadEntry(entries[i], fmt::format("{}[{}]", place, i)));
      if (!patterns.insert(entry.parameter).second) {
        return Bad(entry.place + ".parameter", "each name or pattern once in a stage",
                   Quote(entry.parameter) + " again");
      }
      stage.entries.push_back(std::move(entry));
    }
    spec_.stages.push_back(std::move(stage));
    return {};
  }

  Result<SpecEntry> ReadEntry(const Json& json, const std::string& place) const {
    RESHARD_RETURN_IF_ERROR(
        CheckObject(json, place, "parameter", {"parameter", "cuts", "optimizer_shards"}));
    SpecEntry entry;
    entry.place = place;
    const Json& parameter = json["parameter"];
    if (!parameter.is_string() || parameter.get_ref<const std::string&>().empty()) {
      return Bad(place + ".parameter", "the name of a parameter, or a pattern", Found(parameter));
    }
    entry.parameter = parameter.get<std::string>();
    if (json.contains("cuts")) {
      RESHARD_ASSIGN_OR_RETURN(entry.cuts, Cuts(json["cuts"], place + ".cuts"));
    }
    if (json.contains("optimizer_shards")) {
      RESHARD_ASSIGN_OR_RETURN(
          entry.optimizer_shards,
          Number(json["optimizer_shards"], place + ".optimizer_shards", 1, spec_.devices));
    }
    RESHARD_RETURN_IF_ERROR(CheckEntry(spec_, entry));
    return entry;
  }

  Result<std::vector<int64_t>> Cuts(const Json& json, const std::string& place) const {
    if (!json.is_array() || json.size() > kMaxDims) {
      return Bad(place,
                 fmt::format("a list of at most {} integers, one for each dimension", kMaxDims),
                 Found(json));
    }
    std::vector<int64_t> cuts;
    for (size_t d = 0; d < json.size(); ++d) {
      RESHARD_ASSIGN_OR_RETURN(const int64_t cut,
                               Number(json[d], fmt::format("{}[{}]", place, d), 1, spec_.devices));
      cuts.push_back(cut);
    }
    return cuts;
  }

  Result<int64_t> Number(const Json& json, const std::string& place, int64_t least,
                         int64_t most) const {
    const bool fits = json.is_number_unsigned() && std::in_range<int64_t>(json.get<uint64_t>()) &&
                      json.get<int64_t>() >= least && json.get<int64_t>() <= most;
    if (!fits) return Bad(place, fmt::format("an integer from {} to {}", least, most), Found(json));
    return json.get<int64_t>();
  }

  Status CheckObject(const Json& json, const std::string& place, const char* needed,
                     const std::vector<std::string>& known) const {
    if (!json.is_object()) return Bad(place, "an object", Found(json));
    if (!json.contains(needed)) {
      return Bad(place, fmt::format("the key \"{}\"", needed), "an object without it");
    }
    for (const auto& [key, value] : json.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      return Bad(place, fmt::format("no other keys than {}", fmt::join(known, ", ")), Quote(key));
    }
    return {};
  }

  Status Bad(const std::string& place, std::string_view expected, std::string_view found) const {
    return CorruptError(fmt::format("{}: {}{}expected {}, found {}", Escape(spec_.path), place,
                                    place.empty() ? "" : ": ", expected, found));
  }

  StrategySpec spec_;
};

}  // namespace

Result<StrategySpec> ParseStrategySpec(const std::string& path, std::string_view bytes) {
  RESHARD_RETURN_IF_ERROR(CheckNoZeroByte(path, bytes));
  SyntaxCheck check(path, bytes.size());
  if (!Json::sax_parse(bytes.begin(), bytes.end(), &check)) return check.status();
  return SpecReader(path).Read(Json::parse(bytes, nullptr, /*allow_exceptions=*/false));
}

}  // namespace reshard
