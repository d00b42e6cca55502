#include "tools/cli/table_options.h"

#include <sys/prctl.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "src/frontend/read_option.h"
#include "tools/cli/command_table.h"

namespace reshard {
namespace {

// From now on the system writes no core dump of this process, and other processes of the user
// cannot read its memory. The memory has the key, and values that OpenSSL derives from it.
void KeepMemoryPrivate() { prctl(PR_SET_DUMPABLE, 0); }

bool IsKey(OptionType type) {
  return type == OptionType::kKeyFile || type == OptionType::kKeyVariable;
}

bool IsRepeatable(OptionType type) {
  switch (type) {
    case OptionType::kPatterns:
    case OptionType::kFiles:
    case OptionType::kRanks:
    case OptionType::kRankFiles:
    case OptionType::kCasts:
      return true;
    default:
      return false;
  }
}

}  // namespace

void TableOptions::AddTo(CLI::App& app, Call call, const std::string& group) {
  std::map<std::string_view, CLI::Option*> by_name;
  for (const Option& option : AllOptions()) {
    if ((option.calls & call) == 0) continue;
    CLI::Option* const added = Add(app, option);
    added->required(option.is_required);
    if (const std::string value = ValueInHelp(option); !value.empty()) added->type_name(value);
    if (!group.empty() || !option.group.empty()) {
      added->group(group.empty() ? std::string(option.group) : group);
    }
    // Two ways to give one thing.
    const auto [first, is_new] = by_name.emplace(option.name, added);
    if (!is_new) added->excludes(first->second);
  }
}

CLI::Option* TableOptions::Add(CLI::App& app, const Option& option) {
  std::string name = OnCommandLine(option);
  if (!option.other_word.empty()) name.append(",--").append(option.other_word);
  const std::string help(option.help);
  if (option.type == OptionType::kSwitch) {
    return app.add_flag_callback(
        name, [this, &option] { Take(option, {"true"}); }, help);
  }
  if (option.type == OptionType::kSwitchOrWord) {
    std::string& text = flags_.emplace_back(&option, std::string()).second;
    const std::vector<std::string_view> words = WordsOf(option);
    return app.add_flag(name, text, help)
        ->check(
            CLI::IsMember(std::vector<std::string>(words.begin(), words.end())).description(""));
  }
  if (option.type == OptionType::kSwitchOrCount || option.type == OptionType::kSwitchOrFile) {
    return app
        .add_option_function<std::string>(
            name, [this, &option](const std::string& text) { Take(option, {text}); }, help)
        ->expected(0, 1)
        ->default_str(option.type == OptionType::kSwitchOrCount ? "true" : "");
  }
  if (IsRepeatable(option.type)) {
    return app
        .add_option_function<std::vector<std::string>>(
            name, [this, &option](const std::vector<std::string>& texts) { Take(option, texts); },
            help)
        ->allow_extra_args(false);
  }
  return app.add_option_function<std::string>(
      name, [this, &option](const std::string& text) { Take(option, {text}); }, help);
}

void TableOptions::Take(const Option& option, const std::vector<std::string>& texts) {
  Given given{&option, texts, {}};
  if (IsKey(option.type)) KeepMemoryPrivate();
  if (option.type != OptionType::kRenames) {
    Result<OptionValue> value = ReadOption(option, texts);
    if (!value.ok()) {
      throw CLI::ValidationError(OnCommandLine(option), value.status().message());
    }
    given.value = *std::move(value);
  }
  given_.push_back(std::move(given));
}

Status TableOptions::ApplyTo(const OptionParts& parts) const {
  for (const auto& [option, text] : flags_) {
    if (!text.empty()) SetOption(*option, parts, text);
  }
  for (const Given& given : given_) {
    if (given.option->type != OptionType::kRenames) {
      SetOption(*given.option, parts, given.value);
      continue;
    }
    Result<OptionValue> value = ReadOption(*given.option, given.texts);
    if (!value.ok()) return value.status();
    SetOption(*given.option, parts, *value);
  }
  return {};
}

bool TableOptions::Has(std::string_view name) const {
  return std::any_of(given_.begin(), given_.end(),
                     [name](const Given& given) { return given.option->name == name; });
}

void TableOptions::RequireOneSource(const std::string& path) const {
  const bool has_files = Has("source.files");
  if (has_files && !path.empty()) throw CLI::ExcludesError("SRC", "--source");
  if (!has_files && path.empty()) throw CLI::RequiredError("SRC");
}

}  // namespace reshard
