#include "tools/cli/plan_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "reshard/strategy.h"
#include "tools/cli/command_table.h"
#include "tools/cli/conversion_arguments.h"
#include "tools/cli/messages.h"
#include "tools/cli/option_words.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/cli/text_format.h"

namespace reshard {
namespace {

std::string SourceTable(const PlanReport& report) {
  Table table({{"RANK", Align::kRight}, {"SOURCE FILE"}, {"SIZE", Align::kRight}});
  for (const SourceFileSummary& file : report.sources) {
    table.AddRow({fmt::format("{}", file.rank), PrintableName(file.path), FormatBytes(file.size)});
  }
  return table.ToText();
}

std::string TargetTable(const PlanReport& report) {
  Table table({{"RANK", Align::kRight},
               {"TARGET FILE"},
               {"SIZE", Align::kRight},
               {"PARAMETERS", Align::kRight},
               {"RUNS", Align::kRight},
               {"FROM RANKS"}});
  for (const TargetFileSummary& file : report.targets) {
    table.AddRow({fmt::format("{}", file.rank), PrintableName(file.path), FormatBytes(file.size),
                  fmt::format("{}", file.parameters), fmt::format("{}", file.runs),
                  FormatRanks(file.source_ranks)});
  }
  return table.ToText();
}

// In bytes; 0 when there is no run.
uint64_t MeanRun(const PlanReport& report) {
  return report.runs == 0 ? 0 : report.bytes_read / report.runs;
}

std::vector<int64_t> SourceRanksOf(const PlanReport& report) {
  std::vector<int64_t> ranks;
  for (const SourceFileSummary& file : report.sources) ranks.push_back(file.rank);
  return ranks;
}

}  // namespace

PlanCommand::PlanCommand(CLI::App& parent)
    : Command(parent, "plan", "Say what convert would do, moving nothing; exit 0 if it would work",
              {"reshard plan ckpt_8 ckpt_4 --src-strategy s8.ckpt --dst-strategy s4.ckpt",
               "reshard plan ckpt_8 full --src-strategy s8.ckpt --json"}) {
  arguments_.AddTo(app());
}

UsedPaths PlanCommand::Paths() const { return arguments_.Paths(); }

int PlanCommand::Run() {
  const auto start = std::chrono::steady_clock::now();
  Result<ConvertOptions> given = arguments_.Options();
  if (!given.ok()) return Fail(given.status());
  ConvertOptions& options = *given;
  const StopOnSignal stop;
  options.run.stop = stop.token();
  const Result<PlanReport> report = Plan(options);
  if (!report.ok()) return Fail(report.status());
  if (!quiet()) PrintNotes(report->notes);
  PrintWarnings(report->warnings);
  if (json()) {
    PrintReport(*report);
  } else {
    PrintText(*report);
  }
  if (verbose()) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    PrintWords(fmt::format("planned in {}; nothing was written", FormatSeconds(seconds.count())));
  }
  return 0;
}

void PlanCommand::PrintReport(const PlanReport& report) const {
  nlohmann::ordered_json sources = nlohmann::ordered_json::array();
  for (const SourceFileSummary& file : report.sources) {
    sources.push_back({{"rank", file.rank}, {"path", file.path}, {"size", file.size}});
  }
  nlohmann::ordered_json targets = nlohmann::ordered_json::array();
  for (const TargetFileSummary& file : report.targets) {
    targets.push_back({{"rank", file.rank},
                       {"path", file.path},
                       {"size", file.size},
                       {"parameters", file.parameters},
                       {"runs", file.runs},
                       {"source_ranks", file.source_ranks}});
  }
  nlohmann::ordered_json document = JsonDocument();
  document["sources"] = std::move(sources);
  document["targets"] = std::move(targets);
  document["source_ranks"] = SourceRanksOf(report);
  document["parameters"] = report.parameters;
  document["left_out"] = report.left_out;
  document["renamed"] = report.renamed;
  document["largest"] = LargestAsJson(report.largest);
  AddSourceSummary(report.totals, report.stage_alone, document);
  document["bytes_read"] = report.bytes_read;
  document["bytes_written"] = report.bytes_written;
  document["runs"] = {{"count", report.runs},
                      {"shortest", report.shortest_run},
                      {"mean", MeanRun(report)},
                      {"longest", report.longest_run}};
  document["memory_bytes"] = report.memory_bytes;
  document["memory_limit"] = report.memory_limit;
  document["space_needed"] = report.bytes_written;
  document["space_free"] = nullptr;  // not known
  if (report.free_space_bytes) document["space_free"] = *report.free_space_bytes;
  document["sample"] = SampleAsJson(report.sample);
  document["warnings"] = WarningsAsJson(report.warnings);
  document["notes"] = InOptionWords(report.notes);
  PrintData(ToJsonText(document) + '\n');
}

void PlanCommand::PrintText(const PlanReport& report) const {
  std::string out = SourceTable(report);
  out += '\n' + TargetTable(report) + '\n';
  Table totals({{""}, {""}});
  const std::vector<int64_t> ranks = SourceRanksOf(report);
  totals.AddRow({report.source_is_whole ? "source files" : "source ranks",
                 report.source_is_whole ? fmt::format("{}", ranks.size()) : FormatRanks(ranks)});
  if (report.totals) totals.AddRow({"whole source", TotalsText(*report.totals)});
  if (report.stage_alone) totals.AddRow({"stage alone", StageAloneText(*report.stage_alone)});
  const std::string choice = ChoiceText(report.left_out, report.renamed);
  totals.AddRow({"parameters", choice.empty() ? fmt::format("{}", report.parameters)
                                              : fmt::format("{} ({})", report.parameters, choice)});
  totals.AddRow({"bytes read", FormatBytes(report.bytes_read)});
  totals.AddRow({"bytes written", FormatBytes(report.bytes_written)});
  totals.AddRow({"runs", fmt::format("{}: shortest {}, mean {}, longest {}", report.runs,
                                     FormatBytes(report.shortest_run), FormatBytes(MeanRun(report)),
                                     FormatBytes(report.longest_run))});
  totals.AddRow({"memory", fmt::format("about {} of at most {}", FormatBytes(report.memory_bytes),
                                       FormatBytes(report.memory_limit))});
  const std::string free =
      report.free_space_bytes ? FormatBytes(*report.free_space_bytes) + " free" : "free: not known";
  totals.AddRow({"space", fmt::format("{} needed, {}", FormatBytes(report.bytes_written), free)});
  out += totals.ToText();
  if (!report.largest_shapes.empty()) {
    out += "\n  LARGEST FULL SHAPES\n" + LargestAsText(report.largest_shapes);
  }
  PrintData(out);
}

RanksCommand::RanksCommand(CLI::App& parent)
    : Command(parent, "ranks", "List the source ranks that a target rank needs, ascending",
              {"reshard ranks 3 --src-strategy s8.ckpt --dst-strategy s4.ckpt",
               "reshard ranks 0 --src-strategy s8/      # for full tensors",
               "reshard ranks --all --src-strategy s8/ --dst-strategy s4/"}) {
  CLI::Option* const rank =
      AddPositional(app(), "RANK", rank_, "Target rank")->transform(WholeNumber());
  CLI::Option* const all =
      app().add_flag("--all", all_, "All target ranks, each with its list, instead of one");
  rank->required(false)->excludes(all);
  AddStrategyOptions(app(), source_strategy_, target_strategy_);
  FindOption(app(), "--dst-strategy")
      ->description(
          "Strategy file of the target, or folder of stage files; without it the target holds full "
          "tensors");
}

UsedPaths RanksCommand::Paths() const { return {.files = {source_strategy_, target_strategy_}}; }

int RanksCommand::Run() {
  if (all_) return RunAll();
  if (rank_ < 0) return Fail(InvalidArgumentError("RANK is required, or --all"));
  const Result<std::vector<int64_t>> ranks = SourceRanks(rank_, source_strategy_, target_strategy_);
  if (!ranks.ok()) return Fail(ranks.status());
  if (json()) {
    nlohmann::ordered_json document = JsonDocument();
    document["rank"] = rank_;
    document["source_ranks"] = *ranks;
    PrintData(ToJsonText(document) + '\n');
  } else {
    for (const int64_t rank : *ranks) PrintData(fmt::format("{}\n", rank));
  }
  if (verbose()) {
    PrintWords(
        fmt::format("target rank {} needs {}", rank_, FormatCount(ranks->size(), "source rank")));
  }
  return 0;
}

int RanksCommand::RunAll() {
  // The document begins as JsonDocument() without its closing brace.
  std::string begin;
  if (json()) {
    begin = ToJsonText(JsonDocument());
    begin.pop_back();
    begin += ",\"target_ranks\":[";
  }
  uint64_t count = 0;
  const Status status = ForEachSourceRanks(
      source_strategy_, target_strategy_,
      [&](int64_t rank, const std::vector<int64_t>& source_ranks) {
        ++count;
        if (json()) {
          const nlohmann::ordered_json entry = {{"rank", rank}, {"source_ranks", source_ranks}};
          PrintData(std::exchange(begin, ",") + ToJsonText(entry));
        } else {
          PrintData(fmt::format("{}: {}\n", rank, fmt::join(source_ranks, " ")));
        }
      });
  if (!status.ok()) return Fail(status);
  if (json()) PrintData("]}\n");
  if (verbose()) PrintWords(FormatCount(count, "target rank"));
  return 0;
}

}  // namespace reshard
