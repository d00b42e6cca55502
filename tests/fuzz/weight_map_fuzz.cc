// Weight maps against a tree of the same JSON, and against themselves, written and read again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "format/container/container.h"
#include "format/weight_map/weight_map_codec.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/unique_json.h"

namespace reshard {
namespace {

Result<WeightMap> ParseIndex(std::string_view text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  const auto read = [bytes](uint64_t offset, std::span<std::byte> out) {
    const auto from = bytes.subspan(offset, out.size());
    std::copy(from.begin(), from.end(), out.begin());
    return Status();
  };
  const auto prefetch = [](ByteRange /*range*/) { return Status(); };
  return ParseWeightMap({"index.json", text.size(), read, prefetch, false});
}

bool LeavesTheFolder(const std::string& path) {
  return path.empty() || path.front() == '/' || ("/" + path + "/").find("/../") != path.npos;
}

}  // namespace

std::string FuzzWeightMap(std::string_view bytes) {
  const auto map = ParseIndex(bytes);
  if (!map.ok()) return RefusalFault(map.status(), "index.json");
  if (std::any_of(map->files.begin(), map->files.end(), LeavesTheFolder)) return "a path outside";
  if (const auto tree = UniqueJson(bytes)) {  // what is ignored may have names twice
    const bool flat = !tree->contains("weight_map") || tree->at("weight_map").is_string();
    const auto& expected = flat ? *tree : tree->at("weight_map");
    const size_t beside =
        flat && expected.contains("metadata") && !expected.at("metadata").is_string();
    if (map->weights.size() != expected.size() - beside) return "other names";
    for (const MappedWeight& weight : map->weights) {
      const auto file = expected.find(std::string(weight.name));
      if (file == expected.end() || *file != map->files[weight.file]) return "another file";
    }
  }
  const auto text = EncodeParamNameMap(map->weights, map->files, {0, map->total_size.value_or(0)});
  if (!text.ok()) return "cannot be written: " + text.status().message();
  const auto again = ParseIndex(*text);
  if (!again.ok()) return "cannot be read again: " + again.status().message();
  const auto equal = [](const MappedWeight& a, const MappedWeight& b) {
    return a.name == b.name && a.file == b.file;
  };
  const bool same =
      again->files == map->files && std::equal(again->weights.begin(), again->weights.end(),
                                               map->weights.begin(), map->weights.end(), equal);
  return same ? "" : "written, it is another one";
}

}  // namespace reshard
