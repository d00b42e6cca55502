#include "tools/cli/shard_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "tools/page/text_format.h"

namespace reshard {
namespace {

constexpr size_t kWidestGrid = 80;
constexpr size_t kMostGridRows = 16;
constexpr size_t kWidestCell = 14;
constexpr size_t kWidestList = 48;  // of ranks, if they are the only column

// The parts of a tensor as rows and columns. `shards` are one for each part, row-major.
class ShardGridText {
 public:
  ShardGridText(const ShardedCheckpoint::Tensor& tensor,
                const std::vector<ShardedCheckpoint::Shard>& shards)
      : shards_(shards), cuts_(tensor.shape.size()) {
    for (size_t d = 0; d < cuts_.size(); ++d) {
      std::set<int64_t> begins;
      for (const ShardedCheckpoint::Shard& shard : shards) begins.insert(shard.box.begin[d]);
      cuts_[d] = static_cast<int64_t>(begins.size());
      if (cuts_[d] > 1) cut_dims_.push_back(d);
    }
    if (cut_dims_.size() > 1) {
      column_dim_ = cut_dims_.back();
      cut_dims_.pop_back();
      columns_ = static_cast<size_t>(cuts_[column_dim_]);
    }
    rows_ = shards.size() / columns_;
  }

  const std::vector<int64_t>& cuts() const { return cuts_; }

  std::string ToText() const {
    const size_t rows_of_cell = (rows_ + kMostGridRows - 1) / kMostGridRows;
    size_t columns_of_cell = 1;
    std::string text = Grid(rows_of_cell, columns_of_cell);
    while (Width(text) > kWidestGrid && columns_of_cell < columns_) {
      columns_of_cell *= 2;
      text = Grid(rows_of_cell, columns_of_cell);
    }
    const size_t parts = rows_of_cell * std::min(columns_of_cell, columns_);
    return parts == 1 ? text : text + fmt::format("  each cell stands for up to {} parts\n", parts);
  }

 private:
  // Dimensions behind the dimension of the columns are not cut, so the parts of a row are adjacent.
  const ShardedCheckpoint::Shard& At(size_t row, size_t column) const {
    return shards_[row * columns_ + column];
  }

  static size_t Width(std::string_view text) {
    size_t width = 0;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      width = std::max(width, end);
      text.remove_prefix(end + 1);
    }
    return width;
  }

  // "0:4, 8:16": the dimensions `dims` of the boxes from `first` to `last`.
  static std::string Label(const std::vector<size_t>& dims, const Box& first, const Box& last) {
    std::vector<std::string> begin;
    std::vector<std::string> end;
    for (const size_t d : dims) {
      begin.push_back(fmt::format("{}:{}", first.begin[d], first.begin[d] + first.extent[d]));
      end.push_back(fmt::format("{}:{}", last.begin[d], last.begin[d] + last.extent[d]));
    }
    if (dims.size() == 1) {
      return fmt::format("{}:{}", first.begin[dims[0]], last.begin[dims[0]] + last.extent[dims[0]]);
    }
    const std::string from = fmt::format("{}", fmt::join(begin, ", "));
    return first == last ? from : fmt::format("{} to {}", from, fmt::join(end, ", "));
  }

  // "0-3, 8"; if that is long, the first, the last and their number.
  std::string RanksText(const std::set<int64_t>& ranks) const {
    std::string text = FormatRanks({ranks.begin(), ranks.end()});
    if (text.size() <= (columns_ == 1 ? kWidestList : kWidestCell)) return text;
    return fmt::format("{}..{} ({})", *ranks.begin(), *ranks.rbegin(), ranks.size());
  }

  std::string Cell(size_t row, size_t row_end, size_t column, size_t column_end) const {
    std::set<int64_t> ranks;
    for (size_t r = row; r < row_end; ++r) {
      for (size_t c = column; c < column_end; ++c) {
        ranks.insert(At(r, c).ranks.begin(), At(r, c).ranks.end());
      }
    }
    return RanksText(ranks);
  }

  // Which dimensions run down and which across.
  std::string Corner() const {
    if (cut_dims_.empty()) return "BOX";
    const std::string rows = fmt::format("DIM {}", fmt::join(cut_dims_, ", "));
    return columns_ == 1 ? rows : fmt::format("{} / DIM {}", rows, column_dim_);
  }

  std::string Grid(size_t rows_of_cell, size_t columns_of_cell) const {
    std::vector<std::string> headers = {Corner()};
    for (size_t c = 0; c < columns_; c += columns_of_cell) {
      const size_t last = std::min(c + columns_of_cell, columns_) - 1;
      headers.push_back(columns_ == 1 ? "RANKS"
                                      : Label({column_dim_}, At(0, c).box, At(0, last).box));
    }
    std::vector<Table::Column> columns;
    columns.reserve(headers.size());
    for (const std::string& header : headers) columns.push_back({header});
    Table table(std::move(columns));
    for (size_t r = 0; r < rows_; r += rows_of_cell) {
      const size_t row_end = std::min(r + rows_of_cell, rows_);
      std::vector<std::string> cells = {
          cut_dims_.empty() ? "all" : Label(cut_dims_, At(r, 0).box, At(row_end - 1, 0).box)};
      for (size_t c = 0; c < columns_; c += columns_of_cell) {
        cells.push_back(Cell(r, row_end, c, std::min(c + columns_of_cell, columns_)));
      }
      table.AddRow(std::move(cells));
    }
    return table.ToText();
  }

  const std::vector<ShardedCheckpoint::Shard>& shards_;
  std::vector<int64_t> cuts_;     // parts along each dimension
  std::vector<size_t> cut_dims_;  // of the rows
  size_t column_dim_ = 0;
  size_t columns_ = 1;
  size_t rows_ = 0;
};

}  // namespace

std::string CutText(const ShardedCheckpoint::Tensor& tensor,
                    const std::vector<ShardedCheckpoint::Shard>& shards) {
  if (!tensor.in_strategy) return "in no layout";
  const auto by_replicas = [](const ShardedCheckpoint::Shard& a,
                              const ShardedCheckpoint::Shard& b) {
    return a.ranks.size() < b.ranks.size();
  };
  const auto [fewest, most] = std::minmax_element(shards.begin(), shards.end(), by_replicas);
  const std::string replicas =
      fewest->ranks.size() == most->ranks.size()
          ? FormatCount(most->ranks.size(), "rank")
          : fmt::format("{} to {}", fewest->ranks.size(), FormatCount(most->ranks.size(), "rank"));
  if (shards.size() == 1) return "not cut, on " + replicas;
  const ShardGridText grid(tensor, shards);
  return fmt::format("{} parts, each on {}", fmt::join(grid.cuts(), " x "), replicas);
}

std::string ShardsAsText(const ShardedCheckpoint::Tensor& tensor,
                         const std::vector<ShardedCheckpoint::Shard>& shards) {
  std::string line =
      fmt::format("{}: {} {}, stage {}", PrintableName(tensor.name), DTypeName(tensor.dtype),
                  ShapeText(tensor.kind, tensor.dtype, tensor.shape), tensor.stage);
  if (!tensor.in_strategy) {
    return fmt::format("{}: in no layout; each rank has its own copy, reshard reads rank {}'s\n",
                       line, FormatRanks(shards.front().ranks));
  }
  return fmt::format("{}: {}\n", line, CutText(tensor, shards)) +
         ShardGridText(tensor, shards).ToText();
}

}  // namespace reshard
