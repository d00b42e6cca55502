// FullFolder: finds a folder of full tensors: MindSpore's unified folder, Hugging Face's, or a
// lone safetensors file. It also tells which tensors of a file count.
//
// Plain values. Functions without state; any thread.
#ifndef RESHARD_SRC_FULL_FULL_FOLDER_H_
#define RESHARD_SRC_FULL_FULL_FOLDER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/safetensors/safetensors_container.h"
#include "format/weight_map/weight_map_codec.h"
#include "reshard/status.h"
#include "src/os/path_kind.h"

namespace reshard {

// The names that folders of full tensors are told by.
inline constexpr std::string_view kParamNameMap = "param_name_map.json";
inline constexpr std::string_view kHyperParamFile = "hyper_param.safetensors";
inline constexpr std::string_view kHuggingFaceIndex = "model.safetensors.index.json";
inline constexpr std::string_view kHuggingFaceFile = "model.safetensors";
inline constexpr std::string_view kTorchIndex = "pytorch_model.bin.index.json";

// The container of the files of such folders, unless PyTorch's index (.bin.index.json) names them.
inline constexpr const Container& kFullContainer = kSafetensorsContainer;

enum class FolderFamily { kUnified, kHuggingFace };

struct FullFolder {
  FolderFamily family = FolderFamily::kUnified;
  std::string index;  // its name; empty: a lone file
  std::string lone;   // the name of the lone file
  // The names of the folder's *.safetensors and *.ckpt, ascending; empty for a file by itself.
  std::vector<std::string> files = {};
  const Container* container = &kFullContainer;  // of its files
};

// Whether a file of this name in a folder is the index of full tensors.
bool IsFolderIndex(std::string_view name);

// As FindFullFolder, of a folder with these entries; `path` is for messages.
Result<std::optional<FullFolder>> FullFolderOf(const std::string& path,
                                               const std::vector<DirectoryEntry>& entries);

// Returns the kind of the folder `path` from the names in it. Returns no value if it has no index
// and not exactly one safetensors file. Errors: kMismatch if there are several indexes; as
// Storage::List.
Result<std::optional<FullFolder>> FindFullFolder(const std::string& path);

}  // namespace reshard

#endif  // RESHARD_SRC_FULL_FULL_FOLDER_H_
