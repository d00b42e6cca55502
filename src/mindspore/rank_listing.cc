#include "src/mindspore/rank_listing.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/paths.h"

namespace reshard {

std::optional<int64_t> ParseNumber(std::string_view digits) {
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  int64_t number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  return number;
}

std::string_view Stem(std::string_view name) {
  if (name.ends_with(kCheckpointExtension)) name.remove_suffix(kCheckpointExtension.size());
  return name;
}

std::optional<TrainingStep> StepOf(std::string_view stem) {
  const size_t underscore = stem.rfind('_');
  if (underscore == std::string_view::npos) return std::nullopt;
  const size_t dash = stem.rfind('-', underscore);
  if (dash == std::string_view::npos) return std::nullopt;
  const auto epoch = ParseNumber(stem.substr(dash + 1, underscore - dash - 1));
  const auto step = ParseNumber(stem.substr(underscore + 1));
  if (!epoch || !step) return std::nullopt;
  return TrainingStep{*epoch, *step};
}

std::string StepName(const std::optional<TrainingStep>& step) {
  return step ? fmt::format("-{}_{}", step->epoch, step->step) : "no step";
}

std::string PathIn(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

Status CheckNotSafetensors(const std::string& place, std::string_view file) {
  if (!file.ends_with(".safetensors")) return {};
  return UnsupportedError(fmt::format(
      "{}: expected .ckpt files only, found {}; safetensors files are not read: convert them "
      "first, for example with MindSpore's safetensors_to_ckpt",
      Escape(place), Quote(file)));
}

Result<RankListing> ListRankFolder(const std::string& base, int64_t rank,
                                   const std::string& folder) {
  RankListing listing{rank, folder, folder, {}, {}};
  const std::string path = PathIn(base, folder);
  RESHARD_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, ListDirectory(path));
  for (const DirectoryEntry& entry : entries) {
    const std::string_view file = entry.name;
    if (!entry.is_regular || file.starts_with('.')) continue;
    RESHARD_RETURN_IF_ERROR(CheckNotSafetensors(path, file));
    if (!file.ends_with(kCheckpointExtension)) continue;
    listing.last_by_name = entry.name;  // entries are sorted
    const std::string_view stem = Stem(file);
    if (stem.ends_with("_breakpoint")) continue;
    listing.candidates.push_back({entry.name, StepOf(stem)});
  }
  return listing;
}

}  // namespace reshard
