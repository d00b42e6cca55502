#include "src/api/source_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/strategy_check.h"
#include "src/mindspore/unmatched_names.h"
#include "src/os/memory_usage.h"
#include "src/plan/make_copies.h"
#include "src/plan/plan_findings.h"

namespace reshard {
namespace {

constexpr uint64_t kMostKept = uint64_t{256} << 20;

// Returns the ranks with the files for one replica of each shard.
Result<std::set<int64_t>> RanksOfOneReplica(const SourceTensors& opened) {
  std::set<FileId> files;
  for (const SourceTensor& tensor : opened.tensors) {
    RESHARD_ASSIGN_OR_RETURN(
        const std::vector<BlockCopy> copies,
        CopiesOf(opened.source->tensors(), tensor, Box::Whole(tensor.full_shape)));
    for (const BlockCopy& copy : copies) files.insert(copy.source);
  }
  std::set<int64_t> ranks;
  for (const ChosenFile& file : opened.source->chosen()) {
    if (files.contains(file.id)) ranks.insert(file.rank);
  }
  return ranks;
}

}  // namespace

uint64_t WindowsKept() {
  return std::clamp(MemoryOfHost() / 8, SourceLimits().window_bytes, kMostKept);
}

void KeepUsualWindows(OpenedSource& source) {
  if (source.files().HasReadFiles()) {
    source.files().SetWindowBudget(SourceLimits().window_bytes, 0);
  }
}

Result<Reading> FindReading(const SourceTensors& opened) {
  const bool one_replica = opened.ranks == RanksRead::kOneReplica;
  Reading reading;
  std::set<int64_t> ranks;
  for (const ChosenFile& file : opened.source->chosen()) {
    ranks.insert(file.rank);
    if (!one_replica) reading.bytes += file.identity.size();
  }
  RESHARD_ASSIGN_OR_RETURN(reading.crc, FindCrcFiles(*opened.source, ranks));
  if (one_replica) {
    for (const SourceTensor& tensor : opened.tensors) reading.bytes += tensor.Bytes();
    if (!reading.crc.files.empty()) {
      RESHARD_ASSIGN_OR_RETURN(ranks, RanksOfOneReplica(opened));
      RESHARD_ASSIGN_OR_RETURN(reading.crc, FindCrcFiles(*opened.source, ranks));
    }
  }
  reading.bytes += reading.crc.bytes;
  return reading;
}

Result<SourceTensors> OpenTensors(const SourceSpec& spec, ParameterChoice choice, RanksRead ranks,
                                  size_t workers, const std::stop_token& stop,
                                  LoneParts lone_parts) {
  if (spec.path.empty()) return InvalidArgumentError("a checkpoint file or folder is needed");
  SourceTensors opened;
  RESHARD_ASSIGN_OR_RETURN(
      opened.source,
      OpenSource(spec, {.choice = choice},
                 {.window_bytes = WindowsKept(), .stop = stop, .lone_parts = lone_parts}));
  OpenedSource& source = *opened.source;
  const size_t indexers = source.Askers(workers);
  opened.choice = std::move(choice);
  opened.ranks = ranks;
  PlanFindings findings;
  RESHARD_ASSIGN_OR_RETURN(
      opened.tensors, ListTensors(source.tensors(), source.rule(), {indexers, stop, {}}, findings));
  if (HasUnmatched(source.rule(), opened.tensors)) {
    for (const SourceTensor& tensor : opened.tensors) findings.Add(tensor);
    RESHARD_RETURN_IF_ERROR(CheckNames(source.rule(), findings));
    findings.parameters.clear();  // `tensors` has them
  }
  RESHARD_ASSIGN_OR_RETURN(
      const StrategyFindings of_strategy,
      CheckStrategy(source, ParameterChoice(), source.tensors().ranks().taken_stages,
                    {.only_wrong_strategy = true, .workers = workers, .stop = stop}));
  KeepUsualWindows(source);
  opened.warnings = source.warnings();
  opened.notes = source.notes();
  for (const auto& warnings : {of_strategy.warnings, findings.Warnings()}) {
    for (const Warning& warning : warnings) {
      opened.warnings.push_back(
          {warning.code, fmt::format("{}: {}", Escape(spec.path), warning.message)});
    }
  }
  std::erase_if(opened.tensors, [&](const SourceTensor& tensor) {
    if (opened.choice.Takes(tensor.name)) return false;
    if (opened.left_out++ == 0) opened.first_left_out = tensor.name;
    return true;
  });
  return opened;
}

Result<CheckpointContents> ReadContents(const SourceTensors& opened, const SharedWork& work) {
  const OpenedSource& source = *opened.source;
  return ReadContents(source.tensors(), source.rule().source(), opened.choice, opened.tensors,
                      opened.ranks == RanksRead::kOneReplica, work);
}

}  // namespace reshard
