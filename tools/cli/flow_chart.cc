#include "tools/cli/flow_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tools/cli/svg.h"
#include "tools/cli/text_format.h"

namespace reshard {
namespace {

constexpr double kLeft = 92;
constexpr double kTop = 62;
constexpr double kWidestChart = 860;
constexpr double kHighest = 640;

// The number of neighbours of which one label has room.
size_t Stride(double label, double step) {
  return std::max<size_t>(1, static_cast<size_t>(label / step + 0.999));
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

}  // namespace reshard
