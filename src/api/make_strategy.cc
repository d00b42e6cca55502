#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reshard/file_use.h"
#include "reshard/strategy.h"
#include "src/api/source_tensors.h"
#include "src/base/json_reader.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/mindspore/cluster_layouts.h"
#include "src/mindspore/layout_grid.h"
#include "src/mindspore/spec_layouts.h"
#include "src/mindspore/strategy_loader.h"
#include "src/mindspore/strategy_tables.h"
#include "src/mindspore/strategy_writer.h"
#include "src/os/write_file.h"

namespace reshard {
namespace {

constexpr std::string_view kModelConfig = "config.json";
constexpr uint64_t kMaxConfigBytes = uint64_t{1} << 20;

// Reads heads and embeddings from a model's configuration, at its outermost level.
class ConfigReader final : public JsonReader {
 public:
  explicit ConfigReader(std::string_view path) : JsonReader(path) {}

  ModelFacts Facts() const {
    ModelFacts facts = facts_;
    // Without groups each query has its own keys and values.
    if (!facts.kv_heads) facts.kv_heads = facts.heads;
    return facts;
  }

 private:
  Status OnValue(JsonValue& value) override {
    if (depth() != 1 || LevelAt(1).is_list) return {};
    const std::string& key = Key(1);
    const std::optional<int64_t> number = value.Integer();
    if (key == "num_attention_heads" && number > 0) facts_.heads = number;
    if (key == "num_key_value_heads" && number > 0) facts_.kv_heads = number;
    if (key == "tie_word_embeddings" && value.kind == JsonValue::Kind::kBoolean) {
      facts_.ties_embeddings = value.number != 0;
    }
    return {};
  }

  Status OnOpen(bool /*is_list*/) override { return {}; }

  ModelFacts facts_;
};

// Returns the facts in the config.json of a folder, if there is one that can be read.
ModelFacts FactsOf(const std::string& folder) {
  const Storage& storage = Storage::Of(folder);
  const std::string path = PathIn(folder, kModelConfig);
  const Result<PathKind> kind = storage.KindOf(path);
  if (!kind.ok() || *kind != PathKind::kFile) return {};
  const Result<std::string> text = storage.ReadWhole(path, kMaxConfigBytes);
  if (!text.ok()) return {};
  ConfigReader reader(path);
  return reader.Read(*text).ok() ? reader.Facts() : ModelFacts();
}

// Returns the parts of each dimension by the tensor map alone. Errors: as MakeGrid.
Result<std::vector<int64_t>> CutsOf(ParameterLayout layout, size_t dims, const std::string& where) {
  layout.opt_weight_shard_step = 0;
  layout.opt_weight_shard_size = 0;
  RESHARD_ASSIGN_OR_RETURN(const ShardGrid grid, MakeGrid(layout, dims, where));
  return grid.cuts();
}

// The number of dimensions that a layout is of.
size_t DimsOf(const ParameterLayout& layout) {
  const auto& map = layout.tensor_map;
  return map.size() == 1 ? map.front().size() : map.size();
}

// Adds the layout that `strategy` has for `parameter`.
Status AddLayout(const Strategy& strategy, ClusterParameter& parameter) {
  parameter.source_stages = 0;
  for (const StrategyStage& stage : strategy.stages()) {
    const ParameterLayout* const layout = stage.Find(parameter.name);
    if (layout == nullptr) continue;
    if (parameter.source_stages++ > 0) continue;
    RESHARD_ASSIGN_OR_RETURN(
        parameter.source_cuts,
        CutsOf(*layout, parameter.dims,
               fmt::format("{}: parameter {}", Escape(strategy.path()), Quote(parameter.name))));
  }
  return {};
}

// Returns a source with the layouts alone.
Result<ClusterSource> SourceOfStrategy(const Strategy& strategy) {
  ClusterSource source{.name = strategy.path(), .has_strategy = true, .parameters = {}};
  for (const StrategyStage& stage : strategy.stages()) {
    for (const LayoutEntry named : stage) {
      if (strategy.LowestStage(named.name) != stage.number()) continue;
      ClusterParameter parameter{.name = std::string(named.name), .dims = DimsOf(named.layout)};
      RESHARD_RETURN_IF_ERROR(AddLayout(strategy, parameter));
      source.parameters.push_back(std::move(parameter));
    }
  }
  return source;
}

Result<ClusterSource> SourceOfTensors(const SourceSpec& spec, SourceTensors& opened) {
  ClusterSource source{.name = spec.path, .parameters = {}, .facts = FactsOf(spec.path)};
  const Strategy* const strategy = opened.source->rule().source();
  source.has_strategy = strategy != nullptr;
  for (SourceTensor& tensor : opened.tensors) {
    if (tensor.kind != ArrayKind::kTensor) continue;
    ClusterParameter parameter{.name = std::move(tensor.name),
                               .dims = tensor.full_shape.size(),
                               .shape = std::move(tensor.full_shape)};
    if (strategy != nullptr) RESHARD_RETURN_IF_ERROR(AddLayout(*strategy, parameter));
    source.parameters.push_back(std::move(parameter));
  }
  return source;
}

Result<SourceTensors> OpenFull(const SourceSpec& spec) {
  return OpenTensors(spec, {}, RanksRead::kOneReplica, 1, {});
}

// The layouts to write, and the messages.
struct Made {
  std::vector<LayoutTable> stages;
  bool is_pipeline = false;
  int64_t first_stage = 0;
  std::vector<Warning> warnings;
  std::vector<std::string> notes;
};

Result<Made> MadeForCluster(const SourceSpec& like, const Cluster& cluster) {
  Made made;
  ClusterSource source;
  Result<SourceTensors> opened = OpenFull(like);
  if (opened.ok()) {
    made.warnings = std::move(opened->warnings);
    RESHARD_ASSIGN_OR_RETURN(source, SourceOfTensors(like, *opened));
  } else {
    // A strategy alone tells how to cut, too.
    const Result<Strategy> strategy =
        like.strategy.empty() ? LoadStrategy(like.path) : Result<Strategy>(opened.status());
    if (!strategy.ok()) return opened.status();
    RESHARD_ASSIGN_OR_RETURN(source, SourceOfStrategy(*strategy));
    made.notes.push_back(
        fmt::format("{}: a strategy has no shapes; whether these cuts divide them is not checked",
                    Escape(like.path)));
  }
  RESHARD_ASSIGN_OR_RETURN(ClusterLayouts layouts, LayoutsForCluster(cluster, source));
  made.stages = std::move(layouts.stages);
  made.is_pipeline = cluster.pipeline_stages > 1;
  for (Warning& warning : layouts.warnings) made.warnings.push_back(std::move(warning));
  for (std::string& note : layouts.notes) made.notes.push_back(std::move(note));
  return made;
}

Result<Made> MadeOfSpec(const MakeStrategyOptions& options) {
  RESHARD_ASSIGN_OR_RETURN(const StrategySpec spec,
                           options.spec_text.empty()
                               ? ReadStrategySpec(options.spec)
                               : ParseStrategySpec("the specification", options.spec_text));
  Made made;
  SpecLayouts layouts;
  if (options.checkpoint.empty()) {
    RESHARD_ASSIGN_OR_RETURN(layouts, LayoutsOfNames(spec));
  } else {
    RESHARD_ASSIGN_OR_RETURN(SourceTensors opened, OpenFull({.path = options.checkpoint}));
    made.warnings = std::move(opened.warnings);
    std::vector<FullTensor> tensors;
    for (SourceTensor& tensor : opened.tensors) {
      if (tensor.kind != ArrayKind::kTensor) continue;
      tensors.push_back({std::move(tensor.name), std::move(tensor.full_shape)});
    }
    RESHARD_ASSIGN_OR_RETURN(layouts, LayoutsOfTensors(spec, options.checkpoint, tensors));
  }
  made.stages = std::move(layouts.stages);
  made.is_pipeline = spec.is_pipeline;
  made.first_stage = spec.stages.front().number;
  for (Warning& warning : layouts.warnings) made.warnings.push_back(std::move(warning));
  made.notes = std::move(layouts.notes);
  return made;
}

Status CheckOptions(const MakeStrategyOptions& options) {
  const bool has_spec = !options.spec.empty() || !options.spec_text.empty();
  if (options.like.path.empty()) {
    if (has_spec) return {};
    return InvalidArgumentError("a specification or a source (`like`) is needed");
  }
  if (!has_spec && options.checkpoint.empty()) return {};
  return InvalidArgumentError(fmt::format("`like` takes the place of {}; choose one",
                                          has_spec ? "a specification" : "`checkpoint`"));
}

}  // namespace

inline namespace v0_1 {

Result<MakeStrategyReport> MakeStrategy(const MakeStrategyOptions& options) {
  return CatchOutOfMemory([&]() -> Result<MakeStrategyReport> {
    FileUse use;
    RESHARD_RETURN_IF_ERROR(CheckOptions(options));
    RESHARD_RETURN_IF_ERROR(use.AddOutput(options.output));
    RESHARD_ASSIGN_OR_RETURN(Made made, options.like.path.empty()
                                            ? MadeOfSpec(options)
                                            : MadeForCluster(options.like, options.cluster));
    RESHARD_ASSIGN_OR_RETURN(
        const Strategy strategy,
        StrategyTables::FromLayouts(std::move(made.stages), made.is_pipeline, made.first_stage));
    RESHARD_ASSIGN_OR_RETURN(const std::string bytes,
                             EncodeStrategy(strategy, StrategyEncodingOfName(options.output)));
    RESHARD_RETURN_IF_ERROR(WriteFile(options.output, bytes, options.force));
    MakeStrategyReport report;
    report.stages = std::ssize(strategy.stages());
    report.devices_per_stage = strategy.devices_per_stage();
    report.layouts = strategy.layouts();
    report.bytes = bytes.size();
    report.warnings = std::move(made.warnings);
    report.notes = std::move(made.notes);
    return report;
  });
}

}  // namespace v0_1
}  // namespace reshard
