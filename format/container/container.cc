#include "format/container/container.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "format/container/other_files.h"
#include "src/base/quote.h"
#include "src/cipher/encrypted_block.h"

namespace reshard {
namespace {

// As the library has it.
constexpr uint64_t kMostSafetensorsHeader = 100'000'000;
// What no header comes near, and no checkpoint of MindSpore begins with.
constexpr uint64_t kNoSafetensorsHeader = uint64_t{1} << 40;
constexpr uint64_t kLengthBytes = 8;

uint64_t LittleEndian(std::span<const std::byte> bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    number = number << 8 | std::to_integer<uint64_t>(bytes[i]);
  }
  return number;
}

bool BeginsAsSafetensors(std::span<const std::byte> head, uint64_t most) {
  if (head.size() < kSignatureBytes) return false;
  // What JSON begins with, and a byte order mark, which it must not.
  constexpr std::string_view kBegin = "{[ \t\r\n\xEF";
  return LittleEndian(head.first(kLengthBytes)) <= most &&
         kBegin.find(std::to_integer<char>(head[kLengthBytes])) != std::string_view::npos;
}

bool IsJson(std::span<const std::byte> head) {
  if (head.size() < 2 || head[0] != std::byte{'{'}) return false;
  return std::string_view("\"} \t\r\n").find(std::to_integer<char>(head[1])) !=
         std::string_view::npos;
}

}  // namespace

Status InFile(std::string_view path, const Status& status, std::string_view hint) {
  if (status.ok()) return status;
  return {status.code(), fmt::format("{}: {}{}", Escape(path), status.message(), hint)};
}

bool IsSafetensors(std::span<const std::byte> head) {
  return BeginsAsSafetensors(head, kMostSafetensorsHeader);
}

Result<Container> ContainerOf(std::span<const std::byte> head, uint64_t file_size) {
  if (file_size == 0) {
    return CorruptError("the file is empty (0 bytes); expected a MindSpore checkpoint");
  }
  if (const std::optional<EncryptionMode> mode = EncryptionModeOf(head)) {
    return UnsupportedError(fmt::format("the checkpoint is encrypted ({}); give its key (`key`)",
                                        EncryptionModeName(*mode)));
  }
  if (IsSafetensors(head)) return Container::kSafetensors;
  const std::string_view other =
      KindOfOtherFile({reinterpret_cast<const char*>(head.data()), head.size()});
  if (other.empty() && IsJson(head)) {
    return CorruptError(
        "expected a MindSpore checkpoint (.ckpt), found JSON, perhaps a strategy file");
  }
  if (!other.empty()) {
    return UnsupportedError(
        fmt::format("expected a MindSpore checkpoint (.ckpt), found {}", other));
  }
  // Its reader says that the header is too long.
  if (BeginsAsSafetensors(head, kNoSafetensorsHeader)) return Container::kSafetensors;
  return Container::kMindSpore;
}

}  // namespace reshard
