#include "reshard/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "format/container_table/container_table.h"
#include "src/base/natural_order.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/conversion_plan.h"
#include "src/convert/memory_budget.h"
#include "src/convert/opened_conversion.h"
#include "src/convert/opened_source.h"
#include "src/convert/source_checks.h"
#include "src/convert/stated_places.h"
#include "src/convert/timeline_recorder.h"
#include "src/convert/write_targets.h"
#include "src/io/shared_work.h"
#include "src/io/source_files.h"
#include "src/io/storage.h"
#include "src/job/target_check.h"
#include "src/mindspore/each_file.h"
#include "src/mindspore/merge_target.h"
#include "src/mindspore/strategy_loader.h"
#include "src/os/file_use.h"
#include "src/os/retries.h"
#include "src/os/staged_file.h"
#include "src/os/storage_kind.h"
#include "src/os/write_file.h"
#include "src/source/table_cache.h"
#include "src/verify/parameter_comparison.h"
#include "src/write/part_sink.h"

namespace reshard {
namespace {

// Adds the *.ckpt and *.safetensors of a folder in natural order, without hidden ones.
Status AddSegments(const std::string& folder, std::vector<std::string>& files) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries,
                           Storage::Of(folder).List(folder));
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : entries) {
    const bool hidden = entry.name.starts_with('.');
    const bool counts = ContainerNamed(entry.name) != nullptr;
    if (entry.is_regular && !hidden && counts) names.push_back(entry.name);
  }
  if (names.empty()) {
    return NotFoundError(
        fmt::format("{}: has no *.ckpt files and no *.safetensors files", Escape(folder)));
  }
  std::sort(names.begin(), names.end(), IsNaturallyBefore);
  for (const std::string& name : names) {
    files.push_back((std::filesystem::path(folder) / name).string());
  }
  return {};
}

Result<std::vector<std::string>> ListSourceFiles(const MergeOptions& options) {
  std::vector<std::string> files;
  for (const std::string& source : options.files) {
    RESHARD_ASSIGN_OR_RETURN(const PathKind kind, Storage::Of(source).KindOf(source));
    if (kind != PathKind::kDirectory) {
      files.push_back(source);
    } else if (options.segments) {
      RESHARD_RETURN_IF_ERROR(AddSegments(source, files));
    } else {
      return InvalidArgumentError(fmt::format(
          "{}: is a folder; name the files with the slices, in the order of their ranks",
          Escape(source)));
    }
  }
  if (files.empty()) return InvalidArgumentError("no file to merge is named");
  std::set<std::string_view> seen;
  for (const std::string& file : files) {
    if (seen.insert(file).second) continue;
    return InvalidArgumentError(fmt::format("{}: is named twice", Escape(file)));
  }
  return files;
}

// A shell lists rank_10 before rank_2, and the files do not tell whether another order was meant.
void WarnOfOrder(const std::vector<std::string>& files, std::vector<Warning>& warnings) {
  const auto place = std::adjacent_find(
      files.begin(), files.end(),
      [](const std::string& a, const std::string& b) { return IsNaturallyBefore(b, a); });
  if (place == files.end()) return;
  warnings.push_back(
      {WarningCode::kSourceOrder, fmt::format("slices are joined in the order in which the files "
                                              "are named, {} before {}; make sure that "
                                              "it is the order of their ranks",
                                              Escape(*place), Escape(*(place + 1)))});
}

Result<std::unique_ptr<OpenedSource>> Open(const std::vector<std::string>& paths,
                                           const ConvertOptions& conversion,
                                           const MemoryBudget& budget) {
  std::vector<LoneFile> files;
  files.reserve(paths.size());
  for (const std::string& path : paths) files.push_back({path, path});
  return OpenEachFile(files, LimitsOf(conversion, budget), conversion.source.key,
                      ChoiceOf(conversion.selection));
}

// Opens all files, which have to be in the same container. All tables stay in memory.
Result<std::vector<TableHandle>> ReadTables(OpenedSource& source) {
  std::vector<TableHandle> tables;
  tables.reserve(source.chosen().size());
  for (const ChosenFile& file : source.chosen()) {
    RESHARD_ASSIGN_OR_RETURN(TableHandle table, source.tables().Get(file.id));
    tables.push_back(std::move(table));
    const Container& first = tables.front()->table().container();
    const Container& container = tables.back()->table().container();
    if (&container == &first) continue;
    return MismatchError(fmt::format("{}: is a {} file, but {} a {} file; give files of one format",
                                     Escape(source.path(file)), container.name,
                                     Escape(source.path(source.chosen().front())), first.name));
  }
  return tables;
}

Status CheckOptions(const MergeOptions& options) {
  RESHARD_RETURN_IF_ERROR(CheckTakes(options, kMergeCall, "Merge"));
  if (options.segments && !options.source.strategy.empty()) {
    return InvalidArgumentError("segments hold whole parameters and have no strategy");
  }
  const std::optional<Selection::Unmatched>& unmatched = options.selection.unmatched;
  if (unmatched && unmatched != Selection::Unmatched::kCopy) {
    return InvalidArgumentError("`unmatched` of a merge is kCopy, or not given");
  }
  return CheckJobs(options.run.jobs);
}

// Refuses files that state another place than that which the merge takes them for.
Status CheckPlaces(const MergeOptions& options, const OpenedSource& source,
                   const std::vector<TableHandle>& tables) {
  if (options.checks.partial) return {};
  const TakenAs as = options.segments                  ? TakenAs::kWhole
                     : options.source.strategy.empty() ? TakenAs::kSlices
                                                       : TakenAs::kPlaced;
  return CheckSavedOffsets(tables, source.files(), as);
}

Result<std::unique_ptr<MergeTarget>> MakeTarget(const MergeOptions& options, OpenedSource& source,
                                                const std::vector<TableHandle>& tables) {
  const MergeFiles files{tables,
                         source.files(),
                         source.tables(),
                         options.output,
                         ChoiceOf(options.selection),
                         options.selection.unmatched == Selection::Unmatched::kCopy};
  if (options.segments) return MergeSegments(files);
  if (options.source.strategy.empty()) return MergeSlices(files, nullptr);
  RESHARD_ASSIGN_OR_RETURN(const Strategy strategy, LoadStrategy(options.source.strategy));
  return MergeSlices(files, &strategy);
}

Status CheckEqual(SourceFiles& files, const std::vector<EqualContents>& groups,
                  const SharedWork& work) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<ContentDifference> differences,
                           CompareContents(files, groups, work));
  if (differences.empty()) return {};
  std::vector<std::string> lines;
  for (const ContentDifference& difference : differences) {
    const EqualContents& group = groups[difference.group];
    lines.push_back(fmt::format("{} from byte {} on in {} and {}", Quote(group.name),
                                difference.offset, Escape(files.path(group.contents.front().file)),
                                Escape(files.path(group.contents[difference.content].file))));
  }
  return MismatchError(
      fmt::format("files that have to agree on a parameter differ; leave out the wrong ones, or, "
                  "for slices, check the strategy: {}",
                  FirstOf(lines)));
}

// The one file of a merge; it has no record.
class MergedFile final : public PartSink {
 public:
  MergedFile(const SingleOutput& output, uint64_t size) : output_(output), size_(size) {}

  Result<bool> IsKept(const FilePart& /*part*/, const std::stop_token& /*stop*/) const override {
    return false;
  }
  Result<StagedFile> Create(const FilePart& /*part*/, const WriteOptions& options) const override {
    return output_.Create(size_, options);
  }
  Status Finish(const FilePart& /*part*/, StagedFile file, const FinishedPart& /*finished*/,
                const std::stop_token& /*stop*/) const override {
    return file.Finish();
  }

 private:
  const SingleOutput& output_;
  const uint64_t size_;
};

}  // namespace

inline namespace v0_1 {

Result<MergeReport> Merge(const MergeOptions& options) {
  return CatchOutOfMemory([&]() -> Result<MergeReport> {
    RESHARD_RETURN_IF_ERROR(CheckOptions(options));
    FileUse use;
    const RetryScope retries(options.run);
    RESHARD_RETURN_IF_ERROR(use.AddOutput(options.output));
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget first,
                             DivideMemory(options.memory_limit, Workers(options.run.jobs)));
    const MemoryWatch watch(WatchOf(first));
    RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ListSourceFiles(options));
    if (!options.checks.partial) RESHARD_RETURN_IF_ERROR(CheckAllParts(paths));
    OpenedConversion opened;
    RESHARD_ASSIGN_OR_RETURN(opened.source, Open(paths, options, first));
    OpenedSource& source = *opened.source;
    RESHARD_ASSIGN_OR_RETURN(const std::vector<TableHandle> tables, ReadTables(source));
    RESHARD_RETURN_IF_ERROR(CheckPlaces(options, source, tables));
    RESHARD_ASSIGN_OR_RETURN(std::unique_ptr<MergeTarget> target,
                             MakeTarget(options, source, tables));
    const std::vector<EqualContents>& equal = target->equal();
    opened.made.lone = std::move(target);
    RESHARD_ASSIGN_OR_RETURN(opened.plan, PlanConversion(source, opened.target(), options, first));
    MergeReport report;
    static_cast<Findings&>(report) = std::move(opened.plan.findings);
    report.sources = paths;
    if (!options.segments) WarnOfOrder(paths, report.warnings);
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget budget,
                             FitMemory(first, HeldOf(source), opened.work(), report.warnings));
    RESHARD_ASSIGN_OR_RETURN(SingleOutput output,
                             SingleOutput::Claim(options.output, options.force));
    const PlanReport::TargetFile& file = opened.work().targets.front();
    RESHARD_RETURN_IF_ERROR(CheckSpace(output.folder(), file.size).status());

    report.bytes_written = file.size;
    report.bytes_compared = BytesToCompare(equal);
    std::set<int64_t> numbers;
    for (const ChosenFile& chosen : source.chosen()) numbers.insert(chosen.rank);
    RESHARD_ASSIGN_OR_RETURN(const CrcFiles checked, FindCrcFiles(source, numbers));
    const CountedWork work(
        options.run, {.total_bytes = checked.bytes + report.bytes_compared + report.bytes_written,
                      .phase = Progress::Phase::kCheck,
                      .total_files = 1});
    RESHARD_RETURN_IF_ERROR(CheckCrcFiles(source, checked, work.work()));
    RESHARD_RETURN_IF_ERROR(CheckEqual(source.files(), equal, work.work()));
    work.Enter(Progress::Phase::kWrite);
    TimelineRecorder timeline(false);
    const std::vector<TargetShare> whole = {{0, {0, {0, file.size}}}};
    RESHARD_RETURN_IF_ERROR(WriteTargets({opened, options, budget, timeline}, whole,
                                         {MergedFile(output, file.size),
                                          StorageOf(output.folder().fd()), /*fingerprint=*/""},
                                         work.work())
                                .status());
    work.Enter(Progress::Phase::kPublish);
    RESHARD_RETURN_IF_ERROR(source.files().VerifyUnchanged());
    RESHARD_RETURN_IF_ERROR(output.Publish());
    return report;
  });
}

}  // namespace v0_1
}  // namespace reshard
