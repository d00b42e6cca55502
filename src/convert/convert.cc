#include "reshard/convert.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/container.h"
#include "src/base/checked.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/conversion_job.h"
#include "src/convert/conversion_plan.h"
#include "src/convert/joined_sources.h"
#include "src/convert/memory_budget.h"
#include "src/convert/opened_conversion.h"
#include "src/convert/opened_source.h"
#include "src/convert/option_checks.h"
#include "src/convert/progress_recorder.h"
#include "src/convert/reader_check.h"
#include "src/convert/share_plan.h"
#include "src/convert/source_checks.h"
#include "src/convert/stated_places.h"
#include "src/convert/strategy_check.h"
#include "src/convert/timeline_recorder.h"
#include "src/convert/work_list.h"
#include "src/convert/write_targets.h"
#include "src/io/shared_work.h"
#include "src/job/file_shares.h"
#include "src/job/target_job.h"
#include "src/job/worker_job.h"
#include "src/job/worker_states.h"
#include "src/mindspore/each_file.h"
#include "src/mindspore/output_check.h"
#include "src/os/file_use.h"
#include "src/os/retries.h"
#include "src/os/storage_kind.h"
#include "src/plan/each_file_target.h"
#include "src/plan/parameter_choice.h"
#include "src/plan/target.h"
#include "src/write/part_sink.h"

namespace reshard {
namespace {

Result<MemoryBudget> CheckAndDivide(const ConvertOptions& options) {
  RESHARD_ASSIGN_OR_RETURN(const MemoryBudget budget,
                           DivideMemory(options.memory_limit, Workers(options.run.jobs)));
  RESHARD_RETURN_IF_ERROR(CheckConvertOptions(options));
  return budget;
}

// This process's part of a conversion.
struct Share {
  std::vector<TargetShare> parts;     // to be written, or kept by the job
  std::vector<TargetShare> finished;  // by another call, and not to be written
  std::set<int64_t> source_ranks;     // with files that are read for the unfinished parts
  bool published = false;             // by an earlier run, so there is no work
  bool staged = false;                // only publication is left
};

// All files of a job. If they are `published`, none has to be written.
Share ShareOfAll(const Conversion& conversion, const JobSpec& spec, bool published) {
  std::vector<FilePart> parts;
  if (spec.follows_plan) {  // only these are planned
    parts = ShareOf(spec.files, *conversion.options.shard);
  } else {
    parts.reserve(spec.files.size());
    for (size_t i = 0; i < spec.files.size(); ++i) parts.push_back({i, {0, spec.files[i].size}});
  }
  Share share;
  share.parts = SharesOf(conversion.opened.work(), spec.files, parts);
  share.published = share.staged = published;
  return share;
}

Share ShareOf(const Conversion& conversion, const TargetJob& job) {
  Share share = ShareOfAll(conversion, job.spec(), job.earlier().found);
  if (share.published) return share;
  share.staged = job.already_staged();
  if (share.staged) return share;
  for (const PlanReport::TargetFile& target : conversion.opened.work().targets) {
    // A finished file may turn out to differ from its record.
    const bool trusted = job.spec().output.resume != OutputChoice::Resume::kVerify;
    if (trusted && job.Finished(target.path) != nullptr) continue;
    share.source_ranks.insert(target.source_ranks.begin(), target.source_ranks.end());
  }
  return share;
}

Share ShareOf(const Conversion& conversion, const WorkerJob& job) {
  if (job.earlier().found) return ShareOfAll(conversion, job.spec(), true);
  Share share;
  const std::vector<ManifestFile>& files = job.spec().files;
  share.parts = SharesOf(conversion.opened.work(), files, job.unfinished());
  share.finished = SharesOf(conversion.opened.work(), files, job.finished());
  for (const TargetShare& part : share.parts) {
    const std::vector<int64_t>& ranks = conversion.opened.work().targets[part.target].source_ranks;
    share.source_ranks.insert(ranks.begin(), ranks.end());
  }
  return share;
}

// A conversion's right to its target folder, of a single run or of one of several workers.
struct BegunJob {
  std::optional<TargetJob> alone;
  std::optional<WorkerJob> worker;

  const Job& job() const {
    if (worker) return *worker;
    return *alone;
  }
};

Status Begin(const Conversion& conversion, JobSpec spec, std::optional<WorkerTurn> turn,
             const Patience& patience, BegunJob& job) {
  if (!conversion.options.shard) {
    RESHARD_ASSIGN_OR_RETURN(TargetJob alone, TargetJob::Begin(std::move(spec)));
    job.alone.emplace(std::move(alone));
    return {};
  }
  RESHARD_ASSIGN_OR_RETURN(
      WorkerJob worker,
      WorkerJob::Begin(std::move(spec), *conversion.options.shard, patience, std::move(turn)));
  job.worker.emplace(std::move(worker));
  return {};
}

// The recorder of a job that has parts to write. Another job leaves no record: others may publish
// it at any time, and remove the folder of records.
std::optional<ProgressRecorder::Share> RecordedShare(const BegunJob& job, const Share& share) {
  if (share.staged || share.parts.empty()) return std::nullopt;
  ProgressRecorder::Share recorded;
  for (const std::vector<TargetShare>* parts : {&share.finished, &share.parts}) {
    for (const TargetShare& part : *parts) {
      const std::string& path = job.job().spec().files[part.part.file].path;
      const bool before = parts == &share.finished ||
                          (job.alone.has_value() && job.alone->Finished(path) != nullptr);
      recorded.bytes = SaturatingAdd(recorded.bytes, part.part.range.length);
      if (before) {
        recorded.bytes_before = SaturatingAdd(recorded.bytes_before, part.part.range.length);
      }
    }
  }
  recorded.parts = share.finished.size() + share.parts.size();
  recorded.parts_before = share.finished.size();
  return recorded;
}

// The results of a run before publication.
struct Work {
  CrcFiles checked;
  std::optional<ReplicaReport> replicas;
  Written written;
};

// Before anything is written, and after.
void MarkTime(const Conversion& conversion) {
  if (!conversion.timeline.records()) return;
  conversion.timeline.Mark(conversion.budget.measured->Look());
}

// The counters of a run.
struct RunCounts {
  RunOptions run;  // the caller's, but its progress is also recorded
  std::optional<ProgressRecorder> recorder;
  std::optional<CountedWork> counted;
};

void BeginRecording(const Conversion& conversion, const BegunJob& job, const Share& share,
                    RunCounts& counts) {
  counts.run = conversion.options.run;
  const auto recorded = RecordedShare(job, share);
  if (!recorded) return;
  ProgressRecorder& recorder =
      counts.recorder.emplace(job.job(), conversion.options.shard, *recorded);
  counts.run.progress = [&recorder, &report = conversion.options.run.progress](const Progress& at) {
    recorder.Update(at);
    if (report) report(at);
  };
}

// `counts` gets the total work.
Result<Work> CheckAndWrite(const Conversion& conversion, const BegunJob& job, const Share& share,
                           RunCounts& counts) {
  OpenedConversion& opened = conversion.opened;
  const ConvertOptions& options = conversion.options;
  OpenedSource& source = *opened.source;
  const Target& target = opened.target();
  const WorkList& list = opened.work();
  const bool check_staged =
      share.staged && !share.published && options.resume == OutputChoice::Resume::kVerify;
  std::vector<int64_t> files;
  files.reserve(share.parts.size());
  uint64_t bytes = 0;
  for (const TargetShare& part : share.parts) {
    files.push_back(list.targets[part.target].rank);
    if (!share.staged || check_staged) bytes += part.part.range.length;
  }
  Work done;
  RESHARD_ASSIGN_OR_RETURN(
      const SourceChecks checks,
      FindChecks(source, share.source_ranks, RanksOf(target, files), options.checks));
  Progress all;
  all.total_bytes = checks.bytes + bytes;
  all.phase = Progress::Phase::kCheck;
  if (!share.staged || check_staged) all.total_files = share.parts.size();
  BeginRecording(conversion, job, share, counts);
  const CountedWork& count = counts.counted.emplace(counts.run, all);
  if (counts.recorder) counts.recorder->Update(all);
  RESHARD_ASSIGN_OR_RETURN(
      done.replicas, RunChecks(source, checks, target.choice(), options.checks, count.work()));
  done.checked = checks.crc;
  if (check_staged) {
    RESHARD_RETURN_IF_ERROR(CheckPublication(list, *job.alone, count.work()));
  }
  if (share.staged) return done;
  conversion.timeline.Begin("write");
  MarkTime(conversion);
  count.Enter(Progress::Phase::kWrite);
  RESHARD_ASSIGN_OR_RETURN(
      done.written, WriteTargets(conversion, share.parts,
                                 {job.job(), job.job().storage(), job.job().spec().fingerprint,
                                  [&](uint64_t kept) {
                                    if (counts.recorder) counts.recorder->AddKept(kept);
                                  }},
                                 count.work()));
  return done;
}

// Adds the advice to continue an unfinished run. There is none if the sources have changed, because
// their files are useless. A worker is run again without other options.
Status WithHint(Status status, const BegunJob& job) {
  if (status.code() == StatusCode::kChanged || job.worker || job.alone->already_staged()) {
    return status;
  }
  const size_t finished = job.alone->CountFinished();
  if (finished == 0) {
    const bool is_full = status.system_error() == ENOSPC || status.system_error() == EDQUOT;
    if (!is_full) return status;
    return status.WithMessage(
        status.message() +
        " (no file was finished or kept: once there is space, run the same command again)");
  }
  return status.WithMessage(
      fmt::format("{} ({}: run the same command with `resume` to go on)", status.message(),
                  finished == 1 ? "1 finished file is kept"
                                : fmt::format("{} finished files are kept", finished)));
}

ConvertReport MakeReport(const Conversion& conversion, const Share& share, Work done,
                         PublishReport published) {
  const WorkList& list = conversion.opened.work();
  ConvertReport report;
  static_cast<Findings&>(report) = conversion.opened.plan.findings;
  report.warnings.insert(report.warnings.end(), published.warnings.begin(),
                         published.warnings.end());
  report.values_lost = published.values_lost;
  report.values_zeroed = published.values_zeroed;
  report.pruned = published.pruned;
  std::set<int64_t> ranks;
  for (const std::vector<TargetShare>* parts : {&share.finished, &share.parts}) {
    for (const auto& [number, part] : *parts) {
      const PlanReport::TargetFile& target = list.targets[number];
      report.files.push_back({target.path, part.range.length});
      report.bytes_written += part.range.length;
      ranks.insert(target.source_ranks.begin(), target.source_ranks.end());
    }
  }
  report.source_ranks.assign(ranks.begin(), ranks.end());
  const std::optional<WorkerShare>& worker = conversion.options.shard;
  report.bytes_read = worker ? done.written.bytes_read : list.bytes_read;
  report.crc_files = done.checked.files.size();
  report.crc_bytes = done.checked.bytes;
  report.replicas = std::move(done.replicas);
  report.files_kept = share.finished.size() + done.written.kept;
  report.memory_peak = done.written.memory_peak;
  report.io = done.written.io;
  report.completed_earlier_run = share.staged;
  if (worker) {
    report.shard = {.shard = *worker,
                    .published = published.published && !published.by_other,
                    .already_published = false,
                    .outstanding = std::move(published.outstanding)};
  }
  return report;
}

// Of a run that found the set in place.
Result<ConvertReport> ReportOfNothing(const Conversion& conversion, const Job& job, Work done) {
  PublishReport published;
  RESHARD_RETURN_IF_ERROR(ReportLost(job.spec().checks, job.earlier().lost, published));
  const std::vector<std::string>& left = job.earlier().left;
  if (!left.empty()) {
    published.warnings.push_back(FilesLeft(conversion.options.target.folder, left));
  }
  ConvertReport report = MakeReport(conversion, {}, std::move(done), std::move(published));
  report.bytes_read = 0;
  report.already_published = true;
  if (report.shard) report.shard->published = report.shard->already_published = true;
  return report;
}

// The rest of a conversion, alone or as one of several workers: execute, verify, commit.
Result<ConvertReport> Execute(const Conversion& conversion, JobSpec spec,
                              std::optional<WorkerTurn> turn) {
  conversion.timeline.Begin("check");
  MarkTime(conversion);
  const Patience patience(conversion.options.run);
  BegunJob job;
  RESHARD_RETURN_IF_ERROR(Begin(conversion, std::move(spec), std::move(turn), patience, job));
  const Share share =
      job.worker ? ShareOf(conversion, *job.worker) : ShareOf(conversion, *job.alone);
  RunCounts counts;
  auto done = CheckAndWrite(conversion, job, share, counts);
  if (!done.ok()) return share.published ? done.status() : WithHint(done.status(), job);
  if (share.published) return ReportOfNothing(conversion, job.job(), *std::move(done));
  conversion.timeline.Begin("publish");
  MarkTime(conversion);
  counts.counted->Enter(Progress::Phase::kPublish);
  conversion.budget.measured->refuses = false;
  // Publication takes its own memory, which is not counted beside that of windows.
  conversion.opened.source->files().GiveWindowsBack();
  // Before anything says that the files are finished: others would publish them.
  RESHARD_RETURN_IF_ERROR(conversion.opened.source->files().VerifyUnchanged());
  if (job.worker) RESHARD_RETURN_IF_ERROR(job.worker->FinishShare());
  RESHARD_ASSIGN_OR_RETURN(PublishReport published,
                           job.worker ? job.worker->Commit(patience) : job.alone->Publish());
  return MakeReport(conversion, share, *std::move(done), std::move(published));
}

// What a worker has before its job begins.
struct WorkerStart {
  std::optional<WorkerTurn> turn;  // if the others wait until this worker has begun
  std::optional<JobSpec> job;      // by the plan of another worker
};

// The steps after planning.
Result<ConvertReport> CarryOut(OpenedConversion opened, const ConvertOptions& options,
                               const MemoryBudget& first, TimelineRecorder& timeline,
                               WorkerStart start = {}) {
  OpenedSource& source = *opened.source;
  Findings& findings = opened.plan.findings;
  RESHARD_ASSIGN_OR_RETURN(const MemoryBudget budget,
                           FitMemory(first, HeldOf(source), opened.work(), findings.warnings));
  source.files().SetWindowBudget(budget.window_bytes, budget.header_bytes);
  JobSpec job;
  if (start.job) {
    job = *std::move(start.job);
  } else {
    RESHARD_ASSIGN_OR_RETURN(job, MakeJobSpec(source, opened.work(), options));
    if (options.shard) job.plan = PlanRecordOf(opened, options);
  }
  job.meter = &budget.measured->meter;
  job.note = [&](const std::string& note) {
    findings.notes.push_back(note);
    if (options.note) options.note(note);
  };
  if (!job.follows_plan) {
    RESHARD_ASSIGN_OR_RETURN(job.other_source, FindOtherSource(opened, job));
    // The worker that publishes has to know it.
    if (!job.other_source.empty()) job.plan.reset();
  }
  const Conversion conversion{opened, options, budget, timeline};
  RESHARD_ASSIGN_OR_RETURN(ConvertReport report,
                           Execute(conversion, std::move(job), std::move(start.turn)));
  MarkTime(conversion);
  report.timeline = timeline.Finish();
  const MemoryMeter& meter = budget.measured->meter;
  report.memory_limit = budget.limit;
  report.memory_planned = budget.planned_peak;
  report.anonymous_peak = meter.anonymous_peak();
  if (report.memory_peak > 0) {
    report.memory_peak = std::max<uint64_t>(budget.measured->peak, meter.peak());
  }
  return report;
}

// One of several workers: plans its share by the plan of the first one, or is the first one.
Result<ConvertReport> ConvertShare(const ConvertOptions& options, const MemoryBudget& first,
                                   TimelineRecorder& timeline) {
  const Patience patience(options.run);
  const auto take_turn = [&] {
    return WorkerTurn::Take(options.target.folder, *options.shard, patience);
  };
  RESHARD_ASSIGN_OR_RETURN(std::optional<WorkerTurn> turn, take_turn());
  if (const auto known = FindKnownPlan(turn->lock(), options)) {
    // The others begin meanwhile.
    static_cast<void>((*std::exchange(turn, std::nullopt)).Release());
    RESHARD_ASSIGN_OR_RETURN(std::optional<PlannedShare> share, PlanShare(options, first, *known));
    if (share) {
      return CarryOut(std::move(share->opened), options, first, timeline,
                      {std::nullopt, std::move(share->job)});
    }
    RESHARD_ASSIGN_OR_RETURN(turn, take_turn());
  }
  // If others are at work, there will be no plan for this worker's options: nobody has to wait. If
  // the one that this worker has waited for left none, it found the set published or an error. All
  // find that side by side.
  if (!turn->lock().alone() || turn->lock().waited()) turn.reset();
  RESHARD_ASSIGN_OR_RETURN(OpenedConversion opened, OpenConversion(options, first));
  return CarryOut(std::move(opened), options, first, timeline, {std::move(turn), std::nullopt});
}

// Finds files of the other format, or .ckpt files for .ckpt outputs. A safetensors file may have
// metadata about itself, which would have to be rewritten, too.
Result<LoneFiles> FindFilesToRecode(const RecodeOptions& options, bool format_stays) {
  const TargetSpec& target = options.target;
  std::vector<std::string_view> extensions = {ContainerOf(TargetFormat::kCkpt).extension};
  if (target.format == TargetFormat::kCkpt && !options.decrypt && !format_stays) {
    extensions.insert(extensions.begin(), ContainerOf(TargetFormat::kSafetensors).extension);
  }
  RESHARD_ASSIGN_OR_RETURN(LoneFiles found,
                           FindEachFile(options.source.path, extensions, options.files));
  const bool changes = options.decrypt || target.states_crc || target.encryption ||
                       !options.selection.renames.empty();
  if (found.extension != ContainerOf(*target.format).extension || changes) return found;
  return InvalidArgumentError(
      fmt::format("{}: is in the format already, and no option changes it: give `crc`, "
                  "`encryption`, `decrypt`, `renames` or another `format`",
                  Escape(found.files.front().path)));
}

// If a file becomes another one of the same format, it stays encrypted unless the caller says so.
Status CheckDecryption(const OpenedSource& source, const RecodeOptions& options) {
  if (options.target.encryption || options.decrypt) return {};
  const std::optional<std::string> encrypted = source.FindEncrypted();
  if (!encrypted) return {};
  return InvalidArgumentError(
      fmt::format("{}: is encrypted, and its output would be plain; `encryption` encrypts it, "
                  "`decrypt` writes it plain",
                  Escape(*encrypted)));
}

}  // namespace

inline namespace v0_1 {

Result<ConvertReport> Convert(const ConvertOptions& options) {
  return CatchOutOfMemory([&]() -> Result<ConvertReport> {
    const FileUse use;
    const RetryScope retries(options.run);
    TimelineRecorder timeline(options.record_timeline);
    timeline.Begin("plan");
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget first, CheckAndDivide(options));
    const MemoryWatch watch(WatchOf(first));
    if (options.shard) return ConvertShare(options, first, timeline);
    RESHARD_ASSIGN_OR_RETURN(OpenedConversion opened, OpenConversion(options, first));
    // A job that continues may not need the first files. If all replicas are compared before, the
    // bytes would not stay in memory.
    if (options.resume == OutputChoice::Resume::kNo &&
        options.checks.replicas != CheckChoice::Replicas::kAll) {
      BeginReading(opened, first);
    }
    return CarryOut(std::move(opened), options, first, timeline);
  });
}

Result<PlanReport> Plan(const ConvertOptions& options) {
  return CatchOutOfMemory([&]() -> Result<PlanReport> {
    const FileUse use;
    const RetryScope retries(options.run);
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget first, CheckAndDivide(options));
    const MemoryWatch watch(WatchOf(first));
    ConvertOptions sampled = options;
    CheckChoice::Replicas& replicas = sampled.checks.replicas;
    if (replicas == CheckChoice::Replicas::kAll) replicas = CheckChoice::Replicas::kSample;
    RESHARD_ASSIGN_OR_RETURN(OpenedConversion opened, OpenConversion(sampled, first));
    OpenedSource& source = *opened.source;
    Findings& findings = opened.plan.findings;
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget budget,
                             FitMemory(first, HeldOf(source), opened.work(), findings.warnings));
    RESHARD_ASSIGN_OR_RETURN(JobSpec job, MakeJobSpec(source, opened.work(), options));
    RESHARD_ASSIGN_OR_RETURN(job.other_source, FindOtherSource(opened, job));
    job.note = [&findings](const std::string& note) { findings.notes.push_back(note); };
    RESHARD_ASSIGN_OR_RETURN(const auto free_space, TargetJob::Check(std::move(job)));
    PlanReport report = ReportOf(std::move(opened.plan));
    report.free_space_bytes = free_space;
    report.memory_limit = budget.limit;
    report.memory_bytes = budget.planned_peak;
    return report;
  });
}

Result<ConvertReport> Recode(const RecodeOptions& given) {
  return CatchOutOfMemory([&]() -> Result<ConvertReport> {
    RecodeOptions options = given;
    const bool format_stays = !options.target.format;
    if (format_stays) options.target.format = TargetFormat::kCkpt;
    const FileUse use;
    const RetryScope retries(options.run);
    TimelineRecorder timeline(false);
    ReportPlanning(options.run);
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget first,
                             DivideMemory(options.memory_limit, Workers(options.run.jobs)));
    RESHARD_RETURN_IF_ERROR(CheckRecodeOptions(options));
    const MemoryWatch watch(WatchOf(first));
    ConvertOptions all = static_cast<const ConvertOptions&>(options);
    all.checks.replicas = CheckChoice::Replicas::kNone;
    const Container& to = ContainerOf(*options.target.format);
    RESHARD_ASSIGN_OR_RETURN(const LoneFiles found, FindFilesToRecode(options, format_stays));
    std::vector<std::string> paths;
    paths.reserve(found.files.size());
    for (const LoneFile& file : found.files) {
      const std::string& path = file.relative_path;
      paths.push_back(path.substr(0, path.size() - found.extension.size()));
      paths.back() += to.extension;
    }
    OpenedConversion opened;
    SourceLimits limits = LimitsOf(all, first);
    limits.lone_parts = LoneParts::kRefused;
    RESHARD_ASSIGN_OR_RETURN(opened.source, OpenEachFile(found.files, limits, options.source.key));
    const bool is_same = found.extension == to.extension;
    if (is_same) RESHARD_RETURN_IF_ERROR(CheckDecryption(*opened.source, options));
    opened.made.lone = std::make_unique<EachFileTarget>(
        opened.source->tensors(), ParameterChoice({}, {}, options.selection.renames), to,
        std::move(paths), options.selection.unmatched == Selection::Unmatched::kError, is_same);
    opened.made.lone->set_states_crc(options.target.states_crc);
    RESHARD_ASSIGN_OR_RETURN(opened.plan,
                             PlanConversion(*opened.source, opened.target(), all, first));
    return CarryOut(std::move(opened), all, first, timeline);
  });
}

Result<CommitReport> CommitWorkers(const std::string& target, const RunOptions& run) {
  return CatchOutOfMemory([&]() -> Result<CommitReport> {
    const Patience patience(run);
    const FileUse use;
    RESHARD_RETURN_IF_ERROR(CheckOutputsOutside(target));
    CommitReport report;
    RESHARD_ASSIGN_OR_RETURN(std::optional<WorkerJob> job, WorkerJob::Open(target, patience));
    report.already_published = !job;
    if (!job) return report;
    std::vector<std::string> paths;
    for (const ManifestFile& file : job->spec().files) paths.push_back(file.path);
    RESHARD_RETURN_IF_ERROR(CheckOutputsOutside(target, paths));
    const bool has_strategy =
        !job->spec().source_strategy.empty() || !job->spec().target_strategy.empty();
    job->set_check_readers([rules = RulesOf(target, job->spec().origin, has_strategy)](
                               const NamesToCome& names) { return CheckReaders(rules, names); });
    RESHARD_ASSIGN_OR_RETURN(PublishReport outcome, job->Commit(patience));
    if (!outcome.published) {
      std::vector<std::string> shards;
      for (const uint64_t shard : outcome.outstanding) {
        const WorkerState& worker = job->workers()[shard];
        std::string words;
        if (worker.kind == WorkerState::Kind::kRunning) {
          words = fmt::format(" (at work in {})",
                              worker.process.empty() ? "another process" : worker.process);
        }
        shards.push_back(fmt::format("{}/{}{}", shard, job->spec().workers, words));
      }
      return NotFoundError(
          fmt::format("{}: {} of {} shares have not finished: {}; run them again, then this",
                      Escape(target), shards.size(), job->spec().workers, FirstOf(shards)));
    }
    report.already_published = outcome.by_other;
    report.warnings = std::move(outcome.warnings);
    return report;
  });
}

}  // namespace v0_1

}  // namespace reshard
