// ListedPlacement: pieces of tensors that are stated one by one.
//
// What is not stated is whole in each file that has it. One stage.
#ifndef RESHARD_SRC_SOURCE_LISTED_PLACEMENT_H_
#define RESHARD_SRC_SOURCE_LISTED_PLACEMENT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/weight_map/weight_map_codec.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/io/source_files.h"
#include "src/source/placement.h"

namespace reshard {

class ListedPlacement final : public Placement {
 public:
  // Each file stands alone; its rank is its place here.
  explicit ListedPlacement(std::span<const FileId> files);
  // By rank; all of them hold the same, as far as they hold it: any of them will do.
  explicit ListedPlacement(std::map<int64_t, FileId> replicas);
  // By rank, from 0 on; together they are a folder of whole tensors. Those of `weights` are in the
  // files that it says, by rank; all others in that of `rest`, where there is one.
  ListedPlacement(std::map<int64_t, FileId> files, WeightMap weights, std::optional<int64_t> rest);

  // A box of a tensor, and the array of the tensor's name that it is: of `shape`, with as many
  // elements in the same order, in the file of `rank`.
  struct Piece {
    Box box;
    Shape shape;
    int64_t rank = 0;
  };
  // States that `pieces` are the tensor `name` of the shape `full`; those of one box are replicas.
  // Not to be called any more once others read.
  void Add(std::string_view name, Shape full, std::vector<Piece> pieces);

  Ranks RanksOf(int64_t stage) const override;
  std::vector<int64_t> Stages() const override { return {0}; }
  bool IsAscending() const override { return replicas_.empty() || IsFolder(); }
  bool IsFolder() const override { return !weights_.weights.empty() || rest_; }
  std::optional<int64_t> HomeOf(std::string_view name) const override;
  std::span<const int64_t> StandIns(int64_t /*rank*/) const override { return replicas_; }
  bool Places(std::string_view name) const override { return tensors_.contains(name); }
  Teller TellerOf(std::string_view name, int64_t near) const override;
  Status Place(SourceTensor& tensor, std::string_view where) const override;
  void ForEachPart(const SourceTensor& tensor, const Box& box,
                   const PartVisitor& visit) const override;
  int64_t HolderOf(const SourceTensor& tensor, const Part& part, int64_t near) const override;
  std::vector<int64_t> HoldersOf(const SourceTensor& tensor, const Part& part) const override;
  Status NotHeld(const SourceTensor& tensor, const Part& part,
                 const IsHeld& is_held) const override;

 private:
  struct StatedPart {
    Box box;
    Shape shape;
    std::vector<int64_t> ranks;  // ascending
  };
  struct Listed {
    Shape full;
    std::vector<StatedPart> parts;  // one of each box
  };

  const StatedPart& PartOf(const SourceTensor& tensor, const Part& part) const;

  std::map<std::string, Listed, std::less<>> tensors_;
  std::vector<int64_t> replicas_;  // ranks, ascending; none where each file stands alone
  const WeightMap weights_;
  const std::optional<int64_t> rest_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_LISTED_PLACEMENT_H_
