// PickleCursor: the opcodes of a pickle with their operands, one after the other.
//
// Not for use from several threads at once.
#ifndef RESHARD_FORMAT_PICKLE_PICKLE_CURSOR_H_
#define RESHARD_FORMAT_PICKLE_PICKLE_CURSOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "format/pickle/pickle_value.h"
#include "reshard/status.h"

namespace reshard {

// The opcodes that are read.
enum class PickleOpcode : uint8_t {
  kProto = 0x80,
  kFrame = 0x95,
  kStop = '.',
  kMark = '(',
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kBinFloat = 'G',
  kShortBinUnicode = 0x8c,
  kBinUnicode = 'X',
  kBinUnicode8 = 0x8d,
  kShortBinBytes = 'C',
  kBinBytes = 'B',
  kBinBytes8 = 0x8e,
  kEmptyTuple = ')',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kTuple = 't',
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kGlobal = 'c',
  kStackGlobal = 0x93,
  kReduce = 'R',
  kNewObj = 0x81,
  kBuild = 'b',
  kBinPersId = 'Q',
  kMemoize = 0x94,
  kBinPut = 'q',
  kLongBinPut = 'r',
  kBinGet = 'h',
  kLongBinGet = 'j',
};

// An opcode with its operand.
struct PickleStep {
  PickleOpcode opcode = PickleOpcode::kStop;
  uint64_t offset = 0;     // of the opcode
  uint64_t number = 0;     // the operand, if it is a number of a fixed size: little-endian
  std::string_view bytes;  // the operand, if it is counted bytes
  PickleGlobal global;     // the operand of kGlobal
};

// What comes behind an opcode.
struct PickleOperand {
  enum class Form : uint8_t {
    kUnknown,  // the opcode is not read
    kNumber,   // of some bytes, or none
    kCounted,  // bytes, after a number of some bytes that counts them
    kLines,    // two, which end with line feeds
  };

  Form form = Form::kUnknown;
  bool has_place = false;  // whether the opcode may be in some places only
  uint8_t size = 0;        // of the number
  std::string_view name;   // of the opcode

  bool is_plain() const { return form == Form::kNumber && !has_place; }
};

class PickleCursor {
 public:
  explicit PickleCursor(std::string_view bytes) : bytes_(bytes) {}

  // Reads the next step. Returns false if there is none that is valid; status() says why. Checks
  // that kProto comes first, and that kStop is at the end of the bytes.
  bool Next(PickleStep& step) {
    step.offset = at_;
    // One load, and no branches, for nearly all steps.
    if (bytes_.size() - at_ <= sizeof(uint64_t) || at_ == 0) return NextAtEdge(step);
    const auto code = static_cast<uint8_t>(bytes_[at_]);
    const PickleOperand& operand = kOperands[code];
    step.opcode = static_cast<PickleOpcode>(code);
    std::memcpy(&step.number, bytes_.data() + at_ + 1, sizeof(uint64_t));
    step.number &= kMasks[operand.size];
    at_ += size_t{1} + operand.size;
    return operand.is_plain() || TakeRest(step);
  }

  const Status& status() const { return status_; }

 private:
  static const std::array<PickleOperand, 256> kOperands;  // by opcode
  static const std::array<uint64_t, 9> kMasks;            // by the size of a number

  friend Status PickleError(const PickleStep& step, std::string_view what);

  // As Next(), for the first step and those near the end.
  bool NextAtEdge(PickleStep& step);
  // Takes what an operand has beside a number, and checks the place of the step.
  bool TakeRest(PickleStep& step);
  bool TakeCounted(size_t size, PickleStep& step);
  bool TakeLine(std::string_view& line, const PickleStep& step);
  bool CheckPlace(const PickleStep& step);
  bool Fail(const PickleStep& step, std::string_view what);

  std::string_view bytes_;
  size_t at_ = 0;
  Status status_;
};

// Returns the error "pickle opcode NAME at offset N: what".
Status PickleError(const PickleStep& step, std::string_view what);

}  // namespace reshard

#endif  // RESHARD_FORMAT_PICKLE_PICKLE_CURSOR_H_
