#include "format/mindspore_checkpoint/checkpoint_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "format/mindspore_checkpoint/parameter_grouping.h"
#include "format/mindspore_checkpoint/value_parser.h"
#include "reshard/tensor.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

// The trailer: this, and a 10-byte big-endian number.
constexpr std::string_view kCrcMark = "crc_num";
constexpr size_t kCrcTrailerBytes = 17;

// Returns the CRC-32 of the trailer when `tail`, the last bytes of a file, is one, or nothing.
Result<std::optional<uint64_t>> ParseCrcTrailer(std::span<const std::byte, kCrcTrailerBytes> tail) {
  if (!std::equal(kCrcMark.begin(), kCrcMark.end(), tail.begin(),
                  [](char c, std::byte b) { return std::byte{static_cast<uint8_t>(c)} == b; })) {
    return std::optional<uint64_t>();
  }
  const auto number = tail.subspan(kCrcMark.size());
  const auto crc = number.last(sizeof(uint32_t));
  if (std::any_of(number.begin(), crc.begin(), [](std::byte b) { return b != std::byte{0}; })) {
    return CorruptError("the number in the CRC trailer exceeds 32 bits, so it is no CRC-32");
  }
  uint64_t value = 0;
  for (const std::byte b : crc) value = value << 8 | std::to_integer<uint64_t>(b);
  return std::optional<uint64_t>(value);
}

// The number that a trailer states, and the bytes before it.
struct Trailer {
  uint64_t crc = 0;
  ByteRange covered;
};

// Returns the file's trailer, where there is one.
Result<std::optional<Trailer>> ReadTrailer(const FileBytes& file) {
  if (file.size < kCrcTrailerBytes) return std::optional<Trailer>();
  const uint64_t begin = file.size - kCrcTrailerBytes;
  std::array<std::byte, kCrcTrailerBytes> tail;
  RESHARD_RETURN_IF_ERROR(file.read(begin, tail));
  const auto value = ParseCrcTrailer(tail);
  RESHARD_RETURN_IF_ERROR(InFile(file.path, value.status()));
  if (!*value) return std::optional<Trailer>();
  return std::optional<Trailer>({**value, {0, begin}});
}

// MindSpore leaves the Values of MapTensors out of the number that it writes.
std::vector<ByteRange> ValuesOfMapTensors(const FileTable& table) {
  std::vector<ByteRange> values;
  for (const StoredArray& array : table.arrays()) {
    if (array.kind != ArrayKind::kMapTensor) continue;
    values.insert(values.end(), array.framed.begin(), array.framed.end());
  }
  return values;
}

// Returns how many bytes the vector takes anew when it has to grow before the memory is checked
// again.
uint64_t BeforeNextCheck(const std::vector<StoredArray>& arrays) {
  const size_t room = arrays.capacity() - arrays.size();
  return room > kMemoryCheckInterval ? 0 : arrays.size() * sizeof(StoredArray);
}

// Reads ahead where headers lie so close together that a disk reads what is between them as fast:
// never more than the stretch of close headers spans already, so that a few small parameters among
// large ones cost nothing.
class HeaderReadAhead {
 public:
  explicit HeaderReadAhead(const FileBytes& file) : file_(file) {}

  // Before the header at `offset` is read, which lies behind the one before it.
  Status Reach(uint64_t offset) {
    if (offset - last_ >= kClose) begin_ = ahead_ = offset;
    last_ = offset;
    const uint64_t span = std::min(offset - begin_, kMost);
    if (span < kLeast || offset + span / 2 < ahead_) return {};
    const uint64_t begin = std::max(offset, ahead_);
    ahead_ = offset + span;
    return file_.prefetch({begin, ahead_ - begin});
  }

 private:
  static constexpr uint64_t kClose = uint64_t{64} << 10;
  static constexpr uint64_t kLeast = uint64_t{256} << 10;
  static constexpr uint64_t kMost = uint64_t{4} << 20;

  const FileBytes& file_;
  uint64_t last_ = 0;   // header
  uint64_t begin_ = 0;  // of the stretch of close headers
  uint64_t ahead_ = 0;  // the end of what is read ahead
};

// The header bytes that are being parsed; the file's first ones to begin with.
class HeaderWindow {
 public:
  HeaderWindow(const FileBytes& file, std::vector<std::byte> head)
      : file_(file), ahead_(file), bytes_(std::move(head)) {}

  uint64_t offset() const { return offset_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // Covers `needed`, which lies in the file, and the rest of its last page.
  Status Move(const ByteRange& needed) {
    RESHARD_RETURN_IF_ERROR(ahead_.Reach(needed.offset));
    const uint64_t last = needed.end() - 1;
    const uint64_t page_left = kHeaderPage - last % kHeaderPage;
    const uint64_t end = last + std::min(page_left, file_.size - last);
    offset_ = needed.offset;
    bytes_.resize(end - offset_);
    return file_.read(offset_, bytes_);
  }

 private:
  const FileBytes& file_;
  HeaderReadAhead ahead_;
  uint64_t offset_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace

Result<TableOfFile> ReadMindSporeTable(const FileBytes& file, std::vector<std::byte> head,
                                       const MemoryCheck& memory) {
  // Before the Values: its first letter begins a group for protobuf.
  RESHARD_ASSIGN_OR_RETURN(const std::optional<Trailer> trailer, ReadTrailer(file));
  HeaderWindow window(file, std::move(head));
  ParameterGrouping grouping;
  ValueParser parser(trailer ? trailer->covered.end() : file.size);
  uint64_t values = 0;
  for (;;) {
    const auto event = parser.Advance(window.offset(), window.bytes());
    RESHARD_RETURN_IF_ERROR(InFile(file.path, event.status(),
                                   "; the file is truncated or damaged, or not a MindSpore "
                                   "checkpoint"));
    if (*event == ValueParser::Event::kDone) break;
    if (*event == ValueParser::Event::kValue) {
      RESHARD_RETURN_IF_ERROR(InFile(file.path, grouping.Add(parser.value())));
      if (++values % kMemoryCheckInterval == 0) {
        RESHARD_RETURN_IF_ERROR(CheckMemory(memory, BeforeNextCheck(grouping.arrays())));
      }
    } else {
      RESHARD_RETURN_IF_ERROR(window.Move(parser.needed()));
    }
  }
  Result<FileTable> table = std::move(grouping).Finish();
  RESHARD_RETURN_IF_ERROR(InFile(file.path, table.status()));
  if (table->arrays().empty()) {
    return CorruptError(
        fmt::format("{}: no parameter in its {} bytes; expected a MindSpore checkpoint, but this "
                    "may be a strategy "
                    "file",
                    Escape(file.path), file.size));
  }
  TableOfFile read{std::move(*table), std::nullopt};
  if (trailer) {
    read.crc = {.value = trailer->crc,
                .covered = trailer->covered,
                .may_lack = ValuesOfMapTensors(read.table)};
  }
  return read;
}

Result<std::optional<ByteRange>> CoveredByTrailer(const FileBytes& file) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<Trailer> trailer, ReadTrailer(file));
  return trailer ? std::optional(trailer->covered) : std::nullopt;
}

}  // namespace reshard
