#include "tools/cli/commit_command.h"

#include <fmt/format.h>

#include "reshard/commit.h"
#include "tools/cli/messages.h"
#include "tools/cli/printable.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/cli/wait_option.h"

namespace reshard {

CommitCommand::CommitCommand(CLI::App& parent)
    : Command(parent, "commit",
              "Publish what the shards of a conversion have staged, if the last one was killed",
              {"reshard commit ckpt_4"}) {
  AddPositional(app(), "DST", target_, "Target folder of the shards");
  AddWaitOption(app(), waiting_);
}

UsedPaths CommitCommand::Paths() const { return {.targets = {target_}}; }

int CommitCommand::Run() {
  const StopOnSignal stop;
  const Result<CommitReport> report =
      CommitShards({.target = target_, .stop = stop.token(), .waiting = waiting_});
  if (!report.ok()) return Fail(report.status());
  PrintWarnings(report->warnings);
  if (json()) {
    nlohmann::ordered_json document = JsonDocument();
    document["target"] = target_;
    document["already_published"] = report->already_published;
    document["warnings"] = report->warnings;
    PrintData(ToJsonText(document) + '\n');
  }
  if (!quiet()) {
    PrintWords(fmt::format(
        "{}: {}", PrintableName(target_),
        report->already_published ? "nothing to do, it is published already" : "published"));
  }
  return 0;
}

}  // namespace reshard
