// Findings: the results of opening, planning and checking a conversion. The reports of Convert,
// Plan, Recode, Merge and VerifyAgainst are Findings, too.
//
// A plain value.
//
// Implemented in src/tensor (header only).
#ifndef RESHARD_FINDINGS_H_
#define RESHARD_FINDINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reshard/options.h"
#include "reshard/parameters.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {
inline namespace v0_1 {

struct Findings {
  // Elements of the floating-point tensors with more than one, each name counted once: every
  // element is a parameter, as in "a model of 6.74 B parameters".
  struct Totals {
    uint64_t weights = 0;
    uint64_t optimizer = 0;  // of the optimizer's copies (OptimizerGroup)

    friend bool operator==(const Totals&, const Totals&) = default;
  };

  // The extent of a sample of replicas.
  struct ReplicaSample {
    uint64_t parameters = 0;   // sampled, in each stage
    uint64_t comparisons = 0;  // a comparison: a rank's part of a parameter with a replica
    // Comparisons of matrix parts that are equal and not one value throughout. They are evidence
    // for the strategy. With 0 the strategy is unconfirmed.
    uint64_t confirming = 0;
    uint64_t files = 0;         // sampled
    uint64_t files_opened = 0;  // sampled files that only the sample opened
    uint64_t reads = 0;
    uint64_t bytes = 0;
    double seconds = 0;
  };

  std::vector<Warning> warnings;
  std::vector<std::string> notes;   // need no action
  std::vector<TensorInfo> largest;  // the largest parameters, largest first, at most 5
  // As `largest`, with each full shape once. Leaves out an optimizer's copies if other parameters
  // exist.
  std::vector<TensorInfo> largest_shapes;
  // Totals of the whole source, even if only a part is written; no value if files are missing.
  std::optional<Totals> totals;
  // The part of `totals` that include and exclude leave.
  std::optional<Totals> chosen_totals;
  // The number of the stage, if the source is a single stage of a pipeline.
  std::optional<int64_t> stage_alone;
  std::string step;  // "EPOCH_STEP" of the files that were taken; empty if their names have none
  uint64_t parameters = 0;  // distinct names in the target files
  uint64_t left_out = 0;    // parameters, by include and exclude
  uint64_t renamed = 0;     // of `parameters`
  // The source is a folder of full tensors. Its file numbers stand for ranks.
  bool source_is_whole = false;
  std::optional<ReplicaSample> sample;  // when there was one, and a source strategy
};

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_FINDINGS_H_
