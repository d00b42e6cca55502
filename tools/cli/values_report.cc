#include "tools/cli/values_report.h"

#include <fmt/format.h>

#include <variant>

#include "tools/cli/parameter_text.h"
#include "tools/cli/printable.h"
#include "tools/cli/text_format.h"

namespace reshard {
namespace {

std::string ToText(double number) { return fmt::format("{:.6g}", number); }

std::string ToText(const std::optional<Number>& number) {
  if (!number) return "-";
  if (const auto* real = std::get_if<double>(&*number)) return ToText(*real);
  return std::visit([](auto exact) { return fmt::format("{}", exact); }, *number);
}

nlohmann::ordered_json ToJson(const std::optional<Number>& number) {
  if (!number) return nullptr;
  return std::visit([](auto exact) { return nlohmann::ordered_json(exact); }, *number);
}

}  // namespace

std::string ValuesAsText(const std::vector<ParameterStatistics>& parameters) {
  Table table({{"NAME"},
               {"DTYPE"},
               {"SHAPE"},
               {"MIN", Align::kRight},
               {"MAX", Align::kRight},
               {"MEAN", Align::kRight},
               {"NAN", Align::kRight},
               {"INF", Align::kRight}});
  for (const ParameterStatistics& parameter : parameters) {
    std::vector<std::string> row = {PrintableName(parameter.name),
                                    std::string(TypeName(parameter.kind, parameter.dtype)),
                                    ShapeText(parameter.kind, parameter.full_shape)};
    if (const auto& found = parameter.statistics) {
      row.insert(row.end(), {ToText(found->least), ToText(found->greatest),
                             found->mean ? ToText(*found->mean) : "-",
                             fmt::format("{}", found->nans), fmt::format("{}", found->infinities)});
    } else {
      row.insert(row.end(), 5, "-");
    }
    table.AddRow(std::move(row));
  }
  return table.ToText();
}

nlohmann::ordered_json ValuesAsJson(const std::optional<ValueStatistics>& statistics) {
  if (!statistics) return nullptr;
  nlohmann::ordered_json mean;
  if (statistics->mean) mean = *statistics->mean;
  return {{"values", statistics->values},
          {"min", ToJson(statistics->least)},
          {"max", ToJson(statistics->greatest)},
          {"mean", std::move(mean)},
          {"nan", statistics->nans},
          {"inf", statistics->infinities}};
}

}  // namespace reshard
