// An encrypted file, made as the bytes say and then damaged: what is read of it against the plain
// bytes that it was made of.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/cipher/encrypted_block.h"
#include "src/io/source_files.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/encrypted_bytes.h"
#include "tests/support/memory_file.h"

namespace reshard {
namespace {

constexpr std::string_view kModeNames[] = {"AES-GCM", "AES-CBC", "SM4-CBC"};
constexpr std::string_view kFuzzKey = "0123456789abcdef";
constexpr size_t kDamageBytes = 3;

// Takes the first byte; 0 where there is none.
uint8_t TakeByte(std::string_view& bytes) {
  if (bytes.empty()) return 0;
  const auto byte = static_cast<uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  return byte;
}

// Changes a byte, or cuts the file off at it.
void Damage(std::string_view& bytes, std::string& file) {
  const size_t low = TakeByte(bytes);
  const size_t offset = TakeByte(bytes) * size_t{256} + low;
  const uint8_t change = TakeByte(bytes);
  if (offset >= file.size()) return;
  if (change == 0) {
    file.resize(offset);
  } else {
    file[offset] = static_cast<char>(static_cast<uint8_t>(file[offset]) ^ change);
  }
}

}  // namespace

std::string FuzzEncryptedBlocks(std::string_view bytes) {
  const size_t mode = TakeByte(bytes) % 3;
  const size_t block_bytes = TakeByte(bytes) + size_t{1};
  const size_t damages = TakeByte(bytes) % 8;
  std::string_view damage = bytes.substr(0, kDamageBytes * damages);
  const std::string_view plain = bytes.substr(damage.size());
  const std::string intact = Encrypted(kModeNames[mode], kFuzzKey, plain, block_bytes);
  std::string file_bytes = intact;
  while (!damage.empty()) Damage(damage, file_bytes);

  static MemoryFile file;
  file.Set(file_bytes);
  SourceFiles files({.max_open = 1, .key = KeyOf(kFuzzKey)});
  const FileId id = files.Add(file.path());
  const Result<uint64_t> size = files.Size(id);
  std::string found;
  Status status = size.status();
  if (size.ok()) {
    if (*size > file_bytes.size()) return "more plain bytes than the file has";
    found.resize(*size);
    status = files.Read(id, 0, std::as_writable_bytes(std::span(found)));
  }
  if (!status.ok()) {
    return file_bytes == intact ? "refused: " + status.message() : RefusalFault(status);
  }
  const auto read_as = EncryptionModeOf(std::as_bytes(std::span(file_bytes)));
  if (!read_as) return found == file_bytes ? "" : "other bytes of a plain file";
  if (file_bytes == intact && found != plain) return "other bytes";
  // Blocks may be cut off, but nothing else of what has tags may be changed.
  const bool is_part =
      plain.starts_with(found) && (found.size() == plain.size() || found.size() % block_bytes == 0);
  if (mode == 0 && read_as == TargetSpec::EncryptionMode::kAesGcm && !is_part)
    return "damage unnoticed";
  // Any range is decrypted alike.
  const size_t middle = found.size() / 2;
  std::string half(found.size() - middle, '\0');
  status = files.Read(id, middle, std::as_writable_bytes(std::span(half)));
  if (!status.ok() || half != found.substr(middle)) return "other bytes in the second half";
  return "";
}

}  // namespace reshard
