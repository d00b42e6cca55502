#include "format/container/container.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "format/container/other_files.h"
#include "src/base/quote.h"

namespace reshard {
namespace {

// As the library has it.
constexpr uint64_t kMostSafetensorsHeader = 100'000'000;
constexpr uint64_t kLengthBytes = 8;

struct EncryptionMode {
  uint32_t magic;
  std::string_view name;
};
constexpr std::array<EncryptionMode, 3> kEncryptionModes = {{
    {0x7F3A5ED8, "AES-GCM"},
    {0x7F3A5ED9, "AES-CBC"},
    {0x7F3A5EDA, "SM4-CBC"},
}};

uint64_t LittleEndian(std::span<const std::byte> bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    number = number << 8 | std::to_integer<uint64_t>(bytes[i]);
  }
  return number;
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
  if (head.size() < kSignatureBytes) return false;
  // What JSON begins with, and a byte order mark, which it must not.
  constexpr std::string_view kBegin = "{[ \t\r\n\xEF";
  return LittleEndian(head.first(kLengthBytes)) <= kMostSafetensorsHeader &&
         kBegin.find(std::to_integer<char>(head[kLengthBytes])) != std::string_view::npos;
}

Result<Container> ContainerOf(std::span<const std::byte> head, uint64_t file_size) {
  if (file_size == 0) {
    return CorruptError("the file is empty (0 bytes); expected a MindSpore checkpoint");
  }
  if (head.size() >= sizeof(uint32_t)) {
    const uint64_t magic = LittleEndian(head.first(sizeof(uint32_t)));
    for (const EncryptionMode& mode : kEncryptionModes) {
      if (magic != mode.magic) continue;
      return UnsupportedError(fmt::format(
          "the checkpoint is encrypted ({}); load it in MindSpore with its key and save "
          "it without one",
          mode.name));
    }
  }
  if (IsSafetensors(head)) return Container::kSafetensors;
  if (IsJson(head)) {
    return CorruptError(
        "this is JSON text, perhaps a strategy file; expected a MindSpore checkpoint");
  }
  const std::string_view other =
      KindOfOtherFile({reinterpret_cast<const char*>(head.data()), head.size()});
  if (!other.empty()) {
    return UnsupportedError(
        fmt::format("expected a MindSpore checkpoint (.ckpt), found {}", other));
  }
  return Container::kMindSpore;
}

}  // namespace reshard
