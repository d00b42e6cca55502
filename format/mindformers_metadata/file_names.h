// The names of the files of a MindFormers 2.0 checkpoint (SPEC.md).
//
// Pure; any thread.
#ifndef RESHARD_FORMAT_MINDFORMERS_METADATA_FILE_NAMES_H_
#define RESHARD_FORMAT_MINDFORMERS_METADATA_FILE_NAMES_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace reshard {

// Names the latest checkpoint, in the folder of all.
inline constexpr std::string_view kLatestIteration = "latest_checkpointed_iteration.txt";
// In the folder of a checkpoint.
inline constexpr std::string_view kMindFormersMetadataFile = "metadata.json";

struct MindFormersName {
  bool is_optimizer = false;
  uint64_t number = 0;  // of the file, from 0 on
  uint64_t count = 0;   // of files of this kind
};

// Parses [PREFIX-]model-NNNNNNN-MMMMMMM.safetensors, or opt in the place of model. Returns no value
// for another name.
std::optional<MindFormersName> ParseMindFormersName(std::string_view name);

// Returns the number that is the content of kLatestIteration; no value for other text.
std::optional<uint64_t> LatestIteration(std::string_view content);

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDFORMERS_METADATA_FILE_NAMES_H_
