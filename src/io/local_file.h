// LocalFile: a regular file, open and perhaps mapped. Storage (storage.h) opens it.
//
// Owns its descriptor and its map. Once made and mapped it does not change. Reads are repeated by
// the retries of the thread that opened it (src/os/retries.h). Any number of threads may read from
// one.
#ifndef RESHARD_SRC_IO_LOCAL_FILE_H_
#define RESHARD_SRC_IO_LOCAL_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/io/byte_source.h"
#include "src/os/input_file.h"
#include "src/os/mapped_file.h"
#include "src/os/retries.h"
#include "src/os/system_call.h"

namespace reshard {

class LocalFile final : public ByteSource, public FilePages {
 public:
  // Opens without ever waiting for another process; symbolic links are followed. Reads will not
  // read ahead. Errors: kNotFound; kCorrupt for a folder, pipe, device or socket; kIo.
  static Result<LocalFile> Open(const std::string& path);

  LocalFile(LocalFile&& other) noexcept = default;
  LocalFile& operator=(LocalFile&& other) noexcept = default;

  uint64_t size() const override { return identity().size(); }

  Status ReadAt(uint64_t offset, std::span<std::byte> destination) const override;
  void Prefetch(ByteRange range) const override;
  // Whether the file lies on a network or FUSE file system. There a map is slow, and a page that
  // the server does not deliver is a signal instead of an error.
  bool IsRemote() const override;
  bool HasCheapReads() const override;

  const FilePages* pages() const override { return this; }
  FilePages* pages() override { return this; }
  Status Map(MapPages pages) override;
  Result<std::shared_ptr<std::byte>> MapWhole(MapAccess access) const override;
  Status CheckUnchanged() const override;
  const std::byte* map() const override { return map_.get(); }
  Status ExplainFault(uint64_t offset) const override;
  Status Populate(ByteRange range) const override;
  bool ReadsLargePages() const override { return reads_large_pages_; }
  void Unmap(ByteRange range) const override;
  Residency FindUncached(ByteRange range,
                         const std::function<void(ByteRange)>& visit) const override;
  bool DropCached(ByteRange range) const override;
  FileDescriptor OpenPastCache() const override { return ReopenDirect(descriptor_.get()); }
  bool ReadPastCache(const FileDescriptor& opened, uint64_t offset,
                     std::span<std::byte> destination) const override;

 private:
  LocalFile(std::string path, InputFile file)
      : ByteSource(std::move(path), file.identity),
        descriptor_(std::move(file.descriptor)),
        retries_(CurrentRetries()) {}

  // Puts the file at its path behind the descriptor again, for all threads, if it is the same one.
  // Errors: kChanged; as OpenInputFile.
  Status Reopen() const;

  FileDescriptor descriptor_;
  std::shared_ptr<Retries> retries_;  // null: none
  std::shared_ptr<const std::byte> map_;
  bool reads_large_pages_ = false;
};

}  // namespace reshard

#endif  // RESHARD_SRC_IO_LOCAL_FILE_H_
