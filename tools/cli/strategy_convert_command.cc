#include "tools/cli/strategy_convert_command.h"

#include <fmt/format.h>

#include "reshard/strategy_conversion.h"
#include "tools/cli/messages.h"
#include "tools/cli/text_format.h"

namespace reshard {

StrategyConvertCommand::StrategyConvertCommand(CLI::App& parent)
    : Command(parent, "convert", "Turn a strategy from protobuf into JSON, or back",
              {"reshard strategy convert s8.ckpt s8.json",
               "reshard strategy convert stages/ merged.json"}) {
  AddPositional(app(), "IN", input_, "Strategy file, or folder of stage files");
  AddPositional(app(), "OUT", output_, "File to write: JSON if it ends in .json, else protobuf");
  app().add_flag("--force", force_, "Replace OUT when it exists");
}

UsedPaths StrategyConvertCommand::Paths() const {
  return {.files = {input_}, .outputs = {output_}};
}

int StrategyConvertCommand::Run() {
  const Result<StrategyConversionReport> report = ConvertStrategyFile(input_, output_, force_);
  if (!report.ok()) return Fail(report.status());
  PrintWarnings(report->warnings);
  if (json()) {
    nlohmann::ordered_json document = JsonDocument();
    document["output"] = output_;
    document["layouts"] = report->layouts;
    document["bytes"] = report->bytes;
    document["warnings"] = report->warnings;
    document["notes"] = report->notes;
    PrintData(ToJsonText(document) + '\n');
  }
  if (!quiet()) {
    PrintNotes(report->notes);
    PrintWords(fmt::format("{}: {}, {}", output_, FormatCount(report->layouts, "layout"),
                           FormatBytes(report->bytes)));
  }
  return 0;
}

}  // namespace reshard
