#include "src/frontend/report_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>
#include <variant>

#include "reshard/byte_range.h"
#include "reshard/findings.h"
#include "reshard/parameters.h"
#include "reshard/tensor.h"

namespace reshard {
namespace {

// Texts of the library that name options.
struct Messages {
  const std::vector<std::string>& texts;
};

// The type of a tensor alone.
struct TensorType {
  TensorInfo tensor;
};

// A tensor by its name and type alone.
struct NamedTensor : TensorInfo {};

struct Runs {
  uint64_t count = 0;
  uint64_t shortest = 0;
  uint64_t mean = 0;
  uint64_t longest = 0;
};

struct ReplicasOfBoth {
  ReplicaReport a;
  ReplicaReport b;
};

struct OwnValuesOfBoth {
  std::vector<std::string> a;
  std::vector<std::string> b;
};

struct MapStretch {
  std::string_view part;
  StoredArray::MapTensorPart stretch;
};

// A path, or the files of ranks.
struct SourcePlace {
  const SourceSpec* source;
};

constexpr std::string_view kReport = "Report";

std::string_view TypeName(const TensorInfo& tensor) {
  return tensor.kind == ArrayKind::kMapTensor ? "map" : DTypeName(tensor.dtype);
}

std::optional<Shape> ShapeOf(ArrayKind kind, DType dtype, const Shape& shape) {
  if (kind == ArrayKind::kText || kind == ArrayKind::kMapTensor) return std::nullopt;
  return LogicalShape(kind, dtype, shape);
}

std::optional<Shape> ShapeOf(const TensorInfo& tensor) {
  return ShapeOf(tensor.kind, tensor.dtype, tensor.shape);
}

std::optional<std::string_view> OrNone(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

StoredArray NoArray() {
  static const Shape kNone;
  return {.name = {}, .shape = kNone, .framed = {}, .content = {}, .map_tensor = {}};
}

// For descriptions of types.
Strategy NoStrategy() { return Strategy::Make({{"", {.tensor_map = {{}}}}}).value(); }

// Passes values and their parts to a sink.
class Fields {
 public:
  // `types` is `to` if that takes types, and else null.
  explicit Fields(ReportSink& to, TypeSink* types = nullptr) : to_(to), types_(types) {}

  void Put(const AgainstReport& report, const ReportedCall& call) {
    Begin("AgainstReport", kReport)
        .Add("target", call.place)
        .Add("source", SourcePlace{call.source})
        .Add("equal", report.equal())
        .Add("files", report.files)
        .Add("bytes", report.bytes)
        .Add("left_out", report.left_out)
        .Add("renamed", report.renamed);
    std::vector<std::string> options;
    for (const std::string& name : report.from_origin) options.push_back('`' + name + '`');
    Add("from_origin", Messages{options})
        .Add("differences", report.differences)
        .Add("replicas", report.replicas)
        .Add("own_values", report.replicas.own_values)
        .Add("seconds", call.seconds)
        .Add("warnings", report.warnings)
        .End();
  }

  void Put(const CommitReport& report, const ReportedCall& call) {
    Begin("CommitReport", kReport)
        .Add("target", call.place)
        .Add("already_published", report.already_published)
        .Add("warnings", report.warnings)
        .End();
  }

  void Put(const ConvertReport& report, const ReportedCall& call) {
    std::optional<std::vector<std::string>> own_values;
    if (report.replicas) own_values = report.replicas->own_values;
    Begin("ConvertReport", kReport).Add("target", call.place).Add("files", report.files);
    AddFindings(report)
        .Add("source_ranks", report.source_ranks)
        .Add("bytes_read", report.bytes_read)
        .Add("bytes_written", report.bytes_written)
        .Add("seconds", call.seconds)
        .Add("memory_planned", report.memory_planned)
        .Add("memory_peak", report.memory_peak)
        .Add("anonymous_peak", report.anonymous_peak)
        .Add("io", report.io)
        .Add("crc_files", report.crc_files)
        .Add("crc_bytes", report.crc_bytes)
        .Add("values_lost", report.values_lost)
        .Add("values_zeroed", report.values_zeroed)
        .Add("pruned", report.pruned)
        .Add("replicas", report.replicas)
        .Add("own_values", own_values)
        .Add("sample", report.sample)
        .Add("files_kept", report.files_kept)
        .Add("completed_earlier_run", report.completed_earlier_run)
        .Add("already_published", report.already_published)
        .Add("shard", report.shard)
        .Add("warnings", report.warnings)
        .Add("notes", Messages{report.notes})
        .End();
  }

  void Put(const DamageReport& report, const ReportedCall& call) {
    Begin("VerifyReport", kReport)
        .Add("target", call.place)
        .Add("equal", report.damages.empty())
        .Add("manifests", report.manifests)
        .Add("files", report.files)
        .Add("files_without_digest", report.files_without_digest)
        .Add("bytes", report.bytes)
        .Add("damages", report.damages)
        .Add("seconds", call.seconds)
        .Add("warnings", WarningsOf(report))
        .Add("notes", Messages{report.notes})
        .End();
  }

  void Put(const DiffReport& report, const ReportedCall& call) {
    std::optional<ReplicasOfBoth> replicas;
    std::optional<OwnValuesOfBoth> own_values;
    if (report.a) {
      replicas = {*report.a, *report.b};
      own_values = {report.a->own_values, report.b->own_values};
    }
    Begin("DiffReport", kReport)
        .Add("equal", report.equal())
        .Add("parameters", report.parameters)
        .Add("bytes", report.bytes)
        .Add("bytes_read", report.bytes_read)
        .Add("replicas", replicas)
        .Add("own_values", own_values)
        .Add("seconds", call.seconds)
        .Add("warnings", report.warnings)
        .Add("notes", Messages{report.notes})
        .End();
  }

  void Put(const DigestReport& report, const ReportedCall& call) {
    std::optional<std::vector<std::string>> own_values;
    if (report.replicas) own_values = report.replicas->own_values;
    Begin("DigestReport", kReport)
        .Add("path", call.place)
        .Add("parameters", report.parameters)
        .Add("digest", report.digest)
        .Add("bytes", report.bytes)
        .Add("bytes_read", report.bytes_read)
        .Add("replicas", report.replicas)
        .Add("own_values", own_values)
        .Add("seconds", call.seconds)
        .Add("warnings", report.warnings)
        .Add("notes", Messages{report.notes})
        .End();
  }

  void Put(const MergeReport& report, const ReportedCall& call) {
    Begin("MergeReport", kReport)
        .Add("output", call.place)
        .Add("sources", report.sources)
        .Add("parameters", report.parameters)
        .Add("bytes_compared", report.bytes_compared)
        .Add("bytes_written", report.bytes_written)
        .Add("seconds", call.seconds)
        .Add("warnings", report.warnings)
        .Add("notes", Messages{report.notes})
        .End();
  }

  void Put(const PlanReport& report, const ReportedCall& /*call*/) {
    std::vector<int64_t> source_ranks;
    for (const PlanReport::SourceFile& file : report.sources) source_ranks.push_back(file.rank);
    const uint64_t mean = report.runs == 0 ? 0 : report.bytes_read / report.runs;
    Begin("PlanReport", kReport)
        .Add("sources", report.sources)
        .Add("targets", report.targets)
        .Add("source_ranks", source_ranks);
    AddFindings(report)
        .Add("bytes_read", report.bytes_read)
        .Add("bytes_written", report.bytes_written)
        .Add("runs", Runs{report.runs, report.shortest_run, mean, report.longest_run})
        .Add("memory_bytes", report.memory_bytes)
        .Add("memory_limit", report.memory_limit)
        .Add("space_needed", report.bytes_written)
        .Add("space_free", report.free_space_bytes)
        .Add("sample", report.sample)
        .Add("warnings", report.warnings)
        .Add("notes", Messages{report.notes})
        .End();
  }

  void Put(const RecodedFiles& recoded, const ReportedCall& call) {
    const ConvertReport& report = recoded.report;
    Begin("RecodeReport", kReport)
        .Add("target", call.place)
        .Add("files", report.files)
        .Add("parameters", report.parameters)
        .Add("renamed", report.renamed)
        .Add("bytes_read", report.bytes_read)
        .Add("bytes_written", report.bytes_written)
        .Add("seconds", call.seconds)
        .Add("crc_files", report.crc_files)
        .Add("crc_bytes", report.crc_bytes)
        .Add("files_kept", report.files_kept)
        .Add("completed_earlier_run", report.completed_earlier_run)
        .Add("already_published", report.already_published)
        .Add("warnings", report.warnings)
        .Add("notes", Messages{report.notes})
        .End();
  }

  void Put(const StatusReport& report, const ReportedCall& call) {
    Begin("StatusReport", kReport, "How far a conversion is.")
        .Add("target", call.place)
        .Add("state", StateName(report.state));
    to_.Name("attention");
    if (types_ != nullptr) types_->OrNone();
    if (report.attention.empty() && types_ == nullptr) {
      to_.None();
    } else {
      to_.Message(report.attention);
    }
    Add("alone", report.alone)
        .Add("publishing", report.publishing)
        .Add("bytes_done", report.bytes_done)
        .Add("total_bytes", report.total_bytes)
        .Add("files_done", report.files_done)
        .Add("total_files", report.total_files)
        .Add("bytes_per_second", report.bytes_per_second)
        .Add("seconds_remaining", report.seconds_left)
        .Add("workers", report.workers)
        .Add("notes", Messages{report.notes})
        .End();
  }

  void Put(const StrategyReport& report, const ReportedCall& call) {
    Begin("StrategyReport", kReport, "A strategy file that was written.")
        .Add("output", call.place)
        .Add("stages", report.stages)
        .Add("devices_per_stage", report.devices_per_stage)
        .Add("layouts", report.layouts)
        .Add("bytes", report.bytes)
        .Add("warnings", report.warnings)
        .Add("notes", Messages{report.notes})
        .End();
  }

  void Put(const WrittenPage& page, const ReportedCall& call) {
    Begin("PageReport", kReport)
        .Add("output", call.place)
        .Add("bytes", page.bytes)
        .Add("warnings", page.warnings)
        .End();
  }

  void Put(const CutTensor& cut) {
    Begin("CutParameter", "FullParameter", "A full parameter and the layout that cuts it.");
    AddTensor(cut.tensor)
        .Add("stage", cut.tensor.stage)
        .Add("in_strategy", cut.tensor.in_strategy)
        .Add("shards", cut.shards)
        .End();
  }

  void Put(const DamageReport::Damage& damage) {
    Begin("Damage", {}, "A file of a target folder that is not as it was written.")
        .Add("path", damage.path)
        .Add("kind", DamageKindName(damage.kind))
        .Add("detail", damage.detail)
        .Add("first_bad_block", damage.block)
        .Add("bad_blocks", damage.bad_blocks)
        .Add("parameters", damage.parameters)
        .Add("parameter_count", damage.parameter_count)
        .End();
  }

  void Put(const DamageReport::Damage::Block& block) {
    Begin("Block", {}, "A stretch of a file that has a digest of its own.")
        .Add("index", block.index)
        .Add("offset", block.range.offset)
        .Add("length", block.range.length)
        .End();
  }

  void Put(const AgainstReport::FileDifference& difference) {
    Begin("FileDifference")
        .Add("path", difference.path)
        .Add("expected_size", difference.expected_size)
        .Add("found_size", difference.found_size)
        .Add("differing_bytes", difference.differing_bytes)
        .Add("first", difference.first)
        .Add("parameters", difference.parameters)
        .Add("parameter_count", difference.parameter_count)
        .End();
  }

  void Put(const Findings& findings) {
    Begin("Findings", {}, "The findings of opening and planning a conversion.");
    AddFindings(findings)
        .Add("sample", findings.sample)
        .Add("warnings", findings.warnings)
        .Add("notes", Messages{findings.notes})
        .End();
  }

  void Put(const AgainstReport::FileDifference::First& first) {
    Begin("FirstDifference")
        .Add("offset", first.offset)
        .Add("parameter", OrNone(first.parameter))
        .Add("in_header", first.in_header)
        .Add("expected", first.expected)
        .Add("found", first.found)
        .AddIf(!first.in_header, "shard_offset", first.shard_offset)
        .AddIf(!first.in_header, "source", first.source_path)
        .AddIf(!first.in_header, "source_offset", first.source_offset)
        .End();
  }

  void Put(const FullTensors& tensors) {
    Begin("ShardedParameters").Add("path", tensors.path);
    to_.Name("parameters");
    to_.BeginList();
    if (types_ != nullptr) Put(NamedTensor());
    for (const CutTensor& cut : tensors.cut) Put(cut);
    for (const StatisticsReport::Parameter& parameter : tensors.values) Put(parameter);
    to_.EndList();
    End();
  }

  void Put(const InspectFailure& failure) {
    Begin("Failure", {}, "A file that could not be read.")
        .Add("path", failure.path)
        .Add("code", StatusCodeName(failure.status.code()));
    to_.Name("message");
    to_.Message(failure.status.message());
    End();
  }

  void Put(const UnreadTensor& tensor) {
    Begin("UnreadTensor", {}, "A tensor of a file that cannot be read.")
        .Add("name", tensor.name)
        .Add("reason", tensor.why)
        .End();
  }

  void Put(const InspectedFile& file) {
    Begin("InspectedFile")
        .Add("path", file.path)
        .Add("rank", file.rank)
        .Add("size", file.size)
        .Add("crc", file.crc);
    to_.Name("parameters");
    to_.BeginList();
    if (types_ != nullptr) PutStored(NoArray(), nullptr);
    for (size_t i = 0; i < file.parameters.size(); ++i) {
      PutStored(*file.parameters[i], i < file.statistics.size() ? &file.statistics[i] : nullptr);
    }
    to_.EndList();
    Add("unread", file.unread).End();
  }

  void Put(const Inspection& inspection, const ReportedCall& /*call*/) {
    Begin("InspectReport", kReport,
          "The files that inspect read. `errors` lists the files that could not be read.");
    if (types_ != nullptr) Add("checkpoints", std::vector<InspectedFile>());
    if (inspection.checkpoints) Add("checkpoints", *inspection.checkpoints);
    Add("strategies", inspection.strategies)
        .Add("totals", inspection.totals)
        .Add("warnings", inspection.warnings)
        .Add("errors", inspection.errors)
        .AddIf(inspection.sharded.has_value(), "sharded",
               inspection.sharded.value_or(std::vector<FullTensors>()))
        .End();
  }

  void Put(const ConvertReport::IoUsed& io) {
    Begin("IoUsed", {}, "How many files were read and written in which way.")
        .Add("sources_mapped", io.sources_mapped)
        .Add("sources_read", io.sources_read)
        .Add("targets_direct", io.targets_direct)
        .Add("targets_buffered", io.targets_buffered)
        .End();
  }

  void Put(const DiffReport::Parameter& diff) {
    const auto type = [](const std::optional<TensorInfo>& tensor) {
      return tensor ? std::optional(TensorType{*tensor}) : std::nullopt;
    };
    Begin("ParameterDiff")
        .Add("name", diff.name)
        .Add("relation", RelationName(diff.relation))
        .Add("a", type(diff.a))
        .Add("b", type(diff.b))
        .AddIf(diff.values.has_value(), "values",
               diff.values.value_or(DiffReport::ValueDifference()))
        .AddIf(!diff.a_ranks.empty(), "a_ranks", diff.a_ranks)
        .AddIf(!diff.b_ranks.empty(), "b_ranks", diff.b_ranks)
        .End();
  }

  void Put(const DigestReport::Parameter& parameter) {
    Begin("ParameterDigest");
    AddTensor(parameter)
        .Add("bytes", parameter.bytes)
        .Add("digest", parameter.digest)
        .AddIf(!parameter.ranks.empty(), "ranks", parameter.ranks)
        .End();
  }

  void Put(const StatisticsReport::Parameter& parameter) {
    Begin("FullValues", "FullParameter", "A full parameter and statistics of its values.");
    AddTensor(parameter).Add("statistics", parameter.statistics).End();
  }

  void Put(const Findings::Totals& totals) {
    Begin("ParameterTotals", {}, "Elements of the weights, and of the optimizer's states.")
        .Add("weights", totals.weights)
        .Add("optimizer", totals.optimizer)
        .End();
  }

  void Put(const ReplicaReport::Difference& difference) {
    Begin("ReplicaDifference")
        .Add("parameter", difference.parameter)
        .Add("stage", difference.stage)
        .Add("pairs", difference.pairs)
        .Add("pair_count", difference.pair_count)
        .End();
  }

  void Put(const ReplicaReport::Pair& pair) {
    Begin("ReplicaPair", {}, "Two ranks that ought to hold the same shard.")
        .Add("rank", pair.rank)
        .Add("reference", pair.reference)
        .AddIf(pair.other_type, "other_type", true)
        .AddIf(!pair.other_type, "offset", pair.offset)
        .End();
  }

  void Put(const ReplicaReport& replicas) {
    Begin("Replicas")
        .Add("compared", replicas.compared)
        .Add("shards", replicas.shards)
        .Add("bytes", replicas.bytes)
        .Add("differing", replicas.differing)
        .Add("differences", replicas.differences)
        .End();
  }

  void Put(const Findings::ReplicaSample& sample) {
    Begin("ReplicaSample")
        .Add("parameters", sample.parameters)
        .Add("comparisons", sample.comparisons)
        .Add("confirming", sample.confirming)
        .Add("files", sample.files)
        .Add("files_opened", sample.files_opened)
        .Add("reads", sample.reads)
        .Add("bytes", sample.bytes)
        .Add("seconds", sample.seconds)
        .End();
  }

  void Put(const ShownStrategy& shown) {
    const Strategy strategy = shown.strategy ? *shown.strategy : NoStrategy();
    Begin("Strategy")
        .Add("path", strategy.path())
        .Add("is_pipeline", strategy.is_pipeline())
        .Add("stages", strategy.stages().size())
        .Add("devices_per_stage", strategy.devices_per_stage())
        .Add("meaning", shown.meaning)
        .Add("parameters", shown.parameters)
        .Add("notes", Messages{strategy.notes()})
        .End();
  }

  void Put(const ParameterMap& map) {
    Begin("ParameterMap")
        .Add("name", map.name)
        .Add("before", map.before)
        .Add("after", map.after)
        .End();
  }

  void Put(const MappedStrategy& side) {
    Begin("MappedStrategy").Add("path", side.path).Add("stages", side.stages).End();
  }

  void Put(const MappedStage& stage) {
    Begin("MappedStage")
        .Add("stage", stage.stage)
        .Add("first_rank", stage.first_rank)
        .Add("ranks", stage.ranks)
        .Add("cuts", stage.cuts)
        .Add("full_shape", stage.full_shape)
        .Add("boxes", stage.boxes)
        .End();
  }

  void Put(const MappedBox& box) {
    Begin("MappedBox").Add("parts", box.parts).Add("ranks", box.ranks).End();
  }

  void Put(const PlanReport::SourceFile& file) {
    Begin("SourceFile").Add("rank", file.rank).Add("path", file.path).Add("size", file.size).End();
  }

  void Put(const ShownLayout& parameter) {
    static const ParameterLayout kNone;
    const ParameterLayout& layout = parameter.layout == nullptr ? kNone : *parameter.layout;
    Begin("Layout")
        .Add("stage", parameter.stage)
        .Add("name", parameter.name)
        .Add("device_matrix", layout.device_matrix);
    // As MindSpore's JSON strategies have it: flat, or a list for each dimension.
    const auto& map = layout.tensor_map;
    to_.Name("tensor_map");
    if (types_ != nullptr) {
      types_->Type("Any");
    } else if (map.size() == 1) {
      Put(map.front());
    } else {
      Put(map);
    }
    Add("opt_weight_shard_step", layout.opt_weight_shard_step)
        .Add("opt_weight_shard_size", layout.opt_weight_shard_size)
        .Add("tensor_shape", layout.tensor_shape)
        .End();
  }

  void Put(const PlanReport::TargetFile& file) {
    Begin("TargetFile")
        .Add("rank", file.rank)
        .Add("path", file.path)
        .Add("size", file.size)
        .Add("parameters", file.parameters)
        .Add("runs", file.runs)
        .Add("source_ranks", file.source_ranks)
        .Add("kind", FileKindName(file.kind))
        .End();
  }

  void Put(const TensorInfo& tensor) {
    Begin("Parameter")
        .Add("name", tensor.name)
        .Add("dtype", DTypeName(tensor.dtype))
        .Add("full_shape", LogicalShape(tensor.kind, tensor.dtype, tensor.shape))
        .Add("bytes", tensor.bytes)
        .End();
  }

  void Put(const DiffReport::ValueDifference& values) {
    Begin("ValueDifference").Add("numbers", values.numbers);
    to_.Name("greatest");
    if (types_ != nullptr) {
      types_->Type("float | str");
    } else if (std::isinf(values.greatest)) {
      to_.Value(std::string_view("inf"));  // JSON has no such number
    } else {
      Put(values.greatest);
    }
    Add("nan_against_number", values.nan_against_number)
        .Add("nan_against_nan", values.nan_against_nan)
        .End();
  }

  void Put(const StatisticsReport::Values& statistics) {
    Begin("Statistics")
        .Add("values", statistics.values)
        .Add("min", statistics.least)
        .Add("max", statistics.greatest)
        .Add("mean", statistics.mean)
        .Add("nan", statistics.nans)
        .Add("inf", statistics.infinities)
        .End();
  }

  void Put(const Warning& warning) {
    Begin("WarningMessage", {}, "A warning of a call that succeeded; `code` is stable.")
        .Add("code", WarningCodeName(warning.code));
    to_.Name("message");
    to_.Message(warning.message);
    End();
  }

  void Put(const ConvertReport::Worker& report) {
    Begin("ShardOutcome", {}, "The outcome of the share of one process.")
        .Add("index", report.shard.index)
        .Add("count", report.shard.count)
        .Add("published", report.published)
        .Add("already_published", report.already_published)
        .Add("outstanding", report.outstanding)
        .End();
  }

  void Put(const StatusReport::Worker& worker) {
    std::optional<std::string_view> phase;
    if (worker.phase) phase = PhaseName(*worker.phase);
    Begin("WorkerStatus", {}, "How far the share of one process is.")
        .Add("index", worker.shard.index)
        .Add("state", StateName(worker.state))
        .Add("process", OrNone(worker.process))
        .Add("phase", phase)
        .Add("bytes_done", worker.bytes_done)
        .Add("total_bytes", worker.total_bytes)
        .Add("files_done", worker.files_done)
        .Add("total_files", worker.total_files)
        .Add("bytes_per_second", worker.bytes_per_second)
        .Add("seconds_remaining", worker.seconds_left)
        .End();
  }

  void Put(const ConvertReport::File& file) {
    Begin("WrittenFile").Add("path", file.path).Add("size", file.size).End();
  }

  // The classes that no value has as its own, or only at times.
  void PutOtherTypes() {
    const StatisticsReport::Parameter statistics;
    PutStored(NoArray(), &statistics);
    Put(MapStretch());
    Put(CutTensor());
    Put(statistics);
  }

 private:
  Fields& Begin(std::string_view name, std::string_view base = {}, std::string_view words = {}) {
    to_.BeginObject({name, base, words});
    return *this;
  }

  template <typename T>
  Fields& Add(std::string_view name, const T& value) {
    to_.Name(name);
    Put(value);
    return *this;
  }

  template <typename T>
  Fields& AddIf(bool is_there, std::string_view name, const T& value) {
    if (types_ != nullptr) {
      types_->MayLack();
    } else if (!is_there) {
      return *this;
    }
    return Add(name, value);
  }

  void End() { to_.EndObject(); }

  // The chosen parameters, and the source as a whole.
  Fields& AddFindings(const Findings& findings) {
    return Add("parameters", findings.parameters)
        .Add("left_out", findings.left_out)
        .Add("renamed", findings.renamed)
        .Add("largest", findings.largest)
        .Add("source_parameters", findings.totals)
        .Add("chosen_parameters", findings.chosen_totals)
        .Add("stage_alone", findings.stage_alone)
        .Add("step", OrNone(findings.step));
  }

  Fields& AddTensor(const TensorInfo& tensor) {
    return Add("name", tensor.name)
        .Add("dtype", TypeName(tensor))
        .Add("full_shape", ShapeOf(tensor));
  }

  // `statistics` are none unless the parameter was measured.
  void PutStored(const StoredArray& array, const StatisticsReport::Parameter* statistics) {
    if (statistics == nullptr) {
      Begin("StoredParameter", {}, "A parameter as its file holds it.");
    } else {
      Begin("MeasuredParameter", "StoredParameter",
            "A stored parameter and statistics of its values.");
    }
    Add("name", array.name)
        .Add("dtype", StoredTypeName(array))
        .Add("shape", ShapeOf(array.kind, array.dtype, array.shape))
        .Add("offset", ContentOffset(array))
        .Add("bytes", array.bytes)
        .Add("values", array.framed.size());
    to_.Name("content");
    to_.BeginList();
    if (types_ != nullptr) Put(ByteRange());
    for (const ByteRange& range : array.content) Put(range);
    for (size_t i = 0; i < array.map_tensor.size(); ++i) {
      Put(MapStretch{kMapTensorParts[i % std::size(kMapTensorParts)], array.map_tensor[i]});
    }
    to_.EndList();
    if (statistics != nullptr) Add("statistics", statistics->statistics);
    End();
  }

  void Put(const ByteRange& range) {
    Begin("Stretch", {}, "Bytes of a file: a Value, or a part of a MapTensor.")
        .Add("offset", range.offset)
        .Add("length", range.length)
        .End();
  }

  void Put(const MapStretch& of_map) {
    Begin("MapStretch", "Stretch")
        .Add("part", of_map.part)
        .Add("type", of_map.stretch.type)
        .Add("shape", of_map.stretch.shape)
        .Add("offset", of_map.stretch.content.offset)
        .Add("length", of_map.stretch.content.length)
        .End();
  }

  void Put(const ContentTotal& total) {
    Begin("Total").Add("parameters", total.parameters).Add("bytes", total.bytes).End();
  }

  void Put(const ContentTotals& totals) {
    Begin("Totals", {}, "Of all files, replicas counted as often as they are stored.")
        .Add("files", totals.files)
        .Add("parameters", totals.all.parameters)
        .Add("bytes", totals.all.bytes)
        .Add("by_dtype", totals.by_dtype)
        .Add("by_prefix", totals.by_group)
        .End();
  }

  void Put(const NamedTensor& tensor) {
    Begin("FullParameter", {}, "A full tensor.");
    AddTensor(tensor).End();
  }

  void Put(const OwnValuesOfBoth& both) {
    Begin("OwnValuesOfBoth").Add("a", both.a).Add("b", both.b).End();
  }

  void Put(const ReplicasOfBoth& both) {
    Begin("ReplicasOfBoth").Add("a", both.a).Add("b", both.b).End();
  }

  void Put(const Runs& runs) {
    Begin("Runs", {}, "Contiguous stretches that are copied; bytes.")
        .Add("count", runs.count)
        .Add("shortest", runs.shortest)
        .Add("mean", runs.mean)
        .Add("longest", runs.longest)
        .End();
  }

  void Put(const ShardedCheckpoint::Shard& shard) {
    Begin("Box")
        .Add("begin", shard.box.begin)
        .Add("extent", shard.box.extent)
        .Add("ranks", shard.ranks)
        .End();
  }

  void Put(const SourcePlace& place) {
    if (types_ != nullptr) return types_->Type("Any");
    if (place.source->files.empty()) return Put(place.source->path);
    to_.BeginMap();
    for (const auto& [rank, path] : place.source->files) Add(std::to_string(rank), path);
    to_.EndMap();
  }

  void Put(const TensorType& type) {
    Begin("TensorType")
        .Add("dtype", TypeName(type.tensor))
        .Add("full_shape", ShapeOf(type.tensor))
        .End();
  }

  void Put(const Messages& messages) {
    to_.BeginList();
    if (types_ != nullptr) to_.Message({});
    for (const std::string& text : messages.texts) to_.Message(text);
    to_.EndList();
  }

  void Put(const StatisticsReport::Number& number) {
    if (types_ != nullptr) return Put(0.0);
    std::visit([this](auto exact) { Put(exact); }, number);
  }

  void Put(double value) { to_.Value(value); }
  void Put(std::string_view text) { to_.Value(text); }
  void Put(const std::string& text) { to_.Value(std::string_view{text}); }

  template <std::integral T>
  void Put(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      to_.Value(value);
    } else if constexpr (std::is_signed_v<T>) {
      to_.Value(static_cast<int64_t>(value));
    } else {
      to_.Value(static_cast<uint64_t>(value));
    }
  }

  template <typename T>
  void Put(const std::vector<T>& values) {
    to_.BeginList();
    if (types_ != nullptr) Put(T());
    for (const T& value : values) Put(value);
    to_.EndList();
  }

  template <typename T>
  void Put(const std::optional<T>& value) {
    if (types_ != nullptr) {
      types_->OrNone();
      Put(T());
    } else if (value) {
      Put(*value);
    } else {
      to_.None();
    }
  }

  template <typename T>
  void Put(const std::map<std::string_view, T>& values) {
    to_.BeginMap();
    if (types_ != nullptr) Add({}, T());
    for (const auto& [name, value] : values) Add(name, value);
    to_.EndMap();
  }

  ReportSink& to_;
  TypeSink* const types_;
};

}  // namespace

template <typename Report>
void Describe(const Report& report, const ReportedCall& call, ReportSink& to) {
  Fields(to).Put(report, call);
}

template void Describe(const AgainstReport&, const ReportedCall&, ReportSink&);
template void Describe(const CommitReport&, const ReportedCall&, ReportSink&);
template void Describe(const ConvertReport&, const ReportedCall&, ReportSink&);
template void Describe(const DamageReport&, const ReportedCall&, ReportSink&);
template void Describe(const DiffReport&, const ReportedCall&, ReportSink&);
template void Describe(const DigestReport&, const ReportedCall&, ReportSink&);
template void Describe(const Inspection&, const ReportedCall&, ReportSink&);
template void Describe(const MergeReport&, const ReportedCall&, ReportSink&);
template void Describe(const PlanReport&, const ReportedCall&, ReportSink&);
template void Describe(const RecodedFiles&, const ReportedCall&, ReportSink&);
template void Describe(const StatusReport&, const ReportedCall&, ReportSink&);
template void Describe(const StrategyReport&, const ReportedCall&, ReportSink&);
template void Describe(const WrittenPage&, const ReportedCall&, ReportSink&);

std::string_view StoredTypeName(const StoredArray& array) {
  return array.kind == ArrayKind::kMapTensor ? "map" : DTypeName(array.dtype);
}

std::optional<uint64_t> ContentOffset(const StoredArray& array) {
  if (!array.content.empty()) return array.content.front().offset;
  if (!array.map_tensor.empty()) return array.map_tensor.front().content.offset;
  return std::nullopt;
}

void Describe(const Findings& findings, ReportSink& to) { Fields(to).Put(findings); }
void Describe(const PlanReport::TargetFile& file, ReportSink& to) { Fields(to).Put(file); }
void Describe(const InspectedFile& file, ReportSink& to) { Fields(to).Put(file); }
void Describe(const ShownStrategy& strategy, ReportSink& to) { Fields(to).Put(strategy); }
void Describe(const ParameterMap& map, ReportSink& to) { Fields(to).Put(map); }
void Describe(const StatisticsReport::Parameter& parameter, ReportSink& to) {
  Fields(to).Put(parameter);
}
void Describe(const Warning& warning, ReportSink& to) { Fields(to).Put(warning); }

void DescribeTypes(TypeSink& to) {
  Fields fields(to, &to);
  const ReportedCall call;
  fields.Put(ConvertReport(), call);
  fields.Put(PlanReport(), call);
  fields.Put(DamageReport(), call);
  fields.Put(AgainstReport(), call);
  fields.Put(DigestReport(), call);
  fields.Put(DiffReport(), call);
  fields.Put(MergeReport(), call);
  fields.Put(RecodedFiles{ConvertReport()}, call);
  fields.Put(CommitReport(), call);
  fields.Put(StatusReport(), call);
  fields.Put(StrategyReport(), call);
  fields.Put(WrittenPage(), call);
  fields.Put(Inspection(), call);
  fields.Put(Findings());
  fields.PutOtherTypes();
}

std::string_view RelationName(DiffReport::Relation relation) {
  constexpr std::string_view kNames[] = {"equal", "different", "other type", "only in A",
                                         "only in B"};
  return kNames[static_cast<size_t>(relation)];
}

std::string_view StateName(StatusReport::State state) {
  constexpr std::string_view kNames[] = {"published", "running", "needs attention"};
  return kNames[static_cast<size_t>(state)];
}

std::string_view StateName(StatusReport::Worker::State state) {
  constexpr std::string_view kNames[] = {"not started", "running", "finished", "dead"};
  return kNames[static_cast<size_t>(state)];
}

std::vector<Warning> WarningsOf(const DamageReport& report) {
  if (report.files_without_digest == 0) return {};
  return {{WarningCode::kNotCompared,
           fmt::format("{} of {} {} listed without a digest (converted with `checksum=false`): "
                       "only sizes were compared",
                       report.files_without_digest, report.files,
                       report.files == 1 ? "file" : "files")}};
}

}  // namespace reshard
