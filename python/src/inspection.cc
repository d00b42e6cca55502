// The parts of reshard's `inspect`: files, folders and strategies, as they are.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/src/interpreter.h"
#include "python/src/keywords.h"
#include "python/src/module.h"
#include "python/src/reports.h"
#include "python/src/watched_call.h"
#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/encryption.h"
#include "reshard/parameters.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"
#include "src/frontend/read_option.h"
#include "tools/page/strategy_words.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace reshard::python {
namespace {

// The entry of a file, with the parameters that `takes`, a function of a name, accepts; the group
// of each; and warnings of the file.
nb::tuple Inspected(const Checkpoint& checkpoint, std::optional<int64_t> rank,
                    const nb::object& takes, const nb::dict& words) {
  InspectedFile file{.path = checkpoint.path(),
                     .rank = rank,
                     .size = checkpoint.file_size(),
                     .crc = checkpoint.crc()};
  nb::list groups;
  for (const StoredArray& array : checkpoint.parameters()) {
    if (!nb::cast<bool>(CallPython(takes, nb::make_tuple(Text(array.name))))) continue;
    file.parameters.push_back(&array);
    groups.append(Text(checkpoint.GroupOf(array)));
  }
  for (const UnreadTensor& tensor : checkpoint.unread()) {
    if (nb::cast<bool>(CallPython(takes, nb::make_tuple(Text(tensor.name))))) {
      file.unread.push_back(tensor);
    }
  }
  return nb::make_tuple(PartOf(file, {}), groups, TupleOf(checkpoint.warnings(), words));
}

nb::tuple InspectFile(const nb::bytes& path, const Key* key, const nb::object& takes,
                      const nb::dict& words) {
  const std::string name = Bytes(path);
  const std::shared_ptr<const EncryptionKey> decryption = KeyOf(key);
  std::optional<Checkpoint> checkpoint;
  {
    const WithoutGil released;
    checkpoint = Take(Checkpoint::Open(name, decryption, Checkpoint::Purpose::kListing));
  }
  return Inspected(*checkpoint, std::nullopt, takes, words);
}

constexpr Keyword<ContentOptions> kValues[] = {
    {"path", [](ContentOptions& o, nb::handle v) { Set(o.source.path, v); }},
    {"strategy", [](ContentOptions& o, nb::handle v) { Set(o.source.strategy, v); }},
    {"suffix", [](ContentOptions& o, nb::handle v) { Set(o.source.suffix, v); }},
    {"include", [](ContentOptions& o, nb::handle v) { Set(o.include, v); }},
    {"exclude", [](ContentOptions& o, nb::handle v) { Set(o.exclude, v); }},
    {"key", [](ContentOptions& o, nb::handle v) { o.source.key = KeyOf(nb::cast<const Key*>(v)); }},
};

// The chosen files in a folder of ranks, or the files of a folder of full tensors.
class Folder {
 public:
  static Folder Open(const nb::dict& keywords) {
    ContentOptions options;
    Fill<ContentOptions>(options, keywords, kInspectCall,
                         {std::span<const Keyword<ContentOptions>>(kValues)});
    const WithoutGil released;
    return Folder(Take(ListRankFiles(options.source)));
  }

  // (rank, path) of each file.
  nb::list Files() const {
    nb::list files;
    for (const RankFiles::File& file : listed_.files) {
      const nb::bytes path(file.path.data(), file.path.size());
      files.append(nb::make_tuple(file.rank, path));
    }
    return files;
  }

  nb::tuple Warnings(const nb::dict& words) const { return TupleOf(listed_.warnings, words); }

  nb::tuple Inspect(size_t place, const Key* key, const nb::object& takes,
                    const nb::dict& words) const {
    const std::shared_ptr<const EncryptionKey> decryption = KeyOf(key);
    std::optional<Checkpoint> checkpoint;
    {
      const WithoutGil released;
      checkpoint = Take(Checkpoint::Open(listed_, place, decryption));
    }
    return Inspected(*checkpoint, listed_.files[place].rank, takes, words);
  }

 private:
  explicit Folder(RankFiles listed) : listed_(std::move(listed)) {}

  RankFiles listed_;
};

nb::object InspectStrategy(const nb::bytes& path, const nb::object& takes, const nb::dict& words) {
  const std::string name = Bytes(path);
  std::optional<Strategy> strategy;
  {
    const WithoutGil released;
    strategy = Take(ReadStrategy(name));
  }
  const ShownStrategy shown =
      ShownOf(*strategy, StrategyInWords(*strategy), [&takes](std::string_view parameter) {
        return nb::cast<bool>(CallPython(takes, nb::make_tuple(Text(parameter))));
      });
  return PartOf(shown, words);
}

// (name, {message: its lists}, {number: its value}) of each layout, as a file states them.
nb::list LayoutsOf(const nb::bytes& path) {
  const std::string file = Bytes(path);
  std::optional<Strategy> strategy;
  {
    const WithoutGil released;
    strategy = Take(ReadStrategy(file));
  }
  nb::list layouts;
  for (const Strategy::Stage& stage : strategy->stages()) {
    const std::string prefix =
        strategy->is_pipeline() ? std::to_string(stage.number()) + '-' : std::string();
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

// (warnings, parameters)
nb::tuple Values(const nb::dict& keywords, int jobs, const nb::object& watch,
                 const nb::dict& words) {
  ContentOptions options;
  Fill<ContentOptions>(options, keywords, kInspectCall,
                       {std::span<const Keyword<ContentOptions>>(kValues)});
  const StatisticsReport report = RunWatched(jobs, watch, [&](const RunOptions& run) {
    SetWatched(options.run, run);
    return MeasureValues(options);
  });
  return nb::make_tuple(TupleOf(report.warnings, words), TupleOf(report.parameters, words));
}

}  // namespace

void AddInspection(nb::module_& module) {
  module.def("inspect_file", &InspectFile, "path"_a, "key"_a.none(), "takes"_a, "words"_a);
  module.def("inspect_strategy", &InspectStrategy, "path"_a, "takes"_a, "words"_a);
  module.def("layouts_of", &LayoutsOf, "path"_a);
  module.def(
      "ranks_of_group", [](const nb::bytes& path) { return Take(ReadGroupInfo(Bytes(path))); },
      "path"_a);
  module.def("box_of_shard", &BoxOfShard, "device_matrix"_a, "tensor_map"_a, "shard_step"_a,
             "shard_size"_a, "full_shape"_a, "rank"_a);
  module.def("measure_values", &Values, "keywords"_a, "jobs"_a, "watch"_a, "words"_a);
  module.def(
      "glob_match",
      [](const nb::bytes& pattern, const nb::bytes& name) {
        return GlobMatch(Bytes(pattern), Bytes(name));
      },
      "pattern"_a, "name"_a);
  module.def(
      "split_patterns",
      [](const nb::bytes& text) {
        nb::list patterns;
        for (const std::string& pattern : Take(SplitPatterns(Bytes(text)))) {
          patterns.append(nb::bytes(pattern.data(), pattern.size()));
        }
        return patterns;
      },
      "text"_a);
  nb::class_<Folder>(module, "Folder")
      .def_static("open", &Folder::Open, "keywords"_a)
      .def("files", &Folder::Files)
      .def("warnings", &Folder::Warnings, "words"_a)
      .def("inspect", &Folder::Inspect, "place"_a, "key"_a.none(), "takes"_a, "words"_a);
}

}  // namespace reshard::python
