#include "tools/cli/bar_charts.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/html.h"
#include "tools/cli/svg.h"

namespace reshard {
namespace {

constexpr double kWidth = 960;
constexpr double kLegendHeight = 26;
constexpr std::string_view kPaints[] = {"class=\"s0\"", "class=\"s1\""};

uint64_t Greatest(const BarChart& chart) {
  uint64_t greatest = 1;  // an axis needs a length
  for (const BarGroup& group : chart.groups) {
    for (const uint64_t value : group.values) greatest = std::max(greatest, value);
  }
  return greatest;
}

double Share(uint64_t value, uint64_t of) {
  return static_cast<double>(value) / static_cast<double>(of);
}

std::string Tip(const BarChart& chart, const BarGroup& group, size_t series) {
  return fmt::format("{}: {} {}", group.tip, EscapeHtml(chart.series[series]),
                     chart.format(group.values[series]));
}

void DrawSeries(Svg& svg, const BarChart& chart, double left) {
  std::vector<LegendEntry> entries;
  for (size_t s = 0; s < chart.series.size(); ++s) {
    entries.push_back({std::string(kPaints[s]), EscapeHtml(chart.series[s])});
  }
  DrawLegend(svg, left, 4, entries);
}

// The number of neighbours of which one label has room, in steps of `step` pixels.
size_t LabelStride(const std::vector<BarGroup>& groups, double step) {
  size_t longest = 1;
  for (const BarGroup& group : groups) longest = std::max(longest, group.label.size());
  const double room = (static_cast<double>(longest) + 1) * kLabelCharacter;
  return std::max<size_t>(1, static_cast<size_t>(room / step + 0.999));
}

}  // namespace

std::string StandingBars(const BarChart& chart) {
  constexpr double kLeft = 84;
  constexpr double kPlot = 150;
  constexpr double kBottom = kLegendHeight + kPlot + 6;
  constexpr double kWidestGroup = 90;
  const uint64_t greatest = Greatest(chart);
  Svg svg(kWidth, kBottom + 26, chart.title, chart.description);
  DrawSeries(svg, chart, kLeft);
  for (const int half : {0, 1, 2}) {
    const double y = kBottom - kPlot * half / 2;
    svg.Line(kLeft, y, kWidth - 8, y, half == 0 ? "axis" : "grid");
    const uint64_t value = half == 0 ? 0 : half == 1 ? greatest / 2 : greatest;
    svg.Text(kLeft - 8, y + 4, chart.format(value), "label end");
  }
  const double step =
      std::min(kWidestGroup, (kWidth - 8 - kLeft) / static_cast<double>(chart.groups.size()));
  const size_t stride = LabelStride(chart.groups, step);
  const double gap = std::min(6.0, step / 5);
  const double bar = (step - gap) / static_cast<double>(chart.series.size());
  for (size_t i = 0; i < chart.groups.size(); ++i) {
    const BarGroup& group = chart.groups[i];
    const double left = kLeft + step * static_cast<double>(i);
    for (size_t s = 0; s < group.values.size(); ++s) {
      const double height = kPlot * Share(group.values[s], greatest);
      svg.Rect({left + gap / 2 + bar * static_cast<double>(s), kBottom - height, bar, height},
               kPaints[s], Tip(chart, group, s));
    }
    if (i % stride == 0) svg.Text(left + step / 2, kBottom + 17, group.label, "label middle");
  }
  return svg.Finish();
}

std::string LyingBars(const BarChart& chart) {
  constexpr double kLeft = 200;
  constexpr double kRight = 120;  // for the values
  constexpr double kBar = 13;
  const double row = kBar * static_cast<double>(chart.series.size()) + 10;
  const uint64_t greatest = Greatest(chart);
  Svg svg(kWidth, kLegendHeight + row * static_cast<double>(chart.groups.size()) + 4, chart.title,
          chart.description);
  DrawSeries(svg, chart, kLeft);
  double y = kLegendHeight;
  for (const BarGroup& group : chart.groups) {
    svg.Text(kLeft - 10, y + (row - 10) / 2 + 9, group.label, "label end");
    for (size_t s = 0; s < group.values.size(); ++s) {
      const double top = y + 4 + kBar * static_cast<double>(s);
      const double length = (kWidth - kLeft - kRight) * Share(group.values[s], greatest);
      svg.Rect({kLeft, top, length, kBar - 1}, kPaints[s], Tip(chart, group, s));
      svg.Text(kLeft + length + 6, top + 10, chart.format(group.values[s]), "label");
    }
    y += row;
  }
  svg.Line(kLeft, kLegendHeight, kLeft, y, "axis");
  return svg.Finish();
}

}  // namespace reshard
