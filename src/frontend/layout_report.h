// LayoutReport: the figures behind the pictures of a conversion.
//
// It tells which rank holds which part of a parameter before and after, and which source ranks feed
// which target ranks. It also tells the dtypes and modules of the bytes, and the lengths of runs.
// Plans are made one after the other and dropped, so that thousands of ranks take little memory.
// Beyond kMostRankBins ranks, several share a bin. Plain values; MakeLayoutReport may run in
// several threads at once.
#ifndef RESHARD_SRC_FRONTEND_LAYOUT_REPORT_H_
#define RESHARD_SRC_FRONTEND_LAYOUT_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/convert.h"
#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"

namespace reshard {

inline constexpr int64_t kMostRankBins = 64;
inline constexpr int64_t kMostGridCells = 1024;

// The files of the ranks (or of the stages) from `first` to `last`.
struct FileBin {
  int64_t first = 0;
  int64_t last = 0;
  uint64_t files = 0;          // that exist, or are written
  uint64_t file_bytes = 0;     // their sizes, headers included
  uint64_t least = 0;          // size of the smallest
  uint64_t most = 0;           // size of the largest
  uint64_t content_bytes = 0;  // copied from them, or to them
};

struct LayoutSide {
  std::optional<Strategy> layout;  // also one made for a cluster; none: full tensors
  std::string strategy;            // the file of `layout`, as it was named, if there is one
  bool is_folder = false;          // of full tensors: its files are counted as ranks are
  int64_t first_rank = 0;          // not 0 if a stage is converted alone
  int64_t stages = 1;
  int64_t devices_per_stage = 1;
  std::vector<FileBin> by_rank;   // ascending; equally many ranks in each, except in the last
  std::vector<FileBin> by_stage;  // the same of stages
};

// Parameters that have something in common.
struct ByteShare {
  std::string name;
  uint64_t parameters = 0;
  uint64_t full_bytes = 0;  // of the full tensors, each parameter counted once
  // in the target files (in the source files without a plan), with each replica
  uint64_t stored_bytes = 0;
};

// Runs of `shortest` to `longest` bytes.
struct RunBin {
  uint64_t shortest = 0;
  uint64_t longest = 0;
  uint64_t runs = 0;
  uint64_t bytes = 0;
};

// The shard of a parameter that a rank holds.
struct GridCell {
  int64_t shard = -1;   // its number in row-major order of the parts; -1: the rank does not have it
  int64_t replica = 0;  // how many lower ranks of the stage hold the same shard
};

// A parameter over the ranks of a side.
struct DeviceGrid {
  std::vector<int64_t> cuts;  // of each dimension; empty: no rank of this side has it
  Shape shard_shape;
  int64_t shards = 0;
  int64_t replicas = 0;         // the most that a shard has in a stage
  std::vector<int64_t> stages;  // that have it, ascending
  int64_t ranks_per_cell = 1;   // 1 up to kMostGridCells ranks
  std::vector<GridCell> cells;  // of the first rank of each so many, by rank
};

struct ParameterGrids : TensorInfo {
  DeviceGrid source;
  DeviceGrid target;
};

// How both sides cut a parameter: so many parts along each dimension.
struct ParameterCuts : TensorInfo {
  bool copied = false;  // unchanged from the source's files; then there are no cuts
  std::vector<int64_t> source_cuts;
  std::vector<int64_t> target_cuts;
};

struct LayoutReport {
  std::string path;      // of the source, as it was named
  bool planned = false;  // else there was no strategy, and only the source's files are known
  PlanReport plan;       // memory and space left out; without a plan warnings and sources only
  std::string step;      // EPOCH_STEP, if the names of the source's files have it
  LayoutSide source;
  LayoutSide target;
  std::vector<uint64_t> flow;       // bytes from a bin of source ranks to one of target ranks:
                                    // flow[i * target.by_rank.size() + j]
  std::vector<ByteShare> dtypes;    // most stored bytes first
  std::vector<ByteShare> prefixes;  // by the name up to its first dot
  std::vector<RunBin> runs;         // ascending; lengths double from bin to bin
  // All parameters, by name. Without a plan, as in the first file that has them, and without cuts.
  std::vector<ParameterCuts> parameters;
  std::vector<ParameterGrids> drawn;  // the parameters of LayoutReportOptions::parameters
};

struct LayoutReportOptions {
  ConvertOptions conversion;  // target folder, I/O and memory options are ignored
  // The parameters to draw device grids of; none: the largest one that is cut, if possible not an
  // optimizer's copy.
  std::vector<std::string> parameters;
};

// Plans the conversion, or reads the tables of the source's files if no side has a strategy.
// Errors: as Plan, without those of the target folder; kNotFound for a parameter that is not
// written.
Result<LayoutReport> MakeLayoutReport(const LayoutReportOptions& options);

// Checks, before a report is made, that WriteReport could write it. Its folder has to exist, or to
// be `target`, the folder that a conversion makes.
// Errors:
//   kAlreadyExists: `path` exists and is not a file, or `force` is not set
//   kInvalidArgument: an output of the thread's FileUse belongs to the contents of `target`; `path`
//   should
//     be such an output
//   kIo
Status CheckReport(const std::string& path, bool force, const std::string& target);

// Writes a page made of a report to the file `path`, which appears whole or not at all; its folder
// has to be there. Errors: kAlreadyExists when it exists and not `force`; kIo.
Status WriteReport(const std::string& path, std::string_view page, bool force);

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_LAYOUT_REPORT_H_
