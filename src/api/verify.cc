#include "reshard/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "src/api/source_tensors.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/conversion_job.h"
#include "src/convert/conversion_plan.h"
#include "src/convert/memory_budget.h"
#include "src/convert/opened_conversion.h"
#include "src/convert/opened_source.h"
#include "src/convert/option_checks.h"
#include "src/convert/reader_check.h"
#include "src/convert/source_checks.h"
#include "src/convert/strategy_check.h"
#include "src/io/shared_work.h"
#include "src/io/source_files.h"
#include "src/io/storage.h"
#include "src/mindspore/mindspore_target.h"
#include "src/mindspore/output_check.h"
#include "src/mindspore/resume_files.h"
#include "src/mindspore/run_folder.h"
#include "src/options/option_table.h"
#include "src/os/file_use.h"
#include "src/os/retries.h"
#include "src/os/used_files.h"
#include "src/plan/target.h"
#include "src/record/origin.h"
#include "src/source/indexed_file.h"
#include "src/verify/find_damage.h"
#include "src/verify/replica_comparison.h"
#include "src/verify/stored_set.h"
#include "src/verify/target_comparison.h"

namespace reshard {
namespace {

Status CheckAgainst(const ConversionSpec& spec) {
  RESHARD_RETURN_IF_ERROR(
      CheckSourceNamed(spec.source.path, spec.source.files, spec.target.folder));
  const SourceSpec source = InRunFolder(spec.source);
  RESHARD_ASSIGN_OR_RETURN(const bool lacks_strategies, LacksStrategies(source, spec.target));
  if (lacks_strategies) {
    return InvalidArgumentError(
        "`source.strategy` and `target.strategy` are missing; give the strategies of the "
        "conversion" +
        HintOfStrategyBeside(source));
  }
  RESHARD_RETURN_IF_ERROR(CheckRenames(spec.selection.renames));
  RESHARD_RETURN_IF_ERROR(CheckCasts(spec.selection.casts));
  return CheckFormat(spec.target, spec.selection);
}

// `given`, completed with the options of the last run here.
struct Completed {
  ConversionSpec spec;
  std::vector<std::string> taken = {};  // the names of the options that were not given
  // Digests of the strategies that were taken by their paths; empty: none.
  std::string source_strategy = {};
  std::string target_strategy = {};
};

// Takes a strategy that is still there. In memory it was nowhere.
template <typename Spec>
bool TakeStrategy(const Spec& run, Spec& own) {
  const std::string& path = run.strategy.path();
  const bool takes = own.strategy.empty() && !path.empty() && Storage::Of(path).Stat(path).ok();
  if (takes) own.strategy = run.strategy;
  return takes;
}

Completed Complete(const ConversionSpec& given) {
  Completed all{.spec = given};
  const std::string origin = fmt::format("{}/{}", given.target.folder, kOriginName);
  const auto bytes = Storage::Of(origin).ReadWhole(origin, kMaxOriginBytes);
  const auto run = bytes.ok() ? OptionsOfLastRun(*bytes) : std::nullopt;
  if (!run || !CheckCasts(run->spec.selection.casts).ok()) return all;
  ConversionSpec of_run = run->spec;
  if (TakeStrategy(of_run.source, all.spec.source)) {
    all.taken.emplace_back("source.strategy");
    all.source_strategy = run->source_strategy;
  }
  if (TakeStrategy(of_run.target, all.spec.target)) {
    all.taken.emplace_back("target.strategy");
    all.target_strategy = run->target_strategy;
  }
  for (const Option& option : AllOptions()) {
    if (!IsRecorded(option)) continue;
    if (!IsUsual(option, all.spec) || IsUsual(option, of_run)) continue;
    SetOption(option, PartsOf(all.spec), *ValueIn(option, PartsOf(of_run)));
    all.taken.emplace_back(option.name);
  }
  return all;
}

// Fails if a strategy from a recorded path has changed.
Status CheckTaken(const Completed& all, const OpenedSource& source) {
  const auto is_other = [](const std::string& digest, const Strategy* found) {
    return !digest.empty() && (found == nullptr || StrategyDigest(*found) != digest);
  };
  if (is_other(all.source_strategy, source.rule().source())) {
    return MismatchError(fmt::format(
        "{}: other layouts than the conversion had, by origin.jsonl of the target; pass the "
        "strategy that it had as `source.strategy`",
        Escape(all.spec.source.strategy.path())));
  }
  if (is_other(all.target_strategy, source.rule().target())) {
    return MismatchError(fmt::format(
        "{}: other layouts than the conversion had, by origin.jsonl of the target; pass the "
        "strategy that it had as `target.strategy`",
        Escape(all.spec.target.strategy.path())));
  }
  return {};
}

// The format of the first rank file that exists; no value, which stands for the source's format, if
// none exists.
Result<std::optional<TargetFormat>> FormatThere(const OpenedSource& source,
                                                const ConversionSpec& spec) {
  RESHARD_ASSIGN_OR_RETURN(const std::string names, PatternOfNames(spec.target, source.step()));
  const auto target_in = [&](TargetFormat format) {
    return MindSporeTarget(source.tensors(), source.rule(), spec.target.prefix,
                           Selection::Unmatched::kCopy, {}, ContainerOf(format), names);
  };
  const MindSporeTarget ckpt = target_in(TargetFormat::kCkpt);
  const MindSporeTarget safetensors = target_in(TargetFormat::kSafetensors);
  const auto is_there = [&](const MindSporeTarget& target, int64_t rank) {
    const std::string path = fmt::format("{}/{}", spec.target.folder, target.PathOf(rank));
    const auto kind = Storage::Of(path).KindOf(path);
    return kind.ok() && *kind != PathKind::kMissing;
  };
  for (const int64_t rank : ckpt.FilesOf(spec.selection.ranks)) {
    if (is_there(ckpt, rank)) return std::optional(TargetFormat::kCkpt);
    if (is_there(safetensors, rank)) return std::optional(TargetFormat::kSafetensors);
  }
  return std::optional<TargetFormat>();
}

// The target files that state their CRC-32.
std::set<int64_t> FilesWithCrc(const Target& target, const std::vector<int64_t>& files,
                               const std::string& folder) {
  std::set<int64_t> stating;
  SourceFiles there(1);  // encrypted files state none
  for (const int64_t file : files) {
    const auto path = fmt::format("{}/{}", folder, target.PathOf(file));
    const auto covered = CoveredByCrc(there, there.Add(path));
    if (covered.ok() && *covered) stating.insert(file);
  }
  return stating;
}

// The source ranks with files that are read, with the ranks of replicas.
std::set<int64_t> RanksOfStages(const OpenedSource& source, const std::vector<int64_t>& ranks) {
  std::set<int64_t> source_ranks;
  for (const int64_t stage : StagesOf(source.rule(), ranks)) {
    for (const int64_t local : source.tensors().ranks().LocalRanks(stage)) {
      source_ranks.insert(source.rule().SourceRank(stage, local));
    }
  }
  return source_ranks;
}

// The approximate bytes to read: the sizes of the existing files.
uint64_t BytesToRead(const OpenedSource& source, const CrcFiles& crc, const Target& target,
                     const std::vector<int64_t>& files, const std::string& folder) {
  uint64_t bytes =
      crc.bytes + ReplicaBytes(source, StagesOf(source.rule(), RanksOf(target, files)));
  const Storage& storage = Storage::Of(folder);
  for (const int64_t number : files) {
    const auto file = storage.Stat(fmt::format("{}/{}", folder, target.PathOf(number)));
    if (file.ok()) bytes += file->size();
  }
  return bytes;
}

// Returns the rank folders in the target that the conversion would not have made.
Result<std::vector<std::string>> OtherRankFolders(const std::string& folder, int64_t target_ranks) {
  std::set<std::string> expected;
  for (int64_t rank = 0; rank < target_ranks; ++rank) expected.insert(fmt::format("rank_{}", rank));
  RESHARD_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries,
                           Storage::Of(folder).List(folder));
  std::vector<std::string> others;
  for (const DirectoryEntry& entry : entries) {
    if (entry.is_directory && entry.name.starts_with("rank_") && !expected.contains(entry.name)) {
      others.push_back(Escape(entry.name));
    }
  }
  return others;
}

// Refuses a set of several ranks that was to be proved as full tensors, for which no target
// strategy is given.
Status CheckIsNoSet(const ConversionSpec& spec, const std::vector<std::string>& other_ranks,
                    const PlanReport::TargetFile& first) {
  const bool is_of_ranks = !spec.target.strategy.empty() || HasCluster(spec.target);
  if (is_of_ranks || other_ranks.empty()) return {};
  const std::string path = fmt::format("{}/{}", spec.target.folder, first.path);
  const auto file = Storage::Of(path).Stat(path);
  if (!file.ok() || file->size() == first.size) return {};
  return MismatchError(
      fmt::format("{}: {} bytes, but {} in a file of full tensors, and {} more rank folders lie "
                  "beside it: give `target.strategy` for a set of several ranks",
                  Escape(path), file->size(), first.size, other_ranks.size()));
}

// Warns if the sizes show that the files belong to another conversion.
void WarnOfSizes(const AgainstReport& report, uint64_t found, std::vector<Warning>& warnings) {
  const auto others = std::count_if(report.differences.begin(), report.differences.end(),
                                    [](const AgainstReport::FileDifference& difference) {
                                      return difference.found_size &&
                                             *difference.found_size != difference.expected_size;
                                    });
  if (static_cast<uint64_t>(others) == found) {
    warnings.push_back({WarningCode::kOtherConversion,
                        "no file has the planned size; check the source and the strategies"});
  }
}

// Adds files that readers of the folder take and that are in no manifest.
Status AddLeftOvers(const std::string& folder, const ManifestSet& set, DamageReport& report) {
  const auto origin =
      Storage::Of(folder).ReadWhole(fmt::format("{}/{}", folder, kOriginName), kMaxOriginBytes);
  const bool has_strategy =
      std::any_of(set.manifests.begin(), set.manifests.end(), [](const Manifest& manifest) {
        return !manifest.source_strategy.empty() || !manifest.target_strategy.empty();
      });
  SetInFolder rules = RulesOf(folder, origin.ok() ? *origin : std::string(), has_strategy);
  for (const Manifest& manifest : set.manifests) {
    for (const ManifestFile& file : manifest.files) rules.files.insert(file.path);
  }
  RESHARD_ASSIGN_OR_RETURN(const std::vector<LeftOver> found, FindLeftOvers(rules));
  for (const LeftOver& left : found) {
    report.damages.push_back({.path = left.path,
                              .kind = DamageReport::Damage::Kind::kNotListed,
                              .detail = left.why + "; remove it, or move it to another folder"});
  }
  return {};
}

}  // namespace

inline namespace v0_1 {

Result<DamageReport> Verify(const std::string& target,
                            const std::shared_ptr<const EncryptionKey>& key,
                            const RunOptions& run) {
  return CatchOutOfMemory([&]() -> Result<DamageReport> {
    if (target.empty()) {
      return InvalidArgumentError("the path of the folder to verify is empty");
    }
    RESHARD_RETURN_IF_ERROR(CheckJobs(run.jobs));
    const RetryScope retries(run);
    RESHARD_RETURN_IF_ERROR(Storage::Of(target).CheckIsFolder(target));
    const FileUse use;
    if (key != nullptr) NoteKeyFile(key->file());
    RESHARD_ASSIGN_OR_RETURN(const ManifestSet set, ManifestSet::Open(target));
    RESHARD_RETURN_IF_ERROR(CheckOutputsOutside(target));
    const CountedWork work(run, {.total_bytes = set.bytes(), .total_files = set.files()});
    RESHARD_ASSIGN_OR_RETURN(DamageReport report, FindDamage(set, key, work.work()));
    RESHARD_RETURN_IF_ERROR(AddLeftOvers(target, set, report));
    return report;
  });
}

Result<AgainstReport> VerifyAgainst(const ConversionSpec& spec, const RunOptions& run) {
  return CatchOutOfMemory([&]() -> Result<AgainstReport> {
    const RetryScope retries(run);
    RESHARD_RETURN_IF_ERROR(
        CheckSourceNamed(spec.source.path, spec.source.files, spec.target.folder));
    const Completed all = Complete(spec);
    const ConversionSpec& completed = all.spec;
    RESHARD_RETURN_IF_ERROR(CheckAgainst(completed));
    RESHARD_RETURN_IF_ERROR(CheckJobs(run.jobs));
    const std::string& folder = completed.target.folder;
    RESHARD_RETURN_IF_ERROR(Storage::Of(folder).CheckIsFolder(folder));
    const FileUse use;
    if (completed.target.encryption_key != nullptr) {
      NoteKeyFile(completed.target.encryption_key->file());
    }
    const size_t workers = Workers(run.jobs);
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget budget, DivideMemory(0, workers));
    RESHARD_ASSIGN_OR_RETURN(
        OpenedConversion opened,
        OpenUnplanned(completed, {.window_bytes = WindowsKept(),
                                  .stop = run.stop,
                                  // A conversion with `partial` has taken them, too.
                                  .lone_parts = LoneParts::kTaken}));
    OpenedSource& source = *opened.source;
    RESHARD_RETURN_IF_ERROR(CheckTaken(all, source));
    ConvertOptions conversion;
    static_cast<ConversionSpec&>(conversion) = completed;
    conversion.run = run;
    if (!completed.target.format) {
      RESHARD_ASSIGN_OR_RETURN(conversion.target.format, FormatThere(source, completed));
      RESHARD_RETURN_IF_ERROR(RemakeTarget(conversion.target, completed.selection, opened));
    }
    const std::vector<int64_t> files = opened.target().FilesOf(completed.selection.ranks);
    std::vector<std::string> paths;
    paths.reserve(files.size());
    for (const int64_t file : files) paths.push_back(opened.target().PathOf(file));
    RESHARD_RETURN_IF_ERROR(CheckOutputsOutside(folder, paths));
    opened.made.files().set_files_with_crc(FilesWithCrc(opened.target(), files, folder));
    RESHARD_ASSIGN_OR_RETURN(opened.plan,
                             PlanConversion(source, opened.target(), conversion, budget));
    KeepUsualWindows(source);

    AgainstReport report;
    static_cast<Findings&>(report) = std::move(opened.plan.findings);
    report.from_origin = all.taken;
    report.files = files.size();
    report.bytes = opened.work().bytes_written;
    const int64_t target_ranks = source.rule().target_ranks();
    RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> others,
                             OtherRankFolders(folder, target_ranks));
    if (!others.empty()) {
      report.warnings.push_back(
          {WarningCode::kRanksBeyondStrategy,
           fmt::format("{}: {} rank folders are beyond the {} target ranks, "
                       "not read: {}",
                       Escape(folder), others.size(), target_ranks, FirstOf(others))});
    }
    RESHARD_RETURN_IF_ERROR(CheckIsNoSet(completed, others, opened.work().targets.front()));
    // Before much is read; the replicas are all compared in the end.
    const ParameterChoice& choice = opened.target().choice();
    const std::vector<int64_t> ranks = RanksOf(opened.target(), files);
    const std::vector<int64_t> stages = StagesOf(source.rule(), ranks);
    RESHARD_ASSIGN_OR_RETURN(
        StrategyFindings of_strategy,
        CheckStrategy(source, choice, stages,
                      {.only_wrong_strategy = true, .workers = workers, .stop = run.stop}));
    for (Warning& warning : of_strategy.warnings) report.warnings.push_back(std::move(warning));
    RESHARD_RETURN_IF_ERROR(CheckStagesOfFiles(source, choice));

    RESHARD_ASSIGN_OR_RETURN(const CrcFiles crc,
                             FindCrcFiles(source, RanksOfStages(source, ranks)));
    const CountedWork work(
        run, {.total_bytes = BytesToRead(source, crc, opened.target(), files, folder)});
    RESHARD_RETURN_IF_ERROR(CheckCrcFiles(source, crc, work.work()));
    TargetComparison comparison(source.files(), folder,
                                completed.target.encryption_key == nullptr
                                    ? completed.source.key
                                    : completed.target.encryption_key,
                                work.work());
    for (const PlanReport::TargetFile& file : opened.work().targets) {
      if (run.stop.stop_requested()) return CancelledError("stopped while planning");
      RESHARD_ASSIGN_OR_RETURN(PlanHandle plan, opened.TakePlan(file));
      RESHARD_RETURN_IF_ERROR(comparison.Add(std::move(plan)));
    }
    RESHARD_RETURN_IF_ERROR(comparison.Finish());
    if (comparison.found() == 0) {
      return NotFoundError(
          fmt::format("{}: all {} target files are missing, such as {}; was another prefix used?",
                      Escape(folder), files.size(), Escape(paths.front())));
    }
    report.differences = comparison.differences();
    WarnOfSizes(report, comparison.found(), report.warnings);
    RESHARD_ASSIGN_OR_RETURN(
        report.replicas,
        CompareReplicas(source.tensors(), source.rule().source(), choice, stages, work.work()));
    RESHARD_RETURN_IF_ERROR(source.files().VerifyUnchanged());
    return report;
  });
}

}  // namespace v0_1
}  // namespace reshard
