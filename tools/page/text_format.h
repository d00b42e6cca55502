// Text for the terminal: made safe; figures and tables, the same in every locale. Pure functions.
//
// In texts from files and arguments, control characters (C0, DEL, C1) and bytes that are not UTF-8
// come out as \n, \x1b or \u009b, and so do invisible and bidirectional characters.
#ifndef RESHARD_TOOLS_PAGE_TEXT_FORMAT_H_
#define RESHARD_TOOLS_PAGE_TEXT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/parameters.h"
#include "reshard/tensor.h"

namespace reshard {

// Returns a name as one word of a line: newlines and backslashes are escaped too, so that different
// names look different.
std::string PrintableName(std::string_view name);

// Returns a message: newlines and backslashes stay.
std::string PrintableText(std::string_view text);

// Returns "a, b, c and 3 more": at most 3 of `names`, which are the first of `count`; "(empty)"
// stands for one without a name.
std::string PrintableNames(const std::vector<std::string>& names, uint64_t count);

// Returns "345.0 MiB/s", or "" when no time has passed.
std::string FormatRate(uint64_t bytes, double seconds);

// Returns "0.02 s" below a minute, else as FormatClock.
std::string FormatSeconds(double seconds);

// Returns "0:07", "1:05", "2:00:05".
std::string FormatClock(double seconds);

// Returns "1 file" or "3 files".
std::string FormatCount(uint64_t count, std::string_view noun);

// From the first to the last rank.
struct ConsecutiveRanks {
  int64_t first = 0;
  int64_t last = 0;
};

// Returns the runs of consecutive numbers among ascending ranks.
std::vector<ConsecutiveRanks> ConsecutiveIn(const std::vector<int64_t>& ranks);

// Returns "0-3", or "8" for a single rank.
std::string FormatConsecutive(const ConsecutiveRanks& range);

// Returns ascending ranks as "0-3, 8", or "none".
std::string FormatRanks(const std::vector<int64_t>& ranks);

// Returns "[2, 4]".
std::string FormatList(const std::vector<int64_t>& numbers);

enum class Align { kLeft, kRight };

// Rows of cells in columns that are as wide as their widest cell. A plain value.
class Table {
 public:
  struct Column {
    std::string_view header;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // `cells` are as many as there are columns.
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  // Returns the header (when there is a named column) and the rows, each line indented by two
  // blanks and ended by a newline.
  std::string ToText() const;

 private:
  std::string Line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// The dtype's name, "map" for a MapTensor.
inline std::string_view TypeName(ArrayKind kind, DType dtype) {
  return kind == ArrayKind::kMapTensor ? "map" : DTypeName(dtype);
}

// Whether a StoredArray or a TensorInfo of this kind has a shape.
inline bool HasShape(ArrayKind kind) {
  return kind == ArrayKind::kTensor || kind == ArrayKind::kPacked;
}

// The shape in elements as "[2, 3]"; "-" if there is none.
inline std::string ShapeText(ArrayKind kind, DType dtype, const Shape& shape) {
  return HasShape(kind) ? FormatList(LogicalShape(kind, dtype, shape)) : "-";
}

}  // namespace reshard

#endif  // RESHARD_TOOLS_PAGE_TEXT_FORMAT_H_
