#include "tools/cli/commands.h"

#include "reshard/convert.h"
#include "reshard/status.h"
#include "tools/cli/messages.h"

namespace reshard {

NameRulesCommand::NameRulesCommand(CLI::App& parent)
    : Command(parent, "name-rules", "Print rules for names, as a file for --rename",
              {"reshard name-rules                            # lists them",
               "reshard name-rules llama:hf-to-mindformers > names.json"}) {
  app()
      .add_option("MODEL:WAY", rules_, "Rules to print, as for --name-rules; without it, list all")
      ->type_name("");
  LeaveOutJson();
}

int NameRulesCommand::Run() {
  if (rules_.empty()) {
    for (const std::string& rules : NameRules()) PrintData(rules + '\n');
    return 0;
  }
  const Result<std::string> text = NameRulesText(rules_);
  if (!text.ok()) return Fail(text.status());
  PrintData(*text);
  return 0;
}

}  // namespace reshard
