#include "src/mindspore/rank_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "format/container_table/container_table.h"
#include "src/base/number_text.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"

namespace reshard {
namespace {

struct PatternParts {
  std::string base;  // the path before the name: "ckpt", "/", or ""
  std::string name;  // the first one with {rank}
  std::string rest;  // the path behind it, without the slash
};

PatternParts SplitPattern(std::string_view pattern) {
  while (pattern.ends_with('/')) pattern.remove_suffix(1);
  const size_t first = pattern.find(kRankPlaceholder);
  const size_t slash = pattern.rfind('/', first);
  const size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t end = std::min(pattern.find('/', first), pattern.size());
  PatternParts parts;
  parts.base = pattern.substr(0, begin);
  while (parts.base.size() > 1 && parts.base.ends_with('/')) parts.base.pop_back();
  parts.name = pattern.substr(begin, end - begin);
  parts.rest = pattern.substr(std::min(end + 1, pattern.size()));
  return parts;
}

// Returns the pattern with `digits` in the place of each {rank}.
std::string WithRank(std::string_view pattern, std::string_view digits) {
  std::string text;
  while (true) {
    const size_t next = pattern.find(kRankPlaceholder);
    text += pattern.substr(0, next);
    if (next == std::string_view::npos) return text;
    text += digits;
    pattern.remove_prefix(next + kRankPlaceholder.size());
  }
}

// Returns the digits that stand for {rank} in `name`, if it matches. How long they are follows from
// the lengths, as they are the same at each place.
std::optional<std::string_view> MatchRank(std::string_view pattern, std::string_view name) {
  const size_t literal = WithRank(pattern, "").size();
  const size_t places = (pattern.size() - literal) / kRankPlaceholder.size();
  if (name.size() <= literal || (name.size() - literal) % places != 0) return std::nullopt;
  const std::string_view digits =
      name.substr(pattern.find(kRankPlaceholder), (name.size() - literal) / places);
  if (!ParseNumber<int64_t>(digits) || WithRank(pattern, digits) != name) return std::nullopt;
  return digits;
}

Status CheckRest(const std::string& pattern, std::string_view rest) {
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view name = rest.substr(0, end);
    if (name == "." || name == "..") {
      return InvalidArgumentError(fmt::format("{}: a pattern may not have {} behind {}",
                                              Escape(pattern), name, kRankPlaceholder));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

struct PatternPaths {
  std::string base;
  std::map<int64_t, std::string> paths;  // relative to the base, by rank; some may lead nowhere
};

Result<PatternPaths> MatchPattern(const std::string& pattern) {
  PatternParts parts = SplitPattern(pattern);
  RESHARD_RETURN_IF_ERROR(CheckRest(pattern, parts.rest));
  const std::string folder = parts.base.empty() ? "." : parts.base;
  RESHARD_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries,
                           Storage::Of(folder).List(folder));
  PatternPaths found;
  found.base = std::move(parts.base);
  for (const DirectoryEntry& entry : entries) {
    const auto digits = MatchRank(parts.name, entry.name);
    if (!digits) continue;
    const std::string path = parts.rest.empty()
                                 ? entry.name
                                 : fmt::format("{}/{}", entry.name, WithRank(parts.rest, *digits));
    const auto [place, added] =
        found.paths.emplace(ParseNumber<int64_t>(*digits).value_or(0), path);
    if (!added) {
      return MismatchError(fmt::format("{}: {} and {} both name rank {}; remove one",
                                       Escape(pattern), Escape(place->second), Escape(path),
                                       place->first));
    }
  }
  if (found.paths.empty()) {
    return NotFoundError(fmt::format(
        "{}: expected files or folders of this pattern, {} being a number, found none in {}",
        Escape(pattern), kRankPlaceholder, Escape(folder)));
  }
  return found;
}

// The entries at the path of a rank.
Result<RankListing> ListPlace(const std::string& base, int64_t rank, const std::string& relative) {
  const std::string path = PathIn(base, relative);
  const Storage& storage = Storage::Of(path);
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, storage.KindOf(path));
  if (kind == PathKind::kDirectory) return ListRankFolder(base, rank, relative);
  const size_t slash = relative.rfind('/');
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  RankListing listing{rank, relative, relative.substr(0, begin), {}, {}, {}};
  if (kind == PathKind::kMissing) return listing;
  RESHARD_RETURN_IF_ERROR(storage.KeepFromOutputs(path));
  // If it is not a file at all, opening it reports that.
  listing.candidates.push_back({relative.substr(begin), StepOf(Stem(relative))});
  return listing;
}

}  // namespace

std::string_view Stem(std::string_view name) {
  name.remove_suffix(CheckpointExtension(name).size());
  return name;
}

std::optional<TrainingStep> StepOf(std::string_view stem) {
  if (stem.ends_with(kBreakpointEnd)) stem.remove_suffix(kBreakpointEnd.size());
  const size_t underscore = stem.rfind('_');
  if (underscore == std::string_view::npos) return std::nullopt;
  const size_t dash = stem.rfind('-', underscore);
  if (dash == std::string_view::npos) return std::nullopt;
  const auto epoch = ParseNumber<int64_t>(stem.substr(dash + 1, underscore - dash - 1));
  const auto step = ParseNumber<int64_t>(stem.substr(underscore + 1));
  if (!epoch || !step) return std::nullopt;
  return TrainingStep{*epoch, *step};
}

std::string StepName(const std::optional<TrainingStep>& step) {
  return step ? '-' + StepText(step) : "no step";
}

std::string StepText(const std::optional<TrainingStep>& step) {
  return step ? fmt::format("{}_{}", step->epoch, step->step) : "";
}

RankListing CheckpointsAmong(const std::vector<std::string>& names, int64_t rank,
                             const std::string& folder) {
  RankListing listing{rank, folder, folder, {}, {}, {}};
  for (const std::string& name : names) {
    if (name.starts_with('.') || ContainerNamed(name) == nullptr) continue;
    if (name.ends_with(".ckpt")) listing.last_by_name = name;  // they are sorted
    const std::string_view stem = Stem(name);
    if (stem.ends_with(kBreakpointEnd)) {
      listing.breakpoints.push_back({name, StepOf(stem)});
      continue;
    }
    listing.candidates.push_back({name, StepOf(stem)});
  }
  return listing;
}

Result<RankListing> ListRankFolder(const std::string& base, int64_t rank,
                                   const std::string& folder) {
  const std::string path = PathIn(base, folder);
  const Storage& storage = Storage::Of(path);
  RESHARD_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, storage.List(path));
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : entries) {
    if (entry.is_regular) names.push_back(entry.name);
  }
  RankListing listing = CheckpointsAmong(names, rank, folder);
  for (const auto* candidates : {&listing.candidates, &listing.breakpoints}) {
    for (const Candidate& candidate : *candidates) {
      RESHARD_RETURN_IF_ERROR(storage.KeepFromOutputs(PathIn(path, candidate.name)));
    }
  }
  return listing;
}

bool IsRankPattern(std::string_view path) {
  return path.find(kRankPlaceholder) != std::string_view::npos;
}

Result<PatternListing> ListPattern(const std::string& pattern) {
  RESHARD_ASSIGN_OR_RETURN(const PatternPaths found, MatchPattern(pattern));
  PatternListing listing{found.base, {}};
  listing.ranks.reserve(found.paths.size());
  for (const auto& [rank, path] : found.paths) {
    RESHARD_ASSIGN_OR_RETURN(RankListing place, ListPlace(found.base, rank, path));
    listing.ranks.push_back(std::move(place));
  }
  return listing;
}

std::string GuessPattern(const std::vector<DirectoryEntry>& entries) {
  constexpr std::string_view kDigits = "0123456789";
  std::map<std::string, size_t> names;
  for (const DirectoryEntry& entry : entries) {
    const std::string_view name = entry.name;
    if (!entry.is_directory && !(entry.is_regular && !CheckpointExtension(name).empty())) continue;
    for (size_t begin = name.find_first_of(kDigits); begin != std::string_view::npos;) {
      const size_t end = std::min(name.find_first_not_of(kDigits, begin), name.size());
      ++names[fmt::format("{}{}{}", name.substr(0, begin), kRankPlaceholder, name.substr(end))];
      begin = name.find_first_of(kDigits, end);
    }
  }
  const auto most = std::max_element(
      names.begin(), names.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == names.end() || most->second < 2 ? "" : most->first;
}

}  // namespace reshard
