// ZipDirectory: the members of a zip, from its central directory (SPEC.md, "Zip").
//
// Immutable once read, but for ContentOf, which reads the file. One thread at a time.
#ifndef RESHARD_FORMAT_TORCH_ZIP_ZIP_DIRECTORY_H_
#define RESHARD_FORMAT_TORCH_ZIP_ZIP_DIRECTORY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/container/container.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

// ZipDirectory reads these bytes at the begin and at the end of a zip, each at once. If zips
// follow each other in a file, prefetching an end with the next begin saves requests.
inline constexpr uint64_t kZipHeadBytes = 2048;
inline constexpr uint64_t kZipTailBytes = 1024;

struct ZipMember {
  std::string_view name;  // of the directory, whose memory it refers to
  uint64_t header = 0;    // the offset of its local header, in the zip
  uint64_t room = 0;      // from there to the next member, or to the directory
  uint64_t size = 0;      // of its content
  uint32_t crc = 0;       // of its content, as the directory states it (states_crcs)
};

// The file has to outlive the directory.
class ZipDirectory {
 public:
  // Reads the directory of the zip that is the bytes `zip` of `file`. Takes stored members only,
  // without encryption. Members do not overlap, and names occur once.
  // Errors:
  //   kCorrupt: no such zip; names file, offset and member
  //   kResourceExhausted: a directory beyond kMaxTableBytes
  //   as `file` and `memory`
  static Result<ZipDirectory> Read(const FileBytes& file, ByteRange zip, const MemoryCheck& memory);

  ZipDirectory(ZipDirectory&&) = default;
  ZipDirectory& operator=(ZipDirectory&&) = default;
  ZipDirectory(const ZipDirectory&) = delete;
  ZipDirectory& operator=(const ZipDirectory&) = delete;

  // In the order of their places.
  const std::vector<ZipMember>& members() const { return members_; }
  // Returns the member of this name, or null.
  const ZipMember* Find(std::string_view name) const;

  // Whether the directory has CRC-32s. Without them, as torch.save writes a zip after
  // set_crc32_options(False), it has 0 for each member.
  bool states_crcs() const { return states_crcs_; }

  // Reads a member's local header and returns the place of its content in the file. Errors:
  // kCorrupt if the header disagrees with the directory; as the file.
  Result<ByteRange> ContentOf(const ZipMember& member);
  // Reads the content of a member and checks its CRC-32, if that is stated. Errors: kCorrupt; as
  // ContentOf.
  Result<std::string> ReadChecked(const ZipMember& member, const MemoryCheck& memory);
  // Starts reading a member's local header. Errors: as the file.
  Status PrefetchHeader(const ZipMember& member) const;

  // Returns an error with the name of the file and, if that has more than the zip, the offset.
  Status Error(StatusCode code, std::string_view what) const;
  Status ErrorIn(const ZipMember& member, StatusCode code, std::string_view what) const;

 private:
  // Where the directory lies, relative to the zip.
  struct Place {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t count = 0;  // of entries
    uint64_t end = 0;    // the place of the first end record; the directory lies before
  };
  // Bytes of the zip that are kept for further reads.
  struct Block {
    uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };

  ZipDirectory(const FileBytes& file, ByteRange zip) : file_(&file), zip_(zip) {}

  Status ReadBlocks();
  // Reads `count` bytes at an offset of the zip, which has them.
  Result<std::vector<std::byte>> Bytes(uint64_t offset, uint64_t count) const;
  Result<Place> FindPlace() const;
  // Replaces `place` by the facts of the ZIP64 record, if the zip has one.
  Status ApplyZip64(Place& place) const;
  Status ParseEntries(const Place& place);
  Result<ZipMember> ParseEntry(uint64_t at, uint64_t& next) const;
  Status CheckMembers(uint64_t directory);

  const FileBytes* file_;
  ByteRange zip_;
  Block head_;
  Block tail_;
  std::vector<std::byte> entries_;  // the directory as it stands in the file
  std::vector<ZipMember> members_;
  std::vector<uint32_t> by_name_;  // places in members_
  bool states_crcs_ = false;
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_TORCH_ZIP_ZIP_DIRECTORY_H_
