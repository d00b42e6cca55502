#include "reshard/target_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "format/container_table/container_table.h"
#include "src/base/memory_watch.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/memory_budget.h"
#include "src/convert/opened_conversion.h"
#include "src/convert/option_checks.h"
#include "src/convert/plan_cache.h"
#include "src/convert/read_turns.h"
#include "src/convert/rounded_count.h"
#include "src/convert/source_checks.h"
#include "src/digest/crc32.h"
#include "src/io/shared_work.h"
#include "src/job/publication.h"
#include "src/os/file_use.h"
#include "src/os/memory_usage.h"
#include "src/os/retries.h"
#include "src/source/array_crc.h"
#include "src/source/indexed_file.h"
#include "src/write/gather.h"
#include "src/write/lost_in_casts.h"
#include "src/write/stream_file.h"

namespace reshard {

inline namespace v0_1 {

class TargetView::Impl {
 public:
  Impl(OpenedConversion opened, const ConvertOptions& options)
      : opened_(std::move(opened)),
        checks_(options.checks),
        run_(options.run),
        crcs_(std::make_unique<StatedCrcOfFile[]>(work().targets.size())) {
    for (const ChosenFile& file : source().chosen()) chosen_.emplace(file.rank, file.id);
  }

  const Findings& findings() const { return opened_.plan.findings; }
  Findings& findings() { return opened_.plan.findings; }
  const WorkList& work() const { return opened_.plan.work; }
  OpenedSource& source() { return *opened_.source; }
  PlanCache& plans() { return *opened_.plan.kept; }
  void SetBudget(const MemoryBudget& budget, bool keeps_pages) {
    budget_ = budget;
    SourceFiles& files = source().files();
    uint64_t windows = budget.window_bytes;
    if (keeps_pages) {
      files.KeepPages();
      // Windows are maps of pages that stay anyway, so plans get their share.
      if (!files.HasReadFiles()) budget_.plan_bytes += windows;
      // The kernel need not make the maps again.
      constexpr uint64_t kMapped = uint64_t{2} << 30;
      const bool all_mapped = !files.HasReadFiles() && AddressLimit() == UINT64_MAX;
      if (all_mapped) windows = std::max(windows, kMapped);
    }
    files.SetWindowBudget(windows, budget.header_bytes);
    plans().SetMost(budget_.plan_bytes);
    turns_.SetMost(MostOpen(budget_, work()));
  }

  Status Read(size_t file, ByteRange range, std::span<std::byte> out) {
    RESHARD_RETURN_IF_ERROR(CheckRange(file, range));
    const ReadTurns::Turn turn(turns_, file);
    RESHARD_ASSIGN_OR_RETURN(const PlanHandle plan, PlanOf(file));
    RESHARD_RETURN_IF_ERROR(Fill(*plan, range, out));
    return AddCrc(file, *plan, range, out);
  }

  // Makes the checks that Convert makes before it writes the files.
  Status CheckSources() {
    std::set<int64_t> ranks;
    std::vector<int64_t> files;
    for (const PlanReport::TargetFile& target : work().targets) {
      ranks.insert(target.source_ranks.begin(), target.source_ranks.end());
      files.push_back(target.rank);
    }
    RESHARD_ASSIGN_OR_RETURN(
        const SourceChecks checks,
        FindChecks(source(), ranks, RanksOf(opened_.target(), files), checks_));
    const CountedWork count(run_, {.total_bytes = checks.bytes, .phase = Progress::Phase::kCheck});
    return RunChecks(source(), checks, opened_.target().choice(), checks_, count.work()).status();
  }

  Result<std::vector<Warning>> Stream(
      size_t file, ByteRange range, const std::function<Status(std::span<const std::byte>)>& take) {
    RESHARD_RETURN_IF_ERROR(CheckRange(file, range));
    // Without a turn: `take` may read other files.
    RESHARD_ASSIGN_OR_RETURN(const PlanHandle plan, PlanOf(file));
    const CountedWork count(
        run_, {.total_bytes = range.length, .phase = Progress::Phase::kWrite, .total_files = 1});
    const LaneOptions lanes = LanesFor(budget_, StorageKind::kMemory, {&range.length, 1});
    const StreamOptions options{.lanes = lanes.lanes,
                                .chunk_bytes = lanes.chunk_bytes,
                                .digests = checks_.checksum,
                                .stop = run_.stop};
    // The proof has added it up by the end of the file.
    const bool has_crc =
        options.digests && range.length == plan->size && plan->StatesCrc(CrcPlace::kBehind);
    LostInCasts lost;
    const auto pass_on = [&](uint64_t offset, std::span<std::byte> chunk) -> Status {
      if (checks_.refuse_overflow) {
        RESHARD_RETURN_IF_ERROR(CheckNoOverflow(plan->path, lost.values()));
      }
      if (!has_crc) RESHARD_RETURN_IF_ERROR(AddCrc(file, *plan, {offset, chunk.size()}, chunk));
      RESHARD_RETURN_IF_ERROR(take(chunk));
      if (count.work().progress) count.work().progress(chunk.size());
      return {};
    };
    RESHARD_RETURN_IF_ERROR(StreamFile(source().files(), *plan, range, options, lost, pass_on));
    RESHARD_RETURN_IF_ERROR(source().files().VerifyUnchanged());
    std::map<std::string, LostValues> by_name;
    for (const LostValues& values : lost.values()) by_name.emplace(values.name, values);
    PublishReport report;
    RESHARD_RETURN_IF_ERROR(ReportLost({}, by_name, report));
    return std::move(report.warnings);
  }

  Status VerifyUnchanged(size_t file) {
    RESHARD_RETURN_IF_ERROR(CheckRange(file, {}));
    std::vector<FileId> sources;
    for (const int64_t rank : work().targets[file].source_ranks) {
      const auto [first, last] = chosen_.equal_range(rank);
      for (auto found = first; found != last; ++found) sources.push_back(found->second);
    }
    for (const ChosenFile& companion : source().companions()) {
      const bool is_copied = work().targets[file].kind == FileKind::kCompanion &&
                             work().targets[file].path == companion.relative_path;
      if (is_copied) sources.push_back(companion.id);
    }
    return source().files().VerifyUnchanged(sources);
  }

  Status Prefetch(size_t file, ByteRange range) {
    RESHARD_RETURN_IF_ERROR(CheckRange(file, range));
    const ReadTurns::Turn turn(turns_, file);
    RESHARD_ASSIGN_OR_RETURN(const PlanHandle plan, PlanOf(file));
    const TargetBytes bytes{plan.get(), range, range.end()};
    return PrefetchTargets(source().files(), {&bytes, 1});
  }

 private:
  struct StatedCrcOfFile {
    std::mutex mutex;
    std::optional<CrcText> text;  // once it was asked for; guarded by mutex
  };

  // The range in a file that may have its CRC.
  static ByteRange RangeOfCrc(const TargetPlan& plan) {
    if (plan.crc->place == CrcPlace::kInHeader) return {0, kCrcHeadBytes};
    const CrcText text = plan.crc->text({}, plan.size, 0).value();
    return {text.offset, text.bytes.size()};
  }

  Status CheckRange(size_t file, ByteRange range) const {
    if (file >= work().targets.size()) {
      return InvalidArgumentError(
          fmt::format("there is no file {}: the view has {}", file, work().targets.size()));
    }
    const PlanReport::TargetFile& target = work().targets[file];
    if (range.offset <= target.size && range.length <= target.size - range.offset) return {};
    return InvalidArgumentError(fmt::format("{}: {} bytes from {} on are asked for of {}",
                                            Escape(target.path), range.length, range.offset,
                                            target.size));
  }

  Result<PlanHandle> PlanOf(size_t file) {
    const PlanReport::TargetFile& target = work().targets[file];
    if (PlanHandle known = plans().Find(target.rank)) return known;
    // One at a time: threads that need the same plan wait for the one that makes it.
    const std::lock_guard lock(planning_);
    if (PlanHandle known = plans().Find(target.rank)) return known;
    plans().MakeRoom(work().largest_plan_bytes);
    RESHARD_ASSIGN_OR_RETURN(PlanHandle plan, PlanAgain(opened_.target(), target));
    plans().Add(target.rank, plan, BytesOf(*plan));
    return plan;
  }

  // Writes the file's stated CRC into `out`, which has the bytes `range`.
  Status AddCrc(size_t file, const TargetPlan& plan, ByteRange range, std::span<std::byte> out) {
    if (!plan.crc || Overlap(RangeOfCrc(plan), range).length == 0) return {};
    // The first thread that asks for the number computes it, and others wait for it.
    StatedCrcOfFile& stated = crcs_[file];
    const std::lock_guard lock(stated.mutex);
    if (!stated.text) {
      RESHARD_ASSIGN_OR_RETURN(stated.text, FindCrc(plan));
    }
    const CrcText& text = *stated.text;
    const ByteRange both = Overlap({text.offset, text.bytes.size()}, range);
    if (both.length == 0) return {};
    std::memcpy(out.data() + (both.offset - range.offset),
                text.bytes.data() + (both.offset - text.offset), both.length);
    return {};
  }

  // The bytes as planned: with 0 in the place of a CRC.
  Status Fill(const TargetPlan& plan, ByteRange range, std::span<std::byte> out) {
    return InSteps(range, kChunkBytes, run_.stop, {}, [&](ByteRange part) -> Status {
      return FillTarget(source().files(), plan, part.offset,
                        out.subspan(part.offset - range.offset, part.length), nullptr, nullptr);
    });
  }

  // Calls `take` with the planned bytes `range`, in order.
  Status ReadPlanned(const TargetPlan& plan, ByteRange range,
                     const std::function<void(std::span<const std::byte>)>& take) {
    std::vector<std::byte> chunk(std::min(range.length, kChunkBytes));
    return InSteps(range, kChunkBytes, run_.stop, {}, [&](ByteRange part) -> Status {
      const std::span<std::byte> bytes(chunk.data(), part.length);
      RESHARD_RETURN_IF_ERROR(
          FillTarget(source().files(), plan, part.offset, bytes, nullptr, nullptr));
      take(bytes);
      return {};
    });
  }

  Result<CrcText> FindCrc(const TargetPlan& plan) {
    if (plan.crc->place == CrcPlace::kBehind) {
      Crc32 crc;
      RESHARD_RETURN_IF_ERROR(
          ReadPlanned(plan, {0, RangeOfCrc(plan).offset},
                      [&crc](std::span<const std::byte> bytes) { crc.Update(bytes); }));
      return plan.crc->text({}, plan.size, crc.value());
    }
    std::array<std::byte, kCrcHeadBytes> buffer;
    const auto head = std::span(buffer).first(std::min<uint64_t>(buffer.size(), plan.size));
    RESHARD_RETURN_IF_ERROR(Fill(plan, {0, head.size()}, head));
    FileBytes bytes;
    bytes.path = plan.path;
    bytes.size = plan.size;
    bytes.read = [&](uint64_t offset, std::span<std::byte> out) {
      return Fill(plan, {offset, out.size()}, out);
    };
    bytes.prefetch = [](ByteRange) { return Status(); };
    RESHARD_ASSIGN_OR_RETURN(const TableOfFile read, ReadTable(bytes));
    RESHARD_ASSIGN_OR_RETURN(const ArrayCrc crc,
                             CrcOfArrays(*read.table, [&](ByteRange range, const auto& take) {
                               return ReadPlanned(plan, range, take);
                             }));
    return plan.crc->text(head, plan.size, crc.mindspore);
  }

  OpenedConversion opened_;
  const CheckChoice checks_;
  const RunOptions run_;
  std::multimap<int64_t, FileId> chosen_;  // source files by rank
  MemoryBudget budget_;
  ReadTurns turns_;
  std::mutex planning_;
  const std::unique_ptr<StatedCrcOfFile[]> crcs_;  // by the number of the file
};

Result<TargetView> TargetView::Open(const ConvertOptions& options, bool keep_pages) {
  return CatchOutOfMemory([&]() -> Result<TargetView> {
    if (options.target.encryption) {
      return InvalidArgumentError(
          "`encryption`: a view has the plain bytes of the files; convert writes encrypted ones");
    }
    const FileUse use;
    const RetryScope retries(options.run);
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget first,
                             DivideMemory(options.memory_limit, Workers(options.run.jobs)));
    RESHARD_RETURN_IF_ERROR(CheckOneSource(options.source.path, options.source.files));
    RESHARD_RETURN_IF_ERROR(CheckSpec(options));
    RESHARD_RETURN_IF_ERROR(ExpectedParameters(options.checks).status());
    RESHARD_RETURN_IF_ERROR(CheckJobs(options.run.jobs));
    const MemoryWatch watch(WatchOf(first));
    RESHARD_ASSIGN_OR_RETURN(OpenedConversion opened, OpenConversion(options, first));
    auto impl = std::make_unique<Impl>(std::move(opened), options);
    RESHARD_ASSIGN_OR_RETURN(
        const MemoryBudget budget,
        FitMemory(first, HeldOf(impl->source()), impl->work(), impl->findings().warnings));
    impl->SetBudget(budget, keep_pages);
    RESHARD_RETURN_IF_ERROR(impl->CheckSources());
    // The check sees the memory of the whole process, also that of callers. From now on, windows
    // and plans stay within their shares without it.
    budget.measured->refuses = false;
    return TargetView(std::move(impl));
  });
}

TargetView::TargetView(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TargetView::TargetView(TargetView&& other) noexcept = default;
TargetView& TargetView::operator=(TargetView&& other) noexcept = default;
TargetView::~TargetView() = default;

const Findings& TargetView::findings() const { return std::as_const(*impl_).findings(); }

std::span<const PlanReport::TargetFile> TargetView::files() const { return impl_->work().targets; }

Status TargetView::Read(size_t file, uint64_t offset, std::span<std::byte> out) const {
  return CatchOutOfMemory([&] { return impl_->Read(file, {offset, out.size()}, out); });
}

Status TargetView::Prefetch(size_t file, ByteRange range) const {
  return CatchOutOfMemory([&] { return impl_->Prefetch(file, range); });
}

Result<std::vector<Warning>> TargetView::Stream(
    size_t file, ByteRange range,
    const std::function<Status(std::span<const std::byte>)>& take) const {
  return CatchOutOfMemory([&] { return impl_->Stream(file, range, take); });
}

bool TargetView::HasThreads() const { return impl_->source().files().HasReadFiles(); }

Status TargetView::VerifyUnchanged(size_t file) const {
  return CatchOutOfMemory([&] { return impl_->VerifyUnchanged(file); });
}

Status TargetView::VerifyUnchanged() const {
  return CatchOutOfMemory([&] { return impl_->source().files().VerifyUnchanged(); });
}

}  // namespace v0_1

}  // namespace reshard
