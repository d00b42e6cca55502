#include "src/convert/cluster_source.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/model_config.h"
#include "src/mindspore/layout_grid.h"
#include "src/mindspore/strategy_tables.h"
#include "src/plan/parameter_choice.h"
#include "src/plan/plan_findings.h"
#include "src/verify/checkpoint_contents.h"

namespace reshard {
namespace {

// Returns the facts in the config.json of a folder, if there is one that can be read.
ModelFacts FactsOf(const std::string& folder) {
  const std::optional<ModelConfig> config = ReadModelConfig(folder);
  return config ? config->facts : ModelFacts();
}

// Returns the parts of each dimension by the tensor map alone. Errors: as MakeGrid.
Result<std::vector<int64_t>> CutsOfLayout(ParameterLayout layout, size_t dims,
                                          const std::string& where) {
  layout.opt_weight_shard_step = 0;
  layout.opt_weight_shard_size = 0;
  RESHARD_ASSIGN_OR_RETURN(const ShardGrid grid, MakeGrid(layout, dims, where));
  return grid.cuts();
}

// Adds the layout that `strategy` has for `parameter`.
Status AddLayout(const Strategy& strategy, ClusterParameter& parameter) {
  parameter.source_stages = 0;
  for (const Strategy::Stage& stage : strategy.stages()) {
    const ParameterLayout* const layout = stage.Find(parameter.name);
    if (layout == nullptr) continue;
    if (parameter.source_stages++ > 0) continue;
    RESHARD_ASSIGN_OR_RETURN(parameter.source_cuts,
                             CutsOfLayout(*layout, parameter.dims,
                                          fmt::format("{}: parameter {}", Escape(strategy.path()),
                                                      Quote(parameter.name))));
  }
  return {};
}

}  // namespace

Result<ClusterSource> SourceOfStrategy(const Strategy& strategy) {
  ClusterSource source{.name = strategy.path(), .has_strategy = true, .parameters = {}};
  for (const Strategy::Stage& stage : strategy.stages()) {
    for (const Strategy::Entry named : stage) {
      if (strategy.LowestStage(named.name) != stage.number()) continue;
      ClusterParameter parameter{.name = std::string(named.name), .dims = DimsOf(named.layout)};
      RESHARD_RETURN_IF_ERROR(AddLayout(strategy, parameter));
      source.parameters.push_back(std::move(parameter));
    }
  }
  return source;
}

Result<ClusterSource> SourceOfTensors(const OpenedSource& opened, const std::string& path,
                                      const std::vector<SourceTensor>& tensors) {
  ClusterSource source{.name = path, .parameters = {}, .facts = FactsOf(path)};
  const Strategy* const strategy = opened.rule().source();
  source.has_strategy = strategy != nullptr;
  for (const SourceTensor& tensor : tensors) {
    if (tensor.kind != ArrayKind::kTensor) continue;
    ClusterParameter parameter{
        .name = tensor.name, .dims = tensor.full_shape.size(), .shape = tensor.full_shape};
    if (strategy != nullptr) RESHARD_RETURN_IF_ERROR(AddLayout(*strategy, parameter));
    source.parameters.push_back(std::move(parameter));
  }
  return source;
}

Result<MadeStrategy> MakeStrategyOf(const ConversionSpec& spec, const SourceLimits& limits) {
  const ParameterChoice choice = ChoiceOf(spec.selection);
  RESHARD_ASSIGN_OR_RETURN(const std::unique_ptr<OpenedSource> opened,
                           OpenSource(spec.source, {.choice = choice}, limits));
  PlanFindings findings;
  RESHARD_ASSIGN_OR_RETURN(std::vector<SourceTensor> tensors,
                           ListTensors(opened->tensors(), opened->rule(),
                                       {opened->Askers(1), limits.stop, {}}, findings));
  std::set<std::string, std::less<>> names;
  for (const SourceTensor& tensor : tensors) names.insert(tensor.name);
  std::erase_if(tensors, [&](const SourceTensor& tensor) {
    return !choice.Takes({tensor.name, tensor.kind, tensor.dtype, tensor.full_shape},
                         [&](std::string_view name) { return names.contains(name); });
  });
  RESHARD_ASSIGN_OR_RETURN(const ClusterSource source,
                           SourceOfTensors(*opened, spec.source.path, tensors));
  return LayoutsForCluster(spec.target.cluster, source);
}

}  // namespace reshard
