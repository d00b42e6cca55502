// A published set as it lies in a target folder: its manifests, files and part records, reached
// without following symbolic links.
//
// All state is in the arguments; any number of threads may call. A ManifestSet is immutable once
// open.
#ifndef RESHARD_SRC_VERIFY_STORED_SET_H_
#define RESHARD_SRC_VERIFY_STORED_SET_H_

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/compare.h"
#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/os/output_directory.h"
#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"

namespace reshard {

struct ManifestSet {
  OutputDirectory root;             // the folder that holds them
  std::vector<std::string> names;   // sorted
  std::vector<Manifest> manifests;  // the undamaged ones
  std::vector<DamageReport::Damage> damages =
      {};                               // the others, and lists of checksums of other files
  std::vector<std::string> notes = {};  // lists of checksums that are missing

  // Reads all manifests in the folder at `path`.
  // Errors: kNotFound when there is none; kUnsupported for another schema version; kIo.
  static Result<ManifestSet> Open(const std::string& path);

  // How many files they list, and their bytes.
  uint64_t files() const;
  uint64_t bytes() const;
};

// A target folder: `root` is looked into, `files` reads.
struct StoredFolder {
  const OutputDirectory& root;
  SourceFiles& files;
};

// Opens the regular file at `path`, in the folder. If there is no regular file, or a folder on the
// way is a link or not a folder, returns no value and describes the damage. Errors: kIo.
Result<std::optional<FileId>> OpenStored(const StoredFolder& folder, const std::string& path,
                                         DamageReport::Damage& damage);

// Feeds a file to `parser` and finishes it. Stops at the first error of the parser. Errors: as
// SourceFiles and of PartRecordParser; kCancelled.
Status FeedStored(SourceFiles& files, FileId file, const std::stop_token& stop,
                  PartRecordParser& parser);

struct StoredRecord {
  FileId file = 0;
  PartRecordHead head;
};

// Reads the part record that a manifest of the plan `plan` lists beside `file`. Returns its head
// and its place; or no value, with the reason in `damage`. The whole record is proved before any of
// its statements counts. Errors: as SourceFiles; kCancelled.
Result<std::optional<StoredRecord>> ReadStoredRecord(const StoredFolder& folder,
                                                     const std::string& plan,
                                                     const ManifestFile& file,
                                                     const std::stop_token& stop,
                                                     DamageReport::Damage& damage);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_STORED_SET_H_
