#include "tools/cli/commands.h"

#include <fmt/format.h>

#include <iterator>
#include <limits>

#include "src/frontend/option_parts.h"
#include "tools/cli/messages.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/page/text_format.h"

namespace reshard {

MergeCommand::MergeCommand(CLI::App& parent)
    : Command(parent, "merge", "Merge slices or segments of a checkpoint into one file",
              {"reshard merge rank_0/w.ckpt rank_1/w.ckpt full.ckpt",
               "reshard merge rank_{0..3}/net-1_100.ckpt full.ckpt --strategy s4.ckpt",
               "reshard merge --segments parts/ whole.ckpt"}) {
  constexpr int kLeast = 2;  // CLI11 would give OUT to a list before it
  AddPositional(app(), "FILES", files_and_output_,
                "Files with the slices, in the order of their ranks, and the file to write")
      ->option_text("... OUT")
      ->expected(kLeast, std::numeric_limits<int>::max());
  table_.AddTo(app(), kMergeCall);
  AddJsonLinesOption();
  AddJobsOption(app(), options_.run.jobs)->group("Run");
}

int MergeCommand::Run() {
  options_.files.assign(files_and_output_.begin(), std::prev(files_and_output_.end()));
  options_.output = files_and_output_.back();
  if (const Status given = table_.ApplyTo(PartsOf(options_)); !given.ok()) return Fail(given);
  const auto print = [this](const MergeReport& report, double seconds) {
    if (json()) PrintReport(report, {.place = options_.output, .seconds = seconds});
    if (quiet()) return 0;
    PrintNotes(report.notes);
    PrintWords(fmt::format("{}: {} of {}, {} written in {} ({})", options_.output,
                           FormatCount(report.parameters, "parameter"),
                           FormatCount(report.sources.size(), "file"),
                           FormatBytes(report.bytes_written), FormatSeconds(seconds),
                           FormatRate(report.bytes_written, seconds)));
    if (report.bytes_compared > 0) {
      PrintWords(fmt::format("{} that have to be equal compared: all equal",
                             FormatBytes(report.bytes_compared)));
    }
    if (verbose()) {
      for (const std::string& source : report.sources) PrintWords("  " + source);
    }
    return 0;
  };
  return RunStoppable(options_, progress_style(), Merge, print);
}

}  // namespace reshard
