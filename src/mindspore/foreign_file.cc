#include "src/mindspore/foreign_file.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "format/container/other_files.h"
#include "format/container_table/container_table.h"
#include "src/base/quote.h"
#include "src/cipher/encrypted_block.h"

namespace reshard {
namespace {

using google::protobuf::io::CodedInputStream;

// Keys (number << 3 | wire type) of a checkpoint and of a group_info file. Both begin with a list
// of messages that have a name and another message.
constexpr uint32_t kItem = 0x0a;           // Checkpoint.value, ParallelGroupMap.parallel_group_item
constexpr uint32_t kItemName = 0x0a;       // Value.tag, ParallelGroupItem.group_name
constexpr uint32_t kItemMessage = 0x12;    // Value.tensor, ParallelGroupItem.parallel_group_ranks
constexpr uint32_t kItemMap = 0x1a;        // Value.maptensor
constexpr uint32_t kMessageNumber = 0x08;  // TensorProto.dims, ParallelGroupRanks.dim
constexpr uint32_t kTensorType = 0x12;     // TensorProto.tensor_type
constexpr uint32_t kTensorContent = 0x1a;  // TensorProto.tensor_content

// Skips the bytes of a length-delimited field, or fails if the head ends first.
bool SkipBytes(CodedInputStream& input) {
  uint64_t length = 0;
  if (!input.ReadVarint64(&length)) return false;
  return length <= static_cast<uint64_t>(input.BytesUntilLimit()) &&
         input.Skip(static_cast<int>(length));
}

std::string_view KindOfProtobuf(std::string_view head) {
  const auto size = static_cast<int>(head.size());
  CodedInputStream input(reinterpret_cast<const uint8_t*>(head.data()), size);
  input.PushLimit(size);
  uint64_t length = 0;
  if (input.ReadTag() != kItem || !input.ReadVarint64(&length)) return {};
  if (input.ReadTag() != kItemName || !SkipBytes(input)) return {};
  const uint32_t message = input.ReadTag();
  if (message == kItemMap) return DefaultContainer().kind;
  if (message != kItemMessage || !input.ReadVarint64(&length)) return {};
  // A tensor says its type or its content after its dims, which a list of ranks never does.
  const auto end = static_cast<uint64_t>(input.CurrentPosition()) + length;
  uint32_t key = 0;
  while (static_cast<uint64_t>(input.CurrentPosition()) < end) {
    key = input.ReadTag();
    if (key != kMessageNumber) break;
    uint64_t number = 0;
    if (!input.ReadVarint64(&number)) return {};
    key = 0;
  }
  if (key == kTensorType || key == kTensorContent) return DefaultContainer().kind;
  return static_cast<uint64_t>(input.CurrentPosition()) == end ? kGroupInfoKind
                                                               : std::string_view();
}

}  // namespace

std::string_view KindOfForeignFile(std::string_view head) {
  head = head.substr(0, kForeignHeadBytes);
  if (head.empty()) return "an empty file";
  const auto bytes = std::as_bytes(std::span(head));
  if (EncryptionModeOf(bytes)) return "an encrypted MindSpore checkpoint (weights)";
  if (const Container* const container = ContainerCertainlyOf(bytes)) return container->kind;
  const std::string_view other = KindOfOtherFile(head);
  return other.empty() ? KindOfProtobuf(head) : other;
}

Status ForeignFileError(const std::string& path, std::string_view head) {
  const std::string_view kind = KindOfForeignFile(head);
  if (kind.empty()) return {};
  return CorruptError(
      fmt::format("{}: expected a strategy file, found {}; give the strategy that the training run "
                  "saved beside "
                  "its checkpoints",
                  Escape(path), kind));
}

}  // namespace reshard
