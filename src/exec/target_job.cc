#include "src/exec/target_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "reshard/version.h"
#include "src/base/checked.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/exec/manifest_builder.h"
#include "src/exec/staged_check.h"
#include "src/exec/target_place.h"

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

// Whether a path of an earlier run led nowhere because something else has taken a folder's place.
bool IsInTheWay(const Status& status) { return status.code() == StatusCode::kAlreadyExists; }

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
    bytes = CheckedAdd(bytes, file.size).value_or(std::numeric_limits<uint64_t>::max());
  }
  return bytes;
}

}  // namespace

TargetJob::TargetJob(JobSpec spec, std::vector<std::string> made, OutputDirectory target,
                     JobLock lock)
    : spec_(std::move(spec)),
      made_(std::move(made)),
      target_(std::move(target)),
      lock_(std::move(lock)) {}

Result<TargetJob> TargetJob::Begin(JobSpec unchecked) {
  RESHARD_ASSIGN_OR_RETURN(JobSpec spec, CheckedSpec(std::move(unchecked)));
  std::vector<std::string> made;
  auto target = OutputDirectory::Create(spec.target_folder, made);
  if (!target.ok()) {
    OutputDirectory::RemoveMade(made);
    return target.status();
  }
  auto lock = JobLock::Acquire(*target);
  if (!lock.ok()) {
    OutputDirectory::RemoveMade(made);
    return lock.status();
  }
  // From here on the destructor clears up.
  TargetJob job(std::move(spec), std::move(made), std::move(*target), std::move(*lock));
  RESHARD_ASSIGN_OR_RETURN(const bool own, job.Recover());
  if (job.already_staged_) return job;
  RESHARD_ASSIGN_OR_RETURN(job.findings_,
                           CheckTarget(job.target_, job.spec_, job.spec_.force || own));
  const bool resumed = job.folder_.has_value();
  if (resumed) {
    RESHARD_ASSIGN_OR_RETURN(job.finished_, job.KeepFinished());
  }
  RESHARD_RETURN_IF_ERROR(CheckSpace(job.target_, BytesToWrite(job.spec_, job.finished_)).status());
  if (resumed) return job;
  RESHARD_ASSIGN_OR_RETURN(job.folder_, JobFolder::Make(job.lock_.folder(), job.spec_.fingerprint));
  RESHARD_RETURN_IF_ERROR(job.folder_->WriteJob(JobTextOf(job.spec_)));
  return job;
}

Result<bool> TargetJob::Recover() {
  bool own = false;
  const OutputDirectory& parent = lock_.folder();
  RESHARD_ASSIGN_OR_RETURN(const std::vector<Leftover> leftovers,
                           JudgeLeftovers(target_, parent, spec_));
  for (const Leftover& leftover : leftovers) {
    own = own || leftover.same_files;
    switch (leftover.fate) {
      case Fate::kResume:
      case Fate::kCleanUp: {
        already_staged_ = true;
        publishing_ = leftover.files;
        RESHARD_ASSIGN_OR_RETURN(folder_, JobFolder::Open(parent, leftover.fingerprint));
        break;
      }
      case Fate::kComplete: {
        RESHARD_ASSIGN_OR_RETURN(const JobFolder folder,
                                 JobFolder::Open(parent, leftover.fingerprint));
        RESHARD_RETURN_IF_ERROR(folder.Publish(target_));
        RESHARD_RETURN_IF_ERROR(JobFolder::CleanUp(parent, leftover.fingerprint));
        break;
      }
      case Fate::kAbandon:  // not before this run has something to put in its place
        for (const ManifestFile& file : leftover.files) abandoned_.push_back(file.path);
        abandoned_jobs_.push_back(leftover.fingerprint);
        break;
      case Fate::kContinue: {
        RESHARD_ASSIGN_OR_RETURN(folder_, JobFolder::Open(parent, leftover.fingerprint));
        break;
      }
      case Fate::kDiscard:
        RESHARD_RETURN_IF_ERROR(JobFolder::Discard(parent, leftover.fingerprint));
        break;
    }
  }
  return own;
}

Result<FinishedFiles> TargetJob::KeepFinished() const {
  RESHARD_ASSIGN_OR_RETURN(FinishedFiles finished, FindFinished(*folder_, spec_));
  for (const ManifestFile& file : spec_.files) {
    if (!finished.contains(file.path)) RESHARD_RETURN_IF_ERROR(folder_->Remove(file.path));
  }
  return finished;
}

Result<uint64_t> TargetJob::Check(JobSpec unchecked) {
  RESHARD_ASSIGN_OR_RETURN(const JobSpec spec, CheckedSpec(std::move(unchecked)));
  if (spec.target_folder.empty()) {
    return InvalidArgumentError("the target folder's path is empty");
  }
  const auto target = OutputDirectory::Open(spec.target_folder);
  if (target.status().code() == StatusCode::kNotFound) {
    RESHARD_ASSIGN_OR_RETURN(const OutputDirectory above, OpenNearest(spec.target_folder));
    RESHARD_RETURN_IF_ERROR(above.CheckWritable());
    return CheckSpace(above, BytesToWrite(spec, {}));
  }
  if (!target.ok()) return target.status();
  RESHARD_RETURN_IF_ERROR(JobLock::Check(*target));
  bool replace = spec.force;
  FinishedFiles finished;
  const auto parent = target->OpenFolder(JobLock::kFolderName);
  if (parent.ok()) {
    RESHARD_ASSIGN_OR_RETURN(const std::vector<Leftover> leftovers,
                             JudgeLeftovers(*target, *parent, spec));
    for (const Leftover& leftover : leftovers) {
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
            fmt::format("{}: an interrupted run of the same plan wrote some of these files; pass "
                        "--force to replace them",
                        Escape(spec.target_folder)));
      }
    }
  } else if (parent.status().code() != StatusCode::kNotFound) {
    return parent.status();
  }
  RESHARD_RETURN_IF_ERROR(CheckTarget(*target, spec, replace).status());
  return CheckSpace(*target, BytesToWrite(spec, finished));
}

TargetJob::~TargetJob() {
  if (published_ || target_.fd() < 0) return;  // or moved from
  // Nobody is left to tell of a failure; the next run deals with what stays behind.
  static_cast<void>(CatchOutOfMemory([this] { return Leave(); }));
}

Status TargetJob::Leave() const {
  const OutputDirectory& parent = lock_.folder();
  if (folder_) {
    RESHARD_ASSIGN_OR_RETURN(const auto journal, folder_->ReadJournal());
    if (journal) return {};  // what it stands for can be completed
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
    return reshard::IsAsRecorded(folder_->PathOfStaged(path), head->size, head->digest, stop);
  }
  const auto file =
      std::find_if(publishing_.begin(), publishing_.end(),
                   [&](const ManifestFile& candidate) { return candidate.path == path; });
  assert(file != publishing_.end());
  RESHARD_ASSIGN_OR_RETURN(const bool staged, folder_->IsStaged(*file));
  return reshard::IsAsRecorded(
      staged ? folder_->PathOfStaged(path) : fmt::format("{}/{}", target_.path(), path), file->size,
      file->digest, stop);
}

size_t TargetJob::CountFinished() const {
  size_t finished = 0;
  for (const ManifestFile& file : spec_.files) {
    const auto head = folder_->StagedHead(file);
    if (head.ok() && *head) ++finished;
  }
  return finished;
}

Result<StagedFile> TargetJob::Create(const std::string& path, uint64_t size) const {
  if (Finished(path) != nullptr) RESHARD_RETURN_IF_ERROR(folder_->Remove(path));
  return folder_->Create(path, size);
}

Status TargetJob::Finish(StagedFile file, const std::string& path, std::string_view record) const {
  RESHARD_RETURN_IF_ERROR(file.Finish());
  return folder_->WriteRecord(path, record);
}

// The spec's files, and those of earlier runs of the plan that are still there, as their part
// records tell.
Result<Manifest> TargetJob::NewManifest(PublishReport& report) const {
  ManifestBuilder builder({.tool_version = std::string(kVersion),
                           .plan = spec_.fingerprint,
                           .source_strategy = spec_.source_strategy,
                           .target_strategy = spec_.target_strategy});
  std::map<std::string_view, const ManifestFile*> files;
  for (const ManifestFile& file : findings_.joined) files.emplace(file.path, &file);
  std::set<std::string_view> own;
  for (const ManifestFile& file : spec_.files) {
    files[file.path] = &file;
    own.insert(file.path);
  }
  std::vector<std::string> lost;
  for (const auto& [path, file] : files) {
    if (own.contains(path)) {
      RESHARD_ASSIGN_OR_RETURN(const std::string record, folder_->ReadRecord(file->path));
      RESHARD_RETURN_IF_ERROR(builder.Add(*file, record));
      continue;
    }
    const auto whole = IsWhole(target_, *file);
    if (!whole.ok() && !IsInTheWay(whole.status())) return whole.status();
    const auto record = ReadFileAt(target_, RecordPath(file->path), kMaxRecordBytes);
    if (!whole.ok() || !*whole || !record.ok() || !builder.Add(*file, *record).ok()) {
      lost.push_back(file->path);
    }
  }
  if (!lost.empty()) {
    report.warnings.push_back(fmt::format(
        "{}: {} files of earlier runs, or their part records, are gone or are not what they were, "
        "and are no longer listed: {}",
        Escape(target_.PathOf(spec_.manifest_name)), lost.size(), FirstOf(lost)));
  }
  return builder.Finish();
}

// Files that were in a manifest before, are in none now, and are still there.
Status TargetJob::ReportAbandoned(PublishReport& report) const {
  std::set<std::string> paths(findings_.abandoned.begin(), findings_.abandoned.end());
  paths.insert(abandoned_.begin(), abandoned_.end());
  for (const ManifestFile& file : spec_.files) paths.erase(file.path);
  for (const ManifestFile& file : findings_.joined) paths.erase(file.path);
  std::vector<std::string> left;
  for (const std::string& path : paths) {
    const auto entry = LookAt(target_, path);
    if (!entry.ok() && !IsInTheWay(entry.status())) return entry.status();
    if (entry.ok() && *entry) left.push_back(path);
  }
  if (!left.empty()) {
    report.warnings.push_back(
        fmt::format("{}: {} files of an earlier conversion stay there, in no manifest any more: {}",
                    Escape(target_.path()), left.size(), FirstOf(left)));
  }
  return {};
}

Result<PublishReport> TargetJob::Publish() {
  PublishReport report;
  const OutputDirectory& parent = lock_.folder();
  if (!already_staged_) {
    RESHARD_RETURN_IF_ERROR(folder_->CheckStaged(spec_.files));
    RESHARD_ASSIGN_OR_RETURN(const Manifest manifest, NewManifest(report));
    RESHARD_RETURN_IF_ERROR(ReportAbandoned(report));
    for (const std::string& fingerprint : abandoned_jobs_) {
      RESHARD_RETURN_IF_ERROR(JobFolder::Discard(parent, fingerprint));
    }
    RESHARD_RETURN_IF_ERROR(
        folder_->Commit(spec_.files, manifest, spec_.manifest_name, parent, target_));
  }
  RESHARD_RETURN_IF_ERROR(folder_->Publish(target_));
  // The set is whole and named: what fails now is no failure of the run.
  published_ = true;
  Status cleared = JobFolder::CleanUp(parent, spec_.fingerprint);
  if (cleared.ok()) {
    const auto gone = lock_.RemoveFolder(target_);
    cleared = gone.status();
    if (gone.ok() && !*gone) {
      report.warnings.push_back(fmt::format(
          "{}: stays, because something that is not reshard's is in it", Escape(parent.path())));
    }
  }
  if (!cleared.ok()) report.warnings.push_back(cleared.message());
  return report;
}

}  // namespace reshard
