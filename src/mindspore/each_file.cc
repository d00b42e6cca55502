#include "src/mindspore/each_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <regex>
#include <utility>

#include "src/base/natural_order.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/mindspore/rank_pattern.h"

namespace reshard {
namespace {

// A pattern for names. The library throws for invalid expressions, and for names that take too many
// steps.
class NamePattern {
 public:
  static Result<NamePattern> Make(const std::string& pattern) {
    NamePattern made;
    if (pattern.empty()) return made;
    try {
      made.expression_.emplace(pattern);
    } catch (const std::regex_error&) {
      return InvalidArgumentError(
          fmt::format("`files`: {} is not a regular expression", Quote(pattern)));
    }
    return made;
  }

  Result<bool> Takes(const std::string& name) const {
    if (!expression_) return true;
    try {
      return std::regex_search(name, *expression_);
    } catch (const std::regex_error&) {
      return InvalidArgumentError(
          fmt::format("`files`: the regular expression takes too many steps for {}; make it "
                      "simpler",
                      Escape(name)));
    }
  }

 private:
  std::optional<std::regex> expression_;
};

// Adds the files of `folder`, which is `relative` to the source, to those of their extensions.
Status AddFiles(const std::string& folder, const std::string& relative, const NamePattern& pattern,
                std::span<LoneFiles> found) {
  const Storage& storage = Storage::Of(folder);
  RESHARD_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, storage.List(folder));
  std::sort(entries.begin(), entries.end(), [](const DirectoryEntry& a, const DirectoryEntry& b) {
    return IsNaturallyBefore(a.name, b.name);
  });
  for (const DirectoryEntry& entry : entries) {
    if (!entry.is_regular || entry.name.starts_with('.')) continue;
    const auto taker = std::find_if(found.begin(), found.end(), [&](const LoneFiles& files) {
      return entry.name.ends_with(files.extension);
    });
    if (taker == found.end()) continue;
    RESHARD_RETURN_IF_ERROR(storage.KeepFromOutputs(PathIn(folder, entry.name)));
    RESHARD_ASSIGN_OR_RETURN(const bool taken, pattern.Takes(entry.name));
    if (!taken) continue;
    taker->files.push_back(
        {PathIn(folder, entry.name), relative.empty() ? entry.name : PathIn(relative, entry.name)});
  }
  return {};
}

Result<LoneFiles> OneFile(const std::string& path, std::span<const std::string_view> extensions,
                          const NamePattern& pattern) {
  std::string name = std::filesystem::path(path).filename().string();
  const auto extension =
      std::find_if(extensions.begin(), extensions.end(),
                   [&](const std::string_view ending) { return name.ends_with(ending); });
  if (extension == extensions.end()) {
    return InvalidArgumentError(fmt::format("{}: expected a file whose name ends in {}",
                                            Escape(path), fmt::join(extensions, " or ")));
  }
  RESHARD_ASSIGN_OR_RETURN(const bool taken, pattern.Takes(path));
  if (!taken) {
    return NotFoundError(
        fmt::format("{}: `files` does not match this path; leave it out", Escape(path)));
  }
  return LoneFiles{{{path, std::move(name)}}, *extension};
}

}  // namespace

Result<LoneFiles> FindEachFile(const std::string& path,
                               std::span<const std::string_view> extensions,
                               const std::string& pattern) {
  RESHARD_ASSIGN_OR_RETURN(const NamePattern names, NamePattern::Make(pattern));
  const Storage& storage = Storage::Of(path);
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, storage.KindOf(path));
  if (kind == PathKind::kFile) return OneFile(path, extensions, names);
  RESHARD_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, storage.List(path));
  std::erase_if(entries, [](const DirectoryEntry& entry) {
    return !entry.is_directory || !entry.name.starts_with("rank");
  });
  std::sort(entries.begin(), entries.end(), [](const DirectoryEntry& a, const DirectoryEntry& b) {
    return IsNaturallyBefore(a.name, b.name);
  });
  std::vector<LoneFiles> found;
  for (const std::string_view extension : extensions) found.push_back({{}, extension});
  for (const DirectoryEntry& entry : entries) {
    RESHARD_RETURN_IF_ERROR(AddFiles(PathIn(path, entry.name), entry.name, names, found));
  }
  if (entries.empty()) RESHARD_RETURN_IF_ERROR(AddFiles(path, "", names, found));
  for (LoneFiles& files : found) {
    if (!files.files.empty()) return std::move(files);
  }
  return NotFoundError(fmt::format(
      "{}: expected {} files{} in {}, found none", Escape(path), fmt::join(extensions, " or "),
      pattern.empty() ? "" : fmt::format(" with names that match `files` ({})", Quote(pattern)),
      entries.empty() ? "it or in folders that begin with \"rank\"" : "its rank folders"));
}

}  // namespace reshard
