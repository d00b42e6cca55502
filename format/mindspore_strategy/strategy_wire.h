// Steps through the items of a strategy in protobuf; shared by reading and merging.
#ifndef RESHARD_FORMAT_MINDSPORE_STRATEGY_STRATEGY_WIRE_H_
#define RESHARD_FORMAT_MINDSPORE_STRATEGY_STRATEGY_WIRE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "format/mindspore_strategy/strategy.pb.h"
#include "reshard/status.h"

namespace reshard {

// Keys (number << 3 | wire type) of a ParallelStrategyMap.
inline constexpr char kCurrentStageKey = 0x08;
inline constexpr char kStrategyItemKey = 0x12;
inline constexpr char kLayoutItemKey = 0x1a;

struct StrategyItemVisitor {
  // Called for each item in file order; may change it. `offset` is that of its key in the file.
  std::function<Status(uint64_t offset, ParallelStrategyItem& item)> on_strategy;
  std::function<Status(uint64_t offset, ParallelLayoutItem& item)> on_layout;
};

// Visits the items of `bytes`, at most 2 GiB; other fields are skipped. `path` is for messages.
// Errors: kCorrupt (path, offset), and what the visitor returns.
Status VisitStrategyItems(const std::string& path, std::string_view bytes,
                          const StrategyItemVisitor& visitor);

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDSPORE_STRATEGY_STRATEGY_WIRE_H_
