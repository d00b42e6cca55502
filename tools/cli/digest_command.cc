#include "tools/cli/digest_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tools/cli/messages.h"
#include "tools/cli/parameter_text.h"
#include "tools/cli/printable.h"
#include "tools/cli/rank_findings.h"
#include "tools/cli/stoppable_call.h"
#include "tools/cli/text_format.h"

namespace reshard {
namespace {

// With a column of ranks, where there is any to tell.
std::string DigestTable(const DigestReport& report) {
  const bool by_rank =
      std::any_of(report.parameters.begin(), report.parameters.end(),
                  [](const ParameterDigest& parameter) { return !parameter.ranks.empty(); });
  std::vector<Table::Column> columns = {
      {"NAME"}, {"DTYPE"}, {"SHAPE"}, {"BYTES", Align::kRight}, {"DIGEST"}};
  if (by_rank) columns.push_back({"RANKS"});
  Table table(std::move(columns));
  for (const ParameterDigest& parameter : report.parameters) {
    std::vector<std::string> row = {PrintableName(parameter.name),
                                    std::string(TypeName(parameter.kind, parameter.dtype)),
                                    ShapeText(parameter.kind, parameter.full_shape),
                                    fmt::format("{}", parameter.bytes), parameter.digest};
    if (by_rank) row.push_back(parameter.ranks.empty() ? "-" : FormatRanks(parameter.ranks));
    table.AddRow(std::move(row));
  }
  return table.ToText();
}

// Of several values of one parameter the first counts.
uint64_t NameCount(const DigestReport& report) {
  uint64_t count = 0;
  const std::string* last = nullptr;
  for (const ParameterDigest& parameter : report.parameters) {
    if (last == nullptr || *last != parameter.name) ++count;
    last = &parameter.name;
  }
  return count;
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
  app().add_flag(
      "--one-replica", options_.one_replica,
      "Read one replica of each shard only, and of what no layout cuts the lowest rank's "
      "value: faster, but a rank that differs is not found");
  AddJobsOption(app(), options_.jobs, "Threads that read; 0 is all cores (2)");
}

UsedPaths DigestCommand::Paths() const {
  return {.checkpoints = {options_.path}, .files = {options_.strategy}};
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
    if (report->ranks) PrintData(ReplicaLines(report->ranks->replicas, ""));
  }
  if (!quiet()) {
    if (report->ranks) PrintNotes(OwnValueNotes(*report->ranks, ""));
    PrintWords(fmt::format("{}, {} read in {} ({}){}", FormatCount(NameCount(*report), "parameter"),
                           FormatBytes(report->bytes_read), FormatSeconds(seconds.count()),
                           FormatRate(report->bytes_read, seconds.count()),
                           report->ranks ? "; " + ReplicasText(report->ranks->replicas) : ""));
  }
  return report->ranks && report->ranks->replicas.differing > 0 ? 1 : 0;
}

void DigestCommand::PrintReport(const DigestReport& report, double seconds) const {
  nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
  for (const ParameterDigest& parameter : report.parameters) {
    parameters.push_back({{"name", parameter.name},
                          {"dtype", TypeName(parameter.kind, parameter.dtype)},
                          {"full_shape", ShapeAsJson(parameter.kind, parameter.full_shape)},
                          {"bytes", parameter.bytes},
                          {"digest", parameter.digest}});
    if (!parameter.ranks.empty()) parameters.back()["ranks"] = parameter.ranks;
  }
  nlohmann::ordered_json document = JsonDocument();
  document["path"] = options_.path;
  document["parameters"] = std::move(parameters);
  document["bytes"] = report.bytes;
  document["bytes_read"] = report.bytes_read;
  document["replicas"] = nullptr;
  document["own_values"] = nullptr;
  if (report.ranks) {
    document["replicas"] = ReplicasAsJson(report.ranks->replicas);
    document["own_values"] = report.ranks->own_values;
  }
  document["seconds"] = seconds;
  document["warnings"] = report.warnings;
  PrintData(ToJsonText(document) + '\n');
}

}  // namespace reshard
