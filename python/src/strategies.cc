// Strategies: their layouts, in the words of the package or as their files state them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <vector>

#include "python/src/interpreter.h"
#include "python/src/module.h"
#include "python/src/reports.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"
#include "tools/page/inspection.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace reshard::python {
namespace {

Strategy StrategyAt(const nb::bytes& path) {
  const std::string name = Bytes(path);
  const WithoutGil released;
  return Take(ReadStrategy(name));
}

// (name, {message: its lists}, {number: its value}) of each layout, as a file states them.
nb::list LayoutsOf(const nb::bytes& path) {
  const Strategy strategy = StrategyAt(path);
  nb::list layouts;
  for (const Strategy::Stage& stage : strategy.stages()) {
    const std::string prefix =
        strategy.is_pipeline() ? std::to_string(stage.number()) + '-' : std::string();
    for (const auto [name, layout] : stage) {
      nb::dict messages;
      messages["dev_matrix"] = std::vector<std::vector<int64_t>>{layout.device_matrix};
      messages["tensor_map"] = layout.tensor_map;
      messages["param_split_shape"] = layout.param_split_shape;
      messages["indices_offset"] = layout.indices_offset;
      nb::dict numbers;
      numbers["field"] = layout.field;
      numbers["opt_weight_shard_step"] = layout.opt_weight_shard_step;
      numbers["opt_weight_shard_size"] = layout.opt_weight_shard_size;
      layouts.append(nb::make_tuple(Text(prefix + std::string(name)), messages, numbers));
    }
  }
  return layouts;
}

// (begin, extent) of a rank's part under a layout. The rank counts within its stage.
nb::tuple BoxOfShard(const std::vector<int64_t>& device_matrix,
                     const std::vector<std::vector<int64_t>>& tensor_map, int64_t shard_step,
                     int64_t shard_size, const std::vector<int64_t>& full_shape, int64_t rank) {
  const NamedLayout parameter = {"",
                                 {.device_matrix = device_matrix,
                                  .tensor_map = tensor_map,
                                  .opt_weight_shard_step = shard_step,
                                  .opt_weight_shard_size = shard_size}};
  const Box box = Take(ShardBox(parameter, full_shape, rank));
  return nb::make_tuple(nb::tuple(nb::cast(box.begin)), nb::tuple(nb::cast(box.extent)));
}

}  // namespace

void AddStrategies(nb::module_& module) {
  module.def(
      "read_strategy",
      [](const nb::bytes& path, const nb::dict& words) {
        return PartOf(ShownOf(StrategyAt(path), {}), words);
      },
      "path"_a, "words"_a);
  module.def("layouts_of", &LayoutsOf, "path"_a);
  module.def(
      "ranks_of_group", [](const nb::bytes& path) { return Take(ReadGroupInfo(Bytes(path))); },
      "path"_a);
  module.def("box_of_shard", &BoxOfShard, "device_matrix"_a, "tensor_map"_a, "shard_step"_a,
             "shard_size"_a, "full_shape"_a, "rank"_a);
}

}  // namespace reshard::python
