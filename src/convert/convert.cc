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
#include "format/encoding/encoder.h"
#include "reshard/file_use.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/conversion_job.h"
#include "src/convert/conversion_plan.h"
#include "src/convert/joined_sources.h"
#include "src/convert/memory_budget.h"
#include "src/convert/opened_source.h"
#include "src/convert/option_checks.h"
#include "src/convert/reader_check.h"
#include "src/convert/source_checks.h"
#include "src/convert/stated_places.h"
#include "src/convert/strategy_check.h"
#include "src/convert/timeline_recorder.h"
#include "src/convert/work_list.h"
#include "src/convert/write_targets.h"
#include "src/io/shared_work.h"
#include "src/job/target_job.h"
#include "src/job/worker_job.h"
#include "src/mindspore/each_file.h"
#include "src/mindspore/output_check.h"
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

// Opens the source. Files that state another place than that which they are taken for are refused.
Result<std::unique_ptr<OpenedSource>> OpenStated(const ConvertOptions& options,
                                                 const MemoryBudget& budget) {
  RESHARD_ASSIGN_OR_RETURN(auto source, OpenSource(options, budget));
  RESHARD_RETURN_IF_ERROR(CheckRanksOfNames(*source, options.source));
  if (!options.checks.partial) RESHARD_RETURN_IF_ERROR(CheckAllParts(*source));
  return source;
}

// Says that nothing confirms the source strategy, and what its reader can look at.
std::string Unconfirmed(const OpenedSource& source, std::string_view why,
                        const ConversionFindings& findings) {
  constexpr size_t kMostShapes = 3;
  std::vector<std::string> shapes;
  for (const TensorInfo& parameter : findings.largest_shapes) {
    if (shapes.size() == kMostShapes) break;
    if (parameter.shape.size() < 2) continue;
    shapes.push_back(fmt::format("{} {}", Quote(parameter.name), ToString(parameter.shape)));
  }
  return fmt::format(
      "{}: {}, so the strategy is unconfirmed. Compare the largest full shapes with the model's: "
      "{}; `checks.reference` compares all with a file",
      Escape(source.rule().source()->path()), why, fmt::join(shapes, ", "));
}

// Checks that the source is what it is taken for and the source strategy its own, before anything
// is written.
Status CheckSource(OpenedSource& source, const Target& target, const CheckChoice& checks,
                   const RunOptions& run, ConversionPlan& plan) {
  if (!checks.partial) RESHARD_RETURN_IF_ERROR(CheckSavedOffsets(source));
  RESHARD_ASSIGN_OR_RETURN(
      const SampleLimits spent,
      CheckTotals(source, target.choice(), checks.parameters, run.stop, plan.findings));
  std::vector<int64_t> files;
  files.reserve(plan.work.targets.size());
  for (const TargetFileSummary& file : plan.work.targets) files.push_back(file.rank);
  const std::vector<int64_t> target_ranks = RanksOf(target, files);
  RESHARD_ASSIGN_OR_RETURN(
      StrategyFindings findings,
      CheckStrategy(source, target.choice(), StagesOf(source.rule(), target_ranks),
                    {.replicas = checks.replicas,
                     .unmatched = plan.unmatched_matrices,
                     .spent = checks.parameters ? SampleLimits{0, 0} : spent,
                     .workers = Workers(run.jobs),
                     .stop = run.stop}));
  for (Warning& warning : findings.warnings) {
    plan.findings.warnings.push_back(std::move(warning));
  }
  plan.findings.sample = findings.sample;
  if (!findings.unconfirmed.empty()) {
    plan.findings.notes.push_back(Unconfirmed(source, findings.unconfirmed, plan.findings));
  }
  return {};
}

// Says that a call begins to plan.
void ReportPlanning(const RunOptions& run) {
  if (!run.progress) return;
  Progress progress;
  progress.phase = Phase::kPlan;
  run.progress(progress);
}

// What is known once a conversion is planned and checked.
struct Conversion {
  OpenedSource& source;
  const Target& target;
  const ConversionPlan& plan;
  const ConvertOptions& options;
  const MemoryBudget& budget;
  TimelineRecorder& timeline;
};

// What of a conversion this process does.
struct Share {
  std::vector<TargetShare> parts;     // to be written, or kept by the job
  std::vector<TargetShare> finished;  // by another call, and not to be written
  std::set<int64_t> source_ranks;     // whose files are read to write what is not finished
  bool published = false;             // by an earlier run: nothing is left to do
  bool staged = false;                // nothing is left to write, only to publish
};

// All files of a job, of which nothing is to be written if they are `published`.
Share ShareOfAll(const Conversion& conversion, const JobSpec& spec, bool published) {
  std::vector<FilePart> parts;
  parts.reserve(spec.files.size());
  for (size_t i = 0; i < spec.files.size(); ++i) parts.push_back({i, {0, spec.files[i].size}});
  Share share;
  share.parts = SharesOf(conversion.plan.work, spec.files, parts);
  share.published = share.staged = published;
  return share;
}

Share ShareOf(const Conversion& conversion, const TargetJob& job) {
  Share share = ShareOfAll(conversion, job.spec(), job.earlier().found);
  if (share.published) return share;
  share.staged = job.already_staged();
  if (share.staged) return share;
  for (const TargetFileSummary& target : conversion.plan.work.targets) {
    // A finished file may turn out not to be what was recorded.
    const bool trusted = job.spec().resume != Resume::kVerify;
    if (trusted && job.Finished(target.path) != nullptr) continue;
    share.source_ranks.insert(target.source_ranks.begin(), target.source_ranks.end());
  }
  return share;
}

Share ShareOf(const Conversion& conversion, const WorkerJob& job) {
  if (job.earlier().found) return ShareOfAll(conversion, job.spec(), true);
  Share share;
  const std::vector<ManifestFile>& files = job.spec().files;
  share.parts = SharesOf(conversion.plan.work, files, job.unfinished());
  share.finished = SharesOf(conversion.plan.work, files, job.finished());
  for (const TargetShare& part : share.parts) {
    const std::vector<int64_t>& ranks = conversion.plan.work.targets[part.target].source_ranks;
    share.source_ranks.insert(ranks.begin(), ranks.end());
  }
  return share;
}

// A conversion's right to its target folder: that of a run alone, or of one of several workers.
struct Job {
  std::optional<TargetJob> alone;
  std::optional<WorkerJob> worker;

  const PartSink& sink() const {
    if (worker) return *worker;
    return *alone;
  }
  const JobSpec& spec() const { return worker ? worker->spec() : alone->spec(); }
  const PublishedSet& earlier() const { return worker ? worker->earlier() : alone->earlier(); }
  StorageKind storage() const { return worker ? worker->storage() : alone->storage(); }
};

Status Begin(const Conversion& conversion, JobSpec spec, const Patience& patience, Job& job) {
  if (!conversion.options.shard) {
    RESHARD_ASSIGN_OR_RETURN(TargetJob alone, TargetJob::Begin(std::move(spec)));
    job.alone.emplace(std::move(alone));
    return {};
  }
  RESHARD_ASSIGN_OR_RETURN(WorkerJob worker,
                           WorkerJob::Begin(std::move(spec), *conversion.options.shard, patience));
  job.worker.emplace(std::move(worker));
  return {};
}

// What a run did before it published.
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

// `counted` gets what there is to do.
Result<Work> CheckAndWrite(const Conversion& conversion, const Job& job, const Share& share,
                           std::optional<CountedWork>& counted) {
  const auto& [source, target, plan, options, budget, timeline] = conversion;
  const WorkList& list = plan.work;
  const bool check_staged = share.staged && !share.published && options.resume == Resume::kVerify;
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
  all.phase = Phase::kCheck;
  if (!share.staged || check_staged) all.total_files = share.parts.size();
  const CountedWork& count = counted.emplace(options.run, all);
  RESHARD_ASSIGN_OR_RETURN(
      done.replicas, RunChecks(source, checks, target.choice(), options.checks, count.work()));
  done.checked = checks.crc;
  if (check_staged) {
    RESHARD_RETURN_IF_ERROR(CheckPublication(list, *job.alone, count.work()));
  }
  if (share.staged) return done;
  timeline.Begin("write");
  MarkTime(conversion);
  count.Enter(Phase::kWrite);
  RESHARD_ASSIGN_OR_RETURN(
      done.written,
      WriteTargets(source, target, list, *plan.kept, share.parts, job.sink(), job.storage(),
                   job.spec().fingerprint, options, budget, count.work(), timeline));
  return done;
}

// Says what an unfinished run leaves to go on with. Nothing can be made of files from sources that
// are not what they were; a worker is run again as it is.
Status WithHint(Status status, const Job& job) {
  if (status.code() == StatusCode::kChanged || job.worker || job.alone->already_staged()) {
    return status;
  }
  const size_t finished = job.alone->CountFinished();
  if (finished == 0) {
    const bool is_full = status.system_error() == ENOSPC || status.system_error() == EDQUOT;
    if (!is_full) return status;
    return status.WithMessage(status.message() +
                              " (no file was finished and nothing is kept: once there is space, "
                              "run the same command again)");
  }
  return status.WithMessage(
      fmt::format("{} ({}: run the same command with `resume` to go on)", status.message(),
                  finished == 1 ? "1 finished file is kept"
                                : fmt::format("{} finished files are kept", finished)));
}

ConvertReport MakeReport(const Conversion& conversion, const Share& share, Work done,
                         PublishReport published) {
  const WorkList& list = conversion.plan.work;
  const ConversionFindings& findings = conversion.plan.findings;
  ConvertReport report;
  report.warnings = findings.warnings;
  report.notes = findings.notes;
  report.warnings.insert(report.warnings.end(), published.warnings.begin(),
                         published.warnings.end());
  report.values_lost = published.values_lost;
  report.values_zeroed = published.values_zeroed;
  report.pruned = published.pruned;
  report.sample = findings.sample;
  report.largest = findings.largest;
  report.largest_shapes = findings.largest_shapes;
  report.totals = findings.totals;
  report.chosen_totals = findings.chosen_totals;
  report.stage_alone = findings.stage_alone;
  report.parameters = findings.parameters;
  report.left_out = findings.left_out;
  report.renamed = findings.renamed;
  report.source_is_whole = findings.source_is_whole;
  report.step = findings.step;
  std::set<int64_t> ranks;
  for (const std::vector<TargetShare>* parts : {&share.finished, &share.parts}) {
    for (const auto& [number, part] : *parts) {
      const TargetFileSummary& target = list.targets[number];
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
  RESHARD_RETURN_IF_ERROR(ReportLost(job.spec(), job.earlier().lost, published));
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
Result<ConvertReport> Execute(const Conversion& conversion, JobSpec spec) {
  conversion.timeline.Begin("check");
  MarkTime(conversion);
  const Patience patience(conversion.options.run.stop, conversion.options.waiting);
  Job job;
  RESHARD_RETURN_IF_ERROR(Begin(conversion, std::move(spec), patience, job));
  const Share share =
      job.worker ? ShareOf(conversion, *job.worker) : ShareOf(conversion, *job.alone);
  std::optional<CountedWork> counted;
  auto done = CheckAndWrite(conversion, job, share, counted);
  if (!done.ok()) return share.published ? done.status() : WithHint(done.status(), job);
  if (share.published) return ReportOfNothing(conversion, job, *std::move(done));
  conversion.timeline.Begin("publish");
  MarkTime(conversion);
  counted->Enter(Phase::kPublish);
  conversion.budget.measured->refuses = false;
  // Publication takes memory of its own, which is not counted beside that of windows.
  conversion.source.files().GiveWindowsBack();
  // Before anything says that the files are finished: others would publish them.
  RESHARD_RETURN_IF_ERROR(conversion.source.files().VerifyUnchanged());
  if (job.worker) RESHARD_RETURN_IF_ERROR(job.worker->FinishShare());
  RESHARD_ASSIGN_OR_RETURN(PublishReport published,
                           job.worker ? job.worker->Commit(patience) : job.alone->Publish());
  return MakeReport(conversion, share, *std::move(done), std::move(published));
}

HeldOfSources HeldOf(OpenedSource& source) {
  const SourceFiles& files = source.files();
  const TableCache& tables = source.tables();
  // An index is there twice for a moment: what it is made of, and what was made.
  return {files.PagesPeak(), files.HeldForHeaders(), files.Buffered(),
          tables.has_dropped() ? 2 * tables.largest() : 0};
}

// What follows planning.
Result<ConvertReport> CarryOut(OpenedSource& source, const Target& target, ConversionPlan plan,
                               const ConvertOptions& options, const MemoryBudget& first,
                               TimelineRecorder& timeline) {
  RESHARD_ASSIGN_OR_RETURN(const MemoryBudget budget,
                           FitMemory(first, HeldOf(source), plan.work, plan.findings.warnings));
  source.files().SetWindowBudget(budget.window_bytes, budget.header_bytes);
  RESHARD_ASSIGN_OR_RETURN(JobSpec job, MakeJobSpec(source, plan.work, options));
  job.meter = &budget.measured->meter;
  job.note = [&](const std::string& note) {
    plan.findings.notes.push_back(note);
    if (options.note) options.note(note);
  };
  RESHARD_ASSIGN_OR_RETURN(job.other_source, FindOtherSource(source, target, job));
  const Conversion conversion{source, target, plan, options, budget, timeline};
  RESHARD_ASSIGN_OR_RETURN(ConvertReport report, Execute(conversion, std::move(job)));
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

// A conversion of files each for itself.
ConvertOptions OptionsOf(const RecodeOptions& options) {
  ConvertOptions convert;
  convert.source.path = options.source;
  convert.target.folder = options.target_folder;
  convert.target.format = options.format;
  convert.target.states_crc = options.states_crc;
  convert.target.encryption = options.encryption;
  convert.target.encryption_key = options.encryption_key;
  convert.selection.renames = options.renames;
  convert.selection.unmatched = options.unmatched;
  convert.checks.checksum = options.checksum;
  convert.checks.replicas = CheckReplicas::kNone;
  convert.run = options.run;
  convert.force = options.force;
  convert.resume = options.resume;
  convert.memory_limit = options.memory_limit;
  convert.io = options.io;
  convert.note = options.note;
  return convert;
}

RecodeReport ReportOfFiles(ConvertReport report) {
  RecodeReport made;
  made.warnings = std::move(report.warnings);
  made.notes = std::move(report.notes);
  made.files = std::move(report.files);
  made.parameters = report.parameters;
  made.renamed = report.renamed;
  made.bytes_read = report.bytes_read;
  made.bytes_written = report.bytes_written;
  made.crc_files = report.crc_files;
  made.crc_bytes = report.crc_bytes;
  made.files_kept = report.files_kept;
  made.completed_earlier_run = report.completed_earlier_run;
  made.already_published = report.already_published;
  return made;
}

}  // namespace

Result<ConvertReport> v0_1::Convert(const ConvertOptions& options) {
  return CatchOutOfMemory([&]() -> Result<ConvertReport> {
    const FileUse use;
    TimelineRecorder timeline(options.record_timeline);
    timeline.Begin("plan");
    ReportPlanning(options.run);
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget first, CheckAndDivide(options));
    const MemoryWatch watch(WatchOf(first));
    RESHARD_ASSIGN_OR_RETURN(const auto source, OpenStated(options, first));
    RESHARD_ASSIGN_OR_RETURN(const ConversionTarget made,
                             MakeTarget(*source, options.target, options.selection));
    const Target& target = made.files();
    RESHARD_ASSIGN_OR_RETURN(ConversionPlan plan,
                             PlanConversion(*source, target, options.selection, options.checks,
                                            first, options.run.stop));
    RESHARD_RETURN_IF_ERROR(CheckSource(*source, target, options.checks, options.run, plan));
    // A job that goes on, or that others have a share in, may not need what comes first; and where
    // everything is compared before, it would not stay.
    if (options.resume == Resume::kNo && !options.shard &&
        options.checks.replicas != CheckReplicas::kAll) {
      BeginReading(*source, target, plan.work, first);
    }
    return CarryOut(*source, target, std::move(plan), options, first, timeline);
  });
}

Result<PlanReport> v0_1::Plan(const ConvertOptions& options) {
  return CatchOutOfMemory([&]() -> Result<PlanReport> {
    const FileUse use;
    ReportPlanning(options.run);
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget first, CheckAndDivide(options));
    const MemoryWatch watch(WatchOf(first));
    CheckChoice checks = options.checks;
    if (checks.replicas == CheckReplicas::kAll) checks.replicas = CheckReplicas::kSample;
    RESHARD_ASSIGN_OR_RETURN(const auto source, OpenStated(options, first));
    RESHARD_ASSIGN_OR_RETURN(const ConversionTarget made,
                             MakeTarget(*source, options.target, options.selection));
    const Target& target = made.files();
    RESHARD_ASSIGN_OR_RETURN(ConversionPlan plan,
                             PlanConversion(*source, target, options.selection, options.checks,
                                            first, options.run.stop));
    RESHARD_RETURN_IF_ERROR(CheckSource(*source, target, checks, options.run, plan));
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget budget,
                             FitMemory(first, HeldOf(*source), plan.work, plan.findings.warnings));
    RESHARD_ASSIGN_OR_RETURN(JobSpec job, MakeJobSpec(*source, plan.work, options));
    RESHARD_ASSIGN_OR_RETURN(job.other_source, FindOtherSource(*source, target, job));
    job.note = [&plan](const std::string& note) { plan.findings.notes.push_back(note); };
    RESHARD_ASSIGN_OR_RETURN(const auto free_space, TargetJob::Check(std::move(job)));
    PlanReport report = ReportOf(std::move(plan));
    report.free_space_bytes = free_space;
    report.memory_limit = budget.limit;
    report.memory_bytes = budget.planned_peak;
    return report;
  });
}

Result<RecodeReport> v0_1::Recode(const RecodeOptions& options) {
  return CatchOutOfMemory([&]() -> Result<RecodeReport> {
    const FileUse use;
    TimelineRecorder timeline(false);
    ReportPlanning(options.run);
    RESHARD_ASSIGN_OR_RETURN(const MemoryBudget first,
                             DivideMemory(options.memory_limit, Workers(options.run.jobs)));
    RESHARD_RETURN_IF_ERROR(CheckRecodeOptions(options));
    const MemoryWatch watch(WatchOf(first));
    const ConvertOptions all = OptionsOf(options);
    const bool to_ckpt = options.format == TargetFormat::kCkpt;
    const Container from = to_ckpt ? Container::kSafetensors : Container::kMindSpore;
    const Container to = to_ckpt ? Container::kMindSpore : Container::kSafetensors;
    RESHARD_ASSIGN_OR_RETURN(const std::vector<LoneFile> files,
                             FindEachFile(options.source, ExtensionOf(from), options.files));
    std::vector<std::string> paths;
    paths.reserve(files.size());
    for (const LoneFile& file : files) {
      const std::string& path = file.relative_path;
      paths.push_back(path.substr(0, path.size() - ExtensionOf(from).size()));
      paths.back() += ExtensionOf(to);
    }
    RESHARD_ASSIGN_OR_RETURN(const auto source,
                             OpenEachFile(files, from, LimitsOf(all, first), options.key));
    EachFileTarget target(source->tensors(), ParameterChoice({}, {}, options.renames), to,
                          std::move(paths), options.unmatched == UnmatchedPolicy::kError);
    target.set_states_crc(options.states_crc);
    RESHARD_ASSIGN_OR_RETURN(ConversionPlan plan, PlanConversion(*source, target, all.selection, {},
                                                                 first, options.run.stop));
    RESHARD_ASSIGN_OR_RETURN(ConvertReport report,
                             CarryOut(*source, target, std::move(plan), all, first, timeline));
    return ReportOfFiles(std::move(report));
  });
}

Result<CommitReport> v0_1::CommitWorkers(const CommitOptions& options) {
  return CatchOutOfMemory([&]() -> Result<CommitReport> {
    const Patience patience(options.stop, options.waiting);
    const FileUse use;
    RESHARD_RETURN_IF_ERROR(CheckOutputsOutside(options.target));
    CommitReport report;
    RESHARD_ASSIGN_OR_RETURN(std::optional<WorkerJob> job,
                             WorkerJob::Open(options.target, patience));
    report.already_published = !job;
    if (!job) return report;
    std::vector<std::string> paths;
    for (const ManifestFile& file : job->spec().files) paths.push_back(file.path);
    RESHARD_RETURN_IF_ERROR(CheckOutputsOutside(options.target, paths));
    const bool has_strategy =
        !job->spec().source_strategy.empty() || !job->spec().target_strategy.empty();
    job->set_check_readers([rules = RulesOf(options.target, job->spec().origin, has_strategy)](
                               const NamesToCome& names) { return CheckReaders(rules, names); });
    RESHARD_ASSIGN_OR_RETURN(PublishReport outcome, job->Commit(patience));
    if (!outcome.published) {
      std::vector<std::string> shards;
      for (const uint64_t shard : outcome.outstanding) {
        const auto live = job->at_work().find(shard);
        std::string words;
        if (live != job->at_work().end()) {
          words = fmt::format(" (at work in {})",
                              live->second.empty() ? "another process" : live->second);
        }
        shards.push_back(fmt::format("{}/{}{}", shard, job->spec().workers, words));
      }
      return NotFoundError(
          fmt::format("{}: {} of {} shards have not finished: {}; run them again, then this",
                      Escape(options.target), shards.size(), job->spec().workers, FirstOf(shards)));
    }
    report.already_published = outcome.by_other;
    report.warnings = std::move(outcome.warnings);
    return report;
  });
}

}  // namespace reshard
