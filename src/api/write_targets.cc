#include "src/api/write_targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "src/api/counted_work.h"
#include "src/api/target_groups.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/exec/part_writer.h"
#include "src/os/memory_usage.h"
#include "src/os/worker_pool.h"

namespace reshard {
namespace {

// Returns the lanes that have something to do, with chunks no larger than the files.
LaneOptions Lanes(const MemoryBudget& budget, const PlanReport& plan, StorageKind storage) {
  LaneOptions lanes;
  uint64_t chunks = 0;
  uint64_t largest = 0;
  for (const TargetFileSummary& target : plan.targets) {
    chunks += target.size / budget.chunk_bytes + 1;
    largest = std::max(largest, target.size);
  }
  lanes.lanes = std::min<uint64_t>(budget.lanes, chunks);
  lanes.writer_threads = storage != StorageKind::kMemory && chunks > lanes.lanes;
  lanes.chunk_bytes = std::min(
      budget.chunk_bytes, (largest + StagedFile::kAlignment - 1) & ~(StagedFile::kAlignment - 1));
  lanes.chunk_bytes = std::max<uint64_t>(lanes.chunk_bytes, StagedFile::kAlignment);
  lanes.window_bytes = budget.window_bytes;
  return lanes;
}

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

// Whether an interrupted run has left the file so that it may be kept.
Result<bool> IsKept(const TargetJob& job, const std::string& path, Resume resume,
                    const std::stop_token& stop) {
  if (job.Finished(path) == nullptr) return false;
  return resume == Resume::kVerify ? job.IsAsRecorded(path, stop) : true;
}

// Compares what was taken with what was written. A source that somebody writes to may have been
// read twice with different bytes: then that is what is said.
Status Prove(const TargetDigest& digest, const SourceFiles& sources) {
  Status proof = digest.Compare();
  if (!proof.ok()) RESHARD_RETURN_IF_ERROR(sources.VerifyUnchanged());
  return proof;
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
                             const TargetJob& job, const std::string& fingerprint,
                             const ConvertOptions& options, const MemoryBudget& budget,
                             const std::function<void(uint64_t)>& progress) {
  const SourceNames names = NamesOf(source);
  std::atomic<uint64_t> kept = 0;
  std::atomic<uint64_t> direct = 0;
  std::atomic<uint64_t> buffered = 0;
  AnonymousPeak anonymous;
  WriteBack write_back(budget.write_back_bytes);
  const WriteOptions write{WriteModeOf(options.io.target), &write_back};
  PartWork work;
  work.groups = GroupTargets(plan.targets, MaxGroup(budget, plan));
  work.progress = [&](uint64_t bytes) {
    anonymous.Look();
    if (progress) progress(bytes);
  };
  work.open = [&](size_t i, const std::stop_token& stop) -> Result<std::unique_ptr<TargetPart>> {
    const TargetFileSummary& expected = plan.targets[i];
    RESHARD_ASSIGN_OR_RETURN(const bool is_kept, IsKept(job, expected.path, options.resume, stop));
    if (is_kept) {
      ++kept;
      if (progress) progress(expected.size);
      return std::unique_ptr<TargetPart>();
    }
    PlanNotes notes;  // all has been said by the first pass
    RESHARD_ASSIGN_OR_RETURN(TargetPlan target, planner.PlanTarget(expected.rank, notes));
    if (target.size != expected.size) {
      return InternalError(
          fmt::format("{}: planned {} bytes, then {}", expected.path, expected.size, target.size));
    }
    RESHARD_ASSIGN_OR_RETURN(StagedFile file, job.Create(target.path, target.size, write));
    return std::make_unique<TargetPart>(std::move(target), ByteRange{0, expected.size},
                                        std::move(file), options.checksum);
  };
  work.finish = [&](size_t, TargetPart& part) -> Status {
    if (part.digest) RESHARD_RETURN_IF_ERROR(Prove(*part.digest, source.files()));
    RESHARD_ASSIGN_OR_RETURN(
        const std::string record,
        EncodeTargetRecord(part.plan, fingerprint, names, part.digest ? &*part.digest : nullptr));
    ++(part.file.direct() ? direct : buffered);
    return job.Finish(std::move(part.file), part.plan.path, record);
  };
  RESHARD_RETURN_IF_ERROR(
      WriteParts(source.files(), work, Lanes(budget, plan, job.storage()), options.stop));
  const SourceAccessCounts sources = source.files().access_counts();
  return Written{.kept = kept,
                 .memory_peak = anonymous.bytes() + source.files().HeldPeak() + write_back.peak(),
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
