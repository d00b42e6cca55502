#include "src/convert/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "src/base/checked.h"
#include "src/base/status_macros.h"
#include "src/io/window_cache.h"
#include "src/os/file_pages.h"
#include "src/os/staged_file.h"
#include "src/os/system_call.h"

namespace reshard {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kDefaultLimit = 256 * kMiB;
// The memory of a process of this program, of small strategies, and of the allocator's reserve.
constexpr uint64_t kProgram = 10 * kMiB;
// The memory of threads, open files and many small objects during writing, and of allocator
// fragmentation.
constexpr uint64_t kSlack = 4 * kMiB;
// The kernel's memory for files and pages, those of libraries too, if a control group counts it. It
// stays free if the run needs less than the limit.
constexpr uint64_t kOfKernel = 12 * kMiB;
constexpr uint64_t kMostWindows = 64 * kMiB;
constexpr uint64_t kPlanningWindows = 16 * kMiB;  // headers are read once
constexpr uint64_t kMostWriteBack = 64 * kMiB;
constexpr uint64_t kSmallestChunk = kMiB / 2;
constexpr uint64_t kOfLane = kMiB / 8;  // stacks of two threads, digests of a chunk
constexpr size_t kMostOpen = 64;
constexpr uint64_t kSmallestStep = kMiB / 4;  // of a group's file, in source windows
// The memory that publication holds for a target file and a source file: digests, sizes and several
// copies of the path, as lists and as text.
constexpr uint64_t kOfTarget = 800;
constexpr uint64_t kTargetPaths = 10;
constexpr uint64_t kOfSource = 750;
constexpr uint64_t kSourcePaths = 6;

uint64_t InMiB(uint64_t bytes) { return (bytes + kMiB - 1) / kMiB; }

uint64_t RoundDown(uint64_t bytes) { return bytes - bytes % StagedFile::kAlignment; }

// Returns the size of a chunk within `bytes`: whole large pages if these fit, so that the source
// bytes of a chunk mostly end at a large page, too.
uint64_t ChunkWithin(uint64_t bytes) {
  const uint64_t chunk = RoundDown(std::min(bytes, kChunkBytes));
  return chunk < kLargePageBytes ? chunk : chunk - chunk % kLargePageBytes;
}

struct LessRanks {
  bool operator()(std::span<const int64_t> a, std::span<const int64_t> b) const {
    return std::ranges::lexicographical_compare(a, b);
  }
};

// The needs of a run for its largest files, and its minimum.
struct Needs {
  uint64_t largest = 0;  // target file
  uint64_t sources = 0;  // bytes
  uint64_t chunks = 0;   // for a lane
  uint64_t windows = 0;
  uint64_t write_back = 0;
  uint64_t publication = 0;
  uint64_t sharing = 0;  // target files that read the same sources, the most that do

  uint64_t buffers() const { return chunks + windows + write_back; }
};

Needs NeedsOf(const WorkList& work) {
  Needs needs;
  std::map<std::span<const int64_t>, uint64_t, LessRanks> sharing;
  for (const PlanReport::TargetFile& target : work.targets) {
    needs.sharing = std::max(needs.sharing, ++sharing[target.source_ranks]);
    needs.largest = std::max(needs.largest, target.size);
    needs.publication += kOfTarget + kTargetPaths * target.path.size();
  }
  for (const PlanReport::SourceFile& source : work.sources) {
    const uint64_t granules = (source.size + kGranuleBytes - 1) / kGranuleBytes;
    needs.sources = SaturatingAdd(needs.sources, granules * kGranuleBytes);  // in windows
    needs.publication += kOfSource + kSourcePaths * source.path.size();
  }
  const uint64_t chunk = std::clamp(RoundDown(needs.largest) + StagedFile::kAlignment,
                                    uint64_t{StagedFile::kAlignment}, kSmallestChunk);
  needs.chunks = 2 * chunk + kOfLane + work.largest_step_bytes;
  needs.windows = std::min(kWindowBytes, needs.sources);
  needs.write_back = 2 * chunk;
  return needs;
}

// Returns the bytes of plans that may be in memory besides the largest one: an eighth of `spare`
// bytes. It is more, up to half, if files that share their sources then read them fewer times,
// because all open files read them together.
uint64_t MorePlans(const Needs& needs, const WorkList& work, uint64_t spare) {
  const uint64_t plan = std::max<uint64_t>(work.largest_plan_bytes, 1);
  const auto sharing_by = [&needs](uint64_t count) { return (needs.sharing + count - 1) / count; };
  const uint64_t others = std::max<uint64_t>(work.targets.size(), 1) - 1;
  const uint64_t usual = std::min(spare / 8, others * plan);
  const uint64_t passes = sharing_by(1 + spare / 2 / plan);
  if (passes == 0 || passes >= sharing_by(1 + usual / plan)) return usual;
  const uint64_t open = sharing_by(passes);
  return (open - 1) * plan;
}

// "27M", "1536M", "1000 bytes".
std::string SizeAsTyped(uint64_t bytes) {
  if (bytes % kMiB == 0) return fmt::format("{}M", bytes / kMiB);
  return bytes % 1024 == 0 ? fmt::format("{}K", bytes / 1024) : fmt::format("{} bytes", bytes);
}

}  // namespace

Result<MemoryBudget> DivideMemory(uint64_t limit, size_t lanes) {
  MemoryBudget budget;
  budget.asked_for = limit != 0;
  budget.limit =
      limit != 0 ? limit : std::max(kLeastMemoryLimit, std::min(kDefaultLimit, MemoryOfHost() / 4));
  if (budget.limit < kLeastMemoryLimit) {
    return InvalidArgumentError(fmt::format("`memory_limit`: expected at least {}M, found {}",
                                            kLeastMemoryLimit / kMiB, SizeAsTyped(limit)));
  }
  const uint64_t quarter = (budget.limit - kProgram) / 4;
  budget.window_bytes = std::min(quarter, kPlanningWindows);
  // A window in use stays whole, and each lane uses one.
  budget.lanes = std::min<uint64_t>({lanes, quarter / (2 * kSmallestChunk + kOfLane),
                                     std::min(quarter, kMostWindows) / kWindowBytes});
  budget.chunk_bytes = ChunkWithin((quarter / budget.lanes - kOfLane) / 2);
  // Written bytes count at once, before room is made for them.
  budget.write_back_bytes = std::min(quarter, kMostWriteBack) - budget.lanes * budget.chunk_bytes;
  budget.index_bytes = quarter / 2;
  budget.plan_bytes = quarter / 2;
  if (budget.asked_for) return budget;
  budget.kept_plan_bytes = quarter / 8;
  budget.header_bytes = 2 * quarter;
  return budget;
}

uint64_t MeasuredMemory::Look() {
  const uint64_t held = meter.Look() + *pages;
  Note(held);
  return held;
}

void MeasuredMemory::Note(uint64_t bytes) {
  uint64_t before = peak;
  while (before < bytes && !peak.compare_exchange_weak(before, bytes)) {
  }
}

MemoryCheck CheckOf(const MemoryBudget& budget) {
  return [measured = budget.measured, limit = budget.limit,
          asked_for = budget.asked_for](uint64_t more) -> Status {
    more += MemoryWatch::kBetweenLooks;
    uint64_t held = measured->Look();
    if (!asked_for || !measured->refuses || held + more <= limit) return {};
    ReturnFreeMemory();
    held = measured->Look();
    if (held + more <= limit) return {};
    if (measured->planned) {
      return ResourceExhaustedError(
          fmt::format("the memory limit of {}M is too small: writing takes {}M, more than was "
                      "planned. No file was published; raise `memory_limit`, or leave it out",
                      InMiB(limit), InMiB(held + more)));
    }
    return ResourceExhaustedError(fmt::format(
        "the memory limit of {}M is too small: planning takes {}M so far for layouts, parameters "
        "and ranks, and will take more. No file was written; raise `memory_limit`, or leave it out",
        InMiB(limit), InMiB(held + more)));
  };
}

MemoryCheck WatchOf(const MemoryBudget& budget) {
  return budget.asked_for ? CheckOf(budget) : MemoryCheck();
}

size_t MostOpen(const MemoryBudget& budget, const WorkList& work) {
  return std::max<uint64_t>(budget.plan_bytes / std::max<uint64_t>(work.largest_plan_bytes, 1), 1);
}

size_t MaxGroup(const MemoryBudget& budget, const WorkList& work) {
  return std::clamp<size_t>(
      std::min<uint64_t>(
          {DescriptorLimit() / 8, budget.window_bytes / 2 / kSmallestStep, MostOpen(budget, work)}),
      1, kMostOpen);
}

Result<MemoryBudget> DivideRest(const MemoryBudget& budget, const WorkList& work, uint64_t held,
                                uint64_t headers) {
  const Needs needs = NeedsOf(work);
  MemoryBudget rest = budget;
  const uint64_t fixed = held + kSlack;
  const uint64_t of_lane = kOfLane + work.largest_step_bytes;
  const uint64_t needed =
      fixed + std::max(work.largest_plan_bytes + needs.buffers(), needs.publication);
  if (needed > budget.limit && budget.asked_for) {
    // Under a higher limit more indexes are kept, and files are planned several at a time.
    const uint64_t enough = needed + (needed - budget.limit) / 4 + kSlack;
    return ResourceExhaustedError(fmt::format(
        "the memory limit is {}M, but this conversion needs about {}M. Its layouts, parameters and "
        "ranks take {}M, the plan of its largest target file {}M, buffers the rest. Raise "
        "`memory_limit` to {}M, or leave it out",
        InMiB(budget.limit), InMiB(needed), InMiB(held),
        InMiB(work.largest_plan_bytes + work.largest_step_bytes), InMiB(enough)));
  }
  if (needed > budget.limit) {
    rest.limit = std::max(needed, std::min(needed + kDefaultLimit / 2, MemoryOfHost() / 4));
  }
  uint64_t left = rest.limit - std::min(rest.limit, fixed + work.largest_plan_bytes + kOfKernel);
  left = std::max(left, needs.buffers());
  rest.header_bytes = std::min({budget.header_bytes, headers, (left - needs.buffers()) / 2});
  left -= rest.header_bytes;
  const uint64_t more_plans = MorePlans(needs, work, left - needs.buffers());
  rest.plan_bytes = work.largest_plan_bytes + more_plans;
  const uint64_t third = (left - needs.buffers() - more_plans) / 3;
  const uint64_t windows = needs.windows + third;
  const uint64_t chunks = needs.chunks + third;
  rest.lanes = std::clamp<uint64_t>(std::min({chunks / (2 * kSmallestChunk + of_lane),
                                              windows / kWindowBytes, kMostWindows / kWindowBytes}),
                                    1, budget.lanes);
  rest.chunk_bytes = ChunkWithin((chunks / rest.lanes - of_lane) / 2);
  // The rest of the chunks' memory is for windows.
  rest.window_bytes =
      std::min(windows + chunks - rest.lanes * (2 * rest.chunk_bytes + of_lane), kMostWindows);
  const uint64_t pages = std::min(needs.write_back + third, kMostWriteBack);
  rest.write_back_bytes = pages - std::min(pages, rest.lanes * rest.chunk_bytes);

  const uint64_t chunk = std::min(rest.chunk_bytes, needs.largest);
  const uint64_t open = std::min(MaxGroup(rest, work), work.targets.size());
  const uint64_t writing = open * work.largest_plan_bytes + rest.lanes * (2 * chunk + of_lane) +
                           std::min(rest.window_bytes + rest.header_bytes, needs.sources) +
                           std::min(rest.write_back_bytes + rest.lanes * chunk, work.bytes_written);
  rest.planned_peak = fixed + std::max(writing, needs.publication);
  return rest;
}

Result<MemoryBudget> FitMemory(const MemoryBudget& budget, const HeldOfSources& sources,
                               const WorkList& work, std::vector<Warning>& warnings) {
  MemoryMeter& meter = budget.measured->meter;
  budget.measured->Look();
  // Without continuous measurements, both may have been held at the same time.
  if (!budget.asked_for) budget.measured->Note(meter.peak() + sources.peak);
  ReturnFreeMemory();
  const uint64_t held = meter.Look();
  RESHARD_ASSIGN_OR_RETURN(
      MemoryBudget rest,
      DivideRest(budget, work, held - std::min(held, sources.buffered) + sources.indexing,
                 sources.headers));
  rest.planned_peak = std::max<uint64_t>(rest.planned_peak, budget.measured->peak);
  if (rest.limit > budget.limit) {
    warnings.push_back(
        {WarningCode::kMemory,
         fmt::format("this conversion takes about {}M of memory, including {}M for its layouts, "
                     "parameters and ranks: more than the usual {}M{}",
                     InMiB(rest.planned_peak), InMiB(meter.peak()), InMiB(budget.limit),
                     rest.planned_peak > MemoryOfHost() / 4
                         ? ", and more than a quarter of this host's memory"
                         : "")});
  }
  budget.measured->planned = true;
  return rest;
}

MemoryBudget PastPageCache(MemoryBudget budget) {
  const uint64_t room = kMostWindows - std::min(kMostWindows, budget.window_bytes);
  const uint64_t moved = std::min(room, budget.write_back_bytes / 4 * 3);
  budget.write_back_bytes -= moved;
  budget.window_bytes += moved;
  return budget;
}

LaneOptions LanesFor(const MemoryBudget& budget, StorageKind storage,
                     std::span<const uint64_t> parts) {
  LaneOptions lanes;
  uint64_t chunks = 0;
  uint64_t largest = 0;
  for (const uint64_t length : parts) {
    chunks += length / budget.chunk_bytes + 1;
    largest = std::max(largest, length);
  }
  lanes.lanes = std::min<uint64_t>(budget.lanes, chunks);
  lanes.writer_threads = storage != StorageKind::kMemory && chunks > lanes.lanes;
  lanes.chunk_bytes = std::min(
      budget.chunk_bytes, (largest + StagedFile::kAlignment - 1) & ~(StagedFile::kAlignment - 1));
  lanes.chunk_bytes = std::max<uint64_t>(lanes.chunk_bytes, StagedFile::kAlignment);
  lanes.window_bytes = budget.window_bytes;
  return lanes;
}

}  // namespace reshard
