#include "tools/cli/shell_commands.h"

#include "tools/cli/command_table.h"
#include "tools/cli/completion_script.h"
#include "tools/cli/man_page.h"
#include "tools/cli/messages.h"

namespace reshard {

ShellCommands::ShellCommands(CLI::App& root)
    : root_(root),
      completion_(*root.add_subcommand("completion", "Print a completion script for a shell")),
      man_(*root.add_subcommand("man", "Print the man page")->group("")) {
  completion_.add_option("SHELL", shell_, "Shell to complete in")
      ->required()
      ->type_name("bash|zsh|fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  completion_.footer(
      "Examples:\n"
      "  $ source <(reshard completion bash)\n"
      "  $ reshard completion zsh > ~/.zfunc/_reshard       # a folder of fpath\n"
      "  $ reshard completion fish > ~/.config/fish/completions/reshard.fish");
}

int ShellCommands::Run() const {
  const CommandTable table = DescribeCommands(root_);
  PrintData(man_.parsed()      ? ManPage(table)
            : shell_ == "bash" ? BashCompletion(table)
            : shell_ == "zsh"  ? ZshCompletion(table)
                               : FishCompletion(table));
  return 0;
}

}  // namespace reshard
