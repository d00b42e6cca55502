#include "src/frontend/option_words.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "src/base/named_options.h"
#include "src/options/option_table.h"

namespace reshard {
namespace {

// A word that is not an option of the table.
struct Named {
  std::string_view name;
  std::string_view command_line;
  std::string_view python;
};

constexpr Named kNamed[] = {
    {"CommitWorkers", "`reshard commit`", "reshard.commit"},
    {"Convert", "`reshard convert`", "reshard.convert"},
    {"FindStatus", "`reshard status`", "reshard.status"},
    {"MakeStrategy", "`reshard strategy make`", "reshard.make_strategy"},
    {"Recode", "`reshard recode`", "reshard.recode"},
    {"ShardedCheckpoint::Shards", "`reshard inspect --strategy`", "Tensor.shards"},
    {"Verify", "`reshard verify`", "reshard.verify"},
    {"VerifyAgainst", "--against", "reshard.verify_against"},
    {"checksum=false", "--no-checksum", "no_checksum=True"},
    {"io.target", "--io", "io"},
    {"parameters", "--param", "param"},
    {"segments=true", "--segments", "segments=True"},
    {"source.files=RANK=FILE", "--source RANK=FILE", "source={RANK: FILE}"},
};

const Named* FindNamed(std::string_view name) {
  const auto found = std::find_if(std::begin(kNamed), std::end(kNamed),
                                  [&](const Named& row) { return row.name == name; });
  return found == std::end(kNamed) ? nullptr : found;
}

std::string Of(const Named& row, FrontEnd front_end) {
  return std::string(front_end == FrontEnd::kPython ? row.python : row.command_line);
}

// The text between an option and its value. `option` is null if it is not in the table.
std::string_view Joint(const Option* option, FrontEnd front_end) {
  if (front_end == FrontEnd::kPython) return "=";
  if (option == nullptr) return " ";
  // A value that begins with a dash would be taken for an option.
  return option->type == OptionType::kSwitchOrWord || option->name == "suffix" ? "=" : " ";
}

// A name without a value.
std::string WordsOfName(std::string_view name, FrontEnd front_end, const OwnWords& own) {
  if (const auto found = own.find(name); found != own.end()) return found->second;
  if (const Named* const row = FindNamed(name)) return Of(*row, front_end);
  std::string words;
  const Option* const first = FindOptionNamed(name);
  for (const Option& option : AllOptions()) {
    // An option may have other words in other calls, which `own` tells.
    if (option.name != name || (option.calls & first->calls) == 0) continue;
    if (!words.empty()) words += " or ";
    words += front_end == FrontEnd::kPython ? std::string(option.word) : OnCommandLine(option);
  }
  return words;
}

}  // namespace

std::string WordsFor(std::string_view name, FrontEnd front_end, const OwnWords& own) {
  // A name with its value may have its own words.
  std::string words = WordsOfName(name, front_end, own);
  const size_t equals = name.find('=');
  if (!words.empty() || equals == std::string_view::npos) return words;
  const std::string_view option = name.substr(0, equals);
  words = WordsOfName(option, front_end, own);
  if (words.empty()) return words;
  return words.append(Joint(FindOptionNamed(option), front_end)).append(name.substr(equals + 1));
}

std::string InWords(std::string_view message, FrontEnd front_end, const OwnWords& own) {
  std::string text;
  size_t done = 0;
  for (const NamedOption& named : NamedOptions(message)) {
    const std::string words =
        WordsFor(message.substr(named.offset + 1, named.length - 2), front_end, own);
    if (words.empty()) continue;
    text.append(message.substr(done, named.offset - done)).append(words);
    done = named.offset + named.length;
  }
  return text.append(message.substr(done));
}

}  // namespace reshard
