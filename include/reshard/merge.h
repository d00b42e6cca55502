// Merge: one checkpoint file out of several.
//
// Slices, files that each have a part of every parameter, are joined to full tensors, as
// MindSpore's merge_sliced_parameter does it. Segments, files that each have some of the
// parameters, become one file. May run in several threads at once; each call uses its own threads
// and state. It does not print.
//
// Implemented in src/api.
#ifndef RESHARD_MERGE_H_
#define RESHARD_MERGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/findings.h"
#include "reshard/status.h"

namespace reshard {
inline namespace v0_1 {

enum class MergeKind {
  kSlices,    // each file has a slice of every parameter
  kSegments,  // what several files have has to be equal
};

// `source.strategy` is of slices: a strategy file of one stage; without it slices are concatenated.
// With UnmatchedPolicy::kCopy, given, slices are merged although their names tell that the strategy
// is another checkpoint's.
struct MergeOptions : ConvertOptions {
  MergeKind kind = MergeKind::kSlices;
  // Files of one format, which `output` gets, too. Slices: in the order of the ranks. Segments:
  // folders too, which stand for their *.ckpt and *.safetensors, in natural order ("part2" before
  // "part10").
  std::vector<std::string> files = {};
  std::string output = {};  // a file; its folder is made when it is not there
};

struct MergeReport : Findings {
  std::vector<std::string> sources;  // the files, in the order in which they count
  uint64_t bytes_compared = 0;       // of replicas and duplicates, the one that is taken included
  uint64_t bytes_written = 0;
};

// Merges; docs/reference/cli.md, "merge", says how. Copies of one part that have to be equal are
// compared before anything is written, and digests from both sides prove what is copied. `output`
// appears whole or not at all. Errors: kInvalidArgument; kNotFound, kCorrupt, kUnsupported;
// kMismatch where files, strategy or copies do not fit; kChanged when a file changed meanwhile;
// kAlreadyExists when `output` is there and not `force`, or is being written; kIo,
// kResourceExhausted, kCancelled.
Result<MergeReport> Merge(const MergeOptions& options);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_MERGE_H_
