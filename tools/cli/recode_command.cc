#include "tools/cli/commands.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "src/frontend/option_parts.h"
#include "tools/cli/messages.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/page/text_format.h"

namespace reshard {

RecodeCommand::RecodeCommand(CLI::App& parent)
    : Command(
          parent, "recode",
          "Write checkpoint files anew, in another format or with other names, a CRC or encryption",
          {"reshard recode ckpt_8 st_8 --format safetensors",
           "reshard recode ckpt_8 ckpt_8 --format safetensors   # beside the sources",
           "reshard recode net-1_100.safetensors out --format ckpt --rename names.json",
           "reshard recode ckpt_8 ckpt_8_crc --format ckpt --crc",
           "reshard recode ckpt_8 st_8 --format safetensors --files '-1_100[.]'"}) {
  AddPositional(app(), "SRC", options_.source.path,
                "A file, or a folder: all its files to be written, in its folders rank*, or in "
                "itself if it has none");
  AddPositional(
      app(), "DST", options_.target.folder,
      "Folder for the outputs, which keep their paths except for the extension; may be SRC if "
      "no output is a source");
  table_.AddTo(app(), kRecodeCall);
  AddJsonLinesOption();
  AddJobsOption(app(), options_.run.jobs)->group("Run");
}

int RecodeCommand::Run() {
  if (const Status given = table_.ApplyTo(PartsOf(options_)); !given.ok()) return Fail(given);
  options_.note = [this](const std::string& note) {
    if (!quiet()) PrintNotes({note});
    told_.insert(note);
  };
  const auto print = [this](const ConvertReport& report, double seconds) {
    if (json())
      PrintReport(RecodedFiles{report}, {.place = options_.target.folder, .seconds = seconds});
    if (!quiet()) PrintSummary(report, seconds);
    return 0;
  };
  return RunStoppable(options_, progress_style(), Recode, print);
}

void RecodeCommand::PrintSummary(const ConvertReport& report, double seconds) const {
  const std::string files = FormatCount(report.files.size(), "file");
  if (report.already_published) {
    PrintWords(AlreadyPublishedText(options_.target.folder));
    return;
  }
  if (report.completed_earlier_run) {
    PrintWords(fmt::format("{} published, finished by an earlier run", files));
  } else if (report.files_kept > 0) {
    PrintWords(fmt::format("{}, {} complete in {}, {}", files, FormatBytes(report.bytes_written),
                           FormatSeconds(seconds), FormatCount(report.parameters, "parameter")));
    PrintWords(
        fmt::format("{} kept from an interrupted run", FormatCount(report.files_kept, "file")));
  } else {
    PrintWords(fmt::format("{}, {} written in {} ({}), {}", files,
                           FormatBytes(report.bytes_written), FormatSeconds(seconds),
                           FormatRate(report.bytes_written, seconds),
                           FormatCount(report.parameters, "parameter")));
  }
  std::vector<std::string> notes = report.notes;
  std::erase_if(notes, [this](const std::string& note) { return told_.contains(note); });
  PrintNotes(notes);
  if (report.renamed > 0) PrintWords(FormatCount(report.renamed, "parameter") + " renamed");
  if (!verbose()) return;
  if (report.crc_files > 0) {
    PrintWords(fmt::format("CRCs checked first: {}, {}",
                           FormatCount(report.crc_files, "source file"),
                           FormatBytes(report.crc_bytes)));
  }
  PrintWords(WrittenFilesText(report.files));
}

}  // namespace reshard
