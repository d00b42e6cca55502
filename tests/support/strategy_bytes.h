// Builds strategy files for tests, in both encodings.
//
// Shares no code with src/mindspore.
#ifndef RESHARD_TESTS_SUPPORT_STRATEGY_BYTES_H_
#define RESHARD_TESTS_SUPPORT_STRATEGY_BYTES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/mindspore/strategy_tables.h"

namespace reshard {

// Fields of a ParallelStrategyMap in protobuf, key and length included.
std::string StrategyItemField(std::string_view node, int64_t stage);
std::string LayoutItemField(std::string_view name, const ParameterLayout& layout);

// Returns a layout without optimizer sharding.
ParameterLayout MakeLayout(std::vector<int64_t> device_matrix,
                           std::vector<std::vector<int64_t>> tensor_map);

// A strategy file as training writes it for one stage: current_stage, one strategy item, layouts.
std::string ProtobufStrategy(int64_t stage, const std::vector<NamedLayout>& layouts);
std::string JsonStrategy(int64_t stage, const std::vector<NamedLayout>& layouts);

// Returns what parsing one that has these layouts yields.
StrategyFile ParsedStrategy(std::string path, int64_t stage,
                            const std::vector<NamedLayout>& layouts);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_STRATEGY_BYTES_H_
