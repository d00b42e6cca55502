// JobFolder: the folder `.reshard/FINGERPRINT` in a target folder, where a run stages its files and
// from where it publishes them.
//
//     files/...        the staged files, at the paths that they will have in the target folder
//     manifest.json    the manifest to come (or manifest_partS.json)
//     journal          what is published, from which sources
//
// Everything before the journal may be thrown away; once the journal is there, all files and the
// manifest are whole and durable, and the renames can be completed at any time, by any process. The
// manifest leaves last, so a journal without it means that only cleaning up is left.
//
// Only the holder of the job lock uses it. Move-only; used by one thread at a time, but for Create.
#ifndef RESHARD_SRC_EXEC_JOB_FOLDER_H_
#define RESHARD_SRC_EXEC_JOB_FOLDER_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/manifest/manifest_codec.h"
#include "reshard/status.h"
#include "src/exec/job_spec.h"
#include "src/os/output_directory.h"
#include "src/os/staged_file.h"

namespace reshard {

struct Journal {
  std::string manifest_name;
  std::string targets;  // manifest name, paths and sizes, as text
  std::string sources;  // the identities of the sources, as text

  friend bool operator==(const Journal&, const Journal&) = default;
};

Journal MakeJournal(const JobSpec& spec);

// Returns the manifests of `target`, but for one called `except`, that list any of `files`: name
// and content. What cannot be read as a manifest lists nothing.
Result<std::vector<std::pair<std::string, Manifest>>> ManifestsThatList(
    const OutputDirectory& target, const std::vector<ManifestFile>& files,
    const std::string& except);

class JobFolder {
 public:
  // Opens the folder of `fingerprint` in `parent` (.reshard). Errors: kNotFound, kAlreadyExists for
  // something else in its place, kIo.
  static Result<JobFolder> Open(const OutputDirectory& parent, const std::string& fingerprint);
  // As Open, but makes it where there is none.
  static Result<JobFolder> Make(const OutputDirectory& parent, const std::string& fingerprint);
  // Throws away whatever is there under this name: the journal first, so that no half of it can be
  // taken for something that can be published.
  static Status Discard(const OutputDirectory& parent, const std::string& fingerprint);
  // Removes it after publication: the journal last, so that it tells until the end what was done.
  static Status CleanUp(const OutputDirectory& parent, const std::string& fingerprint);

  // Makes a file to be filled, and the folders on its way. Any thread.
  Result<StagedFile> Create(const std::string& path, uint64_t size) const;

  // Returns the journal, or nothing while files are being staged. Errors: kCorrupt, kIo.
  Result<std::optional<Journal>> ReadJournal() const;
  // Returns the manifest to come, or nothing where it has left (or there is no journal).
  Result<std::optional<Manifest>> ReadManifest(const Journal& journal) const;

  // Makes the staged `files` publishable: checks that they are whole and writes `manifest` and the
  // journal, all durable in this order. `parent` and `target` are the folders above.
  Status Commit(const std::vector<ManifestFile>& files, const Manifest& manifest,
                const Journal& journal, const OutputDirectory& parent,
                const OutputDirectory& target) const;

  // Returns whether each of `files`, those of the manifest to come, is whole, here or in `target`.
  Result<bool> CanPublish(const std::vector<ManifestFile>& files,
                          const OutputDirectory& target) const;

  // Moves everything into place that is not there yet: old manifests that list any of the files go
  // first, the new one comes last. Each call goes on where the one before was interrupted.
  Status Publish(const OutputDirectory& target) const;

 private:
  explicit JobFolder(OutputDirectory folder) : folder_(std::move(folder)) {}

  // Moves the staged files of `manifest` into place.
  Status MoveFiles(const Manifest& manifest, const OutputDirectory& target) const;

  OutputDirectory folder_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_EXEC_JOB_FOLDER_H_
