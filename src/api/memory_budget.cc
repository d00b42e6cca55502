#include "src/api/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/exec/part_writer.h"
#include "src/os/descriptor_limit.h"
#include "src/os/memory_usage.h"
#include "src/source/window_cache.h"

namespace reshard {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kDefaultLimit = 256 * kMiB;
// What a process of this program takes before it does anything, its strategies, and what the
// allocator keeps.
constexpr uint64_t kProgram = 10 * kMiB;
constexpr uint64_t kMostWindows = 64 * kMiB;
constexpr uint64_t kMostWriteBack = 64 * kMiB;
constexpr uint64_t kSmallestChunk = kMiB / 2;
constexpr uint64_t kOfLane = kMiB / 8;  // stacks of two threads, digests of a chunk
constexpr size_t kMostOpen = 64;
constexpr uint64_t kSmallestStep = kMiB / 4;  // of a group's file, in source windows

uint64_t InMiB(uint64_t bytes) { return (bytes + kMiB - 1) / kMiB; }

uint64_t RoundDown(uint64_t bytes) { return bytes - bytes % StagedFile::kAlignment; }

}  // namespace

Result<MemoryBudget> DivideMemory(uint64_t limit, size_t lanes) {
  MemoryBudget budget;
  budget.asked_for = limit != 0;
  budget.limit =
      limit != 0 ? limit : std::max(kLeastMemoryLimit, std::min(kDefaultLimit, MemoryOfHost() / 4));
  if (budget.limit < kLeastMemoryLimit) {
    return InvalidArgumentError(
        fmt::format("a memory limit of {} bytes is too small; the least that works is {}M", limit,
                    kLeastMemoryLimit / kMiB));
  }
  const uint64_t rest = budget.limit - kProgram;
  const uint64_t quarter = rest / 4;
  budget.window_bytes = std::min(quarter, kMostWindows);
  // A window in use stays whole, and each lane uses one.
  budget.lanes = std::min<uint64_t>(
      {lanes, quarter / (2 * kSmallestChunk + kOfLane), budget.window_bytes / kWindowBytes});
  budget.chunk_bytes = RoundDown(std::min(kChunkBytes, (quarter / budget.lanes - kOfLane) / 2));
  // What is written counts from the moment that it is, before room is made for it.
  budget.write_back_bytes = std::min(quarter, kMostWriteBack) - budget.lanes * budget.chunk_bytes;
  budget.index_bytes = quarter / 2;
  budget.plan_bytes = quarter / 2;
  return budget;
}

size_t MaxGroup(const MemoryBudget& budget, const PlanReport& plan) {
  return std::clamp<size_t>(
      std::min<uint64_t>({DescriptorLimit() / 8, budget.window_bytes / 2 / kSmallestStep,
                          budget.plan_bytes / std::max<uint64_t>(plan.largest_plan_bytes, 1)}),
      1, kMostOpen);
}

uint64_t PlannedPeak(const MemoryBudget& budget, const PlanReport& plan, uint64_t index_bytes) {
  uint64_t largest = 0;
  for (const TargetFileSummary& target : plan.targets) largest = std::max(largest, target.size);
  uint64_t sources = 0;
  for (const SourceFileSummary& source : plan.sources) sources += source.size;
  const uint64_t chunk = std::min(budget.chunk_bytes, largest);
  const uint64_t open = std::min(MaxGroup(budget, plan), plan.targets.size());
  return kProgram + index_bytes + open * plan.largest_plan_bytes +
         budget.lanes * (2 * chunk + kOfLane) + std::min(budget.window_bytes, sources) +
         std::min(budget.write_back_bytes + budget.lanes * chunk, plan.bytes_written);
}

Status CheckFits(const MemoryBudget& budget, const PlanReport& plan, uint64_t index_bytes) {
  const uint64_t planned = PlannedPeak(budget, plan, index_bytes);
  if (!budget.asked_for || planned <= budget.limit) return {};
  return ResourceExhaustedError(fmt::format(
      "this conversion takes about {}M, {}M of them for the plan of its largest target file and "
      "{}M "
      "for the indexes of its sources; the memory limit is {}M: {}M is enough, and so is none",
      InMiB(planned), InMiB(plan.largest_plan_bytes), InMiB(index_bytes), InMiB(budget.limit),
      InMiB(kProgram + 8 * std::max(plan.largest_plan_bytes, index_bytes))));
}

}  // namespace reshard
