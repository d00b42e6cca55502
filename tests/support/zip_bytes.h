// ZipBytes: zips as torch.save makes them, and with deliberate faults.
#ifndef RESHARD_TESTS_SUPPORT_ZIP_BYTES_H_
#define RESHARD_TESTS_SUPPORT_ZIP_BYTES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reshard {

struct ZipEntry {
  std::string name;
  std::string content = {};
  // Other than the content says, for faults.
  std::optional<uint32_t> crc = {};
  std::optional<uint64_t> size = {};    // in the directory
  std::optional<uint64_t> header = {};  // the offset in the directory
  uint16_t method = 0;
  uint16_t flags = 0x0808;       // torch's: sizes stand behind the content
  std::string local_name = {};   // empty: `name`
  bool has_zip64 = false;        // sizes in an extra field of both headers
  uint16_t directory_extra = 0;  // bytes of an unknown extra field
};

struct ZipForm {
  bool has_zip64 = true;               // the ZIP64 record and locator
  bool is_large = false;               // the old record has no numbers
  std::optional<uint64_t> count = {};  // of the directory, in the end records
  std::optional<uint64_t> bytes = {};
  std::optional<uint64_t> offset = {};
  std::string before_record = {};  // between the directory and the end records
};

// The CRC-32 of zlib, bit by bit.
uint32_t NaiveCrc32(std::string_view bytes);

// A zip of these members, in this order, with contents at multiples of 64 bytes.
std::string ZipOf(const std::vector<ZipEntry>& entries, const ZipForm& form = {});

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_ZIP_BYTES_H_
