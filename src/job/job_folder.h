// JobFolder: the folder `.reshard/FINGERPRINT` in a target folder. A run stages its files there and
// publishes them from there.
//
//     files/...        the staged files and part records, at their paths in the target folder
//     manifest.json    the new manifest (or manifest_partS.json)
//     checksums.xxh128 the new list of checksums
//     origin.jsonl     the new list of runs
//     pruned           files to remove after publication
//     plan.jsonl       facts about the sources, for other workers
//     block_records/...  records of the parts of files that several workers write
//     shard_I_of_N     a worker's lock; of a run alone `run`
//     progress_I_of_N  how far a worker is (progress_record.h); of a run alone `progress`
//     finished_I_of_N  the mark that a worker has finished its share
//     job              the files being staged and their sources; renamed to `journal` as soon as
//                      the files may be published
//
// Before the journal exists, a staged file with a part record is whole and durable, and a run of
// the same job may keep it. All contents may be thrown away. Once the journal exists, all files and
// the manifest are whole and durable, and any process can complete the renames at any time. The
// manifest leaves last, so a journal without it means that only cleaning up is left.
//
// Only holders of the job lock use it. Each worker has its own files and parts; the worker that may
// commit does the rest. Move-only. One thread at a time uses it, with exceptions: Create,
// WriteRecord, ReadRecord, Remove and WriteBlockRecord, each for its own files or parts.
#ifndef RESHARD_SRC_JOB_JOB_FOLDER_H_
#define RESHARD_SRC_JOB_JOB_FOLDER_H_

#include <cstdint>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/container.h"
#include "reshard/byte_range.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "src/job/job_spec.h"
#include "src/os/file_identity.h"
#include "src/os/job_lock.h"
#include "src/os/memory_usage.h"
#include "src/os/output_directory.h"
#include "src/os/staged_file.h"
#include "src/record/block_record.h"
#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"
#include "src/record/plan_record.h"
#include "src/write/part_sink.h"

namespace reshard {

// Returns name and content of the manifests of `target` that list any of `files`, except the
// manifest called `except`. A file that is not a readable manifest counts as empty.
Result<std::vector<std::pair<std::string, Manifest>>> ManifestsThatList(
    const OutputDirectory& target, const std::vector<ManifestFile>& files,
    const std::string& except);

// The names of a worker's files in the job folder, or of those of a run alone: its lock, the record
// of its progress, and the mark that its share is finished, which a run alone does not have.
std::string RunLockName(const std::optional<WorkerShare>& worker);
std::string ProgressName(const std::optional<WorkerShare>& worker);
std::string FinishedName(const WorkerShare& worker);

// A target folder, and the right to write there.
struct LockedTarget {
  std::vector<std::string> made;  // folders made for it
  OutputDirectory folder;
  JobLock lock;
};

// Makes the target folder at `path` if it does not exist, and locks it. With `as_worker`, shares
// the lock with other workers and waits with that patience; if null, locks alone. After an error,
// removes the folders that it made. Errors: as OutputDirectory::Create and JobLock.
Result<LockedTarget> LockTarget(const std::string& path, const Patience* as_worker);

// A file of an earlier set, with its identity when it was compared with its manifest.
struct PrunedFile {
  std::string path;  // relative to the target folder
  FileIdentity identity;
  std::string digest;  // of its manifest; empty: none
};

// The data that is published with the staged files.
struct SetToCome {
  // The files that no WriteFinished has made durable with their folders.
  const std::vector<ManifestFile>& unflushed;
  Manifest manifest;
  std::string manifest_name;
  std::string origin = {};              // of the run (EncodeOrigin); empty: none is told
  std::vector<PrunedFile> pruned = {};  // removed afterwards, if they are still the same
  std::vector<ManifestFile> left = {};  // of sets before, for origin.jsonl
};

class JobFolder {
 public:
  // Opens the folder of `fingerprint` in `parent` (.reshard). Errors: kNotFound, kAlreadyExists for
  // something else in its place, kIo.
  static Result<JobFolder> Open(const OutputDirectory& parent, const std::string& fingerprint);
  // As Open, but makes the folder if it does not exist.
  static Result<JobFolder> Make(const OutputDirectory& parent, const std::string& fingerprint);
  // `meter`, which has to live as long, or null, is looked at when much is held.
  void Watch(MemoryMeter* meter) { meter_ = meter; }

  // Throws away the folder of this name. The journal goes first, so that half a folder never looks
  // publishable.
  static Status Discard(const OutputDirectory& parent, const std::string& fingerprint);
  // Removes the folder after publication. The journal goes last, so that it documents the job until
  // the end.
  static Status CleanUp(const OutputDirectory& parent, const std::string& fingerprint);

  // Writes the job text, the list of the files to stage, whole or not at all. This is the first
  // write.
  Status WriteJob(const JobText& job) const;
  // Returns the job text; no value if the folder was not begun, or if staging is over. Errors:
  // kCorrupt, kIo.
  Result<std::optional<JobText>> ReadJob() const;
  // Returns the journal; no value while files are being staged. Errors: kCorrupt, kIo.
  Result<std::optional<JobText>> ReadJournal() const;
  // Returns the one of both that is there.
  Result<std::optional<JobText>> ReadEither() const;

  // Writes the plan record, whole or not at all, in place of an earlier one.
  Status WritePlan(const PlanRecord& plan) const;
  // Returns the plan record. Errors: kNotFound, kCorrupt, kUnsupported, kIo.
  Result<PlanRecord> ReadPlan() const;

  // Makes a file to be filled, and the folders on its way.
  Result<StagedFile> Create(const std::string& path, uint64_t size,
                            const WriteOptions& options = {}) const;
  // As Create, of a file that several workers write: opens it, to write `part`.
  Result<StagedFile> OpenPart(const std::string& path, uint64_t size, ByteRange part,
                              const WriteOptions& options) const;
  // Stages the part record of the file at `path`, and makes it durable. The file is whole and
  // durable. Replaces an earlier record.
  Status WriteRecord(const std::string& path, const OutputDirectory::ByteSource& record) const;
  // The same of a file that one worker, or a run alone, has finished, with the CRC that it may
  // lack.
  Status FinishWhole(const std::string& path, const FinishedPart& finished,
                     const std::stop_token& stop) const;
  // Writes a CRC into the staged file at `path`, and makes it durable.
  Status Overwrite(const std::string& path, const CrcText& text) const;
  // Returns the head of the part record of the staged `file`, or no value unless both are whole.
  // Errors: kIo.
  Result<std::optional<PartRecordHead>> StagedHead(const ManifestFile& file) const;
  // Returns whether `file` is staged with its size. Errors: kIo.
  Result<bool> IsStaged(const ManifestFile& file) const;
  // Removes a staged file and its part record, the record first.
  Status Remove(const std::string& path) const;
  // Whether there is a record of the whole file at `path`, or of its part `part`: then its bytes
  // are whole. Errors: kIo.
  Result<bool> HasRecord(const std::string& path, const std::optional<ByteRange>& part) const;
  // For messages, and to read it.
  std::string PathOfStaged(const std::string& path) const;

  // Returns the bytes of the part record of `path`, staged here.
  Result<std::string> ReadRecord(const std::string& path) const;

  // Stages the record of a part of the file at `path`, which is durable, and makes it durable.
  Status WriteBlockRecord(const std::string& path, ByteRange part,
                          const OutputDirectory::ByteSource& record) const;
  // Returns the record of a part of the staged `file`, or no value unless both are valid. Errors:
  // kIo.
  Result<std::optional<BlockRecord>> StagedBlockRecord(const ManifestFile& file, ByteRange part,
                                                       const std::string& plan) const;
  // Returns whether there are as many records of parts of the file at `path`, by one listing.
  // Errors: kIo.
  Result<bool> HasBlockRecords(const std::string& path, size_t parts) const;
  // The locks of a worker or of a run alone, and of the process that joins the parts of the file at
  // `path`; not locked yet. Errors: kIo.
  Result<FileLock> RunLock(const std::optional<WorkerShare>& worker) const;
  Result<FileLock> JoinLock(const std::string& path) const;
  // Says, durably, that a worker has finished its share, which is of `files`. Errors: kIo.
  Status WriteFinished(const WorkerShare& worker, const std::vector<ManifestFile>& files) const;
  // Returns which of so many workers have not finished, by one listing. Errors: kIo.
  Result<std::vector<uint64_t>> Outstanding(uint64_t workers) const;
  // Whether any worker's lock is held, of any number of workers. Errors: kIo.
  Result<bool> HasLiveWorker() const;

  // The folder itself.
  const OutputDirectory& folder() const { return folder_; }

  // Returns the new manifest; no value if it has left, or if there is no journal.
  Result<std::optional<Manifest>> ReadManifest(const JobText& journal) const;

  // Returns ok when all of `files` are staged with their sizes, and their part records.
  // Errors: kIo.
  Status CheckStaged(const std::vector<ManifestFile>& files) const;

  // Proves that the staged files and records of `files` can be moved into `target`
  // (target_place.h).
  Status ProveMoves(const OutputDirectory& target, const std::vector<ManifestFile>& files) const;

  // Makes the staged files publishable; CheckStaged has to be ok for them. Writes the other new
  // files beside them, and turns the job into the journal. All become durable in this order.
  // `parent` and `target` are the folders above.
  Status Commit(SetToCome set, const OutputDirectory& parent, const OutputDirectory& target);

  // Returns whether each of `files` and each part record is whole, here or in `target`. `files` are
  // those of the new manifest.
  Result<bool> CanPublish(const std::vector<ManifestFile>& files,
                          const OutputDirectory& target) const;

  // Moves everything into place that is not there yet, after a proof that this can be done. Old
  // manifests that list any of the files go first, with their checksums; the new manifest comes
  // last. Each call continues an interrupted one.
  Status Publish(const OutputDirectory& target) const;

  // After publication: removes the files to prune, with their part records, if they are still as
  // listed, and then their empty folders. Returns the number of removed files. Each call continues
  // an interrupted one. Errors: as OutputDirectory.
  Result<uint64_t> Prune(const OutputDirectory& target) const;

 private:
  explicit JobFolder(OutputDirectory folder) : folder_(std::move(folder)) {}

  Result<std::optional<JobText>> ReadJobText(const char* name) const;
  // These write the new lists beside the files, in place of existing ones.
  Status WriteOrigin(const SetToCome& set, const OutputDirectory& target) const;
  Status WritePruned(const std::vector<PrunedFile>& pruned) const;
  Status WriteManifest(Manifest manifest, const std::string& name) const;
  // Removes the files `names`, manifests and their checksums, from `target`. This is durable before
  // any file that they list is replaced.
  Status RemoveDurably(const std::vector<std::string>& names, const OutputDirectory& target) const;
  // Moves staged folders of `manifest` that the target folder lacks, each with its content, and
  // adds the content to `moved`. These entries need no second flush.
  Status MoveFolders(const Manifest& manifest, const OutputDirectory& target,
                     std::set<std::string>& moved) const;
  // Moves the staged files and part records of `manifest` into place. This is durable except for
  // the entries of the target folder itself.
  Status MoveFiles(const Manifest& manifest, const OutputDirectory& target) const;

  void Look() const {
    if (meter_ != nullptr) meter_->Look();
  }

  OutputDirectory folder_;
  MemoryMeter* meter_ = nullptr;
  bool target_flushed_ = false;  // by Commit; since then this run has not removed files there
};

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_JOB_FOLDER_H_
