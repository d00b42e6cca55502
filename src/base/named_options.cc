#include "src/base/named_options.h"

namespace reshard {

std::vector<NamedOption> NamedOptions(std::string_view message) {
  constexpr std::string_view kNameCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.:";
  std::vector<NamedOption> options;
  for (size_t begin = message.find('`'); begin != std::string_view::npos;) {
    const size_t end = message.find('`', begin + 1);
    if (end == std::string_view::npos) break;
    const std::string_view text = message.substr(begin + 1, end - begin - 1);
    const size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    if (name.empty() || name.find_first_not_of(kNameCharacters) != std::string_view::npos) {
      begin = end;  // which may begin a name
      continue;
    }
    options.push_back(
        {name, equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1),
         begin, end + 1 - begin});
    begin = message.find('`', end + 1);
  }
  return options;
}

}  // namespace reshard
