// HTML text: escaping, and tables of figures. Pure functions and plain values.
#ifndef RESHARD_TOOLS_CLI_HTML_H_
#define RESHARD_TOOLS_CLI_HTML_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reshard {

// Returns text as HTML or as the value of an attribute between quotes; whatever stands in a name
// stays text. Control characters and bytes that are not UTF-8 come out as PrintableName has them.
std::string EscapeHtml(std::string_view text);

// Returns at most `most` characters of a name, escaped; what is left out in its middle is "…".
std::string ShortName(std::string_view name, size_t most);

// Returns a name as an element that directions of writing do not leave.
std::string NameHtml(std::string_view name);

// These return a number for people that tells programs its exact value:
// <data value="1536">1.5 KiB</data>.
std::string BytesHtml(uint64_t bytes);
std::string CountHtml(uint64_t count);

// A table with a caption. Cells are HTML.
class HtmlTable {
 public:
  // `columns` are texts; all but the first are right-aligned.
  HtmlTable(std::string_view id, std::string_view caption,
            const std::vector<std::string_view>& columns);

  // As many as there are columns.
  void AddRow(const std::vector<std::string>& cells);
  // Returns the element. `folded`: only its caption is seen until somebody opens it; printed whole.
  std::string ToHtml(bool folded) const;

 private:
  std::string id_;
  std::string caption_;
  std::string head_;
  std::string rows_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_HTML_H_
