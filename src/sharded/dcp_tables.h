// DcpTables: the tables of the files of a DCP checkpoint. Its metadata lists the items of a file,
// and each item is a zip of torch.save with one tensor.
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
#include <string_view>
#include <vector>

#include "format/dcp/dcp_reader.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/source/found_source.h"
#include "src/source/indexed_file.h"

namespace reshard {

// A chunk of a tensor, which is an array of a file.
struct DcpArray {
  const DcpMetadata* metadata = nullptr;
  const DcpTensor* tensor = nullptr;
  const DcpChunk* chunk = nullptr;
  bool is_alone = true;  // the only chunk of its tensor in the file

  ByteRange range() const { return chunk->item->range; }
  Box box() const { return metadata->BoxOf(*tensor, *chunk); }
  // The tensor's name. If others of its chunks are in the file, its box follows.
  std::string Name() const;
};

class DcpTables final : public FamilyTables {
 public:
  // `arrays` has the wanted arrays of each file by its number, in file order; `numbers` has the
  // numbers. They refer to `metadata`. `path` is the path of the metadata, for messages.
  DcpTables(std::vector<std::unique_ptr<const DcpMetadata>> metadata,
            std::vector<std::vector<DcpArray>> arrays, std::map<FileId, int64_t> numbers,
            std::string path);

  // Reads the head and the end of each item. Lists tensors that ReadTensorItem does not support.
  // Errors: kMismatch if an item has another tensor; kCorrupt if items lie outside of the file; as
  // ReadTensorItem.
  Result<IndexedFile> Read(SourceFiles& files, FileId file, const MemoryCheck& memory,
                           const std::shared_ptr<const FileTable>& like) const override;
  Result<std::optional<IndexedFile>> Tell(const SourceFiles& files,
                                          const ChosenFile& file) const override;
  // Returns `read` as it is.
  Result<IndexedFile> Choose(IndexedFile read, const std::string& path) override;

 private:
  // Checks that the items of a file lie in its bytes.
  Status CheckInside(std::span<const DcpArray> arrays, std::string_view path, uint64_t size) const;

  const std::vector<std::unique_ptr<const DcpMetadata>> metadata_;
  const std::vector<std::vector<DcpArray>> arrays_;
  const std::map<FileId, int64_t> numbers_;
  const std::string path_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_SHARDED_DCP_TABLES_H_
