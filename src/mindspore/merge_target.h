// MergeTarget: the file that several files are merged into.
//
// Slices: each file holds a slice of every parameter. In the order of the files, the slices become
// one tensor, as in MindSpore's merge_sliced_parameter. Segments: each file holds parameters of its
// own. Thread-safe; the constructor's arguments must outlive it.
#ifndef RESHARD_SRC_MINDSPORE_MERGE_TARGET_H_
#define RESHARD_SRC_MINDSPORE_MERGE_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "format/container/container.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"
#include "src/io/source_files.h"
#include "src/plan/parameter_choice.h"
#include "src/plan/plan_findings.h"
#include "src/plan/target.h"
#include "src/plan/target_file.h"
#include "src/source/listed_placement.h"
#include "src/source/source.h"
#include "src/source/table_cache.h"

namespace reshard {

// The bytes of a parameter in one of the files.
struct StoredContent {
  FileId file = 0;
  std::vector<ByteRange> ranges;  // one after the other
};

// Contents with one length, for one parameter in several files. All must have the same bytes; only
// the first is copied.
struct EqualContents {
  std::string name;
  std::vector<StoredContent> contents;  // at least two
};

struct MergeFiles {
  std::span<const TableHandle> tables;  // in the order of the ranks
  SourceFiles& files;
  TableCache& cache;
  std::string target;  // path of the file to write
  ParameterChoice choice = {};
  bool copies_unmatched = false;  // do not CheckNames (unmatched_names.h)
};

class MergeTarget final : public Target {
 public:
  int64_t files() const override { return 1; }
  std::string PathOf(int64_t /*file*/) const override { return path_; }
  Result<TargetFile> MakeFile(int64_t file, PlanFindings& findings) const override;

  // The contents to compare before the file is written.
  const std::vector<EqualContents>& equal() const { return equal_; }

 private:
  friend class MergeBuilder;

  struct Parameter {
    std::string name;
    std::optional<Shape> joined;  // dims of the tensor that slices are joined to
    int64_t file = 0;             // else by its number, the one that it is taken from
  };

  MergeTarget(const MergeFiles& files, std::unique_ptr<const ListedPlacement> placement,
              std::unique_ptr<const Source> source);

  Status MakeArray(size_t number, PlanFindings& findings, TargetArray& array) const;

  const std::unique_ptr<const ListedPlacement> placement_;  // of the slices
  const std::unique_ptr<const Source> source_;
  const std::string path_;
  const Container& container_;
  FileMetadata metadata_;
  std::set<std::string> metadata_left_out_;  // keys
  std::vector<Parameter> parameters_;
  std::vector<EqualContents> equal_;
  std::set<std::string> left_out_;
};

// Merges the slices of the chosen parameters. Scalars, text entries and MapTensors have to be equal
// in all files and are taken once. Every other parameter is concatenated along axis 0 if there is
// no `strategy`. With a strategy, its layout decides; an optimizer's copy of NAME has the layout of
// NAME (optimizer_copy.h). Without a layout, the parameter has to be equal in all files.
//   - `param_split_shape`: rows of each part of the grid, parts row-major;
//   - else `field` F > 0: each slice (rows, cols) becomes (F, rows / F, cols), these are
//     concatenated on axis 1, in the order of the files, and the result has two dimensions again;
//   - else the boxes of the grid, equal ones being replicas.
// Errors: kMismatch if files and strategy do not fit one another, by names, too; if a parameter is
// not in every file; or if slices do not fit together.
Result<std::unique_ptr<MergeTarget>> MergeSlices(const MergeFiles& files, const Strategy* strategy);

// The union of the files' parameters that are chosen, as first seen. Errors: kMismatch when two
// files hold one parameter with another dtype, shape or size.
Result<std::unique_ptr<MergeTarget>> MergeSegments(const MergeFiles& files);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_MERGE_TARGET_H_
