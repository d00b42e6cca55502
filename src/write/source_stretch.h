// Stretches: the source bytes that some target bytes need, as few ranges of files. They tell which
// windows several copies share, and what is read ahead.
//
// Pure functions.
#ifndef RESHARD_SRC_WRITE_SOURCE_STRETCH_H_
#define RESHARD_SRC_WRITE_SOURCE_STRETCH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reshard/byte_range.h"
#include "src/io/source_files.h"
#include "src/plan/target_plan.h"

namespace reshard {

// If two runs are at most this far apart in a file, one window holds both, with the gap.
inline constexpr uint64_t kMaxRunGap = uint64_t{64} << 10;
// The most stretches that are looked at. With more files in turn, the gain would be small.
inline constexpr size_t kMostStretches = 64;

// Source bytes that lie side by side, or nearly so, and belong to one copy or to several.
struct Stretch {
  FileId file = 0;
  ByteRange range;
  size_t copies = 1;
};

// Bytes of the target file that a plan is of.
struct TargetBytes {
  const TargetPlan* plan = nullptr;
  ByteRange range;
  uint64_t end = 0;  // the end of the bytes that will be filled at all
};

// Returns the segment of the plan with the byte at `offset` of the target file.
std::vector<Segment>::const_iterator SegmentAt(const TargetPlan& plan, uint64_t offset);

// Adds the stretches that the bytes `range` of the target file need, in the order of these bytes. A
// copy whose runs have larger gaps than kMaxRunGap has no stretch.
void AddStretches(const TargetPlan& plan, ByteRange range, std::vector<Stretch>& stretches);

// Returns the stretches that `targets` need. Those of several targets are in the order of files and
// offsets.
std::vector<Stretch> StretchesOf(std::span<const TargetBytes> targets);

// Returns `stretches`, which `targets` need, longer by what the next `reach` bytes of each target
// need, as far as it has later bytes.
std::vector<Stretch> WithLaterBytes(std::span<const TargetBytes> targets,
                                    std::vector<Stretch> stretches, uint64_t reach);

// Returns an end for each stretch of `wanted`: the end of its last large page if the stretch of
// `longer` that contains it reaches so far, else its own end. Both have the same order.
std::vector<uint64_t> PageEnds(std::span<const Stretch> wanted, std::span<const Stretch> longer);

size_t CountFiles(std::span<const Stretch> stretches);

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_SOURCE_STRETCH_H_
