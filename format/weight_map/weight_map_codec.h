// Weight maps: the indexes of folders of full tensors, MindSpore's param_name_map.json and Hugging
// Face's model.safetensors.index.json (SPEC.md).
//
// A WeightMap is a plain value; copies share the names. Functions without state; any thread.
#ifndef RESHARD_FORMAT_WEIGHT_MAP_WEIGHT_MAP_CODEC_H_
#define RESHARD_FORMAT_WEIGHT_MAP_WEIGHT_MAP_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/container/container.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"
#include "src/base/name_arena.h"

namespace reshard {

// The most bytes of an index: some 2,000,000 tensors.
inline constexpr uint64_t kMostWeightMapBytes = uint64_t{256} << 20;

// How the names of Hugging Face's indexes end: of safetensors files, and of PyTorch's.
inline constexpr std::string_view kSafetensorsIndexEnding = ".safetensors.index.json";
inline constexpr std::string_view kTorchIndexEnding = ".bin.index.json";

// Whether a file of this name is one of these indexes.
inline bool IsHuggingFaceIndex(std::string_view name) {
  return name.ends_with(kSafetensorsIndexEnding) || name.ends_with(kTorchIndexEnding);
}

// In which file a tensor is.
struct MappedWeight {
  std::string_view name;
  uint32_t file = 0;  // a place in a list of files
};

struct WeightMap {
  std::vector<MappedWeight> weights;  // ascending by name, each once
  std::vector<std::string> files;     // paths below the folder, in natural order, each once
  std::optional<uint64_t> total_size;
  NameArena names;  // that `weights` refer to

  // Returns the weight of this name, or null.
  const MappedWeight* Find(std::string_view name) const;
};

// Reads an index in blocks of up to 1 MiB, each once. Does not look for its files.
// Errors:
//   kCorrupt: breaks SPEC.md; names path, name, expected and found values
//   kResourceExhausted: a larger file
//   as `file` and `memory`, which is called now and then
Result<WeightMap> ParseWeightMap(const FileBytes& file, const MemoryCheck& memory = {});

// The statements of an index about all tensors together.
struct WeightTotals {
  uint64_t elements = 0;
  uint64_t bytes = 0;
};

// Return the index of `weights` in `files`: the first in the order in which they are given, the
// other by name. Errors: kMismatch for a name that is not UTF-8.
Result<std::string> EncodeParamNameMap(std::span<const MappedWeight> weights,
                                       std::span<const std::string> files,
                                       const WeightTotals& totals);
Result<std::string> EncodeHuggingFaceIndex(std::vector<MappedWeight> weights,
                                           std::span<const std::string> files,
                                           const WeightTotals& totals);

}  // namespace reshard

#endif  // RESHARD_FORMAT_WEIGHT_MAP_WEIGHT_MAP_CODEC_H_
