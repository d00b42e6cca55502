#include "src/frontend/read_option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "reshard/encryption.h"
#include "src/base/number_text.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/rounded_count.h"
#include "src/frontend/worker_share.h"

namespace reshard {
namespace {

Status HasToBe(std::string_view what, std::string_view found) {
  return InvalidArgumentError(fmt::format("has to be {}; found {}", what, Escape(found)));
}

// A number of digits only, below 10^most_digits.
std::optional<uint64_t> Digits(std::string_view text, size_t most_digits) {
  if (text.size() > most_digits || !HasOnlyDigits(text)) return std::nullopt;
  return ParseNumber<uint64_t>(text);
}

constexpr size_t kMostDigits = 18;  // never an overflow

Status AddRanks(std::string_view list, std::vector<int64_t>& ranks) {
  constexpr uint64_t kMostRanks = uint64_t{1} << 20;
  for (bool more = true; more;) {
    const size_t comma = list.find(',');
    const std::string_view range = list.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) list.remove_prefix(comma + 1);
    const size_t dash = range.find('-');
    const auto first = Digits(range.substr(0, dash), kMostDigits);
    const auto last =
        dash == std::string_view::npos ? first : Digits(range.substr(dash + 1), kMostDigits);
    if (!first || !last || *last < *first || *last - *first >= kMostRanks) {
      return HasToBe("ranks such as 3 or 0-7,9", range);
    }
    for (uint64_t rank = *first; rank <= *last; ++rank) {
      ranks.push_back(static_cast<int64_t>(rank));
    }
  }
  return {};
}

Status AddRankFile(const std::string& text, std::map<int64_t, std::string>& files) {
  const size_t equals = text.find('=');
  const std::string_view whole = text;
  const auto rank = Digits(whole.substr(0, equals), kMostDigits);
  if (!rank || equals == std::string::npos || equals + 1 == text.size()) {
    return HasToBe("RANK=FILE, as in 3=rank_3/net-1_100.ckpt", text);
  }
  const auto [place, added] = files.emplace(static_cast<int64_t>(*rank), text.substr(equals + 1));
  if (added) return {};
  return InvalidArgumentError(fmt::format("rank {} is given twice, as {} and as {}", place->first,
                                          Escape(place->second), Escape(text.substr(equals + 1))));
}

// Bytes. K, M, G and T are powers of 1024; with B behind them too, unless `decimal`.
Result<uint64_t> SizeOf(const std::string& text, bool decimal) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string decimals;
  if (digits > 0 && digits < text.size() && text[digits] == '.') {
    decimals = text.substr(digits + 1);
    decimals.resize(std::min(decimals.find_first_not_of("0123456789"), decimals.size()));
  }
  std::string unit = text.substr(digits + (decimals.empty() ? 0 : decimals.size() + 1));
  for (char& letter : unit) letter = static_cast<char>(std::toupper(letter));
  const bool is_decimal = decimal && unit.size() == 2 && unit.ends_with('B');
  if (unit.size() > 1 && unit.ends_with('B')) unit.pop_back();
  if (unit.size() > 1 && unit.ends_with('I')) unit.pop_back();
  const bool bare = unit.empty() || unit == "B";
  const size_t power = bare ? 0 : std::string_view("KMGT").find(unit) + 1;
  const size_t most_digits = bare ? 15 : 6;  // never an overflow
  constexpr size_t kMostDecimals = 9;
  if (digits == 0 || digits > most_digits || unit.size() > 1 || (!bare && power == 0) ||
      decimals.size() > kMostDecimals || (bare && !decimals.empty())) {
    return HasToBe("a size such as 200M or 1.5G", text);
  }
  uint64_t unit_bytes = 1;
  for (size_t i = 0; i < power; ++i) unit_bytes *= is_decimal ? 1000 : 1024;
  uint64_t bytes = *ParseNumber<uint64_t>(text.substr(0, digits)) * unit_bytes;
  if (!decimals.empty()) {
    uint64_t scale = 1;
    for (size_t i = 0; i < decimals.size(); ++i) scale *= 10;
    bytes += static_cast<uint64_t>(static_cast<double>(*ParseNumber<uint64_t>(decimals)) /
                                   static_cast<double>(scale) * static_cast<double>(unit_bytes));
  }
  if (bytes == 0) return InvalidArgumentError("has to be more than 0");
  return bytes;
}

constexpr size_t kMostDigitsOfCounts = 9;

Result<int64_t> CountOf(std::string_view text) {
  const auto count = Digits(text, kMostDigitsOfCounts);
  if (count && *count > 0) return static_cast<int64_t>(*count);
  return HasToBe("a whole number from 1 on", text);
}

Result<std::vector<int64_t>> CountsOf(std::string_view list) {
  std::vector<int64_t> counts;
  while (true) {
    const size_t comma = std::min(list.find(','), list.size());
    const auto count = CountOf(list.substr(0, comma));
    if (!count.ok()) return HasToBe("whole numbers from 1 on, such as 10,11,11", list);
    counts.push_back(*count);
    if (comma == list.size()) return counts;
    list.remove_prefix(comma + 1);
  }
}

Result<WorkerShare> ReadShare(const std::string& text) {
  if (text == "auto") {
    return FindWorkerShare(ProcessEnvironment);
  }
  const std::string_view whole = text;
  const size_t slash = std::min(whole.find('/'), whole.size());
  const auto index = Digits(whole.substr(0, slash), kMostDigits);
  const auto count =
      slash == whole.size() ? std::nullopt : Digits(whole.substr(slash + 1), kMostDigits);
  if (!index || !count) return HasToBe("i/n, as in 0/4 for the first of four, or auto", text);
  const WorkerShare share{*index, *count};
  if (IsWorkerShare(share)) return share;
  return HasToBe(fmt::format("i/n with i from 0 to n - 1, and n at most {}", kMaxWorkers), text);
}

Result<IoChoice> IoOf(std::string_view text) {
  IoChoice io;
  if (text == "auto") return io;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view how = text.substr(0, comma);
    if ((how == "map" || how == "pread") && io.source == IoChoice::Source::kAuto) {
      io.source = how == "map" ? IoChoice::Source::kMap : IoChoice::Source::kPread;
    } else if ((how == "direct" || how == "buffered") && io.target == IoChoice::Target::kAuto) {
      io.target = how == "direct" ? IoChoice::Target::kDirect : IoChoice::Target::kBuffered;
    } else {
      return HasToBe("auto, or map or pread, direct or buffered, or one of each", how);
    }
    if (comma == text.size()) return io;
    text.remove_prefix(comma + 1);
  }
}

Result<Selection::CastRule> CastOf(const std::string& text) {
  const size_t equals = text.rfind('=');
  Selection::CastRule rule;
  std::string_view type = text;
  if (equals != std::string::npos) {
    rule.pattern = text.substr(0, equals);
    type.remove_prefix(equals + 1);
  }
  constexpr std::pair<std::string_view, std::string_view> kShortWords[] = {
      {"fp16", "float16"}, {"bf16", "bfloat16"}, {"fp32", "float32"}};
  for (const auto& [short_word, word] : kShortWords) {
    if (type == short_word) type = word;
  }
  const auto words = CastWords();
  const auto found = std::find_if(words.begin(), words.end(),
                                  [&](const auto& entry) { return entry.first == type; });
  if (found == words.end() || equals == 0) {
    return HasToBe(
        "TYPE or GLOB=TYPE, and TYPE one of float16, bfloat16, float32, float64, float8_e4m3fn, "
        "float8_e5m2 and keep",
        text);
  }
  rule.dtype = found->second;
  return rule;
}

// Reads each text, and makes a list of the values.
template <typename Item, typename Read>
Result<OptionValue> ListOf(std::span<const std::string> texts, const Read& read) {
  std::vector<Item> items;
  for (const std::string& text : texts) {
    RESHARD_ASSIGN_OR_RETURN(Item item, read(text));
    items.push_back(std::move(item));
  }
  return OptionValue(std::move(items));
}

template <typename T>
Result<OptionValue> ValueOf(Result<T> read) {
  if (!read.ok()) return read.status();
  return OptionValue(*std::move(read));
}

}  // namespace

Result<std::vector<std::string>> SplitPatterns(std::string_view text) {
  std::vector<std::string> patterns;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '[') {  // as GlobMatch reads a set
      const size_t first = i + (text.substr(i).starts_with("[!") ? 2 : 1);
      const size_t end = text.find(']', first + 1);
      if (end != std::string_view::npos) i = end;
    } else if (text[i] == ',') {
      patterns.emplace_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  patterns.emplace_back(text.substr(begin));
  if (patterns.size() > 1 && std::find(patterns.begin(), patterns.end(), "") != patterns.end()) {
    return HasToBe("patterns with a comma between two", text);
  }
  return patterns;
}

Result<OptionValue> ReadOption(const Option& option, std::span<const std::string> texts) {
  const std::string& text = texts.back();
  switch (option.type) {
    case OptionType::kSwitch:
      return OptionValue(text == "true");
    case OptionType::kSwitchOrWord:
    case OptionType::kWord:
      if (FindWord(option, text) != nullptr) return OptionValue(text);
      return HasToBe(fmt::format("one of {}", fmt::join(WordsOf(option), ", ")), text);
    case OptionType::kText:
    case OptionType::kFile:
    case OptionType::kSwitchOrFile:
      return OptionValue(text);
    case OptionType::kPatterns: {
      std::vector<std::string> patterns;
      for (const std::string& list : texts) {
        RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> some, SplitPatterns(list));
        patterns.insert(patterns.end(), some.begin(), some.end());
      }
      return OptionValue(std::move(patterns));
    }
    case OptionType::kFiles:
      return OptionValue(std::vector<std::string>(texts.begin(), texts.end()));
    case OptionType::kRanks: {
      std::vector<int64_t> ranks;
      for (const std::string& list : texts) RESHARD_RETURN_IF_ERROR(AddRanks(list, ranks));
      return OptionValue(std::move(ranks));
    }
    case OptionType::kRankFiles: {
      std::map<int64_t, std::string> files;
      for (const std::string& entry : texts) RESHARD_RETURN_IF_ERROR(AddRankFile(entry, files));
      return OptionValue(std::move(files));
    }
    case OptionType::kSize:
    case OptionType::kDecimalSize:
      return ValueOf(SizeOf(text, option.type == OptionType::kDecimalSize));
    case OptionType::kParameterCount:
      RESHARD_RETURN_IF_ERROR(ParseParameterCount(text).status());
      return OptionValue(text);
    case OptionType::kSeconds:
    case OptionType::kNumber: {
      constexpr size_t kMostDigitsOfSeconds = 9;
      if (const auto seconds = Digits(text, kMostDigitsOfSeconds)) return OptionValue(*seconds);
      return HasToBe("a whole number below 10^9", text);
    }
    case OptionType::kCount:
      return ValueOf(CountOf(text));
    case OptionType::kCounts:
      return ValueOf(CountsOf(text));
    case OptionType::kSwitchOrCount:
      return text == "true" ? OptionValue(int64_t{-1}) : ValueOf(CountOf(text));
    case OptionType::kShare:
      return ValueOf(ReadShare(text));
    case OptionType::kIo:
      return ValueOf(IoOf(text));
    case OptionType::kCasts:
      return ListOf<Selection::CastRule>(texts, CastOf);
    case OptionType::kRenames:
      return ValueOf(ReadRenames(text));
    case OptionType::kKeyFile:
      return ValueOf(EncryptionKey::FromFile(text));
    case OptionType::kKeyVariable:
      return ValueOf(EncryptionKey::FromEnvironment(text));
  }
  return InternalError("an option of no type");
}

}  // namespace reshard
