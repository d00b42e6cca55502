// A sample of the shards of a source: do the ranks hold the parts that the source strategy states?
//
// A few KiB at the beginning, the middle and the end of some parameters are read from some ranks.
// Ranks that hold the same part by the strategy have to agree; ranks that hold other parts should
// not. Parameters are chosen so that every layout occurs and their bytes tell much: large weights
// before an optimizer's states, varied values before zeros. If there are too many ranks, ranks are
// chosen that differ in one device axis.
//
// An unopened .ckpt file is read at the places of another file of its stage with the same size, as
// long as its headers there are the same. So it needs no index. SourceFiles::VerifyUnchanged does
// not check such files.
#ifndef RESHARD_SRC_VERIFY_SHARD_SAMPLE_H_
#define RESHARD_SRC_VERIFY_SHARD_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "reshard/findings.h"
#include "reshard/status.h"
#include "reshard/strategy.h"
#include "src/io/shared_work.h"
#include "src/io/source_files.h"
#include "src/source/source.h"
#include "src/verify/stage_sample.h"

namespace reshard {

struct SampleLimits {
  size_t reads = 1024;  // requests, headers included
  size_t files = 64;    // opened for the sample only
};

// Returns the limits for the storage that holds the file at `path`: the default ones in memory and
// on a local disk that does not rotate, a quarter elsewhere.
SampleLimits SampleLimitsFor(const std::string& path);

// A part of a parameter that is not the same in two ranks that ought to hold the same.
struct SampledDifference {
  std::string parameter;
  int64_t rank = 0;
  int64_t reference = 0;    // another rank
  bool cut = false;         // by the layout of the parameter
  bool matrix = false;      // of two dimensions or more
  bool other_type = false;  // another dtype or shape
  uint64_t offset = 0;      // else: of the first byte of the shard that was found to differ
};

// Two ranks that hold the same bytes of all cut parameters sampled, constant ones not counted,
// although they ought to hold different parts of some.
struct EqualRanks {
  int64_t rank = 0;
  int64_t other = 0;
  std::string parameter;  // by the strategy, the ranks hold different parts
};

// A number that training counts, and the ranks that have it.
struct CounterValue {
  std::string value;  // in words
  std::vector<int64_t> ranks;
};

struct ShardSample {
  Findings::ReplicaSample counts;
  bool any_cut = false;  // some layout cuts a parameter that is there
  bool any_matrix_has_replicas = false;
  // The names in SampledNames::unmatched whose tensors differ between ranks of a stage; sorted.
  std::set<std::string> unmatched_differ;
  // By the names of counters: the values of all stages that differ, each value once.
  std::map<std::string, std::vector<CounterValue>> counters;
  std::vector<SampledDifference> differences;
  std::vector<EqualRanks> equal;    // each rank with the first one that is like it
  std::vector<std::string> unread;  // why files that only the sample reads could not be sampled
};

// Samples these parameters and the counters of training in the files of these source stages,
// without accumulated gradients. Without a source strategy the sample is empty. Errors: from
// reading files that were opened before; kMismatch if a layout does not fit; kCancelled.
Result<ShardSample> SampleShards(const Source& source, const Strategy* strategy,
                                 const SampledNames& names, std::span<const int64_t> stages,
                                 const SampleLimits& limits, const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_SHARD_SAMPLE_H_
