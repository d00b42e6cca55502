#include "src/source/rank_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/directory_listing.h"

namespace reshard {
namespace {

// Messages list at most this many things.
constexpr size_t kListed = 20;

constexpr std::string_view kExtension = ".ckpt";

// A checkpoint file of a rank folder.
struct Candidate {
  std::string name;
  std::optional<TrainingStep> step;
};

struct RankListing {
  int64_t rank = 0;
  std::string name;  // of the folder: "rank_3"
  std::vector<Candidate> candidates;
  std::string last_by_name;  // what MindSpore takes: of all .ckpt files, those included that do not
                             // count here
};

// Joins up to kListed things and says how many more there are.
class Enumeration {
 public:
  explicit Enumeration(std::string_view separator = ", ") : separator_(separator) {}

  void Add(std::string_view thing) {
    if (count_ > 0 && count_ < kListed) text_ += separator_;
    if (count_ < kListed) text_ += thing;
    ++count_;
  }
  size_t count() const { return count_; }
  std::string ToString() const {
    return count_ <= kListed ? text_ : fmt::format("{} and {} more", text_, count_ - kListed);
  }

 private:
  std::string_view separator_;
  size_t count_ = 0;
  std::string text_;
};

std::optional<int64_t> ParseNumber(std::string_view digits) {
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  int64_t number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  return number;
}

std::optional<int64_t> RankOf(std::string_view folder) {
  constexpr std::string_view kPrefix = "rank_";
  if (!folder.starts_with(kPrefix)) return std::nullopt;
  return ParseNumber(folder.substr(kPrefix.size()));
}

std::string_view Stem(std::string_view name) {
  return name.substr(0, name.size() - kExtension.size());
}

// Returns the step of a stem PREFIX-EPOCH_STEP.
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

Result<RankListing> ListRank(const std::string& folder, int64_t rank, const std::string& name) {
  RankListing listing{rank, name, {}, {}};
  const std::string path = PathIn(folder, name);
  RESHARD_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, ListDirectory(path));
  for (const DirectoryEntry& entry : entries) {
    const std::string_view file = entry.name;
    if (!entry.is_regular || file.starts_with('.')) continue;
    if (file.ends_with(".safetensors")) {
      return UnsupportedError(fmt::format(
          "{}: expected .ckpt files only, found {}; safetensors files are not read: convert them "
          "first, for example with MindSpore's safetensors_to_ckpt",
          Escape(path), Quote(file)));
    }
    if (!file.ends_with(kExtension)) continue;
    listing.last_by_name = entry.name;  // entries are sorted
    const std::string_view stem = Stem(file);
    if (stem.ends_with("_breakpoint")) continue;
    listing.candidates.push_back({entry.name, StepOf(stem)});
  }
  return listing;
}

// Returns the rank folders of `folder` by rank.
Result<std::vector<RankListing>> ListRanks(const std::string& folder) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, ListDirectory(folder));
  std::map<int64_t, std::string> names;
  bool has_files = false;
  for (const DirectoryEntry& entry : entries) {
    if (entry.is_regular && entry.name.ends_with(kExtension)) has_files = true;
    const auto rank = entry.is_directory ? RankOf(entry.name) : std::nullopt;
    if (!rank) continue;
    const auto [place, added] = names.emplace(*rank, entry.name);
    if (!added) {
      return MismatchError(fmt::format("{}: {} and {} both name rank {}; remove one of them",
                                       Escape(folder), place->second, entry.name, *rank));
    }
  }
  if (names.empty()) {
    return NotFoundError(fmt::format("{}: expected folders rank_N with .ckpt files, found none{}",
                                     Escape(folder),
                                     has_files ? "; for the .ckpt files that lie in it, move each "
                                                 "into its rank's folder, or give one itself"
                                               : ""));
  }
  std::vector<RankListing> ranks;
  ranks.reserve(names.size());
  for (const auto& [rank, name] : names) {
    RESHARD_ASSIGN_OR_RETURN(RankListing listing, ListRank(folder, rank, name));
    ranks.push_back(std::move(listing));
  }
  return ranks;
}

// Says which is the greatest step that all rank folders with files have.
std::string GreatestCommonStep(const std::vector<RankListing>& ranks) {
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
    if (count == with_files) {
      return fmt::format("the greatest step that all have is {0} (--suffix={0})", StepName(step));
    }
  }
  return "no step is in all of them";
}

// Returns the candidates among which the choice is: one at most, where it is not open.
std::vector<const Candidate*> Eligible(const RankListing& rank, const std::string& suffix) {
  std::vector<const Candidate*> eligible;
  if (!suffix.empty()) {
    for (const Candidate& candidate : rank.candidates) {
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

Status CheckSameStep(const std::string& folder, const std::vector<RankFile>& files,
                     const std::vector<RankListing>& ranks) {
  std::map<std::optional<TrainingStep>, Enumeration, std::greater<>> steps;
  for (const RankFile& file : files) {
    const std::string_view path = file.relative_path;
    steps[file.step].Add(path.substr(0, path.find('/')));
  }
  if (steps.size() <= 1) return {};
  Enumeration list("; ");
  for (const auto& [step, where] : steps) {
    list.Add(fmt::format("{} in {}", StepName(step), where.ToString()));
  }
  return MismatchError(fmt::format("{}: expected checkpoints of one step, found {}; {}",
                                   Escape(folder), list.ToString(), GreatestCommonStep(ranks)));
}

}  // namespace

Result<RankFolder> FindRankFiles(const std::string& folder, const RankFolderOptions& options) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<RankListing> ranks, ListRanks(folder));
  RankFolder found;
  Enumeration open("; ");
  Enumeration empty;
  Enumeration other;  // those where MindSpore takes another file
  std::string example;
  for (const RankListing& rank : ranks) {
    const std::vector<const Candidate*> eligible = Eligible(rank, options.suffix);
    if (eligible.empty()) {
      empty.Add(rank.name);
      continue;
    }
    if (eligible.size() > 1) {
      Enumeration names;
      for (const Candidate* candidate : eligible) names.Add(Escape(candidate->name));
      open.Add(fmt::format("{} ({})", rank.name, names.ToString()));
      example = Stem(eligible.front()->name);
      continue;
    }
    const Candidate& chosen = *eligible.front();
    const std::string relative = rank.name + "/" + chosen.name;
    found.files.push_back({rank.rank, PathIn(folder, relative), relative, chosen.step});
    if (options.suffix.empty() && chosen.name != rank.last_by_name) {
      other.Add(
          Escape(fmt::format("{}/{} instead of {}", rank.name, rank.last_by_name, chosen.name)));
    }
  }

  if (open.count() > 0) {
    return MismatchError(fmt::format(
        "{}: expected one checkpoint to take in each rank folder, found several: {}; choose by the "
        "end of the name, such as --suffix={}; {}",
        Escape(folder), open.ToString(), Escape(example), GreatestCommonStep(ranks)));
  }
  const std::string pattern = fmt::format("*{}{}", Escape(options.suffix), kExtension);
  if (found.files.empty()) {
    return NotFoundError(
        fmt::format("{}: expected checkpoints ({}), found none in {} rank folders: {}{}",
                    Escape(folder), pattern, empty.count(), empty.ToString(),
                    options.suffix.empty() ? "" : "; " + GreatestCommonStep(ranks)));
  }
  RESHARD_RETURN_IF_ERROR(CheckSameStep(folder, found.files, ranks));
  if (empty.count() > 0) {
    found.warnings.push_back(fmt::format("{}: no checkpoint ({}) in {} of {} rank folders: {}",
                                         Escape(folder), pattern, empty.count(), ranks.size(),
                                         empty.ToString()));
  }
  if (other.count() > 0) {
    found.warnings.push_back(
        fmt::format("{}: MindSpore, which goes by the order of names and not by epoch and step, "
                    "would take other files in {} of {} rank folders: {}",
                    Escape(folder), other.count(), ranks.size(), other.ToString()));
  }
  return found;
}

}  // namespace reshard
