// HTML text, tables of figures, and pictures. Pure functions and plain values.
#ifndef RESHARD_TOOLS_PAGE_HTML_H_
#define RESHARD_TOOLS_PAGE_HTML_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reshard {

// Returns text as HTML, or as the value of an attribute between quotes. Any name stays text.
// Control characters and bytes that are not UTF-8 come out as in PrintableName.
std::string EscapeHtml(std::string_view text);

// Returns a name as an element that directions of writing do not leave.
std::string NameHtml(std::string_view name);

// These return a number for people that tells programs its exact value:
// <data value="1536">1.5 KiB</data>.
std::string BytesHtml(uint64_t bytes);
std::string CountHtml(uint64_t count);

// Returns a bar: `value` of at most `most`.
std::string BarHtml(uint64_t value, uint64_t most);

// A table with a caption. Cells are HTML.
class HtmlTable {
 public:
  // `columns` are texts; all but the first are right-aligned.
  HtmlTable(std::string_view id, std::string_view caption,
            const std::vector<std::string_view>& columns);

  // As many as there are columns.
  void AddRow(const std::vector<std::string>& cells);
  // Returns the element; a long table scrolls within the page, and is printed whole.
  std::string ToHtml() const;

 private:
  std::string id_;
  std::string caption_;
  std::string head_;
  std::string rows_;
};

// How much room text of so many characters takes at most in the pictures' labels.
inline constexpr double kLabelCharacter = 6.6;

struct SvgRect {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

// One picture, drawn shape by shape. Lengths are CSS pixels. Colours come from the page's style
// sheet by class names, so that they suit light and dark, or are given. A plain value.
class Svg {
 public:
  // `title` and `description` describe the picture to readers who cannot see it. Both are plain
  // text.
  Svg(double width, double height, std::string_view title, std::string_view description);

  // `paint` is attributes: class="..." or fill="...". `tip` is HTML and appears under the pointer;
  // empty: no tip.
  void Rect(const SvgRect& rect, std::string_view paint, std::string_view tip = {});
  void Line(double x1, double y1, double x2, double y2, std::string_view css_class);
  // A line through points, in order.
  void Path(const std::vector<std::pair<double, double>>& points, std::string_view css_class);
  // `text` is HTML; `css_class` may be "end" or "middle", the place of (x, y).
  void Text(double x, double y, std::string_view text, std::string_view css_class);

  // Returns the element.
  std::string Finish() const;

 private:
  double width_;
  double height_;
  std::string head_;
  std::string body_;
};

// An entry of a legend: a sample of the paint and its meaning (HTML).
struct LegendEntry {
  std::string paint;
  std::string text;
};

// Draws entries in a row that begins at (x, y) and is 12 high.
void DrawLegend(Svg& svg, double x, double y, const std::vector<LegendEntry>& entries);

}  // namespace reshard

#endif  // RESHARD_TOOLS_PAGE_HTML_H_
