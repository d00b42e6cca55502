#include "tools/cli/shared_options.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/cli/command.h"
#include "tools/cli/messages.h"
#include "tools/page/text_format.h"

namespace reshard {

std::string AlreadyPublishedText(const std::string& target) {
  return fmt::format("{}: already complete, nothing to do: files and sources are unchanged",
                     PrintableName(target));
}

std::string WrittenFilesText(const std::vector<ConvertReport::File>& files) {
  Table table({{""}, {"", Align::kRight}});
  for (const ConvertReport::File& file : files) {
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

void ReportWaiting(const RunOptions::LockHolder& so_far) {
  PrintWarnings(
      {{WarningCode::kWaiting,
        fmt::format("waiting for {}, which holds {}, for {} s so far",
                    so_far.holder.empty() ? "another process" : so_far.holder,
                    PrintableName(so_far.lock),
                    std::chrono::duration_cast<std::chrono::seconds>(so_far.time).count())}});
}

}  // namespace reshard
