// ParameterTable: a row for each parameter, or for parameters that are alike, so that a table of
// thousands fits a screen.
#ifndef RESHARD_TOOLS_PAGE_PARAMETER_TABLE_H_
#define RESHARD_TOOLS_PAGE_PARAMETER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/page/text_format.h"

namespace reshard {

// The columns are NAME, those given, and STAGE, where a row has another one than 0. A plain value.
class ParameterTable {
 public:
  // A longer table does not fit a screen.
  static constexpr size_t kScreenRows = 40;

  explicit ParameterTable(std::vector<Table::Column> columns) : columns_(std::move(columns)) {}

  // Of a table that does not fit a screen, an optimizer's copies of a parameter (ParameterOfState)
  // are in the parameter's line where they differ from it in these columns at most.
  void FoldCopies(std::set<size_t> own_columns) { own_columns_ = std::move(own_columns); }

  // `cells` are as many as there are columns. All rows have a stage or none has.
  void Add(std::string_view name, std::vector<std::string> cells,
           std::optional<int64_t> stage = {});
  bool empty() const { return rows_.empty(); }

  // A row of the table: a parameter, or several that are alike. Good as long as the table.
  struct Line {
    const std::string* first = nullptr;  // the name of the first one
    const std::vector<std::string>* cells = nullptr;
    uint64_t parameters = 0;
    std::set<int64_t> stages;
    std::map<std::string, uint64_t> copies = {};  // "adam_m" and how many of them

    // Of alike ones "layers.*.wq.weight".
    std::string name() const;
    // "layers.*.wq.weight x 36 +adam_m, adam_v"
    std::string words() const;
  };

  // Returns a line for each parameter. Where there are more than kScreenRows, and not `all`
  // are asked for, parameters whose names differ only in their numbers, and whose cells are equal,
  // are one line, in the order of their first ones.
  std::vector<Line> Lines(bool all) const;

  // Returns the lines: "layers.*.wq.weight x 36", with the stages of them all.
  std::string ToText(bool all) const;

 private:
  struct Row {
    std::string name;
    std::vector<std::string> cells;
    std::optional<int64_t> stage;
  };

  std::vector<Table::Column> columns_;
  std::vector<Row> rows_;
  std::optional<std::set<size_t>> own_columns_;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_PAGE_PARAMETER_TABLE_H_
