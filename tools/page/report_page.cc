#include "tools/page/report_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/parameters.h"
#include "reshard/strategy.h"
#include "reshard/version.h"
#include "tools/page/charts.h"
#include "tools/page/html.h"
#include "tools/page/parameter_table.h"
#include "tools/page/strategy_words.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

constexpr size_t kMostRows = 200;  // of a table

std::string Figure(const std::string& svg, std::string_view caption) {
  return fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", svg, caption);
}

std::string Section(std::string_view heading, std::string_view content) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", heading, content);
}

// ", the largest 200 of 3000" if not all fit a table.
std::string FirstOf(std::string_view which, size_t all) {
  return all <= kMostRows ? std::string() : fmt::format(", {} {} of {}", which, kMostRows, all);
}

std::string SideHtml(const LayoutSide& side) {
  const int64_t ranks = side.stages * side.devices_per_stage;
  if (side.is_folder) return FormatCount(static_cast<uint64_t>(ranks), "file") + " of full tensors";
  std::string out = FormatCount(static_cast<uint64_t>(ranks), "rank") + ": ";
  out += side.layout ? EscapeHtml(StrategyInWords(*side.layout)) : "full tensors";
  if (!side.strategy.empty()) out += fmt::format(" ({})", NameHtml(side.strategy));
  return out;
}

std::string StageWords(const FileBin& bin) {
  return bin.first == bin.last ? fmt::format("stage {}", bin.first)
                               : fmt::format("stages {}-{}", bin.first, bin.last);
}

using Words = std::string (*)(const FileBin&);

std::string FileTable(const std::vector<FileBin>& bins, std::string_view id,
                      std::string_view caption, std::string_view content, Words words) {
  HtmlTable table(id, caption, {"", "files", "bytes", "smallest", "largest", content, ""});
  uint64_t most = 0;
  for (const FileBin& bin : bins) most = std::max(most, bin.file_bytes);
  for (const FileBin& bin : bins) {
    table.AddRow({words(bin), CountHtml(bin.files), BytesHtml(bin.file_bytes), BytesHtml(bin.least),
                  BytesHtml(bin.most), BytesHtml(bin.content_bytes),
                  BarHtml(bin.file_bytes, most)});
  }
  return table.ToHtml();
}

bool InBins(const LayoutSide& side) {
  return side.by_rank.front().first != side.by_rank.front().last;
}

std::string ShareTable(const std::vector<ByteShare>& shares, bool planned, std::string_view kind) {
  std::vector<std::string_view> columns = {"", "in all files", ""};
  if (planned) columns = {"", "parameters", "full tensors", "in all target files", ""};
  HtmlTable table(fmt::format("by-{}", kind),
                  fmt::format("Bytes by {}{}", kind, FirstOf("the largest", shares.size())),
                  columns);
  for (size_t i = 0; i < std::min(shares.size(), kMostRows); ++i) {
    const ByteShare& share = shares[i];
    std::vector<std::string> cells = {share.name.empty() ? "no dot in the name"
                                                         : NameHtml(share.name)};
    if (planned) {
      cells.push_back(CountHtml(share.parameters));
      cells.push_back(BytesHtml(share.full_bytes));
    }
    cells.push_back(BytesHtml(share.stored_bytes));
    cells.push_back(BarHtml(share.stored_bytes, shares.front().stored_bytes));
    table.AddRow(cells);
  }
  return table.ToHtml();
}

// "2 x 1"
std::string CutWords(const std::vector<int64_t>& cuts) {
  const bool cut = std::any_of(cuts.begin(), cuts.end(), [](int64_t parts) { return parts > 1; });
  return cut ? fmt::format("{}", fmt::join(cuts, " x ")) : "not cut";
}

std::string GridWords(const DeviceGrid& grid) {
  if (grid.stages.empty()) return "No rank of this side has it.";
  std::string out = grid.shards == 1 ? "Not cut" : "Cut " + CutWords(grid.cuts);
  out += fmt::format(", shards of {}", FormatList(grid.shard_shape));
  out += grid.replicas == 1 ? ", each on one rank"
                            : fmt::format(", each on up to {} ranks", grid.replicas);
  out += grid.stages.size() == 1 ? fmt::format(" of stage {}.", grid.stages[0])
                                 : fmt::format(" of the stages {}.", FormatRanks(grid.stages));
  if (grid.ranks_per_cell > 1) {
    out += fmt::format(
        " A square stands for {} ranks, beginning with the named rank; it shows the parts of the "
        "first.",
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
.table { max-height: 460px; overflow: auto; margin: 6px 0 12px; }
table { border-collapse: collapse; font-size: 13px;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--muted); }
th, td { padding: 2px 14px 2px 0; border-bottom: 1px solid var(--faint); text-align: right;
  vertical-align: top; }
th:first-child { text-align: left; }
th { font-weight: 500; }
thead th { color: var(--muted); position: sticky; top: 0; background: var(--bg); }
meter { width: 220px; height: 12px; vertical-align: middle; background: var(--faint); border: 0; }
meter::-webkit-meter-bar { background: var(--faint); border: 0; border-radius: 2px; }
meter::-webkit-meter-optimum-value { background: var(--s0); }
meter::-moz-meter-bar { background: var(--s0); }
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
  .table { max-height: none; }
}
</style>
)";

std::string TotalsSection(const LayoutReport& report) {
  HtmlTable table("totals", "Totals", {"", ""});
  if (!report.step.empty()) table.AddRow({"epoch_step", EscapeHtml(report.step)});
  if (report.planned) {
    table.AddRow({"source", SideHtml(report.source)});
    table.AddRow({"target", SideHtml(report.target)});
  } else {
    table.AddRow({"files", FormatCount(report.plan.sources.size(), "file")});
  }
  table.AddRow({"parameters", CountHtml(report.plan.parameters)});
  uint64_t bytes = 0;
  if (report.planned) {
    for (const ByteShare& share : report.dtypes) bytes += share.full_bytes;
    table.AddRow({"full tensors", BytesHtml(bytes)});
    table.AddRow({"bytes read", BytesHtml(report.plan.bytes_read)});
    table.AddRow({"bytes written", BytesHtml(report.plan.bytes_written)});
    table.AddRow({"runs", CountHtml(report.plan.runs)});
    table.AddRow({"shortest run", BytesHtml(report.plan.shortest_run)});
    table.AddRow({"longest run", BytesHtml(report.plan.longest_run)});
  } else {
    for (const PlanReport::SourceFile& file : report.plan.sources) bytes += file.size;
    table.AddRow({"bytes", BytesHtml(bytes)});
  }
  return Section("Totals", table.ToHtml());
}

// Weights first. If there are many, names that differ only in numbers share a row.
std::string ParametersSection(const LayoutReport& report) {
  std::vector<const ParameterCuts*> sorted;
  for (const ParameterCuts& parameter : report.parameters) sorted.push_back(&parameter);
  std::stable_partition(sorted.begin(), sorted.end(), [](const ParameterCuts* parameter) {
    return OptimizerGroup(parameter->name).empty();
  });
  ParameterTable parameters({});
  for (const ParameterCuts* parameter : sorted) {
    std::vector<std::string> cells = {
        std::string(TypeName(parameter->kind, parameter->dtype)),
        ShapeText(parameter->kind, parameter->dtype, parameter->shape),
        BytesHtml(parameter->bytes)};
    if (report.planned) {
      for (const auto* cuts : {&parameter->source_cuts, &parameter->target_cuts}) {
        cells.push_back(parameter->copied ? "copied" : CutWords(*cuts));
      }
    }
    parameters.Add(parameter->name, std::move(cells));
  }
  const std::vector<ParameterTable::Line> lines = parameters.Lines(false);
  std::vector<std::string_view> columns = {"", "number", "dtype", "shape", "bytes of each"};
  if (report.planned) columns.insert(columns.end(), {"cut before", "cut after"});
  HtmlTable table("parameters",
                  "Parameters, those alike in one row" + FirstOf("the first", lines.size()),
                  columns);
  for (size_t i = 0; i < std::min(lines.size(), kMostRows); ++i) {
    std::vector<std::string> cells = {NameHtml(lines[i].name()), CountHtml(lines[i].parameters)};
    cells.insert(cells.end(), lines[i].cells->begin(), lines[i].cells->end());
    table.AddRow(cells);
  }
  return Section("Parameters", table.ToHtml());
}

std::string DevicesSection(const LayoutReport& report) {
  if (report.drawn.empty()) return {};
  std::string out =
      "<p>A square is a rank. Its hue tells the shard, its lightness the replica: ranks of equal "
      "colour hold the same bytes.</p>\n";
  for (const ParameterGrids& parameter : report.drawn) {
    out += fmt::format(
        "<h3>{}</h3>\n<p>{} {}, {}</p>\n", NameHtml(parameter.name), DTypeName(parameter.dtype),
        ShapeText(parameter.kind, parameter.dtype, parameter.shape), BytesHtml(parameter.bytes));
    out += "<h4>Before</h4>\n" + Figure(DeviceGridChart(report.source, parameter.source,
                                                        "Source ranks of " + parameter.name),
                                        GridWords(parameter.source));
    out += "<h4>After</h4>\n" + Figure(DeviceGridChart(report.target, parameter.target,
                                                       "Target ranks of " + parameter.name),
                                       GridWords(parameter.target));
  }
  return Section("Parts of a parameter by rank", out);
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
                 Figure(FlowChart(report), words) + table.ToHtml());
}

std::string BytesSection(const LayoutReport& report) {
  const std::string_view from = report.planned ? "copied from them" : "content";
  std::string out = FileTable(report.source.by_rank, "source-ranks", "Files of the source ranks",
                              from, RankWords);
  if (report.planned) {
    out += "<p>A rank that feeds several replicas is copied from several times.</p>\n";
    out += FileTable(report.target.by_rank, "target-ranks", "Files of the target ranks", "content",
                     RankWords);
    out += FileTable(report.source.by_stage, "source-stages", "Files of the source stages", from,
                     StageWords);
    out += FileTable(report.target.by_stage, "target-stages", "Files of the target stages",
                     "content", StageWords);
  }
  out += ShareTable(report.dtypes, report.planned, "dtype");
  out += ShareTable(report.prefixes, report.planned, "prefix");
  return Section("Bytes", out);
}

std::string RunsSection(const LayoutReport& report) {
  if (report.runs.empty()) return {};
  HtmlTable table("runs", "Runs by length", {"", "to", "runs", "bytes", ""});
  uint64_t most = 0;
  for (const RunBin& bin : report.runs) most = std::max(most, bin.bytes);
  for (const RunBin& bin : report.runs) {
    table.AddRow({BytesHtml(bin.shortest), BytesHtml(bin.longest), CountHtml(bin.runs),
                  BytesHtml(bin.bytes), BarHtml(bin.bytes, most)});
  }
  return Section("Run lengths",
                 "<p>A run is a stretch of bytes that is copied as one. Long runs copy as fast as "
                 "the disks go; very short ones cost time each.</p>\n" +
                     table.ToHtml());
}

std::string WarningsSection(const std::vector<Warning>& warnings, const WordsOfMessage& words) {
  if (warnings.empty()) return {};
  std::string out = "<ul>\n";
  for (const Warning& warning : warnings) {
    out += fmt::format("<li>{}</li>\n", EscapeHtml(words(warning.message)));
  }
  return Section("Warnings", out + "</ul>\n");
}

}  // namespace

std::string ReportPage(const LayoutReport& report, const WordsOfMessage& words,
                       std::string_view run) {
  std::string page(kHead);
  const std::string_view title = run.empty() ? "Layout report" : "Conversion report";
  page += fmt::format("<title>{}: {}</title>\n", title, EscapeHtml(report.path));
  page += kStyle;
  page += fmt::format("</head>\n<body>\n<main>\n<h1>{}</h1>\n<p>{}</p>\n", title,
                      NameHtml(report.path));
  page += TotalsSection(report);
  page += WarningsSection(report.plan.warnings, words);
  page += run;
  page += ParametersSection(report);
  page += DevicesSection(report);
  page += FlowSection(report);
  page += BytesSection(report);
  page += RunsSection(report);
  page += fmt::format("</main>\n<footer>reshard {}</footer>\n</body>\n</html>\n", kVersion);
  return page;
}

}  // namespace reshard
