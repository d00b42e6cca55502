#include "src/source/listed_placement.h"

#include <fmt/format.h>

#include <utility>

namespace reshard {
namespace {

RankedFiles Numbered(std::span<const FileId> files) {
  RankedFiles ranks;
  for (const FileId file : files) {
    ranks.files.emplace(static_cast<int64_t>(ranks.files.size()), file);
  }
  return ranks;
}

// Each of the files may stand in for each other one.
RankedFiles Alike(std::map<int64_t, FileId> files) {
  std::vector<int64_t> all;
  all.reserve(files.size());
  for (const auto& [rank, file] : files) all.push_back(rank);
  return {.files = std::move(files),
          .is_ascending = all.empty(),
          .stand_ins = [all = std::move(all)](int64_t /*rank*/) {
            return std::span<const int64_t>(all);
          }};
}

RankedFiles InFolder(std::map<int64_t, FileId> files, bool has_tensors) {
  RankedFiles ranks = Alike(std::move(files));
  ranks.is_folder = has_tensors;
  ranks.is_ascending = ranks.is_ascending || has_tensors;
  return ranks;
}

}  // namespace

ListedPlacement::ListedPlacement(std::span<const FileId> files, PartList parts)
    : Placement(Numbered(files)), parts_(std::move(parts)) {}

ListedPlacement::ListedPlacement(std::map<int64_t, FileId> replicas)
    : Placement(Alike(std::move(replicas))) {}

ListedPlacement::ListedPlacement(std::map<int64_t, FileId> files, WeightMap weights,
                                 std::optional<int64_t> rest)
    : Placement(InFolder(std::move(files), !weights.weights.empty() || rest)),
      weights_(std::move(weights)),
      rest_(rest) {}

ListedPlacement::ListedPlacement(RankedFiles files, PartList all)
    : Placement(std::move(files)), parts_(std::move(all)), lists_all_(true) {}

std::optional<int64_t> ListedPlacement::HomeOf(std::string_view name) const {
  const MappedWeight* const weight = weights_.Find(name);
  return weight == nullptr ? rest_ : std::optional<int64_t>(weight->file);
}

std::optional<Placement::Told> ListedPlacement::Tell(std::string_view name,
                                                     int64_t /*near*/) const {
  const PartList::Tensor* const tensor = parts_.Find(name);
  if (tensor == nullptr) return {};
  // Without a part there is none that tells.
  return Told{.teller = tensor->parts.empty() ? ArrayPlace{0, name} : tensor->parts.front().place(),
              .dtype = tensor->dtype,
              .full_shape = tensor->full};
}

Status ListedPlacement::Place(SourceTensor& tensor, std::string_view where) const {
  const PartList::Tensor* const listed = parts_.Find(tensor.name);
  if (listed == nullptr || tensor.kind != ArrayKind::kTensor) return {};
  tensor.rank.reset();
  tensor.full_shape = *listed->full;
  tensor.table = 0;  // the arrays of a tensor may have any shapes: each file is asked
  if (TensorBytes(tensor.full_shape, tensor.dtype)) return {};
  return MismatchError(
      fmt::format("{}: the full shape {} has too many bytes", where, ToString(tensor.full_shape)));
}

void ListedPlacement::ForEachPart(const SourceTensor& tensor, const Box& box, int64_t near,
                                  const PartVisitor& visit) const {
  const PartList::Tensor* const listed = parts_.Find(tensor.name);
  if (listed == nullptr) return;
  std::vector<int64_t> id(1);
  parts_.ForEachOverlap(*listed, box, [&](std::span<const PartList::Part> replicas) {
    id[0] = &replicas.front() - listed->parts.data();
    const PartList::Part* nearest = &replicas.front();
    for (const PartList::Part& replica : replicas) {
      if (replica.rank() == near) nearest = &replica;
    }
    Part part = {id, nearest->box(), nearest->shape(), nearest->place()};
    return visit(part);
  });
}

std::vector<ArrayPlace> ListedPlacement::HoldersOf(const SourceTensor& tensor,
                                                   const Part& part) const {
  const PartList::Tensor& listed = *parts_.Find(tensor.name);
  std::vector<ArrayPlace> holders;
  for (const PartList::Part& replica :
       PartList::ReplicasAt(listed, static_cast<size_t>(part.id.front()))) {
    holders.push_back(replica.place());
  }
  return holders;
}

}  // namespace reshard
