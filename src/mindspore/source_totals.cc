#include "src/mindspore/source_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "reshard/parameters.h"
#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/cast/cast.h"
#include "src/mindspore/layout_grid.h"

namespace reshard {
namespace {

bool MayBeWeights(DType dtype) { return IsFloat(dtype) && dtype != DType::kFloat8E8M0; }

bool HasElements(ArrayKind kind) {
  return kind == ArrayKind::kTensor || kind == ArrayKind::kPacked;
}

// Finds prefixes under which the names of other parameters come once more.
class RepetitionSearch {
 public:
  // Adds a weight of `elements` elements; `has_alike` says whether there is a parameter of another
  // name and the same shape.
  void Add(std::string_view name, uint64_t elements,
           const std::function<bool(std::string_view)>& has_alike) {
    weights_ += elements;
    size_t dot = name.find('.');
    for (size_t depth = 0; depth < kMostDepth && dot != std::string_view::npos; ++depth) {
      Prefix* const prefix = Find(name.substr(0, dot + 1));
      if (prefix == nullptr) return;
      ++prefix->seen;
      const bool is_likely = prefix->tensors > 0 || prefix->seen <= kTries;
      if (is_likely && has_alike(name.substr(dot + 1))) {
        ++prefix->tensors;
        prefix->elements += elements;
        return;
      }
      dot = name.find('.', dot + 1);
    }
  }

  std::vector<RepeatedWeights> Found() const {
    uint64_t others = weights_;
    for (const auto& [text, prefix] : prefixes_) {
      if (prefix.IsMostly()) others -= prefix.elements;
    }
    std::vector<RepeatedWeights> found;
    for (const auto& [text, prefix] : prefixes_) {
      // One small tensor may have such a name by chance.
      if (prefix.IsMostly() && (prefix.tensors > 1 || prefix.elements >= others / 2)) {
        found.push_back({text, prefix.tensors, prefix.elements});
      }
    }
    return found;
  }

 private:
  // Dots are few in prefixes, and many in names.
  static constexpr size_t kMostDepth = 3;
  // The number of names with a prefix that are examined before it counts as a module's prefix.
  static constexpr uint64_t kTries = 16;
  static constexpr size_t kMostPrefixes = 4096;

  struct Prefix {
    uint64_t seen = 0;  // weights that have it
    // the tensors with this prefix whose rest is the name of another parameter
    uint64_t tensors = 0;
    uint64_t elements = 0;

    bool IsMostly() const { return tensors > 0 && tensors >= seen / 2; }
  };

  // Returns the facts about a prefix, or null if there are too many.
  Prefix* Find(std::string_view text) {
    const auto known = prefixes_.find(text);
    if (known != prefixes_.end()) return &known->second;
    if (prefixes_.size() == kMostPrefixes) return nullptr;
    return &prefixes_.emplace(text, Prefix()).first->second;
  }

  uint64_t weights_ = 0;
  std::map<std::string, Prefix, std::less<>> prefixes_;
};

class ParameterCounting {
 public:
  ParameterCounting(const Source& source, const ConversionRule& rule, const ParameterChoice& choice,
                    TotalsLimits& limits, const std::stop_token& stop)
      : source_(source), rule_(rule), choice_(choice), limits_(limits), stop_(stop) {}

  Status AddStage(int64_t stage) {
    std::vector<int64_t> locals = source_.ranks().LocalRanks(stage);
    if (locals.empty()) return Untold(fmt::format("no file of stage {} is there", stage));
    // Files that were opened come first.
    std::stable_partition(locals.begin(), locals.end(),
                          [&](int64_t local) { return !source_.HasNewFile(stage, local); });
    std::set<uint64_t> tables;
    for (const int64_t local : locals) {
      if (stop_.stop_requested()) return Stopped();
      RESHARD_ASSIGN_OR_RETURN(const TableHandle index, Open(stage, local));
      if (!tables.insert(index->table().id()).second) continue;
      const bool tells_all = tables.size() == 1 && TellsAll(stage, *index, locals.size());
      RESHARD_RETURN_IF_ERROR(AddFile(stage, *index, tells_all));
      if (tells_all) return {};
    }
    if (AllAreThere(locals.size()) || (rule_.source() == nullptr && tables.size() == 1)) return {};
    return Untold(fmt::format(
        "the files of stage {} do not all hold the same parameters, and some are missing", stage));
  }

  Status AddAll(const PartList& tensors) {
    for (const PartList::Tensor& listed : tensors.tensors()) {
      if (stop_.stop_requested()) return Stopped();
      RESHARD_ASSIGN_OR_RETURN(const SourceTensor tensor, source_.Describe(listed.name, 0));
      if (!MayBeWeights(tensor.dtype)) continue;
      RESHARD_RETURN_IF_ERROR(Add(
          {tensor.name, tensor.kind, tensor.dtype, tensor.full_shape},
          [&](std::string_view other) { return tensors.Find(other) != nullptr; },
          [&](std::string_view other) {
            const PartList::Tensor* const found = tensors.Find(other);
            return found != nullptr && *found->full == tensor.full_shape;
          }));
    }
    return {};
  }

  SourceTotals Take() && {
    totals_.repeated = repetitions_.Found();
    return std::move(totals_);
  }

 private:
  static Status Stopped() { return CancelledError("stopped while counting parameters"); }
  static Status Untold(std::string_view why) {
    return InvalidArgumentError(fmt::format("cannot count the parameters of the source: {}", why));
  }

  Result<Shape> FullShapeOf(const ParameterLayout& layout, const Shape& shard,
                            std::string_view where) {
    RESHARD_ASSIGN_OR_RETURN(const SharedGrid grid, grids_.Get(layout, shard.size(), where));
    return grid->FullShape(shard, where);
  }

  // Whether `files` of a stage are all that it has.
  bool AllAreThere(size_t files) const {
    if (rule_.source() != nullptr) return static_cast<int64_t>(files) == rule_.source_devices();
    const auto holders = rule_.groups().HoldersLike(0);
    return std::all_of(holders.begin(), holders.end(),
                       [&](int64_t rank) { return source_.ranks().files.contains(rank); });
  }

  Result<TableHandle> Open(int64_t stage, int64_t local) {
    const bool is_new = source_.HasNewFile(stage, local);
    if (is_new && (limits_.files == 0 || limits_.headers < headers_of_last_)) {
      return Untold("too many files would have to be opened for that alone");
    }
    auto index = source_.TableOf(stage, local);
    if (!index.ok()) return Untold(index.status().message());
    headers_of_last_ = (*index)->arrays().size();
    if (is_new) {
      --limits_.files;
      limits_.headers -= std::min(limits_.headers, headers_of_last_);
    }
    return index;
  }

  // Whether the file, one of `files`, has each parameter that counts in its stage.
  bool TellsAll(int64_t stage, const IndexedFile& index, size_t files) const {
    if (rule_.source() == nullptr) return files == 1;
    const auto& layouts = rule_.source()->stages()[static_cast<size_t>(stage)];
    return std::all_of(layouts.begin(), layouts.end(), [&](const Strategy::Entry& layout) {
      return index.Find(layout.name) != nullptr || rule_.LowestSourceStage(layout.name) != stage;
    });
  }

  // Adds the parameters that were not counted yet. With `alone`, no other file is opened for cut
  // parameters.
  Status AddFile(int64_t stage, const IndexedFile& index, bool alone) {
    const Strategy* strategy = rule_.source();
    const bool last = alone && rule_.source_stages() == 1;
    for (const StoredArray& parameter : index.arrays()) {
      if (!HasElements(parameter.kind) || !MayBeWeights(parameter.dtype)) continue;
      Shape shape = parameter.shape;
      const ParameterLayout* const layout =
          strategy == nullptr ? nullptr
                              : strategy->stages()[static_cast<size_t>(stage)].Find(parameter.name);
      const bool several_stages = strategy != nullptr && strategy->stages().size() > 1;
      if (several_stages && strategy->LowestStage(parameter.name).value_or(stage) != stage) {
        continue;
      }
      if (layout != nullptr) {
        if (!alone && !counted_.emplace(parameter.name).second) continue;
        Result<Shape> full = FullShapeOf(*layout, shape, "");
        if (!full.ok()) {  // the words for an error are made only if there is one
          full = FullShapeOf(*layout, shape, source_.Where(index.file(), parameter.name));
        }
        if (!full.ok()) return Untold(full.status().message());
        shape = *std::move(full);
      } else if (!last && !counted_.emplace(parameter.name).second) {
        continue;
      }
      RESHARD_RETURN_IF_ERROR(Add(
          {parameter.name, parameter.kind, parameter.dtype, shape},
          [&](std::string_view other) { return source_.HasBeside(index, other); },
          [&](std::string_view other) { return HasAlike(index, other, parameter.shape); }));
    }
    return {};
  }

  // Returns whether the source has a parameter of this name and shape, in `index` or by the
  // placement.
  bool HasAlike(const IndexedFile& index, std::string_view name, const Shape& shape) {
    if (const StoredArray* const beside = index.Find(name)) return beside->shape == shape;
    const auto home = source_.placement().HomeOf(name);
    if (!home) return false;
    const auto table = Open(0, *home);
    const StoredArray* const array = table.ok() ? (*table)->Find(name) : nullptr;
    return array != nullptr && array->shape == shape;
  }

  struct Counted {
    std::string_view name;
    ArrayKind kind;
    DType dtype;
    const Shape& shape;  // in full
  };

  // Adds a parameter. `has` says whether the source has another one, `has_alike` whether it has one
  // of this shape.
  Status Add(const Counted& parameter, const std::function<bool(std::string_view)>& has,
             const std::function<bool(std::string_view)>& has_alike) {
    const auto& [name, kind, dtype, shape] = parameter;
    const auto elements = ElementCount(LogicalShape(kind, dtype, shape));
    const bool is_weight = OptimizerGroup(name, has).empty();
    uint64_t& total = is_weight ? totals_.all.weights : totals_.all.optimizer;
    const auto sum = elements ? CheckedAdd(total, static_cast<uint64_t>(*elements)) : std::nullopt;
    if (!sum) return Untold(fmt::format("parameter {} has too many elements", Quote(name)));
    if (*elements <= 1) return {};
    total = *sum;
    if (choice_.Takes({name, kind, dtype, shape}, has)) {
      (is_weight ? totals_.chosen.weights : totals_.chosen.optimizer) += *elements;
    }
    if (!is_weight || choice_.Excludes(name)) return {};
    totals_.expected_weights += *elements;
    repetitions_.Add(name, *elements, has_alike);
    return {};
  }

  const Source& source_;
  const ConversionRule& rule_;
  const ParameterChoice& choice_;
  TotalsLimits& limits_;
  GridCache grids_;
  const std::stop_token& stop_;
  size_t headers_of_last_ = 0;
  std::unordered_set<std::string> counted_;  // that another file may have, too
  RepetitionSearch repetitions_;
  SourceTotals totals_;
};

}  // namespace

Result<SourceTotals> CountParameters(const Source& source, const ConversionRule& rule,
                                     const ParameterChoice& choice, TotalsLimits& limits,
                                     const std::stop_token& stop) {
  ParameterCounting count(source, rule, choice, limits, stop);
  if (const PartList* const all = source.placement().all_tensors()) {
    RESHARD_RETURN_IF_ERROR(count.AddAll(*all));
    return std::move(count).Take();
  }
  for (int64_t stage = 0; stage < rule.source_stages(); ++stage) {
    RESHARD_RETURN_IF_ERROR(count.AddStage(stage));
  }
  return std::move(count).Take();
}

}  // namespace reshard
