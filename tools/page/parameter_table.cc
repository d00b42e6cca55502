#include "tools/page/parameter_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace reshard {
namespace {

// "layers.*.wq" for "layers.12.wq". A literal '*' cannot be mistaken: it stays beside a count.
std::string WithoutNumbers(std::string_view name) {
  std::string pattern;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    const bool number =
        !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    pattern.append(number ? "*" : part);
    if (end < name.size()) pattern += '.';
    begin = end + 1;
  }
  return pattern;
}

}  // namespace

std::string ParameterTable::Line::name() const {
  return parameters == 1 ? *first : WithoutNumbers(*first);
}

void ParameterTable::Add(std::string_view name, std::vector<std::string> cells,
                         std::optional<int64_t> stage) {
  rows_.push_back({std::string(name), std::move(cells), stage});
}

std::vector<ParameterTable::Line> ParameterTable::Lines(bool all) const {
  const bool fold = !all && rows_.size() > kScreenRows;
  std::vector<Line> lines;
  std::map<std::pair<std::string, std::vector<std::string>>, size_t> places;
  for (const Row& row : rows_) {
    if (fold) {
      const auto [place, added] =
          places.try_emplace({WithoutNumbers(row.name), row.cells}, lines.size());
      if (!added) {
        Line& line = lines[place->second];
        ++line.parameters;
        if (row.stage) line.stages.insert(*row.stage);
        continue;
      }
    }
    lines.push_back({&row.name, &row.cells, 1, {}});
    if (row.stage) lines.back().stages.insert(*row.stage);
  }
  return lines;
}

std::string ParameterTable::ToText(bool all) const {
  std::vector<Table::Column> columns = {{"NAME"}};
  columns.insert(columns.end(), columns_.begin(), columns_.end());
  const bool has_stages = !rows_.empty() && rows_.front().stage.has_value();
  if (has_stages) columns.push_back({"STAGE", Align::kRight});
  Table table(std::move(columns));
  const std::vector<Line> lines = Lines(all);
  for (const Line& line : lines) {
    const std::string name = PrintableName(line.name());
    std::vector<std::string> cells = {
        line.parameters == 1 ? name : fmt::format("{} x {}", name, line.parameters)};
    cells.insert(cells.end(), line.cells->begin(), line.cells->end());
    if (has_stages) cells.push_back(FormatRanks({line.stages.begin(), line.stages.end()}));
    table.AddRow(std::move(cells));
  }
  std::string text = table.ToText();
  if (lines.size() < rows_.size()) {
    text += fmt::format("  names that differ only in numbers are one line; --long has all {}\n",
                        rows_.size());
  }
  return text;
}

}  // namespace reshard
