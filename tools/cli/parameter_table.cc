#include "tools/cli/parameter_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

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

void ParameterTable::Add(std::string_view name, std::vector<std::string> cells, int64_t stage) {
  rows_.push_back({std::string(name), std::move(cells), stage});
}

std::string ParameterTable::ToText(bool all) const {
  struct Alike {
    const Row* first;
    uint64_t parameters;
    std::set<int64_t> stages;
  };
  const bool fold = !all && rows_.size() > kScreenRows;
  std::vector<Alike> lines;  // in the order of their first parameters
  std::map<std::pair<std::string, std::vector<std::string>>, size_t> places;
  for (const Row& row : rows_) {
    if (fold) {
      const auto [place, added] =
          places.try_emplace({WithoutNumbers(row.name), row.cells}, lines.size());
      if (!added) {
        ++lines[place->second].parameters;
        lines[place->second].stages.insert(row.stage);
        continue;
      }
    }
    lines.push_back({&row, 1, {row.stage}});
  }
  std::vector<Table::Column> columns = {{"NAME"}};
  columns.insert(columns.end(), columns_.begin(), columns_.end());
  columns.push_back({"STAGE", Align::kRight});
  Table table(std::move(columns));
  for (const Alike& line : lines) {
    const bool one = line.parameters == 1;
    std::vector<std::string> cells = {
        one ? PrintableName(line.first->name)
            : fmt::format("{} x {}", PrintableName(WithoutNumbers(line.first->name)),
                          line.parameters)};
    cells.insert(cells.end(), line.first->cells.begin(), line.first->cells.end());
    cells.push_back(FormatRanks({line.stages.begin(), line.stages.end()}));
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
