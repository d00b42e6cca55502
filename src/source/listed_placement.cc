#include "src/source/listed_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/base/quote.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

std::map<int64_t, FileId> Numbered(std::span<const FileId> files) {
  std::map<int64_t, FileId> numbered;
  for (const FileId file : files) numbered.emplace(static_cast<int64_t>(numbered.size()), file);
  return numbered;
}

bool Overlap(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.dims(); ++d) {
    if (a.extent[d] == 0 || b.extent[d] == 0 || a.begin[d] >= b.begin[d] + b.extent[d] ||
        b.begin[d] >= a.begin[d] + a.extent[d]) {
      return false;
    }
  }
  return true;
}

}  // namespace

ListedPlacement::ListedPlacement(std::span<const FileId> files) : Placement(Numbered(files)) {}

ListedPlacement::ListedPlacement(std::map<int64_t, FileId> replicas)
    : Placement(std::move(replicas)) {
  for (const auto& [rank, file] : files()) replicas_.push_back(rank);
}

ListedPlacement::ListedPlacement(std::map<int64_t, FileId> files, WeightMap weights,
                                 std::optional<int64_t> rest)
    : Placement(std::move(files)), weights_(std::move(weights)), rest_(rest) {
  for (const auto& [rank, file] : this->files()) replicas_.push_back(rank);
}

std::optional<int64_t> ListedPlacement::HomeOf(std::string_view name) const {
  const MappedWeight* const weight = weights_.Find(name);
  return weight == nullptr ? rest_ : std::optional<int64_t>(weight->file);
}

void ListedPlacement::Add(std::string_view name, Shape full, std::vector<Piece> pieces) {
  // By where the box begins and how large it is: an empty one begins where another does.
  std::map<std::pair<std::vector<int64_t>, std::vector<int64_t>>, size_t> places;
  Listed listed{std::move(full), {}};
  for (Piece& piece : pieces) {
    const auto [place, is_new] =
        places.try_emplace({piece.box.begin, piece.box.extent}, listed.parts.size());
    if (is_new) listed.parts.push_back({std::move(piece.box), std::move(piece.shape), {}});
    listed.parts[place->second].ranks.push_back(piece.rank);
  }
  for (StatedPart& part : listed.parts) std::sort(part.ranks.begin(), part.ranks.end());
  tensors_.insert_or_assign(std::string(name), std::move(listed));
}

Placement::Ranks ListedPlacement::RanksOf(int64_t /*stage*/) const {
  return {0, files().empty() ? 0 : files().rbegin()->first + 1};
}

Placement::Teller ListedPlacement::TellerOf(std::string_view name, int64_t near) const {
  const auto listed = tensors_.find(name);
  if (listed != tensors_.end()) return {0, listed->second.parts.front().ranks.front()};
  return {0, HomeOf(name).value_or(near)};
}

Status ListedPlacement::Place(SourceTensor& tensor, std::string_view where) const {
  const auto listed = tensors_.find(tensor.name);
  if (listed == tensors_.end() || tensor.kind != ArrayKind::kTensor) return {};
  tensor.rank.reset();
  tensor.full_shape = listed->second.full;
  tensor.table = 0;  // the arrays of a tensor may have any shapes: each file is asked
  if (TensorBytes(tensor.full_shape, tensor.dtype)) return {};
  return MismatchError(
      fmt::format("{}: the full shape {} has too many bytes", where, ToString(tensor.full_shape)));
}

void ListedPlacement::ForEachPart(const SourceTensor& tensor, const Box& box,
                                  const PartVisitor& visit) const {
  const auto listed = tensors_.find(tensor.name);
  if (listed == tensors_.end()) return;
  std::vector<int64_t> id(1);
  for (const StatedPart& stated : listed->second.parts) {
    if (Overlap(stated.box, box)) {
      Part part = {id, stated.box, stated.shape};
      if (!visit(part)) return;
    }
    ++id[0];
  }
}

int64_t ListedPlacement::HolderOf(const SourceTensor& tensor, const Part& part,
                                  int64_t near) const {
  const std::vector<int64_t>& ranks = PartOf(tensor, part).ranks;
  return std::binary_search(ranks.begin(), ranks.end(), near) ? near : ranks.front();
}

std::vector<int64_t> ListedPlacement::HoldersOf(const SourceTensor& tensor,
                                                const Part& part) const {
  std::vector<int64_t> ranks = PartOf(tensor, part).ranks;
  std::erase_if(ranks, [&](int64_t rank) { return !files().contains(rank); });
  return ranks;
}

Status ListedPlacement::NotHeld(const SourceTensor& tensor, const Part& part,
                                const IsHeld& /*is_held*/) const {
  NumberRanges ranks;
  for (const int64_t rank : PartOf(tensor, part).ranks) ranks.Add(rank);
  return MismatchError(fmt::format(
      "parameter {}: box {} of the full shape {} is in no source file; expected it in that of {}",
      Quote(tensor.name), ToString(part.box), ToString(tensor.full_shape), ranks.ToWords("rank")));
}

const ListedPlacement::StatedPart& ListedPlacement::PartOf(const SourceTensor& tensor,
                                                           const Part& part) const {
  return tensors_.find(tensor.name)->second.parts[static_cast<size_t>(part.id.front())];
}

}  // namespace reshard
