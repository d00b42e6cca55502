#include "tests/property/any_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "format/mindspore_checkpoint/checkpoint_encoder.h"
#include "tests/support/naive_reshard.h"
#include "tests/support/pick.h"
#include "tests/support/strategy_bytes.h"

namespace reshard {
namespace {

constexpr std::array kDTypes = {DType::kInt8,    DType::kBool,       DType::kInt4,
                                DType::kFloat16, DType::kBFloat16,   DType::kFloat32,
                                DType::kInt64,   DType::kComplex128, DType::kFloat8E5M2};
// More elements than this only take time.
constexpr int64_t kManyElements = 3000;

template <typename T>
void Shuffle(std::vector<T>& items) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Pick<size_t>(0, i)]);
}

std::vector<int64_t> AnyMatrix(int64_t devices) {
  std::vector<int64_t> matrix;
  while (devices > 1) {
    std::vector<int64_t> divisors;
    for (int64_t d = 2; d <= devices; ++d) {
      if (devices % d == 0) divisors.push_back(d);
    }
    matrix.push_back(divisors[Pick<size_t>(0, divisors.size())]);
    devices /= matrix.back();
  }
  if (matrix.empty() || PickBool()) matrix.push_back(1);
  Shuffle(matrix);
  return matrix;
}

// Adds optimizer sharding where there is a way to place it.
void AddOptimizerShards(ParameterLayout& layout, size_t dims) {
  int64_t replicas = 1;
  int64_t free_axes = 0;
  int64_t stride = 0;  // of the last free axis seen
  int64_t devices = 1;
  for (size_t i = layout.device_matrix.size(); i-- > 0;) {
    const auto entry = static_cast<int64_t>(layout.device_matrix.size() - 1 - i);
    const bool used = std::any_of(
        layout.tensor_map.begin(), layout.tensor_map.end(),
        [&](const auto& axes) { return std::count(axes.begin(), axes.end(), entry) != 0; });
    if (!used && layout.device_matrix[i] > 1) {
      replicas *= layout.device_matrix[i];
      stride = devices;
      ++free_axes;
    }
    devices *= layout.device_matrix[i];
  }
  if (replicas == 1) return;
  ParameterLayout sharded = layout;
  sharded.opt_weight_shard_size = PickBool() ? -1 : Pick<int64_t>(2, replicas + 1);
  sharded.opt_weight_shard_step = free_axes == 1 ? stride : Pick<int64_t>(1, 4);
  try {
    PartsByDefinition(sharded, dims, 0);
    layout = sharded;
  } catch (const std::invalid_argument&) {
    return;  // not this time
  }
}

ParameterLayout AnyLayout(int64_t devices, size_t dims, const ModelOptions& options) {
  ParameterLayout layout;
  layout.device_matrix = AnyMatrix(devices);
  std::vector<int64_t> entries(layout.device_matrix.size());
  std::iota(entries.begin(), entries.end(), 0);
  Shuffle(entries);
  std::vector<std::vector<int64_t>> axes(dims);
  for (const int64_t entry : entries) {
    if (dims == 0 || Pick(0, 3) == 0) continue;
    auto& of_dim = axes[Pick<size_t>(0, dims)];
    if (dims > 1 || of_dim.empty() || options.one_dimensional_nested_maps) of_dim.push_back(entry);
  }
  bool flat = true;
  for (auto& of_dim : axes) {
    if (of_dim.empty()) of_dim.push_back(-1);
    flat = flat && of_dim.size() == 1;
  }
  layout.tensor_map = axes;
  if (dims != 1 && flat && Pick(0, 4) != 0) {
    layout.tensor_map = {{}};
    for (const auto& of_dim : axes) layout.tensor_map[0].push_back(of_dim[0]);
  }
  if (dims > 0 && PickBool()) AddOptimizerShards(layout, dims);
  return layout;
}

ModelSide AnySide(size_t parameters) {
  ModelSide side;
  side.has_strategy = Pick(0, 6) != 0;
  if (!side.has_strategy) {
    side.layouts.resize(1);
    return side;
  }
  const std::array<int64_t, 7> devices = {1, 2, 3, 4, 6, 8, 12};
  side.devices = devices[Pick<size_t>(0, devices.size())];
  const auto most = std::min<size_t>(parameters, static_cast<size_t>(12 / side.devices));
  side.layouts.resize(Pick<size_t>(1, std::min<size_t>(most, 4) + 1));
  side.is_pipeline = side.layouts.size() > 1 || Pick(0, 4) == 0;
  return side;
}

// The stages that have each parameter: all stages have one, a later parameter is in a lower stage.
std::vector<std::set<size_t>> AnyStages(const ModelSide& side, size_t parameters,
                                        const ModelOptions& options) {
  std::vector<size_t> stages;
  for (size_t s = 0; s < side.layouts.size(); ++s) stages.push_back(s);
  while (stages.size() < parameters) stages.push_back(Pick<size_t>(0, side.layouts.size()));
  std::sort(stages.rbegin(), stages.rend());
  std::vector<std::set<size_t>> of_parameters;
  for (const size_t stage : stages) {
    of_parameters.push_back({stage});
    while (options.share_between_stages && Pick(0, 3) == 0) {
      of_parameters.back().insert(Pick<size_t>(0, side.layouts.size()));
    }
  }
  return of_parameters;
}

std::vector<TestTensor> TensorsOf(const Model& model, const ModelSide& side, int64_t rank,
                                  int64_t uncut_rank, bool own_values) {
  std::vector<TestTensor> tensors;
  const auto stage = static_cast<size_t>(rank / side.devices);
  if (!side.has_strategy) {
    tensors = model.cut;
  } else {
    for (const auto& [name, layout] : side.layouts[stage]) {
      const TestTensor& full = model.Find(name);
      const bool is_first = std::none_of(
          side.layouts.begin(), side.layouts.begin() + static_cast<std::ptrdiff_t>(stage),
          [&, &name = name](const auto& layouts) {
            return std::any_of(layouts.begin(), layouts.end(),
                               [&](const NamedLayout& other) { return other.name == name; });
          });
      tensors.push_back(NaiveShard(
          is_first || !own_values ? full : MakeTensor(name, full.dtype, full.shape, stage), layout,
          rank % side.devices));
    }
  }
  for (const std::string& name : model.uncut) tensors.push_back(UncutTensor(name, uncut_rank));
  return tensors;
}

}  // namespace

const TestTensor& Model::Find(const std::string& name) const {
  return *std::find_if(cut.begin(), cut.end(),
                       [&](const TestTensor& tensor) { return tensor.name == name; });
}

Model AnyModel(const ModelOptions& options) {
  Model model;
  const auto parameters = Pick<size_t>(1, 6);
  model.source = AnySide(parameters);
  do {
    model.target = AnySide(parameters);
  } while (!model.source.has_strategy && !model.target.has_strategy);
  const std::array sides = {&model.source, &model.target};
  std::array<std::vector<std::set<size_t>>, 2> stages;
  for (size_t i = 0; i < sides.size(); ++i) stages[i] = AnyStages(*sides[i], parameters, options);

  for (size_t p = 0; p < parameters; ++p) {
    const std::string name = (Pick(0, 3) == 0 ? "adam_m.layer-" : "layer") + std::to_string(p);
    const auto dims = Pick<size_t>(0, 5);
    std::vector<int64_t> cuts(dims, 1);
    for (size_t i = 0; i < sides.size(); ++i) {
      if (!sides[i]->has_strategy) continue;
      model.in_several_stages |= stages[i][p].size() > 1;
      for (const size_t stage : stages[i][p]) {
        const ParameterLayout layout = AnyLayout(sides[i]->devices, dims, options);
        sides[i]->layouts[stage].push_back({name, layout});
        const NaiveParts parts = PartsByDefinition(layout, dims, 0);
        for (size_t d = 0; d < dims; ++d) cuts[d] = std::lcm(cuts[d], parts.cuts[d]);
      }
    }
    int64_t elements = 1;
    for (const int64_t cut : cuts) elements *= cut;
    Shape shape = cuts;
    for (int64_t& size : shape) {
      const int64_t times = Pick(0, 12) == 0 ? 0 : Pick<int64_t>(1, 4);
      if (elements * times > kManyElements) continue;
      elements *= times;
      size *= times;
    }
    model.cut.push_back(
        MakeTensor(name, kDTypes[Pick<size_t>(0, kDTypes.size())], std::move(shape)));
  }
  for (size_t u = Pick<size_t>(0, 3); u > 0; --u) {
    model.uncut.push_back("step_" + std::to_string(u));
  }
  return model;
}

TestTensor UncutTensor(const std::string& name, int64_t rank) {
  return MakeTensor(name, DType::kInt64, {}, static_cast<uint64_t>(rank));
}

std::vector<TestTensor> SourceTensors(const Model& model, int64_t rank, int64_t uncut_rank) {
  return TensorsOf(model, model.source, rank, uncut_rank, true);
}

std::vector<TestTensor> TargetTensors(const Model& model, int64_t rank, int64_t uncut_rank) {
  return TensorsOf(model, model.target, rank, uncut_rank, false);
}

int64_t UncutSourceRank(const Model& model, int64_t rank) {
  const ModelSide& source = model.source;
  const int64_t local = rank % model.target.devices % source.devices;
  if (!source.has_strategy || !model.target.has_strategy) return local;
  std::set<std::string> wanted;
  for (const NamedLayout& layout :
       model.target.layouts[static_cast<size_t>(rank / model.target.devices)]) {
    wanted.insert(layout.name);
  }
  int64_t stage = 0;
  while (std::none_of(source.layouts[static_cast<size_t>(stage)].begin(),
                      source.layouts[static_cast<size_t>(stage)].end(),
                      [&](const NamedLayout& layout) { return wanted.contains(layout.name); })) {
    ++stage;
  }
  return stage * source.devices + local;
}

std::string EncodeCut(const std::vector<TestTensor>& tensors) {
  std::string bytes;
  for (const auto& [name, dtype, shape, content] : tensors) {
    size_t begin = 0;
    do {
      const auto length = Pick<size_t>(0, content.size() - begin + 1);
      bytes += EncodeValueHeader(name, dtype, shape, length) + content.substr(begin, length);
      begin += length;
    } while (begin < content.size());
  }
  return bytes;
}

std::string WriteStrategy(const ModelSide& side, const TemporaryFolder& folder,
                          const std::string& name) {
  if (!side.has_strategy) return "";
  const bool json = PickBool();
  const auto encode = [json](size_t stage, const std::vector<NamedLayout>& layouts) {
    const auto number = static_cast<int64_t>(stage);
    return json ? JsonStrategy(number, layouts) : ProtobufStrategy(number, layouts);
  };
  const std::string extension = json ? ".json" : ".ckpt";
  if (!side.is_pipeline) return folder.Write(name + extension, encode(0, side.layouts[0]));
  if (PickBool()) {
    for (size_t s = 0; s < side.layouts.size(); ++s) {
      folder.Write(fmt::format("{}/stage_{}{}", name, s, extension), encode(s, side.layouts[s]));
    }
    return folder.path() / name;
  }
  std::vector<NamedLayout> merged;
  for (size_t s = 0; s < side.layouts.size(); ++s) {
    for (const auto& [parameter, layout] : side.layouts[s]) {
      merged.push_back({fmt::format("{}-{}", s, parameter), layout});
    }
  }
  return folder.Write(name + extension, encode(1, merged));
}

}  // namespace reshard
