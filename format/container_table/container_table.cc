#include "format/container_table/container_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "format/container/other_files.h"
#include "format/mindspore_checkpoint/mindspore_container.h"
#include "format/safetensors/safetensors_container.h"
#include "format/torch_zip/torch_zip_container.h"
#include "src/base/status_macros.h"
#include "src/cipher/encrypted_block.h"

namespace reshard {
namespace {

// The first one that a file is like counts: those without a signature come last.
constexpr std::array<const Container*, 3> kContainers = {
    &kTorchZipContainer, &kSafetensorsContainer, &kMindSporeContainer};

// The bytes at the end of a file that may state its CRC.
constexpr uint64_t kTailBytes = 32;

const Container* FirstLike(std::span<const std::byte> head, Likeness least) {
  const auto found = std::find_if(kContainers.begin(), kContainers.end(),
                                  [&](const Container* c) { return c->likeness(head) >= least; });
  return found == kContainers.end() ? nullptr : *found;
}

bool IsJson(std::span<const std::byte> head) {
  if (head.size() < 2 || head[0] != std::byte{'{'}) return false;
  return std::string_view("\"} \t\r\n").find(std::to_integer<char>(head[1])) !=
         std::string_view::npos;
}

// Returns the first bytes of the file. Has its end, too, read: one answer to wait for instead of
// two.
Result<std::vector<std::byte>> ReadHead(const FileBytes& bytes, uint64_t most) {
  if (bytes.is_remote && bytes.size > kHeaderPage) {
    RESHARD_RETURN_IF_ERROR(bytes.prefetch({bytes.size - kTailBytes, kTailBytes}));
  }
  std::vector<std::byte> head(std::min(bytes.size, most));
  if (!head.empty()) RESHARD_RETURN_IF_ERROR(bytes.read(0, head));
  return head;
}

}  // namespace

const Container* ContainerNamed(std::string_view file_name) {
  const auto found = std::find_if(kContainers.begin(), kContainers.end(), [&](const Container* c) {
    return !c->extension.empty() && file_name.ends_with(c->extension);
  });
  return found == kContainers.end() ? nullptr : *found;
}

std::string_view CheckpointExtension(std::string_view file_name) {
  const Container* const container = ContainerNamed(file_name);
  return container == nullptr ? std::string_view() : container->extension;
}

const Container* ContainerCertainlyOf(std::span<const std::byte> head) {
  return FirstLike(head, Likeness::kCertain);
}

Result<const Container*> ContainerOf(std::span<const std::byte> head, uint64_t file_size) {
  if (file_size == 0) {
    return CorruptError(
        "expected a .ckpt or safetensors checkpoint, found an empty file (0 bytes); copy it again");
  }
  if (const std::optional<TargetSpec::EncryptionMode> mode = EncryptionModeOf(head)) {
    return UnsupportedError(fmt::format("the checkpoint is encrypted ({}); give its key (`key`)",
                                        EncryptionModeName(*mode)));
  }
  if (const Container* const certain = ContainerCertainlyOf(head)) return certain;
  const std::string_view other =
      KindOfOtherFile({reinterpret_cast<const char*>(head.data()), head.size()});
  if (other.empty() && IsJson(head)) {
    return CorruptError(
        "expected a .ckpt or safetensors checkpoint, found JSON, perhaps a strategy file");
  }
  if (!other.empty()) {
    return UnsupportedError(
        fmt::format("expected a .ckpt or safetensors checkpoint, found {}", other));
  }
  return FirstLike(head, Likeness::kPossible);
}

const Container& DefaultContainer() { return kMindSporeContainer; }

const Container& ContainerOf(TargetFormat format) {
  return format == TargetFormat::kCkpt ? kMindSporeContainer : kSafetensorsContainer;
}

const Container& WrittenAs(const Container& container) {
  return container.encode == nullptr ? kSafetensorsContainer : container;
}

Result<TableOfFile> ReadTable(const FileBytes& bytes, const MemoryCheck& memory,
                              const std::shared_ptr<const FileTable>& like) {
  RESHARD_ASSIGN_OR_RETURN(std::vector<std::byte> head, ReadHead(bytes, kHeaderPage));
  const Result<const Container*> container = ContainerOf(head, bytes.size);
  RESHARD_RETURN_IF_ERROR(InFile(bytes.path, container.status()));
  return (*container)->read_table(bytes, std::move(head), memory, like);
}

Result<std::optional<uint64_t>> CoveredByCrc(const FileBytes& bytes) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::byte> head, ReadHead(bytes, kSignatureBytes));
  const Result<const Container*> container = ContainerOf(head, bytes.size);
  if (!container.ok()) return std::optional<uint64_t>();
  if ((*container)->covered_by_crc != nullptr) return (*container)->covered_by_crc(bytes);
  RESHARD_ASSIGN_OR_RETURN(const TableOfFile read, ReadTable(bytes, {}, nullptr));
  return CoveredBytes(read.content_crcs);
}

std::optional<uint64_t> CoveredBytes(const std::vector<ContentCrc>& crcs) {
  if (crcs.empty()) return std::nullopt;
  uint64_t bytes = 0;
  for (const ContentCrc& crc : crcs) bytes += crc.covered.length;
  return bytes;
}

}  // namespace reshard
