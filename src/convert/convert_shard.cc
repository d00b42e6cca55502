#include "src/convert/convert_shard.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/commit.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/conversion_job.h"
#include "src/convert/counted_work.h"
#include "src/convert/published_set.h"
#include "src/convert/source_checks.h"
#include "src/convert/target_output.h"
#include "src/convert/write_targets.h"
#include "src/job/shard_job.h"

namespace reshard {
namespace {

// What the share reads and writes, in the numbers of a report.
ConvertReport ReportOf(const PlanReport& plan, const ShardJob& job) {
  std::map<std::string_view, const TargetFileSummary*> targets;
  for (const TargetFileSummary& target : plan.targets) targets.emplace(target.path, &target);
  ConvertReport report = ReportOfAll(plan);
  report.files_kept = job.finished().size();
  std::set<int64_t> ranks;
  for (const std::vector<FilePart>* parts : {&job.finished(), &job.unfinished()}) {
    for (const FilePart& part : *parts) {
      const TargetFileSummary& target = *targets.at(job.spec().files[part.file].path);
      report.files.push_back({target.path, part.range.length});
      report.bytes_written += part.range.length;
      ranks.insert(target.source_ranks.begin(), target.source_ranks.end());
    }
  }
  report.source_ranks.assign(ranks.begin(), ranks.end());
  return report;
}

Status WriteShare(OpenedSource& source, const Planner& planner, const PlanReport& plan,
                  const ShardJob& job, const ConvertOptions& options, const MemoryBudget& budget,
                  TimelineRecorder& timeline, ConvertReport& report) {
  const TargetOutput output = OutputOf(plan, job);
  std::set<int64_t> source_ranks;
  std::vector<int64_t> target_ranks;
  uint64_t bytes = 0;
  for (const TargetShare& part : output.parts) {
    const TargetFileSummary& target = plan.targets[part.target];
    source_ranks.insert(target.source_ranks.begin(), target.source_ranks.end());
    target_ranks.push_back(target.rank);
    bytes += part.range.length;
  }
  RESHARD_ASSIGN_OR_RETURN(const SourceChecks checks,
                           FindChecks(source, source_ranks, target_ranks, options));
  const CountedWork count(options.jobs, options.stop, options.progress, checks.bytes + bytes);
  RESHARD_ASSIGN_OR_RETURN(report.replicas,
                           RunChecks(source, checks, planner.choice(), options, count.work()));
  report.crc_files = checks.crc.files.size();
  report.crc_bytes = checks.crc.bytes;
  timeline.Begin("write");
  RESHARD_ASSIGN_OR_RETURN(const Written written,
                           WriteTargets(source, planner, plan, output, job.spec().fingerprint,
                                        options, budget, count.work().progress, timeline));
  report.bytes_read = written.bytes_read;
  report.memory_peak = written.memory_peak;
  report.io = written.io;
  // Before anything says that the share is finished: others would publish it.
  return source.files().VerifyUnchanged();
}

}  // namespace

Result<ConvertReport> ConvertShard(OpenedSource& source, const Planner& planner,
                                   const PlanReport& plan, const JobSpec& spec,
                                   const ConvertOptions& options, const MemoryBudget& budget,
                                   TimelineRecorder& timeline) {
  timeline.Begin("check");
  const Patience patience(options.stop, options.waiting);
  JobSpec own = spec;
  own.is_published = [&] { return IsPublished(source, planner, plan, spec); };
  RESHARD_ASSIGN_OR_RETURN(ShardJob job, ShardJob::Begin(std::move(own), *options.shard, patience));
  if (job.already_published()) {
    ConvertReport nothing;
    nothing.warnings = plan.warnings;
    nothing.parameters = plan.parameters;
    nothing.shard = {
        .shard = *options.shard, .published = true, .already_published = true, .outstanding = {}};
    return nothing;
  }
  ConvertReport report = ReportOf(plan, job);
  RESHARD_RETURN_IF_ERROR(
      WriteShare(source, planner, plan, job, options, budget, timeline, report));
  timeline.Begin("publish");
  RESHARD_RETURN_IF_ERROR(job.FinishShare());
  RESHARD_ASSIGN_OR_RETURN(ShardOutcome outcome, job.Commit(patience));
  report.shard = {.shard = *options.shard,
                  .published = outcome.published,
                  .outstanding = std::move(outcome.outstanding)};
  report.warnings.insert(report.warnings.end(), outcome.warnings.begin(), outcome.warnings.end());
  return report;
}

Result<CommitReport> CommitShards(const CommitOptions& options) {
  return CatchOutOfMemory([&]() -> Result<CommitReport> {
    const Patience patience(options.stop, options.waiting);
    CommitReport report;
    RESHARD_ASSIGN_OR_RETURN(std::optional<ShardJob> job, ShardJob::Open(options.target, patience));
    report.already_published = !job;
    if (!job) return report;
    RESHARD_ASSIGN_OR_RETURN(ShardOutcome outcome, job->Commit(patience));
    if (!outcome.published) {
      std::vector<std::string> shards;
      for (const uint64_t shard : outcome.outstanding) {
        const auto live = job->at_work().find(shard);
        std::string words;
        if (live != job->at_work().end()) {
          words = fmt::format(" (at work in {})",
                              live->second.empty() ? "another process" : live->second);
        }
        shards.push_back(fmt::format("{}/{}{}", shard, job->spec().shards, words));
      }
      return NotFoundError(
          fmt::format("{}: {} of {} shards have not finished: {}; run them again, then this",
                      Escape(options.target), shards.size(), job->spec().shards, FirstOf(shards)));
    }
    report.already_published = outcome.by_other;
    report.warnings = std::move(outcome.warnings);
    return report;
  });
}

}  // namespace reshard
