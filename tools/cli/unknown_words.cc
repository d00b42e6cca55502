#include "tools/cli/unknown_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <numeric>
#include <string_view>

#include "tools/cli/command_table.h"
#include "tools/page/text_format.h"

namespace reshard {
namespace {

// Names may come out of a file; the time that a distance takes grows with the product.
constexpr size_t kLongestName = 1000;

size_t MostEdits(size_t length) {
  if (length < 2) return 0;
  return length <= 3 ? 1 : std::max<size_t>(2, length / 3);
}

// The name of an option in other tools, or in other commands.
struct OtherName {
  std::string_view typed;  // with '-' for each '_'
  std::string_view meant;
};

// Only entries for options of the command count; the first one wins.
constexpr OtherName kOptions[] = {
    {"--src-strategy", "--a-strategy"},
    {"--src-strategy", "--strategy"},
    {"--source-strategy", "--src-strategy"},
    {"--dst-strategy", "--b-strategy"},
    {"--target-strategy", "--dst-strategy"},
    {"--strategy", "--a-strategy"},
    {"--filter", "--include"},
    {"--parameter", "--param"},
    {"--overwrite", "--force"},
    {"-f", "--force"},
    {"-j", "--jobs"},
    {"--threads", "--jobs"},
    {"--workers", "--jobs"},
    {"--processes", "--jobs"},
    {"--process-num", "--jobs"},
    {"--memory", "--memory-limit"},
    {"--max-memory", "--memory-limit"},
    {"--out", "--output"},
    {"--source-file", "--source"},
};

constexpr OtherName kCommands[] = {
    {"transform", "convert"}, {"check", "verify"}, {"compare", "diff"},  {"show", "inspect"},
    {"list", "inspect"},      {"info", "inspect"}, {"combine", "merge"}, {"draw", "report"},
};

// The name without the dashes before it, as names are compared.
std::string_view Stem(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

// A hidden command is one, too.
const CLI::App* CommandBelow(const CLI::App& command, const std::string& name) {
  for (const CLI::App* below : command.get_subcommands({})) {
    if (below->get_name() == name) return below;
  }
  return nullptr;
}

// The parser takes a dash with a digit for a number.
bool IsOptionWord(std::string_view word) {
  return word.size() > 1 && word[0] == '-' &&
         std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

struct OptionWord {
  std::string unknown;      // the option that there is not, or empty
  bool takes_next = false;  // the next word is a value in any case
};

OptionWord ReadOptionWord(const CLI::App& command, const std::string& word) {
  const auto takes_value = [](const CLI::Option& option) {
    return option.get_items_expected_min() > 0;
  };
  const size_t equals = std::min(word.find('='), word.size());
  if (word.starts_with("--")) {
    const std::string name = word.substr(0, equals);
    const CLI::Option* option = FindOption(command, name);
    if (option == nullptr) return {name, false};
    return {"", equals + 1 >= word.size() && takes_value(*option)};
  }
  for (size_t i = 1; i < word.size(); ++i) {  // letters in one word: -qv, -oFILE
    const CLI::Option* option = FindOption(command, {'-', word[i]});
    if (option == nullptr) return {'-' + word.substr(i, std::max(equals, i + 1) - i), false};
    if (takes_value(*option)) return {"", i + 1 == word.size()};
  }
  return {};
}

std::string OptionMeant(const CLI::App& command, const std::string& typed) {
  std::string dashed = typed;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  if (FindOption(command, dashed) != nullptr) return dashed;
  for (const OtherName& other : kOptions) {
    std::string meant(other.meant);
    if (other.typed == dashed && FindOption(command, meant) != nullptr) return meant;
  }
  if (dashed == "--dry-run" && command.get_name() == "convert") return "`reshard plan`";
  std::vector<std::string> stems;
  for (const CLI::Option* option : command.get_options()) {
    stems.insert(stems.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  const std::string nearest = NearestName(Stem(typed), stems);
  return nearest.empty() ? "" : "--" + nearest;
}

std::string CommandMeant(const CLI::App& command, const std::string& typed) {
  for (const OtherName& other : kCommands) {
    std::string meant(other.meant);
    if (other.typed == typed && CommandBelow(command, meant) != nullptr) return meant;
  }
  std::vector<std::string> names;
  for (const CLI::App* below : command.get_subcommands({})) names.push_back(below->get_name());
  return NearestName(typed, names);
}

std::string NoSuch(std::string_view what, const std::string& typed, const std::string& meant) {
  const std::string text = fmt::format("no such {}: {}", what, PrintableName(typed));
  return meant.empty() ? text : fmt::format("{}; did you mean {}?", text, meant);
}

// Returns the pattern with {rank} that matches all `names`, each a file or folder; no value if
// there is none.
std::string PatternOf(const std::vector<std::string>& names) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  if (names.size() < 2 || std::all_of(names[0].begin(), names[0].end(), is_digit)) return "";
  const auto differ =
      std::mismatch(names[0].begin(), names[0].end(), names[1].begin(), names[1].end());
  auto begin = static_cast<size_t>(differ.first - names[0].begin());
  while (begin > 0 && is_digit(names[0][begin - 1])) --begin;
  size_t end = begin;
  while (end < names[0].size() && is_digit(names[0][end])) ++end;
  const std::string before = names[0].substr(0, begin);
  const std::string behind = names[0].substr(end);
  for (const std::string& name : names) {
    if (name.size() <= before.size() + behind.size() || !name.starts_with(before) ||
        !name.ends_with(behind)) {
      return "";
    }
    const auto* const first = name.data() + before.size();
    if (!std::all_of(first, name.data() + name.size() - behind.size(), is_digit)) return "";
  }
  return before + "{rank}" + behind;
}

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // distances of the beginnings of b
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

std::string NearestName(std::string_view typed, const std::vector<std::string>& names) {
  std::string nearest;
  if (typed.size() > kLongestName) return nearest;
  size_t within = MostEdits(typed.size()) + 1;
  for (const std::string& name : names) {
    if (name.size() > typed.size() + within || typed.size() > name.size() + within) continue;
    const size_t distance = EditDistance(typed, name);
    if (distance >= within) continue;
    within = distance;
    nearest = name;
  }
  return nearest;
}

std::string NamesMeant(std::string_view typed, const std::vector<std::string>& names,
                       std::string_view command) {
  constexpr size_t kMostNames = 5;
  std::vector<std::string> containing;
  uint64_t count = 0;
  for (const std::string& name : names) {
    if (name.find(typed) == std::string::npos) continue;
    if (++count <= kMostNames) containing.push_back(name);
  }
  if (count > 0 && !typed.empty()) {
    return "names that contain it: " + PrintableNames(containing, count);
  }
  const std::string nearest = NearestName(typed, names);
  return nearest.empty() ? fmt::format("`{}` lists the names", command)
                         : fmt::format("did you mean {}?", PrintableName(nearest));
}

std::optional<std::string> DescribeUnknownWord(const CLI::App& root,
                                               const std::vector<std::string>& words) {
  const CLI::App* command = &root;
  std::string path = root.get_name();
  std::string early;  // an option that came too early; a later command has it
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::string& word = words[i];
    if (IsOptionWord(word)) {
      if (!early.empty()) continue;
      const OptionWord option = ReadOptionWord(*command, word);
      if (option.unknown.empty()) {
        i += option.takes_next ? 1 : 0;
      } else if (command->get_subcommands({}).empty()) {
        return NoSuch("option", option.unknown, OptionMeant(*command, option.unknown));
      } else {
        early = option.unknown;
      }
    } else if (const CLI::App* below = CommandBelow(*command, word)) {
      command = below;
      path += ' ' + word;
      if (!early.empty() && FindOption(*command, early) != nullptr) {
        return fmt::format("{}: options come after the command, as in `{} {}`", early, path, early);
      }
    } else if (!command->get_subcommands({}).empty()) {  // or the value of the early option
      const std::string meant = CommandMeant(*command, word);
      if (early.empty() || !meant.empty()) return NoSuch("command", word, meant);
    }
  }
  if (early.empty()) return std::nullopt;
  return NoSuch("option", early, OptionMeant(*command, early));
}

std::optional<std::string> DescribeExtraArguments(const CLI::App& root) {
  const std::vector<std::string> extra = root.remaining(true);
  if (extra.empty()) return std::nullopt;
  const CLI::App* command = &root;
  while (!command->get_subcommands().empty()) command = command->get_subcommands()[0];
  std::vector<std::string> wanted;
  std::vector<std::string> typed;
  for (const CLI::Option* option : command->get_options()) {
    if (!option->get_positional()) continue;
    wanted.push_back(option->get_name(true));
    typed.insert(typed.end(), option->results().begin(), option->results().end());
  }
  typed.insert(typed.end(), extra.begin(), extra.end());
  std::string text =
      fmt::format("expected {}, found {}: {}",
                  wanted.empty() ? "no argument" : fmt::format("{}", fmt::join(wanted, " ")),
                  FormatCount(typed.size(), "argument"), PrintableNames(typed, typed.size()));
  // The last one may be another argument of the command.
  std::string pattern = PatternOf(typed);
  if (pattern.empty()) pattern = PatternOf({typed.begin(), typed.end() - 1});
  if (!pattern.empty()) {
    text += fmt::format("; if the shell expanded a pattern, give it quoted and with {{rank}}: '{}'",
                        PrintableName(pattern));
    return text;
  }
  for (const char* const name : {"--include", "--exclude"}) {
    const CLI::Option* const option = FindOption(*command, name);
    if (option != nullptr && option->count() > 0) {
      return text + fmt::format("; if the shell expanded a pattern of {}, quote it", name);
    }
  }
  const std::string folder = typed[0].substr(0, typed[0].find_last_of('/') + 1);
  if (folder.size() > 1 && typed.size() > 2 &&
      std::all_of(typed.begin(), typed.end() - 1,
                  [&](const std::string& name) { return name.starts_with(folder); })) {
    text += fmt::format("; if the shell expanded a pattern, give its folder: '{}'",
                        PrintableName(folder.substr(0, folder.size() - 1)));
  }
  return text;
}

}  // namespace reshard
