// A pickle: what is read is written as a pickle without a memo, and read again. All values of it
// lie in its bytes, and no more than the limit are inside of each other.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "format/pickle/pickle_reader.h"
#include "reshard/status.h"
#include "tests/fuzz/fuzz_target.h"

namespace reshard {
namespace {

// Values that share objects may stand for far more, written out.
constexpr size_t kMostBytes = size_t{1} << 20;

// Writes a value of a pickle, step by step.
class Writer {
 public:
  explicit Writer(const Pickle& pickle) : pickle_(pickle) {}

  // Returns false if it gets too long, or too deep.
  bool Write(const PickleValue& value, int levels = kMostPickleLevels) {
    if (out_.size() > kMostBytes) return true;
    if (value.is_object() && levels-- == 0) return false;
    switch (value.kind) {
      case PickleKind::kNone:
        out_ += 'N';
        return true;
      case PickleKind::kBool:
        out_ += pickle_.Bool(value) ? '\x88' : '\x89';
        return true;
      case PickleKind::kInteger:
        out_ += "\x8a\x08";
        Number(value.data, 8);
        return true;
      case PickleKind::kFloat:
        out_ += 'G';
        Number(__builtin_bswap64(std::bit_cast<uint64_t>(pickle_.Float(value))), 8);
        return true;
      case PickleKind::kText:
        Text('X', pickle_.Text(value));
        return true;
      case PickleKind::kBytes:
        Text('B', pickle_.Text(value));
        return true;
      case PickleKind::kGlobal:
        Text('X', pickle_.Global(value).module);
        Text('X', pickle_.Global(value).name);
        out_ += '\x93';
        return true;
      case PickleKind::kTuple:
        out_ += '(';
        return Items(value, levels, 't');
      case PickleKind::kList:
        out_ += "](";
        return Items(value, levels, 'e');
      case PickleKind::kDict:
        out_ += "}(";
        return Items(value, levels, 'u');
      case PickleKind::kNode:
        return Node(value, levels);
      case PickleKind::kPersistentId:
        if (!Write(pickle_.Id(value), levels)) return false;
        out_ += 'Q';
        return true;
      default:
        return false;
    }
  }

  const std::string& out() const { return out_; }

 private:
  bool Items(const PickleValue& value, int levels, char end) {
    for (const PickleValue& item : pickle_.Items(value)) {
      if (!Write(item, levels)) return false;
    }
    out_ += end;
    return true;
  }

  bool Node(const PickleValue& value, int levels) {
    const PickleGlobal& global = pickle_.Global(value);
    Text('X', global.module);
    Text('X', global.name);
    out_ += '\x93';
    if (!Write(pickle_.Arguments(value), levels)) return false;
    out_ += "R(";
    if (!Items(value, levels, pickle_.HasPairs(value) ? 'u' : 'e')) return false;
    if (!Write(pickle_.State(value), levels)) return false;
    out_ += 'b';
    return true;
  }

  void Text(char opcode, std::string_view text) {
    out_ += opcode;
    Number(text.size(), 4);
    out_ += text;
  }

  void Number(uint64_t number, int bytes) {
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(number >> (8 * i));
  }

  const Pickle& pickle_;
  std::string out_ = "\x80\x04";
};

}  // namespace

std::string FuzzPickle(std::string_view bytes) {
  const auto pickle = ReadPickle(bytes);
  const PickleCollapse collapse = [](const Pickle& found, const PickleValue& node) {
    const uint64_t letters = found.Global(node).name.size();
    return Result(letters % 2 == 0 ? std::optional(letters) : std::nullopt);
  };
  const auto collapsed = ReadPickle(bytes, collapse);
  if (!pickle.ok()) {
    if (pickle.status().code() != StatusCode::kCorrupt) return "another code";
    // Objects in a node that collapses are not inside of the node's outer ones any more.
    const bool is_deep =
        pickle.status().message().find("inside of each other") != std::string::npos;
    if (collapsed.ok() && !is_deep) return "a pickle is taken that was refused";
    return MessageFault(pickle.status());
  }
  Writer first(*pickle);
  if (!first.Write(pickle->top())) return "values that are too deep, or of no kind";
  if (first.out().size() > kMostBytes) return "";
  const std::string again = first.out() + ".";
  const auto copy = ReadPickle(again);
  // A mebibyte of tuples in tuples takes more memory than the limit.
  if (copy.status().code() == StatusCode::kResourceExhausted) return "";
  if (!copy.ok()) return "what was read is refused: " + copy.status().message();
  Writer second(*copy);
  if (!second.Write(copy->top())) return "a copy that is deeper";
  return second.out() == first.out() ? "" : "other values";
}

}  // namespace reshard
