#include "src/record/option_json.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "reshard/tensor.h"
#include "src/record/strict_json.h"

namespace reshard {
namespace {

// The member for the patterns of an option whose names are in the member `name`.
std::string PatternsKey(std::string_view name) {
  return name == "renames" ? "rename_patterns" : std::string(name).append("_patterns");
}

std::string PairsAsJson(const std::map<std::string, std::string>& map) {
  return JsonList(map, [](const auto& pair) {
    return fmt::format("[{},{}]", BytesAsJson(pair.first), BytesAsJson(pair.second));
  });
}

std::string CastAsJson(const Selection::CastRule& rule) {
  return fmt::format("[{},{}]", BytesAsJsonOrNull(rule.pattern),
                     rule.dtype ? fmt::format("\"{}\"", DTypeName(*rule.dtype)) : "null");
}

class AsJson {
 public:
  explicit AsJson(std::string_view name) : name_(name) {}

  std::string operator()(bool value) const { return Member(value ? "true" : "false"); }
  std::string operator()(uint64_t value) const { return Member(fmt::format("{}", value)); }
  std::string operator()(int64_t value) const { return Member(fmt::format("{}", value)); }
  std::string operator()(const std::string& value) const { return Member(BytesAsJson(value)); }
  std::string operator()(const std::vector<std::string>& values) const {
    return Member(JsonList(values, BytesAsJson));
  }
  std::string operator()(const std::vector<int64_t>& values) const {
    return Member(JsonList(values, [](int64_t value) { return fmt::format("{}", value); }));
  }
  std::string operator()(const std::vector<Selection::CastRule>& values) const {
    return Member(JsonList(values, CastAsJson));
  }
  std::string operator()(const Renames& renames) const {
    const std::string names = renames.names.empty() ? "" : Member(PairsAsJson(renames.names));
    const std::string patterns =
        renames.patterns.empty() ? ""
                                 : AsJson(PatternsKey(name_)).Member(PairsAsJson(renames.patterns));
    return names + (names.empty() || patterns.empty() ? "" : ",") + patterns;
  }
  // Values that no option of a record has.
  template <typename Other>
  std::string operator()(const Other&) const {
    return {};
  }

 private:
  std::string Member(std::string_view value) const {
    return fmt::format("\"{}\":{}", name_, value);
  }

  std::string_view name_;
};

// No value if the line does not have the option.
std::optional<OptionValue> ReadValue(const Option& option, LineValues& line) {
  const std::string member = fmt::format("options.{}", option.name);
  if (option.type == OptionType::kRenames) {
    return Renames{line.Pairs(member),
                   line.Pairs(fmt::format("options.{}", PatternsKey(option.name)))};
  }
  if (!line.Has(member)) return std::nullopt;
  switch (option.type) {
    case OptionType::kSwitch:
      return line.Truth(member);
    case OptionType::kWord:
    case OptionType::kSwitchOrWord: {
      const std::optional<std::string> word = line.Text(member);
      if (!word || FindWord(option, *word) != nullptr) return word;
      line.Refuse();
      return std::nullopt;
    }
    case OptionType::kText:
    case OptionType::kSwitchOrFile:
      return line.Text(member);
    case OptionType::kSize:
    case OptionType::kDecimalSize:
      return line.Size(member);
    case OptionType::kPatterns:
    case OptionType::kFiles:
      return line.Texts(member);
    case OptionType::kCount:
    case OptionType::kSwitchOrCount:
      return line.Number(member);
    case OptionType::kRanks:
    case OptionType::kCounts:
      return line.Numbers(member);
    case OptionType::kCasts:
      return line.Casts(member);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string OptionAsJson(const Option& option, const OptionValue& value) {
  return std::visit(AsJson(option.name), value);
}

std::string OptionsAsJson(ConversionSpec spec) {
  std::string json;
  for (const Option& option : AllOptions()) {
    if (!IsRecorded(option)) continue;
    const bool is_size_of_files = option.only_with && option.only_with == spec.target.format;
    if (IsUsual(option, spec) && !is_size_of_files) continue;
    if (const auto value = ValueIn(option, PartsOf(spec))) {
      json += (json.empty() ? "" : ",") + OptionAsJson(option, *value);
    }
  }
  return '{' + json + '}';
}

void ReadOptions(LineValues& line, ConversionSpec& spec) {
  for (const Option& option : AllOptions()) {
    if (!IsRecorded(option) || (option.calls & kAgainstCall) == 0) continue;
    const auto value = ReadValue(option, line);
    if (value) SetOption(option, PartsOf(spec), *value);
  }
}

}  // namespace reshard
