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

// The columns are NAME, the given ones, and STAGE, if a row has another stage than 0. A plain
// value.
class ParameterTable {
 public:
  // A longer table does not fit a screen.
  static constexpr size_t kScreenRows = 40;

  explicit ParameterTable(std::vector<Table::Column> columns) : columns_(std::move(columns)) {}

  // If the table exceeds a screen, an optimizer's copies of a parameter (ParameterOfState) share
  // the parameter's line. They may differ from it only in these columns.
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
    // the names of copies such as "adam_m", and their numbers
    std::map<std::string, uint64_t> copies = {};

    // Of alike ones "layers.*.wq.weight".
    std::string name() const;
    // "layers.*.wq.weight x 36 +adam_m, adam_v"
    std::string words() const;
  };

  // Returns a line for each parameter. If there are more than kScreenRows, and `all` is not set,
  // similar parameters share a line, in the order of their first ones. Their names differ only in
  // numbers, and their cells are equal.
  std::vector<Line> Lines(bool all) const;

  // Returns the lines, such as "layers.*.wq.weight x 36", with all stages.
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
