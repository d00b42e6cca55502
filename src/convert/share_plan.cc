#include "src/convert/share_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "reshard/version.h"
#include "src/base/number_text.h"
#include "src/base/status_macros.h"
#include "src/convert/conversion_job.h"
#include "src/convert/conversion_plan.h"
#include "src/convert/rounded_count.h"
#include "src/digest/xxh3.h"
#include "src/io/storage.h"
#include "src/job/file_shares.h"
#include "src/job/job_folder.h"
#include "src/mindspore/rank_folder.h"
#include "src/mindspore/rank_pattern.h"
#include "src/mindspore/strategy_codec.h"
#include "src/mindspore/strategy_tables.h"
#include "src/mindspore/strategy_writer.h"
#include "src/options/option_table.h"
#include "src/os/path_location.h"
#include "src/os/used_files.h"
#include "src/record/option_json.h"
#include "src/record/strict_json.h"

namespace reshard {
namespace {

// The value of an option in words that differ if values do. A strategy in memory and a key have
// none: the fingerprint of the plan and the text of the job tell them apart.
class InWords {
 public:
  explicit InWords(const Option& option) : option_(option) {}

  std::string operator()(const std::map<int64_t, std::string>& files) const {
    return JsonList(files, [](const auto& file) {
      return fmt::format("[{},{}]", file.first, BytesAsJson(file.second));
    });
  }
  std::string operator()(const std::string& text) const {
    if (option_.type != OptionType::kParameterCount) return OptionAsJson(option_, text);
    const Result<RoundedCount> count = ParseParameterCount(text);
    return count.ok() ? fmt::format("{} {}", count->count, count->precision) : text;
  }
  std::string operator()(const StrategyRef& strategy) const { return BytesAsJson(strategy.path()); }
  template <typename Other>
  std::string operator()(const Other& value) const {
    return OptionAsJson(option_, value);
  }

 private:
  const Option& option_;
};

// When the entries of a folder changed; no value if the system does not tell.
std::optional<int64_t> ChangeOf(const std::string& folder) {
  const auto found = Storage::Of(folder).Stat(folder.empty() ? "." : folder);
  return found.ok() ? std::optional(found->mtime_ns()) : std::nullopt;
}

// Returns the part of `path` before `relative`; no value if it does not end so.
std::optional<std::string> BaseOf(const std::string& path, const std::string& relative) {
  if (!path.ends_with(relative)) return std::nullopt;
  std::string base = path.substr(0, path.size() - relative.size());
  if (PathIn(base, relative) != path) return std::nullopt;
  return base;
}

bool IsNamedOneByOne(const SourceSpec& spec) { return !spec.files.empty(); }

// Whether the outputs beside the call are neither a source nor in the folder of the sources. A
// worker that knows only its own sources by identity could not protect the others.
bool OutputsAreApart(const PlanRecord& record) {
  const std::vector<UsedOutput> outputs = UsedOutputs();
  if (outputs.empty()) return true;
  const auto base = PathLocation::Of(record.base.empty() ? "." : record.base);
  return base.ok() && std::none_of(outputs.begin(), outputs.end(), [&](const UsedOutput& output) {
           const auto place = PathLocation::Of(output.path);
           if (!place.ok() || place->From(*base)) return true;
           return std::any_of(output.files.begin(), output.files.end(), [&](const auto& file) {
             return std::any_of(record.sources.begin(), record.sources.end(),
                                [&](const auto& source) { return source.inode == file.inode(); });
           });
         });
}

// Returns the rank that the path of a source names; no value if it names none.
std::optional<int64_t> RankIn(const std::string& path, const std::string& relative,
                              const SourceSpec& spec) {
  if (!IsRankPattern(spec.path)) return RankOfFolder(relative.substr(0, relative.find('/')));
  const size_t at = spec.path.find(kRankPlaceholder);
  if (path.compare(0, at, spec.path, 0, at) != 0) return std::nullopt;
  const size_t end = std::min(path.find_first_not_of("0123456789", at), path.size());
  const std::string_view rest = path;
  return ParseNumber<int64_t>(rest.substr(at, end - at));
}

// The files of the record; none if the options do not have them. Only paths tell ranks: the job has
// none.
std::vector<KnownFile> KnownFilesOf(const PlanRecord& record, const SourceSpec& spec) {
  std::vector<KnownFile> files;
  files.reserve(record.sources.size());
  for (const PlannedSource& source : record.sources) {
    const auto rank = static_cast<int64_t>(source.rank);
    std::string path = PathIn(record.base, source.path);
    if (IsNamedOneByOne(spec)) {
      const auto named = spec.files.find(rank);
      if (named == spec.files.end()) return {};
      path = named->second;
    }
    if (RankIn(path, source.path, spec) != rank) return {};
    const std::string name = std::filesystem::path(source.path).filename().string();
    files.push_back(
        {{rank, std::move(path), source.path, reshard::StepOf(Stem(name))},
         FileIdentity({.inode = source.inode, .size = source.size, .mtime_ns = source.mtime_ns})});
  }
  return files;
}

// Whether no files have come or gone in the folders of the used sources: other files might be
// chosen now.
bool FoldersAreAsKnown(const OpenedSource& source, const ConvertOptions& options,
                       const PlanRecord& record) {
  if (IsNamedOneByOne(options.source)) return true;
  if (ChangeOf(record.base) != record.base_mtime_ns) return false;
  std::map<std::string, int64_t> folders;
  const std::set<FileId> opened = source.opened_known();
  for (size_t i = 0; i < record.sources.size(); ++i) {
    const ChosenFile& file = source.chosen()[i];
    if (!opened.contains(file.id)) continue;
    folders.emplace(FolderOf(source.path(file)), record.sources[i].folder_mtime_ns);
  }
  return std::all_of(folders.begin(), folders.end(),
                     [](const auto& folder) { return ChangeOf(folder.first) == folder.second; });
}

// Returns the numbers of the target files with parts in the share; no value if the target does not
// have the files of the job.
std::optional<std::vector<int64_t>> FilesOfShare(const Target& target,
                                                 const ConvertOptions& options,
                                                 const std::vector<ManifestFile>& all) {
  std::map<std::string, int64_t> numbers;
  for (const int64_t file : target.FilesOf(options.selection.ranks)) {
    numbers.emplace(target.PathOf(file), file);
  }
  if (numbers.size() != all.size()) return std::nullopt;
  std::set<int64_t> own;
  for (const FilePart& part : ShareOf(all, *options.shard)) {
    const auto found = numbers.find(all[part.file].path);
    if (found == numbers.end()) return std::nullopt;
    own.insert(found->second);
  }
  return std::vector<int64_t>(own.begin(), own.end());
}

bool SizesAreAsKnown(const WorkList& work, const std::vector<ManifestFile>& all) {
  std::map<std::string_view, uint64_t> sizes;
  for (const ManifestFile& file : all) sizes.emplace(file.path, file.size);
  return std::all_of(work.targets.begin(), work.targets.end(), [&](const auto& file) {
    const auto found = sizes.find(file.path);
    return found != sizes.end() && found->second == file.size;
  });
}

std::string NoteOf(const OpenedSource& source) {
  return fmt::format(
      "another share has planned all files and checked the source; this one has opened {} of {} "
      "source files",
      source.opened_known().size(), source.chosen().size());
}

// Returns what the record says for these options; no files if it does not have theirs. Errors: as
// ParseStrategy.
Result<KnownFacts> KnownFactsOf(const PlanRecord& record, const ConvertOptions& options) {
  KnownFacts facts{KnownFilesOf(record, options.source), std::nullopt};
  if (record.strategy.empty()) return facts;
  RESHARD_ASSIGN_OR_RETURN(StrategyFile file, ParseStrategy("plan.jsonl", record.strategy));
  RESHARD_ASSIGN_OR_RETURN(facts.strategy, StrategyTables::FromFile(std::move(file)));
  return facts;
}

// As PlanShare; an error is one of planning.
Result<std::optional<PlannedShare>> Follow(const ConvertOptions& options,
                                           const MemoryBudget& budget, const KnownPlan& known) {
  RESHARD_ASSIGN_OR_RETURN(const KnownFacts facts, KnownFactsOf(known.record, options));
  if (facts.files.empty()) return std::optional<PlannedShare>();
  RESHARD_ASSIGN_OR_RETURN(JobSpec unchecked, SpecOf(known.job, options.target.folder,
                                                     known.fingerprint, known.fingerprint));
  RESHARD_ASSIGN_OR_RETURN(JobSpec all, CheckedSpec(std::move(unchecked)));
  std::optional<PlannedShare> share(std::in_place);
  OpenedConversion& opened = share->opened;
  RESHARD_ASSIGN_OR_RETURN(opened, OpenUnplanned(options, LimitsOf(options, budget), &facts));
  OpenedSource& source = *opened.source;
  if (known.record.states_redundancy != 0) source.set_states_redundancy();
  const auto files = FilesOfShare(opened.target(), options, all.files);
  if (!files) return std::optional<PlannedShare>();
  RESHARD_ASSIGN_OR_RETURN(opened.plan,
                           PlanFiles(source, opened.target(), *files, options.run.stop, budget));
  if (!SizesAreAsKnown(opened.work(), all.files) ||
      !FoldersAreAsKnown(source, options, known.record)) {
    return std::optional<PlannedShare>();
  }
  RESHARD_ASSIGN_OR_RETURN(share->job, MakeJobSpec(source, opened.work(), options));
  JobSpec& job = share->job;
  job.files = std::move(all.files);
  job.sources.clear();
  for (const ChosenFile& file : source.chosen()) {
    job.sources.push_back({file.relative_path, file.identity.size()});
  }
  for (const ChosenFile& file : source.companions()) {
    job.sources.push_back({file.relative_path, file.identity.size()});
  }
  job.workers = options.shard->count;
  job.follows_plan = true;
  if (job.fingerprint != known.fingerprint || DigestOf(JobTextOf(job)) != known.record.job) {
    return std::optional<PlannedShare>();
  }
  opened.plan.findings.notes.push_back(NoteOf(source));
  return share;
}

}  // namespace

std::string DigestOfOptions(const ConvertOptions& given) {
  ConversionSpec spec = static_cast<const ConversionSpec&>(given);
  CheckChoice checks = given.checks;
  OptionParts parts = PartsOf(spec);
  parts.checks = &checks;
  Xxh3 digest;
  digest.Update(fmt::format("reshard {}\nshares {}\n", kVersion, given.shard->count));
  // Another spelling of the same path only costs time.
  digest.Update(fmt::format("source {}\nprune {}\n", BytesAsJson(given.source.path), given.prune));
  for (const Option& option : AllOptions()) {
    if ((option.calls & kConvertCall) == 0) continue;
    const std::optional<OptionValue> value = ValueIn(option, parts);
    if (!value) continue;
    digest.Update(fmt::format("{} {}\n", option.name, std::visit(InWords(option), *value)));
  }
  return digest.HexDigest();
}

std::optional<PlanRecord> PlanRecordOf(const OpenedConversion& opened,
                                       const ConvertOptions& options) {
  const OpenedSource& source = *opened.source;
  if (source.is_known() || source.each_alone() || source.files_are_numbered()) return std::nullopt;
  PlanRecord record;
  record.options = DigestOfOptions(options);
  if (opened.strategy) {
    auto strategy = EncodeStrategy(opened.strategy->strategy, StrategyEncoding::kJson);
    if (!strategy.ok()) return std::nullopt;
    record.strategy = *std::move(strategy);
  }
  record.states_redundancy = source.states_redundancy() ? 1 : 0;
  std::optional<std::string> base;
  std::map<std::string, std::optional<int64_t>> changes;
  for (const ChosenFile& file : source.chosen()) {
    std::optional<int64_t> change = 0;
    if (!IsNamedOneByOne(options.source)) {
      const std::optional<std::string> own = BaseOf(source.path(file), file.relative_path);
      if (!own || (base && *base != *own)) return std::nullopt;
      base = own;
      const std::string folder = FolderOf(source.path(file));
      const auto [known, is_new] = changes.emplace(folder, std::nullopt);
      if (is_new) known->second = ChangeOf(folder);
      change = known->second;
    }
    if (!change) return std::nullopt;
    record.sources.push_back({.rank = static_cast<uint64_t>(file.rank),
                              .path = file.relative_path,
                              .size = file.identity.size(),
                              .mtime_ns = file.identity.mtime_ns(),
                              .inode = file.identity.inode(),
                              .folder_mtime_ns = *change});
  }
  if (!base) return record;
  const std::optional<int64_t> change = ChangeOf(*base);
  if (!change) return std::nullopt;
  record.base = *std::move(base);
  record.base_mtime_ns = *change;
  return record;
}

std::optional<KnownPlan> FindKnownPlan(const JobLock& lock, const ConvertOptions& options) {
  const auto names = lock.folder().Names();
  if (!names.ok()) return std::nullopt;
  const std::string digest = DigestOfOptions(options);
  for (const std::string& name : *names) {
    if (!CheckFingerprint(name).ok()) continue;
    const auto folder = JobFolder::Open(lock.folder(), name);
    if (!folder.ok()) continue;
    auto record = folder->ReadPlan();
    if (!record.ok() || record->options != digest) continue;
    auto job = folder->ReadEither();
    if (!job.ok() || !*job || DigestOf(**job) != record->job) continue;
    if (!OutputsAreApart(*record)) continue;
    return KnownPlan{name, **std::move(job), *std::move(record)};
  }
  return std::nullopt;
}

Result<std::optional<PlannedShare>> PlanShare(const ConvertOptions& options,
                                              const MemoryBudget& budget, const KnownPlan& known) {
  ReportPlanning(options.run);
  auto share = Follow(options, budget, known);
  const StatusCode code = share.status().code();
  if (share.ok() || code == StatusCode::kCancelled || code == StatusCode::kResourceExhausted) {
    return share;
  }
  return std::optional<PlannedShare>();
}

}  // namespace reshard
