#include "python/src/reports.h"

#include <nanobind/nanobind.h>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "python/src/interpreter.h"
#include "python/src/module.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "tools/page/strategy_words.h"
#include "tools/page/text_format.h"

namespace nb = nanobind;

namespace reshard::python {
namespace {

// Everything that a report is made of, declared before the templates that use it.
nb::object Of(const DamagedBlock& block);
nb::object Of(const Damage& damage);
nb::object Of(const FileDifference& difference);
nb::object Of(const FirstDifference& first);
nb::object Of(const IoUsed& io);
nb::object Of(const ParameterDiff& diff);
nb::object Of(const ParameterDigest& parameter);
nb::object Of(const ParameterStatistics& parameter);
nb::object Of(const ParameterTotals& totals);
nb::object Of(const ReplicaDifference& difference);
nb::object Of(const ReplicaPair& pair);
nb::object Of(const ReplicaReport& replicas);
nb::object Of(const ReplicaSample& sample);
nb::object Of(const SourceFileSummary& file);
nb::object Of(const StoredArray& array);
nb::object Of(const StrategyParameter& parameter);
nb::object Of(const TargetFileSummary& file);
nb::object Of(const TensorInfo& tensor);
nb::object Of(const ValueDifference& values);
nb::object Of(const ValueStatistics& statistics);
nb::object Of(const Warning& warning);
nb::object Of(const WorkerReport& report);
nb::object Of(const WrittenFile& file);
nb::object Of(const Number& number);
nb::object Of(const nb::object& value) { return value; }
nb::object Of(std::string_view text) { return Text(text); }
nb::object Of(const std::string& text) { return Text(text); }
nb::object Of(bool value) { return nb::bool_(value); }
nb::object Of(double value) { return nb::float_(value); }

template <std::integral Number>
nb::object Of(Number value) {
  return nb::int_(value);
}

template <typename T>
nb::object Of(const std::vector<T>& values) {
  nb::list list;
  for (const T& value : values) list.append(Of(value));
  return list;
}

template <typename T>
nb::object Of(const std::optional<T>& value) {
  return value ? Of(*value) : nb::none();
}

class Fields {
 public:
  template <typename T>
  Fields& Add(const char* name, const T& value) {
    dict_[name] = Of(value);
    return *this;
  }
  // NOLINTNEXTLINE(google-explicit-constructor): what a report ends with
  operator nb::dict() const { return dict_; }
  // NOLINTNEXTLINE(google-explicit-constructor): likewise
  operator nb::object() const { return dict_; }

 private:
  nb::dict dict_;
};

std::optional<std::string_view> OrNone(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

std::string_view TypeName(const TensorInfo& tensor) {
  return tensor.kind == ArrayKind::kMapTensor ? "map" : DTypeName(tensor.dtype);
}

nb::object ShapeOf(const TensorInfo& tensor) {
  if (!HasShape(tensor.kind)) return nb::none();
  return Of(LogicalShape(tensor.kind, tensor.dtype, tensor.shape));
}

std::string_view RelationName(ParameterRelation relation) {
  constexpr std::string_view kNames[] = {"equal", "different", "other type", "only in A",
                                         "only in B"};
  return kNames[static_cast<size_t>(relation)];
}

nb::object Of(const Warning& warning) {
  return Fields().Add("code", WarningCodeName(warning.code)).Add("message", warning.message);
}

nb::object Of(const DamagedBlock& block) {
  return Fields()
      .Add("index", block.index)
      .Add("offset", block.range.offset)
      .Add("length", block.range.length);
}

nb::object Of(const Damage& damage) {
  return Fields()
      .Add("path", damage.path)
      .Add("kind", DamageKindName(damage.kind))
      .Add("detail", damage.detail)
      .Add("first_bad_block", damage.block)
      .Add("bad_blocks", damage.bad_blocks)
      .Add("parameters", damage.parameters)
      .Add("parameter_count", damage.parameter_count);
}

nb::object Of(const FirstDifference& first) {
  std::optional<std::string> parameter;  // unknown in the header of an empty tensor
  if (!first.parameter.empty()) parameter = first.parameter;
  Fields fields;
  fields.Add("offset", first.offset)
      .Add("parameter", parameter)
      .Add("in_header", first.in_header)
      .Add("expected", first.expected)
      .Add("found", first.found);
  if (first.in_header) return fields;
  return fields.Add("shard_offset", first.shard_offset)
      .Add("source", first.source_path)
      .Add("source_offset", first.source_offset);
}

nb::object Of(const FileDifference& difference) {
  return Fields()
      .Add("path", difference.path)
      .Add("expected_size", difference.expected_size)
      .Add("found_size", difference.found_size)
      .Add("differing_bytes", difference.differing_bytes)
      .Add("first", difference.first)
      .Add("parameters", difference.parameters)
      .Add("parameter_count", difference.parameter_count);
}

nb::object Of(const ReplicaPair& pair) {
  Fields fields;
  fields.Add("rank", pair.rank).Add("reference", pair.reference);
  if (pair.other_type) return fields.Add("other_type", true);
  return fields.Add("offset", pair.offset);
}

nb::object Of(const ReplicaDifference& difference) {
  return Fields()
      .Add("parameter", difference.parameter)
      .Add("stage", difference.stage)
      .Add("pairs", difference.pairs)
      .Add("pair_count", difference.pair_count);
}

nb::object Of(const ReplicaReport& replicas) {
  return Fields()
      .Add("compared", replicas.compared)
      .Add("shards", replicas.shards)
      .Add("bytes", replicas.bytes)
      .Add("differing", replicas.differing)
      .Add("differences", replicas.differences);
}

nb::object Of(const ReplicaSample& sample) {
  return Fields()
      .Add("parameters", sample.parameters)
      .Add("comparisons", sample.comparisons)
      .Add("confirming", sample.confirming)
      .Add("files", sample.files)
      .Add("files_opened", sample.files_opened)
      .Add("reads", sample.reads)
      .Add("bytes", sample.bytes)
      .Add("seconds", sample.seconds);
}

nb::object Of(const ParameterTotals& totals) {
  return Fields().Add("weights", totals.weights).Add("optimizer", totals.optimizer);
}

nb::object Of(const TensorInfo& tensor) {
  return Fields()
      .Add("name", tensor.name)
      .Add("dtype", DTypeName(tensor.dtype))
      .Add("full_shape", LogicalShape(tensor.kind, tensor.dtype, tensor.shape))
      .Add("bytes", tensor.bytes);
}

nb::object Of(const IoUsed& io) {
  return Fields()
      .Add("sources_mapped", io.sources_mapped)
      .Add("sources_read", io.sources_read)
      .Add("targets_direct", io.targets_direct)
      .Add("targets_buffered", io.targets_buffered);
}

nb::object Of(const WrittenFile& file) {
  return Fields().Add("path", file.path).Add("size", file.size);
}

nb::object Of(const SourceFileSummary& file) {
  return Fields().Add("rank", file.rank).Add("path", file.path).Add("size", file.size);
}

nb::object Of(const TargetFileSummary& file) {
  return Fields()
      .Add("rank", file.rank)
      .Add("path", file.path)
      .Add("size", file.size)
      .Add("parameters", file.parameters)
      .Add("runs", file.runs)
      .Add("source_ranks", file.source_ranks);
}

nb::object Of(const WorkerReport& report) {
  return Fields()
      .Add("index", report.shard.index)
      .Add("count", report.shard.count)
      .Add("published", report.published)
      .Add("already_published", report.already_published)
      .Add("outstanding", report.outstanding);
}

nb::object Of(const Number& number) {
  return std::visit([](auto exact) { return Of(exact); }, number);
}

nb::object Of(const ValueStatistics& statistics) {
  return Fields()
      .Add("values", statistics.values)
      .Add("min", statistics.least)
      .Add("max", statistics.greatest)
      .Add("mean", statistics.mean)
      .Add("nan", statistics.nans)
      .Add("inf", statistics.infinities);
}

nb::object Of(const ParameterStatistics& parameter) {
  return Fields()
      .Add("name", parameter.name)
      .Add("dtype", TypeName(parameter))
      .Add("full_shape", ShapeOf(parameter))
      .Add("statistics", parameter.statistics);
}

std::string_view MapPartName(size_t index) {
  constexpr std::string_view kNames[] = {"keys", "values", "status"};
  return kNames[index % std::size(kNames)];
}

nb::object Of(const StoredArray& array) {
  nb::list content;
  for (const ByteRange& range : array.content) {
    const nb::object stretch = Fields().Add("offset", range.offset).Add("length", range.length);
    content.append(stretch);
  }
  for (size_t i = 0; i < array.map_tensor.size(); ++i) {
    const MapTensorPart& part = array.map_tensor[i];
    const nb::object stretch = Fields()
                                   .Add("part", MapPartName(i))
                                   .Add("type", part.type)
                                   .Add("shape", part.shape)
                                   .Add("offset", part.content.offset)
                                   .Add("length", part.content.length);
    content.append(stretch);
  }
  std::optional<uint64_t> offset;
  if (!array.content.empty()) {
    offset = array.content.front().offset;
  } else if (!array.map_tensor.empty()) {
    offset = array.map_tensor.front().content.offset;
  }
  const bool is_map = array.kind == ArrayKind::kMapTensor;
  return Fields()
      .Add("name", array.name)
      .Add("dtype", is_map ? std::string_view("map") : DTypeName(array.dtype))
      .Add("shape", HasShape(array.kind) ? Of(LogicalShape(array.kind, array.dtype, array.shape))
                                         : nb::object(nb::none()))
      .Add("offset", offset)
      .Add("bytes", array.bytes)
      .Add("values", array.framed.size())
      .Add("content", nb::object(content));
}

nb::object Of(const StrategyParameter& parameter) {
  // As MindSpore's JSON strategies have it: flat, or a list for each dimension.
  const auto& map = parameter.tensor_map;
  return Fields()
      .Add("stage", parameter.stage)
      .Add("name", parameter.name)
      .Add("device_matrix", parameter.device_matrix)
      .Add("tensor_map", map.size() == 1 ? Of(map.front()) : Of(map))
      .Add("opt_weight_shard_step", parameter.opt_weight_shard_step)
      .Add("opt_weight_shard_size", parameter.opt_weight_shard_size)
      .Add("tensor_shape", parameter.tensor_shape);
}

nb::object Of(const ParameterDigest& parameter) {
  Fields fields;
  fields.Add("name", parameter.name)
      .Add("dtype", TypeName(parameter))
      .Add("full_shape", ShapeOf(parameter))
      .Add("bytes", parameter.bytes)
      .Add("digest", parameter.digest);
  if (!parameter.ranks.empty()) fields.Add("ranks", parameter.ranks);
  return fields;
}

nb::object Of(const ValueDifference& values) {
  Fields fields;
  fields.Add("numbers", values.numbers);
  if (std::isinf(values.greatest)) {
    fields.Add("greatest", std::string_view("inf"));  // JSON has no such number
  } else {
    fields.Add("greatest", values.greatest);
  }
  return fields.Add("nan_against_number", values.nan_against_number)
      .Add("nan_against_nan", values.nan_against_nan);
}

nb::object TypeOf(const std::optional<TensorInfo>& tensor) {
  if (!tensor) return nb::none();
  return Fields().Add("dtype", TypeName(*tensor)).Add("full_shape", ShapeOf(*tensor));
}

nb::object Of(const ParameterDiff& diff) {
  Fields fields;
  fields.Add("name", diff.name)
      .Add("relation", RelationName(diff.relation))
      .Add("a", TypeOf(diff.a))
      .Add("b", TypeOf(diff.b));
  if (diff.values) fields.Add("values", *diff.values);
  if (!diff.a_ranks.empty()) fields.Add("a_ranks", diff.a_ranks);
  if (!diff.b_ranks.empty()) fields.Add("b_ranks", diff.b_ranks);
  return fields;
}

}  // namespace

nb::dict ReportOf(const AgainstReport& report) {
  return Fields()
      .Add("equal", report.equal())
      .Add("files", report.files)
      .Add("bytes", report.bytes)
      .Add("left_out", report.left_out)
      .Add("renamed", report.renamed)
      .Add("from_origin", report.from_origin)
      .Add("differences", report.differences)
      .Add("replicas", report.replicas)
      .Add("warnings", report.warnings);
}

nb::dict ReportOf(const ConvertReport& report) {
  return Fields()
      .Add("files", report.files)
      .Add("parameters", report.parameters)
      .Add("left_out", report.left_out)
      .Add("renamed", report.renamed)
      .Add("largest", report.largest)
      .Add("source_parameters", report.totals)
      .Add("chosen_parameters", report.chosen_totals)
      .Add("stage_alone", report.stage_alone)
      .Add("step", OrNone(report.step))
      .Add("source_ranks", report.source_ranks)
      .Add("bytes_read", report.bytes_read)
      .Add("bytes_written", report.bytes_written)
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
      .Add("sample", report.sample)
      .Add("files_kept", report.files_kept)
      .Add("completed_earlier_run", report.completed_earlier_run)
      .Add("already_published", report.already_published)
      .Add("shard", report.shard)
      .Add("warnings", report.warnings)
      .Add("notes", report.notes);
}

nb::dict ReportOf(const DamageReport& report) {
  std::vector<Warning> warnings;
  if (report.files_without_digest > 0) {
    warnings.push_back({WarningCode::kNotCompared,
                        std::to_string(report.files_without_digest) + " of " +
                            std::to_string(report.files) +
                            (report.files == 1 ? " file" : " files") +
                            " listed without a digest (converted with `checksum=false`): only "
                            "sizes were compared"});
  }
  return Fields()
      .Add("equal", report.damages.empty())
      .Add("manifests", report.manifests)
      .Add("files", report.files)
      .Add("files_without_digest", report.files_without_digest)
      .Add("bytes", report.bytes)
      .Add("damages", report.damages)
      .Add("warnings", warnings)
      .Add("notes", report.notes);
}

nb::dict ReportOf(const DiffReport& report) {
  Fields fields;
  fields.Add("equal", report.equal())
      .Add("parameters", report.parameters)
      .Add("bytes", report.bytes)
      .Add("bytes_read", report.bytes_read);
  nb::object replicas = nb::none();
  nb::object own_values = nb::none();
  if (report.a) {
    replicas = Fields().Add("a", report.a->replicas).Add("b", report.b->replicas);
    own_values = Fields().Add("a", report.a->own_values).Add("b", report.b->own_values);
  }
  return fields.Add("replicas", replicas)
      .Add("own_values", own_values)
      .Add("warnings", report.warnings);
}

nb::dict ReportOf(const DigestReport& report) {
  Fields fields;
  fields.Add("parameters", report.parameters)
      .Add("digest", report.digest)
      .Add("bytes", report.bytes)
      .Add("bytes_read", report.bytes_read)
      .Add("replicas", nb::object(nb::none()))
      .Add("own_values", nb::object(nb::none()));
  if (report.ranks) {
    fields.Add("replicas", report.ranks->replicas).Add("own_values", report.ranks->own_values);
  }
  return fields.Add("warnings", report.warnings);
}

nb::dict ReportOf(const MergeReport& report) {
  return Fields()
      .Add("sources", report.sources)
      .Add("parameters", report.parameters)
      .Add("bytes_compared", report.bytes_compared)
      .Add("bytes_written", report.bytes_written)
      .Add("warnings", report.warnings)
      .Add("notes", report.notes);
}

nb::dict ReportOf(const PlanReport& report) {
  std::vector<int64_t> source_ranks;
  for (const SourceFileSummary& file : report.sources) source_ranks.push_back(file.rank);
  const nb::object runs = Fields()
                              .Add("count", report.runs)
                              .Add("shortest", report.shortest_run)
                              .Add("mean", report.runs == 0 ? 0 : report.bytes_read / report.runs)
                              .Add("longest", report.longest_run);
  return Fields()
      .Add("sources", report.sources)
      .Add("targets", report.targets)
      .Add("source_ranks", source_ranks)
      .Add("parameters", report.parameters)
      .Add("left_out", report.left_out)
      .Add("renamed", report.renamed)
      .Add("largest", report.largest)
      .Add("source_parameters", report.totals)
      .Add("chosen_parameters", report.chosen_totals)
      .Add("stage_alone", report.stage_alone)
      .Add("step", OrNone(report.step))
      .Add("bytes_read", report.bytes_read)
      .Add("bytes_written", report.bytes_written)
      .Add("runs", runs)
      .Add("memory_bytes", report.memory_bytes)
      .Add("memory_limit", report.memory_limit)
      .Add("space_needed", report.bytes_written)
      .Add("space_free", report.free_space_bytes)
      .Add("sample", report.sample)
      .Add("warnings", report.warnings)
      .Add("notes", report.notes);
}

nb::dict ReportOf(const CommitReport& report) {
  return Fields()
      .Add("already_published", report.already_published)
      .Add("warnings", report.warnings);
}

namespace {

// Of a strategy that was inferred, or made of a specification.
template <typename Report>
Fields WrittenStrategy(const Report& report) {
  return Fields()
      .Add("stages", report.stages)
      .Add("devices_per_stage", report.devices_per_stage)
      .Add("layouts", report.layouts)
      .Add("bytes", report.bytes)
      .Add("warnings", report.warnings);
}

}  // namespace

nb::dict ReportOf(const InferStrategyReport& report) { return WrittenStrategy(report); }

nb::dict ReportOf(const MakeStrategyReport& report) {
  return WrittenStrategy(report).Add("notes", report.notes);
}

nb::dict ReportOf(const StrategyConversionReport& report) {
  return Fields()
      .Add("layouts", report.layouts)
      .Add("bytes", report.bytes)
      .Add("warnings", report.warnings)
      .Add("notes", report.notes);
}

nb::dict ReportOf(const StrategyMergeReport& report) {
  return Fields()
      .Add("stages", report.stages)
      .Add("bytes", report.bytes)
      .Add("notes", report.notes);
}

nb::dict ReportOf(const StatisticsReport& report) {
  return Fields().Add("parameters", report.parameters).Add("warnings", report.warnings);
}

nb::dict ReportOfPage(uint64_t bytes, const std::vector<Warning>& warnings) {
  return Fields().Add("bytes", bytes).Add("warnings", warnings);
}

nb::object ReportOf(const std::vector<Warning>& warnings) { return Of(warnings); }

nb::dict ReportOf(const Checkpoint& checkpoint, const nb::object& takes) {
  nb::list parameters;
  for (const StoredArray& array : checkpoint.parameters()) {
    if (!nb::cast<bool>(CallPython(takes, nb::make_tuple(Text(array.name))))) continue;
    nb::object parameter = Of(array);
    parameter["group"] = Text(checkpoint.GroupOf(array));
    parameters.append(parameter);
  }
  return Fields()
      .Add("path", checkpoint.path())
      .Add("rank", nb::object(nb::none()))
      .Add("size", checkpoint.file_size())
      .Add("crc", checkpoint.crc())
      .Add("parameters", nb::object(parameters));
}

nb::dict ReportOf(const Strategy& strategy, const nb::object& takes) {
  nb::list parameters;
  for (const StrategyParameter& parameter : strategy.parameters) {
    if (nb::cast<bool>(CallPython(takes, nb::make_tuple(Text(parameter.name)))))
      parameters.append(Of(parameter));
  }
  return Fields()
      .Add("path", strategy.path)
      .Add("is_pipeline", strategy.is_pipeline)
      .Add("stages", strategy.stages)
      .Add("devices_per_stage", strategy.devices_per_stage)
      .Add("meaning", StrategyInWords(strategy))
      .Add("parameters", nb::object(parameters))
      .Add("notes", strategy.notes);
}

nb::dict ReportOf(const RecodeReport& report) {
  return Fields()
      .Add("files", report.files)
      .Add("parameters", report.parameters)
      .Add("renamed", report.renamed)
      .Add("bytes_read", report.bytes_read)
      .Add("bytes_written", report.bytes_written)
      .Add("crc_files", report.crc_files)
      .Add("crc_bytes", report.crc_bytes)
      .Add("files_kept", report.files_kept)
      .Add("completed_earlier_run", report.completed_earlier_run)
      .Add("already_published", report.already_published)
      .Add("warnings", report.warnings)
      .Add("notes", report.notes);
}

}  // namespace reshard::python
