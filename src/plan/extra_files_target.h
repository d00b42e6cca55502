// ExtraFilesTarget: the files of another target, and then files that hold no tensors of its own:
// the strategy that cuts the ranks, the meta.json of each rank, and companions, which are copies of
// files as they are.
//
// Thread-safe; the other target must outlive it.
#ifndef RESHARD_SRC_PLAN_EXTRA_FILES_TARGET_H_
#define RESHARD_SRC_PLAN_EXTRA_FILES_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "reshard/options.h"
#include "reshard/status.h"
#include "src/plan/plan_findings.h"
#include "src/plan/target.h"
#include "src/plan/target_file.h"

namespace reshard {

struct ExtraFile {
  std::string path;  // relative to the target folder
  FileKind kind = FileKind::kCompanion;
  int64_t rank = 0;                       // it is written with the file of this rank
  std::string literal = {};               // its bytes, unless it is a copy
  std::optional<CopiedFile> copied = {};  // of a file of the source
};

class ExtraFilesTarget final : public Target {
 public:
  ExtraFilesTarget(const Target& others, std::vector<ExtraFile> extras)
      : Target(others.source(), others.choice()), others_(others), extras_(std::move(extras)) {}

  int64_t files() const override { return others_.files() + static_cast<int64_t>(extras_.size()); }
  int64_t rank_files() const override { return others_.rank_files(); }
  std::string PathOf(int64_t file) const override {
    const ExtraFile* const extra = Find(file);
    return extra != nullptr ? extra->path : others_.PathOf(file);
  }
  FileKind KindOf(int64_t file) const override {
    const ExtraFile* const extra = Find(file);
    return extra != nullptr ? extra->kind : others_.KindOf(file);
  }
  int64_t StageOf(int64_t file) const override {
    return others_.StageOf(IsExtra(file) ? others_.files() - 1 : file);
  }
  int64_t RankOf(int64_t file) const override {
    const ExtraFile* const extra = Find(file);
    return extra != nullptr ? extra->rank : others_.RankOf(file);
  }
  void IndexSources(std::span<const int64_t> files, const Indexers& indexers,
                    const std::stop_token& stop) const override;
  Result<TargetFile> MakeFile(int64_t file, PlanFindings& findings) const override;

 private:
  bool IsExtra(int64_t file) const { return file >= others_.files() && file < files(); }
  // Null: a file of the other target, or none.
  const ExtraFile* Find(int64_t file) const {
    return IsExtra(file) ? &extras_[static_cast<size_t>(file - others_.files())] : nullptr;
  }

  const Target& others_;
  const std::vector<ExtraFile> extras_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_EXTRA_FILES_TARGET_H_
