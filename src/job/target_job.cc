#include "src/job/target_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "src/base/checked.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/job/file_digests.h"
#include "src/job/leftovers.h"
#include "src/job/pruning.h"
#include "src/job/target_place.h"

namespace reshard {
namespace {

// Opens the folder that is nearest to `path`: itself, or the last one above it that exists.
Result<OutputDirectory> OpenNearest(std::string path) {
  while (true) {
    auto folder = OutputDirectory::Open(path);
    if (folder.status().code() != StatusCode::kNotFound || path == "/" || path == ".") {
      return folder;
    }
    path.erase(std::min(path.find_last_not_of('/') + 1, path.size()));
    const size_t slash = path.find_last_of('/');
    path = slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
  }
}

// Those files of `spec` that an interrupted run has finished in `folder`.
Result<FinishedFiles> FindFinished(const JobFolder& folder, const JobSpec& spec) {
  FinishedFiles finished;
  for (const ManifestFile& file : spec.files) {
    RESHARD_ASSIGN_OR_RETURN(std::optional<PartRecordHead> head, folder.StagedHead(file));
    if (head && head->plan == spec.fingerprint && head->path == file.path &&
        head->size == file.size) {
      finished.emplace(file.path, *std::move(head));
    }
  }
  return finished;
}

uint64_t BytesToWrite(const JobSpec& spec, const FinishedFiles& finished) {
  uint64_t bytes = 0;
  for (const ManifestFile& file : spec.files) {
    if (finished.contains(file.path)) continue;
    bytes = SaturatingAdd(bytes, file.stored_size());
  }
  return bytes;
}

// Whether a set that is complete already will do. `force` alone writes it again.
bool LooksForPublished(const JobSpec& spec) {
  return spec.output.resume != OutputChoice::Resume::kNo || !spec.output.force;
}

}  // namespace

TargetJob::TargetJob(JobSpec spec, std::vector<std::string> made, OutputDirectory target,
                     JobLock lock)
    : Job(std::move(spec), std::move(target), std::move(lock)), made_(std::move(made)) {}

Result<TargetJob> TargetJob::Begin(JobSpec unchecked) {
  RESHARD_ASSIGN_OR_RETURN(JobSpec spec, CheckedSpec(std::move(unchecked)));
  RESHARD_ASSIGN_OR_RETURN(LockedTarget target, LockTarget(spec.target.folder, nullptr));
  // From here on the destructor clears up.
  TargetJob job(std::move(spec), std::move(target.made), std::move(target.folder),
                std::move(target.lock));
  if (LooksForPublished(job.spec_)) {
    RESHARD_RETURN_IF_ERROR(job.FindEarlier());
    job.published_ = job.earlier_.found;
    if (job.published_) return job;
  }
  RESHARD_ASSIGN_OR_RETURN(Recovered recovered,
                           Recover(job.target_, job.lock_.folder(), job.spec_));
  job.folder_ = std::move(recovered.folder);
  if (job.folder_) RESHARD_RETURN_IF_ERROR(job.LockRun());
  job.already_staged_ = recovered.already_staged;
  job.publishing_ = std::move(recovered.publishing);
  if (job.already_staged_) return job;
  RESHARD_ASSIGN_OR_RETURN(
      job.superseded_,
      CheckSuperseded(job.spec_, job.target_, job.spec_.output.force || recovered.same_files,
                      PruneCheck::kDigests, std::move(recovered.abandoned)));
  job.superseded_.abandoned_jobs = std::move(recovered.abandoned_jobs);
  const bool resumed = job.folder_.has_value();
  if (resumed) {
    RESHARD_ASSIGN_OR_RETURN(job.finished_, job.KeepFinished());
  }
  RESHARD_RETURN_IF_ERROR(CheckSpace(job.target_, BytesToWrite(job.spec_, job.finished_)).status());
  if (!resumed) {
    RESHARD_ASSIGN_OR_RETURN(job.folder_,
                             JobFolder::Make(job.lock_.folder(), job.spec_.fingerprint));
    RESHARD_RETURN_IF_ERROR(job.LockRun());
    RESHARD_RETURN_IF_ERROR(job.folder_->WriteJob(JobTextOf(job.spec_)));
  }
  job.spec_.source_identities = {};  // they are in the job's text
  RESHARD_RETURN_IF_ERROR(job.folder_->ProveMoves(job.target_, job.spec_.files));
  return job;
}

Status TargetJob::LockRun() {
  RESHARD_ASSIGN_OR_RETURN(run_lock_, folder_->RunLock(std::nullopt));
  // The target's lock keeps other runs away, so this one is free but for those who ask.
  RESHARD_ASSIGN_OR_RETURN(const bool had, run_lock_->TryPastAskers());
  if (had) run_lock_->Sign();
  return {};
}

Result<FinishedFiles> TargetJob::KeepFinished() const {
  RESHARD_ASSIGN_OR_RETURN(FinishedFiles finished, FindFinished(*folder_, spec_));
  for (const ManifestFile& file : spec_.files) {
    if (!finished.contains(file.path)) RESHARD_RETURN_IF_ERROR(folder_->Remove(file.path));
  }
  return finished;
}

Result<std::optional<uint64_t>> TargetJob::Check(JobSpec unchecked) {
  RESHARD_ASSIGN_OR_RETURN(JobSpec spec, CheckedSpec(std::move(unchecked)));
  if (spec.target.folder.empty()) {
    return InvalidArgumentError("the target folder's path is empty");
  }
  const auto target = OutputDirectory::Open(spec.target.folder);
  if (target.status().code() == StatusCode::kNotFound) {
    RESHARD_ASSIGN_OR_RETURN(const OutputDirectory above, OpenNearest(spec.target.folder));
    RESHARD_RETURN_IF_ERROR(above.CheckWritable());
    return CheckSpace(above, BytesToWrite(spec, {}));
  }
  if (!target.ok()) return target.status();
  RESHARD_RETURN_IF_ERROR(JobLock::Check(*target));
  if (LooksForPublished(spec)) {
    RESHARD_ASSIGN_OR_RETURN(const PublishedSet earlier, FindPublished(*target, spec));
    if (earlier.found) return target->FreeBytes();
    spec.difference = earlier.difference;
  }
  bool replace = spec.output.force;
  FinishedFiles finished;
  const auto parent = target->OpenFolder(JobLock::kFolderName);
  if (parent.ok()) {
    RESHARD_ASSIGN_OR_RETURN(const std::vector<Leftover> leftovers,
                             JudgeLeftovers(*target, *parent, spec));
    RESHARD_RETURN_IF_ERROR(NoteDiscarded(*parent, leftovers, spec));
    for (const Leftover& leftover : leftovers) {
      const auto left = JobFolder::Open(*parent, leftover.fingerprint);
      if (left.ok()) {
        RESHARD_ASSIGN_OR_RETURN(const bool live, left->HasLiveWorker());
        if (live) return JobLock::HeldError(*target);
      }
      if (leftover.fate == Fate::kResume || leftover.fate == Fate::kCleanUp) {
        return target->FreeBytes();
      }
      replace = replace || leftover.same_files;
      if (leftover.fate == Fate::kContinue) {
        RESHARD_ASSIGN_OR_RETURN(const JobFolder folder,
                                 JobFolder::Open(*parent, leftover.fingerprint));
        RESHARD_ASSIGN_OR_RETURN(finished, FindFinished(folder, spec));
      }
      // Files that are going to be there once that publication is completed.
      if (leftover.fate == Fate::kComplete && !replace && ShareAny(leftover.files, spec.files)) {
        return AlreadyExistsError(
            fmt::format("{}: an interrupted run of the same plan wrote some target files; pass "
                        "`force` to replace them",
                        Escape(spec.target.folder)));
      }
    }
  } else if (parent.status().code() != StatusCode::kNotFound) {
    return parent.status();
  }
  RESHARD_RETURN_IF_ERROR(CheckSuperseded(spec, *target, replace, PruneCheck::kSizes).status());
  return CheckSpace(*target, BytesToWrite(spec, finished));
}

TargetJob::~TargetJob() {
  if (published_ || target_.fd() < 0) return;  // or moved from
  run_lock_.reset();
  // A destructor has no caller to report a failure to. The next run deals with the leftovers.
  static_cast<void>(CatchOutOfMemory([this] { return Leave(); }));
}

Status TargetJob::Leave() const {
  const OutputDirectory& parent = lock_.folder();
  if (folder_) {
    RESHARD_ASSIGN_OR_RETURN(const auto journal, folder_->ReadJournal());
    if (journal) return {};  // its publication can be completed
    RESHARD_ASSIGN_OR_RETURN(const FinishedFiles finished, KeepFinished());
    if (!finished.empty()) return {};
    RESHARD_RETURN_IF_ERROR(JobFolder::Discard(parent, spec_.fingerprint));
  }
  RESHARD_RETURN_IF_ERROR(lock_.RemoveFolder(target_).status());
  OutputDirectory::RemoveMade(made_);
  return {};
}

const PartRecordHead* TargetJob::Finished(const std::string& path) const {
  const auto found = finished_.find(path);
  return found == finished_.end() ? nullptr : &found->second;
}

Result<bool> TargetJob::IsAsRecorded(const std::string& path, const std::stop_token& stop) const {
  if (const PartRecordHead* head = Finished(path)) {
    return reshard::IsAsRecorded(folder_->PathOfStaged(path), head->size, head->digest,
                                 spec_.target.encryption_key, stop);
  }
  const auto file =
      std::find_if(publishing_.begin(), publishing_.end(),
                   [&](const ManifestFile& candidate) { return candidate.path == path; });
  assert(file != publishing_.end());
  RESHARD_ASSIGN_OR_RETURN(const bool staged, folder_->IsStaged(*file));
  return reshard::IsAsRecorded(
      staged ? folder_->PathOfStaged(path) : fmt::format("{}/{}", target_.path(), path), file->size,
      file->digest, spec_.target.encryption_key, stop);
}

size_t TargetJob::CountFinished() const {
  size_t finished = 0;
  for (const ManifestFile& file : spec_.files) {
    const auto head = folder_->StagedHead(file);
    if (head.ok() && *head) ++finished;
  }
  return finished;
}

Result<bool> TargetJob::IsKept(const FilePart& part, const std::stop_token& stop) const {
  const std::string& path = spec_.files[part.file].path;
  if (Finished(path) == nullptr) return false;
  return spec_.output.resume == OutputChoice::Resume::kVerify ? IsAsRecorded(path, stop) : true;
}

Result<StagedFile> TargetJob::Create(const FilePart& part, const WriteOptions& options) const {
  const ManifestFile& file = spec_.files[part.file];
  if (Finished(file.path) != nullptr) RESHARD_RETURN_IF_ERROR(folder_->Remove(file.path));
  return folder_->Create(file.path, file.stored_size(), options);
}

Status TargetJob::Finish(const FilePart& part, StagedFile file, const FinishedPart& finished,
                         const std::stop_token& stop) const {
  RESHARD_RETURN_IF_ERROR(file.Finish());
  return folder_->FinishWhole(spec_.files[part.file].path, finished, stop);
}

Result<PublishReport> TargetJob::Publish() {
  PublishReport report;
  if (!already_staged_) {
    folder_->Watch(spec_.meter);
    RESHARD_RETURN_IF_ERROR(folder_->CheckStaged(spec_.files));
    RESHARD_RETURN_IF_ERROR(MakePublishable(spec_, superseded_, spec_.files,
                                            {*folder_, lock_.folder(), target_}, report));
  }
  folder_->Watch(spec_.meter);
  RESHARD_RETURN_IF_ERROR(PutInPlace(report));
  published_ = true;
  run_lock_.reset();  // network file systems keep an open file in its folder
  ClearAfter(spec_, lock_, target_, report);
  return report;
}

}  // namespace reshard
