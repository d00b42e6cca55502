#include "src/convert/source_checks.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reshard/parameters.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/source_totals.h"
#include "src/os/threads.h"
#include "src/verify/checkpoint_contents.h"
#include "src/verify/crc_check.h"
#include "src/verify/listed_replicas.h"
#include "src/verify/replica_comparison.h"

namespace reshard {
namespace {

// "Float32 [2, 3]", "a text" or "a MapTensor": the facts that have to be equal.
std::string TypeText(ArrayKind kind, DType dtype, const Shape& full_shape) {
  switch (kind) {
    case ArrayKind::kText:
      return "a text";
    case ArrayKind::kMapTensor:
      return "a MapTensor";
    case ArrayKind::kPacked:
      return fmt::format("{} packed", DTypeName(dtype));
    case ArrayKind::kTensor:
      break;
  }
  return fmt::format("{} {}", DTypeName(dtype), ToString(full_shape));
}

std::string Words(const ReplicaReport::Difference& difference) {
  FirstFew pairs;
  for (const ReplicaReport::Pair& pair : difference.pairs) {
    pairs.Add(pair.other_type
                  ? fmt::format("rank {} has another dtype or shape than rank {}", pair.rank,
                                pair.reference)
                  : fmt::format("rank {} differs from rank {} from byte {} of the shard on",
                                pair.rank, pair.reference, pair.offset));
  }
  pairs.AddUnnamed(difference.pair_count - difference.pairs.size());
  return fmt::format("{}: {}", Quote(difference.parameter), pairs.Joined());
}

// The stage of the source, if another strategy, or the number of the stage, shows that there are
// more stages.
std::optional<int64_t> StageAlone(const ConversionRule& rule) {
  if (rule.stage_alone()) return rule.stage_alone();
  const Strategy* strategy = rule.source();
  if (strategy == nullptr || strategy->is_pipeline() || strategy->own_stage() == 0) return {};
  return strategy->own_stage();
}

// The rest is left for the sample of replicas.
TotalsLimits LimitsFor(const OpenedSource& source, bool expected) {
  if (expected) {
    return {.files = SampleLimits().files, .headers = std::numeric_limits<size_t>::max()};
  }
  const SampleLimits all = SampleLimitsFor(source.path(source.chosen().front()));
  return {.files = all.files / 4, .headers = all.reads / 4 * 3};
}

std::string Words(const RepeatedWeights& repeated) {
  return fmt::format(
      "{} tensor{} under {} repeat{} weights of the names behind it and count{} as weights ({} "
      "parameters): `exclude` '{}*' leaves them out",
      repeated.tensors, repeated.tensors == 1 ? "" : "s", Quote(repeated.prefix),
      repeated.tensors == 1 ? "s" : "", repeated.tensors == 1 ? "s" : "",
      ParameterCountText(repeated.elements), Escape(repeated.prefix));
}

Status NotExpected(const SourceTotals& totals, const RoundedCount& expected) {
  std::string why =
      "is the source strategy this checkpoint's, and is it the checkpoint of this model?";
  if (!totals.repeated.empty()) why = Words(totals.repeated.front());
  return MismatchError(fmt::format(
      "the weights of the source have {} elements ({}), expected {}{}; {}", totals.expected_weights,
      ParameterCountText(totals.expected_weights), expected.count,
      expected.precision == 1 ? "" : fmt::format(" to the nearest {}", expected.precision), why));
}

}  // namespace

Result<CrcFiles> FindCrcFiles(OpenedSource& source, const std::set<int64_t>& ranks) {
  CrcFiles found;
  for (const ChosenFile& file : source.chosen()) {
    if (!ranks.contains(file.rank) || source.tensors().IsKnownWithoutCrc(file.rank)) continue;
    RESHARD_ASSIGN_OR_RETURN(const auto covered, source.CoveredByCrc(file.id));
    if (!covered) continue;
    found.files.push_back(file.id);
    found.bytes += *covered;
  }
  return found;
}

Status CheckCrcFiles(OpenedSource& source, const CrcFiles& files, const SharedWork& work) {
  const auto check = [&](size_t i, const std::stop_token& stop) -> Status {
    RESHARD_ASSIGN_OR_RETURN(const TableHandle index, source.tables().Get(files.files[i]));
    return index->states_crc() ? CheckCrc(source.files(), *index, work.progress, stop) : Status();
  };
  return RunWorkers(work.workers, files.files.size(), check, work.stop);
}

Status CheckReference(const std::string& path, const std::shared_ptr<const EncryptionKey>& key,
                      const PlanFindings& findings, std::vector<Warning>& warnings) {
  RESHARD_ASSIGN_OR_RETURN(const std::unique_ptr<OpenedSource> reference,
                           OpenSource({.path = path, .key = key}));
  PlanFindings of_reference;
  RESHARD_ASSIGN_OR_RETURN(
      const std::vector<SourceTensor> tensors,
      ListTensors(reference->tensors(), reference->rule(), {1, {}, {}}, of_reference));
  std::unordered_map<std::string_view, const SourceTensor*> by_name;
  for (const SourceTensor& tensor : tensors) by_name.emplace(tensor.name, &tensor);
  std::vector<std::string> unknown;
  FirstFew differing;
  for (const auto& [target_name, parameter] : findings.parameters) {
    const std::string& name = parameter.source_name;
    const auto known = by_name.find(name);
    if (known == by_name.end()) {
      unknown.push_back(Quote(name));
      continue;
    }
    const SourceTensor& tensor = *known->second;
    const std::string expected = TypeText(tensor.kind, tensor.dtype, tensor.full_shape);
    const std::string found = TypeText(parameter.kind, parameter.dtype, parameter.full_shape);
    if (expected == found) continue;
    differing.Add(fmt::format("{}: expected {}, found {}", Quote(name), expected, found));
  }
  if (differing.count() > 0) {
    return MismatchError(fmt::format(
        "{} of {} parameters have another dtype or full shape than in the reference {}: the "
        "strategies do not belong to this source, or the reference is of another model:{}",
        differing.count(), findings.parameters.size(), Escape(path),
        differing.Lines(fmt::format("and {} more", differing.more()))));
  }
  if (!unknown.empty()) {
    warnings.push_back(
        {WarningCode::kNotInReference,
         fmt::format(
             "{} of {} parameters are not in the reference {}, which cannot tell their full "
             "shapes: {}",
             unknown.size(), findings.parameters.size(), Escape(path), FirstOf(unknown))});
  }
  return {};
}

std::vector<int64_t> StagesOf(const ConversionRule& rule, std::span<const int64_t> target_ranks) {
  std::set<int64_t> target_stages;
  for (const int64_t rank : target_ranks) {
    if (rank >= 0 && rank < rule.target_ranks()) target_stages.insert(rule.TargetStage(rank));
  }
  std::set<int64_t> stages;
  for (const int64_t target_stage : target_stages) {
    for (const int64_t stage : rule.NeededSourceStages(target_stage)) stages.insert(stage);
  }
  return {stages.begin(), stages.end()};
}

uint64_t ReplicaBytes(const OpenedSource& source, std::span<const int64_t> stages) {
  const ConversionRule& rule = source.rule();
  if (rule.source() == nullptr) return ListedReplicaBytes(source.tensors());
  uint64_t bytes = 0;
  for (const ChosenFile& file : source.chosen()) {
    for (const int64_t stage : stages) {
      const int64_t first = rule.SourceRank(stage, 0);
      if (file.rank >= first && file.rank < first + rule.source_devices()) {
        bytes += file.identity.size();
      }
    }
  }
  return bytes;
}

Status CheckNoneDiffer(const ReplicaReport& replicas, bool has_strategy) {
  if (replicas.differing == 0) return {};
  FirstFew list;
  for (const ReplicaReport::Difference& difference : replicas.differences) {
    list.Add(Words(difference));
  }
  list.AddUnnamed(replicas.differing - replicas.differences.size());
  if (!has_strategy) {
    return MismatchError(fmt::format(
        "{} of {} tensors differ between files that ought to hold the same: some files are damaged "
        "or from another save, or these are parts and do not say where they belong. "
        "`checks.replicas=none` takes any replica, right or wrong; `exclude` leaves a tensor "
        "out:{}",
        replicas.differing, replicas.compared, list.Lines()));
  }
  return MismatchError(fmt::format(
      "{} of {} parameters differ between source ranks that ought to hold the same; most likely "
      "the source strategy is not the one that this checkpoint was saved with, or the files of "
      "some ranks are damaged or another checkpoint's. Give the strategy that it was saved with, "
      "or take away the folders of the damaged ranks (their replicas stand in for them); "
      "`checks.replicas=none` takes any replica, right or wrong:{}",
      replicas.differing, replicas.compared, list.Lines()));
}

Result<SampleLimits> CheckTotals(const OpenedSource& source, const ParameterChoice& choice,
                                 const std::optional<RoundedCount>& expected,
                                 const std::stop_token& stop, Findings& findings) {
  findings.stage_alone = StageAlone(source.rule());
  if (findings.stage_alone) {
    if (!expected) return SampleLimits{0, 0};
    return InvalidArgumentError(
        fmt::format("cannot count the parameters of the source: it is stage {} of several",
                    *findings.stage_alone));
  }
  const TotalsLimits most = LimitsFor(source, expected.has_value());
  TotalsLimits left = most;
  const Result<SourceTotals> totals =
      CountParameters(source.tensors(), source.rule(), choice, left, stop);
  if (!totals.ok() && (expected || totals.status().code() == StatusCode::kCancelled)) {
    return totals.status();
  }
  if (totals.ok()) {
    findings.totals = totals->all;
    findings.chosen_totals = totals->chosen;
    for (const RepeatedWeights& repeated : totals->repeated) {
      findings.warnings.push_back({WarningCode::kRepeatedWeights, Words(repeated)});
    }
  }
  if (expected && !RoundsTo(totals->expected_weights, *expected)) {
    return NotExpected(*totals, *expected);
  }
  return SampleLimits{most.headers - left.headers, most.files - left.files};
}

Result<SourceChecks> FindChecks(OpenedSource& source, const std::set<int64_t>& source_ranks,
                                const std::vector<int64_t>& target_ranks,
                                const CheckChoice& choice) {
  SourceChecks checks;
  if (choice.checksum) {
    RESHARD_ASSIGN_OR_RETURN(checks.crc, FindCrcFiles(source, source_ranks));
  }
  checks.bytes = checks.crc.bytes;
  if (choice.replicas == CheckChoice::Replicas::kAll) {
    checks.replica_stages = StagesOf(source.rule(), target_ranks);
    checks.bytes += ReplicaBytes(source, checks.replica_stages);
  }
  return checks;
}

Result<std::optional<ReplicaReport>> RunChecks(OpenedSource& source, const SourceChecks& checks,
                                               const ParameterChoice& parameters,
                                               const CheckChoice& choice, const SharedWork& work) {
  std::optional<ReplicaReport> replicas;
  const Status crc = CheckCrcFiles(source, checks.crc, work);
  if (crc.code() == StatusCode::kCorrupt) {
    return CorruptError(crc.message() + ", or use it as it is with `checksum=false`");
  }
  RESHARD_RETURN_IF_ERROR(crc);
  if (choice.replicas == CheckChoice::Replicas::kAll) {
    RESHARD_ASSIGN_OR_RETURN(replicas, CompareReplicas(source.tensors(), source.rule().source(),
                                                       parameters, checks.replica_stages, work));
    RESHARD_RETURN_IF_ERROR(CheckNoneDiffer(*replicas, source.rule().source() != nullptr));
  }
  return replicas;
}

}  // namespace reshard
