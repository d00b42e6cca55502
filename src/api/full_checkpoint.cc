#include "src/api/full_checkpoint.h"

#include <fmt/format.h>

#include <set>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/strategy_check.h"
#include "src/mindspore/unmatched_names.h"
#include "src/plan/make_copies.h"
#include "src/plan/plan_notes.h"
#include "src/verify/checkpoint_contents.h"

namespace reshard {
namespace {

// Returns the ranks from whose files one replica of each shard is taken.
Result<std::set<int64_t>> RanksOfOneReplica(const FullCheckpoint& checkpoint) {
  std::set<FileId> files;
  for (const SourceTensor& parameter : checkpoint.parameters) {
    RESHARD_ASSIGN_OR_RETURN(
        const std::vector<BlockCopy> copies,
        CopiesOf(checkpoint.source->shards(), parameter, Box::Whole(parameter.full_shape)));
    for (const BlockCopy& copy : copies) files.insert(copy.source);
  }
  std::set<int64_t> ranks;
  for (const OpenedSource::File& file : checkpoint.source->chosen()) {
    if (files.contains(file.id)) ranks.insert(file.rank);
  }
  return ranks;
}

}  // namespace

Status FindReading(bool one_replica, FullCheckpoint& checkpoint) {
  OpenedSource& source = *checkpoint.source;
  std::set<int64_t> ranks;
  for (const OpenedSource::File& file : source.chosen()) {
    ranks.insert(file.rank);
    if (!one_replica) checkpoint.bytes_to_read += file.identity.size;
  }
  RESHARD_ASSIGN_OR_RETURN(checkpoint.crc, FindCrcFiles(source, ranks));
  if (one_replica) {
    for (const SourceTensor& parameter : checkpoint.parameters) {
      checkpoint.bytes_to_read += parameter.Bytes();
    }
    if (!checkpoint.crc.files.empty()) {
      RESHARD_ASSIGN_OR_RETURN(ranks, RanksOfOneReplica(checkpoint));
      RESHARD_ASSIGN_OR_RETURN(checkpoint.crc, FindCrcFiles(source, ranks));
    }
  }
  checkpoint.bytes_to_read += checkpoint.crc.bytes;
  return {};
}

Result<FullCheckpoint> OpenFullCheckpoint(const std::string& path, const std::string& strategy,
                                          const std::string& suffix, const std::stop_token& stop) {
  if (path.empty()) return InvalidArgumentError("a checkpoint file or folder is needed");
  FullCheckpoint checkpoint;
  RESHARD_ASSIGN_OR_RETURN(checkpoint.source,
                           OpenedSource::Open({path, strategy, "", suffix}, {.stop = stop}));
  PlanNotes notes;
  RESHARD_ASSIGN_OR_RETURN(
      checkpoint.parameters,
      ListTensors(checkpoint.source->shards(), checkpoint.source->placement(), notes));
  for (const SourceTensor& parameter : checkpoint.parameters) notes.Add(parameter);
  RESHARD_RETURN_IF_ERROR(CheckNames(checkpoint.source->rule(), notes));
  RESHARD_ASSIGN_OR_RETURN(const StrategyFindings findings,
                           CheckStrategy(*checkpoint.source, ParameterChoice(),
                                         checkpoint.source->rule().NeededSourceStages(0),
                                         {.only_wrong_strategy = true, .stop = stop}));
  checkpoint.warnings = checkpoint.source->warnings();
  for (const std::string& warning : findings.warnings) {
    checkpoint.warnings.push_back(fmt::format("{}: {}", Escape(path), warning));
  }
  for (const std::string& warning : notes.Warnings()) {
    checkpoint.warnings.push_back(fmt::format("{}: {}", Escape(path), warning));
  }
  return checkpoint;
}

RankFindings FindingsOf(const FullCheckpoint& checkpoint, const CheckpointContents& contents) {
  RankFindings findings = {contents.replicas, {}};
  for (size_t i = 0; i < contents.values.size(); ++i) {
    if (contents.values[i].size() > 1) {
      findings.own_values.push_back(checkpoint.parameters[i].name);
    }
  }
  findings.own_values.insert(findings.own_values.end(), contents.own_gradients.begin(),
                             contents.own_gradients.end());
  return findings;
}

}  // namespace reshard
