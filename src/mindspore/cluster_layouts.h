// Layouts for a new cluster: how tensor, data and pipeline parallelism cut the parameters of a
// source (docs/guide/strategies.md, "For a new cluster").
//
// Values without I/O. Pure functions; any thread.
#ifndef RESHARD_SRC_MINDSPORE_CLUSTER_LAYOUTS_H_
#define RESHARD_SRC_MINDSPORE_CLUSTER_LAYOUTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"
#include "src/mindspore/strategy_tables.h"

namespace reshard {

// A tensor of the source.
struct ClusterParameter {
  std::string name;
  size_t dims = 0;
  std::optional<Shape> shape = {};  // the full one; none if only a strategy is known
  // Parts of each dimension by the tensor map of its layout; none: it has no layout.
  std::optional<std::vector<int64_t>> source_cuts = {};
  int64_t source_stages = 1;  // that have it
};

// The facts about a model in the files beside the weights.
struct ModelFacts {
  std::optional<int64_t> heads = {};         // of queries
  std::optional<int64_t> kv_heads = {};      // of keys and values
  std::optional<bool> ties_embeddings = {};  // the head is the embedding
};

// A source, as far as it tells how to cut.
struct ClusterSource {
  std::string name;           // for messages
  bool has_strategy = false;  // parameters without a layout are each rank's own
  std::vector<ClusterParameter> parameters;
  ModelFacts facts = {};
};

// Returns the layer that a name tells, as in "model.layers.3.attention.wq.weight": the part before
// the number, and the number.
struct LayerOfName {
  std::string_view prefix;
  int64_t number = 0;
};
std::optional<LayerOfName> FindLayer(std::string_view name);

// Returns the dimension that tensor parallelism cuts, by the rules for names of Llama and Qwen2 in
// Hugging Face and MindFormers: -1 for a parameter that stays whole, no value for another name.
std::optional<int> CutByName(std::string_view name);

// Returns a strategy with the layouts of all parameters, with the device matrix [data, tensor
// parallel]. Errors: as StrategyTables::FromLayouts
//   kInvalidArgument: the numbers do not make a cluster
//   kMismatch: parameters cannot be cut so; names parameter, dimension and option
Result<MadeStrategy> LayoutsForCluster(const Cluster& cluster, const ClusterSource& source);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_CLUSTER_LAYOUTS_H_
