#include "tools/cli/shared_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/parameters.h"
#include "src/frontend/read_option.h"
#include "tools/cli/command.h"
#include "tools/cli/messages.h"
#include "tools/page/text_format.h"

namespace reshard {

void NameFilter::AddTo(CLI::App& app, const std::string& include) {
  const auto add = [&app](const std::string& name, std::vector<std::string>& patterns,
                          const std::string& help) {
    const auto read = [name, &patterns](const std::vector<std::string>& lists) {
      for (const std::string& list : lists) {
        const Result<std::vector<std::string>> some = SplitPatterns(list);
        if (!some.ok()) {
          throw CLI::ValidationError(name.substr(0, name.find(',')), some.status().message());
        }
        patterns.insert(patterns.end(), some->begin(), some->end());
      }
    };
    app.add_option_function<std::vector<std::string>>(name, read, help)
        ->type_name("GLOB,...")
        ->allow_extra_args(false);
  };
  add(include, include_, "Only parameters whose names match a GLOB");
  add("--exclude", exclude_, "Leave out what matches a GLOB; wins over --include");
}

bool NameFilter::Takes(std::string_view name) const {
  const auto matches = [name](const std::string& pattern) { return GlobMatch(pattern, name); };
  return (include_.empty() || std::any_of(include_.begin(), include_.end(), matches)) &&
         std::none_of(exclude_.begin(), exclude_.end(), matches);
}

Warning NameFilter::NothingTaken() const {
  std::string message;
  if (include_.empty()) {
    message = "--exclude leaves out every parameter";
  } else if (include_.size() > 1 || !exclude_.empty()) {
    message =
        "--include and --exclude leave no parameter; a pattern has to match a whole name, as "
        "*head* does";
  } else {
    message = fmt::format(
        "--include matches no parameter: \"{}\"; a pattern has to match a whole name, as *head* "
        "does",
        PrintableName(include_.front()));
  }
  return {WarningCode::kUnusedPatterns, std::move(message)};
}

std::string AlreadyPublishedText(const std::string& target) {
  return fmt::format("{}: already complete, nothing to do: neither files nor sources have changed",
                     PrintableName(target));
}

std::string WrittenFilesText(const std::vector<WrittenFile>& files) {
  Table table({{""}, {"", Align::kRight}});
  for (const WrittenFile& file : files) {
    table.AddRow({PrintableName(file.path), FormatBytes(file.size)});
  }
  return "files written:\n" + table.ToText();
}

std::string ChoiceText(uint64_t left_out, uint64_t renamed) {
  if (left_out == 0 && renamed == 0) return "";
  if (left_out == 0) return FormatCount(renamed, "parameter") + " renamed";
  std::string text = FormatCount(left_out, "parameter") + " left out";
  if (renamed > 0) text += fmt::format(", {} renamed", renamed);
  return text;
}

void ReportWaiting(const LockWaiting::Holder& so_far) {
  PrintWarnings(
      {{WarningCode::kWaiting,
        fmt::format("waiting for {}, which holds {}, for {} s so far",
                    so_far.holder.empty() ? "another process" : so_far.holder,
                    PrintableName(so_far.lock),
                    std::chrono::duration_cast<std::chrono::seconds>(so_far.time).count())}});
}

}  // namespace reshard
