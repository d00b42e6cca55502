// FoundSource: the result of looking for a family of sources at a path: its files, the places of
// its tensors, and the parts of its tables that count.
//
// A SourceFinder looks for one family, whose sources state themselves where tensors lie. OpenSource
// (src/convert/opened_source.h) has the list of finders.
#ifndef RESHARD_SRC_SOURCE_FOUND_SOURCE_H_
#define RESHARD_SRC_SOURCE_FOUND_SOURCE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/container/container.h"
#include "format/rename_map/renaming.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"
#include "src/io/source_files.h"
#include "src/os/file_identity.h"
#include "src/source/indexed_file.h"
#include "src/source/placement.h"

namespace reshard {

// One file that was chosen.
struct ChosenFile {
  int64_t rank = 0;
  std::string relative_path;  // to the source folder
  FileId id = 0;
  FileIdentity identity;  // as it was when it was chosen
};

// Selects the parts of the files' tables that count for a family. Thread-safe.
class FamilyTables {
 public:
  virtual ~FamilyTables() = default;

  // Returns the table of a file, `like` as for ReadFileTable. Errors: as that has them.
  virtual Result<IndexedFile> Read(SourceFiles& files, FileId file, const MemoryCheck& memory,
                                   const std::shared_ptr<const FileTable>& like) const {
    return ReadFileTable(files, file, memory, like);
  }
  // Returns the table of a file without opening it, for looking at: arrays have no content, only
  // the bytes around it. No value if only the file tells. Errors: as Read.
  virtual Result<std::optional<IndexedFile>> Tell(const SourceFiles& /*files*/,
                                                  const ChosenFile& /*file*/) const {
    return std::optional<IndexedFile>();
  }
  // Returns the part of `read` that counts. `read` is a table with the names of
  // SourceRequest::names; `path` is for messages. Errors: kMismatch if the file lacks an
  // expected tensor.
  virtual Result<IndexedFile> Choose(IndexedFile read, const std::string& path) = 0;
  // Returns warnings, once Choose was called for each file.
  virtual std::vector<Warning> Warnings() const { return {}; }
};

struct FoundSource {
  std::vector<ChosenFile> files;  // at least one, ascending by rank
  // How the files are written down; null: their content tells.
  const Container* container = nullptr;
  std::unique_ptr<const Placement> placement;
  std::unique_ptr<FamilyTables> tables;  // null: all of each file counts, as its reader reads it
  std::vector<Warning> warnings;
  // By the family's metadata, or parts that do not fit and are not wanted; with the names of the
  // source.
  std::vector<UnreadTensor> unread = {};

  // Whether ranks are just numbers of the files, whose names have no rank.
  bool files_are_numbered = false;
  bool looks_into_all = false;  // whether each file is looked into when the source is opened
  // A file that lists the places of tensors, such as an index; its rank has no meaning.
  std::optional<ChosenFile> index = {};
  std::vector<std::string> indexed = {};  // the paths of all files that it names, there or not
  // the rank of the file with the tensors that the index does not name
  std::optional<int64_t> rest = {};
};

// A place to look for a family, and the wanted tensors.
struct SourceRequest {
  const std::string& path;  // one that is no pattern, of a source without a strategy
  std::optional<SourceFormat> format = {};  // SourceSpec::format
  const NamesInFiles& names;
  // Whether the tensor of a (new) name is wanted; others may be missing. Null: all are wanted.
  std::function<bool(std::string_view)> wants;
  // Files may be missing. Opening a missing file reports it.
  bool files_may_be_missing = false;
  // Wanted tensors that cannot be read are no error, but left to FoundSource::unread or to tables.
  bool lists_unread = false;
  SourceFiles& files;  // found files are added here
  MemoryCheck memory;
};

// Returns the source at the path; no value if it does not belong to the family.
using SourceFinder = Result<std::optional<FoundSource>> (*)(const SourceRequest& request);

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_FOUND_SOURCE_H_
