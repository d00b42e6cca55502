#include "format/pickle/pickle_cursor.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <limits>

namespace reshard {
namespace {

// By opcode, for all 256.
constexpr std::array<PickleOperand, 256> MakeOperands() {
  struct Row {
    PickleOpcode opcode;
    PickleOperand operand;
  };
  using enum PickleOpcode;
  using enum PickleOperand::Form;
  constexpr Row kRows[] = {
      {kProto, {kNumber, true, 1, "PROTO"}},
      {kFrame, {kNumber, true, 8, "FRAME"}},
      {kStop, {kNumber, true, 0, "STOP"}},
      {kMark, {kNumber, false, 0, "MARK"}},
      {kNone, {kNumber, false, 0, "NONE"}},
      {kNewTrue, {kNumber, false, 0, "NEWTRUE"}},
      {kNewFalse, {kNumber, false, 0, "NEWFALSE"}},
      {kBinInt, {kNumber, false, 4, "BININT"}},
      {kBinInt1, {kNumber, false, 1, "BININT1"}},
      {kBinInt2, {kNumber, false, 2, "BININT2"}},
      {kLong1, {kCounted, false, 1, "LONG1"}},
      {kBinFloat, {kNumber, false, 8, "BINFLOAT"}},
      {kShortBinUnicode, {kCounted, false, 1, "SHORT_BINUNICODE"}},
      {kBinUnicode, {kCounted, false, 4, "BINUNICODE"}},
      {kBinUnicode8, {kCounted, false, 8, "BINUNICODE8"}},
      {kShortBinBytes, {kCounted, false, 1, "SHORT_BINBYTES"}},
      {kBinBytes, {kCounted, false, 4, "BINBYTES"}},
      {kBinBytes8, {kCounted, false, 8, "BINBYTES8"}},
      {kEmptyTuple, {kNumber, false, 0, "EMPTY_TUPLE"}},
      {kTuple1, {kNumber, false, 0, "TUPLE1"}},
      {kTuple2, {kNumber, false, 0, "TUPLE2"}},
      {kTuple3, {kNumber, false, 0, "TUPLE3"}},
      {kTuple, {kNumber, false, 0, "TUPLE"}},
      {kEmptyList, {kNumber, false, 0, "EMPTY_LIST"}},
      {kAppend, {kNumber, false, 0, "APPEND"}},
      {kAppends, {kNumber, false, 0, "APPENDS"}},
      {kEmptyDict, {kNumber, false, 0, "EMPTY_DICT"}},
      {kSetItem, {kNumber, false, 0, "SETITEM"}},
      {kSetItems, {kNumber, false, 0, "SETITEMS"}},
      {kGlobal, {kLines, false, 0, "GLOBAL"}},
      {kStackGlobal, {kNumber, false, 0, "STACK_GLOBAL"}},
      {kReduce, {kNumber, false, 0, "REDUCE"}},
      {kNewObj, {kNumber, false, 0, "NEWOBJ"}},
      {kBuild, {kNumber, false, 0, "BUILD"}},
      {kBinPersId, {kNumber, false, 0, "BINPERSID"}},
      {kMemoize, {kNumber, false, 0, "MEMOIZE"}},
      {kBinPut, {kNumber, false, 1, "BINPUT"}},
      {kLongBinPut, {kNumber, false, 4, "LONG_BINPUT"}},
      {kBinGet, {kNumber, false, 1, "BINGET"}},
      {kLongBinGet, {kNumber, false, 4, "LONG_BINGET"}},
  };
  std::array<PickleOperand, 256> operands = {};
  for (const Row& row : kRows) operands[static_cast<uint8_t>(row.opcode)] = row.operand;
  return operands;
}

constexpr uint64_t kFirstProtocol = 2;
constexpr uint64_t kLastProtocol = 5;

}  // namespace

constexpr std::array<PickleOperand, 256> PickleCursor::kOperands = MakeOperands();
constexpr std::array<uint64_t, 9> PickleCursor::kMasks = {0, 0xff, 0xffff, 0,           0xffffffff,
                                                          0, 0,    0,      ~uint64_t{0}};

Status PickleError(const PickleStep& step, std::string_view what) {
  return CorruptError(fmt::format("pickle opcode {} at offset {}: {}",
                                  PickleCursor::kOperands[static_cast<uint8_t>(step.opcode)].name,
                                  step.offset, what));
}

bool PickleCursor::NextAtEdge(PickleStep& step) {
  if (at_ == bytes_.size()) {
    status_ = CorruptError(fmt::format("the pickle ends at offset {}, without STOP", at_));
    return false;
  }
  const auto code = static_cast<uint8_t>(bytes_[at_++]);
  step.opcode = static_cast<PickleOpcode>(code);
  const size_t size = kOperands[code].size;
  if (bytes_.size() - at_ < size) return Fail(step, "the pickle ends inside of its operand");
  step.number = 0;
  for (size_t i = 0; i < size; ++i) {
    step.number |= uint64_t{static_cast<uint8_t>(bytes_[at_ + i])} << (8 * i);
  }
  at_ += size;
  return TakeRest(step);
}

bool PickleCursor::TakeRest(PickleStep& step) {
  using enum PickleOperand::Form;
  const PickleOperand& operand = kOperands[static_cast<uint8_t>(step.opcode)];
  if (operand.form == kUnknown) {
    status_ = CorruptError(
        fmt::format("pickle opcode 0x{:02x} at offset {}, which pickles of checkpoints do not have",
                    static_cast<uint8_t>(step.opcode), step.offset));
    return false;
  }
  if (operand.form == kCounted && !TakeCounted(step.number, step)) return false;
  if (operand.form == kLines &&
      (!TakeLine(step.global.module, step) || !TakeLine(step.global.name, step))) {
    return false;
  }
  return (step.offset != 0 && !operand.has_place) || CheckPlace(step);
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
