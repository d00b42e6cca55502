#include "tools/cli/ranks_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

#include "reshard/strategy_files.h"
#include "tools/cli/messages.h"
#include "tools/cli/text_format.h"

namespace reshard {

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
  app()
      .add_option("--src-strategy", source_strategy_,
                  "Strategy file of the source, or folder of stage files; without it the source "
                  "holds full tensors")
      ->type_name("S");
  app()
      .add_option("--dst-strategy", target_strategy_,
                  "Strategy file of the target, or folder of stage files; without it the target "
                  "holds full tensors")
      ->type_name("D");
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
