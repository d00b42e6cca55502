// DecryptedFile: the plain bytes of an encrypted .ckpt file, decrypted at each read.
//
// The tag of a GCM block is checked before any of its bytes is returned, which takes a read of the
// whole block. If the caller reads the whole block, this happens with the decryption; otherwise
// once, before the first read. Then any range of the block can be decrypted by itself. CBC has no
// tags, so only the padding of each block is checked. Only the reader holds plain bytes.
// Thread-safe.
#ifndef RESHARD_SRC_IO_DECRYPTED_FILE_H_
#define RESHARD_SRC_IO_DECRYPTED_FILE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/encryption.h"
#include "reshard/status.h"
#include "src/cipher/encrypted_block.h"
#include "src/os/byte_source.h"

namespace reshard {

// The places of a file's blocks, and whether each was checked. It outlives the closing of the file,
// so that each block is checked once as long as the file does not change.
class EncryptedBlocks {
 public:
  // Reads all headers to find the blocks, which may have any sizes. Behind the last block there may
  // be a CRC trailer of MindSpore, which is ignored.
  // Errors:
  //   kCorrupt: names the block's offset
  //   kResourceExhausted: more than kMostBlocks blocks of different sizes
  //   errors of `file` and of BlockCipher
  static Result<std::shared_ptr<EncryptedBlocks>> Read(const ByteSource& file,
                                                       TargetSpec::EncryptionMode mode,
                                                       std::shared_ptr<const EncryptionKey> key);

  static constexpr size_t kMostBlocks = size_t{1} << 20;
  // As large as the first one; with kPlainBlockBytes each 8 TiB.
  static constexpr size_t kMostEvenBlocks = size_t{1} << 24;

  EncryptedBlocks(const EncryptedBlocks&) = delete;
  EncryptedBlocks& operator=(const EncryptedBlocks&) = delete;

  TargetSpec::EncryptionMode mode() const { return cipher_.mode(); }
  // The bytes of the plain file.
  uint64_t size() const { return layout_.end.plain; }

  // As ByteSource::ReadAt. More errors: kCorrupt for a block that is not of the expected form at
  // its place, or does not fit the key.
  Status ReadAt(const ByteSource& file, uint64_t offset, std::span<std::byte> plain);
  // Returns the range of the file that has the encrypted bytes of `plain`, perhaps with one more
  // unit. It lacks the unit before, which CBC needs for the first unit.
  ByteRange CipherOf(ByteRange plain) const;

 private:
  class CipherReader;
  enum class BlockState : uint8_t { kUnknown, kBeingChecked, kFits };
  struct Place {
    uint64_t offset = 0;  // in the file, of the block's header
    uint64_t plain = 0;   // in the plain file
  };

  // The places of the blocks.
  struct Layout {
    Place even;                 // the begin of the second block, even if there is none
    std::vector<Place> places;  // of all blocks, unless all but the last are as large as the first
    Place end;                  // of the last block
    size_t count = 0;
  };

  explicit EncryptedBlocks(BlockCipher cipher) : cipher_(std::move(cipher)) {}

  // Reads all headers.
  Result<Layout> FindEach(const ByteSource& file) const;
  // Reads the header and the padding of a block that begins at `place`, and returns its end.
  // `number` is for messages.
  Result<Place> EndOf(const ByteSource& file, size_t number, Place place) const;
  // Parses the header at `offset` of the file. `left` is the number of bytes from there to the end.
  // read(offset, buffer) reads from the file.
  Result<EncryptedBlock> ReadHeader(uint64_t offset, uint64_t left, const CipherBytes& read) const;

  // The functions below need the layout. Returns the begin of a block, or the end of the last block
  // for the number behind it.
  Place PlaceOf(size_t number) const;
  // Returns the number of the block of a plain byte.
  size_t BlockAt(uint64_t plain) const;
  // As ReadHeader; the block has to be as long as it was found to be.
  Result<EncryptedBlock> HeaderOf(size_t number, const CipherBytes& read) const;
  // Decrypts bytes of a block, from byte `from` of the block on.
  Status ReadOfBlock(const ByteSource& file, size_t number, uint64_t from,
                     std::span<std::byte> plain, CipherReader& reader);
  // Checks the block once; waits if another thread is checking it. If large blocks are checked one
  // after the other, as for a header in each block, checks several ahead with threads.
  Status Check(const ByteSource& file, size_t number);
  // Returns the number of blocks, from this one on, that the caller has to check; 0 if this one was
  // checked.
  size_t BeginChecks(size_t number);
  Status CheckNow(const ByteSource& file, size_t number) const;
  bool IsUnknown(size_t number) const;
  // If `status` is kCorrupt, adds the block to its message, or replaces it if the file has changed.
  Status InBlock(const ByteSource& file, size_t number, uint64_t offset,
                 const Status& status) const;

  static constexpr size_t kCheckedTogether = 4;

  const BlockCipher cipher_;
  Layout layout_;             // does not change after Read
  mutable std::mutex mutex_;  // guards the states
  std::vector<BlockState> states_;
  std::condition_variable checked_;  // a block is no longer kBeingChecked
};

class DecryptedFile final : public ByteSource {
 public:
  DecryptedFile(std::unique_ptr<const ByteSource> file, std::shared_ptr<EncryptedBlocks> blocks)
      : ByteSource(file->path(), file->identity()),
        file_(std::move(file)),
        blocks_(std::move(blocks)) {}

  uint64_t size() const override { return blocks_->size(); }
  Decryption decryption() const override {
    return blocks_->mode() == TargetSpec::EncryptionMode::kAesGcm ? Decryption::kProven
                                                                  : Decryption::kUnproven;
  }
  Status ReadAt(uint64_t offset, std::span<std::byte> destination) const override;
  // No effect: the pages would count as cached before, and so would never be dropped.
  void Prefetch(ByteRange /*range*/) const override {}
  bool IsRemote() const override { return file_->IsRemote(); }
  bool IsCached(ByteRange range) const override;

  const std::shared_ptr<EncryptedBlocks>& blocks() const { return blocks_; }

 private:
  std::unique_ptr<const ByteSource> file_;
  std::shared_ptr<EncryptedBlocks> blocks_;
};

// Returns the mode of encryption, or no value for a plain file. Errors: as `file`.
Result<std::optional<TargetSpec::EncryptionMode>> EncryptionModeOf(const ByteSource& file);

}  // namespace reshard

#endif  // RESHARD_SRC_IO_DECRYPTED_FILE_H_
