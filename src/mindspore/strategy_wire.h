// Steps through the fields of protobuf that other programs wrote, and through the items of a
// strategy, which it also writes; shared by reading, merging and writing.
#ifndef RESHARD_SRC_MINDSPORE_STRATEGY_WIRE_H_
#define RESHARD_SRC_MINDSPORE_STRATEGY_WIRE_H_

#include <google/protobuf/io/coded_stream.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "reshard/status.h"
#include "src/mindspore/strategy.pb.h"

namespace reshard {

// Reads the fields of a file of at most 2 GiB one after the other. Not for several threads.
class WireReader {
 public:
  // `path` and `kind`, the expected kind of the file, are for messages. All arguments have to stay.
  WireReader(const std::string& path, std::string_view kind, std::string_view bytes);

  bool AtEnd();
  // Returns the key (number << 3 | wire type) of the next field. Another function then takes the
  // field. All their errors are kCorrupt.
  Result<uint32_t> ReadKey();
  Result<uint64_t> ReadNumber();
  Result<std::string_view> ReadBytes();
  Status Skip();

  // The offset of the field's key.
  uint64_t offset() const { return offset_; }
  // Returns kCorrupt: expected a file of this kind, found `what` at the offset of the field.
  Status Unexpected(std::string_view what) const;

 private:
  const std::string& path_;
  const std::string_view kind_;
  const std::string_view bytes_;
  google::protobuf::io::CodedInputStream input_;
  uint32_t key_ = 0;
  uint64_t offset_ = 0;
};

// Keys of a ParallelStrategyMap.
inline constexpr char kCurrentStageKey = 0x08;
inline constexpr char kStrategyItemKey = 0x12;
inline constexpr char kLayoutItemKey = 0x1a;

// The value of current_stage in a merged file, for any number of stages.
inline constexpr char kMergedCurrentStage = 1;

// An item of more bytes is refused: its parsed form may be 30 times as large. A layout that lists
// the slices of 16,384 ranks has about 150 KB.
inline constexpr uint64_t kMaxStrategyItemBytes = uint64_t{1} << 20;

struct StrategyItemVisitor {
  // Called for each item in file order; may change it. `offset` is the offset of its key in the
  // file.
  std::function<Status(uint64_t offset, ParallelStrategyItem& item)> on_strategy;
  std::function<Status(uint64_t offset, ParallelLayoutItem& item)> on_layout;
  // If it is not empty, called before the layouts of an item are parsed. If it returns true, they
  // are not.
  std::function<bool(std::string_view name, std::string_view layouts)> on_encoded_layout = {};
  // Called with the value of current_stage, if it is not empty.
  std::function<void(uint64_t stage)> on_current_stage = {};
};

// Visits the items of `bytes`, at most 2 GiB; skips other fields. `path` is for messages. Errors:
// kCorrupt (path, offset), and the visitor's.
Status VisitStrategyItems(const std::string& path, std::string_view bytes,
                          const StrategyItemVisitor& visitor);

// Append a field with the value `item`, encoded again: fields in the order of their numbers, then
// fields that the schema does not know.
void AppendItem(const ParallelStrategyItem& item, std::string* out);
void AppendItem(const ParallelLayoutItem& item, std::string* out);

void AppendVarint(uint64_t number, std::string* out);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_STRATEGY_WIRE_H_
