#include "tools/cli/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "reshard/version.h"
#include "tools/cli/charts.h"
#include "tools/cli/html.h"
#include "tools/cli/option_words.h"
#include "tools/cli/text_format.h"

namespace reshard {
namespace {

constexpr size_t kLabelLength = 26;  // characters of a name in a picture
constexpr size_t kMostShares = 16;   // rows of a picture; the table has more
constexpr size_t kMostRows = 100;    // of a table

std::string Figure(const std::string& svg, std::string_view caption) {
  return fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", svg, caption);
}

std::string Section(std::string_view heading, std::string_view content) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", heading, content);
}

std::string RanksOfSide(const LayoutSide& side) {
  const int64_t ranks = side.stages * side.devices_per_stage;
  const std::string how =
      side.stages == 1
          ? FormatCount(static_cast<uint64_t>(ranks), "rank")
          : fmt::format("{} ranks: {} stages of {}", ranks, side.stages,
                        FormatCount(static_cast<uint64_t>(side.devices_per_stage), "device"));
  return side.strategy.empty() ? how + ", full tensors" : how + ", " + NameHtml(side.strategy);
}

std::string StageWords(const FileBin& bin) {
  return bin.first == bin.last ? fmt::format("stage {}", bin.first)
                               : fmt::format("stages {}-{}", bin.first, bin.last);
}

using Words = std::string (*)(const FileBin&);

std::string FileTable(const std::vector<FileBin>& bins, std::string_view id,
                      std::string_view caption, std::string_view content, Words words) {
  HtmlTable table(id, caption, {"", "files", "bytes", "smallest", "largest", content});
  for (const FileBin& bin : bins) {
    table.AddRow({words(bin), CountHtml(bin.files), BytesHtml(bin.file_bytes), BytesHtml(bin.least),
                  BytesHtml(bin.most), BytesHtml(bin.content_bytes)});
  }
  return table.ToHtml(true);
}

bool InBins(const LayoutSide& side) {
  return side.by_rank.front().first != side.by_rank.front().last;
}

// Each bar is the mean of the ranks of a bin.
std::string RankBars(const LayoutSide& side, std::string_view title, bool copied) {
  BarChart chart{title, "A bar for each rank, or for ranks that lie together", {}, {}, FormatBytes};
  chart.series = {InBins(side) ? "file size, mean" : "file size"};
  if (copied) chart.series.push_back(InBins(side) ? "copied from it, mean" : "copied from it");
  for (const FileBin& bin : side.by_rank) {
    BarGroup group{RankNumbers(bin), RankWords(bin), {}};
    if (bin.least != bin.most) {
      group.tip += fmt::format(" ({} to {})", FormatBytes(bin.least), FormatBytes(bin.most));
    }
    const uint64_t files = std::max<uint64_t>(bin.files, 1);
    group.values.push_back(bin.file_bytes / files);
    if (copied) group.values.push_back(bin.content_bytes / files);
    chart.groups.push_back(std::move(group));
  }
  return StandingBars(chart);
}

std::string StageBars(const LayoutSide& side, std::string_view title) {
  BarChart chart{title, "A bar for each pipeline stage", {"bytes of its files"}, {}, FormatBytes};
  for (const FileBin& bin : side.by_stage) {
    chart.groups.push_back({StageWords(bin), StageWords(bin), {bin.file_bytes}});
  }
  return LyingBars(chart);
}

std::string SharesByName(const std::vector<ByteShare>& shares, bool planned, bool prefix) {
  const std::string_view kind = prefix ? "prefix" : "dtype";
  const std::string title = fmt::format("Bytes by {}", kind);
  BarChart chart{title, "A row for each, the largest first", {}, {}, FormatBytes};
  if (planned) chart.series.push_back("full tensors");
  chart.series.push_back(planned ? "in all target files" : "in all files");
  for (size_t i = 0; i < std::min(shares.size(), kMostShares); ++i) {
    const ByteShare& share = shares[i];
    const bool unnamed = share.name.empty();
    BarGroup group{unnamed ? "no dot" : ShortName(share.name, kLabelLength),
                   unnamed ? "no dot in the name" : EscapeHtml(share.name),
                   {}};
    if (planned) group.values.push_back(share.full_bytes);
    group.values.push_back(share.stored_bytes);
    chart.groups.push_back(std::move(group));
  }
  const auto largest = [&shares](size_t most, std::string_view before, std::string_view after) {
    if (shares.size() <= most) return std::string();
    return fmt::format("{} largest {} of {}{}", before, most, shares.size(), after);
  };
  std::vector<std::string_view> columns = {"", "in all files"};
  if (planned) columns = {"", "parameters", "full tensors", "in all target files"};
  HtmlTable table(fmt::format("by-{}", kind), title + largest(kMostRows, ", the", ""), columns);
  for (size_t i = 0; i < std::min(shares.size(), kMostRows); ++i) {
    const ByteShare& share = shares[i];
    std::vector<std::string> cells = {share.name.empty() && prefix ? "no dot in the name"
                                                                   : NameHtml(share.name)};
    if (planned) {
      cells.push_back(CountHtml(share.parameters));
      cells.push_back(BytesHtml(share.full_bytes));
    }
    cells.push_back(BytesHtml(share.stored_bytes));
    table.AddRow(cells);
  }
  return Figure(LyingBars(chart), largest(kMostShares, "The", ".")) + table.ToHtml(true);
}

std::string GridWords(const DeviceGrid& grid) {
  if (grid.stages.empty()) return "No rank of this side has it.";
  std::string out = grid.shards == 1 ? "Not cut" : fmt::format("Cut {}", FormatList(grid.cuts));
  out += fmt::format(", shards of {}", FormatList(grid.shard_shape));
  out += grid.replicas == 1 ? ", each on one rank"
                            : fmt::format(", each on up to {} ranks", grid.replicas);
  out += grid.stages.size() == 1 ? fmt::format(" of stage {}.", grid.stages[0])
                                 : fmt::format(" of the stages {}.", FormatRanks(grid.stages));
  if (grid.ranks_per_cell > 1) {
    out += fmt::format(
        " A square stands for {} ranks, from the one named on; it shows what the first has.",
        grid.ranks_per_cell);
  }
  return out;
}

// No address is ever loaded: the policy says so to the browser too.
constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
)";

constexpr std::string_view kStyle = R"(<style>
:root { --bg: #ffffff; --fg: #1b1f24; --muted: #59636e; --line: #d1d9e0; --faint: #eaeef2;
  --s0: #0969da; --s1: #bc4c00; --s2: #1a7f37; --heat: #0550ae; --hollow: #eef1f4; }
@media (prefers-color-scheme: dark) {
  :root { --bg: #0d1117; --fg: #e6edf3; --muted: #9198a1; --line: #3d444d; --faint: #21262d;
    --s0: #4493f8; --s1: #f0883e; --s2: #3fb950; --heat: #388bfd; --hollow: #161b22; }
}
body { margin: 0 auto; max-width: 1000px; padding: 24px 20px 60px; background: var(--bg);
  color: var(--fg); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 20px; margin: 40px 0 8px; padding-bottom: 4px; border-bottom: 1px solid var(--line); }
h3 { font-size: 16px; margin: 24px 0 4px; }
h4 { font-size: 14px; margin: 14px 0 4px; color: var(--muted); }
p, figcaption { margin: 4px 0 8px; max-width: 75ch; }
figcaption { color: var(--muted); font-size: 13px; }
code { font: 0.92em ui-monospace, monospace; overflow-wrap: anywhere; }
figure { margin: 8px 0 12px; overflow-x: auto; }
svg { display: block; max-width: 100%; height: auto; }
text { font: 12px system-ui, sans-serif; fill: var(--fg); }
.label { font-size: 11px; fill: var(--muted); }
.small { font-size: 10.5px; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.on { fill: #14181d; }
.onheat { fill: #ffffff; }
.s0 { fill: var(--s0); }
.s1 { fill: var(--s1); }
.heat { fill: var(--heat); }
.line { fill: none; stroke-width: 2; }
.l0 { stroke: var(--s0); fill: var(--s0); }
.l1 { stroke: var(--s1); fill: var(--s1); }
.l2 { stroke: var(--s2); fill: var(--s2); }
.line.l0, .line.l1, .line.l2 { fill: none; }
.dashed { stroke-dasharray: 6 4; }
.band { fill: var(--faint); }
.bare { fill: none; pointer-events: all; }
.cell { stroke: none; }
.hollow { fill: var(--hollow); stroke: var(--line); stroke-width: 1; }
.axis { stroke: var(--muted); stroke-width: 1; }
.grid { stroke: var(--faint); stroke-width: 1; }
rect:hover { stroke: var(--fg); stroke-width: 1.5; }
details { margin: 4px 0 12px; }
summary { cursor: pointer; color: var(--muted); font-size: 13px; }
table { border-collapse: collapse; margin: 6px 0 12px; font-size: 13px;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--muted); }
th, td { padding: 2px 14px 2px 0; border-bottom: 1px solid var(--faint); text-align: right;
  vertical-align: top; }
th:first-child { text-align: left; }
th { font-weight: 500; }
thead th { color: var(--muted); }
#totals caption { display: none; }
#totals td { text-align: left; }
#flow td:last-child { max-width: 46ch; overflow-wrap: anywhere; }
footer { margin-top: 48px; color: var(--muted); font-size: 13px; }
@media print {
  body { max-width: none; padding: 0; font-size: 12px; }
  section { break-before: auto; }
  figure, tr { break-inside: avoid; }
  h2, h3, h4 { break-after: avoid; }
  rect, svg { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  details::details-content { content-visibility: visible; display: block; }
}
</style>
)";

std::string TotalsSection(const LayoutReport& report) {
  HtmlTable table("totals", "Totals", {"", ""});
  table.AddRow({report.planned ? "source" : "files",
                report.planned ? RanksOfSide(report.source)
                               : FormatCount(report.plan.sources.size(), "file")});
  if (report.planned) table.AddRow({"target", RanksOfSide(report.target)});
  table.AddRow({"parameters", CountHtml(report.plan.parameters)});
  if (report.planned) {
    table.AddRow({"bytes read", BytesHtml(report.plan.bytes_read)});
    table.AddRow({"bytes written", BytesHtml(report.plan.bytes_written)});
    table.AddRow({"runs", CountHtml(report.plan.runs)});
    table.AddRow({"shortest run", BytesHtml(report.plan.shortest_run)});
    table.AddRow({"longest run", BytesHtml(report.plan.longest_run)});
  } else {
    uint64_t bytes = 0;
    for (const SourceFileSummary& file : report.plan.sources) bytes += file.size;
    table.AddRow({"bytes", BytesHtml(bytes)});
  }
  return Section("Totals", table.ToHtml(false));
}

std::string DevicesSection(const LayoutReport& report) {
  if (report.parameters.empty()) return {};
  std::string out =
      "<p>A square is a rank. Its hue tells the shard, its lightness the replica: ranks of equal "
      "colour hold the same bytes.</p>\n";
  for (const ParameterGrids& parameter : report.parameters) {
    out += fmt::format("<h3>{}</h3>\n<p>{} {}, {}</p>\n", NameHtml(parameter.name),
                       DTypeName(parameter.dtype), FormatList(parameter.shape),
                       BytesHtml(parameter.bytes));
    out += "<h4>Before</h4>\n" + Figure(DeviceGridChart(report.source, parameter.source,
                                                        "Source ranks of " + parameter.name),
                                        GridWords(parameter.source));
    out += "<h4>After</h4>\n" + Figure(DeviceGridChart(report.target, parameter.target,
                                                       "Target ranks of " + parameter.name),
                                       GridWords(parameter.target));
  }
  return Section("Who holds what of a parameter", out);
}

std::string FlowSection(const LayoutReport& report) {
  if (!report.planned) return {};
  const size_t columns = report.target.by_rank.size();
  HtmlTable table("flow", "Sources of each target rank", {"", "bytes", "from", "source ranks"});
  for (size_t j = 0; j < columns; ++j) {
    uint64_t bytes = 0;
    uint64_t fed_by = 0;
    std::vector<int64_t> ranks;
    for (size_t i = 0; i < report.source.by_rank.size(); ++i) {
      const uint64_t share = report.flow[i * columns + j];
      if (share == 0) continue;
      bytes += share;
      ++fed_by;
      const FileBin& bin = report.source.by_rank[i];
      for (int64_t rank = bin.first; rank <= bin.last; ++rank) ranks.push_back(rank);
    }
    table.AddRow({RankWords(report.target.by_rank[j]), BytesHtml(bytes),
                  FormatCount(fed_by, InBins(report.source) ? "group" : "rank"),
                  FormatRanks(ranks)});
  }
  std::string words = "Content bytes, headers of the files left out.";
  if (InBins(report.source) || InBins(report.target)) {
    words += " Ranks that lie together are added up.";
  }
  return Section("Which source ranks feed which target ranks",
                 Figure(FlowChart(report), words) + table.ToHtml(true));
}

std::string BytesSection(const LayoutReport& report) {
  const std::string_view from = "copied from them";
  std::string out = "<h3>By rank</h3>\n";
  out += Figure(RankBars(report.source, "Bytes by source rank", report.planned),
                report.planned ? "Source. A rank that feeds several replicas is copied from "
                                 "several times."
                               : "");
  out += FileTable(report.source.by_rank, "source-ranks", "Files of the source ranks",
                   report.planned ? from : "content", RankWords);
  if (report.planned) {
    out += Figure(RankBars(report.target, "Bytes by target rank", false), "Target.");
    out += FileTable(report.target.by_rank, "target-ranks", "Files of the target ranks", "content",
                     RankWords);
    out += "<h3>By stage</h3>\n";
    out += Figure(StageBars(report.source, "Bytes by source stage"), "Source.");
    out += FileTable(report.source.by_stage, "source-stages", "Files of the source stages", from,
                     StageWords);
    out += Figure(StageBars(report.target, "Bytes by target stage"), "Target.");
    out += FileTable(report.target.by_stage, "target-stages", "Files of the target stages",
                     "content", StageWords);
  }
  out += "<h3>By dtype</h3>\n" + SharesByName(report.dtypes, report.planned, false);
  out += "<h3>By prefix of the parameters' names</h3>\n" +
         SharesByName(report.prefixes, report.planned, true);
  return Section("Bytes", out);
}

std::string RunsSection(const LayoutReport& report) {
  if (report.runs.empty()) return {};
  BarChart count{"Runs by length",
                 "A bar for each length from one power of two to the next",
                 {"runs"},
                 {},
                 [](uint64_t runs) { return fmt::format("{}", runs); }};
  BarChart bytes{"Bytes by length of runs", count.description, {"bytes in them"}, {}, FormatBytes};
  HtmlTable table("runs", "Runs by length", {"", "to", "runs", "bytes"});
  for (const RunBin& bin : report.runs) {
    const std::string least = FormatBytes(bin.shortest);
    const std::string tip = fmt::format("runs of {} and more", least);
    count.groups.push_back({least, tip, {bin.runs}});
    bytes.groups.push_back({least, tip, {bin.bytes}});
    table.AddRow({BytesHtml(bin.shortest), BytesHtml(bin.longest), CountHtml(bin.runs),
                  BytesHtml(bin.bytes)});
  }
  return Section("Run lengths",
                 "<p>A run is a stretch of bytes that is copied as one. Long runs copy as fast as "
                 "the disks go, "
                 "very short ones cost time each.</p>\n" +
                     Figure(StandingBars(count), "") + Figure(StandingBars(bytes), "") +
                     table.ToHtml(true));
}

std::string WarningsSection(const std::vector<Warning>& warnings) {
  if (warnings.empty()) return {};
  std::string out = "<ul>\n";
  for (const Warning& warning : InOptionWords(warnings)) {
    out += fmt::format("<li>{}</li>\n", EscapeHtml(warning.message));
  }
  return Section("Warnings", out + "</ul>\n");
}

}  // namespace

std::string ReportPage(const LayoutReport& report, const std::string& source,
                       std::string_view run) {
  std::string page(kHead);
  const std::string_view title = run.empty() ? "Layout report" : "Conversion report";
  page += fmt::format("<title>{}: {}</title>\n", title, EscapeHtml(source));
  page += kStyle;
  page += fmt::format("</head>\n<body>\n<main>\n<h1>{}</h1>\n<p>{}</p>\n", title, NameHtml(source));
  page += TotalsSection(report);
  page += WarningsSection(report.plan.warnings);
  page += run;
  page += DevicesSection(report);
  page += FlowSection(report);
  page += BytesSection(report);
  page += RunsSection(report);
  page += fmt::format("</main>\n<footer>reshard {}</footer>\n</body>\n</html>\n", kVersion);
  return page;
}

}  // namespace reshard
