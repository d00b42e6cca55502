// Part records: as they are, and with the seal that the lines would need, which no fuzzer guesses.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/record/part_record.h"
#include "tests/fuzz/fuzz_target.h"

namespace reshard {
namespace {

struct Record {
  std::optional<PartRecordHead> head;
  std::vector<RecordedValue> values;
  friend bool operator==(const Record&, const Record&) = default;
};

// Parses a record that comes in pieces of `piece` bytes.
Result<Record> Parse(std::string_view bytes, size_t piece) {
  Record record;
  PartRecordParser parser("record.jsonl",
                          [&](const RecordedValue& value) { record.values.push_back(value); });
  for (size_t at = 0; at < bytes.size(); at += piece) {
    const Status status = parser.Feed(bytes.substr(at, piece));
    if (!status.ok()) return status;
  }
  const Status status = parser.Finish();
  if (!status.ok()) return status;
  record.head = parser.head();
  return record;
}

Result<std::string> Encode(const Record& record) {
  std::string bytes;
  PartRecordEncoder encoder([&](std::string_view piece) -> Status {
    bytes += piece;
    return {};
  });
  Status status = encoder.WriteHead(*record.head);
  for (const RecordedValue& value : record.values) {
    if (status.ok()) status = encoder.WriteValue(value);
  }
  if (status.ok()) status = encoder.Finish();
  if (!status.ok()) return status;
  return bytes;
}

std::string ValuesFault(const Record& record) {
  uint64_t end = 0;
  for (const RecordedValue& value : record.values) {
    if (value.offset < end || value.length > record.head->size ||
        value.offset > record.head->size - value.length) {
      return "contents that overlap, or lie beyond the file";
    }
    end = value.offset + value.length;
    if (value.box.begin.size() != value.full_shape.size() ||
        value.box.extent.size() != value.full_shape.size()) {
      return "a box of other dimensions";
    }
    for (size_t d = 0; d < value.full_shape.size(); ++d) {
      if (value.box.begin[d] < 0 || value.box.extent[d] < 0 ||
          value.box.begin[d] > value.full_shape[d] - value.box.extent[d]) {
        return "a box that does not lie in its shape";
      }
    }
  }
  return "";
}

std::string RecordFault(std::string_view bytes) {
  const auto record = Parse(bytes, bytes.size() + 1);
  const auto in_pieces = Parse(bytes, 7);
  if (record.ok() != in_pieces.ok() || record.status().message() != in_pieces.status().message()) {
    return "in pieces it is read otherwise";
  }
  if (!record.ok()) return RefusalFault(record.status());
  if (*record != *in_pieces) return "in pieces it says something else";
  if (!record->head) return "a record without a head";
  const std::string fault = ValuesFault(*record);
  if (!fault.empty()) return fault;
  const auto again = Encode(*record);
  if (!again.ok()) return "read, but not to be written: " + again.status().message();
  const auto same = Parse(*again, again->size());
  if (!same.ok()) return "written, but not to be read: " + same.status().message();
  return *same == *record ? "" : "written and read, it says something else";
}

}  // namespace

std::string FuzzPartRecord(std::string_view bytes) {
  const std::string fault = RecordFault(bytes);
  if (!fault.empty()) return fault;
  std::string lines(bytes);
  if (!lines.ends_with('\n')) lines += '\n';
  Xxh3 digest;
  digest.Update(lines);
  const auto count = static_cast<uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
  return RecordFault(lines + PartRecordSeal(digest, count - 1));
}

}  // namespace reshard
