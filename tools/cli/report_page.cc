#include "tools/cli/report_page.h"

#include <fmt/format.h>

#include <string_view>

#include "reshard/version.h"
#include "tools/cli/html.h"
#include "tools/cli/report_sections.h"

namespace reshard {
namespace {

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
