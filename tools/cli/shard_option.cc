#include "tools/cli/shard_option.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace reshard {
namespace {

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<WorkerShare> ParseShard(const std::string& text, const Environment& environment) {
  if (text == "auto") return FindWorkerShare(environment);
  const std::string_view whole = text;
  const size_t slash = whole.find('/');
  const auto index = ParseNumber(whole.substr(0, slash));
  const auto count =
      slash == std::string::npos ? std::nullopt : ParseNumber(whole.substr(slash + 1));
  if (!index || !count) {
    return InvalidArgumentError(
        fmt::format("--shard {}: expected i/n, as in 0/4 for the first of four, or auto", text));
  }
  const WorkerShare shard{*index, *count};
  if (IsWorkerShare(shard)) return shard;
  return InvalidArgumentError(fmt::format(
      "--shard {}: shards count from 0 to n - 1, and there are at most {}", text, kMaxWorkers));
}

}  // namespace reshard
