// DecryptedFile: the plain bytes of an encrypted .ckpt file, decrypted whenever they are read.
//
// Nothing of a GCM block is given out before its tag was checked, which takes reading all of the
// block once; after that, any range of it is decrypted by itself. Of CBC, which has no tags, only
// the padding of each block is checked. Plain bytes are held by nobody but the reader. Thread-safe.
#ifndef RESHARD_SRC_IO_DECRYPTED_FILE_H_
#define RESHARD_SRC_IO_DECRYPTED_FILE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/encryption.h"
#include "reshard/status.h"
#include "src/cipher/encrypted_block.h"
#include "src/io/byte_source.h"
#include "src/os/paths.h"

namespace reshard {

// Where the blocks of a file are, and whose tags were checked. Outlives the closing of the file, so
// that each tag is checked once as long as the file stays as it is.
class EncryptedBlocks {
 public:
  // Goes through the headers of all blocks. What is behind the last one has to be the trailer of a
  // CRC, which MindSpore writes there and which counts for nothing.
  // Errors: kCorrupt, naming the block's offset; kResourceExhausted for more than kMostBlocks;
  // those of `file` and of BlockCipher.
  static Result<std::shared_ptr<EncryptedBlocks>> Read(const LocalFile& file, EncryptionMode mode,
                                                       std::shared_ptr<const EncryptionKey> key);

  // With 64 MiB each, as MindSpore has them, blocks of 64 TiB.
  static constexpr size_t kMostBlocks = size_t{1} << 20;

  EncryptedBlocks(const EncryptedBlocks&) = delete;
  EncryptedBlocks& operator=(const EncryptedBlocks&) = delete;

  EncryptionMode mode() const { return cipher_.mode(); }
  // The bytes of the plain file.
  uint64_t size() const { return size_; }

  // As ByteSource::ReadAt.
  Status ReadAt(const LocalFile& file, uint64_t offset, std::span<std::byte> plain);
  // Returns a range of the file that contains what `plain` is decrypted from, ends aside.
  ByteRange CipherOf(ByteRange plain) const;

 private:
  enum class TagState : uint8_t { kUnknown, kBeingChecked, kFits };
  struct Place {
    uint64_t offset;  // in the file, of the block's header
    uint64_t plain;   // in the plain file
    TagState tag = TagState::kUnknown;
  };

  explicit EncryptedBlocks(BlockCipher cipher) : cipher_(std::move(cipher)) {}

  // Returns the number of the block of a plain byte.
  size_t BlockAt(uint64_t plain) const;
  Result<EncryptedBlock> ReadHeader(const LocalFile& file, size_t number) const;
  // Checks the tag unless that was done; waits for who is doing it.
  Status CheckTag(const LocalFile& file, size_t number, const EncryptedBlock& block);
  // Says of which block `status`, if it is kCorrupt, speaks.
  Status InBlock(const LocalFile& file, size_t number, const Status& status) const;

  const BlockCipher cipher_;
  uint64_t size_ = 0;
  std::vector<Place> places_;        // but for `tag` never changed
  std::mutex mutex_;                 // guards the tags
  std::condition_variable checked_;  // a tag is no longer kBeingChecked
};

class DecryptedFile final : public ByteSource {
 public:
  DecryptedFile(LocalFile file, std::shared_ptr<EncryptedBlocks> blocks)
      : file_(std::move(file)), blocks_(std::move(blocks)) {}

  const std::string& path() const override { return file_.path(); }
  const FileIdentity& identity() const override { return file_.identity(); }
  uint64_t size() const override { return blocks_->size(); }
  Decryption decryption() const override {
    return blocks_->mode() == EncryptionMode::kAesGcm ? Decryption::kProven : Decryption::kUnproven;
  }
  Status ReadAt(uint64_t offset, std::span<std::byte> destination) const override;
  void Prefetch(ByteRange range) const override { file_.Prefetch(blocks_->CipherOf(range)); }
  bool IsRemote() const override { return file_.IsRemote(); }
  bool HasCheapReads() const override { return file_.HasCheapReads(); }
  bool IsMapped() const override { return file_.IsMapped(); }
  bool IsCached(ByteRange range) const override;

  const std::shared_ptr<EncryptedBlocks>& blocks() const { return blocks_; }

 private:
  LocalFile file_;
  std::shared_ptr<EncryptedBlocks> blocks_;
};

// Returns the mode in which the file is encrypted, if it is. Errors: those of `file`.
Result<std::optional<EncryptionMode>> EncryptionModeOf(const LocalFile& file);

}  // namespace reshard

#endif  // RESHARD_SRC_IO_DECRYPTED_FILE_H_
