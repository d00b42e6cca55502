// Merge: makes one checkpoint file from several.
//
// Slices are files that each have a part of every parameter. They are joined to full tensors, as in
// MindSpore's merge_sliced_parameter. Segments are files that each have some of the parameters.
// They become one file. Calls may run in several threads at once; each call uses its own threads
// and state. They do not print.
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

// Slices: `source.strategy` is a strategy file of a single stage. Without it, slices are
// concatenated. If names show that the strategy belongs to another checkpoint, the call fails
// unless `unmatched` is Selection::Unmatched::kCopy.
struct MergeOptions : ConvertOptions {
  // Each file has whole parameters, equal in all files that have them. Else a slice of each.
  bool segments = false;
  // Files with the same format. `output` gets this format. Slices: in the order of the ranks.
  // Segments: a folder stands for its *.ckpt and *.safetensors in natural order ("part2" before
  // "part10").
  std::vector<std::string> files = {};
  std::string output = {};  // a file; its folder is made when it is not there
};

struct MergeReport : Findings {
  std::vector<std::string> sources;  // the files, in the order in which they count
  uint64_t bytes_compared = 0;       // of replicas and duplicates, the one that is taken included
  uint64_t bytes_written = 0;
};

// Merges files (docs/reference/cli.md, "merge"). Copies that have to be equal are compared before
// the first write. Digests from both sides prove the copied bytes. `output` appears whole or not at
// all.
// Errors:
//   kInvalidArgument, kNotFound, kCorrupt, kUnsupported, kIo, kResourceExhausted, kCancelled
//   kMismatch: files, strategy or copies do not fit
//   kChanged: a file changed meanwhile
//   kAlreadyExists: `output` exists without `force`, or another process writes it
Result<MergeReport> Merge(const MergeOptions& options);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_MERGE_H_
