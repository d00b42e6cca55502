#include "format/pickle/pickle_cursor.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <limits>

namespace reshard {
namespace {

enum class Operand : uint8_t {
  kUnknown,  // the opcode is not read
  kNothing,
  kNumber,   // of some bytes
  kCounted,  // bytes, after a number of some bytes that counts them
  kLines,    // two, which end with line feeds
};

struct OpcodeEntry {
  Operand operand = Operand::kUnknown;
  uint8_t size = 0;  // of the number
  std::string_view name;
  bool has_place = false;  // whether it may be in some places only
};

// By opcode, for all 256.
constexpr std::array<OpcodeEntry, 256> MakeOpcodes() {
  struct Row {
    PickleOpcode opcode;
    OpcodeEntry entry;
  };
  using enum PickleOpcode;
  constexpr Row kRows[] = {
      {kProto, {Operand::kNumber, 1, "PROTO", true}},
      {kFrame, {Operand::kNumber, 8, "FRAME", true}},
      {kStop, {Operand::kNothing, 0, "STOP", true}},
      {kMark, {Operand::kNothing, 0, "MARK"}},
      {kNone, {Operand::kNothing, 0, "NONE"}},
      {kNewTrue, {Operand::kNothing, 0, "NEWTRUE"}},
      {kNewFalse, {Operand::kNothing, 0, "NEWFALSE"}},
      {kBinInt, {Operand::kNumber, 4, "BININT"}},
      {kBinInt1, {Operand::kNumber, 1, "BININT1"}},
      {kBinInt2, {Operand::kNumber, 2, "BININT2"}},
      {kLong1, {Operand::kCounted, 1, "LONG1"}},
      {kBinFloat, {Operand::kNumber, 8, "BINFLOAT"}},
      {kShortBinUnicode, {Operand::kCounted, 1, "SHORT_BINUNICODE"}},
      {kBinUnicode, {Operand::kCounted, 4, "BINUNICODE"}},
      {kBinUnicode8, {Operand::kCounted, 8, "BINUNICODE8"}},
      {kShortBinBytes, {Operand::kCounted, 1, "SHORT_BINBYTES"}},
      {kBinBytes, {Operand::kCounted, 4, "BINBYTES"}},
      {kBinBytes8, {Operand::kCounted, 8, "BINBYTES8"}},
      {kEmptyTuple, {Operand::kNothing, 0, "EMPTY_TUPLE"}},
      {kTuple1, {Operand::kNothing, 0, "TUPLE1"}},
      {kTuple2, {Operand::kNothing, 0, "TUPLE2"}},
      {kTuple3, {Operand::kNothing, 0, "TUPLE3"}},
      {kTuple, {Operand::kNothing, 0, "TUPLE"}},
      {kEmptyList, {Operand::kNothing, 0, "EMPTY_LIST"}},
      {kAppend, {Operand::kNothing, 0, "APPEND"}},
      {kAppends, {Operand::kNothing, 0, "APPENDS"}},
      {kEmptyDict, {Operand::kNothing, 0, "EMPTY_DICT"}},
      {kSetItem, {Operand::kNothing, 0, "SETITEM"}},
      {kSetItems, {Operand::kNothing, 0, "SETITEMS"}},
      {kGlobal, {Operand::kLines, 0, "GLOBAL"}},
      {kStackGlobal, {Operand::kNothing, 0, "STACK_GLOBAL"}},
      {kReduce, {Operand::kNothing, 0, "REDUCE"}},
      {kNewObj, {Operand::kNothing, 0, "NEWOBJ"}},
      {kBuild, {Operand::kNothing, 0, "BUILD"}},
      {kBinPersId, {Operand::kNothing, 0, "BINPERSID"}},
      {kMemoize, {Operand::kNothing, 0, "MEMOIZE"}},
      {kBinPut, {Operand::kNumber, 1, "BINPUT"}},
      {kLongBinPut, {Operand::kNumber, 4, "LONG_BINPUT"}},
      {kBinGet, {Operand::kNumber, 1, "BINGET"}},
      {kLongBinGet, {Operand::kNumber, 4, "LONG_BINGET"}},
  };
  std::array<OpcodeEntry, 256> entries = {};
  for (const Row& row : kRows) entries[static_cast<uint8_t>(row.opcode)] = row.entry;
  return entries;
}

constexpr std::array<OpcodeEntry, 256> kOpcodes = MakeOpcodes();
constexpr uint64_t kFirstProtocol = 2;
constexpr uint64_t kLastProtocol = 5;

const OpcodeEntry& EntryOf(PickleOpcode opcode) { return kOpcodes[static_cast<uint8_t>(opcode)]; }

}  // namespace

Status PickleError(const PickleStep& step, std::string_view what) {
  return CorruptError(fmt::format("pickle opcode {} at offset {}: {}", EntryOf(step.opcode).name,
                                  step.offset, what));
}

bool PickleCursor::Next(PickleStep& step) {
  step.offset = at_;
  if (at_ == bytes_.size()) {
    status_ = CorruptError(fmt::format("the pickle ends at offset {}, without STOP", at_));
    return false;
  }
  const auto code = static_cast<uint8_t>(bytes_[at_++]);
  step.opcode = static_cast<PickleOpcode>(code);
  const OpcodeEntry& entry = kOpcodes[code];
  if (entry.operand == Operand::kUnknown) {
    status_ = CorruptError(
        fmt::format("pickle opcode 0x{:02x} at offset {}, which pickles of checkpoints do not have",
                    code, step.offset));
    return false;
  }
  if (entry.operand == Operand::kLines) {
    if (!TakeLine(step.global.module, step) || !TakeLine(step.global.name, step)) return false;
  } else if (entry.operand != Operand::kNothing) {
    if (!TakeNumber(entry.size, step)) return false;
    if (entry.operand == Operand::kCounted && !TakeCounted(step.number, step)) return false;
  }
  return (step.offset != 0 && !entry.has_place) || CheckPlace(step);
}

bool PickleCursor::TakeNumber(size_t size, PickleStep& step) {
  if (bytes_.size() - at_ < size) return Fail(step, "the pickle ends inside of its operand");
  step.number = 0;
  for (size_t i = 0; i < size; ++i) {
    step.number |= uint64_t{static_cast<uint8_t>(bytes_[at_ + i])} << (8 * i);
  }
  at_ += size;
  return true;
}

bool PickleCursor::TakeCounted(size_t size, PickleStep& step) {
  if (bytes_.size() - at_ < size || size > std::numeric_limits<uint32_t>::max()) {
    return Fail(step, fmt::format("has {} bytes, but {} are left", size, bytes_.size() - at_));
  }
  step.bytes = bytes_.substr(at_, size);
  at_ += size;
  return true;
}

bool PickleCursor::TakeLine(std::string_view& line, const PickleStep& step) {
  const size_t end = bytes_.find('\n', at_);
  if (end == std::string_view::npos) return Fail(step, "the pickle ends inside of its names");
  line = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  return true;
}

// Checks the place of a step in the pickle.
bool PickleCursor::CheckPlace(const PickleStep& step) {
  const bool is_first = step.offset == 0;
  if (step.opcode == PickleOpcode::kProto) {
    if (!is_first) return Fail(step, "expected it at offset 0 only");
    if (step.number >= kFirstProtocol && step.number <= kLastProtocol) return true;
    return Fail(step, fmt::format("expected a protocol from {} to {}, found {}", kFirstProtocol,
                                  kLastProtocol, step.number));
  }
  if (is_first) return Fail(step, "expected PROTO, with which a pickle begins");
  const size_t left = bytes_.size() - at_;
  if (step.opcode == PickleOpcode::kFrame && step.number > left) {
    return Fail(step, fmt::format("has {} bytes, but {} are left", step.number, left));
  }
  if (step.opcode == PickleOpcode::kStop && left != 0) {
    return Fail(step, fmt::format("{} bytes are behind it", left));
  }
  return true;
}

bool PickleCursor::Fail(const PickleStep& step, std::string_view what) {
  status_ = PickleError(step, what);
  return false;
}

}  // namespace reshard
