// FoundSource: what a family of sources finds at a path: its files, where tensors lie in them, and
// what of their tables counts.
//
// A family whose sources say themselves where tensors lie is one SourceFinder; OpenSource
// (src/convert/opened_source.h) has the list of them.
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

// What of the tables of its files counts for a family. Thread-safe.
class FamilyTables {
 public:
  virtual ~FamilyTables() = default;

  // Returns the table of a file, `like` as for ReadFileTable. Errors: as that has them.
  virtual Result<IndexedFile> Read(SourceFiles& files, FileId file, const MemoryCheck& memory,
                                   const std::shared_ptr<const FileTable>& like) const {
    return ReadFileTable(files, file, memory, like);
  }
  // Returns what counts of `read`, a table with the names of SourceRequest::new_names; `path` is
  // for messages. Errors: kMismatch where the file lacks what it ought to have.
  virtual Result<IndexedFile> Choose(IndexedFile read, const std::string& path) = 0;
  // As CoveredByCrc of indexed_file.h.
  virtual Result<std::optional<ByteRange>> CoveredByCrc(SourceFiles& files, FileId file) const {
    return reshard::CoveredByCrc(files, file);
  }
  // Returns what there is to say once each file was chosen from.
  virtual std::vector<Warning> Warnings() const { return {}; }
};

struct FoundSource {
  std::vector<ChosenFile> files;  // at least one, ascending by rank
  // How the files are written down; null: their content tells.
  const Container* container = nullptr;
  std::unique_ptr<const Placement> placement;
  std::unique_ptr<FamilyTables> tables;  // null: all of each file counts, as its reader reads it
  std::vector<Warning> warnings;

  // Whether ranks are mere numbers of the files, whose names state no rank.
  bool files_are_numbered = false;
  bool looks_into_all = false;  // whether each file is looked into when the source is opened
  // A file that says where the tensors are, such as an index; its rank means nothing.
  std::optional<ChosenFile> index = {};
  std::vector<std::string> indexed = {};  // the paths of all files that it names, there or not
  std::optional<int64_t> rest = {};       // the rank of the file with what it does not name
};

// Where a family looks, and for what.
struct SourceRequest {
  const std::string& path;  // one that is no pattern, of a source without a strategy
  // From names in the source to those that its tensors have here.
  const std::map<std::string, std::string>& new_names;
  // Whether the tensor of a (new) name is wanted: what is not may be missing. Null: all are.
  std::function<bool(std::string_view)> wants;
  // Files may be missing: whoever opens one says so.
  bool files_may_be_missing = false;
  SourceFiles& files;  // what is found is added to them
  MemoryCheck memory;
};

// Returns what the family finds at the path; nothing where it is none of its sources.
using SourceFinder = Result<std::optional<FoundSource>> (*)(const SourceRequest& request);

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_FOUND_SOURCE_H_
