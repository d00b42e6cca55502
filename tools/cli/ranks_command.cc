#include "tools/cli/ranks_command.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "reshard/strategy_files.h"
#include "tools/cli/messages.h"
#include "tools/cli/text_format.h"

namespace reshard {

RanksCommand::RanksCommand(CLI::App& parent)
    : Command(parent, "ranks", "List the source ranks that a target rank needs, ascending",
              {"reshard ranks 3 --src-strategy s8.ckpt --dst-strategy s4.ckpt",
               "reshard ranks 0 --src-strategy s8/      # for full tensors"}) {
  AddPositional(app(), "RANK", rank_, "Target rank")->transform(WholeNumber());
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

int RanksCommand::Run() {
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

}  // namespace reshard
