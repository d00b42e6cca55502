#include "src/mindspore/cluster_layouts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "reshard/parameters.h"
#include "src/base/checked.h"
#include "src/base/number_text.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/optimizer_copy.h"
#include "src/plan/training_counter.h"

namespace reshard {
namespace {

constexpr int kWhole = -1;

struct NameRule {
  std::string_view pattern;
  int dim;
};

// The first one that matches counts.
constexpr NameRule kNameRules[] = {
    // Hugging Face
    {"*.q_proj.weight", 0},
    {"*.k_proj.weight", 0},
    {"*.v_proj.weight", 0},
    {"*.q_proj.bias", 0},
    {"*.k_proj.bias", 0},
    {"*.v_proj.bias", 0},
    {"*.o_proj.weight", 1},
    {"*.o_proj.bias", kWhole},
    {"*.gate_proj.weight", 0},
    {"*.up_proj.weight", 0},
    {"*.down_proj.weight", 1},
    {"*.gate_proj.bias", 0},
    {"*.up_proj.bias", 0},
    {"*.down_proj.bias", kWhole},
    {"*embed_tokens.weight", 0},
    // MindFormers
    {"*.wq.weight", 0},
    {"*.wk.weight", 0},
    {"*.wv.weight", 0},
    {"*.wq.bias", 0},
    {"*.wk.bias", 0},
    {"*.wv.bias", 0},
    {"*.wo.weight", 1},
    {"*.wo.bias", kWhole},
    {"*.w1.weight", 0},
    {"*.w3.weight", 0},
    {"*.w2.weight", 1},
    {"*.w1.bias", 0},
    {"*.w3.bias", 0},
    {"*.w2.bias", kWhole},
    {"*tok_embeddings.embedding_weight", 0},
    // Both
    {"lm_head.weight", 0},
    {"*.lm_head.weight", 0},
    {"*norm*", kWhole},
};

// Queries, keys and values, or the gate and the rest of an MLP, in one matrix: the order of their
// rows decides how it may be cut.
constexpr std::string_view kFused[] = {"qkv",  "query_key_value", "c_attn",      "W_pack",
                                       "Wqkv", "gate_up",         "gate_hidden", "linear_fc1"};

bool Contains(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

bool IsFused(std::string_view name) {
  return std::any_of(std::begin(kFused), std::end(kFused),
                     [&](std::string_view part) { return Contains(name, part); });
}

// Whether a component of `name`, between dots, is `word`.
bool HasComponent(std::string_view name, std::string_view word) {
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    if (name.substr(begin, end - begin) == word) return true;
    begin = end + 1;
  }
  return false;
}

bool HasAnyComponent(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return HasComponent(name, word); });
}

bool IsEmbedding(std::string_view name) {
  return Contains(name, "embed") || HasAnyComponent(name, {"wte", "wpe"});
}

bool IsHead(std::string_view name) {
  return HasAnyComponent(name, {"lm_head", "embed_out", "output", "output_layer"});
}

bool IsKeyOrValue(std::string_view name) {
  return HasAnyComponent(name, {"k_proj", "v_proj", "wk", "wv"});
}

bool IsQuery(std::string_view name) { return HasAnyComponent(name, {"q_proj", "wq"}); }

bool IsOneElement(const ClusterParameter& parameter) {
  return parameter.shape ? std::all_of(parameter.shape->begin(), parameter.shape->end(),
                                       [](int64_t size) { return size == 1; })
                         : parameter.dims == 0;
}

// The stages of layers and of other parameters.
struct StagePlan {
  std::map<int64_t, size_t> of_layer;  // by the number of the layer
  size_t last = 0;
};

// Puts the parameters of a source into the layouts of a cluster.
class ClusterCutter {
 public:
  ClusterCutter(const Cluster& cluster, const ClusterSource& source)
      : cluster_(cluster), source_(source) {
    for (const ClusterParameter& parameter : source.parameters) {
      by_name_.emplace(parameter.name, &parameter);
      if (parameter.source_cuts && PartsOf(*parameter.source_cuts) > 1) source_cuts_ = true;
    }
  }

  Result<MadeStrategy> Cut() {
    RESHARD_RETURN_IF_ERROR(CheckCluster());
    RESHARD_RETURN_IF_ERROR(PlanStages());
    FindHeads();
    layouts_.resize(static_cast<size_t>(cluster_.pipeline_stages));
    for (const ClusterParameter& parameter : source_.parameters) Add(parameter);
    RESHARD_RETURN_IF_ERROR(CheckProblems());
    Report();
    RESHARD_ASSIGN_OR_RETURN(const Strategy strategy,
                             StrategyTables::FromLayouts(std::move(layouts_), is_pipeline(), 0));
    return MadeStrategy{strategy, std::move(warnings_), std::move(notes_)};
  }

 private:
  static int64_t PartsOf(const std::vector<int64_t>& cuts) {
    int64_t parts = 1;
    for (const int64_t cut : cuts) parts *= cut;
    return parts;
  }

  int64_t tensor_parallel() const { return cluster_.tensor_parallel; }
  bool is_pipeline() const { return cluster_.pipeline_stages > 1; }

  // The parameter itself, or the one that it is an optimizer's copy of.
  const ClusterParameter& WeightOf(const ClusterParameter& parameter) const {
    const auto name = ParameterOfCopy(parameter.name);
    const auto found = name ? by_name_.find(*name) : by_name_.end();
    return found == by_name_.end() ? parameter : *found->second;
  }

  // The name for rules: for an optimizer's state, the parameter's name.
  std::string_view RuledName(const ClusterParameter& parameter) const {
    if (const ClusterParameter& weight = WeightOf(parameter); &weight != &parameter) {
      return weight.name;
    }
    if (OptimizerGroup(parameter.name).empty()) return parameter.name;
    return ParameterOfState(parameter.name);
  }

  Status CheckCluster() {
    const auto check = [](std::string_view option, int64_t number) -> Status {
      if (number >= 1 && number <= kMaxRanks) return {};
      return InvalidArgumentError(
          fmt::format("{}: expected an integer from 1 to {}, found {}", option, kMaxRanks, number));
    };
    RESHARD_RETURN_IF_ERROR(check("`tensor_parallel`", tensor_parallel()));
    RESHARD_RETURN_IF_ERROR(check("`data_parallel`", cluster_.data_parallel));
    RESHARD_RETURN_IF_ERROR(check("`pipeline_stages`", cluster_.pipeline_stages));
    // Each number is at most 2^20, so the product fits 63 bits.
    const int64_t ranks = tensor_parallel() * cluster_.data_parallel * cluster_.pipeline_stages;
    if (ranks > kMaxRanks) {
      return InvalidArgumentError(fmt::format(
          "`tensor_parallel`, `data_parallel` and `pipeline_stages`: expected at most {} ranks, "
          "found {} x {} x {}",
          kMaxRanks, tensor_parallel(), cluster_.data_parallel, cluster_.pipeline_stages));
    }
    shards_ = cluster_.optimizer_shards == -1 ? cluster_.data_parallel : cluster_.optimizer_shards;
    if (shards_ < 0 || (shards_ > 0 && cluster_.data_parallel % shards_ != 0)) {
      return InvalidArgumentError(
          fmt::format("`optimizer_sharding={}`: expected a divisor of `data_parallel={}`",
                      cluster_.optimizer_shards, cluster_.data_parallel));
    }
    if (cluster_.optimizer_shards == -1 && cluster_.data_parallel == 1) {
      return InvalidArgumentError(
          "`optimizer_sharding` cuts over the replicas of `data_parallel`: expected at least 2 "
          "replicas, found 1");
    }
    if (source_.parameters.empty()) {
      return MismatchError(
          fmt::format("{}: expected parameters, found none", Escape(source_.name)));
    }
    return {};
  }

  Status PlanStages() {
    const std::vector<int64_t>& given = cluster_.stage_layers;
    const auto stages = static_cast<size_t>(cluster_.pipeline_stages);
    if (!given.empty() && given.size() != stages) {
      return InvalidArgumentError(
          fmt::format("`stage_layers`: expected {} numbers, one for each of `pipeline_stages={}`, "
                      "found {}",
                      stages, stages, given.size()));
    }
    if (!is_pipeline() && given.empty()) return {};
    std::set<int64_t> layers;
    std::set<std::string_view> prefixes;
    for (const ClusterParameter& parameter : source_.parameters) {
      if (const auto layer = FindLayer(RuledName(parameter))) {
        layers.insert(layer->number);
        prefixes.insert(layer->prefix);
      }
    }
    if (layers.empty()) {
      return MismatchError(fmt::format(
          "{}: `pipeline_stages={}`: expected names with the number of a layer, such as "
          "\"model.layers.0.attention.wq.weight\", found none (first name: {}); write a "
          "specification with \"stages\"",
          Escape(source_.name), stages, Quote(source_.parameters.front().name)));
    }
    if (prefixes.size() > 1) {
      return MismatchError(fmt::format(
          "{}: `pipeline_stages={}`: expected one row of layers, found {}: {} and {}; write a "
          "specification with \"stages\"",
          Escape(source_.name), stages, prefixes.size(), Quote(*prefixes.begin()),
          Quote(*std::next(prefixes.begin()))));
    }
    const auto count = static_cast<int64_t>(layers.size());
    if (count < cluster_.pipeline_stages) {
      return MismatchError(
          fmt::format("{}: `pipeline_stages={}`: expected as many layers at least, found {}",
                      Escape(source_.name), stages, count));
    }
    std::vector<int64_t> numbers = given;
    if (numbers.empty()) {
      numbers.assign(stages, count / cluster_.pipeline_stages);
      for (size_t i = 0; i < static_cast<size_t>(count % cluster_.pipeline_stages); ++i) {
        ++numbers[i];
      }
    }
    std::optional<int64_t> sum = 0;
    for (const int64_t number : numbers) {
      if (number < 1) {
        return InvalidArgumentError(fmt::format(
            "`stage_layers`: expected numbers from 1 on, found {}", fmt::join(numbers, ",")));
      }
      sum = sum ? CheckedAdd(*sum, number) : sum;
    }
    if (sum != count) {
      return InvalidArgumentError(
          fmt::format("`stage_layers={}`: expected a sum of {}, the layers of {}, found {}",
                      fmt::join(numbers, ","), count, Escape(source_.name),
                      sum ? fmt::format("{}", *sum) : "a larger one"));
    }
    auto layer = layers.begin();
    for (size_t stage = 0; stage < stages; ++stage) {
      for (int64_t i = 0; i < numbers[stage]; ++i) stages_.of_layer.emplace(*layer++, stage);
    }
    stages_.last = stages - 1;
    return is_pipeline() ? CheckTied() : Status();
  }

  // An embedding that is the head, too, would have to be in two stages.
  Status CheckTied() const {
    const ClusterParameter* embedding = nullptr;
    bool has_head = false;
    for (const ClusterParameter& parameter : source_.parameters) {
      const std::string_view name = RuledName(parameter);
      if (FindLayer(name)) continue;
      if (IsHead(name)) has_head = true;
      const bool is_table = IsEmbedding(name) && parameter.dims == 2;
      if (is_table && (embedding == nullptr || parameter.source_stages > 1)) embedding = &parameter;
    }
    if (embedding == nullptr) return {};
    const std::optional<bool>& stated = source_.facts.ties_embeddings;
    std::string_view why;
    if (stated == true) {
      why = "config.json ties it to the head";
    } else if (!stated && !has_head) {
      why = "no head is beside it";
    } else if (embedding->source_stages > 1) {
      why = "several stages of the source have it";
    }
    if (why.empty()) return {};
    return MismatchError(fmt::format(
        "{}: parameter {}: `pipeline_stages={}`: expected an embedding of the first stage alone, "
        "found one that the last stage needs as its head ({}); write a specification with "
        "\"stages\"",
        Escape(source_.name), Quote(embedding->name), cluster_.pipeline_stages, why));
  }

  // If no configuration tells the heads, the norms of queries tell their size.
  void FindHeads() {
    facts_ = source_.facts;
    std::set<int64_t> query_rows;
    for (const ClusterParameter& parameter : source_.parameters) {
      if (!parameter.shape || parameter.dims < 1 || (*parameter.shape)[0] < 1) continue;
      if (IsQuery(parameter.name)) query_rows.insert((*parameter.shape)[0]);
      if (HasComponent(parameter.name, "q_norm")) head_size_ = (*parameter.shape)[0];
    }
    // Some models norm all heads together.
    if (head_size_ && query_rows.contains(*head_size_)) head_size_.reset();
  }

  // Returns how many heads the rows of `parameter` are, if it is known.
  std::optional<int64_t> HeadsOf(const ClusterParameter& parameter, bool of_queries) const {
    const std::optional<int64_t>& stated = of_queries ? facts_.heads : facts_.kv_heads;
    if (stated) return stated;
    if (!head_size_ || !parameter.shape || (*parameter.shape)[0] % *head_size_ != 0) return {};
    return (*parameter.shape)[0] / *head_size_;
  }

  void AddProblem(const ClusterParameter& parameter, std::string_view what) {
    // Of an optimizer's state that is cut as its parameter, the parameter says it.
    const ClusterParameter& weight = WeightOf(parameter);
    const bool is_same =
        weight.shape == parameter.shape && weight.source_cuts == parameter.source_cuts;
    if (&weight != &parameter && is_same) return;
    problems_.Add(fmt::format(
        "{}{}: {}", Quote(parameter.name),
        parameter.shape ? fmt::format(": shape {}", ToString(*parameter.shape)) : "", what));
  }

  // Returns the dimension that is cut; kWhole if none is.
  int DimensionOf(const ClusterParameter& parameter) {
    if (tensor_parallel() == 1 || IsOneElement(parameter)) return kWhole;
    const std::string_view name = RuledName(parameter);
    const bool by_layouts = source_cuts_ && parameter.source_cuts.has_value();
    if (by_layouts && PartsOf(*parameter.source_cuts) > 1) {
      const std::vector<int64_t>& cuts = *parameter.source_cuts;
      const auto is_cut = [](int64_t cut) { return cut > 1; };
      if (std::count_if(cuts.begin(), cuts.end(), is_cut) > 1) {
        AddProblem(parameter, fmt::format("the source cuts several dimensions ({}), and "
                                          "`tensor_parallel={}` cuts one; write a specification",
                                          cuts, tensor_parallel()));
        return kWhole;
      }
      ++cut_by_layouts_;
      return static_cast<int>(std::find_if(cuts.begin(), cuts.end(), is_cut) - cuts.begin());
    }
    if (IsFused(name) && parameter.dims <= 2) {
      AddProblem(parameter,
                 "several matrices in one, for which there is no rule and which the "
                 "source does not cut; write a specification");
      return kWhole;
    }
    if (parameter.dims == 3) {
      AddProblem(parameter,
                 "a stack of matrices, such as experts, for which there is no rule and "
                 "which the source does not cut; write a specification");
      return kWhole;
    }
    if (by_layouts) return kWhole;  // as in the source
    const std::optional<int> dim = CutByName(name);
    if (dim && *dim < static_cast<int>(parameter.dims)) {
      if (*dim != kWhole) ++cut_by_names_;
      return *dim;
    }
    if (parameter.dims >= 2) whole_.push_back(Quote(parameter.name));
    return kWhole;
  }

  // Returns whether the heads of queries, keys or values can be cut.
  bool CheckHeads(const ClusterParameter& parameter) {
    const std::string_view name = RuledName(parameter);
    const bool of_queries = IsQuery(name);
    if (!of_queries && !IsKeyOrValue(name)) return true;
    const std::string_view noun = of_queries ? "query heads" : "key/value heads";
    const std::optional<int64_t> heads = HeadsOf(parameter, of_queries);
    if (!heads) {
      // The source has at least as many as it cuts these into.
      const int64_t known = parameter.source_cuts ? PartsOf(*parameter.source_cuts) : 1;
      if (!of_queries && known % tensor_parallel() != 0 && &WeightOf(parameter) == &parameter) {
        unknown_heads_.Add(Quote(parameter.name));
      }
      return true;
    }
    if (*heads % tensor_parallel() == 0) return true;
    AddProblem(parameter,
               fmt::format("dimension 0 has {} {}, {} `tensor_parallel={}`", *heads, noun,
                           *heads < tensor_parallel() ? "fewer than" : "which do not divide by",
                           tensor_parallel()));
    return false;
  }

  size_t StageOf(const ClusterParameter& parameter) {
    if (!is_pipeline()) return 0;
    const std::string_view name = RuledName(parameter);
    if (const auto layer = FindLayer(name)) return stages_.of_layer.at(layer->number);
    if (IsEmbedding(name) && !HasComponent(name, "embed_out")) return 0;
    if (IsHead(name) || Contains(name, "norm") || HasComponent(name, "ln_f")) return stages_.last;
    in_first_.push_back(Quote(parameter.name));
    return 0;
  }

  void Add(const ClusterParameter& parameter) {
    const bool has_none = source_.has_strategy ? !parameter.source_cuts : IsOneElement(parameter);
    if (has_none) {
      const bool is_own = IsOneElement(parameter) || !OptimizerGroup(parameter.name).empty() ||
                          IsAccumulatedGradient(parameter.name) || parameter.dims < 2;
      (is_own ? without_layout_ : matrices_without_layout_).push_back(Quote(parameter.name));
      return;
    }
    // An optimizer's state of another shape than its parameter is not cut as that is.
    const ClusterParameter& weight = WeightOf(parameter);
    const bool is_other =
        &weight != &parameter && !parameter.source_cuts && parameter.shape != weight.shape;
    const int dim = is_other ? kWhole : DimensionOf(parameter);
    if (dim == 0 && !CheckHeads(parameter)) return;
    if (dim != kWhole && parameter.shape) {
      const int64_t size = (*parameter.shape)[static_cast<size_t>(dim)];
      if (size % tensor_parallel() != 0) {
        AddProblem(parameter,
                   fmt::format("dimension {} of {} elements cannot be cut into {} equal parts "
                               "(`tensor_parallel={}`)",
                               dim, size, tensor_parallel(), tensor_parallel()));
        return;
      }
    }
    if (is_pipeline() && parameter.source_stages > 1 && parameter.dims >= 2) {
      in_several_.push_back(Quote(parameter.name));
    }
    layouts_[StageOf(parameter)].push_back(
        Strategy::Entry{parameter.name, LayoutOf(parameter, dim, IsSharded(parameter, dim))});
  }

  // Returns whether the replicas of a matrix are cut further.
  bool IsSharded(const ClusterParameter& parameter, int dim) {
    if (shards_ <= 1 || parameter.dims < 2) return false;
    if (!parameter.shape) return true;
    const int64_t parts = shards_ * (dim == 0 ? tensor_parallel() : 1);
    if ((*parameter.shape)[0] % parts == 0) return true;
    not_sharded_.push_back(Quote(parameter.name));
    return false;
  }

  ParameterLayout LayoutOf(const ClusterParameter& parameter, int dim, bool is_sharded) const {
    ParameterLayout layout;
    const int64_t data = cluster_.data_parallel;
    if (dim == kWhole && is_sharded) {
      // Optimizer sharding takes the last free axis, so that there is one.
      layout.device_matrix = {data * tensor_parallel()};
    } else {
      if (data > 1 || tensor_parallel() == 1) layout.device_matrix.push_back(data);
      if (tensor_parallel() > 1) layout.device_matrix.push_back(tensor_parallel());
    }
    layout.tensor_map.emplace_back(parameter.dims, -1);
    if (dim != kWhole) layout.tensor_map[0][static_cast<size_t>(dim)] = 0;
    if (is_sharded) {
      layout.opt_weight_shard_step = dim == kWhole ? 1 : tensor_parallel();
      layout.opt_weight_shard_size = shards_;
    }
    return layout;
  }

  Status CheckProblems() const {
    if (problems_.count() > 0) {
      return MismatchError(fmt::format(
          "{}: {} parameters cannot be cut for `tensor_parallel={}`:{}", Escape(source_.name),
          problems_.count(), tensor_parallel(), problems_.Lines()));
    }
    if (tensor_parallel() > 1 && cut_by_layouts_ + cut_by_names_ == 0) {
      return MismatchError(fmt::format(
          "{}: `tensor_parallel={}`: expected layouts that cut parameters, or names of Llama or "
          "Qwen2, found others (first name: {}); write a specification",
          Escape(source_.name), tensor_parallel(), Quote(source_.parameters.front().name)));
    }
    for (size_t stage = 0; stage < layouts_.size(); ++stage) {
      if (!layouts_[stage].empty()) continue;
      return MismatchError(fmt::format("{}: stage {} would have no parameter with a layout",
                                       Escape(source_.name), stage));
    }
    return {};
  }

  void Note(const std::vector<std::string>& parameters, std::string_view what) {
    if (parameters.empty()) return;
    notes_.push_back(fmt::format("{} of {} parameters {}: {}", parameters.size(),
                                 source_.parameters.size(), what, FirstOf(parameters)));
  }

  void Warn(const std::vector<std::string>& matrices, WarningCode code, std::string_view what) {
    if (matrices.empty()) return;
    warnings_.push_back(
        {code, fmt::format("{} matrices {}: {}", matrices.size(), what, FirstOf(matrices))});
  }

  void Report() {
    Warn(whole_, WarningCode::kNotCut, "match no rule, so each rank of a stage holds them whole");
    Warn(matrices_without_layout_, WarningCode::kWithoutLayout,
         "have no layout in the source's strategy, and get none, so that conversions copy them as "
         "they stand");
    Warn(in_several_, WarningCode::kSeveralStages,
         "are in several stages of the source, and in one stage of this strategy");
    if (cut_by_layouts_ > 0) {
      notes_.push_back(fmt::format(
          "{} of {} parameters are cut in the dimension in which the source's layouts cut them",
          cut_by_layouts_, source_.parameters.size()));
    }
    if (cut_by_names_ > 0) {
      notes_.push_back(
          fmt::format("{} of {} parameters are cut by the rules for names of Llama and Qwen2{}",
                      cut_by_names_, source_.parameters.size(),
                      source_cuts_ ? "" : ", because no layout of the source cuts any"));
    }
    if (unknown_heads_.count() > 0) {
      notes_.push_back(
          fmt::format("the number of key/value heads is not known; `tensor_parallel={}` has to "
                      "divide it: {}",
                      tensor_parallel(), unknown_heads_.Joined()));
    }
    Note(in_first_,
         "are outside of the layers and have unknown names; they are put into the "
         "first stage");
    Note(not_sharded_, "are not cut over the replicas, because their rows do not divide");
    Note(without_layout_, "get no layout, so that conversions copy them as they stand");
  }

  const Cluster& cluster_;
  const ClusterSource& source_;
  std::unordered_map<std::string_view, const ClusterParameter*> by_name_;
  bool source_cuts_ = false;  // layouts of the source cut some parameter
  int64_t shards_ = 0;
  StagePlan stages_;
  ModelFacts facts_;
  std::optional<int64_t> head_size_;

  std::vector<LayoutTable> layouts_;  // by stage
  std::vector<Warning> warnings_;
  std::vector<std::string> notes_;
  FirstFew problems_;
  FirstFew unknown_heads_;
  uint64_t cut_by_layouts_ = 0;
  uint64_t cut_by_names_ = 0;
  // Quoted names.
  std::vector<std::string> whole_;
  std::vector<std::string> in_first_;
  std::vector<std::string> in_several_;
  std::vector<std::string> not_sharded_;
  std::vector<std::string> without_layout_;
  std::vector<std::string> matrices_without_layout_;
};

}  // namespace

std::optional<LayerOfName> FindLayer(std::string_view name) {
  constexpr std::array<std::string_view, 5> kWords = {"layers", "layer", "blocks", "block", "h"};
  std::string_view before;
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    const std::optional<int64_t> number = ParseNumber<int64_t>(part);
    if (number && std::find(kWords.begin(), kWords.end(), before) != kWords.end()) {
      return LayerOfName{name.substr(0, begin), *number};
    }
    before = part;
    begin = end + 1;
  }
  return std::nullopt;
}

std::optional<int> CutByName(std::string_view name) {
  for (const NameRule& rule : kNameRules) {
    if (GlobMatch(rule.pattern, name)) return rule.dim;
  }
  return std::nullopt;
}

Result<MadeStrategy> LayoutsForCluster(const Cluster& cluster, const ClusterSource& source) {
  return ClusterCutter(cluster, source).Cut();
}

}  // namespace reshard
