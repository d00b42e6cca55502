// MergePlan: what one file is put together from that several files are merged into.
//
// Slices: each file holds a slice of every parameter, and the slices in the order of the files
// become one tensor, as MindSpore's merge_sliced_parameter joins them. Segments: the files hold
// parameters of their own. Both come out as the plan of a target file, made of the copies that
// every other one is made of. Pure functions of the indexes; no content is read.
#ifndef RESHARD_SRC_MINDSPORE_MERGE_PLAN_H_
#define RESHARD_SRC_MINDSPORE_MERGE_PLAN_H_

#include <span>
#include <string>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/mindspore/checked_strategy.h"
#include "src/plan/parameter_choice.h"
#include "src/plan/target_plan.h"
#include "src/source/table_cache.h"

namespace reshard {

// The bytes of a parameter in one of the files.
struct StoredContent {
  FileId file = 0;
  std::vector<ByteRange> ranges;  // one after the other
};

// What several files hold of one parameter, of one length, and what has to be the same bytes in
// all: only the first is copied.
struct EqualContents {
  std::string name;
  std::vector<StoredContent> contents;  // at least two
};

struct MergePlan {
  TargetPlan target;
  std::vector<EqualContents> equal;
  std::vector<std::string> notes;  // need no action
};

struct MergeFiles {
  std::span<const TableHandle> tables;  // in the order of the ranks
  SourceFiles& files;
  TableCache& cache;
  std::string target;  // path of the file to write
  ParameterChoice choice = {};
  bool copies_unmatched = false;  // do not CheckNames (unmatched_names.h)
};

// Plans the merge of the slices of the parameters that are chosen. Scalars, text entries and
// MapTensors have to be equal in all files and are taken once. Every other parameter: without a
// `strategy`, concatenated along axis 0; with one, as its layout says, that of NAME for the
// optimizer's copies of NAME (optimizer_copy.h); in no layout, it has to be equal in all files.
//   - `param_split_shape`: rows of each part of the grid, parts row-major;
//   - else `field` F > 0: each slice (rows, cols) becomes (F, rows / F, cols), these are
//     concatenated on axis 1, in the order of the files, and the result has two dimensions again;
//   - else the boxes of the grid, equal ones being replicas.
// Errors: kMismatch when files and strategy do not fit one another, by their names too, when a
// parameter is not in every file, or when slices do not fit together; kInvalidArgument where none
// is chosen.
Result<MergePlan> PlanSlices(const MergeFiles& files, const CheckedStrategy* strategy);

// Plans the union of the files' parameters that are chosen, as first seen. Errors: kMismatch when
// two files hold one parameter with another dtype, shape or size; kInvalidArgument where none is
// chosen.
Result<MergePlan> PlanSegments(const MergeFiles& files);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_MERGE_PLAN_H_
