#include "tools/cli/digest_command.h"

#include <fmt/format.h>

#include <chrono>

#include "tools/cli/messages.h"
#include "tools/cli/parameter_text.h"
#include "tools/cli/printable.h"
#include "tools/cli/stoppable_call.h"
#include "tools/cli/text_format.h"

namespace reshard {
namespace {

std::string DigestTable(const DigestReport& report) {
  Table table({{"NAME"}, {"DTYPE"}, {"SHAPE"}, {"BYTES", Align::kRight}, {"DIGEST"}});
  for (const ParameterDigest& parameter : report.parameters) {
    table.AddRow({PrintableName(parameter.name),
                  std::string(TypeName(parameter.kind, parameter.dtype)),
                  ShapeText(parameter.kind, parameter.full_shape),
                  fmt::format("{}", parameter.bytes), parameter.digest});
  }
  return table.ToText();
}

}  // namespace

DigestCommand::DigestCommand(CLI::App& parent)
    : Command(parent, "digest", "Print digests of parameters, the same in every layout",
              {"reshard digest ckpt_8 --strategy s8.ckpt",
               "reshard digest full/rank_0/model.ckpt --json"}) {
  AddPositional(app(), "PATH", options_.path,
                "Folder with rank_N/*.ckpt; or one .ckpt file, when there is no strategy");
  app()
      .add_option("--strategy", options_.strategy,
                  "Strategy file, or folder of stage files; without it PATH holds full tensors")
      ->type_name("S");
  app()
      .add_option("--suffix", options_.suffix,
                  "Take the checkpoints that end in -EPOCH_STEP, as in --suffix=-1_100; without it "
                  "the latest")
      ->type_name("-E_S");
  AddJobsOption(app(), options_.jobs, "Threads that read; 0 is all cores (2)");
}

int DigestCommand::Run() {
  const auto start = std::chrono::steady_clock::now();
  const Result<DigestReport> report = CallStoppable(options_, progress_style(), DigestCheckpoint);
  if (!report.ok()) return Fail(report.status());

  PrintWarnings(report->warnings);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (json()) {
    PrintReport(*report, seconds.count());
  } else {
    PrintData(DigestTable(*report));
  }
  if (!quiet()) {
    PrintWords(fmt::format("{}, {} read in {} ({})",
                           FormatCount(report->parameters.size(), "parameter"),
                           FormatBytes(report->bytes), FormatSeconds(seconds.count()),
                           FormatRate(report->bytes, seconds.count())));
  }
  return 0;
}

void DigestCommand::PrintReport(const DigestReport& report, double seconds) const {
  nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
  for (const ParameterDigest& parameter : report.parameters) {
    parameters.push_back({{"name", parameter.name},
                          {"dtype", TypeName(parameter.kind, parameter.dtype)},
                          {"full_shape", ShapeAsJson(parameter.kind, parameter.full_shape)},
                          {"bytes", parameter.bytes},
                          {"digest", parameter.digest}});
  }
  nlohmann::ordered_json document = JsonDocument();
  document["path"] = options_.path;
  document["parameters"] = std::move(parameters);
  document["bytes"] = report.bytes;
  document["seconds"] = seconds;
  document["warnings"] = report.warnings;
  PrintData(ToJsonText(document) + '\n');
}

}  // namespace reshard
