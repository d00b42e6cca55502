#include "format/mindspore_checkpoint/checkpoint_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
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

// Up to this distance between headers, a disk reads the bytes in between as fast.
constexpr uint64_t kReadAheadDistance = uint64_t{64} << 10;

// Returns the CRC-32 if `tail`, the last bytes of a file, is a trailer; else no value.
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

// Returns the file's trailer, if there is one.
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

// The end of the file's last Values, in which each begins less than `near` bytes behind the one
// before it.
class CloseHeaders {
 public:
  explicit CloseHeaders(uint64_t near) : near_(near) {}

  // The header at `next` lies `distance` bytes behind the header before, or behind the last read
  // byte.
  void Pass(uint64_t next, uint64_t distance) {
    if (distance >= near_) begin_ = next;
  }

  // The distance of the header at `offset` from the first close one.
  uint64_t SpanTo(uint64_t offset) const { return offset - std::min(begin_, offset); }

 private:
  const uint64_t near_;
  uint64_t begin_ = 0;
};

// The places of headers in another file, for a file that is alike, as files of a stage are. Gives
// no places from the first difference on.
class HeadersOfAnother {
 public:
  // `table` is the other file's, or null.
  explicit HeadersOfAnother(std::shared_ptr<const FileTable> table) : table_(std::move(table)) {}

  // The next Value of the file is parsed.
  void Pass(const ByteRange& message) {
    is_seen_ = true;
    if (table_ == nullptr || array_ == table_->arrays().size()) return;
    const std::span<const ByteRange> values = table_->arrays()[array_].framed;
    if (values[value_] != message) {
      table_ = nullptr;
    } else if (++value_ == values.size()) {
      ++array_;
      value_ = 0;
    }
  }

  // Returns for how many bytes from `offset` on headers are close, up to about `most`. The next
  // Value begins or continues at `offset`.
  uint64_t SpanFrom(uint64_t offset, uint64_t most) {
    if (table_ == nullptr || !is_seen_) return 0;  // it may be any file before
    if (looked_at_ < array_) looked_at_ = array_;
    const std::vector<StoredArray>& arrays = table_->arrays();
    for (; looked_at_ < arrays.size() && close_end_ < offset + most; ++looked_at_) {
      const std::span<const ByteRange> values = arrays[looked_at_].framed;
      if (std::any_of(values.begin(), values.end(),
                      [](const ByteRange& v) { return v.length >= kReadAheadDistance; })) {
        break;
      }
      close_end_ = values.back().end();
    }
    return close_end_ - std::min(close_end_, offset);
  }

  // Calls ask(range) for the next headers that lie far from those before them, once for each.
  template <typename Ask>
  Status ForEachAhead(const Ask& ask) {
    if (table_ == nullptr || !is_seen_) return {};
    const std::vector<StoredArray>& arrays = table_->arrays();
    asked_ = std::max(asked_, array_ + 1);  // that one is read now
    const size_t end = std::min(arrays.size(), array_ + kMostHeadersAhead);
    for (; asked_ < end; ++asked_) {
      const StoredArray& array = arrays[asked_];
      const uint64_t begin = array.framed.front().offset;
      if (begin - arrays[asked_ - 1].framed.front().offset < kReadAheadDistance) continue;
      const uint64_t content = array.content.empty() ? begin : array.content.front().offset;
      const uint64_t header = content - std::min(content, begin);
      RESHARD_RETURN_IF_ERROR(ask({begin, std::clamp<uint64_t>(header, 1, kHeaderPage)}));
    }
    return {};
  }

 private:
  std::shared_ptr<const FileTable> table_;  // null after a difference between the files
  size_t array_ = 0;                        // in the table, the array of the next Values
  size_t value_ = 0;                        // of the array
  bool is_seen_ = false;                    // a Value was at its place in the table
  size_t looked_at_ = 0;                    // arrays before this one are close up to close_end_
  uint64_t close_end_ = 0;
  size_t asked_ = 0;  // the headers of arrays before this one were asked for
};

// Reads ahead while headers lie so close together that a disk reads the bytes in between as fast.
// It reads at most as far ahead as the present stretch of close headers is long, so a few small
// parameters among large ones cost no extra reads. If another file is alike so far, its stretch
// counts.
class HeaderReadAhead {
 public:
  explicit HeaderReadAhead(const FileBytes& file)
      : file_(file), most_(std::clamp(file.bytes_ahead / kFilesAtATime, kLargePage, kMost)) {}

  // The limit if it is known that headers are close.
  uint64_t most() const { return most_; }

  // Before bytes from `offset` on are read. Headers are close for `before` bytes before it, and are
  // known to be for `behind` bytes behind it.
  Status Reach(uint64_t offset, uint64_t before, uint64_t behind) {
    const uint64_t span = std::max(std::min(before, kLargePage), std::min(behind, most_));
    if (span < kLeast) {
      ahead_ = std::max(ahead_, offset);
      return {};
    }
    if (offset + span / 2 < ahead_) return {};
    const uint64_t begin = std::max(offset, ahead_);
    uint64_t end = offset + span;
    // Systems read large pages with less work.
    if (span >= kLargePage / 2) end += kLargePage - 1 - (end - 1) % kLargePage;
    end = std::min(end, file_.size);
    if (end <= begin) return {};
    ahead_ = end;
    return file_.prefetch({begin, end - begin});
  }

 private:
  static constexpr uint64_t kLargePage = uint64_t{2} << 20;
  static constexpr uint64_t kLeast = uint64_t{256} << 10;
  static constexpr uint64_t kMost = 4 * kLargePage;
  // Leaves room for the requests of other files.
  static constexpr uint64_t kFilesAtATime = 4;

  const FileBytes& file_;
  const uint64_t most_;
  uint64_t ahead_ = 0;  // the end of the bytes that were read ahead
};

// Guesses the places of the next headers, and makes a server send them before they are needed. So a
// reader waits for many answers at a time. Lengths of Values repeat, as the layers of a model do.
class HeaderGuess {
 public:
  explicit HeaderGuess(const FileBytes& file) : file_(file) {}

  // A Value of `length` bytes ends at `end`, the begin of the next one.
  void Pass(uint64_t end, uint64_t length) {
    if (!lengths_.empty() && length == Next(0)) {
      credit_ = std::min(credit_ + 1, kMostHeadersAhead);
    }
    if (!asked_.empty() && asked_.front() == end) {
      asked_.pop_front();
    } else {
      GiveUp(0);
    }
    if (lengths_.size() == 2 * kRemembered) {
      lengths_.erase(lengths_.begin(), lengths_.begin() + kRemembered);
    }
    lengths_.push_back(length);
    period_ = Period();
    end_ = end;
  }

  // Before the header at `offset` is read.
  Status Reach(uint64_t offset) {
    if (lengths_.empty() || offset != end_) return {};
    for (size_t i = 0; i < credit_; ++i) {
      offset += Next(i);
      if (offset >= file_.size) break;
      if (i < asked_.size() && asked_[i] == offset) continue;
      GiveUp(i);
      if (i >= credit_) break;
      asked_.push_back(offset);
      RESHARD_RETURN_IF_ERROR(Ask(offset));
    }
    return {};
  }

  // Returns the end of the requested bytes around `offset`; `offset` if it was not requested.
  uint64_t AskedFrom(uint64_t offset) const {
    const auto part = std::find(parts_.begin(), parts_.end(), offset / kPart + 1);
    return part == parts_.end() ? offset : std::min(*part * kPart, file_.size);
  }

 private:
  static constexpr size_t kRemembered = 1024;  // lengths
  static constexpr size_t kCompared = 32;      // more than a layer has in one order by chance
  // A server answers for so much as fast as for a page; the next header may lie in it, too.
  static constexpr uint64_t kPart = uint64_t{64} << 10;

  // Returns the length that the Value number `i` from here on ought to have.
  uint64_t Next(size_t i) const { return lengths_[lengths_.size() - period_ + i % period_]; }

  // Returns the period of the lengths: the distance to where most of the last Values stood before
  // in the same order; to the nearest such place.
  size_t Period() const {
    const size_t last = lengths_.size() - 1;
    size_t period = 1;
    size_t longest = 0;
    for (size_t ago = 1; ago <= std::min(last, kRemembered) && longest < kCompared; ++ago) {
      const size_t most = std::min(kCompared, last - ago + 1);
      size_t same = 0;
      while (same < most && lengths_[last - ago - same] == lengths_[last - same]) ++same;
      if (same <= longest) continue;
      longest = same;
      period = ago;
    }
    return period;
  }

  // Gives up the requests from number `first` on: they were wrong.
  void GiveUp(size_t first) {
    if (first >= asked_.size()) return;
    credit_ -= std::min(credit_, asked_.size() - first);
    asked_.resize(first);
  }

  Status Ask(uint64_t offset) {
    const uint64_t end = std::min(file_.size, offset + kHeaderPage);
    for (uint64_t part = offset / kPart; part * kPart < end; ++part) {
      if (AskedFrom(part * kPart) != part * kPart) continue;
      parts_[next_part_++ % parts_.size()] = part + 1;
      RESHARD_RETURN_IF_ERROR(
          file_.prefetch({part * kPart, std::min(kPart, file_.size - part * kPart)}));
    }
    return {};
  }

  const FileBytes& file_;
  std::vector<uint64_t> lengths_;  // of the last Values
  size_t period_ = 1;
  uint64_t end_ = 0;
  size_t credit_ = kMostHeadersAhead;
  std::deque<uint64_t> asked_;  // the guessed begins of the next Values
  // Numbers of the parts of the file that were asked for last, and 1; 0: none.
  std::array<uint64_t, 4 * kMostHeadersAhead> parts_{};
  size_t next_part_ = 0;
};

// The header bytes that are being parsed, at first the begin of the file. checkpoint_reader.h
// describes its reads.
class HeaderWindow {
 public:
  HeaderWindow(const FileBytes& file, std::vector<std::byte> head,
               std::shared_ptr<const FileTable> like)
      : file_(file),
        near_(file.is_remote ? kRemoteHeaderDistance : kHeaderDistance),
        dense_(near_),
        close_(kReadAheadDistance),
        another_(std::move(like)),
        ahead_(file),
        guess_(file),
        head_(std::move(head)),
        bytes_(head_) {}

  uint64_t offset() const { return offset_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // The Value is parsed.
  void Pass(const ParsedValue& value) {
    const ByteRange& message = value.message;
    dense_.Pass(message.end(), message.length);
    close_.Pass(message.end(), message.length);
    another_.Pass(message);
    const uint64_t content = value.tensors.front().content.offset;
    if (content >= message.offset) longest_ = std::max(longest_, content - message.offset);
    if (file_.is_remote) guess_.Pass(message.end(), message.length);
  }

  // Covers `needed`, which lies in the file, in or behind the message of the Value at hand.
  Status Move(const ByteRange& needed, const ByteRange& message) {
    const uint64_t read_end = offset_ + bytes_.size();
    const uint64_t hop = needed.offset - std::min(needed.offset, read_end);
    dense_.Pass(needed.offset, hop);
    close_.Pass(needed.offset, hop);

    const bool is_within = needed.offset < message.end();
    const uint64_t value = is_within ? message.offset : needed.offset;
    const uint64_t span = needed.offset < offset_ ? 0 : dense_.SpanTo(value);
    if (file_.is_remote && span == 0) RESHARD_RETURN_IF_ERROR(guess_.Reach(needed.offset));
    const uint64_t asked = guess_.AskedFrom(needed.offset);
    const bool is_asked = asked >= needed.end();
    const uint64_t block = span == 0 || is_asked ? 0 : std::clamp(span, near_, kMostHeaderBlock);
    // A header that continues behind the window is read again from its begin: its strings are read
    // last.
    const bool is_whole = needed.offset - value < std::max(block, kHeaderPage);
    uint64_t begin = is_whole ? value : needed.offset;
    // Reads that pass the page cache by want whole pages.
    if (block > 0) begin -= begin % kHeaderPage;
    // As much as the longest header so far, so that one that crosses a page takes no second read.
    const uint64_t header = std::min(longest_, kHeaderPage);
    const uint64_t left = file_.size - begin;
    const uint64_t length = std::min(
        left, std::max({needed.end() - begin, header, block, is_asked ? asked - begin : 0}));
    const uint64_t page_left = kHeaderPage - 1 - (begin + length - 1) % kHeaderPage;
    const uint64_t end = begin + length + std::min(page_left, left - length);
    if (!file_.is_remote) {
      RESHARD_RETURN_IF_ERROR(
          ahead_.Reach(begin, close_.SpanTo(begin), another_.SpanFrom(begin, ahead_.most())));
      RESHARD_RETURN_IF_ERROR(another_.ForEachAhead(file_.prefetch));
    }
    Take(begin, end - begin);
    Status status = file_.read(offset_, bytes_);
    if (status.ok() || block == 0) return status;
    // Unneeded bytes beside the needed ones may be the cause.
    dense_.Pass(needed.offset, near_);
    return Move(needed, message);
  }

 private:
  // Makes room, from the beginning of a page of memory on.
  void Take(uint64_t offset, uint64_t length) {
    offset_ = offset;
    if (room_ < length + kHeaderPage) {
      room_ = length + kHeaderPage;
      buffer_ = std::make_unique_for_overwrite<std::byte[]>(room_);
    }
    const size_t in_page = reinterpret_cast<uintptr_t>(buffer_.get()) % kHeaderPage;
    bytes_ = {buffer_.get() + (kHeaderPage - in_page) % kHeaderPage, length};
  }

  const FileBytes& file_;
  const uint64_t near_;
  CloseHeaders dense_;  // are read in blocks
  CloseHeaders close_;  // are read ahead of
  HeadersOfAnother another_;
  HeaderReadAhead ahead_;
  HeaderGuess guess_;
  uint64_t longest_ = 0;  // header of a Value, up to its content
  uint64_t offset_ = 0;
  std::vector<std::byte> head_;
  std::unique_ptr<std::byte[]> buffer_;
  size_t room_ = 0;             // bytes in buffer_
  std::span<std::byte> bytes_;  // a part of one of these buffers
};

}  // namespace

Result<TableOfFile> ReadMindSporeTable(const FileBytes& file, std::vector<std::byte> head,
                                       const MemoryCheck& memory,
                                       const std::shared_ptr<const FileTable>& like) {
  // Before the Values: its first letter begins a group for protobuf.
  RESHARD_ASSIGN_OR_RETURN(const std::optional<Trailer> trailer, ReadTrailer(file));
  HeaderWindow window(file, std::move(head), like);
  ParameterGrouping grouping(like);
  ValueParser parser(trailer ? trailer->covered.end() : file.size);
  uint64_t values = 0;
  for (;;) {
    const auto event = parser.Advance(window.offset(), window.bytes());
    RESHARD_RETURN_IF_ERROR(InFile(file.path, event.status(),
                                   "; the file is truncated or damaged, or not a MindSpore "
                                   "checkpoint"));
    if (*event == ValueParser::Event::kDone) break;
    if (*event == ValueParser::Event::kValue) {
      window.Pass(parser.value());
      RESHARD_RETURN_IF_ERROR(InFile(file.path, grouping.Add(parser.value())));
      if (++values % kMemoryCheckInterval == 0) {
        RESHARD_RETURN_IF_ERROR(CheckMemory(memory));
      }
    } else {
      RESHARD_RETURN_IF_ERROR(window.Move(parser.needed(), parser.message()));
    }
  }
  RESHARD_RETURN_IF_ERROR(CheckMemory(memory, grouping.BytesToFinish()));
  Result<std::shared_ptr<const FileTable>> table = std::move(grouping).Finish();
  RESHARD_RETURN_IF_ERROR(InFile(file.path, table.status()));
  // A trailer alone is the file of a rank without parameters.
  if ((*table)->arrays().empty() && !(trailer && trailer->covered.length == 0)) {
    return CorruptError(
        fmt::format("{}: no parameter in its {} bytes; expected a MindSpore checkpoint, but this "
                    "may be a strategy "
                    "file",
                    Escape(file.path), file.size));
  }
  TableOfFile read{*std::move(table), std::nullopt, false};
  if (trailer) {
    read.crc = {.value = trailer->crc,
                .covered = trailer->covered,
                .may_lack = ValuesOfMapTensors(*read.table)};
  }
  return read;
}

bool WaitsForHeaders(const FileTable& table) {
  constexpr uint64_t kOfSoMany = 8;
  uint64_t values = 0;
  uint64_t distant = 0;
  for (const StoredArray& array : table.arrays()) {
    values += array.framed.size();
    distant += static_cast<uint64_t>(
        std::count_if(array.framed.begin(), array.framed.end(),
                      [](const ByteRange& v) { return v.length >= kReadAheadDistance; }));
  }
  return kOfSoMany * distant >= values;
}

Result<std::optional<uint64_t>> CoveredByTrailer(const FileBytes& file) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<Trailer> trailer, ReadTrailer(file));
  return trailer ? std::optional(trailer->covered.length) : std::nullopt;
}

}  // namespace reshard
