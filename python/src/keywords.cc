#include "python/src/keywords.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "src/frontend/read_option.h"

namespace nb = nanobind;

namespace reshard::python {
namespace {

// Whether it is a single str or os.PathLike.
bool IsText(nb::handle value) {
  return nb::isinstance<nb::str>(value) || nb::hasattr(value, "__fspath__");
}

// One text, or several.
std::vector<std::string> TextsOf(nb::handle value) {
  if (IsText(value)) return {TextOf(value)};
  std::vector<std::string> texts;
  for (const nb::handle item : value) texts.push_back(TextOf(item));
  return texts;
}

// Numbers and lists such as "0-7,9", or a sequence of such values.
void AddRankTexts(nb::handle value, std::vector<std::string>& texts) {
  if (nb::isinstance<nb::int_>(value)) {
    int64_t rank = 0;
    Set(rank, value);
    texts.push_back(std::to_string(rank));
  } else if (IsText(value)) {
    texts.push_back(TextOf(value));
  } else {
    for (const nb::handle item : value) AddRankTexts(item, texts);
  }
}

// "GLOB=TYPE" or "TYPE", a sequence of these, or {glob: type}.
std::vector<std::string> CastTexts(nb::handle value) {
  if (!nb::isinstance<nb::dict>(value)) return TextsOf(value);
  std::vector<std::string> texts;
  for (const auto& [pattern, type] : nb::cast<nb::dict>(value)) {
    const std::string glob = TextOf(pattern);
    texts.push_back(glob.empty() ? TextOf(type) : glob + '=' + TextOf(type));
  }
  return texts;
}

// The content of a JSON file of new names.
Renames RenamesIn(const nb::dict& map) {
  Renames renames;
  for (const auto& [name, renamed] : map) {
    if (nb::isinstance<nb::dict>(renamed)) {
      Set(renames.patterns, renamed);
    } else {
      Set(renames.names[TextOf(name)], renamed);
    }
  }
  return renames;
}

uint64_t SizeOf(nb::handle value) {
  uint64_t size = 0;
  if (!nb::try_cast(value, size) || size == 0) {
    throw StatusError(InvalidArgumentError("has to be more than 0"));
  }
  return size;
}

// "10,11,11" for a row of numbers.
std::string CountsText(nb::handle values) {
  std::string text;
  for (const nb::handle value : values) {
    text += (text.empty() ? "" : ",") + TextOf(nb::str(value));
  }
  return text;
}

// Whole seconds, as a command line takes them.
uint64_t SecondsOf(nb::handle value) {
  constexpr double kMost = 999'999'999;
  double seconds = -1;
  if (!nb::try_cast(value, seconds) || !(seconds >= 0 && seconds <= kMost)) {
    throw StatusError(InvalidArgumentError("has to be seconds, from 0 to 999999999"));
  }
  return static_cast<uint64_t>(std::ceil(seconds));
}

WorkerShare ShareIn(const nb::tuple& value) {
  if (value.size() != 2) {
    throw StatusError(InvalidArgumentError("expected two numbers, such as (0, 4); found " +
                                           std::to_string(value.size())));
  }
  WorkerShare share;
  Set(share.index, value[0]);
  Set(share.count, value[1]);
  return share;
}

}  // namespace

Renames RenamesOf(nb::handle value) {
  return nb::isinstance<nb::dict>(value) ? RenamesIn(nb::cast<nb::dict>(value))
                                         : Take(ReadRenames(TextOf(value)));
}

std::optional<OptionValue> ReadKeyword(const Option& option, nb::handle value) {
  std::vector<std::string> texts;
  switch (option.type) {
    case OptionType::kSwitch: {
      bool is_on = false;
      Set(is_on, value);
      return is_on;
    }
    case OptionType::kSwitchOrWord:
      if (nb::isinstance<nb::bool_>(value)) {
        if (!nb::cast<bool>(value)) return std::nullopt;
        return std::string("true");
      }
      break;
    case OptionType::kFiles:
      texts = TextsOf(value);
      return texts;
    case OptionType::kPatterns:
      texts = TextsOf(value);
      if (texts.empty()) return texts;
      break;
    case OptionType::kRanks:
      AddRankTexts(value, texts);
      if (texts.empty()) return std::vector<int64_t>();
      break;
    case OptionType::kRankFiles: {
      std::map<int64_t, std::string> files;
      Set(files, value);
      return files;
    }
    case OptionType::kSize:
    case OptionType::kDecimalSize:
      if (!IsText(value)) return SizeOf(value);
      break;
    case OptionType::kSeconds:
      return SecondsOf(value);
    case OptionType::kSwitchOrFile:
      if (nb::isinstance<nb::bool_>(value)) {
        if (!nb::cast<bool>(value)) return std::nullopt;
        return std::string();
      }
      break;
    case OptionType::kSwitchOrCount:
      if (nb::isinstance<nb::bool_>(value)) {
        if (!nb::cast<bool>(value)) return std::nullopt;
        return int64_t{-1};
      }
      [[fallthrough]];
    case OptionType::kCount:
    case OptionType::kNumber:
      if (!IsText(value)) texts.push_back(TextOf(nb::str(value)));
      break;
    case OptionType::kCounts:
      if (!IsText(value)) texts.push_back(CountsText(value));
      break;
    case OptionType::kShare:
      if (!IsText(value)) return ShareIn(nb::tuple(value));
      break;
    case OptionType::kCasts:
      texts = CastTexts(value);
      if (texts.empty()) return std::vector<Selection::CastRule>();
      break;
    case OptionType::kRenames:
      return RenamesOf(value);
    default:
      break;
  }
  if (texts.empty()) texts.push_back(TextOf(value));
  return Take(ReadOption(option, texts));
}

}  // namespace reshard::python
