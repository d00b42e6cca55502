// ListedPlacement: parts of tensors that are stated one by one.
//
// What is not stated is whole in each file that has it, unless all is stated. One stage.
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
  // By rank; all of them hold the same, as far as they hold it: any of them will do.
  explicit ListedPlacement(std::map<int64_t, FileId> replicas);
  // By rank, from 0 on; together they are a folder of whole tensors. Those of `weights` are in the
  // files that it says, by rank; all others in that of `rest`, where there is one.
  ListedPlacement(std::map<int64_t, FileId> files, WeightMap weights, std::optional<int64_t> rest);
  // The files of one stage, which hold nothing but the parts of `all`, all tensors that there are.
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
