#include "src/mindspore/rank_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "format/container_table/container_table.h"
#include "src/base/number_text.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/mindspore/other_folder.h"
#include "src/mindspore/output_check.h"
#include "src/mindspore/rank_pattern.h"

namespace reshard {
namespace {

// Returns a guess at the meaning of a folder without rank folders.
std::string Hint(const std::string& folder, const std::vector<DirectoryEntry>& entries) {
  const std::string guess = GuessPattern(entries);
  if (!guess.empty()) {
    return fmt::format("; if its ranks have other names, give a pattern: {}",
                       Escape(PathIn(folder, guess)));
  }
  const bool has_files = std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.is_regular && !CheckpointExtension(entry.name).empty();
  });
  return fmt::format("; for other names give a pattern, such as {}{}",
                     Escape(PathIn(folder, "node{rank}")),
                     has_files ? ", or the path of one file with full tensors" : "");
}

// Returns the rank folders of `folder` by rank.
Result<std::vector<RankListing>> ListRanks(const std::string& folder) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries,
                           Storage::Of(folder).List(folder));
  std::map<int64_t, std::string> names;
  for (const DirectoryEntry& entry : entries) {
    const auto rank = entry.is_directory ? RankOfFolder(entry.name) : std::nullopt;
    if (!rank) continue;
    const auto [place, added] = names.emplace(*rank, entry.name);
    if (!added) {
      return MismatchError(fmt::format("{}: {} and {} both name rank {}; remove one",
                                       Escape(folder), place->second, entry.name, *rank));
    }
  }
  if (names.empty()) {
    if (const std::string other = DescribeOtherFolder(entries); !other.empty()) {
      return NotFoundError(fmt::format("{}: holds {}", Escape(folder), other));
    }
    return NotFoundError(
        fmt::format("{}: expected folders rank_N with .ckpt or .safetensors files, found none{}",
                    Escape(folder), Hint(folder, entries)));
  }
  std::vector<RankListing> ranks;
  ranks.reserve(names.size());
  for (const auto& [rank, name] : names) {
    RESHARD_ASSIGN_OR_RETURN(RankListing listing, ListRankFolder(folder, rank, name));
    ranks.push_back(std::move(listing));
  }
  return ranks;
}

// Returns the greatest step that all rank folders with files have, if there is one.
std::optional<TrainingStep> CommonStep(const std::vector<RankListing>& ranks) {
  std::map<TrainingStep, size_t, std::greater<>> folders;
  size_t with_files = 0;
  for (const RankListing& rank : ranks) {
    if (!rank.candidates.empty()) ++with_files;
    std::vector<TrainingStep> steps;
    for (const Candidate& candidate : rank.candidates) {
      if (candidate.step) steps.push_back(*candidate.step);
    }
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    for (const TrainingStep& step : steps) ++folders[step];
  }
  for (const auto& [step, count] : folders) {
    if (count == with_files) return step;
  }
  return std::nullopt;
}

// The same in words, with the suffix that takes it.
std::string CommonStepInWords(const std::vector<RankListing>& ranks) {
  const std::optional<TrainingStep> step = CommonStep(ranks);
  if (!step) return "the ranks have no step in common";
  return fmt::format("the latest step that all ranks have is {0} (`suffix={0}` or `suffix={1}`)",
                     StepName(step), kCommonStep);
}

// Returns the candidates for the choice; at most one if there is no choice.
std::vector<const Candidate*> Eligible(const RankListing& rank, const std::string& suffix) {
  std::vector<const Candidate*> eligible;
  if (!suffix.empty()) {
    for (const Candidate& candidate : rank.candidates) {
      if (Stem(candidate.name).ends_with(suffix)) eligible.push_back(&candidate);
    }
    if (!suffix.ends_with(kBreakpointEnd)) return eligible;
    for (const Candidate& candidate : rank.breakpoints) {
      if (Stem(candidate.name).ends_with(suffix)) eligible.push_back(&candidate);
    }
    return eligible;
  }
  // An absent step is less than any.
  std::optional<TrainingStep> latest;
  for (const Candidate& candidate : rank.candidates) latest = std::max(latest, candidate.step);
  for (const Candidate& candidate : rank.candidates) {
    if (candidate.step == latest) eligible.push_back(&candidate);
  }
  return eligible;
}

// How messages call a source; an empty one is a map of files.
std::string NameOfSource(const std::string& source) {
  return source.empty() ? "`source.files`" : Escape(source);
}

// Which ranks are at which step.
using Steps = std::map<std::optional<TrainingStep>, NumberRanges, std::greater<>>;

Status CheckSameStep(const std::string& source, const Steps& steps,
                     const std::vector<RankListing>& ranks) {
  if (steps.size() <= 1) return {};
  FirstFew list;
  for (const auto& [step, where] : steps) {
    list.Add(fmt::format("{} in {}", StepName(step), where.ToWords("rank")));
  }
  return MismatchError(fmt::format("{}: expected checkpoints of one step, found {}; {}",
                                   NameOfSource(source), list.Joined("; "),
                                   CommonStepInWords(ranks)));
}

// Returns the suffix that stands for `suffix`: of kCommonStep, that of the step. Errors: kMismatch
// if there is no such step.
Result<std::string> SuffixToTake(const std::string& source, const std::vector<RankListing>& ranks,
                                 const std::string& suffix) {
  if (suffix != kCommonStep) return suffix;
  const std::optional<TrainingStep> step = CommonStep(ranks);
  if (step) return StepName(step);
  Steps latest;
  for (const RankListing& rank : ranks) {
    const std::vector<const Candidate*> eligible = Eligible(rank, "");
    if (!eligible.empty()) latest[eligible.front()->step].Add(rank.rank);
  }
  if (latest.empty()) return std::string();  // there is nothing to choose from
  FirstFew list;
  for (const auto& [found, where] : latest) {
    list.Add(fmt::format("{} in {}", StepName(found), where.ToWords("rank")));
  }
  return MismatchError(
      fmt::format("{}: `suffix={}` takes the latest step that all ranks have, but they have none "
                  "in common; the latest are {}",
                  NameOfSource(source), kCommonStep, list.Joined("; ")));
}

Status CheckOneFormat(const RankListing& rank) {
  for (const Candidate& candidate : rank.candidates) {
    if (CheckpointExtension(candidate.name) == CheckpointExtension(rank.candidates.front().name)) {
      continue;
    }
    return MismatchError(fmt::format(
        "{}: expected files of one format, found {} and {}; keep the others in another folder",
        Escape(rank.label), Escape(rank.candidates.front().name), Escape(candidate.name)));
  }
  return {};
}

// One training run writes one format: with both it would be chance which is meant.
Status CheckSameFormat(const std::string& source, const std::vector<RankFile>& files) {
  std::map<std::string_view, NumberRanges> formats;
  for (const RankFile& file : files) {
    const std::string_view extension = CheckpointExtension(file.path);
    if (!extension.empty()) formats[extension].Add(file.rank);
  }
  if (formats.size() <= 1) return {};
  FirstFew list;
  for (const auto& [extension, where] : formats) {
    list.Add(fmt::format("{} in {}", extension, where.ToWords("rank")));
  }
  return MismatchError(
      fmt::format("{}: expected files of one format, found {}; keep the other files in another "
                  "folder",
                  NameOfSource(source), list.Joined("; ")));
}

// Returns the shortest end of a name that exactly one file of each rank folder with files has; ""
// if there is none. It begins at a "_", a "-" or the begin of the name.
std::string SuffixOfOne(const std::vector<RankListing>& ranks) {
  std::set<std::pair<size_t, std::string>> ends;  // the shortest first
  for (const RankListing& rank : ranks) {
    for (const Candidate& candidate : rank.candidates) {
      const std::string_view stem = Stem(candidate.name);
      for (size_t begin = 0; begin < stem.size(); ++begin) {
        if (begin > 0 && stem[begin] != '_' && stem[begin] != '-') continue;
        ends.emplace(stem.size() - begin, stem.substr(begin));
      }
    }
    // the ends in a single folder are enough, as each folder has to have such a file
    if (!ends.empty()) break;
  }
  const auto fits = [&ranks](const auto& end) {
    return std::all_of(ranks.begin(), ranks.end(), [&end](const RankListing& rank) {
      return rank.candidates.empty() || Eligible(rank, end.second).size() == 1;
    });
  };
  const auto found = std::find_if(ends.begin(), ends.end(), fits);
  return found == ends.end() ? std::string() : found->second;
}

// Checkpoints that a run left as it died are taken only by name.
Status CheckNotOnlyBreakpoints(const std::string& source, const std::vector<RankListing>& ranks) {
  FirstFew names;
  for (const RankListing& rank : ranks) {
    for (const Candidate& candidate : rank.breakpoints) {
      names.Add(Escape(PathIn(rank.folder, candidate.name)));
    }
  }
  if (names.count() == 0) return {};
  const auto with_some = std::find_if(ranks.begin(), ranks.end(), [](const RankListing& rank) {
    return !rank.breakpoints.empty();
  });
  const Candidate& first = with_some->breakpoints.front();
  const std::string suffix =
      first.step ? StepName(first.step) + std::string(kBreakpointEnd) : std::string(kBreakpointEnd);
  return NotFoundError(fmt::format(
      "{}: found only checkpoints that runs left as they ended by an error ({}), which are taken "
      "only if they are asked for: `suffix={}`",
      NameOfSource(source), names.Joined(), suffix));
}

// Keeps the prefixes of all files before their rank's number at the end: "model_" of model_3.ckpt.
void KeepPrefixes(const std::vector<const Candidate*>& eligible, int64_t rank, bool first,
                  std::set<std::string>& prefixes) {
  const std::string number = std::to_string(rank);
  std::set<std::string> found;
  for (const Candidate* candidate : eligible) {
    const std::string stem(Stem(candidate->name));
    if (candidate->step || !stem.ends_with(number)) continue;
    found.insert(stem.substr(0, stem.size() - number.size()));
  }
  if (!first) std::erase_if(found, [&](const auto& prefix) { return !prefixes.contains(prefix); });
  prefixes = std::move(found);
}

// Chooses among the files of each rank. `base` is the folder that contains the listings' folders.
Result<RankFolder> Choose(const std::string& source, const std::string& base,
                          const std::vector<RankListing>& ranks, const std::string& wanted_suffix) {
  RESHARD_ASSIGN_OR_RETURN(const std::string suffix, SuffixToTake(source, ranks, wanted_suffix));
  RankFolder found;
  FirstFew open;
  NumberRanges empty;
  FirstFew other;  // ranks for which MindSpore takes another file
  Steps steps;
  std::string_view example_extension;
  std::set<std::string> prefixes;
  for (const RankListing& rank : ranks) {
    RESHARD_RETURN_IF_ERROR(CheckOneFormat(rank));
    const std::vector<const Candidate*> eligible = Eligible(rank, suffix);
    if (eligible.empty()) {
      empty.Add(rank.rank);
      continue;
    }
    if (eligible.size() > 1) {
      FirstFew names;
      for (const Candidate* candidate : eligible) names.Add(Escape(candidate->name));
      open.Add(fmt::format("{} ({})", Escape(rank.label), names.Joined()));
      example_extension = CheckpointExtension(eligible.front()->name);
      KeepPrefixes(eligible, rank.rank, open.count() == 1, prefixes);
      continue;
    }
    const Candidate& chosen = *eligible.front();
    const std::string relative = PathIn(rank.folder, chosen.name);
    found.files.push_back({rank.rank, PathIn(base, relative), relative, chosen.step});
    steps[chosen.step].Add(rank.rank);
    if (suffix.empty() && !rank.last_by_name.empty() && chosen.name != rank.last_by_name) {
      other.Add(
          Escape(fmt::format("{}/{} instead of {}", rank.folder, rank.last_by_name, chosen.name)));
    }
  }

  if (open.count() > 0) {
    const std::string one = SuffixOfOne(ranks);
    std::string advice = one.empty() ? "keep one, and move the others to another folder"
                                     : fmt::format(
                                           "choose by the end of the name, such as "
                                           "`suffix={}`",
                                           Escape(one));
    advice += "; " + CommonStepInWords(ranks);
    if (open.count() > 1 && !prefixes.empty() && !IsRankPattern(source)) {
      const std::string name =
          fmt::format("rank_{{rank}}/{}{{rank}}{}", *prefixes.begin(), example_extension);
      advice = fmt::format("name them by a pattern, such as {}", Escape(PathIn(source, name)));
    }
    return MismatchError(fmt::format(
        "{}: expected one checkpoint to take in each rank folder, found several: {}; {}",
        NameOfSource(source), open.Joined("; "), advice));
  }
  std::string stem = "*" + Escape(suffix);
  const std::string wanted = found.files.empty()
                                 ? fmt::format("{0}.ckpt or {0}.safetensors", stem)
                                 : stem.append(CheckpointExtension(found.files.front().path));
  const auto places = [&](uint64_t count) {
    const std::string_view plural = count == 1 ? "" : "s";
    return IsRankPattern(source) ? fmt::format("{} place{} of the pattern", count, plural)
                                 : fmt::format("{} rank folder{}", count, plural);
  };
  if (found.files.empty() && suffix.empty()) {
    RESHARD_RETURN_IF_ERROR(CheckNotOnlyBreakpoints(source, ranks));
  }
  if (found.files.empty()) {
    return NotFoundError(fmt::format("{}: expected checkpoints ({}), found none in {}: {}{}",
                                     NameOfSource(source), wanted, places(empty.count()),
                                     empty.ToWords("rank"),
                                     suffix.empty() ? "" : "; " + CommonStepInWords(ranks)));
  }
  RESHARD_RETURN_IF_ERROR(CheckSameFormat(source, found.files));
  RESHARD_RETURN_IF_ERROR(CheckSameStep(source, steps, ranks));
  if (empty.count() > 0) {
    found.warnings.push_back(
        {WarningCode::kEmptyRankFolders,
         fmt::format("{}: no checkpoint ({}) in {} of {}: {}", NameOfSource(source), wanted,
                     empty.count(), places(ranks.size()), empty.ToWords("rank"))});
  }
  if (other.count() > 0) {
    found.warnings.push_back(
        {WarningCode::kOtherChoice,
         fmt::format("{}: MindSpore sorts by name, not by epoch and step, and would take other "
                     "files in {} of {}: {}",
                     NameOfSource(source), other.count(), places(ranks.size()), other.Joined())});
  }
  return found;
}

}  // namespace

std::optional<int64_t> RankOfFolder(std::string_view name) {
  constexpr std::string_view kPrefix = "rank_";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  return ParseNumber<int64_t>(name.substr(kPrefix.size()));
}

std::map<std::string, std::string> TakenInRankFolder(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const RankListing listing = CheckpointsAmong(names, 0, "");
  std::map<std::string, std::string> taken;
  const std::vector<const Candidate*> eligible = Eligible(listing, "");
  for (const Candidate* candidate : eligible) {
    taken.emplace(candidate->name, eligible.size() == 1
                                       ? "readers take it, which is of the latest step"
                                       : "readers cannot choose between it and another file");
  }
  if (!CheckOneFormat(listing).ok()) {
    for (const Candidate& candidate : listing.candidates) {
      taken.emplace(candidate.name, "readers expect files of one format in a folder");
    }
  }
  if (!listing.last_by_name.empty()) {
    taken.emplace(listing.last_by_name, "MindSpore takes it, the last one by name");
  }
  return taken;
}

Result<RankFolder> FindRankFiles(const std::string& source, const RankFolderOptions& options) {
  if (IsRankPattern(source)) {
    RESHARD_ASSIGN_OR_RETURN(const PatternListing listing, ListPattern(source));
    return Choose(source, listing.base, listing.ranks, options.suffix);
  }
  RESHARD_ASSIGN_OR_RETURN(const std::vector<RankListing> ranks, ListRanks(source));
  RESHARD_RETURN_IF_ERROR(CheckOutputsOutside(source));
  return Choose(source, source, ranks, options.suffix);
}

Result<RankFolder> TakeRankFiles(const std::map<int64_t, std::string>& paths,
                                 const RankFolderOptions& options) {
  std::vector<RankListing> ranks;
  for (const auto& [rank, path] : paths) {
    const std::string name = std::filesystem::path(path).filename().string();
    ranks.push_back(
        {rank, path, fmt::format("rank_{}", rank), {{name, StepOf(Stem(name))}}, {}, {}});
  }
  RESHARD_ASSIGN_OR_RETURN(RankFolder taken, Choose("", "", ranks, options.suffix));
  for (RankFile& file : taken.files) file.path = paths.at(file.rank);
  return taken;
}

}  // namespace reshard
