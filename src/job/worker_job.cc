#include "src/job/worker_job.h"

#include <fmt/format.h>

#include <utility>

#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/job/file_digests.h"
#include "src/job/job_spec.h"
#include "src/job/leftovers.h"
#include "src/job/pruning.h"
#include "src/job/target_check.h"
#include "src/job/target_place.h"
#include "src/write/target_record.h"

namespace reshard {
namespace {

Status CheckWorker(const WorkerShare& worker) {
  if (IsWorkerShare(worker)) return {};
  return InvalidArgumentError(
      fmt::format("`shard`: expected an index below the count, which is from 1 to {}; found {}/{}",
                  kMaxWorkers, worker.index, worker.count));
}

}  // namespace

Result<WorkerTurn> WorkerTurn::Take(const std::string& target_folder, const WorkerShare& worker,
                                    const Patience& patience) {
  RESHARD_RETURN_IF_ERROR(CheckWorker(worker));
  RESHARD_ASSIGN_OR_RETURN(LockedTarget held, LockTarget(target_folder, &patience));
  return WorkerTurn(std::move(held));
}

WorkerTurn::~WorkerTurn() {
  if (!held_ || !held_->lock.alone()) return;
  // A failure cannot be reported any more. The next run deals with the leftovers.
  static_cast<void>(held_->lock.RemoveFolder(held_->folder));
  OutputDirectory::RemoveMade(held_->made);
}

WorkerJob::WorkerJob(JobSpec spec, std::optional<WorkerShare> worker, OutputDirectory target,
                     JobLock lock)
    : Job(std::move(spec), std::move(target), std::move(lock)),
      worker_(worker),
      parts_(PartsOf(spec_.files, spec_.workers)) {}

Result<WorkerJob> WorkerJob::Begin(JobSpec unchecked, const WorkerShare& worker,
                                   const Patience& patience, std::optional<WorkerTurn> turn) {
  RESHARD_RETURN_IF_ERROR(CheckWorker(worker));
  unchecked.workers = worker.count;
  unchecked.output.resume = OutputChoice::Resume::kTrust;
  unchecked.stop = patience.stop;
  RESHARD_ASSIGN_OR_RETURN(JobSpec spec, CheckedSpec(std::move(unchecked)));
  if (!turn) {
    RESHARD_ASSIGN_OR_RETURN(turn, WorkerTurn::Take(spec.target.folder, worker, patience));
  }
  LockedTarget target = (*std::move(turn)).Release();
  WorkerJob job(std::move(spec), worker, std::move(target.folder), std::move(target.lock));
  Status started = job.Start();
  if (!started.ok()) {
    // A failure to clear up cannot be reported any more. The next run deals with the leftovers.
    if (job.lock_.alone() && !job.folder_) {
      static_cast<void>(job.lock_.RemoveFolder(job.target_));
      OutputDirectory::RemoveMade(target.made);
    }
    return started;
  }
  return job;
}

Status WorkerJob::Start() {
  bool same_files = false;
  if (lock_.alone()) {
    RESHARD_RETURN_IF_ERROR(FindEarlier());
    if (earlier_.found) return {};
  }
  if (lock_.alone()) {
    RESHARD_ASSIGN_OR_RETURN(Recovered recovered, Recover(target_, lock_.folder(), spec_));
    folder_ = std::move(recovered.folder);
    same_files = recovered.same_files;
  } else {
    RESHARD_RETURN_IF_ERROR(Join());
  }
  if (folder_) {
    RESHARD_RETURN_IF_ERROR(LookAtShare());
  } else if (spec_.follows_plan) {
    return IoError(
        fmt::format("{}: the job of the shares was there and is gone; another program, or another "
                    "run, has removed it: run this share again",
                    Escape(lock_.folder().PathOf(spec_.fingerprint))));
  } else {
    unfinished_ = ShareOf(spec_.files, *worker_);
  }
  RESHARD_RETURN_IF_ERROR(CheckTargetFiles(same_files));
  if (!folder_) {
    RESHARD_ASSIGN_OR_RETURN(folder_, JobFolder::Make(lock_.folder(), spec_.fingerprint));
    RESHARD_RETURN_IF_ERROR(folder_->WriteJob(JobTextOf(spec_)));
  }
  if (spec_.plan && lock_.alone()) {
    spec_.plan->job = DigestOf(JobTextOf(spec_));
    // Without it, the other workers plan all files.
    static_cast<void>(folder_->WritePlan(*spec_.plan));
  }
  // The worker whose plan this one follows has proved it, and publication proves it again.
  if (lock_.alone() && !spec_.follows_plan) {
    RESHARD_RETURN_IF_ERROR(folder_->ProveMoves(target_, spec_.files));
  }
  RESHARD_ASSIGN_OR_RETURN(worker_lock_, folder_->RunLock(worker_));
  RESHARD_ASSIGN_OR_RETURN(const bool had, worker_lock_->TryPastAskers());
  if (!had) {
    const std::string holder = worker_lock_->Holder();
    return AlreadyExistsError(fmt::format(
        "share {}/{} of {} is at work in {}; give each process its own `shard`", worker_->index,
        worker_->count, Escape(target_.path()), holder.empty() ? "another process" : holder));
  }
  worker_lock_->Sign();
  return lock_.Admit();
}

Status WorkerJob::CheckTargetFiles(bool same_files) const {
  const bool replace = spec_.output.force || same_files;
  uint64_t bytes = 0;  // that are to be written: by all workers, or by this one
  if (!folder_) {
    for (const ManifestFile& file : spec_.files) bytes = SaturatingAdd(bytes, file.stored_size());
    RESHARD_RETURN_IF_ERROR(CheckSuperseded(spec_, target_, replace, PruneCheck::kSizes).status());
  } else if (!unfinished_.empty()) {
    // The worker that began the job has looked at all places and asked readers. If each worker did,
    // n workers would look n times at about n places.
    JobSpec own = spec_;
    own.files.clear();
    for (const FilePart& part : unfinished_) {
      own.files.push_back(spec_.files[part.file]);
      bytes += part.range.length;
    }
    RESHARD_ASSIGN_OR_RETURN(own, CheckedSpec(std::move(own)));
    RESHARD_RETURN_IF_ERROR(CheckTarget(target_, own, replace).status());
  } else {
    return {};
  }
  return CheckSpace(target_, bytes).status();
}

// Others hold the lock: then they have to be about the same.
Status WorkerJob::Join() {
  Status others = AlreadyExistsError(
      fmt::format("{}: the shares of another conversion are writing there; wait until they have "
                  "ended, or choose another target folder",
                  Escape(target_.path())));
  auto folder = JobFolder::Open(lock_.folder(), spec_.fingerprint);
  if (folder.status().code() == StatusCode::kNotFound) return others;
  if (!folder.ok()) return folder.status();
  RESHARD_ASSIGN_OR_RETURN(const std::optional<JobText> job, folder->ReadEither());
  if (!job) return others;
  std::vector<uint64_t> outstanding;
  if (job->workers != spec_.workers) {
    RESHARD_ASSIGN_OR_RETURN(outstanding, folder->Outstanding(job->workers));
  }
  RESHARD_RETURN_IF_ERROR(
      CheckSameJob(*job, JobTextOf(spec_), lock_.folder().PathOf(spec_.fingerprint), outstanding));
  folder_ = std::move(*folder);
  return {};
}

Status WorkerJob::LookAtShare() {
  for (const FilePart& part : ShareOf(spec_.files, *worker_)) {
    const ManifestFile& file = spec_.files[part.file];
    bool finished = false;
    if (IsWhole(part)) {
      RESHARD_ASSIGN_OR_RETURN(const auto head, folder_->StagedHead(file));
      finished = head && head->plan == spec_.fingerprint && head->path == file.path &&
                 head->size == file.size;
    } else {
      RESHARD_ASSIGN_OR_RETURN(const auto record,
                               folder_->StagedBlockRecord(file, part.range, spec_.fingerprint));
      finished = record.has_value();
    }
    (finished ? finished_ : unfinished_).push_back(part);
  }
  if (unfinished_.empty()) return {};
  // Files leave the job folder while they are published; then all files are written.
  RESHARD_ASSIGN_OR_RETURN(const auto journal, folder_->ReadJournal());
  if (journal) finished_.insert(finished_.end(), unfinished_.begin(), unfinished_.end());
  if (journal) unfinished_.clear();
  return {};
}

Result<std::optional<WorkerJob>> WorkerJob::Open(const std::string& target_folder,
                                                 const Patience& patience) {
  RESHARD_ASSIGN_OR_RETURN(OutputDirectory target, OutputDirectory::Open(target_folder));
  const auto nothing = [&]() -> Result<std::optional<WorkerJob>> {
    RESHARD_RETURN_IF_ERROR(CheckPublished(target).status());
    return std::optional<WorkerJob>();
  };
  const auto parent = target.OpenFolder(JobLock::kFolderName);
  if (parent.status().code() == StatusCode::kNotFound) return nothing();
  if (!parent.ok()) return parent.status();
  RESHARD_ASSIGN_OR_RETURN(JobLock lock, JobLock::AcquireAsWorker(target, patience));
  std::optional<JobFolder> folder;
  std::optional<JobText> text;
  std::string fingerprint;
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, lock.folder().Names());
  for (const std::string& name : names) {
    if (!CheckFingerprint(name).ok()) continue;
    auto job = JobFolder::Open(lock.folder(), name);
    if (!job.ok()) continue;  // something that is not reshard's
    RESHARD_ASSIGN_OR_RETURN(std::optional<JobText> found, job->ReadEither());
    if (!found || found->workers == 0) continue;
    if (folder) {
      return AlreadyExistsError(
          fmt::format("{}: shares of two conversions, {} and {}, have left files; run all shares "
                      "of one conversion again with `force`, or remove the folder of the other",
                      Escape(lock.folder().path()), fingerprint, name));
    }
    folder = std::move(*job);
    text = std::move(found);
    fingerprint = name;
  }
  if (!folder) {
    if (lock.alone()) RESHARD_RETURN_IF_ERROR(lock.RemoveFolder(target).status());
    return nothing();
  }
  RESHARD_ASSIGN_OR_RETURN(JobSpec unchecked, SpecOf(*text, target_folder, fingerprint,
                                                     lock.folder().PathOf(fingerprint)));
  RESHARD_ASSIGN_OR_RETURN(JobSpec spec, CheckedSpec(std::move(unchecked)));
  RESHARD_ASSIGN_OR_RETURN(auto workers, FindWorkers(*folder, spec.workers));
  RESHARD_RETURN_IF_ERROR(lock.Admit());
  WorkerJob job(std::move(spec), std::nullopt, std::move(target), std::move(lock));
  job.folder_ = std::move(folder);
  job.workers_ = std::move(workers);
  return std::optional(std::move(job));
}

bool WorkerJob::IsWhole(const FilePart& part) const { return parts_[part.file].size() == 1; }

Result<bool> WorkerJob::IsKept(const FilePart& /*part*/, const std::stop_token& /*stop*/) const {
  return false;
}

Result<StagedFile> WorkerJob::Create(const FilePart& part, const WriteOptions& options) const {
  const ManifestFile& file = spec_.files[part.file];
  if (!IsWhole(part)) return folder_->OpenPart(file.path, file.size, part.range, options);
  RESHARD_RETURN_IF_ERROR(folder_->Remove(file.path));  // the earlier leftovers of this worker
  return folder_->Create(file.path, file.stored_size(), options);
}

Status WorkerJob::Finish(const FilePart& part, StagedFile file, const FinishedPart& finished,
                         const std::stop_token& stop) const {
  RESHARD_RETURN_IF_ERROR(file.Finish());
  const std::string& path = spec_.files[part.file].path;
  if (IsWhole(part)) return folder_->FinishWhole(path, finished, stop);
  // A block record is held whole, unlike a part record.
  return folder_->WriteBlockRecord(path, part.range,
                                   [&](const OutputDirectory::ByteSink& sink) -> Status {
                                     return finished.record(nullptr, [&](std::string_view bytes) {
                                       if (spec_.meter != nullptr) spec_.meter->Look();
                                       return sink(bytes);
                                     });
                                   });
}

Status WorkerJob::FinishShare() const {
  std::vector<ManifestFile> files;
  for (const FilePart& part : ShareOf(spec_.files, *worker_)) {
    files.push_back(spec_.files[part.file]);
  }
  return folder_->WriteFinished(*worker_, files);
}

Status WorkerJob::JoinFile(size_t number, bool wait, const Patience& patience) const {
  const ManifestFile& file = spec_.files[number];
  RESHARD_ASSIGN_OR_RETURN(auto head, folder_->StagedHead(file));
  if (head) return {};
  if (!wait) {  // each of n workers may have a part, and would read the records of all others
    RESHARD_ASSIGN_OR_RETURN(const bool all,
                             folder_->HasBlockRecords(file.path, parts_[number].size()));
    if (!all) return {};
  }
  RESHARD_ASSIGN_OR_RETURN(const FileLock lock, folder_->JoinLock(file.path));
  if (wait) {
    RESHARD_RETURN_IF_ERROR(lock.Wait(patience));
  } else {
    RESHARD_ASSIGN_OR_RETURN(const bool had, lock.Try(FileLock::Mode::kExclusive));
    if (!had) return {};
  }
  RESHARD_ASSIGN_OR_RETURN(head, folder_->StagedHead(file));
  if (head) return {};
  const std::string path = folder_->PathOfStaged(file.path);
  std::vector<BlockRecord> records;
  for (const ByteRange& part : parts_[number]) {
    RESHARD_ASSIGN_OR_RETURN(auto record,
                             folder_->StagedBlockRecord(file, part, spec_.fingerprint));
    if (!record && !wait) return {};
    if (!record) {
      return IoError(
          fmt::format("{}: the record of the part at byte {} is missing or has changed; remove the "
                      "folder .reshard there, and run all shares again",
                      Escape(path), part.offset));
    }
    records.push_back(*std::move(record));
  }
  FileDigests read;
  std::optional<CrcOfFile> crc;
  if (StatesCrc(spec_, file.path)) {
    RESHARD_ASSIGN_OR_RETURN(crc, FindCrc(path, patience.stop));
    read = std::move(crc->without);
  } else if (spec_.checks.checksum) {
    RESHARD_ASSIGN_OR_RETURN(read, DigestFile(path, patience.stop));
  }
  RESHARD_ASSIGN_OR_RETURN(const std::string record,
                           JoinBlockRecords(records, read, crc ? &crc->with : nullptr, path));
  // If a process ends after this line, the next one writes the same bytes.
  if (crc) RESHARD_RETURN_IF_ERROR(folder_->Overwrite(file.path, crc->text));
  return folder_->WriteRecord(
      file.path, [&record](const OutputDirectory::ByteSink& sink) { return sink(record); });
}

Status WorkerJob::JoinOwnFiles(const Patience& patience) const {
  if (!worker_) return {};
  for (const FilePart& part : ShareOf(spec_.files, *worker_)) {
    if (IsWhole(part)) continue;
    Status joined = JoinFile(part.file, false, patience);
    // Not found: another worker has published.
    if (!joined.ok() && joined.code() != StatusCode::kNotFound) return joined;
  }
  return {};
}

// As it is now: the worker that publishes need not be the one that began.
Result<Superseded> WorkerJob::FindSuperseded() const {
  Superseded superseded;
  RESHARD_ASSIGN_OR_RETURN(superseded.findings, CheckTarget(target_, spec_, true));
  JobSpec forced = spec_;
  forced.output.force = true;
  forced.output.resume = OutputChoice::Resume::kNo;
  RESHARD_ASSIGN_OR_RETURN(const std::vector<Leftover> leftovers,
                           JudgeLeftovers(target_, lock_.folder(), forced));
  for (const Leftover& leftover : leftovers) {
    if (leftover.fate != Fate::kAbandon) continue;
    std::vector<ManifestFile>& abandoned = superseded.findings.abandoned;
    abandoned.insert(abandoned.end(), leftover.files.begin(), leftover.files.end());
    superseded.abandoned_jobs.push_back(leftover.fingerprint);
  }
  return superseded;
}

Status WorkerJob::CheckCanComplete(const JobText& journal) const {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<Manifest> manifest, folder_->ReadManifest(journal));
  bool whole = false;
  if (manifest) {
    RESHARD_ASSIGN_OR_RETURN(whole, folder_->CanPublish(manifest->files, target_));
  } else {  // it was put in place
    RESHARD_ASSIGN_OR_RETURN(const auto files, PublishedFiles(target_, spec_));
    whole = files.has_value();
  }
  if (whole) return {};
  return IoError(
      fmt::format("{}: publication had begun, but the manifest or files of the set are missing or "
                  "have changed; run all shares again",
                  Escape(target_.path())));
}

Result<PublishReport> WorkerJob::Commit(const Patience& patience) {
  PublishReport report;
  RESHARD_RETURN_IF_ERROR(JoinOwnFiles(patience));
  RESHARD_RETURN_IF_ERROR(lock_.WaitToCommit(patience));
  RESHARD_ASSIGN_OR_RETURN(const std::optional<JobText> job, folder_->ReadJob());
  RESHARD_ASSIGN_OR_RETURN(const std::optional<JobText> journal, folder_->ReadJournal());
  if (!job && !journal) {
    RESHARD_ASSIGN_OR_RETURN(const auto files, PublishedFiles(target_, spec_));
    if (!files) {
      return IoError(
          fmt::format("{}: the staged files of the shares are gone; another program, or another "
                      "run, has removed them",
                      Escape(lock_.folder().PathOf(spec_.fingerprint))));
    }
    report.published = report.by_other = true;
    return report;
  }
  folder_->Watch(spec_.meter);
  if (journal) {
    RESHARD_RETURN_IF_ERROR(CheckCanComplete(*journal));
  } else {
    RESHARD_ASSIGN_OR_RETURN(report.outstanding, folder_->Outstanding(spec_.workers));
    if (!report.outstanding.empty()) return report;
    std::vector<ManifestFile> joined;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].size() == 1) continue;
      RESHARD_RETURN_IF_ERROR(JoinFile(i, true, patience));
      joined.push_back(spec_.files[i]);
    }
    RESHARD_RETURN_IF_ERROR(folder_->CheckStaged(spec_.files));
    RESHARD_ASSIGN_OR_RETURN(const Superseded superseded, FindSuperseded());
    RESHARD_RETURN_IF_ERROR(
        MakePublishable(spec_, superseded, joined, {*folder_, lock_.folder(), target_}, report));
  }
  RESHARD_RETURN_IF_ERROR(PutInPlace(report));
  // A worker that begins now finds the published set, not a half-cleared job.
  const Status alone = lock_.Dismiss(patience);
  if (alone.ok()) {
    worker_lock_.reset();  // network file systems keep an open file in its folder
    ClearAfter(spec_, lock_, target_, report);
  } else {
    report.warnings.push_back({WarningCode::kSharesLeft, alone.message()});
  }
  return report;
}

}  // namespace reshard
