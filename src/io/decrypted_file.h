// DecryptedFile: the plain bytes of an encrypted .ckpt file, decrypted whenever they are read.
//
// Nothing of a GCM block is given out before its tag was checked, which takes reading all of the
// block: with what is decrypted where somebody reads it whole, else once before that; then any
// range of it is decrypted by itself. Of CBC, which has no tags, only the padding of each block is
// checked. Plain bytes are held by nobody but the reader. Thread-safe.
#ifndef RESHARD_SRC_IO_DECRYPTED_FILE_H_
#define RESHARD_SRC_IO_DECRYPTED_FILE_H_

#include <atomic>
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

namespace reshard {

// Where the blocks of a file are, and which of them were checked. Outlives the closing of the file,
// so that each is checked once as long as the file stays as it is.
class EncryptedBlocks {
 public:
  // Finds the blocks by their headers, as they may have any sizes. If there are very many, the
  // first and the last one tell for the time being where the others are: all but the last as large
  // as the first, as all writers that are known make them. Nothing of such a block is given out
  // before the headers of all blocks before it have proved that. Behind the last block may be the
  // trailer of a CRC, which MindSpore writes there and which counts for nothing. Errors: kCorrupt,
  // naming the block's offset; kResourceExhausted for more than kMostBlocks that are not all as
  // large; those of `file` and of BlockCipher.
  static Result<std::shared_ptr<EncryptedBlocks>> Read(const ByteSource& file, EncryptionMode mode,
                                                       std::shared_ptr<const EncryptionKey> key);

  static constexpr size_t kMostBlocks = size_t{1} << 20;
  // As large as the first one; with kPlainBlockBytes each 8 TiB.
  static constexpr size_t kMostEvenBlocks = size_t{1} << 24;
  // The headers of so many blocks are read at once, and of any number of blocks that are this
  // small: then a file has few pages without a header.
  static constexpr size_t kMostFoundAtOnce = 1024;
  static constexpr uint64_t kSmallBlock = uint64_t{16} << 10;

  EncryptedBlocks(const EncryptedBlocks&) = delete;
  EncryptedBlocks& operator=(const EncryptedBlocks&) = delete;

  EncryptionMode mode() const { return cipher_.mode(); }
  // The bytes of the plain file.
  uint64_t size() const { return layout().end.plain; }

  // As ByteSource::ReadAt. Errors, besides: kCorrupt for a block that is not what was expected
  // where it lies, or does not fit the key.
  Status ReadAt(const ByteSource& file, uint64_t offset, std::span<std::byte> plain);
  // Returns the range of the file that has what `plain` is decrypted from, and perhaps a unit more;
  // without what CBC's first unit needs of the one before.
  ByteRange CipherOf(ByteRange plain) const;

 private:
  class CipherReader;
  enum class BlockState : uint8_t { kUnknown, kBeingChecked, kFits };
  struct Place {
    uint64_t offset = 0;  // in the file, of the block's header
    uint64_t plain = 0;   // in the plain file
  };

  // Where the blocks are.
  struct Layout {
    Place even;                 // where the second block would begin, if it is there or not
    std::vector<Place> places;  // of all blocks, unless all but the last are as large as the first
    Place end;                  // of the last block
    size_t count = 0;
  };

  explicit EncryptedBlocks(BlockCipher cipher) : cipher_(std::move(cipher)) {}

  // Guesses from the first header, behind which `second` would begin, and the last one; nothing if
  // they do not fit.
  Result<std::optional<Layout>> GuessLayout(const ByteSource& file, Place second) const;
  // Reads all headers.
  Result<Layout> FindEach(const ByteSource& file, Place second) const;
  // Proves that the blocks before `number` are where the layout has them. Returns false if they are
  // not: then the layout is another one now. Errors: kCorrupt if it cannot be another one either.
  Result<bool> ProveBefore(const ByteSource& file, size_t number);
  // Reads the header and the padding of a block that begins at `place`, and returns where it ends.
  // `number` is for messages.
  Result<Place> EndOf(const ByteSource& file, size_t number, Place place) const;
  // Returns what the header at `offset` of the file says, behind which `left` bytes are left, those
  // of the header included; read(offset, buffer) reads of the file.
  Result<EncryptedBlock> ReadHeader(uint64_t offset, uint64_t left, const CipherBytes& read) const;

  // What follows is for blocks that were found.
  // Returns where a block begins, or, for the number behind the last one, where that ends.
  Place PlaceOf(size_t number) const;
  // Returns the number of the block of a plain byte.
  size_t BlockAt(uint64_t plain) const;
  // As ReadHeader; the block has to be as long as it was found to be.
  Result<EncryptedBlock> HeaderOf(size_t number, const CipherBytes& read) const;
  // Decrypts bytes of a block, from byte `from` of it on.
  Status ReadOfBlock(const ByteSource& file, size_t number, uint64_t from,
                     std::span<std::byte> plain, CipherReader& reader);
  // Checks the block unless that was done; waits for who is doing it. Where large blocks are
  // checked one after the other, as for headers in each of them, does some on several threads.
  Status Check(const ByteSource& file, size_t number);
  // Returns how many blocks from this one on the caller is to check; 0 where it was.
  size_t BeginChecks(size_t number);
  Status CheckNow(const ByteSource& file, size_t number) const;
  bool IsUnknown(size_t number) const;
  // Says of which block `status`, if it is kCorrupt, speaks, or that the file has changed.
  Status InBlock(const ByteSource& file, size_t number, uint64_t offset,
                 const Status& status) const;

  static constexpr size_t kCheckedTogether = 4;

  const Layout& layout() const { return *layout_.load(std::memory_order_acquire); }

  const BlockCipher cipher_;
  // The first layout, and the one that proved to be right if that was a wrong guess; both have as
  // many blocks and plain bytes.
  Layout first_layout_;
  std::optional<Layout> other_layout_;
  std::atomic<const Layout*> layout_ = &first_layout_;
  // So many blocks are known to be where the layout has them, and where they end.
  std::atomic<size_t> proven_ = 0;
  std::mutex proof_mutex_;    // held while more are proven
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
    return blocks_->mode() == EncryptionMode::kAesGcm ? Decryption::kProven : Decryption::kUnproven;
  }
  Status ReadAt(uint64_t offset, std::span<std::byte> destination) const override;
  // Does nothing: nobody would drop the pages, which would count as cached before.
  void Prefetch(ByteRange /*range*/) const override {}
  bool IsRemote() const override { return file_->IsRemote(); }
  bool IsCached(ByteRange range) const override;

  const std::shared_ptr<EncryptedBlocks>& blocks() const { return blocks_; }

 private:
  std::unique_ptr<const ByteSource> file_;
  std::shared_ptr<EncryptedBlocks> blocks_;
};

// Returns the mode in which the file is encrypted, if it is. Errors: those of `file`.
Result<std::optional<EncryptionMode>> EncryptionModeOf(const ByteSource& file);

}  // namespace reshard

#endif  // RESHARD_SRC_IO_DECRYPTED_FILE_H_
