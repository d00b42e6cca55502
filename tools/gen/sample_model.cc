#include "tools/gen/sample_model.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "src/base/status_macros.h"
#include "src/mindspore/layout_grid.h"
#include "src/mindspore/strategy_writer.h"
#include "src/source/shard_grid.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// Axes of the device matrix [dp, tp], counted from the right as tensor maps do.
constexpr int64_t kTensorParallelAxis = 0;
constexpr int64_t kNotCut = -1;

// The dimension of a matrix [out, in] that Llama cuts.
enum class Cut { kRows, kColumns };

template <typename T>
std::string BytesOf(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

class StageBuilder {
 public:
  explicit StageBuilder(const SampleModel& model) : model_(model) {}

  void AddMatrix(std::string name, int64_t rows, int64_t columns, Cut cut) {
    if (model_.cut != MatrixCut::kMixed) {
      cut = model_.cut == MatrixCut::kRows ? Cut::kRows : Cut::kColumns;
    }
    ParameterLayout layout =
        MakeLayout(cut == Cut::kRows ? std::vector{kTensorParallelAxis, kNotCut}
                                     : std::vector{kNotCut, kTensorParallelAxis});
    if (model_.optimizer_sharding && model_.dp > 1) {
      layout.opt_weight_shard_step = model_.tp;  // ranks from one dp coordinate to the next
      layout.opt_weight_shard_size = model_.dp;
    }
    weights_.push_back({std::move(name), model_.dtype, {rows, columns}, std::move(layout), ""});
  }

  void AddNorm(std::string name) {
    weights_.push_back({std::move(name), model_.dtype, {model_.hidden}, MakeLayout({kNotCut}), ""});
  }

  void AddLayer(int64_t layer) {
    const auto name = [layer](std::string_view suffix) {
      return fmt::format("model.layers.{}.{}.weight", layer, suffix);
    };
    const int64_t hidden = model_.hidden;
    const int64_t kv = model_.kv == 0 ? hidden : model_.kv;
    AddMatrix(name("attention.wq"), hidden, hidden, Cut::kRows);
    AddMatrix(name("attention.wk"), kv, hidden, Cut::kRows);
    AddMatrix(name("attention.wv"), kv, hidden, Cut::kRows);
    AddMatrix(name("attention.wo"), hidden, hidden, Cut::kColumns);
    const auto add_mlp = [&](const std::string& mlp) {
      AddMatrix(name(mlp + ".w1"), model_.ffn, hidden, Cut::kRows);
      AddMatrix(name(mlp + ".w3"), model_.ffn, hidden, Cut::kRows);
      AddMatrix(name(mlp + ".w2"), hidden, model_.ffn, Cut::kColumns);
    };
    if (model_.experts == 0) add_mlp("feed_forward");
    for (int64_t expert = 0; expert < model_.experts; ++expert) {
      add_mlp(fmt::format("feed_forward.experts.{}", expert));
    }
    AddNorm(name("attention_norm"));
    AddNorm(name("ffn_norm"));
  }

  // Ends a part of the model: its weights, then the optimizer's states of each.
  void EndPart() {
    for (const SampleParameter& weight : weights_) parameters_.push_back(weight);
    if (model_.optimizer) {
      for (const std::string_view state : {"adam_m.", "adam_v."}) {
        for (const SampleParameter& weight : weights_) {
          SampleParameter& added = parameters_.emplace_back(weight);
          added.name.insert(0, state);
          added.dtype = DType::kFloat32;
        }
      }
    }
    weights_.clear();
  }

  std::vector<SampleParameter> Finish() && {
    if (model_.optimizer) {
      parameters_.push_back({"learning_rate", DType::kFloat32, {}, std::nullopt, BytesOf(1e-4F)});
      parameters_.push_back(
          {"global_step", DType::kInt32, {1}, std::nullopt, BytesOf(int32_t{100})});
    }
    return std::move(parameters_);
  }

 private:
  ParameterLayout MakeLayout(std::vector<int64_t> tensor_map) const {
    ParameterLayout layout;
    layout.device_matrix = {model_.dp, model_.tp};
    layout.tensor_map = {std::move(tensor_map)};
    return layout;
  }

  const SampleModel& model_;
  std::vector<SampleParameter> weights_;  // of the part that is being built
  std::vector<SampleParameter> parameters_;
};

// The number of units that pipeline stages divide among them.
int64_t Units(const SampleModel& model) {
  return model.matrices == 0 ? model.layers : model.matrices;
}

Status CheckSizes(const SampleModel& model) {
  std::vector<std::pair<std::string_view, int64_t>> sizes = {
      {"--tp", model.tp}, {"--dp", model.dp}, {"--pp", model.pp}};
  if (model.matrices == 0) {
    sizes.insert(sizes.end(), {{"--layers", model.layers},
                               {"--hidden", model.hidden},
                               {"--ffn", model.ffn},
                               {"--vocab", model.vocab}});
  } else {
    sizes.insert(
        sizes.end(),
        {{"--matrices", model.matrices}, {"--rows", model.rows}, {"--columns", model.columns}});
  }
  constexpr int64_t kLimit = int64_t{1} << 28;  // keeps every product below 63 bits
  for (const auto& [option, size] : sizes) {
    if (size < 1 || size > kLimit) {
      return InvalidArgumentError(
          fmt::format("{} has to be from 1 to {}, but is {}", option, kLimit, size));
    }
  }
  if (model.kv < 0 || model.kv > kLimit) {
    return InvalidArgumentError(
        fmt::format("--kv has to be from 0 to {}, but is {}", kLimit, model.kv));
  }
  if (model.experts < 0 || model.experts > kLimit) {
    return InvalidArgumentError(
        fmt::format("--experts has to be from 0 to {}, but is {}", kLimit, model.experts));
  }
  if (Units(model) < model.pp) {
    return InvalidArgumentError(fmt::format("{} {} cannot be spread over {} pipeline stages",
                                            Units(model),
                                            model.matrices == 0 ? "layers" : "matrices", model.pp));
  }
  return {};
}

Status CheckCuts(const SampleParameter& parameter) {
  if (!parameter.layout) return {};
  const std::string where = fmt::format("parameter \"{}\"", parameter.name);
  RESHARD_ASSIGN_OR_RETURN(const ShardGrid grid,
                           MakeGrid(*parameter.layout, parameter.full_shape.size(), where));
  const auto shard = grid.ShardShape(parameter.full_shape, where);
  if (!shard.ok()) return InvalidArgumentError(shard.status().message());
  return {};
}

// Adds the layers from `first` to before `end`, and the other parameters of the stage.
void AddLlama(const SampleModel& model, int64_t stage, int64_t first, int64_t end,
              StageBuilder& builder) {
  if (stage == model.pp - 1) {
    builder.AddMatrix("lm_head.weight", model.vocab, model.hidden, Cut::kRows);
    builder.AddNorm("model.norm_out.weight");
    builder.EndPart();
  }
  for (int64_t layer = end; layer-- > first;) {
    builder.AddLayer(layer);
    builder.EndPart();
  }
  if (stage == 0) {
    builder.AddMatrix("model.tok_embeddings.embedding_weight", model.vocab, model.hidden,
                      Cut::kRows);
    builder.EndPart();
  }
}

}  // namespace

Result<std::vector<std::vector<SampleParameter>>> MakeStages(const SampleModel& model) {
  RESHARD_RETURN_IF_ERROR(CheckSizes(model));
  const int64_t units = Units(model);
  std::vector<std::vector<SampleParameter>> stages;
  for (int64_t stage = 0; stage < model.pp; ++stage) {
    StageBuilder builder(model);
    const int64_t first = stage * units / model.pp;
    const int64_t end = (stage + 1) * units / model.pp;
    if (model.matrices == 0) {
      AddLlama(model, stage, first, end, builder);
    } else {
      for (int64_t matrix = end; matrix-- > first;) {
        builder.AddMatrix(fmt::format("matrices.{}.weight", matrix), model.rows, model.columns,
                          Cut::kRows);
        builder.EndPart();
      }
    }
    stages.push_back(std::move(builder).Finish());
    for (const SampleParameter& parameter : stages.back()) {
      RESHARD_RETURN_IF_ERROR(CheckCuts(parameter));
    }
  }
  return stages;
}

Result<std::string> EncodeStage(const std::vector<SampleParameter>& parameters, int64_t stage,
                                StrategyEncoding encoding) {
  std::vector<NamedLayout> layouts;
  for (const SampleParameter& parameter : parameters) {
    if (parameter.layout) layouts.push_back({parameter.name, *parameter.layout});
  }
  RESHARD_ASSIGN_OR_RETURN(const Strategy strategy, Strategy::Make(layouts, stage));
  return EncodeStrategy(strategy, encoding);
}

}  // namespace reshard
