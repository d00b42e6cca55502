#include "src/write/encrypted_part.h"

#include <algorithm>
#include <utility>

#include "src/base/status_macros.h"

namespace reshard {

Status EncryptedPart::Add(std::span<std::byte> bytes, std::vector<EncryptedPiece>& pieces) {
  while (!bytes.empty()) {
    const uint64_t left = kPlainBlockBytes - next_ % kPlainBlockBytes;
    const auto of_block = bytes.first(std::min<uint64_t>(bytes.size(), left));
    RESHARD_RETURN_IF_ERROR(AddOfBlock(of_block, pieces));
    bytes = bytes.subspan(of_block.size());
  }
  return {};
}

Status EncryptedPart::AddOfBlock(std::span<std::byte> bytes, std::vector<EncryptedPiece>& pieces) {
  if (!block_) {
    RESHARD_ASSIGN_OR_RETURN(block_, BlockEncryption::Begin(*encryption_.key, encryption_.mode));
  }
  const uint64_t in_block = next_ % kPlainBlockBytes;
  const uint64_t header = EncryptedBytes(encryption_.mode, next_ - in_block);
  const uint64_t offset = header + BlockHeaderBytes(encryption_.mode) + in_block;
  next_ += bytes.size();
  const bool ends = next_ % kPlainBlockBytes == 0 || next_ == size_;
  const bool is_gcm = encryption_.mode == EncryptionMode::kAesGcm;
  const size_t rest = ends && !is_gcm ? bytes.size() % kCipherUnit : 0;
  const std::span<std::byte> whole = bytes.first(bytes.size() - rest);
  RESHARD_RETURN_IF_ERROR(block_->Update(whole));
  if (!whole.empty()) pieces.push_back({offset, whole, {}});
  if (!ends) return {};
  RESHARD_ASSIGN_OR_RETURN(BlockEncryption::Ends made, block_->Finish(bytes.last(rest)));
  if (!made.tail.empty()) pieces.push_back({offset + whole.size(), {}, std::move(made.tail)});
  pieces.push_back({header, {}, std::move(made.header)});
  block_.reset();
  return {};
}

}  // namespace reshard
