// ListedPlacement: parts of tensors that are listed one by one.
//
// A tensor that is not listed is whole in each file that has it, unless all tensors are listed. One
// stage.
#ifndef RESHARD_SRC_SOURCE_LISTED_PLACEMENT_H_
#define RESHARD_SRC_SOURCE_LISTED_PLACEMENT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "format/weight_map/weight_map_codec.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/io/source_files.h"
#include "src/source/part_list.h"
#include "src/source/placement.h"

namespace reshard {

class ListedPlacement final : public Placement {
 public:
  // Each file stands alone; its rank is its place here. Ranks of `parts` are such places, too.
  explicit ListedPlacement(std::span<const FileId> files, PartList parts = {});
  // By rank. The files are replicas: any file that has a tensor will do.
  explicit ListedPlacement(std::map<int64_t, FileId> replicas);
  // A folder of full tensors, by rank, from 0 on. `weights` gives the rank of a tensor's file. All
  // other tensors are in the file of `rest`, if there is one.
  ListedPlacement(std::map<int64_t, FileId> files, WeightMap weights, std::optional<int64_t> rest);
  // The files of a stage. They have only the parts of `all`, the list of all tensors.
  ListedPlacement(RankedFiles files, PartList all);

  std::optional<int64_t> HomeOf(std::string_view name) const override;
  const PartList* all_tensors() const override { return lists_all_ ? &parts_ : nullptr; }
  std::optional<Told> Tell(std::string_view name, int64_t near) const override;
  Status Place(SourceTensor& tensor, std::string_view where) const override;
  void ForEachPart(const SourceTensor& tensor, const Box& box, int64_t near,
                   const PartVisitor& visit) const override;
  std::vector<ArrayPlace> HoldersOf(const SourceTensor& tensor, const Part& part) const override;

 private:
  const PartList parts_;
  const bool lists_all_ = false;
  const WeightMap weights_;
  const std::optional<int64_t> rest_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_LISTED_PLACEMENT_H_
