#include "src/sharded/unread_families.h"

#include <fmt/format.h>

#include <string_view>

#include "format/dcp/dcp_names.h"
#include "format/weight_map/weight_map_codec.h"
#include "src/base/number_text.h"
#include "src/base/quote.h"
#include "src/io/storage.h"
#include "src/sharded/sharded_folder.h"

namespace reshard {
namespace {

constexpr std::string_view kMegatronFile = "model_optim_rng.pt";
constexpr std::string_view kZeroScript = "zero_to_fp32.py";
constexpr std::string_view kTorchCheckpointing = "metadata.pkl";

// A file of DeepSpeed that has flat parts of all tensors, or of ZeRO's stage 3.
bool IsZeroFile(std::string_view name) {
  return name.find("zero_pp_rank_") != std::string_view::npos &&
         (name.ends_with("_optim_states.pt") || name.ends_with("_model_states.pt"));
}

// The folder of a rank of Megatron: mp_rank_TT, mp_rank_TT_PPP, and one number more with experts.
bool IsMegatronRank(std::string_view name) {
  constexpr std::string_view kBegin = "mp_rank_";
  if (!name.starts_with(kBegin)) return false;
  name.remove_prefix(kBegin.size());
  return !name.empty() && HasOnlyDigits(name.substr(0, name.find('_')));
}

// A file that torch_checkpointing writes for each rank.
bool IsOfTorchCheckpointing(std::string_view name) {
  constexpr std::string_view kBegin = "model_";
  constexpr std::string_view kEnd = ".safetensors";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return false;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(kEnd.size());
  return HasOnlyDigits(name);
}

Status NotReadZero(const std::string& what) {
  return UnsupportedError(
      fmt::format("{}; their parts of tensors are flat, and are not read; run DeepSpeed's "
                  "zero_to_fp32.py, which "
                  "lies in the folder of the checkpoint, and give its output",
                  what));
}

Status NotReadTorchCheckpointing(const std::string& path) {
  return UnsupportedError(fmt::format(
      "{}: is of a checkpoint of torch_checkpointing, whose form is not read; load it with "
      "torch_checkpointing, and save it with torch.distributed.checkpoint or as one file",
      Escape(path)));
}

Status NotReadMegatron(const std::string& path, const std::string& first, const FirstFew& ranks) {
  return UnsupportedError(fmt::format(
      "{}: holds a folder for each rank of Megatron ({}); its files do not say how tensors are "
      "cut. "
      "Load it with Megatron and save it in its format torch_dist, or give the path of a rank's "
      "file, such as {}, to take that as it is",
      Escape(path), ranks.Joined(),
      Escape(PathIn(PathIn(path, first), std::string(kMegatronFile)))));
}

}  // namespace

Status CheckFamilyIsRead(const std::string& path, const std::vector<DirectoryEntry>& entries) {
  FirstFew zero;
  FirstFew megatron;
  std::string first;  // of Megatron's
  bool is_torch_checkpointing = false;
  bool has_script = false;
  bool has_ranks = false;  // of torch_checkpointing
  bool has_index = false;
  bool has_read = false;
  for (const DirectoryEntry& entry : entries) {
    const std::string& name = entry.name;
    has_read = has_read || IsWholeOrOfRanks(entry);
    if (entry.is_directory) {
      if (!IsMegatronRank(name)) continue;
      if (megatron.count() == 0 || name < first) first = name;
      megatron.Add(Escape(name));
      continue;
    }
    if (IsZeroFile(name)) zero.Add(Escape(name));
    is_torch_checkpointing = is_torch_checkpointing || name == kTorchCheckpointing;
    has_script = has_script || name == kZeroScript;
    has_ranks = has_ranks || IsOfTorchCheckpointing(name);
    has_index = has_index || IsHuggingFaceIndex(name);
  }
  if (is_torch_checkpointing && !has_index && (has_ranks || !has_read)) {
    return NotReadTorchCheckpointing(PathIn(path, std::string(kTorchCheckpointing)));
  }
  if (has_read) return {};
  if (zero.count() > 0) {
    return NotReadZero(fmt::format("{}: holds files of the ranks of DeepSpeed's ZeRO ({})",
                                   Escape(path), zero.Joined()));
  }
  if (has_script) {
    return NotReadZero(
        fmt::format("{}: holds a checkpoint of DeepSpeed ({}) with files of its ranks",
                    Escape(path), kZeroScript));
  }
  if (megatron.count() > 0) return NotReadMegatron(path, first, megatron);
  return {};
}

Status CheckFileStandsAlone(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name.ends_with(kDcpExtension) || name == kDcpMetadataFile || DcpMetadataRank(name)) {
    return MismatchError(
        fmt::format("{}: is one file of a PyTorch DCP checkpoint; give the folder that it lies in",
                    Escape(path)));
  }
  if (name == kTorchCheckpointing) return NotReadTorchCheckpointing(path);
  if (IsZeroFile(name)) {
    return NotReadZero(
        fmt::format("{}: is one of the files of the ranks of DeepSpeed's ZeRO", Escape(path)));
  }
  return {};
}

}  // namespace reshard
