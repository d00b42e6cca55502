// HelpFormatter: how --help looks: descriptions in lines of 80 columns, and no lists of what
// excludes what.
#ifndef RESHARD_TOOLS_CLI_HELP_FORMATTER_H_
#define RESHARD_TOOLS_CLI_HELP_FORMATTER_H_

#include <CLI/CLI.hpp>
#include <string>

namespace reshard {

// Stateless.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_usage(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_HELP_FORMATTER_H_
