#include "reshard/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "src/api/catch_bad_alloc.h"
#include "src/api/conversion_plan.h"
#include "src/api/opened_source.h"
#include "src/api/plan_fingerprint.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/exec/target_job.h"
#include "src/exec/target_writer.h"
#include "src/os/file_identity.h"
#include "src/os/path_relation.h"
#include "src/os/worker_pool.h"
#include "src/plan/planner.h"

namespace reshard {
namespace {

constexpr uint64_t kMemoryOfProgram = uint64_t{16} << 20;

Status CheckOptions(const ConvertOptions& options) {
  if (options.source.empty() || options.target.empty()) {
    return InvalidArgumentError("a source and a target folder are needed");
  }
  if (options.source_strategy.empty() && options.target_strategy.empty()) {
    return InvalidArgumentError(
        "neither --src-strategy nor --dst-strategy is given; name at least one: without a source "
        "strategy "
        "the source holds full tensors, without a target strategy full tensors are written");
  }
  constexpr size_t kLongestPrefix = 200;  // file names have at most 255 bytes
  if (options.prefix.find('/') != std::string::npos ||
      options.prefix.find("..") != std::string::npos || options.prefix != Escape(options.prefix) ||
      options.prefix.size() > kLongestPrefix) {
    return InvalidArgumentError(fmt::format(
        "the prefix {} becomes part of file names: no slash, no \"..\", no control characters, at "
        "most {} bytes",
        Quote(options.prefix), kLongestPrefix));
  }
  if (options.jobs < 0) {
    return InvalidArgumentError(fmt::format("{} jobs; 0 stands for all cores", options.jobs));
  }
  RESHARD_ASSIGN_OR_RETURN(const bool inside, IsInside(options.target, options.source));
  if (inside) {
    return InvalidArgumentError(
        fmt::format("the target {} is, or lies in, the source {}; choose a folder outside of it",
                    Escape(options.target), Escape(options.source)));
  }
  return {};
}

Result<std::unique_ptr<OpenedSource>> OpenSource(const ConvertOptions& options) {
  RESHARD_RETURN_IF_ERROR(CheckOptions(options));
  return OpenedSource::Open(
      {options.source, options.source_strategy, options.target_strategy, options.suffix});
}

// A file that is read must not be one that is replaced, whatever the names it is reached by.
Status CheckSourcesStay(const OpenedSource& source, const PlanReport& plan,
                        const ConvertOptions& options) {
  std::map<std::pair<uint64_t, uint64_t>, const OpenedSource::File*> sources;
  for (const OpenedSource::File& file : source.chosen()) {
    sources.emplace(std::pair(file.identity.device, file.identity.inode), &file);
  }
  for (const TargetFileSummary& target : plan.targets) {
    const std::string path = fmt::format("{}/{}", options.target, target.path);
    const auto there = IdentityOf(path);
    if (!there.ok()) continue;  // nothing to be replaced
    const auto same = sources.find(std::pair(there->device, there->inode));
    if (same != sources.end()) {
      return InvalidArgumentError(fmt::format(
          "the output {} would replace the source file {}; choose another target folder",
          Escape(path), Escape(source.path(*same->second))));
    }
  }
  return {};
}

Planner MakePlanner(const OpenedSource& source, const ConvertOptions& options) {
  return {source.shards(), options.prefix, options.unmatched};
}

Result<JobSpec> MakeJobSpec(const OpenedSource& source, const PlanReport& plan,
                            const ConvertOptions& options) {
  RESHARD_RETURN_IF_ERROR(CheckSourcesStay(source, plan, options));
  JobSpec spec;
  spec.target_folder = options.target;
  spec.fingerprint = PlanFingerprint(source, options);
  if (const auto stage = source.rule().stage_alone()) {
    spec.manifest_name = fmt::format("manifest_part{}.json", *stage);
  }
  for (const TargetFileSummary& target : plan.targets) {
    spec.files.push_back({target.path, target.size});
  }
  spec.source_identities = IdentityLines(source);
  spec.force = options.force;
  return spec;
}

size_t Workers(const ConvertOptions& options, const PlanReport& plan) {
  const size_t jobs = options.jobs == 0 ? std::max<size_t>(1, std::thread::hardware_concurrency())
                                        : static_cast<size_t>(options.jobs);
  return std::min(jobs, plan.targets.size());
}

// Writes every target file; each worker plans the files it takes, so that few plans are in memory
// at a time.
Status WriteTargets(OpenedSource& source, const Planner& planner, const PlanReport& plan,
                    const TargetJob& job, const ConvertOptions& options) {
  std::mutex mutex;
  Progress progress{0, plan.bytes_written};
  const auto count = [&](uint64_t bytes) {
    const std::lock_guard lock(mutex);
    progress.done_bytes += bytes;
    options.progress(progress);
  };
  const auto on_chunk = options.progress ? std::function<void(uint64_t)>(count) : nullptr;
  const auto write = [&](size_t i, const std::stop_token& stop) -> Status {
    const TargetFileSummary& expected = plan.targets[i];
    PlanNotes notes;  // all has been said by the first pass
    RESHARD_ASSIGN_OR_RETURN(const TargetPlan target, planner.PlanTarget(expected.rank, notes));
    if (target.size != expected.size) {
      return InternalError(
          fmt::format("{}: planned {} bytes, then {}", expected.path, expected.size, target.size));
    }
    RESHARD_ASSIGN_OR_RETURN(StagedFile file, job.Create(target.path, target.size));
    RESHARD_RETURN_IF_ERROR(WriteTarget(source.files(), target, file, on_chunk, stop));
    return job.Finish(std::move(file));
  };
  return RunWorkers(Workers(options, plan), plan.targets.size(), write, options.stop);
}

ConvertReport MakeReport(const PlanReport& plan, const PublishReport& published,
                         bool completed_earlier_run) {
  ConvertReport report;
  report.warnings = plan.warnings;
  report.warnings.insert(report.warnings.end(), published.warnings.begin(),
                         published.warnings.end());
  for (const TargetFileSummary& target : plan.targets) {
    report.files.push_back({target.path, target.size});
  }
  for (const SourceFileSummary& file : plan.sources) report.source_ranks.push_back(file.rank);
  report.largest = plan.largest;
  report.parameters = plan.parameters;
  report.bytes_read = plan.bytes_read;
  report.bytes_written = plan.bytes_written;
  report.completed_earlier_run = completed_earlier_run;
  return report;
}

}  // namespace

Result<ConvertReport> Convert(const ConvertOptions& options) {
  return CatchBadAlloc([&]() -> Result<ConvertReport> {
    RESHARD_ASSIGN_OR_RETURN(const auto source, OpenSource(options));
    const Planner planner = MakePlanner(*source, options);
    RESHARD_ASSIGN_OR_RETURN(const PlanReport plan, PlanConversion(*source, planner, options));
    RESHARD_ASSIGN_OR_RETURN(JobSpec spec, MakeJobSpec(*source, plan, options));
    RESHARD_ASSIGN_OR_RETURN(TargetJob job, TargetJob::Begin(std::move(spec)));
    const bool staged = job.already_staged();
    if (!staged) RESHARD_RETURN_IF_ERROR(WriteTargets(*source, planner, plan, job, options));
    RESHARD_RETURN_IF_ERROR(source->files().VerifyUnchanged());
    RESHARD_ASSIGN_OR_RETURN(const PublishReport published, job.Publish());
    return MakeReport(plan, published, staged);
  });
}

Result<PlanReport> Plan(const ConvertOptions& options) {
  return CatchBadAlloc([&]() -> Result<PlanReport> {
    RESHARD_ASSIGN_OR_RETURN(const auto source, OpenSource(options));
    const Planner planner = MakePlanner(*source, options);
    RESHARD_ASSIGN_OR_RETURN(PlanReport plan, PlanConversion(*source, planner, options));
    RESHARD_ASSIGN_OR_RETURN(JobSpec spec, MakeJobSpec(*source, plan, options));
    RESHARD_ASSIGN_OR_RETURN(plan.free_space_bytes, TargetJob::Check(std::move(spec)));
    plan.memory_bytes =
        kMemoryOfProgram + source->indexes().memory() + Workers(options, plan) * 2 * kChunkBytes;
    return plan;
  });
}

}  // namespace reshard
