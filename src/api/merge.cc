#include "reshard/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "format/container/container.h"
#include "format/encoding/encoder.h"
#include "reshard/file_use.h"
#include "src/base/natural_order.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/memory_budget.h"
#include "src/convert/opened_source.h"
#include "src/convert/stated_places.h"
#include "src/io/shared_work.h"
#include "src/io/source_files.h"
#include "src/job/target_check.h"
#include "src/mindspore/merge_plan.h"
#include "src/mindspore/strategy_loader.h"
#include "src/os/paths.h"
#include "src/os/staged_file.h"
#include "src/os/storage_kind.h"
#include "src/os/threads.h"
#include "src/os/write_file.h"
#include "src/source/table_cache.h"
#include "src/verify/crc_check.h"
#include "src/verify/parameter_comparison.h"
#include "src/write/part_sink.h"
#include "src/write/part_writer.h"

namespace reshard {
namespace {

// All files count at the same time, so that their indexes stay.
constexpr size_t kTableBytes = size_t{64} << 20;

// Adds the *.ckpt and *.safetensors of a folder, but for hidden ones, in natural order.
Status AddSegments(const std::string& folder, std::vector<std::string>& files) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, ListDirectory(folder));
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : entries) {
    const bool hidden = entry.name.starts_with('.');
    const bool counts = entry.name.ends_with(ExtensionOf(Container::kMindSpore)) ||
                        entry.name.ends_with(ExtensionOf(Container::kSafetensors));
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

Result<std::vector<std::string>> ListFiles(const MergeOptions& options) {
  std::vector<std::string> files;
  for (const std::string& source : options.sources) {
    RESHARD_ASSIGN_OR_RETURN(const PathKind kind, KindOf(source));
    if (kind != PathKind::kDirectory) {
      files.push_back(source);
    } else if (options.kind == MergeKind::kSegments) {
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

// A shell lists rank_10 before rank_2; nothing in the files tells that it was meant otherwise.
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

// The files of a merge, open. Neither movable nor copyable: its parts refer to one another.
struct OpenedFiles {
  OpenedFiles(const MemoryBudget& budget, const std::stop_token& stop,
              std::shared_ptr<const EncryptionKey> key)
      : files({.window_budget = budget.window_bytes,
               .stop = stop,
               .key = std::move(key),
               .pages = budget.measured->pages}),
        cache(files, kTableBytes) {}
  OpenedFiles(const OpenedFiles&) = delete;
  OpenedFiles& operator=(const OpenedFiles&) = delete;

  SourceFiles files;
  TableCache cache;
  std::vector<TableHandle> tables;  // in the order of the files
};

Status Open(const std::vector<std::string>& paths, OpenedFiles& opened,
            std::vector<Warning>& warnings) {
  FirstFew plain;
  for (const std::string& path : paths) {
    const FileId file = opened.files.Add(path);
    RESHARD_ASSIGN_OR_RETURN(TableHandle index, opened.cache.Get(file));
    opened.tables.push_back(std::move(index));
    RESHARD_ASSIGN_OR_RETURN(const SourceReader reader, opened.files.OpenReader(file));
    if (reader.decryption() == Decryption::kNone) plain.Add(Escape(path));
    const Container first = opened.tables.front()->table().container();
    const Container container = opened.tables.back()->table().container();
    if (container != first) {
      return MismatchError(fmt::format(
          "{}: is a {} file, but {} a {} file; the merged file is of one format, so all have to be",
          Escape(path), ExtensionOf(container), Escape(paths.front()), ExtensionOf(first)));
    }
  }
  if (opened.files.key() != nullptr && plain.count() > 0) {
    warnings.push_back(UnusedKeyWarning(plain, paths.size()));
  }
  return {};
}

// Refuses files that state another place than that which the merge takes them for.
Status CheckPlaces(const MergeOptions& options, const OpenedFiles& opened) {
  if (options.partial) return {};
  std::vector<FileWithOffsets> files;
  for (const TableHandle& table : opened.tables) {
    files.push_back({opened.files.path(table->file()), &*table, table->sharding_info()});
  }
  const TakenAs as = options.kind == MergeKind::kSegments ? TakenAs::kWhole
                     : options.strategy.empty()           ? TakenAs::kSlices
                                                          : TakenAs::kPlaced;
  return CheckSavedOffsets(files, as);
}

Result<MergePlan> PlanMerge(const MergeOptions& options, OpenedFiles& opened) {
  const MergeFiles files{opened.tables,
                         opened.files,
                         opened.cache,
                         options.output,
                         {options.include, options.exclude, {}},
                         options.copies_unmatched};
  if (options.kind == MergeKind::kSegments) return PlanSegments(files);
  if (options.strategy.empty()) return PlanSlices(files, nullptr);
  RESHARD_ASSIGN_OR_RETURN(const CheckedStrategy strategy, LoadStrategy(options.strategy));
  return PlanSlices(files, &strategy);
}

// Those that state a CRC.
std::vector<const IndexedFile*> FilesWithCrc(const OpenedFiles& opened) {
  std::vector<const IndexedFile*> found;
  for (const TableHandle& index : opened.tables) {
    if (index->crc()) found.push_back(&*index);
  }
  return found;
}

Status CheckEqual(OpenedFiles& opened, const std::vector<EqualContents>& groups,
                  const SharedWork& work) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<ContentDifference> differences,
                           CompareContents(opened.files, groups, work));
  if (differences.empty()) return {};
  std::vector<std::string> lines;
  for (const ContentDifference& difference : differences) {
    const EqualContents& group = groups[difference.group];
    lines.push_back(
        fmt::format("{} from byte {} on in {} and {}", Quote(group.name), difference.offset,
                    Escape(opened.files.path(group.contents.front().file)),
                    Escape(opened.files.path(group.contents[difference.content].file))));
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

// Divides what the plan, which is in memory, leaves.
Result<MemoryBudget> FitMemory(const MemoryBudget& budget, const OpenedFiles& opened,
                               const TargetPlan& plan, std::vector<Warning>& warnings) {
  const SourceFiles& files = opened.files;
  WorkList work;
  TargetFileSummary& target = work.targets.emplace_back();
  target.path = plan.path;
  target.size = plan.size;
  work.bytes_written = plan.size;
  for (const TableHandle& index : opened.tables) {
    work.sources.push_back({0, files.path(index->file()), index->file_size()});
  }
  return FitMemory(budget, {files.PagesPeak(), files.HeldForHeaders(), files.Buffered(), 0}, work,
                   warnings);
}

Status Write(OpenedFiles& opened, TargetPlan plan, const SingleOutput& output,
             const MemoryBudget& budget, const MergeOptions& options, const SharedWork& shared) {
  WriteBack write_back(budget.write_back_bytes);
  const uint64_t size = plan.size;
  opened.files.SetWindowBudget(budget.window_bytes, budget.header_bytes);
  PartWork work;
  work.parts = {{0, {0, size}}};
  work.groups = {{0}};
  work.plan = [kept = std::make_shared<const TargetPlan>(std::move(plan))](size_t) {
    return Result<PlanHandle>(kept);
  };
  work.write = {WriteMode::kAuto, &write_back};
  work.progress = [&shared](uint64_t bytes, bool) {
    if (shared.progress) shared.progress(bytes);
  };
  const LaneOptions lanes =
      LanesFor(budget, StorageOf(output.folder().fd()), std::array<uint64_t, 1>{size});
  WriteCounts counts;
  return WriteParts(opened.files, work, MergedFile(output, size), lanes, counts, options.run.stop);
}

}  // namespace

Result<MergeReport> v0_1::Merge(const MergeOptions& options) {
  return CatchOutOfMemory([&]() -> Result<MergeReport> {
    RESHARD_RETURN_IF_ERROR(CheckJobs(options.run.jobs));
    FileUse use;
    RESHARD_RETURN_IF_ERROR(use.AddOutput(options.output));
    if (options.kind == MergeKind::kSegments && !options.strategy.empty()) {
      return InvalidArgumentError("segments hold whole parameters and have no strategy");
    }
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget first,
                             DivideMemory(options.memory_limit, Workers(options.run.jobs)));
    const MemoryWatch watch(WatchOf(first));
    MergeReport report;
    RESHARD_ASSIGN_OR_RETURN(report.sources, ListFiles(options));
    if (!options.partial) RESHARD_RETURN_IF_ERROR(CheckAllParts(report.sources));
    if (options.kind == MergeKind::kSlices) WarnOfOrder(report.sources, report.warnings);
    OpenedFiles opened(first, options.run.stop, options.key);
    RESHARD_RETURN_IF_ERROR(Open(report.sources, opened, report.warnings));
    RESHARD_RETURN_IF_ERROR(CheckPlaces(options, opened));
    RESHARD_ASSIGN_OR_RETURN(MergePlan plan, PlanMerge(options, opened));
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget budget,
                             FitMemory(first, opened, plan.target, report.warnings));
    RESHARD_ASSIGN_OR_RETURN(SingleOutput output,
                             SingleOutput::Claim(options.output, options.force));
    RESHARD_RETURN_IF_ERROR(CheckSpace(output.folder(), plan.target.size).status());

    report.notes = std::move(plan.notes);
    report.parameters = plan.target.parameters;
    report.bytes_written = plan.target.size;
    report.bytes_compared = BytesToCompare(plan.equal);
    const std::vector<const IndexedFile*> checked = FilesWithCrc(opened);
    uint64_t bytes = report.bytes_compared + report.bytes_written;
    for (const IndexedFile* index : checked) bytes += index->file_size();
    const CountedWork work(options.run, {.total_bytes = bytes, .phase = Phase::kCheck});
    const auto check_crc = [&](size_t i, const std::stop_token& stop) {
      return CheckCrc(opened.files, *checked[i], work.work().progress, stop);
    };
    RESHARD_RETURN_IF_ERROR(
        RunWorkers(work.work().workers, checked.size(), check_crc, options.run.stop));
    RESHARD_RETURN_IF_ERROR(CheckEqual(opened, plan.equal, work.work()));
    work.Enter(Phase::kWrite);
    RESHARD_RETURN_IF_ERROR(
        Write(opened, std::move(plan.target), output, budget, options, work.work()));
    work.Enter(Phase::kPublish);
    RESHARD_RETURN_IF_ERROR(opened.files.VerifyUnchanged());
    RESHARD_RETURN_IF_ERROR(output.Publish());
    return report;
  });
}

}  // namespace reshard
