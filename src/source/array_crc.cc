#include "src/source/array_crc.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/tensor.h"
#include "src/base/status_macros.h"
#include "src/digest/crc32.h"
#include "src/io/shared_work.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// Returns the number of zero bytes that MindSpore uses for `value`, the little-endian integer in an
// array without dimensions; no value if it is negative.
std::optional<uint64_t> CountOf(std::span<const std::byte> value, bool is_signed) {
  uint64_t count = 0;
  for (size_t i = value.size(); i-- > 0;) count = count << 8 | std::to_integer<uint64_t>(value[i]);
  const uint64_t sign = uint64_t{1} << (8 * value.size() - 1);
  if (is_signed && (count & sign) != 0) return std::nullopt;
  return count;
}

bool IsSigned(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kInt16 || dtype == DType::kInt32 ||
         dtype == DType::kInt64;
}

std::span<const std::byte> NameBytes(std::string_view name) {
  return std::as_bytes(std::span(name.data(), name.size()));
}

}  // namespace

Result<ArrayCrc> CrcOfArrays(const FileTable& table, const ReadContent& read) {
  Crc32 mindspore;
  Crc32 plain;
  for (const uint32_t number : table.by_name()) {
    const StoredArray& array = table.arrays()[number];
    mindspore.Update(NameBytes(array.name));
    plain.Update(NameBytes(array.name));
    const bool is_number =
        array.shape.empty() && IsInteger(array.dtype) && array.bytes == ItemBytes(array.dtype);
    std::vector<std::byte> number_bytes;  // for an array without dimensions
    for (const ByteRange& content : array.content) {
      RESHARD_RETURN_IF_ERROR(read(content, [&](std::span<const std::byte> bytes) {
        plain.Update(bytes);
        if (is_number) {
          number_bytes.insert(number_bytes.end(), bytes.begin(), bytes.end());
        } else {
          mindspore.Update(bytes);
        }
      }));
    }
    if (!is_number) continue;
    if (const auto zeros = CountOf(number_bytes, IsSigned(array.dtype))) {
      mindspore.UpdateZeros(*zeros);
    } else {
      mindspore.Update(number_bytes);
    }
  }
  return ArrayCrc{mindspore.value(), plain.value()};
}

Status ReadInSteps(SourceFiles& files, FileId file, ByteRange range,
                   const std::function<void(std::span<const std::byte>)>& take,
                   const std::function<void(uint64_t)>& progress, const std::stop_token& stop) {
  return InSteps(range, kWindowBytes, stop, progress, [&](ByteRange part) -> Status {
    RESHARD_ASSIGN_OR_RETURN(const Window window, files.Open(file, part.offset, part.length));
    return window.Read([&](const std::byte* data) { take({data, part.length}); });
  });
}

Result<ArrayCrc> CrcOfArrays(SourceFiles& files, FileId file, const FileTable& table,
                             const std::function<void(uint64_t)>& progress,
                             const std::stop_token& stop) {
  return CrcOfArrays(table, [&](ByteRange range, const auto& take) {
    return ReadInSteps(files, file, range, take, progress, stop);
  });
}

}  // namespace reshard
