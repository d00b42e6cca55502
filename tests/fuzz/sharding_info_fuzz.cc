// The metadata of shards, DCP_SHARDING_INFO and reshard, against a tree of the same JSON.

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/safetensors/sharding_info.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/unique_json.h"

namespace reshard {
namespace {

using Json = nlohmann::json;
using Offsets = std::map<std::string, std::vector<int64_t>>;

std::optional<int64_t> NumberOf(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  const bool fits =
      !value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
  if (!fits || value.get<int64_t>() < 0) return std::nullopt;
  return value.get<int64_t>();
}

std::optional<std::vector<int64_t>> ListOf(const Json& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Json& item : value) {
    const auto number = NumberOf(item);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<Offsets> OffsetsOf(const Json& tree) {
  if (!tree.is_object()) return std::nullopt;
  Offsets offsets;
  for (const auto& [name, entry] : tree.items()) {
    if (!entry.is_object() || entry.size() > 1) return std::nullopt;
    const auto list =
        entry.empty() ? std::vector<int64_t>() : ListOf(entry.value("saved_offsets", Json()));
    if (!list) return std::nullopt;
    offsets[name] = *list;
  }
  return offsets;
}

std::string FaultOfOffsets(std::string_view bytes, const std::optional<Json>& tree) {
  const auto found = ParseShardingInfo(bytes);
  if (!found.ok()) {
    std::string fault = RefusalFault(found.status());
    if (!fault.empty() || !tree) return fault;
    return OffsetsOf(*tree) ? "refused: " + found.status().message() : "";
  }
  if (!tree) return "";  // keys twice further inside, which one after the other are seen
  const auto expected = OffsetsOf(*tree);
  if (!expected) return "what is no list of offsets is taken";
  return *expected == *found ? "" : "other offsets";
}

std::string FaultOfSet(std::string_view bytes, const std::optional<Json>& tree) {
  const auto found = ParseShardSet(bytes);
  if (!found.ok()) {
    std::string fault = RefusalFault(found.status());
    if (!fault.empty() || !tree || !tree->is_object()) return fault;
    if (tree->contains("files") && !NumberOf(tree->at("files"))) return "";
    const Json shapes = tree->value("global_shapes", Json::object());
    if (!shapes.is_object()) return "";
    for (const auto& [name, shape] : shapes.items()) {
      const auto list = ListOf(shape);
      if (!list || list->size() > kMaxDims) return "";
    }
    return "refused: " + found.status().message();
  }
  if (!tree) return "";
  if (!tree->is_object()) return "what is no object is taken";
  const bool has_files = tree->contains("files");
  if (found->files.has_value() != has_files) return "another number of files";
  if (has_files && *found->files != tree->at("files")) return "another number of files";
  const Json shapes = tree->value("global_shapes", Json::object());
  if (!shapes.is_object() || shapes.size() != found->full_shapes.size()) return "other shapes";
  const auto is_stated = [&](const auto& entry) {
    return shapes.contains(entry.first) && shapes.at(entry.first) == Json(entry.second);
  };
  const bool same = std::all_of(found->full_shapes.begin(), found->full_shapes.end(), is_stated);
  return same ? "" : "other shapes";
}

}  // namespace

std::string FuzzShardingInfo(std::string_view bytes) {
  const auto tree = UniqueJson(bytes);
  const std::string fault = FaultOfOffsets(bytes, tree);
  return fault.empty() ? FaultOfSet(bytes, tree) : fault;
}

}  // namespace reshard
