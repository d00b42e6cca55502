#include "tools/page/strategy_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <vector>

namespace reshard {
namespace {

// The number of parts in a tensor map's cut; 0 if it names no axis of the matrix.
int64_t PartsOf(const ParameterLayout& layout) {
  int64_t parts = 1;
  for (const std::vector<int64_t>& axes : layout.tensor_map) {
    for (const int64_t axis : axes) {
      if (axis < 0) continue;  // not cut
      const auto count = std::ssize(layout.device_matrix);
      if (axis >= count) return 0;
      parts *= layout.device_matrix[static_cast<size_t>(count - 1 - axis)];
    }
  }
  return parts;
}

// "1, 4 or 8"
std::string Alternatives(const std::set<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) {
    if (!text.empty()) text += number == *numbers.rbegin() ? " or " : ", ";
    text += fmt::format("{}", number);
  }
  return text;
}

}  // namespace

std::string StrategyInWords(const Strategy& strategy) {
  const int64_t devices = strategy.devices_per_stage();
  std::set<int64_t> parts;   // by tensor maps
  std::set<int64_t> shards;  // by further cuts over the replicas
  for (const Strategy::Stage& stage : strategy.stages()) {
    for (const Strategy::Entry named : stage) {
      const int64_t cut = PartsOf(named.layout);
      if (cut > 1) parts.insert(cut);
      if (cut < 1 || named.layout.opt_weight_shard_step == 0) continue;
      const int64_t size = named.layout.opt_weight_shard_size;
      const int64_t over = size == -1 ? devices / cut : size;
      if (over > 1) shards.insert(over);
    }
  }
  std::vector<std::string> words;
  if (parts.size() > 1) {
    words.push_back(fmt::format("parameters cut into {} parts", Alternatives(parts)));
  } else {
    const int64_t tensor_parallel = parts.empty() ? 1 : *parts.begin();
    if (tensor_parallel > 1) words.push_back(fmt::format("tensor parallel {}", tensor_parallel));
    if (devices > tensor_parallel) {
      words.push_back(fmt::format("data parallel {}", devices / tensor_parallel));
    }
  }
  if (!shards.empty()) {
    words.push_back(fmt::format("optimizer sharded over {}", Alternatives(shards)));
  }
  if (words.empty()) words.emplace_back("nothing is cut");
  std::string text = fmt::format("{}", fmt::join(words, ", "));
  const size_t stages = strategy.stages().size();
  if (stages > 1) text += fmt::format("; {} stages", stages);
  return text;
}

}  // namespace reshard
