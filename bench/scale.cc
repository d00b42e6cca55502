// How planning scales: build/bench/bin/scale [--all].
//
// A model of 405 billion parameters with Adam's moments, on 16,384 ranks (8-fold tensor, 16-fold
// pipeline, 128-fold data parallel, the optimizer sharded over the replicas), and targets of 8,192
// ranks. Nothing is read: strategies are bytes in memory, and indexes are made of the model, so the
// figures are those of parsing and planning alone. Seconds are CPU seconds of this process, on one
// thread. Without --all, a sample of 128 target ranks, evenly spread, stands for all.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/mindspore_checkpoint/checkpoint_encoder.h"
#include "format/mindspore_checkpoint/parameter_grouping.h"
#include "src/base/status_macros.h"
#include "src/io/source_files.h"
#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/grid_placement.h"
#include "src/mindspore/layout_grid.h"
#include "src/mindspore/mindspore_target.h"
#include "src/mindspore/rank_list.h"
#include "src/mindspore/strategy_codec.h"
#include "src/mindspore/strategy_tables.h"
#include "src/source/shard_grid.h"
#include "src/source/source.h"
#include "src/source/table_cache.h"
#include "src/tensor/byte_box.h"
#include "tools/gen/sample_model.h"

namespace reshard {
namespace {

using Stages = std::vector<std::vector<SampleParameter>>;

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Returns the most memory that this process has had so far, in MiB.
uint64_t PeakMiB() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) >> 10;
  }
  return 0;
}

class Stopwatch {
 public:
  double Seconds() const { return CpuSeconds() - begin_; }

 private:
  double begin_ = CpuSeconds();
};

void Print(std::string_view what, double seconds, std::string_view more = {}) {
  fmt::print("  {:<44} {:>10.4f} s{}{}\n", what, seconds, more.empty() ? "" : "  ", more);
}

// Llama 3.1 405B; the vocabulary is padded to a multiple of 1024, as 1024 ranks cut it.
SampleModel Model405B() {
  SampleModel model;
  model.layers = 126;
  model.hidden = 16384;
  model.kv = 1024;
  model.ffn = 53248;
  model.vocab = 129024;
  return model;
}

Result<Strategy> ParseStages(const Stages& stages, const std::string& path, bool json) {
  std::vector<StrategyFile> files;
  uint64_t bytes = 0;
  double seconds = 0;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const auto number = static_cast<int64_t>(stage);
    RESHARD_ASSIGN_OR_RETURN(
        const std::string text,
        EncodeStage(stages[stage], number,
                    json ? StrategyEncoding::kJson : StrategyEncoding::kProtobuf));
    bytes += text.size();
    const Stopwatch watch;
    RESHARD_ASSIGN_OR_RETURN(StrategyFile file,
                             ParseStrategy(fmt::format("{}/{}", path, stage), text));
    files.push_back(std::move(file));
    seconds += watch.Seconds();
  }
  const Stopwatch watch;
  auto strategy = StrategyTables::FromStageFiles(path, std::move(files));
  Print(fmt::format("parse the strategy {}{}", path, json ? ", JSON" : ""),
        seconds + watch.Seconds(), fmt::format("{} stage files, {} bytes", stages.size(), bytes));
  return strategy;
}

// Returns the index of a file as rank 0 of a stage saves it; all ranks' are alike.
Result<IndexedFile> MakeIndex(const std::vector<SampleParameter>& parameters, FileId file) {
  ParameterGrouping grouping;
  uint64_t offset = 0;
  for (const SampleParameter& parameter : parameters) {
    ParsedValue value;
    value.tag = parameter.name;
    Shape shape = parameter.full_shape;
    if (parameter.layout) {
      RESHARD_ASSIGN_OR_RETURN(const ShardGrid grid,
                               MakeGrid(*parameter.layout, shape.size(), parameter.name));
      RESHARD_ASSIGN_OR_RETURN(shape, grid.ShardShape(shape, parameter.name));
    }
    const uint64_t bytes = TensorBytes(shape, parameter.dtype).value_or(0);
    const uint64_t header = EncodeValueHeader(parameter.name, parameter.dtype, shape, bytes).size();
    value.message = {offset, header + bytes};
    ParsedTensor& tensor = value.tensors.emplace_back();
    tensor.type = DTypeName(parameter.dtype);
    tensor.dims = shape;
    tensor.content = {offset + header, bytes};
    offset += header + bytes;
    RESHARD_RETURN_IF_ERROR(grouping.Add(value));
  }
  RESHARD_ASSIGN_OR_RETURN(auto table, std::move(grouping).Finish());
  return IndexedFile(file, offset, {std::move(table), std::nullopt});
}

// What a run has planned.
struct Tally {
  uint64_t plans = 0;
  uint64_t contents = 0;
  uint64_t copies = 0;
  uint64_t sources = 0;
  uint64_t bytes = 0;
  size_t largest = 0;  // plan, in bytes of memory

  void Add(const TargetPlan& plan) {
    ++plans;
    size_t memory = sizeof(TargetPlan) + plan.names.memory();
    for (const Segment& segment : plan.segments) {
      memory += MemoryBytes(segment);
      const auto* content = std::get_if<Content>(&segment);
      if (content == nullptr) continue;
      ++contents;
      copies += content->copies.size();
    }
    sources += plan.sources.size();
    bytes += plan.size;
    largest = std::max(largest, memory);
  }
  std::string Words() const {
    return fmt::format("{} parameters, {} copies from {} files, {} KiB of memory", contents / plans,
                       copies / plans, sources / plans, largest >> 10);
  }
};

Status PlanRanks(const MindSporeTarget& target, const ConversionRule& rule, int64_t step,
                 std::string_view what, size_t& indexed) {
  PlanFindings findings;
  Tally tally;
  const size_t before = indexed;
  const Stopwatch watch;
  for (int64_t rank = 0; rank < rule.target_ranks(); rank += step) {
    RESHARD_ASSIGN_OR_RETURN(const TargetPlan plan, target.Plan(rank, findings));
    tally.Add(plan);
  }
  const double seconds = watch.Seconds();
  Print(what, seconds,
        fmt::format("{:.0f} plans/s; {} files indexed; each {}",
                    static_cast<double>(tally.plans) / seconds, indexed - before, tally.Words()));
  return {};
}

Status Measure(const Strategy& source, const Stages& source_stages, const SampleModel& target_model,
               const std::string& name, bool all) {
  fmt::print("\nto {}\n", name);
  RESHARD_ASSIGN_OR_RETURN(const Stages target_stages, MakeStages(target_model));
  RESHARD_ASSIGN_OR_RETURN(const Strategy target, ParseStages(target_stages, "target", false));
  const ConversionRule rule(&source, &target);

  {
    const Stopwatch watch;
    RESHARD_ASSIGN_OR_RETURN(const auto ranks, RankList(rule, rule.target_ranks() / 2));
    Print("source ranks of one target rank", watch.Seconds(), fmt::format("{}", ranks.size()));
  }

  SourceFiles files(1);
  std::map<int64_t, FileId> rank_files;
  for (int64_t rank = 0; rank < source.ranks(); ++rank) {
    rank_files.emplace(rank, files.Add(fmt::format("source/rank_{}/llama-1_100.ckpt", rank)));
  }
  size_t indexed = 0;
  TableCache tables(
      [&](FileId file, const auto& /*like*/) {
        ++indexed;
        return MakeIndex(source_stages[file / static_cast<size_t>(source.devices_per_stage())],
                         file);
      },
      size_t{256} << 20);
  const GridPlacement placement(rule, std::move(rank_files));
  const Source shards(files, tables, placement);
  const MindSporeTarget target_files(shards, rule, "checkpoint_", Selection::Unmatched::kCopy);
  const int64_t ranks = rule.target_ranks();
  RESHARD_RETURN_IF_ERROR(
      PlanRanks(target_files, rule, ranks, "plan one target rank, first", indexed));
  RESHARD_RETURN_IF_ERROR(
      PlanRanks(target_files, rule, ranks, "plan one target rank, again", indexed));
  const int64_t step = all ? 1 : ranks / 128;
  const std::string which = all ? "all" : "a sample of";
  RESHARD_RETURN_IF_ERROR(PlanRanks(target_files, rule, step,
                                    fmt::format("plan {} {} target ranks", which, ranks / step),
                                    indexed));
  RESHARD_RETURN_IF_ERROR(
      PlanRanks(target_files, rule, step, fmt::format("the same, again", ranks / step), indexed));
  fmt::print("  indexes held: {} KiB; peak memory so far (VmHWM): {} MiB\n", tables.memory() >> 10,
             PeakMiB());
  return {};
}

Status MeasureAll(bool all) {
  SampleModel source_model = Model405B();
  source_model.tp = 8;
  source_model.pp = 16;
  source_model.dp = 128;
  source_model.optimizer_sharding = true;
  RESHARD_ASSIGN_OR_RETURN(const Stages stages, MakeStages(source_model));
  fmt::print("source: tp 8, pp 16, dp 128, optimizer sharded\n");
  RESHARD_ASSIGN_OR_RETURN(const Strategy source, ParseStages(stages, "source", false));
  RESHARD_RETURN_IF_ERROR(ParseStages(stages, "source", true).status());

  SampleModel target = Model405B();
  target.tp = 16;
  target.pp = 8;
  target.dp = 64;
  target.optimizer_sharding = true;
  RESHARD_RETURN_IF_ERROR(
      Measure(source, stages, target, "tp 16, pp 8, dp 64, optimizer sharded", all));
  target.optimizer_sharding = false;
  return Measure(source, stages, target, "tp 16, pp 8, dp 64, replicas whole", all);
}

}  // namespace
}  // namespace reshard

int main(int argc, char** argv) {
  const reshard::Status status =
      reshard::MeasureAll(argc > 1 && std::string_view(argv[1]) == "--all");
  if (status.ok()) return 0;
  fmt::print(stderr, "scale: {}\n", status.message());
  return 1;
}
