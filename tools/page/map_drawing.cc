#include "tools/page/map_drawing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "tools/page/text_format.h"

namespace reshard {
namespace {

constexpr size_t kScreenColumns = 80;
// Without `every_box`.
constexpr size_t kMostRowsDrawn = 24;
constexpr size_t kMostStagesDrawn = 4;
// Ranks as they are need no more than this; else a shorter form is tried.
constexpr size_t kShortText = 16;

// Whether the ranges have one length and one distance.
bool AreRegular(const std::vector<ConsecutiveRanks>& ranges) {
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].last - ranges[i].first != ranges[0].last - ranges[0].first) return false;
    if (ranges[i].first - ranges[i - 1].first != ranges[1].first - ranges[0].first) return false;
  }
  return true;
}

// The dimensions that are cut, and how they are drawn: the last ones as rows and columns, and a
// picture for each part along the others.
struct Axes {
  explicit Axes(const std::vector<int64_t>& cuts) {
    for (size_t dim = 0; dim < cuts.size(); ++dim) {
      if (cuts[dim] > 1) outer.push_back(dim);
    }
    const auto take = [this] {
      const size_t dim = outer.back();
      outer.pop_back();
      return dim;
    };
    // A single cut of the first dimension is drawn as rows.
    if (!outer.empty() && outer != std::vector<size_t>{0}) columns = take();
    if (!outer.empty()) rows = take();
  }

  std::vector<size_t> outer;
  std::optional<size_t> rows;
  std::optional<size_t> columns;
};

std::string AxisWord(std::optional<size_t> dim) {
  return dim ? fmt::format("dimension {}:", *dim) : std::string();
}

// The parts along each dimension of picture, or box, number `number` in row-major order, and back.
std::vector<int64_t> PartsAt(int64_t number, const std::vector<int64_t>& cuts) {
  std::vector<int64_t> parts(cuts.size());
  for (size_t i = cuts.size(); i-- > 0; number /= cuts[i]) parts[i] = number % cuts[i];
  return parts;
}

size_t NumberOf(const std::vector<int64_t>& parts, const std::vector<int64_t>& cuts) {
  int64_t number = 0;
  for (size_t i = 0; i < cuts.size(); ++i) number = number * cuts[i] + parts[i];
  return static_cast<size_t>(number);
}

// Draws the boxes of a stage.
class StageDrawing {
 public:
  StageDrawing(const MappedStage& stage, size_t most_rows)
      : stage_(stage), axes_(stage.cuts), rows_left_(most_rows) {
    texts_.reserve(stage.boxes.size());
    for (const MappedBox& box : stage.boxes) {
      texts_.push_back(ShortRanks(box.ranks));
      width_ = std::max(width_, texts_.back().size());
    }
    const int64_t last = CutsOf(axes_.rows) - 1;
    number_width_ = axes_.rows ? fmt::format("{}", last).size() : 0;
    if (axes_.columns) {
      width_ = std::max(width_, fmt::format("{}", CutsOf(axes_.columns) - 1).size());
    }
    left_ = std::max(AxisWord(axes_.rows).size(), AxisWord(axes_.columns).size());
  }

  std::string Draw() {
    std::vector<int64_t> outer_cuts;
    int64_t pictures = 1;
    for (const size_t dim : axes_.outer) {
      outer_cuts.push_back(stage_.cuts[dim]);
      pictures *= outer_cuts.back();
    }
    std::string out;
    for (int64_t picture = 0; picture < pictures && rows_left_ > 0; ++picture) {
      const std::vector<int64_t> at = PartsAt(picture, outer_cuts);
      std::vector<int64_t> parts(stage_.cuts.size());
      std::vector<std::string> words;
      for (size_t i = 0; i < at.size(); ++i) {
        parts[axes_.outer[i]] = at[i];
        words.push_back(fmt::format("part {} of dimension {}", at[i], axes_.outer[i]));
      }
      if (!words.empty()) out += fmt::format("  {}\n", fmt::join(words, ", "));
      DrawPicture(std::move(parts), out);
    }
    const size_t left_out = texts_.size() - drawn_;
    if (left_out > 0) {
      out += fmt::format("  ... and {} of {} boxes more; --long draws them\n", left_out,
                         texts_.size());
    }
    return out;
  }

 private:
  int64_t CutsOf(std::optional<size_t> dim) const { return dim ? stage_.cuts[*dim] : 1; }

  void DrawPicture(std::vector<int64_t> parts, std::string& out) {
    // The left margin, a number, and "|" before and after each cell.
    const size_t fixed = 2 + left_ + 1 + number_width_ + 2;
    const int64_t columns = CutsOf(axes_.columns);
    const int64_t fitting = std::max<int64_t>(
        1, fixed >= kScreenColumns ? 1
                                   : static_cast<int64_t>((kScreenColumns - fixed) / (width_ + 3)));
    for (int64_t first = 0; first < columns && rows_left_ > 0; first += fitting) {
      const int64_t end = std::min(columns, first + fitting);
      if (axes_.columns) AddHeader(first, end, out);
      AddBorder(end - first, out);
      for (int64_t row = 0; row < CutsOf(axes_.rows) && rows_left_ > 0; ++row) {
        AddRow(row, first, end, parts, out);
        --rows_left_;
      }
      AddBorder(end - first, out);
    }
  }

  void AddHeader(int64_t first, int64_t end, std::string& out) const {
    std::string line =
        fmt::format("  {:<{}} {:<{}}", AxisWord(axes_.columns), left_, "", number_width_ + 3);
    for (int64_t column = first; column < end; ++column) {
      line += fmt::format("{:<{}}   ", column, width_);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }

  void AddBorder(int64_t cells, std::string& out) const {
    out += fmt::format("  {:<{}} +", "", left_ + 1 + number_width_);
    for (int64_t cell = 0; cell < cells; ++cell) out += std::string(width_ + 2, '-') + '+';
    out += '\n';
  }

  void AddRow(int64_t row, int64_t first, int64_t end, std::vector<int64_t>& parts,
              std::string& out) {
    out += fmt::format("  {:<{}} ", row == 0 ? AxisWord(axes_.rows) : "", left_);
    out += axes_.rows ? fmt::format("{:>{}} |", row, number_width_) : std::string(" |");
    if (axes_.rows) parts[*axes_.rows] = row;
    for (int64_t column = first; column < end; ++column) {
      if (axes_.columns) parts[*axes_.columns] = column;
      out += fmt::format(" {:<{}} |", texts_[NumberOf(parts, stage_.cuts)], width_);
      ++drawn_;
    }
    out += '\n';
  }

  const MappedStage& stage_;
  const Axes axes_;
  std::vector<std::string> texts_;  // of the boxes
  size_t width_ = 1;                // of a cell's text
  size_t number_width_ = 0;         // of a row's number
  size_t left_ = 0;                 // of the names of dimensions
  size_t rows_left_;
  size_t drawn_ = 0;
};

// "cut into [2, 4] parts; 2 ranks hold each box"
std::string StageInWords(const MappedStage& stage) {
  size_t fewest = stage.boxes.front().ranks.size();
  size_t most = fewest;
  for (const MappedBox& box : stage.boxes) {
    fewest = std::min(fewest, box.ranks.size());
    most = std::max(most, box.ranks.size());
  }
  const bool is_whole = stage.boxes.size() == 1;
  std::string text =
      is_whole ? "not cut" : fmt::format("cut into {} parts", FormatList(stage.cuts));
  const std::string_view what = is_whole ? "all of it" : "each box";
  if (fewest != most) {
    text += fmt::format("; {} to {} ranks hold {}", fewest, most, what);
  } else {
    text +=
        fmt::format("; {} {} {}", FormatCount(most, "rank"), most == 1 ? "holds" : "hold", what);
  }
  return text;
}

void DrawSide(std::string_view word, const MappedStrategy& side, bool every_box, std::string& out) {
  const std::string path = PrintableName(side.path);
  if (side.stages.empty()) {
    out += fmt::format("\n{}: {}\n  no layout; conversions copy it unchanged\n", word, path);
  }
  size_t drawn = 0;
  for (const MappedStage& stage : side.stages) {
    if (drawn == kMostStagesDrawn && !every_box) break;
    ++drawn;
    const int64_t last = stage.first_rank + stage.ranks - 1;
    out += fmt::format("\n{}: {}, stage {}, {}\n  {}\n", word, path, stage.stage,
                       stage.ranks == 1 ? fmt::format("rank {}", last)
                                        : fmt::format("ranks {}-{}", stage.first_rank, last),
                       StageInWords(stage));
    if (stage.full_shape) {
      out += fmt::format("  full shape {}\n", FormatList(*stage.full_shape));
    }
    out += '\n';
    out +=
        StageDrawing(stage, every_box ? std::numeric_limits<size_t>::max() : kMostRowsDrawn).Draw();
  }
  if (drawn < side.stages.size()) {
    out += fmt::format("\n... and {} more; --long draws them\n",
                       FormatCount(side.stages.size() - drawn, "stage"));
  }
}

}  // namespace

std::string ShortRanks(const std::vector<int64_t>& ranks) {
  const std::vector<ConsecutiveRanks> ranges = ConsecutiveIn(ranks);
  if (ranges.empty()) return "-";
  std::string all;
  for (const ConsecutiveRanks& range : ranges) {
    all += (all.empty() ? "" : ",") + FormatConsecutive(range);
    if (all.size() > kShortText && ranges.size() > 2) break;
  }
  if (all.size() <= kShortText || ranges.size() <= 2) return all;
  if (AreRegular(ranges)) {
    return fmt::format("{},{},...,{}", FormatConsecutive(ranges[0]), FormatConsecutive(ranges[1]),
                       FormatConsecutive(ranges.back()));
  }
  return fmt::format("{},{},... ({} ranks)", FormatConsecutive(ranges[0]),
                     FormatConsecutive(ranges[1]), ranks.size());
}

std::string DrawMap(const ParameterMap& map, bool every_box) {
  std::string out = PrintableName(map.name) + '\n';
  DrawSide("before", map.before, every_box, out);
  if (map.after) DrawSide("after", *map.after, every_box, out);
  return out;
}

}  // namespace reshard
