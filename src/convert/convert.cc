#include "reshard/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/convert/conversion_job.h"
#include "src/convert/conversion_plan.h"
#include "src/convert/convert_options_check.h"
#include "src/convert/convert_shard.h"
#include "src/convert/counted_work.h"
#include "src/convert/joined_sources.h"
#include "src/convert/memory_budget.h"
#include "src/convert/opened_source.h"
#include "src/convert/replica_check.h"
#include "src/convert/source_checks.h"
#include "src/convert/strategy_check.h"
#include "src/convert/timeline_recorder.h"
#include "src/convert/totals_check.h"
#include "src/convert/write_targets.h"
#include "src/job/target_job.h"
#include "src/mindspore/planner.h"

namespace reshard {
namespace {

Result<MemoryBudget> CheckAndDivide(const ConvertOptions& options) {
  RESHARD_ASSIGN_OR_RETURN(const MemoryBudget budget,
                           DivideMemory(options.memory_limit, Workers(options.jobs)));
  RESHARD_RETURN_IF_ERROR(CheckConvertOptions(options));
  return budget;
}

// Says what an unfinished run leaves to go on with. Nothing can be made of files from sources that
// are not what they were.
Status WithHint(Status status, const TargetJob& job) {
  if (status.code() == StatusCode::kChanged || job.already_staged()) return status;
  const size_t finished = job.CountFinished();
  if (finished == 0) return status;
  return Status(
      status.code(),
      fmt::format("{} ({}: run the same command with --resume to go on)", status.message(),
                  finished == 1 ? "1 finished file is kept"
                                : fmt::format("{} finished files are kept", finished)));
}

// What a run did before it published.
struct Work {
  CrcFiles checked;
  std::optional<ReplicaReport> replicas;
  Written written;
  bool completes_earlier_run = false;
};

// The source ranks whose files are read to write what is not finished.
std::set<int64_t> RanksToRead(const PlanReport& plan, const TargetJob& job, Resume resume) {
  std::set<int64_t> ranks;
  for (const TargetFileSummary& target : plan.targets) {
    // A finished file may turn out not to be what was recorded.
    if (job.Finished(target.path) != nullptr && resume != Resume::kVerify) continue;
    ranks.insert(target.source_ranks.begin(), target.source_ranks.end());
  }
  return ranks;
}

Result<Work> CheckAndWrite(OpenedSource& source, const Planner& planner, const PlanReport& plan,
                           const TargetJob& job, const std::string& fingerprint,
                           const ConvertOptions& options, const MemoryBudget& budget,
                           TimelineRecorder& timeline) {
  timeline.Begin("check");
  const bool write = !job.already_staged();
  Work done;
  done.completes_earlier_run = !write;
  const bool check = !write && options.resume == Resume::kVerify;
  std::set<int64_t> source_ranks;
  if (write) source_ranks = RanksToRead(plan, job, options.resume);
  std::vector<int64_t> target_ranks;
  for (const TargetFileSummary& target : plan.targets) target_ranks.push_back(target.rank);
  RESHARD_ASSIGN_OR_RETURN(const SourceChecks checks,
                           FindChecks(source, source_ranks, target_ranks, options));
  const CountedWork count(options.jobs, options.stop, options.progress,
                          checks.bytes + (write || check ? plan.bytes_written : 0));
  RESHARD_ASSIGN_OR_RETURN(done.replicas,
                           RunChecks(source, checks, planner.choice(), options, count.work()));
  done.checked = checks.crc;
  if (check) RESHARD_RETURN_IF_ERROR(CheckPublication(plan, job, options, count.work().progress));
  if (!write) return done;
  timeline.Begin("write");
  RESHARD_ASSIGN_OR_RETURN(
      done.written, WriteTargets(source, planner, plan, OutputOf(plan, job, options.resume),
                                 fingerprint, options, budget, count.work().progress, timeline));
  return done;
}

ConvertReport MakeReport(const PlanReport& plan, Work done, const PublishReport& published) {
  ConvertReport report = ReportOfAll(plan);
  report.warnings.insert(report.warnings.end(), published.warnings.begin(),
                         published.warnings.end());
  for (const TargetFileSummary& target : plan.targets) {
    report.files.push_back({target.path, target.size});
  }
  const std::set<int64_t> read = RanksRead(plan);
  report.source_ranks.assign(read.begin(), read.end());
  report.bytes_read = plan.bytes_read;
  report.bytes_written = plan.bytes_written;
  report.crc_files = done.checked.files.size();
  report.crc_bytes = done.checked.bytes;
  report.replicas = std::move(done.replicas);
  report.files_kept = done.written.kept;
  report.memory_peak = done.written.memory_peak;
  report.io = done.written.io;
  report.completed_earlier_run = done.completes_earlier_run;
  return report;
}

// Checks that the source is what it is taken for and the source strategy its own, before anything
// is written.
Status CheckSource(OpenedSource& source, const Planner& planner, const ConvertOptions& options,
                   PlanReport& plan) {
  RESHARD_ASSIGN_OR_RETURN(const SampleLimits spent, CheckTotals(source, options, plan));
  std::vector<int64_t> target_ranks;
  for (const TargetFileSummary& target : plan.targets) target_ranks.push_back(target.rank);
  RESHARD_ASSIGN_OR_RETURN(
      StrategyFindings findings,
      CheckStrategy(source, planner.choice(), StagesOf(source.rule(), target_ranks),
                    {.replicas = options.check_replicas,
                     .spent = options.expected_parameters ? SampleLimits{0, 0} : spent,
                     .workers = Workers(options.jobs),
                     .stop = options.stop}));
  for (std::string& warning : findings.warnings) plan.warnings.push_back(std::move(warning));
  plan.sample = findings.sample;
  return {};
}

// The rest of a conversion that one process does: execute, verify, commit.
Result<ConvertReport> ConvertAlone(OpenedSource& source, const Planner& planner,
                                   const PlanReport& plan, JobSpec spec,
                                   const ConvertOptions& options, const MemoryBudget& budget,
                                   TimelineRecorder& timeline) {
  const std::string fingerprint = spec.fingerprint;
  RESHARD_ASSIGN_OR_RETURN(TargetJob job, TargetJob::Begin(std::move(spec)));
  auto done = CheckAndWrite(source, planner, plan, job, fingerprint, options, budget, timeline);
  if (!done.ok()) return WithHint(done.status(), job);
  timeline.Begin("publish");
  RESHARD_RETURN_IF_ERROR(source.files().VerifyUnchanged());
  RESHARD_ASSIGN_OR_RETURN(const PublishReport published, job.Publish());
  return MakeReport(plan, *std::move(done), published);
}

}  // namespace

Result<ConvertReport> Convert(const ConvertOptions& options) {
  return CatchOutOfMemory([&]() -> Result<ConvertReport> {
    TimelineRecorder timeline(options.record_timeline);
    timeline.Begin("plan");
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget first, CheckAndDivide(options));
    RESHARD_ASSIGN_OR_RETURN(const auto source, OpenSource(options, first));
    const Planner planner = MakePlanner(*source, options);
    RESHARD_ASSIGN_OR_RETURN(PlanReport plan, PlanConversion(*source, planner, options, first));
    RESHARD_RETURN_IF_ERROR(CheckSource(*source, planner, options, plan));
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget budget,
                             FitMemory(first, source->files().HeldPeak(), plan));
    source->files().SetWindowBudget(budget.window_bytes);
    RESHARD_ASSIGN_OR_RETURN(JobSpec spec, MakeJobSpec(*source, plan, options));
    spec.meter = &budget.measured->meter;
    RESHARD_ASSIGN_OR_RETURN(spec.other_source, FindOtherSource(*source, planner, spec));
    RESHARD_ASSIGN_OR_RETURN(
        ConvertReport report,
        options.shard
            ? ConvertShard(*source, planner, plan, spec, options, budget, timeline)
            : ConvertAlone(*source, planner, plan, std::move(spec), options, budget, timeline));
    report.timeline = timeline.Finish();
    const MemoryMeter& meter = budget.measured->meter;
    report.memory_limit = budget.limit;
    report.memory_planned = budget.planned_peak;
    report.anonymous_peak = meter.anonymous_peak();
    if (report.memory_peak > 0) {
      report.memory_peak = std::max<uint64_t>(budget.measured->peak, meter.peak());
    }
    return report;
  });
}

Result<PlanReport> Plan(const ConvertOptions& options) {
  return CatchOutOfMemory([&]() -> Result<PlanReport> {
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget first, CheckAndDivide(options));
    RESHARD_ASSIGN_OR_RETURN(const auto source, OpenSource(options, first));
    const Planner planner = MakePlanner(*source, options);
    RESHARD_ASSIGN_OR_RETURN(PlanReport plan, PlanConversion(*source, planner, options, first));
    ConvertOptions planned = options;
    if (planned.check_replicas == CheckReplicas::kAll) {
      planned.check_replicas = CheckReplicas::kSample;
    }
    RESHARD_RETURN_IF_ERROR(CheckSource(*source, planner, planned, plan));
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget budget,
                             FitMemory(first, source->files().HeldPeak(), plan));
    RESHARD_ASSIGN_OR_RETURN(JobSpec spec, MakeJobSpec(*source, plan, options));
    RESHARD_ASSIGN_OR_RETURN(spec.other_source, FindOtherSource(*source, planner, spec));
    RESHARD_ASSIGN_OR_RETURN(plan.free_space_bytes, TargetJob::Check(std::move(spec)));
    plan.memory_limit = budget.limit;
    plan.memory_bytes = budget.planned_peak;
    return plan;
  });
}

}  // namespace reshard
