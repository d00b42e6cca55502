#include "reshard/strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/api/source_tensors.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/shared_work.h"
#include "src/mindspore/layout_grid.h"
#include "src/mindspore/layout_inference.h"
#include "src/mindspore/optimizer_copy.h"
#include "src/mindspore/rank_folder.h"
#include "src/mindspore/run_folder.h"
#include "src/mindspore/strategy_tables.h"
#include "src/mindspore/strategy_writer.h"
#include "src/os/file_use.h"
#include "src/os/retries.h"
#include "src/os/write_file.h"
#include "src/source/listed_placement.h"
#include "src/source/source.h"
#include "src/source/table_cache.h"
#include "src/verify/shard_evidence.h"

namespace reshard {
namespace {

// Messages list at most this many things.
constexpr size_t kListedCandidates = 4;

// The result for a parameter.
struct Finding {
  std::optional<LayoutCandidate> chosen;
  bool by_values = false;  // the reference's, which ranks hold
  bool open = false;       // other layouts fit as well, and give the same results
  bool left_out = false;   // each rank's own
  std::string problem;     // why there is none
};

std::string Text(const ParameterLayout& layout) {
  std::string text = fmt::format("device matrix {}, tensor map {}", layout.device_matrix,
                                 fmt::join(layout.tensor_map, " "));
  if (layout.opt_weight_shard_size != 0) {
    text += fmt::format(", {} optimizer shards", layout.opt_weight_shard_size);
  }
  return text;
}

bool IsWhole(const ShardEvidence& evidence) {
  return std::all_of(evidence.cuts.begin(), evidence.cuts.end(), [](int64_t c) { return c == 1; });
}

ShardEvidence WithoutReference(const ShardEvidence& evidence) {
  return {evidence.cuts, evidence.ranks, {}};
}

Finding Choose(const ShardEvidence& evidence) {
  Finding finding;
  LayoutCandidates candidates = FindLayouts(evidence);
  finding.by_values = !evidence.parts.empty() && !candidates.found.empty();
  if (candidates.found.empty()) candidates = FindLayouts(WithoutReference(evidence));
  if (candidates.found.empty()) {
    finding.left_out = IsWhole(evidence);
    finding.problem = candidates.more ? "too many layouts might fit"
                                      : "no layout fits: ranks that would be replicas differ";
    return finding;
  }
  const std::vector<ContentClass> contents = candidates.found[0].Contents(evidence);
  const bool same = std::all_of(contents.begin(), contents.end(),
                                [&contents](ContentClass c) { return c == contents[0]; });
  std::vector<std::string> texts;
  for (const LayoutCandidate& candidate : candidates.found) {
    if (candidate.Contents(evidence) == contents) continue;
    if (texts.empty()) texts.push_back(Text(candidates.found[0].layout));
    if (texts.size() < kListedCandidates) texts.push_back(Text(candidate.layout));
  }
  // Layouts that the reference's values admit all give these values.
  if (texts.empty() && (finding.by_values || same || !candidates.more)) {
    finding.open = candidates.found.size() > 1;
    finding.chosen = std::move(candidates.found[0]);
    return finding;
  }
  const bool more = candidates.found.size() > texts.size() || candidates.more;
  // Those found may all stand for the same values, and others that were not looked for do not.
  if (texts.empty()) texts.push_back(Text(candidates.found[0].layout));
  finding.problem =
      fmt::format("{}several layouts fit: {}{}",
                  evidence.parts.empty() ? "" : "the reference holds other values, and ",
                  fmt::join(texts, "; "), more ? "; and more" : "");
  return finding;
}

// As Choose, for an optimizer's copy of a parameter with the result `parameter`.
Finding FollowParameter(const Finding& parameter, const ShardEvidence& evidence) {
  if (!parameter.chosen || !parameter.chosen->Explains(evidence)) return Choose(evidence);
  Finding followed;
  followed.chosen = parameter.chosen;
  followed.open = parameter.open;
  const bool disagrees = !evidence.parts.empty() && !parameter.chosen->HasParts(evidence);
  if (!parameter.open && !disagrees) return followed;
  Finding own = Choose(evidence);
  // Values outrank the parameter.
  if (!parameter.open) return own.by_values ? own : followed;
  // If the parameter's bytes leave its layout open, those of the copy may decide it.
  const bool same = own.chosen && own.open &&
                    own.chosen->Contents(evidence) == followed.chosen->Contents(evidence);
  return same ? followed : own;
}

// Returns the layouts of `parameters`. An optimizer's copy has its parameter's layout if that
// explains it. Adds parameters that were left out or are open to `warnings`. Errors: kMismatch,
// listing parameters, if several layouts give different results, or if none fits.
Result<LayoutTable> InferLayouts(const std::vector<StageParameter>& parameters,
                                 std::vector<Warning>& warnings) {
  std::unordered_map<std::string_view, size_t> places;
  for (size_t i = 0; i < parameters.size(); ++i) places.emplace(parameters[i].name, i);
  std::vector<Finding> findings(parameters.size());
  std::vector<size_t> copies;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto parameter = ParameterOfCopy(parameters[i].name);
    if (parameter && places.contains(*parameter)) {
      copies.push_back(i);
    } else {
      findings[i] = Choose(parameters[i].evidence);
    }
  }
  for (const size_t i : copies) {
    const ShardEvidence& evidence = parameters[i].evidence;
    const size_t place = places.at(*ParameterOfCopy(parameters[i].name));
    const Finding& parameter = findings[place];
    findings[i] = parameters[place].evidence.cuts == evidence.cuts
                      ? FollowParameter(parameter, evidence)
                      : Choose(evidence);
  }

  LayoutTable layouts;
  FirstFew problems;
  std::vector<std::string> open;
  std::vector<std::string> left_out;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name;
    if (findings[i].chosen) {
      layouts.push_back(Strategy::Entry{name, findings[i].chosen->layout});
      if (findings[i].open) open.push_back(Quote(name));
    } else if (findings[i].left_out) {
      left_out.push_back(Quote(name));
    } else {
      problems.Add(fmt::format("{}: full shape {}, shards {}: {}", Quote(name),
                               ToString(parameters[i].full_shape),
                               ToString(parameters[i].shard_shape), findings[i].problem));
    }
  }
  if (problems.count() > 0) {
    return MismatchError(fmt::format(
        "cannot tell the layouts of {} of {} parameters from their shards; give a reference that "
        "holds the same values, or write them into a specification (`MakeStrategy`):{}",
        problems.count(), parameters.size(), problems.Lines()));
  }
  if (!open.empty()) {
    warnings.push_back({WarningCode::kAmbiguousLayouts,
                        fmt::format("{} parameters have shards of equal bytes, so that other "
                                    "layouts fit as well; the simplest is taken, which is right "
                                    "for this checkpoint but perhaps not for others of its run: {}",
                                    open.size(), FirstOf(open))});
  }
  if (!left_out.empty()) {
    warnings.push_back({WarningCode::kReplicasDiffer,
                        fmt::format("{} parameters are whole on each rank but differ; left out, so "
                                    "that conversions copy each rank's own: {}",
                                    left_out.size(), FirstOf(left_out))});
  }
  return layouts;
}

constexpr size_t kIndexBytes = size_t{256} << 20;

// The files of all ranks, and the reference.
struct Inference {
  explicit Inference(const std::stop_token& stop) : files({.stop = stop}) {}

  SourceFiles files;
  TableCache tables{files, kIndexBytes, TableCache::kUsualLeastKept};
  std::vector<FileId> ranks;
  std::optional<ListedPlacement> each_alone;
  std::optional<Source> source;  // of the files of the ranks
  SourceTensors reference;
  std::map<std::string_view, const SourceTensor*> full;  // the reference's tensors, by name
  std::vector<Warning> warnings;

  Status Open(const std::string& from, const std::string& full_tensors,
              const std::stop_token& stop);
  Result<int64_t> DevicesOfStages();
  Result<std::vector<StageParameter>> ParametersOf(int64_t first);
};

Status Inference::Open(const std::string& from, const std::string& full_tensors,
                       const std::stop_token& stop) {
  const std::string path = InRunFolder({.path = from}).path;
  RESHARD_ASSIGN_OR_RETURN(const RankFolder folder, FindRankFiles(path, {}));
  warnings = folder.warnings;
  for (const RankFile& file : folder.files) {
    if (file.rank != static_cast<int64_t>(ranks.size())) {
      return MismatchError(
          fmt::format("{}: expected the files of all ranks, 0 to {}; rank {} has no file",
                      Escape(from), folder.files.back().rank, ranks.size()));
    }
    ranks.push_back(files.Add(file.path));
  }
  each_alone.emplace(ranks);
  source.emplace(files, tables, *each_alone);
  RESHARD_ASSIGN_OR_RETURN(
      reference, OpenTensors({.path = full_tensors}, {}, RanksRead::kOneReplica, 1, stop));
  for (const SourceTensor& parameter : reference.tensors) {
    if (parameter.kind == ArrayKind::kTensor) {
      full.emplace(parameter.name, &parameter);
    }
  }
  return {};
}

// The stages of a pipeline hold different parameters, on equally many ranks each.
Result<int64_t> Inference::DevicesOfStages() {
  std::vector<size_t> changes;  // ranks that have other names than the one before
  std::set<std::string_view> before;
  TableHandle last;  // owner of the names in `before`
  uint64_t table = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    RESHARD_ASSIGN_OR_RETURN(TableHandle index, source->TableOf(0, static_cast<int64_t>(rank)));
    if (rank > 0 && index->table().id() == table) continue;
    std::set<std::string_view> names;
    for (const StoredArray& parameter : index->arrays()) names.insert(parameter.name);
    if (rank > 0 && names != before) changes.push_back(rank);
    before = std::move(names);
    table = index->table().id();
    last = std::move(index);
  }
  const size_t devices = changes.empty() ? ranks.size() : changes[0];
  for (size_t i = 0; i < changes.size(); ++i) {
    if (changes[i] != (i + 1) * devices) changes.clear();
  }
  if (ranks.size() % devices != 0 || ranks.size() / devices != changes.size() + 1) {
    return MismatchError(
        fmt::format("expected one stage, or stages with equally many ranks and different "
                    "parameters. Parameters change first at rank {}, but not every {} ranks",
                    devices, devices));
  }
  return static_cast<int64_t>(devices);
}

// Returns the parameters of a stage with known full shapes, and their cuts.
Result<std::vector<StageParameter>> Inference::ParametersOf(int64_t first) {
  RESHARD_ASSIGN_OR_RETURN(const TableHandle index, source->TableOf(0, first));
  std::vector<StageParameter> parameters;
  std::vector<std::string> unknown;
  for (const StoredArray& parameter : index->arrays()) {
    if (parameter.kind != ArrayKind::kTensor) continue;
    const auto own = full.find(parameter.name);
    auto found = own;
    const auto copied =
        ParameterOfCopy(parameter.name, parameter.shape, [&](std::string_view name) {
          const StoredArray* const beside = index->Find(name);
          return beside == nullptr ? nullptr : &beside->shape;
        });
    if (found == full.end() && copied) found = full.find(*copied);
    if (found == full.end()) {
      unknown.push_back(Quote(parameter.name));
      continue;
    }
    StageParameter stage{std::string(parameter.name),
                         found->second->full_shape,
                         parameter.shape,
                         own == full.end() ? nullptr : own->second,
                         {}};
    const auto misfit = [&] {
      return MismatchError(
          fmt::format("{}: parameter {}: the shape {} of its shard is not an equal part of the "
                      "full shape {} of the reference; is this the same model?",
                      Escape(files.path(index->file())), Quote(parameter.name),
                      ToString(parameter.shape), ToString(stage.full_shape)));
    };
    if (stage.full_shape.size() != parameter.shape.size()) return misfit();
    for (size_t d = 0; d < parameter.shape.size(); ++d) {
      const int64_t shard = parameter.shape[d];
      const int64_t whole = stage.full_shape[d];
      if (shard == 0 ? whole != 0 : whole % shard != 0 || whole == 0) return misfit();
      stage.evidence.cuts.push_back(shard == 0 ? 1 : whole / shard);
    }
    parameters.push_back(std::move(stage));
  }
  if (!unknown.empty()) {
    warnings.push_back(
        {WarningCode::kNotInReference,
         fmt::format("{} parameters are not in the reference; left out, so that conversions copy "
                     "them as they stand: {}",
                     unknown.size(), FirstOf(unknown))});
  }
  return parameters;
}

// Fails if a stage's parameters need more parts than it has ranks.
Status CheckParts(const std::vector<StageParameter>& parameters, int64_t devices) {
  for (const StageParameter& parameter : parameters) {
    int64_t parts = 1;
    for (const int64_t cut : parameter.evidence.cuts) {
      if (cut <= devices) parts *= cut;
      if (cut > devices || devices % parts != 0) {
        return MismatchError(fmt::format(
            "parameter {}: shards of shape {} of the full shape {} are no equal parts for {} ranks",
            Quote(parameter.name), ToString(parameter.shard_shape), ToString(parameter.full_shape),
            devices));
      }
    }
  }
  return {};
}

// Fails if the written layout would differ from the found one.
Status CheckGrid(const StageParameter& parameter, const ParameterLayout& layout) {
  RESHARD_ASSIGN_OR_RETURN(const ShardGrid grid,
                           MakeGrid(layout, parameter.shard_shape.size(), "inferred"));
  if (grid.cuts() == parameter.evidence.cuts) return {};
  return InternalError(
      fmt::format("parameter {}: the layout found has other cuts", Quote(parameter.name)));
}

}  // namespace

inline namespace v0_1 {

Result<StrategyReport> InferStrategy(const std::string& source, const std::string& reference,
                                     const std::string& output, bool force, const RunOptions& run) {
  return CatchOutOfMemory([&]() -> Result<StrategyReport> {
    RESHARD_RETURN_IF_ERROR(CheckJobs(run.jobs));
    FileUse use;
    const RetryScope retries(run);
    RESHARD_RETURN_IF_ERROR(use.AddOutput(output));
    Inference inference(run.stop);
    RESHARD_RETURN_IF_ERROR(inference.Open(source, reference, run.stop));
    RESHARD_ASSIGN_OR_RETURN(const int64_t devices, inference.DevicesOfStages());
    const auto count = static_cast<int64_t>(inference.ranks.size()) / devices;
    uint64_t bytes = 0;
    for (const FileId file : inference.ranks) {
      RESHARD_ASSIGN_OR_RETURN(const uint64_t size, inference.files.Size(file));
      bytes += size;
    }
    const CountedWork work(run, {.total_bytes = bytes});
    OpenedSource& full = *inference.reference.source;
    std::vector<LayoutTable> stages;
    for (int64_t stage = 0; stage < count; ++stage) {
      const RankRange ranks = {stage * devices, (stage + 1) * devices};
      RESHARD_ASSIGN_OR_RETURN(std::vector<StageParameter> parameters,
                               inference.ParametersOf(ranks.begin));
      RESHARD_RETURN_IF_ERROR(CheckParts(parameters, devices));
      RESHARD_RETURN_IF_ERROR(
          CollectEvidence(*inference.source, ranks, full.tensors(), parameters, work.work()));
      RESHARD_ASSIGN_OR_RETURN(LayoutTable layouts, InferLayouts(parameters, inference.warnings));
      std::map<std::string_view, const StageParameter*> by_name;
      for (const StageParameter& parameter : parameters) by_name[parameter.name] = &parameter;
      for (const auto [name, layout] : layouts) {
        RESHARD_RETURN_IF_ERROR(CheckGrid(*by_name[name], layout));
      }
      if (layouts.empty()) {
        return MismatchError(fmt::format("{}: found no parameter of stage {} of {} in it",
                                         Escape(reference), stage, Escape(source)));
      }
      stages.push_back(std::move(layouts));
    }
    RESHARD_RETURN_IF_ERROR(inference.files.VerifyUnchanged());
    RESHARD_RETURN_IF_ERROR(full.files().VerifyUnchanged());
    // Names like 0-w would make one stage alone read as a pipeline's.
    const bool merged = count > 1 || IsMerged(stages[0]);
    RESHARD_ASSIGN_OR_RETURN(const Strategy strategy,
                             StrategyTables::FromLayouts(std::move(stages), merged, 0));
    RESHARD_ASSIGN_OR_RETURN(const std::string encoded,
                             EncodeStrategy(strategy, StrategyEncodingOfName(output)));
    RESHARD_RETURN_IF_ERROR(WriteFile(output, encoded, force));
    StrategyReport report = ReportOf(strategy, encoded.size());
    report.warnings = std::move(inference.warnings);
    return report;
  });
}

}  // namespace v0_1
}  // namespace reshard
