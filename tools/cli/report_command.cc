#include "tools/cli/commands.h"

#include <fmt/format.h>

#include <vector>

#include "src/frontend/option_parts.h"
#include "tools/cli/messages.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/page/report_page.h"
#include "tools/page/text_format.h"

namespace reshard {

ReportCommand::ReportCommand(CLI::App& parent)
    : Command(parent, "report",
              "Draw a conversion as one HTML file; it shows the parts that each rank holds and "
              "their target ranks",
              {"reshard report ckpt_8 --src-strategy s8.ckpt --dst-strategy s4.ckpt -o layout.html",
               "reshard report ckpt_8 --src-strategy s8.ckpt -o layout.html --param lm_head.weight",
               "reshard report ckpt_8 -o files.html    # bytes only"}) {
  ConvertOptions& conversion = options_.conversion;
  AddPositional(
      app(), "SRC", conversion.source.path,
      "Folder with rank_N/*.ckpt or *.safetensors. Without a source strategy also one such file");
  table_.AddTo(app(), kReportCall);
  app()
      .add_option("--param", options_.parameters,
                  "Draw the ranks of this parameter; repeatable (default: the largest one that is "
                  "cut, weights before optimizer states)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app().add_option("-o,--output", output_, "HTML file to write")->required()->type_name("FILE");
  AddJsonLinesOption();
}

int ReportCommand::Run() {
  const Status stays = file_use().AddOutput(output_);
  if (!stays.ok()) return Fail(stays);
  ConvertOptions& conversion = options_.conversion;
  if (const Status given = table_.ApplyTo(PartsOf(conversion)); !given.ok()) return Fail(given);
  const Status free = CheckReport(output_, conversion.force, "");
  if (!free.ok()) return Fail(free);
  const StopOnSignal stop;
  options_.conversion.run.stop = stop.token();
  const Result<LayoutReport> report = MakeLayoutReport(options_);
  if (!report.ok()) return Fail(report.status());
  const std::vector<Warning>& warnings = report->plan.warnings;
  if (!quiet()) PrintNotes(report->plan.notes);
  PrintWarnings(warnings);
  const std::string page = ReportPage(*report, [](auto message) { return AsTyped(message); });
  const Status written = WriteReport(output_, page, conversion.force);
  if (!written.ok()) return Fail(written);
  if (json()) PrintReport(WrittenPage{page.size(), warnings}, {.place = output_});
  if (!quiet()) PrintWords(fmt::format("{}: {}", output_, FormatBytes(page.size())));
  return 0;
}

}  // namespace reshard
