#include "tools/page/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/page/html.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

constexpr double kPageWidth = 960;
// The number of neighbours that share the room of a label, in steps of `step` pixels.
size_t Stride(double label, double step) {
  return std::max<size_t>(1, static_cast<size_t>(label / step + 0.999));
}

// Widths and heights of squares, and how many stand in a row.
struct Squares {
  double width = 0;
  double height = 0;
  int64_t columns = 1;
};

Squares SquaresFor(int64_t cells) {
  if (cells <= 64) return {54, 40, 16};
  if (cells <= 256) return {27, 22, 32};
  return {13.5, 13.5, 64};
}

// A hue for the shard, from red over green to violet, and a lightness for the replica. Dark text is
// legible on each colour.
std::string Paint(const DeviceGrid& grid, const GridCell& cell) {
  if (cell.shard < 0) return "class=\"hollow\"";
  const double shards = static_cast<double>(std::max<int64_t>(grid.shards, 2));
  const double replicas = static_cast<double>(std::max<int64_t>(grid.replicas - 1, 1));
  const double hue = 300 * static_cast<double>(cell.shard) / (shards - (shards > 6 ? 1 : 0));
  const double light =
      62 + std::min(26.0, 12 * replicas) * static_cast<double>(cell.replica) / replicas;
  return fmt::format("fill=\"hsl({:.0f} 62% {:.0f}%)\" class=\"cell\"", hue, light);
}

class GridDrawing {
 public:
  GridDrawing(const LayoutSide& side, const DeviceGrid& grid, std::string_view title)
      : side_(side),
        grid_(grid),
        squares_(SquaresFor(static_cast<int64_t>(grid.cells.size()))),
        by_stage_(side.stages > 1 && side.stages <= kMostBands && grid.ranks_per_cell == 1),
        band_(by_stage_ ? side.devices_per_stage : static_cast<int64_t>(grid.cells.size())),
        columns_(std::min(squares_.columns, band_)),
        rows_((band_ + columns_ - 1) / columns_),
        svg_(kLeft + static_cast<double>(squares_.columns) * squares_.width + 4, Height(), title,
             fmt::format("{} shards, up to {} replicas of each in a stage", grid.shards,
                         grid.replicas)) {}

  std::string Draw() {
    DrawKey();
    for (size_t i = 0; i < grid_.cells.size(); ++i) DrawCell(static_cast<int64_t>(i));
    return svg_.Finish();
  }

 private:
  static constexpr double kLeft = 92;
  static constexpr double kTop = 28;
  static constexpr double kBandGap = 8;
  static constexpr int64_t kMostBands = 16;

  double Height() const {
    const double bands = by_stage_ ? static_cast<double>(side_.stages) : 1;
    return kTop + bands * (static_cast<double>(rows_) * squares_.height + kBandGap);
  }

  int64_t RankOf(int64_t cell) const { return side_.first_rank + cell * grid_.ranks_per_cell; }

  // Draws the meanings of the colours.
  void DrawKey() {
    double x = kLeft;
    const auto strip = [&](int64_t count, const std::string& text, auto cell_of) {
      constexpr int64_t kMost = 24;
      const int64_t shown = std::min(count, kMost);
      for (int64_t i = 0; i < shown; ++i) {
        const int64_t at = shown == 1 ? 0 : i * (count - 1) / (shown - 1);
        svg_.Rect({x, 4, 8, 12}, Paint(grid_, cell_of(at)));
        x += 8;
      }
      svg_.Text(x + 6, 14, text, "label");
      x += 6 + kLabelCharacter * static_cast<double>(text.size()) + 18;
    };
    if (grid_.shards == 0) return;
    strip(grid_.shards,
          grid_.shards == 1 ? "the full tensor" : fmt::format("shard 0 to {}", grid_.shards - 1),
          [](int64_t at) {
            return GridCell{at, 0};
          });
    if (grid_.replicas > 1) {
      strip(grid_.replicas, fmt::format("replica 0 to {}", grid_.replicas - 1), [](int64_t at) {
        return GridCell{0, at};
      });
    }
    if (static_cast<int64_t>(grid_.stages.size()) < side_.stages) {
      DrawLegend(svg_, x, 4, {{"class=\"hollow\"", "not on this rank"}});
    }
  }

  void DrawCell(int64_t number) {
    const GridCell& cell = grid_.cells[static_cast<size_t>(number)];
    const int64_t band = number / band_;
    const int64_t row = number % band_ / columns_;
    const int64_t column = number % band_ % columns_;
    const double x = kLeft + static_cast<double>(column) * squares_.width;
    const double y = kTop + static_cast<double>(band * rows_ + row) * squares_.height +
                     static_cast<double>(band) * kBandGap;
    const int64_t rank = RankOf(number);
    if (column == 0) {
      svg_.Text(kLeft - 8, y + squares_.height / 2 + 4, RowLabel(band, row, rank), "label end");
    }
    svg_.Rect({x + 0.5, y + 0.5, squares_.width - 1.5, squares_.height - 1.5}, Paint(grid_, cell),
              cell.shard < 0
                  ? fmt::format("rank {}: does not have it", rank)
                  : fmt::format("rank {}: shard {}, replica {}", rank, cell.shard, cell.replica));
    DrawWords(cell, rank, x + squares_.width / 2, y);
  }

  std::string RowLabel(int64_t band, int64_t row, int64_t rank) const {
    if (!by_stage_ || row > 0) return fmt::format("rank {}", rank);
    const int64_t stage = side_.first_rank / side_.devices_per_stage + band;
    return rows_ == 1 ? fmt::format("stage {}", stage) : fmt::format("stage {}: {}", stage, rank);
  }

  void DrawWords(const GridCell& cell, int64_t rank, double x, double y) {
    constexpr double kRoomForNumber = 27;
    constexpr double kRoomForShard = 54;
    const std::string_view on = cell.shard < 0 ? "small middle" : "small middle on";
    if (squares_.width >= kRoomForShard) {
      svg_.Text(x, y + 17, fmt::format("{}", rank), cell.shard < 0 ? "middle" : "middle on");
      if (cell.shard >= 0) {
        svg_.Text(x, y + 31,
                  grid_.replicas > 1 ? fmt::format("s{} r{}", cell.shard, cell.replica)
                                     : fmt::format("s{}", cell.shard),
                  on);
      }
    } else if (squares_.width >= kRoomForNumber && rank < 10000) {
      svg_.Text(x, y + 15, fmt::format("{}", rank), on);
    }
  }

  const LayoutSide& side_;
  const DeviceGrid& grid_;
  const Squares squares_;
  const bool by_stage_;
  const int64_t band_;  // squares of a stage, or all squares
  const int64_t columns_;
  const int64_t rows_;  // of a band
  Svg svg_;
};

// A time of a run that takes `run` seconds in all.
std::string TimeText(double seconds, double run) {
  return run < 1 ? fmt::format("{:.1f} ms", seconds * 1000) : FormatSeconds(seconds);
}

double EndOf(const ConvertReport::Timeline& timeline) {
  return timeline.phases.empty() ? 0 : timeline.phases.back().end_seconds;
}

using SampleMember = uint64_t ConvertReport::Timeline::Sample::*;

struct Curve {
  SampleMember value;
  std::string_view name;
  std::string_view css_class;
};

constexpr Curve kBytes[] = {
    {&ConvertReport::Timeline::Sample::bytes_read, "read", "line l0"},
    {&ConvertReport::Timeline::Sample::bytes_gathered, "gathered", "line l1"},
    {&ConvertReport::Timeline::Sample::bytes_written, "written", "line l2"}};
constexpr Curve kMemory[] = {{&ConvertReport::Timeline::Sample::memory, "held", "line l0"}};

// A picture over time, with the phases as bands.
class TimePlot {
 public:
  TimePlot(const ConvertReport::Timeline& timeline, uint64_t greatest, std::string_view title)
      : timeline_(timeline),
        greatest_(std::max<uint64_t>(greatest, 1)),
        seconds_(std::max(EndOf(timeline), 1e-6)),
        svg_(kPageWidth, kBottom + 26, title,
             "Time goes to the right; bands are phases of the run") {
    DrawPhases();
    for (uint64_t part = 0; part <= 2; ++part) {
      const uint64_t value = part == 2 ? greatest_ : greatest_ / 2 * part;
      svg_.Line(kLeft, Y(value), kRight, Y(value), part == 0 ? "axis" : "grid");
      svg_.Text(kLeft - 8, Y(value) + 4, FormatBytes(value), "label end");
      const double at = seconds_ * static_cast<double>(part) / 2;
      svg_.Text(X(at), kBottom + 17, TimeText(at, seconds_),
                part == 0   ? "label"
                : part == 1 ? "label middle"
                            : "label end");
    }
  }

  void Draw(const Curve& curve) {
    std::vector<std::pair<double, double>> points;
    for (const ConvertReport::Timeline::Sample& sample : timeline_.samples) {
      points.emplace_back(X(sample.seconds), Y(sample.*curve.value));
    }
    svg_.Path(points, curve.css_class);
    AddLegend("class=\"" + std::string(curve.css_class.substr(5)) + "\"", std::string(curve.name));
  }

  // A dashed line across, for a bound.
  void Mark(uint64_t value, std::string_view name, std::string_view css_class) {
    svg_.Line(kLeft, Y(value), kRight, Y(value), css_class);
    AddLegend("class=\"" + std::string(css_class.substr(5)) + "\"",
              fmt::format("{}: {}", name, FormatBytes(value)));
  }

  std::string Finish() {
    DrawLegend(svg_, kLeft, 4, legend_);
    return svg_.Finish();
  }

 private:
  static constexpr double kLeft = 84;
  static constexpr double kRight = kPageWidth - 8;
  static constexpr double kTop = 48;
  static constexpr double kBottom = 208;

  double X(double seconds) const { return kLeft + (kRight - kLeft) * seconds / seconds_; }
  double Y(uint64_t value) const {
    return kBottom - (kBottom - kTop) * static_cast<double>(value) / static_cast<double>(greatest_);
  }

  void DrawPhases() {
    bool shaded = false;
    for (const ConvertReport::Timeline::Phase& phase : timeline_.phases) {
      const double x = X(phase.begin_seconds);
      const double width = X(phase.end_seconds) - x;
      svg_.Rect({x, kTop - 18, width, kBottom - kTop + 18},
                shaded ? "class=\"band\"" : "class=\"bare\"",
                fmt::format("{}: {} to {}", EscapeHtml(phase.name),
                            TimeText(phase.begin_seconds, seconds_),
                            TimeText(phase.end_seconds, seconds_)));
      shaded = !shaded;
      if (width > kLabelCharacter * static_cast<double>(phase.name.size() + 1)) {
        svg_.Text(x + 3, kTop - 6, EscapeHtml(phase.name), "label");
      }
    }
  }

  void AddLegend(std::string paint, std::string text) {
    legend_.push_back({std::move(paint), std::move(text)});
  }

  const ConvertReport::Timeline& timeline_;
  const uint64_t greatest_;
  const double seconds_;
  Svg svg_;
  std::vector<LegendEntry> legend_;
};

// At most this many samples as rows, evenly chosen; the last one always.
std::string SampleTable(const ConvertReport::Timeline& timeline) {
  constexpr size_t kMost = 32;
  HtmlTable table("timeline", "Bytes and memory over time",
                  {"", "read", "gathered", "written", "memory"});
  const size_t count = timeline.samples.size();
  const size_t rows = std::min(count, kMost);
  for (size_t i = 0; i < rows; ++i) {
    const size_t at = rows == 1 ? 0 : i * (count - 1) / (rows - 1);
    const ConvertReport::Timeline::Sample& sample = timeline.samples[at];
    table.AddRow({TimeText(sample.seconds, EndOf(timeline)), BytesHtml(sample.bytes_read),
                  BytesHtml(sample.bytes_gathered), BytesHtml(sample.bytes_written),
                  BytesHtml(sample.memory)});
  }
  return table.ToHtml();
}

std::string PhaseTable(const ConvertReport::Timeline& timeline) {
  HtmlTable table("phases", "Phases", {"", "from", "to", "time"});
  for (const ConvertReport::Timeline::Phase& phase : timeline.phases) {
    const double end = EndOf(timeline);
    table.AddRow({EscapeHtml(phase.name), TimeText(phase.begin_seconds, end),
                  TimeText(phase.end_seconds, end),
                  TimeText(phase.end_seconds - phase.begin_seconds, end)});
  }
  return table.ToHtml();
}

}  // namespace

std::string RankNumbers(const FileBin& bin) {
  return bin.first == bin.last ? fmt::format("{}", bin.first)
                               : fmt::format("{}-{}", bin.first, bin.last);
}

std::string RankWords(const FileBin& bin) {
  return (bin.first == bin.last ? "rank " : "ranks ") + RankNumbers(bin);
}

std::string FlowChart(const LayoutReport& report) {
  constexpr double kLeft = 92;
  constexpr double kTop = 62;
  constexpr double kWidestChart = 860;
  constexpr double kHighest = 640;
  const std::vector<FileBin>& rows = report.source.by_rank;
  const std::vector<FileBin>& columns = report.target.by_rank;
  const double width = std::clamp(kWidestChart / static_cast<double>(columns.size()), 13.0, 74.0);
  const double height = std::clamp(kHighest / static_cast<double>(rows.size()), 10.0, 30.0);
  const double right = kLeft + width * static_cast<double>(columns.size());
  const double bottom = kTop + height * static_cast<double>(rows.size());
  const uint64_t most =
      std::max<uint64_t>(1, *std::max_element(report.flow.begin(), report.flow.end()));

  Svg svg(std::max(right + 8, 560.0), bottom + 8, "Bytes from source ranks to target ranks",
          "Rows are source ranks, columns target ranks.");
  DrawLegend(svg, kLeft, 4,
             {{"class=\"heat\" fill-opacity=\"0.1\"", "some bytes"},
              {"class=\"heat\"", fmt::format("{}, the most of a square", FormatBytes(most))}});
  svg.Text(kLeft - 8, kTop - 8, "source ↓", "label end");
  svg.Text(kLeft, kTop - 26, "target rank →", "label");
  const size_t column_stride =
      Stride(kLabelCharacter * static_cast<double>(RankNumbers(columns.back()).size() + 1), width);
  for (size_t j = 0; j < columns.size(); j += column_stride) {
    svg.Text(kLeft + width * (static_cast<double>(j) + 0.5), kTop - 8, RankNumbers(columns[j]),
             "label middle");
  }
  const size_t row_stride = Stride(13, height);
  for (size_t i = 0; i < rows.size(); ++i) {
    const double y = kTop + height * static_cast<double>(i);
    if (i % row_stride == 0) {
      svg.Text(kLeft - 8, y + height / 2 + 4, RankNumbers(rows[i]), "label end");
    }
    for (size_t j = 0; j < columns.size(); ++j) {
      const uint64_t bytes = report.flow[i * columns.size() + j];
      if (bytes == 0) continue;
      const double x = kLeft + width * static_cast<double>(j);
      // Square roots: a hundredth is still seen.
      const double share = std::sqrt(static_cast<double>(bytes) / static_cast<double>(most));
      const std::string paint =
          fmt::format("class=\"heat\" fill-opacity=\"{:.2f}\"", 0.1 + 0.9 * share);
      svg.Rect({x + 0.5, y + 0.5, width - 1, height - 1}, paint,
               fmt::format("source {} to target {}: {}", RankWords(rows[i]), RankWords(columns[j]),
                           FormatBytes(bytes)));
      constexpr double kRoomForWords = 64;
      if (width < kRoomForWords || height < 16) continue;
      svg.Text(x + width / 2, y + height / 2 + 4, FormatBytes(bytes),
               share > 0.5 ? "small middle onheat" : "small middle");
    }
  }
  svg.Line(kLeft, kTop, right, kTop, "axis");
  svg.Line(kLeft, kTop, kLeft, bottom, "axis");
  svg.Line(right, kTop, right, bottom, "axis");
  svg.Line(kLeft, bottom, right, bottom, "axis");
  return svg.Finish();
}

std::string DeviceGridChart(const LayoutSide& side, const DeviceGrid& grid,
                            std::string_view title) {
  return GridDrawing(side, grid, title).Draw();
}

std::string TimelineSection(const ConvertReport::Timeline& timeline, const MemoryMarks& memory) {
  uint64_t most_bytes = 0;
  uint64_t most_memory = memory.limit;
  for (const ConvertReport::Timeline::Sample& sample : timeline.samples) {
    for (const Curve& curve : kBytes) most_bytes = std::max(most_bytes, sample.*curve.value);
    most_memory = std::max(most_memory, sample.memory);
  }
  std::string out = "<section>\n<h2>How the run went</h2>\n" + PhaseTable(timeline);
  TimePlot bytes(timeline, most_bytes, "Bytes over time");
  for (const Curve& curve : kBytes) bytes.Draw(curve);
  TimePlot held(timeline, most_memory, "Memory over time");
  for (const Curve& curve : kMemory) held.Draw(curve);
  held.Mark(memory.planned, "planned", "line l1 dashed");
  held.Mark(memory.limit, "limit", "line l2 dashed");
  return out +
         fmt::format(
             "<figure>{}<figcaption>Read: source bytes brought into memory, in whole "
             "pieces of 64 KiB. Gathered: target bytes put together. Written: given "
             "to the system.</figcaption></figure>\n<figure>{}<figcaption>Memory as "
             "--memory-limit counts it, the page cache that the run takes "
             "included.</figcaption></figure>\n",
             bytes.Finish(), held.Finish()) +
         SampleTable(timeline) + "</section>\n";
}

}  // namespace reshard
