#include "tools/cli/help_formatter.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace reshard {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kCommandColumn = 14;  // names of commands are short

// "  NAME      DESCRIPTION", with the description in lines below one another from `column` on.
std::string HelpEntry(const std::string& name, std::string_view description, size_t column) {
  std::string out = "  " + name;
  size_t line = out.size();  // columns of the last line that are taken
  const auto begin_line = [&] {
    out += '\n' + std::string(column, ' ');
    line = column;
  };
  if (line >= column && !description.empty()) {
    begin_line();
  } else {
    out.resize(column, ' ');
    line = column;
  }
  while (!description.empty()) {
    const size_t end = std::min(description.find(' '), description.size());
    if (line > column) {
      if (line + 1 + end > kColumns) {
        begin_line();
      } else {
        out += ' ';
        ++line;
      }
    }
    out += description.substr(0, end);
    line += end;
    description.remove_prefix(std::min(end + 1, description.size()));
  }
  return out + '\n';
}

}  // namespace

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return HelpEntry(make_option_name(option, is_positional) + make_option_opts(option),
                   make_option_desc(option), get_column_width());
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return "";
  std::string out;
  if (!option->get_type_name().empty()) out += ' ' + option->get_type_name();
  if (option->get_expected_max() == CLI::detail::expected_max_vector_size) out += " ...";
  if (option->get_required()) out += " REQUIRED";
  return out;
}

std::string HelpFormatter::make_option_usage(const CLI::Option* option) const {
  std::string out = make_option_name(option, true);
  // A name that says so itself: FILES... OUT.
  if (option->get_expected_max() > 1 && out.find("...") == std::string::npos) out += "...";
  return option->get_required() ? out : '[' + out + ']';
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return HelpEntry(command->get_name(), command->get_description(), kCommandColumn);
}

}  // namespace reshard
