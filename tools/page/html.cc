#include "tools/page/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/page/text_format.h"

namespace reshard {
namespace {

// Escapes the characters of markup.
std::string EscapeMarkup(std::string_view text) {
  constexpr std::string_view kMarkup = "&<>\"'";
  constexpr std::string_view kEscapes[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  std::string out;
  for (const char c : text) {
    const size_t place = kMarkup.find(c);
    if (place == kMarkup.npos) {
      out += c;
    } else {
      out += kEscapes[place];
    }
  }
  return out;
}

// The same text on every machine: at most one decimal.
std::string Rounded(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

}  // namespace

std::string EscapeHtml(std::string_view text) { return EscapeMarkup(PrintableName(text)); }

std::string NameHtml(std::string_view name) {
  return fmt::format("<bdi><code>{}</code></bdi>", name.empty() ? "(empty)" : EscapeHtml(name));
}

std::string BytesHtml(uint64_t bytes) {
  return fmt::format(R"(<data value="{}">{}</data>)", bytes, FormatBytes(bytes));
}

std::string CountHtml(uint64_t count) {
  return fmt::format(R"(<data value="{}">{}</data>)", count, count);
}

std::string BarHtml(uint64_t value, uint64_t most) {
  return fmt::format(R"(<meter value="{}" max="{}"></meter>)", value, std::max<uint64_t>(most, 1));
}

HtmlTable::HtmlTable(std::string_view id, std::string_view caption,
                     const std::vector<std::string_view>& columns)
    : id_(id), caption_(EscapeHtml(caption)) {
  for (const std::string_view column : columns) {
    head_ += fmt::format(R"(<th scope="col">{}</th>)", EscapeHtml(column));
  }
}

void HtmlTable::AddRow(const std::vector<std::string>& cells) {
  rows_ += "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    rows_ += i == 0 ? fmt::format(R"(<th scope="row">{}</th>)", cells[i])
                    : fmt::format("<td>{}</td>", cells[i]);
  }
  rows_ += "</tr>\n";
}

std::string HtmlTable::ToHtml() const {
  return fmt::format(
      "<div class=\"table\"><table id=\"{}\"><caption>{}</caption>\n"
      "<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
      id_, caption_, head_, rows_);
}

Svg::Svg(double width, double height, std::string_view title, std::string_view description)
    : width_(width),
      height_(height),
      head_(fmt::format("<title>{}</title><desc>{}</desc>\n", EscapeHtml(title),
                        EscapeHtml(description))) {}

void Svg::Rect(const SvgRect& rect, std::string_view paint, std::string_view tip) {
  body_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" {})", Rounded(rect.x),
                       Rounded(rect.y), Rounded(rect.width), Rounded(rect.height), paint);
  body_ += tip.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", tip);
}

void Svg::Line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n",
                       Rounded(x1), Rounded(y1), Rounded(x2), Rounded(y2), css_class);
}

void Svg::Path(const std::vector<std::pair<double, double>>& points, std::string_view css_class) {
  body_ += fmt::format("<polyline class=\"{}\" points=\"", css_class);
  for (const auto& [x, y] : points) body_ += fmt::format("{},{} ", Rounded(x), Rounded(y));
  body_ += "\"/>\n";
}

void Svg::Text(double x, double y, std::string_view text, std::string_view css_class) {
  body_ += fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", Rounded(x), Rounded(y),
                       css_class, text);
}

std::string Svg::Finish() const {
  return fmt::format(
      "<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">{2}{3}</svg>\n",
      Rounded(width_), Rounded(height_), head_, body_);
}

void DrawLegend(Svg& svg, double x, double y, const std::vector<LegendEntry>& entries) {
  for (const LegendEntry& entry : entries) {
    svg.Rect({x, y, 12, 12}, entry.paint);
    svg.Text(x + 17, y + 10, entry.text, "label");
    x += 17 + kLabelCharacter * static_cast<double>(entry.text.size()) + 18;
  }
}

}  // namespace reshard
