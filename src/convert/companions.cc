#include "src/convert/companions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/mindspore/rank_pattern.h"
#include "src/options/option_table.h"

namespace reshard {
namespace {

// The word of --dtype, as configurations have it, too.
std::string_view WordOf(DType dtype) {
  for (const auto& [word, meaning] : CastWords()) {
    if (meaning == dtype) return word;
  }
  return {};
}

}  // namespace

Result<std::string> CompanionFolder(const ConversionSpec& spec) {
  if (!spec.target.companions->empty()) return *spec.target.companions;
  const std::string& source = spec.source.path;
  if (source.empty() || IsRankPattern(source)) {
    return InvalidArgumentError(
        "`companions`: the source is not in one folder; name the folder that has config.json and "
        "the tokenizer");
  }
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, Storage::Of(source).KindOf(source));
  if (kind == PathKind::kDirectory) return source;
  const std::string folder = std::filesystem::path(source).parent_path().string();
  return folder.empty() ? std::string(".") : folder;
}

Result<std::vector<ChosenFile>> FindCompanions(const std::string& folder, SourceFiles& files) {
  const Storage& storage = Storage::Of(folder);
  RESHARD_RETURN_IF_ERROR(storage.CheckIsFolder(folder));
  RESHARD_ASSIGN_OR_RETURN(const PathLocation place, storage.Locate(folder));
  RESHARD_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, storage.List(folder));
  std::vector<ChosenFile> found;
  for (const DirectoryEntry& entry : entries) {
    if (std::find(std::begin(kCompanionNames), std::end(kCompanionNames), entry.name) ==
        std::end(kCompanionNames)) {
      continue;
    }
    const std::string path = PathIn(folder, entry.name);
    if (entry.is_link) {
      RESHARD_ASSIGN_OR_RETURN(const PathLocation target, storage.Locate(path));
      if (!target.From(place)) {
        return InvalidArgumentError(fmt::format(
            "{}: is a link to a file outside of {}, as in a cache of Hugging Face; copy the folder "
            "with `cp -rL`, and name the copy as `companions`",
            Escape(path), Escape(folder)));
      }
    }
    RESHARD_ASSIGN_OR_RETURN(const PathKind kind, storage.KindOf(path));
    if (kind != PathKind::kFile && kind != PathKind::kMissing) {
      return InvalidArgumentError(
          fmt::format("{}: `companions` copies files of this name, and it is none; move it away",
                      Escape(path)));
    }
    RESHARD_ASSIGN_OR_RETURN(const FileIdentity identity, storage.Pin(path));
    const FileId id = files.Add(path, identity);
    // Opens it, so that an empty file counts as used, too, and is compared at the end.
    RESHARD_RETURN_IF_ERROR(files.Identity(id).status());
    found.push_back({0, entry.name, id, identity});
  }
  if (!found.empty()) return found;
  return NotFoundError(fmt::format(
      "{}: has none of the files that `companions` copies: {}; name the folder that has them",
      Escape(folder), fmt::join(kCompanionNames, ", ")));
}

std::vector<ExtraFile> CopiesOf(std::span<const ChosenFile> companions) {
  std::vector<ExtraFile> copies;
  for (const ChosenFile& file : companions) {
    copies.push_back({.path = file.relative_path,
                      .kind = FileKind::kCompanion,
                      .copied = CopiedFile{file.id, file.identity.size()}});
  }
  return copies;
}

std::optional<Warning> CheckStatedDType(const std::string& folder,
                                        const std::vector<Selection::CastRule>& casts) {
  const auto general = std::find_if(casts.begin(), casts.end(), [](const auto& rule) {
    return rule.pattern.empty() || rule.pattern == "*";
  });
  if (general == casts.end() || !general->dtype) return std::nullopt;
  const std::optional<ModelConfig> config = ReadModelConfig(folder);
  if (!config || config->dtype_key.empty()) return std::nullopt;
  constexpr std::string_view kTorch = "torch.";
  std::string_view stated = config->dtype;
  if (stated.starts_with(kTorch)) stated.remove_prefix(kTorch.size());
  const std::string_view written = WordOf(*general->dtype);
  if (stated == written || stated == "auto") return std::nullopt;
  return Warning{
      WarningCode::kOtherDType,
      fmt::format("{}: {} is {}, but `casts` makes the weights {}; loaders that follow the file "
                  "cast them back. Change it in a copy of the folder, and name that as "
                  "`companions`",
                  Escape(PathIn(folder, kModelConfig)), config->dtype_key, Quote(config->dtype),
                  written)};
}

}  // namespace reshard
