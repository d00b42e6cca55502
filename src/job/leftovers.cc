#include "src/job/leftovers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/job/target_place.h"

namespace reshard {
namespace {

// Whether `files`, sorted by path, have each file of the spec among them.
bool ListsAll(const std::vector<ManifestFile>& files, const JobSpec& spec) {
  return std::all_of(spec.files.begin(), spec.files.end(), [&](const ManifestFile& own) {
    const auto listed = std::lower_bound(
        files.begin(), files.end(), own,
        [](const ManifestFile& a, const ManifestFile& b) { return a.path < b.path; });
    return listed != files.end() && listed->path == own.path && listed->size == own.size;
  });
}

Result<Leftover> Judge(const OutputDirectory& target, const OutputDirectory& parent,
                       const std::string& fingerprint, const JobSpec& spec) {
  Leftover leftover;
  leftover.fingerprint = fingerprint;
  const auto folder = JobFolder::Open(parent, fingerprint);
  if (folder.status().code() == StatusCode::kAlreadyExists) return leftover;  // a file or a link
  if (!folder.ok()) return folder.status();
  const bool same_plan = fingerprint == spec.fingerprint;
  const JobText own = JobTextOf(spec);
  RESHARD_ASSIGN_OR_RETURN(const std::optional<JobText> journal, folder->ReadJournal());
  if (!journal) {
    if (spec.output.resume == OutputChoice::Resume::kNo) return leftover;
    RESHARD_ASSIGN_OR_RETURN(const std::optional<JobText> job, folder->ReadJob());
    if (!job) return leftover;
    const std::string path = parent.PathOf(fingerprint);
    if (!same_plan) {
      return MismatchError(fmt::format(
          "{}: the interrupted run had another plan ({}; this is {}): other strategies, another "
          "training step, or other options; give the same ones again, or {}",
          Escape(path), fingerprint, spec.fingerprint,
          spec.workers == 0 ? "run without `resume` to write all files anew"
                            : "remove that folder to write all files anew"));
    }
    std::vector<uint64_t> outstanding;
    if (job->workers != spec.workers) {
      RESHARD_ASSIGN_OR_RETURN(outstanding, folder->Outstanding(job->workers));
    }
    RESHARD_RETURN_IF_ERROR(CheckSameJob(*job, own, path, outstanding));
    leftover.fate = Fate::kContinue;
    return leftover;
  }
  RESHARD_ASSIGN_OR_RETURN(std::optional<Manifest> manifest, folder->ReadManifest(*journal));
  if (!manifest) {
    // By force, a set that is finished is made anew.
    leftover.published = true;
    if (!same_plan || !journal->IsSameJob(own) || spec.output.force) return leftover;
    RESHARD_ASSIGN_OR_RETURN(auto published, PublishedFiles(target, spec));
    if (!published) return leftover;
    leftover.fate = Fate::kCleanUp;
    leftover.files = *std::move(published);
    return leftover;
  }
  leftover.files = std::move(manifest->files);
  if (!same_plan) {
    if (!spec.output.force) {
      return AlreadyExistsError(
          fmt::format("{}: an earlier conversion (plan {}) was interrupted while it was published; "
                      "run the same "
                      "command again to complete it, or pass `force` to give it up",
                      Escape(target.path()), fingerprint));
    }
    leftover.fate = Fate::kAbandon;
    return leftover;
  }
  leftover.same_files = journal->targets == own.targets;
  RESHARD_ASSIGN_OR_RETURN(const bool whole, folder->CanPublish(leftover.files, target));
  if (!whole) return leftover;
  if (!journal->IsSameJob(own)) {
    leftover.fate = Fate::kComplete;
  } else if (ListsAll(leftover.files, spec)) {
    leftover.fate = Fate::kResume;
  }
  return leftover;
}

}  // namespace

Status NoteDiscarded(const OutputDirectory& parent, const std::vector<Leftover>& leftovers,
                     const JobSpec& spec) {
  if (!spec.note) return {};
  for (const Leftover& leftover : leftovers) {
    if (leftover.fate != Fate::kDiscard || leftover.published) continue;
    const auto folder = JobFolder::Open(parent, leftover.fingerprint);
    if (!folder.ok()) continue;
    const auto job = folder->ReadJob();
    if (!job.ok() || !*job) continue;
    const auto left = SpecOf(**job, spec.target.folder, leftover.fingerprint, "");
    if (!left.ok()) continue;
    uint64_t finished = 0;
    for (const ManifestFile& file : left->files) {
      RESHARD_ASSIGN_OR_RETURN(const auto head, folder->StagedHead(file));
      if (head) ++finished;
    }
    if (finished == 0) continue;
    const bool same = leftover.fingerprint == spec.fingerprint &&
                      CheckSameJob(**job, JobTextOf(spec), "", {}).ok();
    spec.note(fmt::format("{}: {} of {} files that an interrupted run had finished {} discarded{}",
                          Escape(spec.target.folder), finished, left->files.size(),
                          finished == 1 ? "is" : "are",
                          same ? "; `resume` keeps them" : ", as that run was another one"));
  }
  return {};
}

Result<std::optional<std::vector<ManifestFile>>> PublishedFiles(const OutputDirectory& target,
                                                                const JobSpec& spec) {
  const std::optional<std::vector<ManifestFile>> none;
  const auto bytes = target.ReadFile(spec.manifest_name, kMaxManifestBytes);
  if (!bytes.ok()) return none;
  auto manifest = ParseManifest(*bytes, target.PathOf(spec.manifest_name));
  if (!manifest.ok() || manifest->plan != spec.fingerprint) return none;
  if (!ListsAll(manifest->files, spec)) return none;
  for (const ManifestFile& file : spec.files) {
    RESHARD_ASSIGN_OR_RETURN(const bool whole, IsWhole(target, file));
    if (!whole) return none;
  }
  return std::optional(std::move(manifest->files));
}

Result<std::vector<ManifestFile>> CheckPublished(const OutputDirectory& target) {
  RESHARD_ASSIGN_OR_RETURN(std::vector<std::string> names, target.Names());
  std::erase_if(names, [](const std::string& name) { return !IsManifestName(name); });
  if (names.empty()) {
    return NotFoundError(
        fmt::format("{}: has no published set and no staged files of shares; run the shares first",
                    Escape(target.path())));
  }
  std::vector<ManifestFile> files;
  for (const std::string& name : names) {
    RESHARD_ASSIGN_OR_RETURN(const std::string bytes, target.ReadFile(name, kMaxManifestBytes));
    RESHARD_ASSIGN_OR_RETURN(Manifest manifest, ParseManifest(bytes, target.PathOf(name)));
    for (const ManifestFile& file : manifest.files) {
      const auto whole = IsWhole(target, file);
      if (whole.ok() && *whole) continue;
      return NotFoundError(
          fmt::format("{}: lists {} of {} bytes, which is not there; `Verify` tells what "
                      "else is missing; convert again",
                      Escape(target.PathOf(name)), Escape(file.path), file.size));
    }
    files.insert(files.end(), std::make_move_iterator(manifest.files.begin()),
                 std::make_move_iterator(manifest.files.end()));
  }
  return files;
}

Result<std::vector<Leftover>> JudgeLeftovers(const OutputDirectory& target,
                                             const OutputDirectory& parent, const JobSpec& spec) {
  std::vector<Leftover> leftovers;
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, parent.Names());
  for (const std::string& name : names) {
    if (!CheckFingerprint(name).ok()) continue;
    RESHARD_ASSIGN_OR_RETURN(Leftover leftover, Judge(target, parent, name, spec));
    leftovers.push_back(std::move(leftover));
  }
  return leftovers;
}

Result<Recovered> Recover(const OutputDirectory& target, const OutputDirectory& parent,
                          const JobSpec& spec) {
  Recovered recovered;
  RESHARD_ASSIGN_OR_RETURN(const std::vector<Leftover> leftovers,
                           JudgeLeftovers(target, parent, spec));
  RESHARD_RETURN_IF_ERROR(NoteDiscarded(parent, leftovers, spec));
  const auto is_given_up = [](const Leftover& leftover) {
    return leftover.fate == Fate::kDiscard || leftover.fate == Fate::kAbandon;
  };
  if (std::any_of(leftovers.begin(), leftovers.end(), is_given_up)) {
    RESHARD_RETURN_IF_ERROR(RemoveProbes(target));
  }
  for (const Leftover& leftover : leftovers) {
    recovered.same_files = recovered.same_files || leftover.same_files;
    switch (leftover.fate) {
      case Fate::kResume:
      case Fate::kCleanUp: {
        recovered.already_staged = true;
        recovered.publishing = leftover.files;
        RESHARD_ASSIGN_OR_RETURN(recovered.folder, JobFolder::Open(parent, leftover.fingerprint));
        break;
      }
      case Fate::kComplete: {
        RESHARD_ASSIGN_OR_RETURN(const JobFolder folder,
                                 JobFolder::Open(parent, leftover.fingerprint));
        RESHARD_RETURN_IF_ERROR(folder.Publish(target));
        RESHARD_RETURN_IF_ERROR(folder.Prune(target).status());
        RESHARD_RETURN_IF_ERROR(JobFolder::CleanUp(parent, leftover.fingerprint));
        break;
      }
      case Fate::kAbandon:  // not before this run has something to put in its place
        recovered.abandoned.insert(recovered.abandoned.end(), leftover.files.begin(),
                                   leftover.files.end());
        recovered.abandoned_jobs.push_back(leftover.fingerprint);
        break;
      case Fate::kContinue: {
        RESHARD_ASSIGN_OR_RETURN(recovered.folder, JobFolder::Open(parent, leftover.fingerprint));
        break;
      }
      case Fate::kDiscard:
        if (leftover.published) {
          RESHARD_ASSIGN_OR_RETURN(const JobFolder folder,
                                   JobFolder::Open(parent, leftover.fingerprint));
          RESHARD_RETURN_IF_ERROR(folder.Prune(target).status());
        }
        RESHARD_RETURN_IF_ERROR(JobFolder::Discard(parent, leftover.fingerprint));
        break;
    }
  }
  return recovered;
}

}  // namespace reshard
