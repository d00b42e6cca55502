// ValueParser: reads the Values of a checkpoint from small windows of the file (SPEC.md, "Values").
//
// It reads keys, lengths, dims and strings, and skips content and unknown fields by their length,
// so the size of a file does not matter. Its results equal libprotobuf's for the same bytes: any
// order of fields, repeated fields, merged messages, packed dims, unknown fields and groups. There
// are two exceptions. A length may be as large as the file. A Value beyond the limits below is
// refused.
//
// The caller owns the loop and the windows:
//
//   ValueParser parser(end);
//   for (;;) {
//     RESHARD_ASSIGN_OR_RETURN(const ValueParser::Event event, parser.Advance(offset, window));
//     if (event == ValueParser::Event::kDone) break;
//     if (event == ValueParser::Event::kValue) Use(parser.value());
//     if (event == ValueParser::Event::kNeedsBytes) ...  // let a window cover parser.needed()
//   }
//
// Offsets and lengths are bytes of the file. Not thread-safe.
#ifndef RESHARD_FORMAT_MINDSPORE_CHECKPOINT_VALUE_PARSER_H_
#define RESHARD_FORMAT_MINDSPORE_CHECKPOINT_VALUE_PARSER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {

// The trailer of a checkpoint: this, and a CRC-32 as a 10-byte big-endian number.
inline constexpr std::string_view kCrcMark = "crc_num";
inline constexpr size_t kCrcTrailerBytes = 17;

// The longest tag, in bytes.
inline constexpr uint64_t kMaxTagBytes = uint64_t{64} << 10;
// The longest tensor_type, in bytes; the names in use have at most 12.
inline constexpr uint64_t kMaxTypeBytes = 64;
// Keys, values and status.
inline constexpr size_t kMapTensors = 3;

// A TensorProto as it is written. It is not checked yet that dims, type and content fit together.
struct ParsedTensor {
  Shape dims;  // at most kMaxDims; negative ones are possible
  std::string type;
  ByteRange content;
};

struct ParsedValue {
  ByteRange message;  // key and length included
  std::string tag;
  bool is_map_tensor = false;
  std::vector<ParsedTensor> tensors;  // one, or kMapTensors when is_map_tensor
};

class ValueParser {
 public:
  enum class Event {
    kNeedsBytes,  // the window does not cover needed()
    kValue,       // value() is the next one of the file
    kDone,        // the file's Values are over
  };

  // The Values take the file's first `end` bytes.
  explicit ValueParser(uint64_t end);

  // Parses on in `window`, the file's bytes from `offset` on, until there is something to tell.
  // Errors: kCorrupt, with offsets but without the file's name; the parser is of no use after one.
  Result<Event> Advance(uint64_t offset, std::span<const std::byte> window);

  // After kNeedsBytes: the range that the next window has to cover. It has at most kMaxTagBytes,
  // only bytes of headers. The window may cover more.
  const ByteRange& needed() const { return needed_; }
  // The message of the Value at hand, or of the last one; key and length included.
  const ByteRange& message() const { return value_.message; }
  // After kValue, until the next Advance.
  const ParsedValue& value() const { return value_; }

 private:
  enum class Message : uint8_t { kCheckpoint, kValue, kTensor, kMapTensor, kPackedDims };
  struct Frame {
    Message message;
    uint64_t end;
  };
  // The known fields of a TensorProto before its Value ends. A name's last string counts, so
  // strings are read at the end.
  struct TensorFields {
    Shape dims;              // the first kMaxDims dims
    uint64_t dim_count = 0;  // the number of all dims
    std::optional<ByteRange> type;
    std::optional<ByteRange> content;
  };
  struct Key {
    uint32_t field;
    uint32_t wire_type;
  };

  // Parses the next Value if it is written as MindSpore writes tensors, and its header lies in the
  // window. Otherwise returns false without a change, and the Value is parsed field by field.
  bool ParseUsualValue();

  // These return false when they cannot go on: either needed_ or error_ says why.
  bool ParseField();
  bool FinishValue();
  bool CheckTensors();
  bool ReadKey(uint64_t* at, Key* key);
  bool ReadLength(uint64_t* at, uint64_t* length);
  bool ReadVarint(size_t max_bytes, uint64_t* at, uint64_t* number);
  bool ReadString(const ByteRange& range, std::string* out);
  bool CheckLeft(uint64_t at, uint64_t length);
  bool Fail(const std::string& what);

  void ParseBlock(uint32_t field, uint64_t begin, uint64_t length);
  void Enter(Message message, uint64_t begin, uint64_t end);
  void EnterOneof(Message message, uint64_t begin, uint64_t end);
  void StartTensor();
  void AddDim(uint64_t varint);
  const Frame& frame() const { return frames_[frame_count_ - 1]; }
  // The window's bytes from `at` on.
  std::span<const std::byte> BytesAt(uint64_t at) const;

  // The deepest nesting of the schema: Checkpoint, Value, MapTensorProto, TensorProto, packed dims.
  std::array<Frame, 5> frames_;
  size_t frame_count_ = 1;
  std::vector<uint32_t> groups_;  // fields of the unknown groups that are open in frame()
  uint64_t position_ = 0;         // everything before it is parsed

  // The Value at hand. Of a MapTensorProto's TensorProtos only the first kMapTensors and the last
  // one are kept, so that a hostile one costs no memory.
  std::optional<ByteRange> tag_;
  std::optional<Message> kind_;  // its oneof: kTensor or kMapTensor
  std::vector<TensorFields> tensors_;
  uint64_t tensor_count_ = 0;
  bool finishing_ = false;   // its message is over; its strings are being read
  size_t strings_read_ = 0;  // first the tag, then the types
  ParsedValue value_;

  uint64_t window_offset_ = 0;
  std::span<const std::byte> window_;
  ByteRange needed_;
  Status error_;
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDSPORE_CHECKPOINT_VALUE_PARSER_H_
