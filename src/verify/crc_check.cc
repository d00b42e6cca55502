#include "src/verify/crc_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "format/container/file_table.h"
#include "reshard/byte_range.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/digest/crc32.h"
#include "src/source/array_crc.h"

namespace reshard {
namespace {

// The CRC of a file's bytes, fed in order, without some ranges.
class CrcWithout {
 public:
  // `left_out` are disjoint and ascending; the first byte lies at `offset`.
  CrcWithout(std::span<const ByteRange> left_out, uint64_t offset)
      : left_out_(left_out), offset_(offset) {}

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
  std::span<const ByteRange> left_out_;  // the ranges that do not lie before offset_
  uint64_t offset_;                      // of the next byte
  Crc32 crc_;
};

Status CheckArrayCrcs(SourceFiles& files, const IndexedFile& file,
                      const std::function<void(uint64_t)>& progress, const std::stop_token& stop) {
  const uint64_t stated = file.crc()->value;
  RESHARD_ASSIGN_OR_RETURN(const ArrayCrc crc,
                           CrcOfArrays(files, file.file(), file.table(), progress, stop));
  if (stated == crc.mindspore || stated == crc.plain) return {};
  return CorruptError(
      fmt::format("{}: its metadata crc_num states CRC-32 {}, its tensors have {}; the file is "
                  "damaged: take another copy",
                  Escape(files.path(file.file())), stated, crc.mindspore));
}

// The parameters whose contents lie in `range`, for messages.
std::string NamesIn(const IndexedFile& file, ByteRange range) {
  FirstFew names;
  for (const StoredArray& array : file.arrays()) {
    const bool inside = std::any_of(
        array.content.begin(), array.content.end(),
        [range](const ByteRange& content) { return Overlap(content, range).length > 0; });
    if (inside) names.Add(Quote(array.name));
  }
  return names.count() == 0 ? "no parameter" : names.Joined();
}

Status CheckContents(SourceFiles& files, const IndexedFile& file,
                     const std::function<void(uint64_t)>& progress, const std::stop_token& stop) {
  for (const ContentCrc& stated : file.content_crcs()) {
    Crc32 crc;
    RESHARD_RETURN_IF_ERROR(ReadInSteps(
        files, file.file(), stated.covered,
        [&crc](std::span<const std::byte> bytes) { crc.Update(bytes); }, progress, stop));
    if (crc.value() == stated.value) continue;
    return CorruptError(fmt::format(
        "{}: the directory states CRC-32 {:08x} for the {} bytes at {} ({}), they have {:08x}; the "
        "file is damaged: take another copy",
        Escape(files.path(file.file())), stated.value, stated.covered.length, stated.covered.offset,
        NamesIn(file, stated.covered), crc.value()));
  }
  return {};
}

Status CheckBytes(SourceFiles& files, FileId file, const StatedCrc& stated,
                  const std::function<void(uint64_t)>& progress, const std::stop_token& stop) {
  const bool may_lack = !stated.may_lack.empty();
  Crc32 crc;
  CrcWithout crc_without(stated.may_lack, stated.covered.offset);
  const auto add = [&](std::span<const std::byte> bytes) {
    crc.Update(bytes);
    if (may_lack) crc_without.Update(bytes);
  };
  RESHARD_RETURN_IF_ERROR(ReadInSteps(files, file, stated.covered, add, progress, stop));
  if (crc.value() == stated.value) return {};
  if (may_lack && crc_without.value() == stated.value) return {};
  return CorruptError(
      fmt::format("{}: the trailer states CRC-32 {:08x}, the {} bytes before it have {:08x}; the "
                  "file is damaged: take another copy",
                  Escape(files.path(file)), stated.value, stated.covered.length, crc.value()));
}

}  // namespace

Status CheckCrc(SourceFiles& files, const IndexedFile& file,
                const std::function<void(uint64_t)>& progress, const std::stop_token& stop) {
  RESHARD_RETURN_IF_ERROR(CheckContents(files, file, progress, stop));
  if (!file.crc()) return {};
  if (file.crc()->of == StatedCrc::Of::kArrays) return CheckArrayCrcs(files, file, progress, stop);
  return CheckBytes(files, file.file(), *file.crc(), progress, stop);
}

}  // namespace reshard
