#include "src/source/indexed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/mindspore_checkpoint/checkpoint_envelope.h"
#include "format/mindspore_checkpoint/parameter_grouping.h"
#include "format/mindspore_checkpoint/value_parser.h"
#include "reshard/byte_range.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

// Windows end at multiples of this, a page of most machines: what is read beyond the bytes that are
// needed lies in a page that holds one of them.
constexpr uint64_t kWindowStep = 4096;

// Returns how many bytes the vector takes anew when it has to grow before the memory is checked
// again.
uint64_t BeforeNextCheck(const std::vector<StoredArray>& parameters) {
  const size_t room = parameters.capacity() - parameters.size();
  return room > kMemoryCheckInterval ? 0 : parameters.size() * sizeof(StoredArray);
}

// Returns `status`, which does not say so, as one about the file at `path`.
Status InFile(const std::string& path, const Status& status, std::string_view hint = {}) {
  if (status.ok()) return status;
  return {status.code(), fmt::format("{}: {}{}", Escape(path), status.message(), hint)};
}

// Reads ahead where headers lie so close together that a disk reads what is between them as fast:
// never more than the stretch of close headers spans already, so that a few small parameters among
// large ones cost nothing.
class HeaderReadAhead {
 public:
  HeaderReadAhead(SourceFiles& files, FileId file) : files_(files), file_(file) {}

  // Before the header at `offset` is read, which lies behind the one before it.
  Status Reach(uint64_t offset) {
    if (offset - last_ >= kClose) begin_ = ahead_ = offset;
    last_ = offset;
    const uint64_t span = std::min(offset - begin_, kMost);
    if (span < kLeast || offset + span / 2 < ahead_) return {};
    const uint64_t begin = std::max(offset, ahead_);
    ahead_ = offset + span;
    return files_.Prefetch(file_, begin, ahead_ - begin);
  }

 private:
  static constexpr uint64_t kClose = uint64_t{64} << 10;
  static constexpr uint64_t kLeast = uint64_t{256} << 10;
  static constexpr uint64_t kMost = uint64_t{4} << 20;

  SourceFiles& files_;
  const FileId file_;
  uint64_t last_ = 0;   // header
  uint64_t begin_ = 0;  // of the stretch of close headers
  uint64_t ahead_ = 0;  // the end of what is read ahead
};

// The header bytes that are being parsed.
class HeaderWindow {
 public:
  HeaderWindow(SourceFiles& files, FileId file, uint64_t file_size)
      : files_(files), file_(file), file_size_(file_size), ahead_(files, file) {}

  uint64_t offset() const { return offset_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // Covers `needed`, which lies in the file, and the rest of its last page.
  Status Move(const ByteRange& needed) {
    RESHARD_RETURN_IF_ERROR(ahead_.Reach(needed.offset));
    const uint64_t last = needed.end() - 1;
    const uint64_t page_left = kWindowStep - last % kWindowStep;
    const uint64_t end = last + std::min(page_left, file_size_ - last);
    offset_ = needed.offset;
    bytes_.resize(end - offset_);
    return files_.Read(file_, offset_, bytes_);
  }

 private:
  SourceFiles& files_;
  const FileId file_;
  const uint64_t file_size_;
  HeaderReadAhead ahead_;
  uint64_t offset_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace

Result<IndexedFile> IndexedFile::Make(SourceFiles& files, FileId file, const MemoryCheck& memory) {
  const std::string& path = files.path(file);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t file_size, files.Size(file));

  HeaderWindow window(files, file, file_size);
  if (file_size > 0) RESHARD_RETURN_IF_ERROR(window.Move({0, 1}));
  const auto head = window.bytes().first(std::min(window.bytes().size(), kSignatureBytes));
  RESHARD_RETURN_IF_ERROR(InFile(path, CheckSignature(head, file_size)));

  std::optional<uint64_t> crc;
  uint64_t values_end = file_size;
  if (file_size >= kCrcTrailerBytes) {
    std::array<std::byte, kCrcTrailerBytes> tail;
    RESHARD_RETURN_IF_ERROR(files.Read(file, file_size - kCrcTrailerBytes, tail));
    const auto trailer = ParseCrcTrailer(tail);
    RESHARD_RETURN_IF_ERROR(InFile(path, trailer.status()));
    crc = *trailer;
    if (crc) values_end -= kCrcTrailerBytes;
  }

  ParameterGrouping grouping;
  ValueParser parser(values_end);
  uint64_t values = 0;
  for (;;) {
    const auto event = parser.Advance(window.offset(), window.bytes());
    RESHARD_RETURN_IF_ERROR(InFile(path, event.status(),
                                   "; the file is truncated or damaged, or not a MindSpore "
                                   "checkpoint"));
    if (*event == ValueParser::Event::kDone) break;
    if (*event == ValueParser::Event::kValue) {
      RESHARD_RETURN_IF_ERROR(InFile(path, grouping.Add(parser.value())));
      if (++values % kMemoryCheckInterval == 0) {
        RESHARD_RETURN_IF_ERROR(CheckMemory(memory, BeforeNextCheck(grouping.parameters())));
      }
    } else {
      RESHARD_RETURN_IF_ERROR(window.Move(parser.needed()));
    }
  }
  RESHARD_RETURN_IF_ERROR(InFile(path, grouping.Finish()));
  if (grouping.parameters().empty()) {
    return CorruptError(
        fmt::format("{}: no parameter in its {} bytes; expected a MindSpore checkpoint, but this "
                    "may be a strategy "
                    "file",
                    Escape(path), file_size));
  }
  IndexedFile index(file, file_size, FileTable(std::move(grouping)));
  index.crc_ = crc;
  return index;
}

IndexedFile::IndexedFile(FileId file, uint64_t file_size, FileTable table)
    : file_(file),
      file_size_(file_size),
      own_(std::make_unique<const FileTable>(std::move(table))),
      table_(own_.get()) {}

std::unique_ptr<const FileTable> IndexedFile::Share(const FileTable* table) {
  table_ = table;
  return std::move(own_);
}

}  // namespace reshard
