#include "src/sharded/shard_name.h"

#include <cstddef>
#include <cstdint>

#include "src/base/number_text.h"

namespace reshard {
namespace {

// Takes `word` and the number behind it off `text`.
std::optional<int64_t> TakeShardNumber(std::string_view word, std::string_view& text) {
  constexpr size_t kLeastDigits = 5;
  if (!text.starts_with(word)) return std::nullopt;
  text.remove_prefix(word.size());
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
  text.remove_prefix(digits.size());
  if (digits.size() < kLeastDigits) return std::nullopt;
  return ParseNumber<int64_t>(digits);
}

}  // namespace

std::optional<ShardName> ParseShardName(std::string_view name) {
  const auto shard = TakeShardNumber("shard-", name);
  const auto file = shard ? TakeShardNumber("-model-", name) : std::nullopt;
  const auto files = file ? TakeShardNumber("-of-", name) : std::nullopt;
  if (!files || name != ".safetensors") return std::nullopt;
  return ShardName{static_cast<uint64_t>(*shard), static_cast<uint64_t>(*file),
                   static_cast<uint64_t>(*files)};
}

}  // namespace reshard
