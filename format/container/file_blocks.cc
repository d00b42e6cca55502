#include "format/container/file_blocks.h"

#include <algorithm>
#include <utility>

#include "src/base/status_macros.h"

namespace reshard {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{1} << 20;

}  // namespace

FileBlocks::FileBlocks(const FileBytes& file, ByteRange range, const MemoryCheck& memory,
                       std::span<const std::byte> head)
    : file_(file), memory_(memory), place_(range.offset), end_(range.end()) {
  head = head.first(std::min<uint64_t>(head.size(), end_));
  if (head.size() <= place_) return;
  block_ = head.subspan(place_);
  place_ = head.size();
}

Result<std::string_view> FileBlocks::Next() {
  std::span<const std::byte> block = std::exchange(block_, {});
  if (block.empty() && place_ < end_) {
    RESHARD_RETURN_IF_ERROR(CheckMemory(memory_));
    buffer_.resize(std::min(kBlockBytes, end_ - place_));
    RESHARD_RETURN_IF_ERROR(file_.read(place_, buffer_));
    place_ += buffer_.size();
    block = buffer_;
  }
  return std::string_view(reinterpret_cast<const char*>(block.data()), block.size());
}

}  // namespace reshard
