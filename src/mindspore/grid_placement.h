// GridPlacement: the places of shards in a source's rank folders, by a strategy.
//
// Refers to the rule, which has a source strategy and must outlive the placement.
#ifndef RESHARD_SRC_MINDSPORE_GRID_PLACEMENT_H_
#define RESHARD_SRC_MINDSPORE_GRID_PLACEMENT_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"
#include "src/io/source_files.h"
#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/layout_grid.h"
#include "src/plan/parameter_choice.h"
#include "src/source/placement.h"

namespace reshard {

class GridPlacement final : public Placement {
 public:
  // `choice` takes the wanted parameters of the source.
  GridPlacement(const ConversionRule& rule, std::map<int64_t, FileId> rank_files,
                ParameterChoice choice = {});

  // Parameters in files of a stage that the source strategy has only in other stages.
  struct Strays {
    int64_t rank = 0;  // the lowest rank that holds some of these parameters, and its file
    FileId file = 0;
    std::set<std::string, std::less<>> names;
  };
  // Returns the strays in the files opened so far, for a few stages.
  std::map<int64_t, Strays> FoundStrays() const;

  std::optional<Told> Tell(std::string_view name, int64_t near) const override;
  Status Place(SourceTensor& tensor, std::string_view where) const override;
  void ForEachPart(const SourceTensor& tensor, const Box& box, int64_t near,
                   const PartVisitor& visit) const override;
  std::vector<ArrayPlace> HoldersOf(const SourceTensor& tensor, const Part& part) const override;
  Status NotHeld(const SourceTensor& tensor, const Part& part,
                 const IsHeld& is_held) const override;
  void Saw(int64_t rank, FileId file, const FileTable& table) const override;

 private:
  // Returns the local ranks that hold a part and have files, ascending.
  std::vector<int64_t> LocalsOf(const SourceTensor& tensor, const Part& part) const;
  // Adds the ranks of a stage that hold parts of such a grid which no file has.
  void AddLacking(int64_t stage, const ShardGrid& grid, std::set<int64_t>& lacking) const;

  const ConversionRule& rule_;
  const Strategy& strategy_;
  const ParameterChoice choice_;
  mutable GridCache grids_;
  mutable std::mutex strays_mutex_;
  // Whether the tables that were looked at have strays, by stage and id; both guarded by
  // strays_mutex_.
  mutable std::map<std::pair<int64_t, uint64_t>, bool> tables_;
  mutable std::map<int64_t, Strays> strays_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_GRID_PLACEMENT_H_
