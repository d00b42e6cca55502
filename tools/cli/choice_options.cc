#include "tools/cli/choice_options.h"

#include <fmt/format.h>

#include "tools/cli/text_format.h"

namespace reshard {

std::vector<CLI::Option*> ChoiceOptions::AddTo(CLI::App& app) {
  return {app.add_option("--include", include_,
                         "Only parameters whose names in the source match a GLOB; may be given "
                         "several times")
              ->type_name("GLOB")
              ->allow_extra_args(false),
          app.add_option("--exclude", exclude_,
                         "And of those none that match a GLOB; may be given several times")
              ->type_name("GLOB")
              ->allow_extra_args(false),
          app.add_option("--rename", rename_file_,
                         "Names in the target: a JSON object {\"old name\": \"new name\", ...}")
              ->type_name("MAP.json")};
}

std::string ChoiceText(uint64_t left_out, uint64_t renamed) {
  if (left_out == 0 && renamed == 0) return "";
  if (left_out == 0) return FormatCount(renamed, "parameter") + " renamed";
  std::string text = FormatCount(left_out, "parameter") + " left out";
  if (renamed > 0) text += fmt::format(", {} renamed", renamed);
  return text;
}

}  // namespace reshard
