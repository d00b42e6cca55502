// DcpTables: the tables of the files of a DCP checkpoint, by its metadata.
//
// Thread-safe.
#ifndef RESHARD_SRC_SHARDED_DCP_TABLES_H_
#define RESHARD_SRC_SHARDED_DCP_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/dcp/dcp_items.h"
#include "format/dcp/dcp_reader.h"
#include "reshard/status.h"
#include "src/source/found_source.h"
#include "src/source/indexed_file.h"

namespace reshard {

class DcpTables final : public FamilyTables {
 public:
  // `arrays` has the wanted arrays of each file by its number, in file order; `numbers` has the
  // numbers. They refer to `metadata`. `path` is the path of the metadata, for messages.
  DcpTables(std::vector<std::unique_ptr<const DcpMetadata>> metadata,
            std::vector<std::vector<DcpArray>> arrays, std::map<FileId, int64_t> numbers,
            std::string path);

  // As ReadDcpItems.
  Result<IndexedFile> Read(SourceFiles& files, FileId file, const MemoryCheck& memory,
                           const std::shared_ptr<const FileTable>& like) const override;
  Result<std::optional<IndexedFile>> Tell(const SourceFiles& files,
                                          const ChosenFile& file) const override;
  // Returns `read` as it is.
  Result<IndexedFile> Choose(IndexedFile read, const std::string& path) override;

 private:
  std::span<const DcpArray> ArraysOf(FileId file) const;

  const std::vector<std::unique_ptr<const DcpMetadata>> metadata_;
  const std::vector<std::vector<DcpArray>> arrays_;
  const std::map<FileId, int64_t> numbers_;
  const std::string path_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_SHARDED_DCP_TABLES_H_
