// JobFolder: the folder `.reshard/FINGERPRINT` in a target folder, where a run stages its files and
// from where it publishes them.
//
//     files/...        the staged files and part records, at the paths that they will have in the
//                      target folder
//     manifest.json    the manifest to come (or manifest_partS.json)
//     checksums.xxh128 the list of checksums to come
//     origin.jsonl     where the set came from, to come
//     pruned           files that are to be removed afterwards
//     block_records/...  records of the parts of files that several workers write
//     shard_I_of_N, finished_I_of_N   a worker's lock; that it has finished its share
//     job              what is being staged, from which sources; called `journal` from the moment
//                      that it may be published
//
// Up to then, a staged file that has a part record is whole and durable, and a run of the same job
// may keep it; everything may be thrown away. Once the journal is there, all files and the manifest
// are whole and durable, and the renames can be completed at any time, by any process. The manifest
// leaves last, so a journal without it means that only cleaning up is left.
//
// Only holders of the job lock use it; of several workers each has files and parts of its own, and
// the one that may commit does the rest. Move-only; used by one thread at a time, but for Create,
// WriteRecord, ReadRecord, Remove and WriteBlockRecord, each of files or parts of its own.
#ifndef RESHARD_SRC_JOB_JOB_FOLDER_H_
#define RESHARD_SRC_JOB_JOB_FOLDER_H_

#include <cstdint>
#include <map>
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
#include "src/write/part_sink.h"

namespace reshard {

// Returns the manifests of `target`, but for one called `except`, that list any of `files`: name
// and content. What cannot be read as a manifest lists nothing.
Result<std::vector<std::pair<std::string, Manifest>>> ManifestsThatList(
    const OutputDirectory& target, const std::vector<ManifestFile>& files,
    const std::string& except);

// A target folder, and the right to write there.
struct LockedTarget {
  std::vector<std::string> made;  // folders made for it
  OutputDirectory folder;
  JobLock lock;
};

// Makes the target folder at `path` where there is none, and locks it: together with other workers,
// with that patience, or alone, where it is null. Errors: those of OutputDirectory::Create and of
// JobLock; then the folders that were made are gone.
Result<LockedTarget> LockTarget(const std::string& path, const Patience* as_worker);

// A file of a set before, and what it was when it was held against its manifest.
struct PrunedFile {
  std::string path;  // relative to the target folder
  FileIdentity identity;
  std::string digest;  // of its manifest; empty: none
};

// What is published with the staged files.
struct SetToCome {
  // Those of the files that no WriteFinished has made durable with their folders.
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
  // As Open, but makes it where there is none.
  static Result<JobFolder> Make(const OutputDirectory& parent, const std::string& fingerprint);
  // `meter`, which has to live as long, or null, is looked at when much is held.
  void Watch(MemoryMeter* meter) { meter_ = meter; }

  // Throws away whatever is there under this name: the journal first, so that no half of it can be
  // taken for something that can be published.
  static Status Discard(const OutputDirectory& parent, const std::string& fingerprint);
  // Removes it after publication: the journal last, so that it tells until the end what was done.
  static Status CleanUp(const OutputDirectory& parent, const std::string& fingerprint);

  // Writes what is going to be staged, at once or not at all. Before anything else is.
  Status WriteJob(const JobText& job) const;
  // Returns what was being staged, or nothing where the folder was not even begun, or staging is
  // over. Errors: kCorrupt, kIo.
  Result<std::optional<JobText>> ReadJob() const;
  // Returns the journal, or nothing while files are being staged. Errors: kCorrupt, kIo.
  Result<std::optional<JobText>> ReadJournal() const;

  // Makes a file to be filled, and the folders on its way.
  Result<StagedFile> Create(const std::string& path, uint64_t size,
                            const WriteOptions& options = {}) const;
  // As Create, of a file that several workers write: opens it, to write `part`.
  Result<StagedFile> OpenPart(const std::string& path, uint64_t size, ByteRange part,
                              const WriteOptions& options) const;
  // Stages the part record of the file at `path`, which is whole and durable, in place of one that
  // is of no use, and makes it durable.
  Status WriteRecord(const std::string& path, const OutputDirectory::ByteSource& record) const;
  // The same of a file that one worker, or a run alone, has finished, with the CRC that it may
  // lack.
  Status FinishWhole(const std::string& path, const FinishedPart& finished,
                     const std::stop_token& stop) const;
  // Writes a CRC into the staged file at `path`, and makes it durable.
  Status Overwrite(const std::string& path, const CrcText& text) const;
  // Returns the head of the part record of the staged `file`, or nothing unless both are whole.
  // Errors: kIo.
  Result<std::optional<PartRecordHead>> StagedHead(const ManifestFile& file) const;
  // Returns whether `file` is staged with its size. Errors: kIo.
  Result<bool> IsStaged(const ManifestFile& file) const;
  // Removes a staged file and its part record, the record first.
  Status Remove(const std::string& path) const;
  // For messages, and to read it.
  std::string PathOfStaged(const std::string& path) const;

  // Returns the bytes of the part record of `path`, staged here.
  Result<std::string> ReadRecord(const std::string& path) const;

  // Stages the record of a part of the file at `path`, which is durable, and makes it durable.
  Status WriteBlockRecord(const std::string& path, ByteRange part,
                          const OutputDirectory::ByteSource& record) const;
  // Returns the record of a part of the staged `file`, or nothing unless both are as they should
  // be. Errors: kIo.
  Result<std::optional<BlockRecord>> StagedBlockRecord(const ManifestFile& file, ByteRange part,
                                                       const std::string& plan) const;
  // The locks of a worker, and of the process that joins the parts of the file at `path`; not
  // locked yet. Errors: kIo.
  Result<FileLock> WorkerLock(const WorkerShare& worker) const;
  Result<FileLock> JoinLock(const std::string& path) const;
  // Says, durably, that a worker has finished its share, which is of `files`. Errors: kIo.
  Status WriteFinished(const WorkerShare& worker, const std::vector<ManifestFile>& files) const;
  Result<bool> IsFinished(const WorkerShare& worker) const;
  // Returns which of so many workers have not finished. Errors: kIo.
  Result<std::vector<uint64_t>> Outstanding(uint64_t workers) const;
  // Returns which of so many workers' locks are held, and by which process as far as that is known
  // (FileLock::Holder). Only where none can begin meanwhile: it would find its lock held.
  // Errors: kIo.
  Result<std::map<uint64_t, std::string>> LiveWorkers(uint64_t workers) const;
  // Whether any worker's lock is held, of any number of workers. Errors: kIo.
  Result<bool> HasLiveWorker() const;

  // Returns the manifest to come, or nothing where it has left (or there is no journal).
  Result<std::optional<Manifest>> ReadManifest(const JobText& journal) const;

  // Returns ok when all of `files` are staged with their sizes, and their part records.
  // Errors: kIo.
  Status CheckStaged(const std::vector<ManifestFile>& files) const;

  // Proves that what is staged for `files` can be moved into `target` (target_place.h).
  Status ProveMoves(const OutputDirectory& target, const std::vector<ManifestFile>& files) const;

  // Makes the staged files, for which CheckStaged is ok, publishable: writes what is to come beside
  // them, and turns the job into the journal, all durable in this order. `parent` and `target` are
  // the folders above.
  Status Commit(SetToCome set, const OutputDirectory& parent, const OutputDirectory& target);

  // Returns whether each of `files`, those of the manifest to come, and each part record is whole,
  // here or in `target`.
  Result<bool> CanPublish(const std::vector<ManifestFile>& files,
                          const OutputDirectory& target) const;

  // Moves everything into place that is not there yet, once it is proved that this can be done: old
  // manifests that list any of the files go first, with their checksums, the new one comes last.
  // Each call goes on where the one before was interrupted.
  Status Publish(const OutputDirectory& target) const;

  // Once it is published: removes what is to be pruned, with the part records, where it still is as
  // it was listed, and folders of it that are empty then. Returns how many files were removed. Each
  // call goes on where the one before was interrupted. Errors: those of OutputDirectory.
  Result<uint64_t> Prune(const OutputDirectory& target) const;

 private:
  explicit JobFolder(OutputDirectory folder) : folder_(std::move(folder)) {}

  Result<std::optional<JobText>> ReadJobText(const char* name) const;
  // These write what is to come beside the files, in place of what is there.
  Status WriteOrigin(const SetToCome& set, const OutputDirectory& target) const;
  Status WritePruned(const std::vector<PrunedFile>& pruned) const;
  Status WriteManifest(Manifest manifest, const std::string& name) const;
  // Removes those of `names`, manifests and their checksums, that are in `target`: durably, before
  // anything that they list is replaced.
  Status RemoveDurably(const std::vector<std::string>& names, const OutputDirectory& target) const;
  // Moves those staged folders of `manifest` that the target folder lacks, each with all that is in
  // it, and adds them to `moved`: of them no entry needs to be flushed again.
  Status MoveFolders(const Manifest& manifest, const OutputDirectory& target,
                     std::set<std::string>& moved) const;
  // Moves the staged files and part records of `manifest` into place, durably but for the entries
  // of the target folder itself.
  Status MoveFiles(const Manifest& manifest, const OutputDirectory& target) const;

  void Look() const {
    if (meter_ != nullptr) meter_->Look();
  }

  OutputDirectory folder_;
  MemoryMeter* meter_ = nullptr;
  bool target_flushed_ = false;  // by Commit, and since then this run has removed nothing there
};

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_JOB_FOLDER_H_
