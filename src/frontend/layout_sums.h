// LayoutSums: adds up a layout report, one plan after the other.
//
// Holds only sums: for each bin, dtype, prefix and length of runs. One thread.
#ifndef RESHARD_SRC_FRONTEND_LAYOUT_SUMS_H_
#define RESHARD_SRC_FRONTEND_LAYOUT_SUMS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/tensor.h"
#include "src/frontend/layout_report.h"
#include "src/io/source_files.h"
#include "src/plan/plan_findings.h"
#include "src/plan/target_plan.h"

namespace reshard {

// The dtype of bytes that stand as they do in the source's files: text entries and MapTensors.
inline constexpr std::string_view kAsTheyStand = "texts, maps";

// Files by rank and by stage, in at most kMostRankBins bins each.
class SideSums {
 public:
  // The ranks first_rank to first_rank + stages * devices - 1.
  SideSums(int64_t first_rank, int64_t stages, int64_t devices);

  // Counts the file of `rank`, of `size` bytes. Only for ranks of the side.
  void AddFile(int64_t rank, uint64_t size);
  void AddContent(int64_t rank, uint64_t bytes);

  // The place in by_rank of the bin of `rank`.
  size_t BinOf(int64_t rank) const;
  size_t bins() const { return side_.by_rank.size(); }
  const LayoutSide& side() const { return side_; }

 private:
  size_t StageBinOf(int64_t rank) const;

  LayoutSide side_;
};

// Bytes by some property of parameters.
class ShareSums {
 public:
  void AddFull(std::string_view name, uint64_t bytes);
  void AddStored(std::string_view name, uint64_t bytes);
  // Most stored bytes first, then by name.
  std::vector<ByteShare> Sorted() const;

 private:
  ByteShare& Of(std::string_view name);

  std::map<std::string, ByteShare, std::less<>> by_name_;
};

// The part of a name up to its first dot, with the dot; "" if there is none.
std::string_view PrefixOf(std::string_view name);

class LayoutSums {
 public:
  // `ranks` has the ranks of the source files.
  LayoutSums(SideSums source, SideSums target, std::map<FileId, int64_t> ranks);

  // `findings` belong to the plans so far, with this one.
  void Add(const TargetPlan& plan, const PlanFindings& findings);
  // Writes the sums to `report`, with the parameters of `findings`.
  void Finish(const PlanFindings& findings, LayoutReport& report);

 private:
  static constexpr size_t kLengths = 64;  // bin b: 2^b to 2^(b+1) - 1 bytes

  SideSums source_;
  SideSums target_;
  std::map<FileId, int64_t> ranks_;
  std::vector<uint64_t> flow_;
  ShareSums dtypes_;
  ShareSums prefixes_;
  std::array<RunBin, kLengths> runs_{};
};

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_LAYOUT_SUMS_H_
