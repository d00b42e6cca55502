#include "src/source/shard_grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/checked.h"

namespace reshard {
namespace {

Status GridError(std::string_view where, std::string_view what) {
  return MismatchError(fmt::format("{}: {}", where, what));
}

}  // namespace

ShardGrid::ShardGrid(int64_t devices, std::vector<int64_t> cuts, std::vector<Digit> digits,
                     int64_t modulus)
    : devices_(devices), cuts_(std::move(cuts)), digits_(std::move(digits)), modulus_(modulus) {
  std::vector<int64_t> weights(cuts_.size(), 1);
  for (size_t i = digits_.size(); i-- > 0;) {
    Digit& digit = digits_[i];
    if (digit.dim == kFree) continue;
    digit.weight = weights[static_cast<size_t>(digit.dim)];
    weights[static_cast<size_t>(digit.dim)] *= digit.size;
  }
}

ShardGrid ShardGrid::Whole(size_t dims) { return {1, std::vector<int64_t>(dims, 1), {}, 0}; }

SharedGrid WholeGrid(size_t dims) {
  // Never destroyed: threads may read until the process has ended.
  static const auto& grids_of_dims = *new std::array<SharedGrid, kMaxDims + 1>([] {
    std::array<SharedGrid, kMaxDims + 1> grids;
    for (size_t d = 0; d < grids.size(); ++d) {
      grids[d] = std::make_shared<const ShardGrid>(ShardGrid::Whole(d));
    }
    return grids;
  }());
  if (dims < grids_of_dims.size()) return grids_of_dims[dims];
  return std::make_shared<const ShardGrid>(ShardGrid::Whole(dims));
}

Result<Shape> ShardGrid::FullShape(const Shape& shard, std::string_view where) const {
  Shape full;
  full.reserve(shard.size());
  for (size_t d = 0; d < shard.size(); ++d) {
    const auto size = CheckedMul(shard[d], cuts_[d]);
    if (!size) {
      return GridError(where, fmt::format("dimension {} of {} elements a shard times {} parts "
                                          "is too large",
                                          d, shard[d], cuts_[d]));
    }
    full.push_back(*size);
  }
  return full;
}

Result<Shape> ShardGrid::ShardShape(const Shape& full, std::string_view where) const {
  Shape shard;
  shard.reserve(full.size());
  for (size_t d = 0; d < full.size(); ++d) {
    if (full[d] % cuts_[d] != 0) {
      return GridError(where, fmt::format("dimension {} of the full shape {} has {} elements, "
                                          "which cannot be cut into {} equal parts",
                                          d, ToString(full), full[d], cuts_[d]));
    }
    shard.push_back(full[d] / cuts_[d]);
  }
  return shard;
}

std::vector<int64_t> ShardGrid::PartsOf(int64_t rank) const {
  std::vector<int64_t> parts(cuts_.size());
  PartsOf(rank, parts);
  return parts;
}

void ShardGrid::PartsOf(int64_t rank, std::span<int64_t> parts) const {
  std::fill(parts.begin(), parts.end(), 0);
  for (const Digit& digit : digits_) {
    if (digit.dim == kFree) continue;
    int64_t& part = parts[static_cast<size_t>(digit.dim)];
    part = part * digit.size + rank / digit.stride % digit.size;
  }
  if (modulus_ != 0) parts[0] = rank % modulus_;
}

int64_t ShardGrid::PartNumberOf(int64_t rank) const {
  std::array<int64_t, kMaxDims> numbers;  // only as many as there are cuts are ever set
  const std::span parts(numbers.data(), cuts_.size());
  PartsOf(rank, parts);
  return PartNumber(parts, cuts_);
}

Box ShardGrid::BoxOfParts(const std::vector<int64_t>& parts, const Shape& shard) {
  Box box{{}, shard};
  box.begin.reserve(parts.size());
  for (size_t d = 0; d < parts.size(); ++d) box.begin.push_back(parts[d] * shard[d]);
  return box;
}

int64_t ShardGrid::RankOf(const std::vector<int64_t>& parts, int64_t preferred) const {
  if (modulus_ != 0) {
    const auto shared = [&](int64_t rank) {
      return std::count_if(digits_.begin(), digits_.end(), [&](const Digit& digit) {
        return rank / digit.stride % digit.size == preferred / digit.stride % digit.size;
      });
    };
    int64_t best = parts[0];
    for (int64_t rank = best; rank < devices_; rank += modulus_) {
      if (shared(rank) > shared(best)) best = rank;
    }
    return best;
  }
  // The free digits are the preferred rank's, the others follow from the parts.
  int64_t rank = 0;
  for (const Digit& digit : digits_) {
    const int64_t value = digit.dim == kFree ? preferred / digit.stride
                                             : parts[static_cast<size_t>(digit.dim)] / digit.weight;
    rank += value % digit.size * digit.stride;
  }
  return rank;
}

int64_t ShardGrid::parts() const {
  int64_t parts = 1;
  for (const int64_t cut : cuts_) parts *= cut;
  return parts;
}

int64_t ShardGrid::replicas() const { return devices_ / parts(); }

std::vector<int64_t> ShardGrid::Replicas(const std::vector<int64_t>& parts) const {
  std::vector<int64_t> ranks;
  if (modulus_ != 0) {
    for (int64_t rank = parts[0]; rank < devices_; rank += modulus_) ranks.push_back(rank);
    return ranks;
  }
  ranks.push_back(RankOf(parts, 0));
  for (const Digit& digit : digits_) {
    if (digit.dim != kFree) continue;
    const size_t count = ranks.size();
    for (int64_t value = 1; value < digit.size; ++value) {
      for (size_t i = 0; i < count; ++i) ranks.push_back(ranks[i] + value * digit.stride);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

void ShardGrid::ForEachOverlap(
    const Box& box, const Shape& shard,
    const std::function<bool(const std::vector<int64_t>& parts)>& visit) const {
  if (box.empty() || Box::Whole(shard).empty()) return;
  std::vector<int64_t> first(box.dims());
  std::vector<int64_t> last(box.dims());
  for (size_t d = 0; d < box.dims(); ++d) {
    first[d] = box.begin[d] / shard[d];
    last[d] = (box.begin[d] + box.extent[d] - 1) / shard[d];
  }
  std::vector<int64_t> parts = first;
  while (visit(parts)) {
    size_t d = parts.size();
    while (d > 0 && parts[d - 1] == last[d - 1]) {
      --d;
      parts[d] = first[d];
    }
    if (d == 0) return;
    ++parts[d - 1];
  }
}

int64_t PartNumber(std::span<const int64_t> parts, const std::vector<int64_t>& cuts) {
  int64_t number = 0;
  for (size_t d = 0; d < cuts.size(); ++d) number = number * cuts[d] + parts[d];
  return number;
}

std::vector<int64_t> PartAt(int64_t number, const std::vector<int64_t>& cuts) {
  std::vector<int64_t> parts(cuts.size());
  for (size_t d = cuts.size(); d-- > 0;) {
    parts[d] = number % cuts[d];
    number /= cuts[d];
  }
  return parts;
}

}  // namespace reshard
