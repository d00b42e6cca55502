#include "src/source/placement.h"

#include <fmt/format.h>

#include "src/base/quote.h"

namespace reshard {

Status Placement::NotHeld(const SourceTensor& tensor, const Part& part,
                          const IsHeld& /*is_held*/) const {
  NumberRanges ranks;
  for (const ArrayPlace& place : HoldersOf(tensor, part)) ranks.Add(place.rank);
  return MismatchError(fmt::format(
      "parameter {}: box {} of the full shape {} is in no source file; expected it in the file of "
      "{}",
      Quote(tensor.name), ToString(part.box), ToString(tensor.full_shape), ranks.ToWords("rank")));
}

}  // namespace reshard
