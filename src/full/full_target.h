// FullTarget: divides the single file of another target, with full tensors, into the files of a
// folder with an index: MindSpore's unified folder, or Hugging Face's.
//
// The other target decides about the tensors, their names and their order, and makes the findings.
// The index is the last file. Thread-safe; the other target must outlive it.
#ifndef RESHARD_SRC_FULL_FULL_TARGET_H_
#define RESHARD_SRC_FULL_FULL_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "format/weight_map/weight_map_codec.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "src/base/name_arena.h"
#include "src/full/full_folder.h"
#include "src/plan/plan_findings.h"
#include "src/plan/target.h"
#include "src/plan/target_file.h"

namespace reshard {

// The kind of file for a tensor of a unified folder.
enum class UnifiedPlace {
  kPart,
  kHyperParam,  // whole as well, in no index
  kNowhere,     // left out
};

struct FullLayout {
  FolderFamily family = FolderFamily::kUnified;
  uint64_t most_bytes = 0;  // of the tensors of a file, above 0; a larger tensor has its own
  // Of a unified folder, by the name in the source; empty: all are in parts.
  std::function<UnifiedPlace(std::string_view name)> place;
  // Of a unified folder: whether a source file that was opened states whether redundancy was
  // removed; then MindSpore's parts state that it is not. Asked once all tensors are known, for
  // all files to say the same. Empty: none does.
  std::function<bool()> states_redundancy;
};

class FullTarget final : public Target {
 public:
  // Divides the file of `whole`. Errors: kMismatch if it has no tensors; as `whole`.
  static Result<std::unique_ptr<FullTarget>> Make(const Target& whole, const FullLayout& layout);

  int64_t files() const override;
  std::string PathOf(int64_t file) const override;
  FileKind KindOf(int64_t file) const override {
    return static_cast<size_t>(file) < paths_.size() ? FileKind::kTensors : FileKind::kIndex;
  }
  int64_t RankOf(int64_t /*file*/) const override { return 0; }
  void IndexSources(std::span<const int64_t> files, const Indexers& indexers,
                    const std::stop_token& stop) const override;
  Result<TargetFile> MakeFile(int64_t file, PlanFindings& findings) const override;

 private:
  FullTarget(const Target& whole, FolderFamily family)
      : Target(whole.source(), whole.choice()), whole_(whole), family_(family) {}
  // The facts that are kept about an array of the whole file.
  struct Tensor;
  Status Divide(const FullLayout& layout);
  Status AddFiles(std::vector<Tensor> tensors, uint64_t most_bytes);
  Result<std::string> MakeIndex() const;

  const Target& whole_;
  const FolderFamily family_;
  std::vector<std::string> paths_;           // of the files with tensors
  std::vector<std::vector<size_t>> arrays_;  // of each, by their numbers in the whole file
  std::set<std::string, std::less<>> left_out_;
  std::set<std::string> not_in_first_;  // names in no file of the index; between quotes
  bool states_redundancy_ = false;
  // names in a hyper_param file that are not in the first rank; between quotes
  std::vector<MappedWeight> weights_;
  WeightTotals totals_;
  NameArena names_;  // that weights_ refer to
};

}  // namespace reshard

#endif  // RESHARD_SRC_FULL_FULL_TARGET_H_
