#include "src/job/job_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/job/file_digests.h"
#include "src/job/target_place.h"
#include "src/record/origin.h"

namespace reshard {
namespace {

constexpr const char* kStaged = "files";
constexpr const char* kBlockRecords = "block_records";
constexpr const char* kWorkerLock = "shard_";
constexpr const char* kJob = "job";
constexpr const char* kNewJob = "new_job";
constexpr const char* kJournal = "journal";
constexpr const char* kPlan = "plan.jsonl";
constexpr const char* kNewPlan = "new_plan.jsonl";
constexpr std::string_view kRecordEnd = ".jsonl";
constexpr const char* kPruned = "pruned";
constexpr uint64_t kMaxJobBytes = uint64_t{1} << 30;
// Of part_records, whose folders hold records. Deeper entries do not belong to reshard.
constexpr int kFolderDepth = 1;

std::string StagedPath(const std::string& path) { return fmt::format("{}/{}", kStaged, path); }

// Named by its first byte: the shares of a job are always the same.
std::string BlockRecordPath(const std::string& path, ByteRange part) {
  return fmt::format("{}/{}/{}{}", kBlockRecords, path, part.offset, kRecordEnd);
}

// The beginning of a line in the list of files to prune. It leaves out the device, whose number may
// change with a mount.
std::string PrunedIdentity(const FileIdentity& identity) {
  return fmt::format("{} {} {} {} ", identity.inode(), identity.size(), identity.mtime_ns(),
                     identity.ctime_ns());
}

// The whole line. The path is the first part with a slash.
std::string PrunedLine(const PrunedFile& file) {
  return fmt::format("{}{}/{}\n", PrunedIdentity(file.identity), file.digest, file.path);
}

// The staging folders of the files and their part records.
std::set<std::string> StagedFolders(const std::vector<ManifestFile>& files) {
  std::set<std::string> folders;
  for (const ManifestFile& file : files) {
    AddFolders(StagedPath(file.path), folders);
    AddFolders(StagedPath(RecordPath(file.path)), folders);
  }
  return folders;
}

// Whether `path` is a path of `files`, which are sorted by path, or the path of a part record.
bool IsOneOf(const std::vector<ManifestFile>& files, std::string_view path) {
  const std::string_view wanted = RecordedPath(path).value_or(path);
  const auto found = std::lower_bound(
      files.begin(), files.end(), wanted,
      [](const ManifestFile& file, std::string_view other) { return file.path < other; });
  return found != files.end() && found->path == wanted;
}

// Whether `folder`, staged for `path`, holds only files of `files`, their part records and folders
// of such files.
Result<bool> HoldsOnly(const std::vector<ManifestFile>& files, const OutputDirectory& folder,
                       const std::string& path, int depth) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, folder.Names());
  for (const std::string& name : names) {
    const std::string inner_path = fmt::format("{}/{}", path, name);
    if (IsOneOf(files, inner_path)) continue;
    if (depth == 0) return false;
    const auto inner = folder.OpenFolder(name);
    if (inner.status().code() == StatusCode::kAlreadyExists) return false;
    if (!inner.ok()) return inner.status();
    RESHARD_ASSIGN_OR_RETURN(const bool only, HoldsOnly(files, *inner, inner_path, depth - 1));
    if (!only) return false;
  }
  return !names.empty();
}

// Whether one of `folders` is on the way to `path`.
bool IsBelowAny(const std::set<std::string>& folders, const std::string& path) {
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    if (folders.contains(path.substr(0, slash))) return true;
  }
  return false;
}

// Moves `from` in one folder to `to` in the other; ok if `from` does not exist.
Status Move(const OutputDirectory& folder, const std::string& from, const OutputDirectory& target,
            const std::string& to) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<TargetPlace> place, FindPlace(folder, from));
  if (!place) return {};
  RESHARD_ASSIGN_OR_RETURN(const auto staged, place->folder.Look(place->name));
  if (!staged) return {};
  RESHARD_ASSIGN_OR_RETURN(const TargetPlace new_place, MakePlace(target, to));
  return place->folder.Rename(place->name, new_place.folder, new_place.name);
}

}  // namespace

std::string RunLockName(const std::optional<WorkerShare>& worker) {
  return worker ? fmt::format("{}{}_of_{}", kWorkerLock, worker->index, worker->count) : "run";
}

std::string ProgressName(const std::optional<WorkerShare>& worker) {
  return worker ? fmt::format("progress_{}_of_{}", worker->index, worker->count) : "progress";
}

std::string FinishedName(const WorkerShare& worker) {
  return fmt::format("finished_{}_of_{}", worker.index, worker.count);
}

Result<std::vector<std::pair<std::string, Manifest>>> ManifestsThatList(
    const OutputDirectory& target, const std::vector<ManifestFile>& files,
    const std::string& except) {
  std::vector<std::pair<std::string, Manifest>> found;
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, target.Names());
  for (const std::string& name : names) {
    if (name == except || !IsManifestName(name)) continue;
    const auto bytes = target.ReadFile(name, kMaxManifestBytes);
    if (!bytes.ok()) continue;
    auto manifest = ParseManifest(*bytes, target.PathOf(name));
    if (!manifest.ok() || !ShareAny(manifest->files, files)) continue;
    found.emplace_back(name, std::move(*manifest));
  }
  return found;
}

Result<LockedTarget> LockTarget(const std::string& path, const Patience* as_worker) {
  // A run that fails removes the folder that it has made, in which others may wait.
  constexpr int kAttempts = 100;
  Status failure;
  for (int i = 0; i < kAttempts; ++i) {
    std::vector<std::string> made;
    auto folder = OutputDirectory::Create(path, made);
    if (!folder.ok()) {
      OutputDirectory::RemoveMade(made);
      return folder.status();
    }
    auto lock = as_worker == nullptr ? JobLock::Acquire(*folder)
                                     : JobLock::AcquireAsWorker(*folder, *as_worker, i > 0);
    if (lock.ok()) return LockedTarget{std::move(made), *std::move(folder), *std::move(lock)};
    failure = lock.status();
    OutputDirectory::RemoveMade(made);
    if (failure.code() != StatusCode::kNotFound) break;
  }
  return failure;
}

Result<JobFolder> JobFolder::Open(const OutputDirectory& parent, const std::string& fingerprint) {
  RESHARD_ASSIGN_OR_RETURN(OutputDirectory folder, parent.OpenFolder(fingerprint));
  return JobFolder(std::move(folder));
}

Result<JobFolder> JobFolder::Make(const OutputDirectory& parent, const std::string& fingerprint) {
  RESHARD_ASSIGN_OR_RETURN(OutputDirectory folder, parent.MakeFolder(fingerprint));
  return JobFolder(std::move(folder));
}

Status JobFolder::Discard(const OutputDirectory& parent, const std::string& fingerprint) {
  const auto folder = parent.OpenFolder(fingerprint);
  if (folder.ok()) {
    RESHARD_RETURN_IF_ERROR(folder->RemoveFile(kJournal));
    RESHARD_RETURN_IF_ERROR(folder->Sync());
  }
  return parent.RemoveTree(fingerprint);
}

Status JobFolder::CleanUp(const OutputDirectory& parent, const std::string& fingerprint) {
  RESHARD_ASSIGN_OR_RETURN(const OutputDirectory folder, parent.OpenFolder(fingerprint));
  RESHARD_RETURN_IF_ERROR(folder.RemoveTree(kStaged));
  return parent.RemoveTree(fingerprint);
}

Status JobFolder::WriteJob(const JobText& job) const {
  RESHARD_RETURN_IF_ERROR(folder_.WriteFile(kNewJob, EncodeJobText(job)));
  return folder_.Rename(kNewJob, folder_, kJob);
}

Result<std::optional<JobText>> JobFolder::ReadJob() const { return ReadJobText(kJob); }

Result<std::optional<JobText>> JobFolder::ReadJournal() const { return ReadJobText(kJournal); }

Result<std::optional<JobText>> JobFolder::ReadJobText(const char* name) const {
  const auto text = folder_.ReadFile(name, kMaxJobBytes);
  if (text.status().code() == StatusCode::kNotFound) return std::optional<JobText>();
  if (!text.ok()) return text.status();
  RESHARD_ASSIGN_OR_RETURN(JobText job, ParseJobText(*text, folder_.PathOf(name)));
  return std::optional(std::move(job));
}

Result<std::optional<JobText>> JobFolder::ReadEither() const {
  RESHARD_ASSIGN_OR_RETURN(std::optional<JobText> text, ReadJob());
  return text ? text : ReadJournal();
}

Status JobFolder::WritePlan(const PlanRecord& plan) const {
  RESHARD_ASSIGN_OR_RETURN(const std::string bytes, EncodePlanRecord(plan));
  RESHARD_RETURN_IF_ERROR(folder_.RemoveFile(kNewPlan));
  RESHARD_RETURN_IF_ERROR(folder_.WriteFile(kNewPlan, bytes));
  return folder_.Rename(kNewPlan, folder_, kPlan);
}

Result<PlanRecord> JobFolder::ReadPlan() const {
  RESHARD_ASSIGN_OR_RETURN(const std::string bytes, folder_.ReadFile(kPlan, kMaxJobBytes));
  return ParsePlanRecord(bytes, folder_.PathOf(kPlan));
}

Result<StagedFile> JobFolder::Create(const std::string& path, uint64_t size,
                                     const WriteOptions& options) const {
  RESHARD_ASSIGN_OR_RETURN(const TargetPlace place, MakePlace(folder_, StagedPath(path)));
  return StagedFile::Create(place.folder, place.name, size, options);
}

Result<StagedFile> JobFolder::OpenPart(const std::string& path, uint64_t size, ByteRange part,
                                       const WriteOptions& options) const {
  RESHARD_ASSIGN_OR_RETURN(const TargetPlace place, MakePlace(folder_, StagedPath(path)));
  return StagedFile::OpenPart(place.folder, place.name, size, part, options);
}

Status JobFolder::Overwrite(const std::string& path, const CrcText& text) const {
  RESHARD_ASSIGN_OR_RETURN(const TargetPlace place, MakePlace(folder_, StagedPath(path)));
  return place.folder.Overwrite(place.name, text.offset, text.bytes);
}

Status JobFolder::FinishWhole(const std::string& path, const FinishedPart& finished,
                              const std::stop_token& stop) const {
  std::optional<CrcOfFile> crc;
  if (finished.lacks_crc) {
    RESHARD_ASSIGN_OR_RETURN(crc, FindCrc(PathOfStaged(path), stop));
    RESHARD_RETURN_IF_ERROR(Overwrite(path, crc->text));
  }
  return WriteRecord(path, [&](const OutputDirectory::ByteSink& out) {
    return finished.record(crc ? &crc->with : nullptr, out);
  });
}

Status JobFolder::WriteRecord(const std::string& path,
                              const OutputDirectory::ByteSource& record) const {
  RESHARD_ASSIGN_OR_RETURN(const TargetPlace place,
                           MakePlace(folder_, StagedPath(RecordPath(path))));
  RESHARD_RETURN_IF_ERROR(place.folder.RemoveFile(place.name));
  return place.folder.WriteFile(place.name, record);
}

Result<std::string> JobFolder::ReadRecord(const std::string& path) const {
  return ReadFileAt(folder_, StagedPath(RecordPath(path)), kMaxRecordBytes);
}

Result<bool> JobFolder::IsStaged(const ManifestFile& file) const {
  return IsWhole(folder_, {.path = StagedPath(file.path), .size = file.stored_size()});
}

Result<std::optional<PartRecordHead>> JobFolder::StagedHead(const ManifestFile& file) const {
  RESHARD_ASSIGN_OR_RETURN(const bool whole, IsStaged(file));
  if (!whole) return std::optional<PartRecordHead>();
  const auto bytes = ReadRecord(file.path);
  if (bytes.status().code() == StatusCode::kIo) return bytes.status();
  if (!bytes.ok()) return std::optional<PartRecordHead>();
  PartRecordParser parser(RecordPath(file.path));
  if (!parser.Feed(*bytes).ok() || !parser.Finish().ok()) return std::optional<PartRecordHead>();
  return parser.head();
}

Status JobFolder::WriteBlockRecord(const std::string& path, ByteRange part,
                                   const OutputDirectory::ByteSource& record) const {
  RESHARD_ASSIGN_OR_RETURN(const TargetPlace place,
                           MakePlace(folder_, BlockRecordPath(path, part)));
  RESHARD_RETURN_IF_ERROR(place.folder.RemoveFile(place.name));  // one that is of no use
  return place.folder.WriteFile(place.name, record);
}

Result<std::optional<BlockRecord>> JobFolder::StagedBlockRecord(const ManifestFile& file,
                                                                ByteRange part,
                                                                const std::string& plan) const {
  const std::optional<BlockRecord> none;
  RESHARD_ASSIGN_OR_RETURN(const bool whole, IsStaged(file));
  if (!whole) return none;
  const std::string path = BlockRecordPath(file.path, part);
  const auto bytes = ReadFileAt(folder_, path, kMaxRecordBytes);
  if (bytes.status().code() == StatusCode::kIo) return bytes.status();
  if (!bytes.ok()) return none;
  auto record = ParseBlockRecord(*bytes, path);
  if (!record.ok() || record->plan != plan || record->path != file.path ||
      record->size != file.size || record->part != part) {
    return none;
  }
  return std::optional(*std::move(record));
}

Result<bool> JobFolder::HasBlockRecords(const std::string& path, size_t parts) const {
  const std::string inside = fmt::format("{}/{}/", kBlockRecords, path);
  RESHARD_ASSIGN_OR_RETURN(const auto place, FindPlace(folder_, inside));
  if (!place) return false;
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, place->folder.Names());
  const auto records = std::count_if(names.begin(), names.end(), [](const std::string& name) {
    return name.ends_with(kRecordEnd);
  });
  return static_cast<size_t>(records) >= parts;
}

Result<FileLock> JobFolder::RunLock(const std::optional<WorkerShare>& worker) const {
  return FileLock::Open(folder_, RunLockName(worker));
}

Result<FileLock> JobFolder::JoinLock(const std::string& path) const {
  RESHARD_ASSIGN_OR_RETURN(const TargetPlace place,
                           MakePlace(folder_, fmt::format("{}/{}/join", kBlockRecords, path)));
  return FileLock::Open(place.folder, place.name);
}

Status JobFolder::WriteFinished(const WorkerShare& worker,
                                const std::vector<ManifestFile>& files) const {
  std::set<std::string> folders = StagedFolders(files);
  for (const ManifestFile& file : files) AddFolders(BlockRecordPath(file.path, {}), folders);
  RESHARD_RETURN_IF_ERROR(SyncFolders(folder_, folders));  // a file may have been written again
  RESHARD_ASSIGN_OR_RETURN(const auto finished, folder_.Look(FinishedName(worker)));
  if (finished) return {};
  RESHARD_RETURN_IF_ERROR(folder_.MakeFile(FinishedName(worker)));
  return folder_.Sync();
}

Result<std::vector<uint64_t>> JobFolder::Outstanding(uint64_t workers) const {
  // Sorted. To look at each mark by itself would take n calls of each of n workers.
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, folder_.Names());
  std::vector<uint64_t> outstanding;
  for (uint64_t i = 0; i < workers; ++i) {
    if (!std::binary_search(names.begin(), names.end(), FinishedName({i, workers}))) {
      outstanding.push_back(i);
    }
  }
  return outstanding;
}

Result<bool> JobFolder::HasLiveWorker() const {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, folder_.Names());
  for (const std::string& name : names) {
    if (!name.starts_with(kWorkerLock)) continue;
    RESHARD_ASSIGN_OR_RETURN(const auto lock, FileLock::LookAt(folder_, name));
    if (lock && lock->held) return true;
  }
  return false;
}

Status JobFolder::Remove(const std::string& path) const {
  for (const std::string& staged : {StagedPath(RecordPath(path)), StagedPath(path)}) {
    RESHARD_ASSIGN_OR_RETURN(const auto place, FindPlace(folder_, staged));
    if (place) RESHARD_RETURN_IF_ERROR(place->folder.RemoveFile(place->name));
  }
  return {};
}

Result<bool> JobFolder::HasRecord(const std::string& path,
                                  const std::optional<ByteRange>& part) const {
  RESHARD_ASSIGN_OR_RETURN(const auto record, LookAt(folder_, part ? BlockRecordPath(path, *part)
                                                                   : StagedPath(RecordPath(path))));
  return record.has_value();
}

std::string JobFolder::PathOfStaged(const std::string& path) const {
  return fmt::format("{}/{}", folder_.path(), StagedPath(path));
}

Result<std::optional<Manifest>> JobFolder::ReadManifest(const JobText& journal) const {
  const auto bytes = folder_.ReadFile(journal.manifest_name, kMaxManifestBytes);
  if (bytes.status().code() == StatusCode::kNotFound) return std::optional<Manifest>();
  if (!bytes.ok()) return bytes.status();
  RESHARD_ASSIGN_OR_RETURN(Manifest manifest,
                           ParseManifest(*bytes, folder_.PathOf(journal.manifest_name)));
  return std::optional(std::move(manifest));
}

Status JobFolder::CheckStaged(const std::vector<ManifestFile>& files) const {
  for (const ManifestFile& file : files) {
    RESHARD_ASSIGN_OR_RETURN(const bool whole, IsStaged(file));
    RESHARD_ASSIGN_OR_RETURN(const auto record, LookAt(folder_, StagedPath(RecordPath(file.path))));
    if (whole && record) continue;
    return IoError(
        fmt::format("{}: expected a file of {} bytes and its part record; they were written, but "
                    "something else has removed or changed them",
                    Escape(PathOfStaged(file.path)), file.stored_size()));
  }
  return {};
}

Status JobFolder::ProveMoves(const OutputDirectory& target,
                             const std::vector<ManifestFile>& files) const {
  return reshard::ProveMoves(folder_, target, files);
}

Status JobFolder::WriteOrigin(const SetToCome& set, const OutputDirectory& target) const {
  const std::string name(kOriginName);
  RESHARD_RETURN_IF_ERROR(folder_.RemoveFile(name));
  if (set.origin.empty()) return {};
  auto before = target.ReadFile(name, kMaxOriginBytes);
  if (!before.ok() && before.status().code() != StatusCode::kNotFound) return before.status();
  const auto bytes = WithOriginLine(before.ok() ? *std::move(before) : "",
                                    OriginLine(set.origin, set.manifest, set.left));
  return bytes ? folder_.WriteFile(name, *bytes) : Status();
}

Status JobFolder::WritePruned(const std::vector<PrunedFile>& pruned) const {
  RESHARD_RETURN_IF_ERROR(folder_.RemoveFile(kPruned));
  if (pruned.empty()) return {};
  std::string lines;
  for (const PrunedFile& file : pruned) lines += PrunedLine(file);
  return folder_.WriteFile(kPruned, lines);
}

Status JobFolder::Commit(SetToCome set, const OutputDirectory& parent,
                         const OutputDirectory& target) {
  const std::string checksums_name = ChecksumsName(set.manifest_name);
  // The leftovers of an interrupted run in this folder go first. Lists are freed once they are
  // written.
  RESHARD_RETURN_IF_ERROR(WriteOrigin(set, target));
  RESHARD_RETURN_IF_ERROR(WritePruned(set.pruned));
  RESHARD_RETURN_IF_ERROR(folder_.RemoveFile(checksums_name));
  if (const std::string checksums = EncodeChecksums(set.manifest); !checksums.empty()) {
    RESHARD_RETURN_IF_ERROR(folder_.WriteFile(checksums_name, checksums));
  }
  RESHARD_RETURN_IF_ERROR(folder_.RemoveFile(set.manifest_name));
  RESHARD_RETURN_IF_ERROR(WriteManifest(std::move(set.manifest), set.manifest_name));
  RESHARD_RETURN_IF_ERROR(SyncFolders(folder_, StagedFolders(set.unflushed)));
  RESHARD_RETURN_IF_ERROR(parent.Sync());
  RESHARD_RETURN_IF_ERROR(target.Sync());
  target_flushed_ = true;
  RESHARD_RETURN_IF_ERROR(folder_.Rename(kJob, folder_, kJournal));
  return folder_.Sync();
}

Status JobFolder::WriteManifest(Manifest manifest, const std::string& name) const {
  RESHARD_ASSIGN_OR_RETURN(const std::string bytes, EncodeManifest(std::move(manifest)));
  Look();
  return folder_.WriteFile(name, bytes);
}

Result<bool> JobFolder::CanPublish(const std::vector<ManifestFile>& files,
                                   const OutputDirectory& target) const {
  for (const ManifestFile& file : files) {
    const ManifestFile record = {RecordPath(file.path), file.record_size};
    for (const ManifestFile& either : {file, record}) {
      // Staged files go into the target, in place of existing files.
      RESHARD_ASSIGN_OR_RETURN(const auto staged, LookAt(folder_, StagedPath(either.path)));
      RESHARD_ASSIGN_OR_RETURN(const bool whole,
                               staged ? IsStaged(either) : IsWhole(target, either));
      if (!whole) return false;
    }
  }
  return true;
}

Status JobFolder::RemoveDurably(const std::vector<std::string>& names,
                                const OutputDirectory& target) const {
  // If there are no old manifests, an interrupted run may have removed them without a flush.
  bool durable = target_flushed_;
  for (const std::string& name : names) {
    RESHARD_ASSIGN_OR_RETURN(const auto entry, target.Look(name));
    if (!entry) continue;
    durable = false;
    RESHARD_RETURN_IF_ERROR(target.RemoveFile(name));
  }
  return durable ? Status() : target.Sync();
}

Status JobFolder::MoveFolders(const Manifest& manifest, const OutputDirectory& target,
                              std::set<std::string>& moved) const {
  for (const std::string_view parent : {std::string_view(), kRecordFolder}) {
    const std::string prefix = parent.empty() ? "" : fmt::format("{}/", parent);
    RESHARD_ASSIGN_OR_RETURN(const auto staged, FindPlace(folder_, StagedPath(prefix)));
    RESHARD_ASSIGN_OR_RETURN(const auto place, FindPlace(target, prefix));
    if (!staged || !place) continue;
    RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, staged->folder.Names());
    for (const std::string& name : names) {
      RESHARD_ASSIGN_OR_RETURN(const auto in_place, place->folder.Look(name));
      if (in_place) continue;
      const auto folder = staged->folder.OpenFolder(name);
      if (folder.status().code() == StatusCode::kAlreadyExists) continue;  // a file
      if (!folder.ok()) return folder.status();
      const std::string path = prefix + name;
      RESHARD_ASSIGN_OR_RETURN(const bool only,
                               HoldsOnly(manifest.files, *folder, path, kFolderDepth));
      // File systems that move files need not move folders: then the files are moved.
      if (only && staged->folder.Rename(name, place->folder, name).ok()) moved.insert(path);
    }
  }
  return {};
}

Status JobFolder::MoveFiles(const Manifest& manifest, const OutputDirectory& target) const {
  std::set<std::string> moved;
  RESHARD_RETURN_IF_ERROR(MoveFolders(manifest, target, moved));
  // The folders into which files were moved, perhaps by a run that was interrupted here. The
  // content of a folder that was moved whole is durable already.
  std::set<std::string> folders;
  for (const std::string& path : moved) AddFolders(path, folders);
  for (const ManifestFile& file : manifest.files) {
    for (const std::string& path : {file.path, RecordPath(file.path)}) {
      if (IsBelowAny(moved, path)) continue;
      // Files that are not staged were moved before, or an earlier run that this one joins wrote
      // them.
      RESHARD_RETURN_IF_ERROR(Move(folder_, StagedPath(path), target, path));
      AddFolders(path, folders);
    }
  }
  Look();
  return SyncFolders(target, folders);
}

Status JobFolder::Publish(const OutputDirectory& target) const {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<JobText> journal, ReadJournal());
  assert(journal);
  const std::string& name = journal->manifest_name;
  RESHARD_ASSIGN_OR_RETURN(const std::optional<Manifest> manifest, ReadManifest(*journal));
  if (!manifest) return target.Sync();  // the last step was done, but perhaps not flushed
  RESHARD_RETURN_IF_ERROR(ProveMoves(target, manifest->files));
  RESHARD_ASSIGN_OR_RETURN(const auto others, ManifestsThatList(target, manifest->files, name));
  std::vector<std::string> old;
  for (const auto& [other, listed] : others) {
    old.push_back(other);
    old.push_back(ChecksumsName(other));
  }
  old.push_back(name);
  const std::string checksums = ChecksumsName(name);
  RESHARD_ASSIGN_OR_RETURN(const auto staged_checksums, folder_.Look(checksums));
  // Checksums in the target folder are old, unless an interrupted publication has moved the new
  // ones.
  if (staged_checksums || EncodeChecksums(*manifest).empty()) old.push_back(checksums);
  RESHARD_RETURN_IF_ERROR(RemoveDurably(old, target));
  RESHARD_RETURN_IF_ERROR(MoveFiles(*manifest, target));
  const std::string origin(kOriginName);
  RESHARD_RETURN_IF_ERROR(Move(folder_, origin, target, origin));
  RESHARD_RETURN_IF_ERROR(target.Sync());
  // These two come last and in this order, as changes in a single folder stay in order.
  RESHARD_RETURN_IF_ERROR(Move(folder_, checksums, target, checksums));
  RESHARD_RETURN_IF_ERROR(folder_.Rename(name, target, name));
  return target.Sync();
}

Result<uint64_t> JobFolder::Prune(const OutputDirectory& target) const {
  const auto listed = folder_.ReadFile(kPruned, kMaxJobBytes);
  if (listed.status().code() == StatusCode::kNotFound) return uint64_t{0};
  if (!listed.ok()) return listed.status();
  uint64_t pruned = 0;
  std::set<std::string> folders;
  for (std::string_view rest = *listed; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const size_t slash = line.find('/');
    const std::string file_path(line.substr(std::min(line.size(), slash + 1)));
    RESHARD_RETURN_IF_ERROR(CheckTargetPath(file_path));
    const auto entry = LookAt(target, file_path);
    if (!entry.ok() || !*entry) continue;
    const std::string path_there = fmt::format("{}/{}", target.path(), file_path);
    const FileIdentity& identity = (*entry)->identity;
    // Another file took its place by now, unless it is the compared file or a copy.
    if (!line.starts_with(PrunedIdentity(identity))) {
      const std::string_view before = line.substr(0, slash);
      const std::string digest(before.substr(before.rfind(' ') + 1));
      if (digest.empty()) continue;
      const auto same = IsAsRecorded(path_there, identity.size(), digest, nullptr, {});
      if (!same.ok() || !*same) continue;
    }
    for (const std::string& path : {RecordPath(file_path), file_path}) {
      RESHARD_ASSIGN_OR_RETURN(const auto place, FindPlace(target, path));
      if (place) RESHARD_RETURN_IF_ERROR(place->folder.RemoveFile(place->name));
      AddFolders(path, folders);
    }
    ++pruned;
  }
  RESHARD_RETURN_IF_ERROR(SyncFolders(target, folders));
  // The inner ones first.
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    if (folder->empty()) continue;
    RESHARD_ASSIGN_OR_RETURN(const auto place, FindPlace(target, *folder));
    if (place) RESHARD_RETURN_IF_ERROR(place->folder.RemoveFolder(place->name).status());
  }
  RESHARD_RETURN_IF_ERROR(target.Sync());
  return pruned;
}

}  // namespace reshard
