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
  OutputDirectory root;                 // the folder that holds them
  std::vector<std::string> names;       // sorted
  std::vector<Manifest> manifests;      // those that are whole
  std::vector<Damage> damages = {};     // the others, and lists of checksums of other files
  std::vector<std::string> notes = {};  // lists of checksums that are missing

  // Reads all that there are in the folder at `path`.
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

// Opens the regular file at `path`, relative to the folder. Returns nothing, and says in `damage`
// what is there, when it is none, or when a folder on the way is a link or no folder.
// Errors: kIo.
Result<std::optional<FileId>> OpenStored(const StoredFolder& folder, const std::string& path,
                                         Damage& damage);

// Feeds a file to `parser` and finishes it; stops at the first thing that is wrong with it.
// Errors: those of SourceFiles and of PartRecordParser; kCancelled.
Status FeedStored(SourceFiles& files, FileId file, const std::stop_token& stop,
                  PartRecordParser& parser);

struct StoredRecord {
  FileId file = 0;
  PartRecordHead head;
};

// Reads the part record that a manifest of the plan `plan` lists beside `file`, and returns its
// head and where it is; or nothing, and what is wrong with it in `damage`. Nothing that a record
// says counts before all of it is proved. Errors: those of SourceFiles; kCancelled.
Result<std::optional<StoredRecord>> ReadStoredRecord(const StoredFolder& folder,
                                                     const std::string& plan,
                                                     const ManifestFile& file,
                                                     const std::stop_token& stop, Damage& damage);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_STORED_SET_H_
