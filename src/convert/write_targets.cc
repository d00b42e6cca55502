#include "src/convert/write_targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <variant>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/budgeted_lanes.h"
#include "src/convert/counted_work.h"
#include "src/convert/target_groups.h"
#include "src/job/block_joining.h"
#include "src/os/memory_usage.h"
#include "src/os/worker_pool.h"
#include "src/write/copy_proof.h"
#include "src/write/part_writer.h"

namespace reshard {
namespace {

WriteMode WriteModeOf(TargetIo io) {
  switch (io) {
    case TargetIo::kDirect:
      return WriteMode::kDirect;
    case TargetIo::kBuffered:
      return WriteMode::kBuffered;
    case TargetIo::kAuto:
      break;
  }
  return WriteMode::kAuto;
}

// Returns the bytes of `range` that come from the sources.
uint64_t ContentBytes(const TargetPlan& plan, ByteRange range) {
  uint64_t bytes = 0;
  for (const Segment& segment : plan.segments) {
    if (!std::holds_alternative<Content>(segment)) continue;
    const ByteRange content = TargetRange(segment);
    const uint64_t begin = std::max(content.offset, range.offset);
    bytes += std::max(begin, std::min(content.end(), range.end())) - begin;
  }
  return bytes;
}

}  // namespace

SourceNames NamesOf(const OpenedSource& source) {
  SourceNames names;
  for (const OpenedSource::File& file : source.chosen()) {
    names[file.id] = {.path = file.relative_path, .size = file.identity.size};
  }
  return names;
}

Result<Written> WriteTargets(OpenedSource& source, const Planner& planner, const PlanReport& plan,
                             const TargetOutput& output, const std::string& fingerprint,
                             const ConvertOptions& options, const MemoryBudget& budget,
                             const std::function<void(uint64_t)>& progress,
                             TimelineRecorder& timeline) {
  if (output.parts.empty()) return Written{};
  const SourceNames names = NamesOf(source);
  std::atomic<uint64_t> kept = 0;
  std::atomic<uint64_t> bytes_read = 0;
  std::atomic<uint64_t> direct = 0;
  std::atomic<uint64_t> buffered = 0;
  MemoryMeter& meter = budget.measured->meter;
  WriteBack write_back(budget.write_back_bytes);
  const WriteOptions write{WriteModeOf(options.io.target), &write_back};
  PartWork work;
  work.groups = GroupTargets(plan.targets, output.parts, MaxGroup(budget, plan));
  work.progress = [&](uint64_t bytes) {
    const uint64_t held = meter.Look() + source.files().Held() + write_back.bytes();
    budget.measured->Note(held);
    if (timeline.records()) timeline.AddWritten(bytes, source.files().FilledBytes(), held);
    if (progress) progress(bytes);
  };
  if (timeline.records()) {
    work.gathered = [&timeline](uint64_t bytes) { timeline.AddGathered(bytes); };
  }
  work.open = [&](size_t i, const std::stop_token& stop) -> Result<std::unique_ptr<TargetPart>> {
    const auto& [number, range] = output.parts[i];
    const TargetFileSummary& expected = plan.targets[number];
    RESHARD_ASSIGN_OR_RETURN(const bool is_kept, output.is_kept(i, stop));
    if (is_kept) {
      ++kept;
      if (progress) progress(range.length);
      return std::unique_ptr<TargetPart>();
    }
    PlanNotes notes;
    notes.silent = true;  // all has been said by the first pass
    RESHARD_ASSIGN_OR_RETURN(TargetPlan target, planner.PlanTarget(expected.rank, notes));
    if (target.size != expected.size) {
      return InternalError(
          fmt::format("{}: planned {} bytes, then {}", expected.path, expected.size, target.size));
    }
    bytes_read += ContentBytes(target, range);
    RESHARD_ASSIGN_OR_RETURN(StagedFile file, output.create(i, write));
    return std::make_unique<TargetPart>(std::move(target), range, std::move(file),
                                        options.checksum);
  };
  work.finish = [&](size_t i, TargetPart& part) -> Status {
    const TargetDigest* const digest = part.digest ? &*part.digest : nullptr;
    if (digest != nullptr) RESHARD_RETURN_IF_ERROR(Prove(*digest, source.files()));
    const bool whole = part.range.length == part.plan.size;
    ++(part.file.direct() ? direct : buffered);
    return output.finish(i, std::move(part.file),
                         [&](const OutputDirectory::ByteSink& sink) -> Status {
                           if (whole)
                             return EncodeTargetRecord(part.plan, fingerprint, names, digest, sink);
                           RESHARD_ASSIGN_OR_RETURN(
                               const std::string record,
                               EncodePartBlocks(part.plan, part.range, fingerprint, names, digest));
                           meter.Look();
                           return sink(record);
                         });
  };
  std::vector<uint64_t> lengths;
  for (const TargetShare& part : output.parts) lengths.push_back(part.range.length);
  LaneOptions lanes = LanesFor(budget, output.storage, lengths);
  lanes.most_open = MostOpen(budget, plan);
  RESHARD_RETURN_IF_ERROR(WriteParts(source.files(), work, lanes, options.stop));
  const SourceAccessCounts sources = source.files().access_counts();
  return Written{.kept = kept,
                 .bytes_read = bytes_read,
                 .memory_peak = kept == output.parts.size() ? 0 : budget.measured->peak.load(),
                 .io = {.sources_mapped = sources.mapped,
                        .sources_read = sources.read,
                        .targets_direct = direct,
                        .targets_buffered = buffered}};
}

Status CheckPublication(const PlanReport& plan, const TargetJob& job, const ConvertOptions& options,
                        const std::function<void(uint64_t)>& progress) {
  const auto check = [&](size_t i, const std::stop_token& stop) -> Status {
    const TargetFileSummary& file = plan.targets[i];
    RESHARD_ASSIGN_OR_RETURN(const bool as_recorded, job.IsAsRecorded(file.path, stop));
    if (progress) progress(file.size);
    if (as_recorded) return {};
    return CorruptError(fmt::format(
        "{}: {} was damaged after it was written, before it was published; remove the folder "
        ".reshard there, and run again with --force to write all files anew",
        Escape(options.target), Escape(file.path)));
  };
  return RunWorkers(Workers(options.jobs), plan.targets.size(), check, options.stop);
}

}  // namespace reshard
