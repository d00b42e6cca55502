#include "src/convert/strategy_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/source_checks.h"
#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/layout_grid.h"
#include "src/mindspore/unmatched_names.h"
#include "src/os/file_identity.h"
#include "src/source/shard_grid.h"
#include "src/verify/listed_replicas.h"
#include "src/verify/shard_sample.h"

namespace reshard {
namespace {

constexpr size_t kListedDifferences = 5;
constexpr size_t kListedNames = 3;

std::string NotThisStrategy(const Strategy& strategy) {
  return fmt::format("most likely {} is not the strategy that this checkpoint was saved with",
                     Escape(strategy.path()));
}

// Returns the name of a parameter of which two ranks hold different parts by the source strategy,
// if there is one. In files of two stages, every parameter counts.
std::optional<std::string> DifferentPart(const OpenedSource& source, const ParameterChoice& choice,
                                         int64_t a, int64_t b) {
  const ConversionRule& rule = source.rule();
  const int64_t first = rule.SourceRank(0, 0);
  const int64_t devices = rule.source_devices();
  const int64_t stage = (a - first) / devices;
  const bool same_stage = (b - first) / devices == stage;
  std::set<const ParameterLayout*> seen;  // models repeat them in every layer
  for (const Strategy::Entry named : rule.source()->stages()[static_cast<size_t>(stage)]) {
    if (!choice.Takes(named.name)) continue;
    if (!same_stage) return std::string(named.name);
    if (!seen.insert(&named.layout).second) continue;
    // If parts differ for this number of dimensions, they differ for others.
    const auto& map = named.layout.tensor_map;
    const auto grid = MakeGrid(named.layout, map.size() == 1 ? map[0].size() : map.size(), "");
    if (!grid.ok()) continue;  // its user reports the error
    const int64_t begin = first + stage * devices;
    if (grid->PartsOf(a - begin) != grid->PartsOf(b - begin)) return std::string(named.name);
  }
  return std::nullopt;
}

// Fails if one file, by any paths, stands for ranks that hold different parts.
Status CheckOneFileEach(const OpenedSource& source, const ParameterChoice& choice) {
  using Key = std::pair<FileIdentity::Key, uint64_t>;  // and the size
  std::map<Key, std::vector<const ChosenFile*>> by_file;
  for (const ChosenFile& file : source.chosen()) {
    if (!file.identity.has_key()) continue;
    by_file[{file.identity.key(), file.identity.size()}].push_back(&file);
  }
  for (const auto& [key, files] : by_file) {
    for (size_t i = 1; i < files.size(); ++i) {
      const ChosenFile& a = *files[0];
      const ChosenFile& b = *files[i];
      const auto name = DifferentPart(source, choice, a.rank, b.rank);
      if (!name) continue;
      return MismatchError(fmt::format(
          "ranks {} and {} are one file ({} and {}), but by {} they hold different parts, such as "
          "of {}; give each rank its own file, or pass `checks.replicas=none` if that is meant",
          a.rank, b.rank, Escape(source.path(a)), Escape(source.path(b)),
          Escape(source.rule().source()->path()), Quote(*name)));
    }
  }
  return {};
}

Result<ShardSample> Sample(OpenedSource& source, const Source& shards, const Strategy* strategy,
                           const ParameterChoice& choice, std::span<const int64_t> stages,
                           const StrategyCheckOptions& options) {
  SampleLimits limits = SampleLimitsFor(source.path(source.chosen().front()));
  limits.reads -= std::min(limits.reads, options.spent.reads);
  limits.files -= std::min(limits.files, options.spent.files);
  SharedWork work;
  work.workers = std::max<size_t>(options.workers, 1);
  work.stop = options.stop;
  return SampleShards(shards, strategy, {choice, options.unmatched}, stages, limits, work);
}

// Checks the files of `source`, which `placement` has placed by `strategy`, as CheckStagesOfFiles.
Status CheckStrays(const Source& source, const GridPlacement& placement, const Strategy& strategy,
                   const ParameterChoice& choice) {
  for (const auto& [stage, strays] : placement.FoundStrays()) {
    const Strategy::Stage& own = strategy.stages()[static_cast<size_t>(stage)];
    for (size_t other = 0; other < strategy.stages().size(); ++other) {
      size_t expected = 0;  // there and not here
      size_t found = 0;
      std::vector<std::string> names;
      for (const Strategy::Entry named : strategy.stages()[other]) {
        if (!choice.Takes(named.name) || own.Find(named.name) != nullptr) continue;
        ++expected;
        if (!strays.names.contains(named.name)) continue;
        if (++found <= kListedNames) names.push_back(Quote(named.name));
      }
      // A conversion copies parameters to each stage if only one of its two strategies has them.
      if (found < 2 || found * 2 <= expected) continue;
      return MismatchError(fmt::format(
          "{}: by {} rank {} is in stage {}, but its file holds {} of the {} parameters that only "
          "stage {} has, such as {}; {}",
          Escape(source.PathOf(strays.file)), Escape(strategy.path()), strays.rank, stage, found,
          expected, other, fmt::join(names, ", "), NotThisStrategy(strategy)));
    }
  }
  return {};
}

// Returns whether the target strategy fits the source better than the source strategy does, so that
// the two may be swapped.
bool TargetStrategyFits(OpenedSource& source, const ParameterChoice& choice,
                        const StrategyCheckOptions& options) {
  const Strategy* target = source.rule().target();
  if (target == nullptr || target->ranks() != source.rule().source()->ranks() ||
      source.rule().stage_alone()) {
    return false;
  }
  const ConversionRule rule(target, nullptr);
  const GridPlacement placement(rule, source.tensors().ranks().files);
  const Source shards(source.files(), source.tables(), placement);
  std::vector<int64_t> stages(static_cast<size_t>(rule.source_stages()));
  std::iota(stages.begin(), stages.end(), 0);
  const auto sample = Sample(source, shards, target, choice, stages, options);
  return sample.ok() && sample->counts.parameters > 0 && sample->differences.empty() &&
         sample->equal.empty() && CheckStrays(shards, placement, *target, choice).ok();
}

std::string SwappedWords(OpenedSource& source, const ParameterChoice& choice,
                         const StrategyCheckOptions& options) {
  if (!TargetStrategyFits(source, choice, options)) return "";
  return fmt::format(". The target strategy {} fits the source: swap the two",
                     Escape(source.rule().target()->path()));
}

// The rank that has a part in all differences, if one has: it alone may be to blame.
std::optional<int64_t> RankToBlame(const std::vector<SampledDifference>& differences) {
  for (const int64_t rank : {differences.front().rank, differences.front().reference}) {
    if (std::all_of(differences.begin(), differences.end(), [rank](const auto& difference) {
          return difference.rank == rank || difference.reference == rank;
        })) {
      return rank;
    }
  }
  return std::nullopt;
}

std::string DifferenceWords(const SampledDifference& difference) {
  return fmt::format(
      "{}: rank {} {}", Quote(difference.parameter), difference.rank,
      difference.other_type
          ? fmt::format("has another dtype or shape than rank {}", difference.reference)
          : fmt::format("differs from rank {} at byte {} of the shard", difference.reference,
                        difference.offset));
}

// The first ones, of different parameters first.
std::string List(const std::vector<SampledDifference>& differences) {
  std::vector<const SampledDifference*> order;
  std::set<std::string_view> names;
  for (const SampledDifference& difference : differences) {
    if (names.insert(difference.parameter).second) order.push_back(&difference);
  }
  for (const SampledDifference& difference : differences) {
    if (order.size() >= kListedDifferences) break;
    if (std::find(order.begin(), order.end(), &difference) == order.end()) {
      order.push_back(&difference);
    }
  }
  FirstFew first(kListedDifferences);
  for (const SampledDifference* difference : order) first.Add(DifferenceWords(*difference));
  first.AddUnnamed(differences.size() - order.size());
  return first.Lines();
}

// Whether the differences, of which there are some, are too many for a single damaged rank or for
// values that each rank has of its own.
bool IsWrongStrategy(const ShardSample& sample) {
  return sample.differences.size() * 2 > sample.counts.comparisons &&
         !RankToBlame(sample.differences);
}

// Parameters without a cut may be each rank's own, as moving averages are. Matrices are parts if
// most differ under a strategy that does not cut them.
bool OnlyOwnValues(const ShardSample& sample) {
  const bool any_matrix = std::any_of(sample.differences.begin(), sample.differences.end(),
                                      [](const auto& difference) { return difference.matrix; });
  if (!sample.any_cut && any_matrix && sample.differences.size() * 2 > sample.counts.comparisons) {
    return false;
  }
  return std::none_of(sample.differences.begin(), sample.differences.end(),
                      [](const SampledDifference& difference) { return difference.cut; });
}

Status Refusal(OpenedSource& source, const ParameterChoice& choice, const ShardSample& sample,
               const StrategyCheckOptions& options) {
  std::string also;
  if (const auto rank = RankToBlame(sample.differences)) {
    also = fmt::format(" (or the file of rank {} is damaged, or another checkpoint's)", *rank);
  }
  return MismatchError(fmt::format(
      "{} of {} samples differ between source ranks that should hold the same shard; {}{}{}. "
      "`checks.replicas=all` lists all differences, and `ShardedCheckpoint::Shards` shows the "
      "parts that a rank should hold; `checks.replicas=none` converts without this check. The "
      "differences:{}",
      sample.differences.size(), sample.counts.comparisons,
      NotThisStrategy(*source.rule().source()), also, SwappedWords(source, choice, options),
      List(sample.differences)));
}

std::string EqualWarning(OpenedSource& source, const ParameterChoice& choice,
                         const ShardSample& sample, const StrategyCheckOptions& options) {
  std::vector<std::string> pairs;
  for (const EqualRanks& equal : sample.equal) {
    pairs.push_back(fmt::format("{} and {}", equal.other, equal.rank));
  }
  return fmt::format(
      "the ranks {} hold the same bytes wherever they were sampled, but by {} they hold different "
      "parts, such as of {}; was a rank's file copied over another's, or is the strategy not this "
      "checkpoint's?{}",
      FirstOf(pairs), Escape(source.rule().source()->path()), Quote(sample.equal.front().parameter),
      TargetStrategyFits(source, choice, options)
          ? fmt::format(" The target strategy {} fits the source: are the two swapped?",
                        Escape(source.rule().target()->path()))
          : "");
}

std::string OwnValuesWarning(const std::vector<SampledDifference>& differences) {
  std::set<std::string> names;
  for (const SampledDifference& difference : differences) {
    names.insert(Quote(difference.parameter));
  }
  return fmt::format(
      "{} parameters that no rank cuts differ between source ranks, as moving averages do; each "
      "target rank gets the values from one source rank: {}",
      names.size(), FirstOf({names.begin(), names.end()}));
}

// Fails if so many unmatched matrices differ between ranks that they are shards.
Status CheckUnmatched(const ConversionRule& rule, const ShardSample& sample,
                      const StrategyCheckOptions& options) {
  constexpr size_t kMany = 10;  // fewer may be each rank's own
  if (sample.unmatched_differ.size() < kMany) return {};
  std::vector<std::string> names;
  for (const std::string& name : sample.unmatched_differ) names.push_back(Quote(name));
  const bool of_source = !rule.source()->Contains(*sample.unmatched_differ.begin());
  const Strategy& strategy = of_source ? *rule.source() : *rule.target();
  return MismatchError(fmt::format(
      "{}: has no layout for {} matrices of the files. In a sample {} differ between ranks, as "
      "shards do: {}; each would be {}. Give a strategy with the names of the files; {}",
      Escape(strategy.path()), options.unmatched.size(), names.size(), FirstOf(names),
      of_source ? "taken from one source rank as if it had the full tensor"
                : "written as it stands, not cut",
      kUnmatchedAllowed));
}

// Returns the warning with the ranks' values of training counters.
std::string CountersWarning(const ShardSample& sample) {
  FirstFew counters;
  for (const auto& [name, values] : sample.counters) {
    FirstFew list;
    for (const CounterValue& value : values) {
      NumberRanges ranks;
      for (const int64_t rank : value.ranks) ranks.Add(rank);
      list.Add(fmt::format("{} in {}", value.value, ranks.ToWords("rank")));
    }
    counters.Add(fmt::format("{} is {}", Quote(name), list.Joined()));
  }
  return fmt::format(
      "ranks have different training counters: {}; do all files come from one step of one run?",
      counters.Joined("; "));
}

}  // namespace

Status CheckStagesOfFiles(const OpenedSource& source, const ParameterChoice& choice) {
  if (source.grid() == nullptr) return {};
  return CheckStrays(source.tensors(), *source.grid(), *source.rule().source(), choice);
}

Result<StrategyFindings> CheckStrategy(OpenedSource& source, const ParameterChoice& choice,
                                       std::span<const int64_t> stages,
                                       const StrategyCheckOptions& options) {
  StrategyFindings findings;
  if (source.rule().source() == nullptr) {
    const bool is_sampled =
        options.replicas == CheckChoice::Replicas::kSample && !options.only_wrong_strategy;
    if (!is_sampled || !source.StatesParts()) return findings;
    const size_t most = SampleLimitsFor(source.path(source.chosen().front())).reads;
    RESHARD_ASSIGN_OR_RETURN(const ReplicaReport replicas,
                             SampleListedReplicas(source.tensors(), choice, most, options.stop));
    RESHARD_RETURN_IF_ERROR(CheckNoneDiffer(replicas, false));
    return findings;
  }
  RESHARD_RETURN_IF_ERROR(CheckStagesOfFiles(source, choice));
  if (options.replicas == CheckChoice::Replicas::kNone) return findings;
  RESHARD_RETURN_IF_ERROR(CheckOneFileEach(source, choice));
  RESHARD_ASSIGN_OR_RETURN(
      const ShardSample sample,
      Sample(source, source.tensors(), source.rule().source(), choice, stages, options));
  findings.sample = sample.counts;
  if (sample.any_cut && sample.counts.confirming == 0) {
    findings.unconfirmed = sample.any_matrix_has_replicas
                               ? "no matrix could be compared with a replica"
                               : "no matrix has a replica";
  }
  if (!sample.differences.empty() && options.replicas == CheckChoice::Replicas::kSample) {
    if (OnlyOwnValues(sample)) {
      if (!options.only_wrong_strategy) {
        findings.warnings.push_back(
            {WarningCode::kReplicasDiffer, OwnValuesWarning(sample.differences)});
      }
    } else if (!options.only_wrong_strategy || IsWrongStrategy(sample)) {
      return Refusal(source, choice, sample, options);
    }
  }
  RESHARD_RETURN_IF_ERROR(CheckUnmatched(source.rule(), sample, options));
  if (!sample.counters.empty()) {
    findings.warnings.push_back({WarningCode::kCountersDiffer, CountersWarning(sample)});
  }
  if (!sample.equal.empty()) {
    findings.warnings.push_back(
        {WarningCode::kReplicasEqual, EqualWarning(source, choice, sample, options)});
  }
  if (!sample.unread.empty()) {
    findings.warnings.push_back(
        {WarningCode::kNotCompared,
         fmt::format("could not sample replicas in files that the conversion does not need: {}",
                     FirstOf(sample.unread))});
  }
  return findings;
}

}  // namespace reshard
