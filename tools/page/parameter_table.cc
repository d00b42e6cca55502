#include "tools/page/parameter_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "reshard/parameters.h"

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

std::string ParameterTable::Line::words() const {
  std::string text = PrintableName(name());
  if (parameters > 1) text += fmt::format(" x {}", parameters);
  std::string_view separator = " +";
  for (const auto& [group, count] : copies) {
    text += fmt::format("{}{}", separator, group);
    if (count != parameters) text += fmt::format(" ({})", count);
    separator = ", ";
  }
  return text;
}

void ParameterTable::Add(std::string_view name, std::vector<std::string> cells,
                         std::optional<int64_t> stage) {
  rows_.push_back({std::string(name), std::move(cells), stage});
}

std::vector<ParameterTable::Line> ParameterTable::Lines(bool all) const {
  const bool fold = !all && rows_.size() > kScreenRows;
  std::vector<Line> lines;
  std::map<std::pair<std::string, std::vector<std::string>>, size_t> places;
  const auto key = [this](std::string_view name, std::vector<std::string> cells, bool of_copies) {
    if (of_copies) {
      for (const size_t column : *own_columns_) cells[column].clear();
    }
    return std::pair(WithoutNumbers(name), std::move(cells));
  };
  for (const Row& row : rows_) {
    if (fold) {
      const auto [place, added] = places.try_emplace(key(row.name, row.cells, false), lines.size());
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
  if (!fold || !own_columns_) return lines;
  places.clear();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (OptimizerGroup(*lines[i].first).empty()) {
      places.try_emplace(key(*lines[i].first, *lines[i].cells, true), i);
    }
  }
  // A copy goes to the line of its parameter; a line that is gone has no parameters.
  for (Line& line : lines) {
    const std::string_view name = *line.first;
    const std::string_view parameter = ParameterOfState(name);
    if (parameter.empty()) continue;
    const auto place = places.find(key(parameter, *line.cells, true));
    if (place == places.end()) continue;
    Line& of_parameter = lines[place->second];
    const std::string_view group = name.substr(0, name.size() - parameter.size() - 1);
    of_parameter.copies[std::string(group)] += std::exchange(line.parameters, 0);
    of_parameter.stages.insert(line.stages.begin(), line.stages.end());
  }
  std::erase_if(lines, [](const Line& line) { return line.parameters == 0; });
  return lines;
}

std::string ParameterTable::ToText(bool all) const {
  std::vector<Table::Column> columns = {{"NAME"}};
  columns.insert(columns.end(), columns_.begin(), columns_.end());
  const bool has_stages = std::any_of(rows_.begin(), rows_.end(),
                                      [](const Row& row) { return row.stage.value_or(0) != 0; });
  if (has_stages) columns.push_back({"STAGE", Align::kRight});
  Table table(std::move(columns));
  const std::vector<Line> lines = Lines(all);
  for (const Line& line : lines) {
    std::vector<std::string> cells = {line.words()};
    cells.insert(cells.end(), line.cells->begin(), line.cells->end());
    if (has_stages) cells.push_back(FormatRanks({line.stages.begin(), line.stages.end()}));
    table.AddRow(std::move(cells));
  }
  std::string text = table.ToText();
  if (lines.size() < rows_.size()) {
    const bool copies = std::any_of(lines.begin(), lines.end(),
                                    [](const Line& line) { return !line.copies.empty(); });
    text += fmt::format("  {}; --long lists all {}\n",
                        copies ? "x N: names differ in numbers; +: optimizer's copies"
                               : "names that differ only in numbers share a line",
                        rows_.size());
  }
  return text;
}

}  // namespace reshard
