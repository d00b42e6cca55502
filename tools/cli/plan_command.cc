#include "tools/cli/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reshard/strategy.h"
#include "src/frontend/option_parts.h"
#include "src/frontend/read_option.h"
#include "tools/cli/command_table.h"
#include "tools/cli/conversion_arguments.h"
#include "tools/cli/messages.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

// A row of a table of files: each file, or beyond kMostFiles a group of files that look alike,
// described by the first.
template <typename File>
struct AlikeFiles {
  std::vector<const File*> files;

  const File& first() const { return *files.front(); }
  std::vector<int64_t> Ranks() const {
    std::vector<int64_t> ranks;
    for (const File* file : files) ranks.push_back(file->rank);
    return ranks;
  }
  // "5", or "5 to 8" if they differ in the results of `number`.
  template <typename Number>
  std::string Range(Number number) const {
    uint64_t least = number(first());
    uint64_t most = least;
    for (const File* file : files) {
      least = std::min<uint64_t>(least, number(*file));
      most = std::max<uint64_t>(most, number(*file));
    }
    return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
  }
};

// `look` returns the facts that are equal in similar files.
template <typename File, typename Look>
std::vector<AlikeFiles<File>> GroupAlike(const std::vector<File>& files, bool all, Look look) {
  constexpr size_t kMostFiles = 16;
  std::vector<AlikeFiles<File>> groups;
  std::map<decltype(look(files.front())), size_t> places;
  for (const File& file : files) {
    if (all || files.size() <= kMostFiles) {
      groups.push_back({{&file}});
      continue;
    }
    const auto [place, added] = places.try_emplace(look(file), groups.size());
    if (added) groups.emplace_back();
    groups[place->second].files.push_back(&file);
  }
  return groups;
}

std::string Each(const std::string& text, size_t files) {
  return files > 1 ? text + " each" : text;
}

std::string SourceTable(const PlanReport& report, bool all) {
  const auto groups = GroupAlike(report.sources, all, [](const PlanReport::SourceFile& file) {
    return FormatBytes(file.size);
  });
  const bool folded = groups.size() < report.sources.size();
  Table table({{folded ? "RANKS" : "RANK", Align::kRight},
               {folded ? "FIRST SOURCE FILE" : "SOURCE FILE"},
               {"SIZE", Align::kRight}});
  for (const auto& group : groups) {
    table.AddRow({FormatRanks(group.Ranks()), PrintableName(group.first().path),
                  Each(FormatBytes(group.first().size), group.files.size())});
  }
  return table.ToText();
}

std::string TargetTable(const PlanReport& report, bool all) {
  const auto groups = GroupAlike(report.targets, all, [](const PlanReport::TargetFile& file) {
    // Of the others, only those of one name are alike.
    const std::string own = HoldsModel(file.kind) ? "" : file.path.substr(file.path.rfind('/') + 1);
    return std::tuple(FormatBytes(file.size), file.parameters, own);
  });
  const bool folded = groups.size() < report.targets.size();
  Table table({{folded ? "RANKS" : "RANK", Align::kRight},
               {folded ? "FIRST TARGET FILE" : "TARGET FILE"},
               {"SIZE", Align::kRight},
               {"PARAMETERS", Align::kRight},
               {"RUNS", Align::kRight},
               {"FROM RANKS"}});
  for (const auto& group : groups) {
    const PlanReport::TargetFile& first = group.first();
    const size_t files = group.files.size();
    table.AddRow({HoldsModel(first.kind) ? FormatRanks(group.Ranks()) : "-",
                  PrintableName(first.path), Each(FormatBytes(first.size), files),
                  fmt::format("{}", first.parameters),
                  group.Range([](const PlanReport::TargetFile& file) { return file.runs; }),
                  files == 1 ? FormatRanks(first.source_ranks)
                             : Each(group.Range([](const PlanReport::TargetFile& file) {
                                 return file.source_ranks.size();
                               }),
                                    files)});
  }
  std::string text = table.ToText();
  if (folded) text += "  equal files share a line; --long lists every file\n";
  return text;
}

// In bytes; 0 when there is no run.
uint64_t MeanRun(const PlanReport& report) {
  return report.runs == 0 ? 0 : report.bytes_read / report.runs;
}

std::vector<int64_t> SourceRanksOf(const PlanReport& report) {
  std::vector<int64_t> ranks;
  for (const PlanReport::SourceFile& file : report.sources) ranks.push_back(file.rank);
  return ranks;
}

}  // namespace

PlanCommand::PlanCommand(CLI::App& parent)
    : Command(parent, "plan",
              "Check and describe a conversion without writing files; exit 0 if it would work",
              {"reshard plan ckpt_8 ckpt_4 --src-strategy s8.ckpt --dst-strategy s4.ckpt",
               "reshard plan ckpt_8 full --src-strategy s8.ckpt --json"}) {
  arguments_.AddTo(app(), kPlanCall);
  AddJsonLinesOption();
  app().add_flag("--long", long_, "List every file; without it, equal ones share a line");
}

int PlanCommand::Run() {
  const auto start = std::chrono::steady_clock::now();
  Result<ConvertOptions> given = arguments_.Options();
  if (!given.ok()) return Fail(given.status());
  const Result<PlanReport> report = CallStoppable(*given, progress_style(), Plan);
  if (!report.ok()) return Fail(report.status());
  if (!quiet()) PrintNotes(report->notes);
  PrintWarnings(report->warnings);
  if (json()) {
    PrintReport(*report, {});
  } else {
    PrintText(*report);
  }
  if (verbose()) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    PrintWords(fmt::format("planned in {}; no file was written", FormatSeconds(seconds.count())));
  }
  return 0;
}

void PlanCommand::PrintText(const PlanReport& report) const {
  std::string out = SourceTable(report, long_);
  out += '\n' + TargetTable(report, long_) + '\n';
  Table totals({{""}, {""}});
  const std::vector<int64_t> ranks = SourceRanksOf(report);
  totals.AddRow({report.source_is_whole ? "source files" : "source ranks",
                 report.source_is_whole ? fmt::format("{}", ranks.size()) : FormatRanks(ranks)});
  if (!report.step.empty()) totals.AddRow({"step taken", report.step});
  if (report.totals && report.totals != report.chosen_totals) {
    totals.AddRow({"chosen", TotalsText(*report.chosen_totals)});
  }
  if (report.totals) totals.AddRow({"whole source", TotalsText(*report.totals)});
  if (const std::string text = ConfirmedText(report.sample); !text.empty()) {
    totals.AddRow({"source strategy", text});
  }
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
    : Command(parent, "ranks", "List the source ranks that a target rank needs",
              {"reshard ranks 3 --src-strategy s8.ckpt --dst-strategy s4.ckpt",
               "reshard ranks 0 --src-strategy s8/      # for full tensors",
               "reshard ranks 0-7,9 --src-strategy s8/ --dst-strategy s16/",
               "reshard ranks --all --src-strategy s8/ --dst-strategy s4/"}) {
  CLI::Option* const ranks =
      app()
          .add_option_function<std::string>(
              "RANK", [this](const std::string& list) { ranks_ = ReadRanks(list); },
              "Target ranks, such as 3 or 0-7,9; several get one list each")
          ->type_name("");
  CLI::Option* const all = app().add_flag("--all", all_, "List all target ranks");
  ranks->excludes(all);
  table_.AddTo(app(), kRanksCall);
}

std::vector<int64_t> RanksCommand::ReadRanks(const std::string& list) {
  Result<OptionValue> ranks = ReadOption(*FindOptionNamed("ranks"), {&list, 1});
  if (!ranks.ok()) throw CLI::ValidationError("RANK", ranks.status().message());
  return std::get<std::vector<int64_t>>(*std::move(ranks));
}

int RanksCommand::Run() {
  ConversionSpec spec;
  if (const Status given = table_.ApplyTo(PartsOf(spec)); !given.ok()) return Fail(given);
  source_strategy_ = spec.source.strategy;
  target_strategy_ = spec.target.strategy;
  if (!all_ && ranks_.empty()) return Fail(InvalidArgumentError("RANK is required, or --all"));
  return ranks_.size() == 1 ? RunOne(ranks_.front()) : RunSeveral();
}

int RanksCommand::RunOne(int64_t rank) {
  const Result<std::vector<int64_t>> ranks = SourceRanks(rank, source_strategy_, target_strategy_);
  if (!ranks.ok()) return Fail(ranks.status());
  if (json()) {
    nlohmann::ordered_json document = JsonDocument();
    document["rank"] = rank;
    document["source_ranks"] = *ranks;
    PrintData(ToJsonText(document) + '\n');
  } else {
    for (const int64_t source_rank : *ranks) PrintData(fmt::format("{}\n", source_rank));
  }
  if (verbose()) {
    PrintWords(
        fmt::format("target rank {} needs {}", rank, FormatCount(ranks->size(), "source rank")));
  }
  return 0;
}

int RanksCommand::RunSeveral() {
  const std::set<int64_t> wanted(ranks_.begin(), ranks_.end());
  if (!wanted.empty()) {
    // Refuses invalid target ranks before any output.
    const auto last = SourceRanks(*wanted.rbegin(), source_strategy_, target_strategy_);
    if (!last.ok()) return Fail(last.status());
  }
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
        if (!all_ && !wanted.contains(rank)) return;
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
