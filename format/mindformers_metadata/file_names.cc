#include "format/mindformers_metadata/file_names.h"

#include <cstddef>

#include "src/base/number_text.h"

namespace reshard {
namespace {

// Takes "-" and the number behind it off the end of `text`.
std::optional<uint64_t> TakeNumber(std::string_view& text) {
  constexpr size_t kLeastDigits = 7;
  const size_t at = text.rfind('-');
  if (at == std::string_view::npos || text.size() - at <= kLeastDigits) return std::nullopt;
  const auto number = ParseNumber<uint64_t>(text.substr(at + 1));
  text = text.substr(0, at);
  return number;
}

}  // namespace

std::optional<MindFormersName> ParseMindFormersName(std::string_view name) {
  constexpr std::string_view kExtension = ".safetensors";
  if (!name.ends_with(kExtension)) return std::nullopt;
  name.remove_suffix(kExtension.size());
  const auto count = TakeNumber(name);
  const auto number = count ? TakeNumber(name) : std::nullopt;
  if (!number) return std::nullopt;
  const bool is_optimizer = name == "opt" || name.ends_with("-opt");
  if (!is_optimizer && name != "model" && !name.ends_with("-model")) return std::nullopt;
  return MindFormersName{is_optimizer, *number, *count};
}

std::optional<uint64_t> LatestIteration(std::string_view content) {
  const size_t begin = content.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return std::nullopt;
  content.remove_prefix(begin);
  return ParseNumber<uint64_t>(content.substr(0, content.find_last_not_of(" \t\r\n") + 1));
}

}  // namespace reshard
