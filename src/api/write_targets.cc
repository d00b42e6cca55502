#include "src/api/write_targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "src/api/counted_work.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/exec/target_digest.h"
#include "src/exec/target_writer.h"
#include "src/os/worker_pool.h"

namespace reshard {
namespace {

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

size_t Workers(const ConvertOptions& options, const PlanReport& plan) {
  return std::min(Workers(options.jobs), plan.targets.size());
}

SourceNames NamesOf(const OpenedSource& source) {
  SourceNames names;
  for (const OpenedSource::File& file : source.chosen()) {
    names[file.id] = {.path = file.relative_path, .size = file.identity.size};
  }
  return names;
}

Result<uint64_t> WriteTargets(OpenedSource& source, const Planner& planner, const PlanReport& plan,
                              const TargetJob& job, const std::string& fingerprint,
                              const ConvertOptions& options,
                              const std::function<void(uint64_t)>& progress) {
  const SourceNames names = NamesOf(source);
  std::atomic<uint64_t> kept = 0;
  const auto write = [&](size_t i, const std::stop_token& stop) -> Status {
    const TargetFileSummary& expected = plan.targets[i];
    RESHARD_ASSIGN_OR_RETURN(const bool is_kept, IsKept(job, expected.path, options.resume, stop));
    if (is_kept) {
      ++kept;
      if (progress) progress(expected.size);
      return {};
    }
    PlanNotes notes;  // all has been said by the first pass
    RESHARD_ASSIGN_OR_RETURN(const TargetPlan target, planner.PlanTarget(expected.rank, notes));
    if (target.size != expected.size) {
      return InternalError(
          fmt::format("{}: planned {} bytes, then {}", expected.path, expected.size, target.size));
    }
    std::optional<TargetDigest> digest;
    if (options.checksum) digest.emplace(target);
    TargetDigest* const proof = digest ? &*digest : nullptr;
    RESHARD_ASSIGN_OR_RETURN(StagedFile file, job.Create(target.path, target.size));
    RESHARD_RETURN_IF_ERROR(WriteTarget(source.files(), target, file, proof, progress, stop));
    if (digest) RESHARD_RETURN_IF_ERROR(Prove(*digest, source.files()));
    RESHARD_ASSIGN_OR_RETURN(const std::string record,
                             EncodeTargetRecord(target, fingerprint, names, proof));
    return job.Finish(std::move(file), target.path, record);
  };
  RESHARD_RETURN_IF_ERROR(
      RunWorkers(Workers(options, plan), plan.targets.size(), write, options.stop));
  return kept.load();
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
  return RunWorkers(Workers(options, plan), plan.targets.size(), check, options.stop);
}

}  // namespace reshard
