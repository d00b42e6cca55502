#include "tools/cli/timeline_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/cli/html.h"
#include "tools/cli/svg.h"
#include "tools/cli/text_format.h"

namespace reshard {
namespace {

using SampleMember = uint64_t TimelineSample::*;

struct Curve {
  SampleMember value;
  std::string_view name;
  std::string_view css_class;
};

constexpr Curve kBytes[] = {{&TimelineSample::bytes_read, "read", "line l0"},
                            {&TimelineSample::bytes_gathered, "gathered", "line l1"},
                            {&TimelineSample::bytes_written, "written", "line l2"}};
constexpr Curve kMemory[] = {{&TimelineSample::memory, "held", "line l0"}};

// A picture over time, with the phases as bands.
class TimePlot {
 public:
  TimePlot(const Timeline& timeline, uint64_t greatest, std::string_view title)
      : timeline_(timeline),
        greatest_(std::max<uint64_t>(greatest, 1)),
        seconds_(std::max(timeline.phases.empty() ? 0 : timeline.phases.back().end_seconds, 1e-6)),
        svg_(kWidth, kBottom + 26, title, "Time goes to the right; bands are phases of the run") {
    DrawPhases();
    for (uint64_t part = 0; part <= 2; ++part) {
      const uint64_t value = part == 2 ? greatest_ : greatest_ / 2 * part;
      svg_.Line(kLeft, Y(value), kRight, Y(value), part == 0 ? "axis" : "grid");
      svg_.Text(kLeft - 8, Y(value) + 4, FormatBytes(value), "label end");
      const double at = seconds_ * static_cast<double>(part) / 2;
      svg_.Text(X(at), kBottom + 17, FormatSeconds(at),
                part == 0   ? "label"
                : part == 1 ? "label middle"
                            : "label end");
    }
  }

  void Draw(const Curve& curve) {
    std::vector<std::pair<double, double>> points;
    for (const TimelineSample& sample : timeline_.samples) {
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
  static constexpr double kWidth = 960;
  static constexpr double kLeft = 84;
  static constexpr double kRight = kWidth - 8;
  static constexpr double kTop = 48;
  static constexpr double kBottom = 208;

  double X(double seconds) const { return kLeft + (kRight - kLeft) * seconds / seconds_; }
  double Y(uint64_t value) const {
    return kBottom - (kBottom - kTop) * static_cast<double>(value) / static_cast<double>(greatest_);
  }

  void DrawPhases() {
    bool shaded = false;
    for (const TimelinePhase& phase : timeline_.phases) {
      const double x = X(phase.begin_seconds);
      const double width = X(phase.end_seconds) - x;
      svg_.Rect({x, kTop - 18, width, kBottom - kTop + 18},
                shaded ? "class=\"band\"" : "class=\"bare\"",
                fmt::format("{}: {} to {}", EscapeHtml(phase.name),
                            FormatSeconds(phase.begin_seconds), FormatSeconds(phase.end_seconds)));
      shaded = !shaded;
      if (width > kLabelCharacter * static_cast<double>(phase.name.size() + 1)) {
        svg_.Text(x + 3, kTop - 6, EscapeHtml(phase.name), "label");
      }
    }
  }

  void AddLegend(std::string paint, std::string text) {
    legend_.push_back({std::move(paint), std::move(text)});
  }

  const Timeline& timeline_;
  const uint64_t greatest_;
  const double seconds_;
  Svg svg_;
  std::vector<LegendEntry> legend_;
};

// At most this many samples as rows, evenly chosen; the last one always.
std::string SampleTable(const Timeline& timeline) {
  constexpr size_t kMost = 32;
  HtmlTable table("timeline", "Bytes and memory over time",
                  {"", "read", "gathered", "written", "memory"});
  const size_t count = timeline.samples.size();
  const size_t rows = std::min(count, kMost);
  for (size_t i = 0; i < rows; ++i) {
    const size_t at = rows == 1 ? 0 : i * (count - 1) / (rows - 1);
    const TimelineSample& sample = timeline.samples[at];
    table.AddRow({FormatSeconds(sample.seconds), BytesHtml(sample.bytes_read),
                  BytesHtml(sample.bytes_gathered), BytesHtml(sample.bytes_written),
                  BytesHtml(sample.memory)});
  }
  return table.ToHtml(true);
}

std::string PhaseTable(const Timeline& timeline) {
  HtmlTable table("phases", "Phases", {"", "from", "to", "time"});
  for (const TimelinePhase& phase : timeline.phases) {
    table.AddRow({EscapeHtml(phase.name), FormatSeconds(phase.begin_seconds),
                  FormatSeconds(phase.end_seconds),
                  FormatSeconds(phase.end_seconds - phase.begin_seconds)});
  }
  return table.ToHtml(false);
}

}  // namespace

std::string TimelineSection(const Timeline& timeline, const MemoryMarks& memory) {
  uint64_t most_bytes = 0;
  uint64_t most_memory = memory.limit;
  for (const TimelineSample& sample : timeline.samples) {
    for (const Curve& curve : kBytes) most_bytes = std::max(most_bytes, sample.*curve.value);
    most_memory = std::max(most_memory, sample.memory);
  }
  std::string out = "<section>\n<h2>How the run went</h2>\n" + PhaseTable(timeline);
  if (timeline.samples.empty()) {
    return out + "<p>Nothing was written that could be watched.</p>\n</section>\n";
  }
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
