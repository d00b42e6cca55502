#include "src/verify/crc_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "format/mindspore_checkpoint/checkpoint_envelope.h"
#include "reshard/byte_range.h"
#include "reshard/stored_array.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/digest/crc32.h"
#include "src/io/in_steps.h"

namespace reshard {
namespace {

// The Values of MapTensors, in file order.
std::vector<ByteRange> MapTensorValues(const IndexedFile& index) {
  std::vector<ByteRange> values;
  for (const StoredArray& parameter : index.parameters()) {
    if (parameter.kind != ArrayKind::kMapTensor) continue;
    values.insert(values.end(), parameter.framed.begin(), parameter.framed.end());
  }
  return values;
}

// The CRC of a file without some ranges of it, fed with the file's bytes in order.
class CrcWithout {
 public:
  // `left_out` are disjoint and ascending.
  explicit CrcWithout(std::span<const ByteRange> left_out) : left_out_(left_out) {}

  // Makes no objects: called under the fault guard.
  void Update(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      while (!left_out_.empty() && left_out_.front().end() <= offset_) {
        left_out_ = left_out_.subspan(1);
      }
      const bool out = !left_out_.empty() && left_out_.front().offset <= offset_;
      uint64_t length = bytes.size();
      if (!left_out_.empty()) {
        const ByteRange& next = left_out_.front();
        length = std::min(length, (out ? next.end() : next.offset) - offset_);
      }
      if (!out) crc_.Update(bytes.first(length));
      bytes = bytes.subspan(length);
      offset_ += length;
    }
  }

  uint32_t value() const { return crc_.value(); }

 private:
  std::span<const ByteRange> left_out_;  // those that are not behind offset_ yet
  uint64_t offset_ = 0;                  // of the next byte
  Crc32 crc_;
};

}  // namespace

Status CheckCrc(SourceFiles& files, const IndexedFile& index,
                const std::function<void(uint64_t)>& progress, const std::stop_token& stop) {
  const uint64_t end = index.file_size() - kCrcTrailerBytes;
  const std::vector<ByteRange> map_tensors = MapTensorValues(index);
  Crc32 crc;
  CrcWithout crc_without_map_tensors(map_tensors);
  const auto add = [&](ByteRange part) -> Status {
    RESHARD_ASSIGN_OR_RETURN(const Window window,
                             files.Open(index.file(), part.offset, part.length));
    return window.Read([&](const std::byte* data) {
      crc.Update({data, part.length});
      if (!map_tensors.empty()) crc_without_map_tensors.Update({data, part.length});
    });
  };
  RESHARD_RETURN_IF_ERROR(InSteps({0, end}, kWindowBytes, stop, progress, add));
  const uint64_t expected = *index.crc();
  if (crc.value() == expected) return {};
  if (!map_tensors.empty() && crc_without_map_tensors.value() == expected) return {};
  return CorruptError(fmt::format(
      "{}: the trailer states CRC-32 {:08x}, the {} bytes before it have {:08x}; the file is "
      "damaged: take another copy of it",
      Escape(files.path(index.file())), expected, end, crc.value()));
}

}  // namespace reshard
