#include "src/mindspore/layout_inference.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "src/source/shard_grid.h"

namespace reshard {
namespace {

// With more candidates, or more steps of the search, no choice is possible.
constexpr size_t kMaxCandidates = 32;
constexpr size_t kMaxSteps = size_t{1} << 18;

constexpr int kFree = ShardGrid::kFree;

// It adds its value times `weight` to the part of `dim`.
using Digit = ShardGrid::Digit;

std::vector<int64_t> PrimeFactors(int64_t number) {
  std::vector<int64_t> factors;
  for (int64_t p = 2; p * p <= number; ++p) {
    for (; number % p == 0; number /= p) factors.push_back(p);
  }
  if (number > 1) factors.push_back(number);
  return factors;  // ascending
}

// Joins digits that may be one device axis: neighbours that are both free, or that cut the same
// dimension if the slower one's weight equals the faster one's weight times its size.
std::vector<Digit> AxesOf(const std::vector<Digit>& digits) {  // fastest first
  std::vector<Digit> axes;
  for (const Digit& digit : digits) {
    if (!axes.empty() && axes.back().dim == digit.dim &&
        (digit.dim == kFree || digit.weight == axes.back().weight * axes.back().size)) {
      axes.back().size *= digit.size;
    } else {
      axes.push_back(digit);
    }
  }
  return axes;
}

ParameterLayout WithMatrix(const std::vector<Digit>& axes) {  // fastest first
  ParameterLayout layout;
  for (size_t i = axes.size(); i-- > 0;) layout.device_matrix.push_back(axes[i].size);
  if (axes.empty()) layout.device_matrix.push_back(1);
  return layout;
}

// Returns the axes of each dimension as a tensor map counts them, from the right, slowest first.
std::vector<std::vector<int64_t>> MapOf(const std::vector<Digit>& axes, size_t dims) {
  std::vector<std::vector<int64_t>> map(dims);
  for (size_t d = 0; d < dims; ++d) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].dim == static_cast<int>(d)) map[d].push_back(static_cast<int64_t>(i));
    }
    std::sort(map[d].begin(), map[d].end(), [&axes](int64_t a, int64_t b) {
      return axes[static_cast<size_t>(a)].weight > axes[static_cast<size_t>(b)].weight;
    });
  }
  return map;
}

bool IsFlat(const std::vector<std::vector<int64_t>>& map) {
  return std::all_of(map.begin(), map.end(), [](const auto& axes) { return axes.size() <= 1; });
}

std::vector<std::vector<int64_t>> Flat(const std::vector<std::vector<int64_t>>& map) {
  std::vector<int64_t> flat;
  flat.reserve(map.size());
  for (const auto& axes : map) flat.push_back(axes.empty() ? -1 : axes[0]);
  return {flat};
}

// Returns the layout in which optimizer sharding makes the lighter digits of dimension 0, if there
// is one. These digits are the fastest digits that are then free, in their order.
std::optional<ParameterLayout> OptimizerLayout(std::vector<Digit> digits, size_t dims) {
  int64_t shards = 1;
  bool cut_begins = false;  // a free digit has come
  for (Digit& digit : digits) {
    if (digit.dim == kFree) cut_begins = true;
    if (digit.dim != 0 || cut_begins || digit.weight != shards) continue;
    shards *= digit.size;
    digit = {digit.size, digit.stride, kFree, 0};
  }
  // The heavier part is one axis of the tensor map.
  for (Digit& digit : digits) {
    if (digit.dim == 0) digit.weight /= shards;
  }
  if (shards == 1) return std::nullopt;
  const std::vector<Digit> axes = AxesOf(digits);
  const auto map = MapOf(axes, dims);
  if (!IsFlat(map)) return std::nullopt;
  ParameterLayout layout = WithMatrix(axes);
  layout.tensor_map = Flat(map);
  layout.opt_weight_shard_size = shards;
  // With one free axis the step is the product of the axes to its right. With more axes it has no
  // meaning.
  const auto free =
      std::find_if(axes.begin(), axes.end(), [](const Digit& axis) { return axis.dim == kFree; });
  const auto frees =
      std::count_if(axes.begin(), axes.end(), [](const Digit& axis) { return axis.dim == kFree; });
  layout.opt_weight_shard_step = frees == 1 ? free->stride : 1;
  return layout;
}

struct Written {
  ParameterLayout layout;
  int plainness = 0;  // less is plainer: one axis a dimension, optimizer shards, several axes
};

Written WriteLayout(const std::vector<Digit>& digits, size_t dims) {
  const std::vector<Digit> axes = AxesOf(digits);
  auto map = MapOf(axes, dims);
  ParameterLayout layout = WithMatrix(axes);
  if (IsFlat(map)) {
    layout.tensor_map = Flat(map);
    return {std::move(layout), 0};
  }
  if (auto sharded = OptimizerLayout(digits, dims)) return {*std::move(sharded), 1};
  for (auto& of_dim : map) {
    if (of_dim.empty()) of_dim.push_back(-1);
  }
  layout.tensor_map = std::move(map);
  return {std::move(layout), 2};
}

// Gives each digit of the ranks, fastest first, a place in the parts. After each digit it checks
// the content of all ranks that are decided by then.
class Search {
 public:
  explicit Search(const ShardEvidence& evidence)
      : evidence_(evidence), part_of_rank_(evidence.ranks.size()) {
    strides_.assign(evidence.cuts.size(), 1);
    for (size_t d = evidence.cuts.size(); d-- > 1;) {
      strides_[d - 1] = strides_[d] * evidence.cuts[d];
    }
    parts_ = 1;
    for (const int64_t cut : evidence.cuts) parts_ *= cut;
    free_ = static_cast<int64_t>(evidence.ranks.size()) / parts_;
    holder_.assign(static_cast<size_t>(parts_), kNobody);
    if (Decide(0, 0)) alive_ = true;
  }

  LayoutCandidates Run() {
    if (!alive_) return {};
    std::vector<int64_t> sizes = PrimeFactors(static_cast<int64_t>(evidence_.ranks.size()));
    do {
      Extend(sizes, 1);
    } while (!more_ && std::next_permutation(sizes.begin(), sizes.end()));
    LayoutCandidates out;
    for (auto& [plainness, candidate] : found_) out.found.push_back(std::move(candidate));
    out.more = more_;
    return out;
  }

 private:
  static constexpr uint32_t kNobody = std::numeric_limits<uint32_t>::max();

  // Decides that `rank` holds `part`; false if that is impossible.
  bool Decide(size_t rank, uint32_t part) {
    part_of_rank_[rank] = part;
    if (!evidence_.parts.empty()) return evidence_.parts[part] == evidence_.ranks[rank];
    uint32_t& holder = holder_[part];
    holder = std::min(holder, static_cast<uint32_t>(rank));
    return evidence_.ranks[holder] == evidence_.ranks[rank];
  }

  // Tries all places of the digit of this stride.
  void Extend(const std::vector<int64_t>& sizes, int64_t stride) {
    if (more_) return;
    if (++steps_ > kMaxSteps) {
      more_ = true;
      return;
    }
    if (digits_.size() == sizes.size()) {
      Take();
      return;
    }
    const int64_t size = sizes[digits_.size()];
    int64_t free = size;
    for (const Digit& digit : digits_) free *= digit.dim == kFree ? digit.size : 1;
    if (free_ % free == 0) Try({size, stride, kFree, 0}, sizes);
    for (size_t d = 0; d < evidence_.cuts.size(); ++d) {
      for (int64_t weight = 1; weight * size <= evidence_.cuts[d]; ++weight) {
        if (evidence_.cuts[d] % (weight * size) != 0) continue;
        const Digit digit{size, stride, static_cast<int>(d), weight};
        if (Fits(digit)) Try(digit, sizes);
      }
    }
  }

  // Whether the digits of its dimension can still make up a number that counts all parts.
  bool Fits(const Digit& digit) const {
    return std::all_of(digits_.begin(), digits_.end(), [&digit](const Digit& other) {
      if (other.dim != digit.dim) return true;
      return digit.weight < other.weight ? other.weight % (digit.weight * digit.size) == 0
                                         : digit.weight % (other.weight * other.size) == 0;
    });
  }

  void Try(const Digit& digit, const std::vector<int64_t>& sizes) {
    const std::vector<uint32_t> holders =
        evidence_.parts.empty() ? holder_ : std::vector<uint32_t>();
    const int64_t step =
        digit.dim == kFree ? 0 : digit.weight * strides_[static_cast<size_t>(digit.dim)];
    bool fits = true;
    for (int64_t rank = digit.stride; fits && rank < digit.stride * digit.size; ++rank) {
      const uint32_t faster = part_of_rank_[static_cast<size_t>(rank % digit.stride)];
      fits = Decide(static_cast<size_t>(rank),
                    static_cast<uint32_t>(faster + rank / digit.stride * step));
    }
    if (fits) {
      digits_.push_back(digit);
      Extend(sizes, digit.stride * digit.size);
      digits_.pop_back();
    }
    if (!holders.empty()) holder_ = holders;
  }

  void Take() {
    Written written = WriteLayout(digits_, evidence_.cuts.size());
    if (written.plainness == 2 && evidence_.parts.empty()) return;
    if (!known_.insert(part_of_rank_).second) return;
    if (found_.size() == kMaxCandidates) {
      more_ = true;
      return;
    }
    found_.emplace(written.plainness, LayoutCandidate{std::move(written.layout), part_of_rank_});
  }

  const ShardEvidence& evidence_;
  std::vector<int64_t> strides_;  // of each dimension in the number of a part
  int64_t parts_ = 1;
  int64_t free_ = 1;              // ranks that hold a part
  std::vector<uint32_t> holder_;  // the lowest rank of each part, without a reference
  std::vector<uint32_t> part_of_rank_;
  std::vector<Digit> digits_;
  std::set<std::vector<uint32_t>> known_;
  std::multimap<int, LayoutCandidate> found_;  // by plainness
  size_t steps_ = 0;
  bool more_ = false;
  bool alive_ = false;
};

// Whether each rank holds its part of `contents`.
bool RanksHold(const std::vector<uint32_t>& part_of_rank, const std::vector<ContentClass>& contents,
               const ShardEvidence& evidence) {
  for (size_t rank = 0; rank < part_of_rank.size(); ++rank) {
    if (contents[part_of_rank[rank]] != evidence.ranks[rank]) return false;
  }
  return true;
}

}  // namespace

std::vector<ContentClass> LayoutCandidate::Contents(const ShardEvidence& evidence) const {
  size_t parts = 1;
  for (const int64_t cut : evidence.cuts) parts *= static_cast<size_t>(cut);
  std::vector<ContentClass> contents(parts);
  for (size_t rank = part_of_rank.size(); rank-- > 0;) {
    contents[part_of_rank[rank]] = evidence.ranks[rank];
  }
  return contents;
}

bool LayoutCandidate::Explains(const ShardEvidence& evidence) const {
  return RanksHold(part_of_rank, Contents(evidence), evidence);
}

bool LayoutCandidate::HasParts(const ShardEvidence& evidence) const {
  return RanksHold(part_of_rank, evidence.parts, evidence);
}

LayoutCandidates FindLayouts(const ShardEvidence& evidence) { return Search(evidence).Run(); }

}  // namespace reshard
