// FullParameter: a parameter of the source as it is in no layout, and where its bytes lie.
//
// What digests, comparisons and reads by box start from. Headers are read, content is not.
// Thread-safe as SourceShards are, which must outlive the calls.
#ifndef RESHARD_SRC_MINDSPORE_FULL_PARAMETER_H_
#define RESHARD_SRC_MINDSPORE_FULL_PARAMETER_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "reshard/box.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/mindspore/source_shards.h"
#include "src/plan/plan_notes.h"
#include "src/tensor/block_copy.h"

namespace reshard {

struct FullParameter {
  SourceTensor tensor;
  uint64_t bytes = 0;
  // Where it is taken from as it stands, where no layout cuts it. The content of a text is its
  // characters', that of a MapTensor its Values', headers included: they tell types and shapes.
  std::optional<PlacedPiece> whole;
};

// Describes `name` as a target without strategy gets it: whole from the shards of the lowest stage
// that has a layout of it, else as it stands in the file of the lowest rank.
// Errors: kMismatch when no file has it; those of opening a file.
Result<FullParameter> DescribeFull(const SourceShards& shards, std::string_view name);

// Adds it to `notes`, as what is planned of it is noted.
void Note(const FullParameter& parameter, PlanNotes& notes);

// Returns the copies that gather the row-major bytes of `box`, in elements, to offset 0 and on,
// ordered by their first target byte; of a text or a MapTensor, whatever the box, all bytes. Proved
// to write each byte once. Errors: as SourceShards::Cover.
Result<std::vector<BlockCopy>> CopiesOf(const SourceShards& shards, const FullParameter& parameter,
                                        const Box& box);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_FULL_PARAMETER_H_
