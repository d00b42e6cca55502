// TorchArchive: the members of a zip that torch.save made (SPEC.md, "Members").
#ifndef RESHARD_FORMAT_TORCH_ZIP_TORCH_ARCHIVE_H_
#define RESHARD_FORMAT_TORCH_ZIP_TORCH_ARCHIVE_H_

#include <string>
#include <string_view>

#include "format/container/container.h"
#include "format/container/file_table.h"
#include "format/torch_zip/torch_tensor.h"
#include "format/torch_zip/zip_directory.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

// The file has to outlive it. One thread at a time.
class TorchArchive {
 public:
  // Reads the directory of the zip `zip` of `file`, and its byte order. Errors: as ZipDirectory;
  // kCorrupt without a member data.pkl; kUnsupported for numbers of the other byte order and for an
  // archive of TorchScript.
  static Result<TorchArchive> Open(const FileBytes& file, ByteRange zip, const MemoryCheck& memory);

  // Returns data.pkl, whose CRC-32 is checked. Errors: as ZipDirectory::ReadChecked.
  Result<std::string> ReadPickleBytes(const MemoryCheck& memory);

  // Returns the member that holds the storage of `tensor`; null if the storage is empty and has
  // none. Errors: kCorrupt if there is no member of its size.
  Result<const ZipMember*> StorageOf(const TorchTensor& tensor) const;

  // Returns the member that holds the storage of this key, or null.
  const ZipMember* FindStorage(std::string_view key) const;

  ZipDirectory& directory() { return directory_; }
  const ZipDirectory& directory() const { return directory_; }
  // Adds file and offset to an error about data.pkl.
  Status InPickle(const Status& status) const;

 private:
  explicit TorchArchive(ZipDirectory directory) : directory_(std::move(directory)) {}

  const ZipMember* Find(std::string_view name) const;

  ZipDirectory directory_;
  std::string folder_;  // of all members, "archive/"
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_TORCH_ZIP_TORCH_ARCHIVE_H_
