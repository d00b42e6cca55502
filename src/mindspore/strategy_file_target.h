// StrategyFileTarget: the files of ranks, and then files that only literals make: the strategy that
// cuts the ranks, and the meta.json of each.
//
// Thread-safe; the other target must outlive it.
#ifndef RESHARD_SRC_MINDSPORE_STRATEGY_FILE_TARGET_H_
#define RESHARD_SRC_MINDSPORE_STRATEGY_FILE_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "src/plan/plan_findings.h"
#include "src/plan/target.h"
#include "src/plan/target_file.h"

namespace reshard {

// No other file is in its folder. So the folder can be passed as a strategy.
inline constexpr std::string_view kStrategyFilePath = "strategy/strategy.ckpt";

// A file that is written with that of a rank.
struct ExtraFile {
  std::string path;  // relative to the target folder
  std::string literal;
  int64_t rank = 0;
};

class StrategyFileTarget final : public Target {
 public:
  StrategyFileTarget(const Target& ranks, std::vector<ExtraFile> extras)
      : Target(ranks.source(), ranks.choice()), ranks_(ranks), extras_(std::move(extras)) {}

  int64_t files() const override { return ranks_.files() + static_cast<int64_t>(extras_.size()); }
  int64_t rank_files() const override { return ranks_.files(); }
  std::string PathOf(int64_t file) const override {
    const ExtraFile* const extra = Find(file);
    return extra != nullptr ? extra->path : ranks_.PathOf(file);
  }
  // All extra files are of the last stage, so that files of a stage are adjacent.
  int64_t StageOf(int64_t file) const override {
    return ranks_.StageOf(Find(file) != nullptr ? ranks_.files() - 1 : file);
  }
  int64_t RankOf(int64_t file) const override {
    const ExtraFile* const extra = Find(file);
    return extra != nullptr ? extra->rank : ranks_.RankOf(file);
  }
  using Target::IndexSources;
  void IndexSources(std::span<const int64_t> files, const Indexers& indexers,
                    const std::stop_token& stop) const override;
  Result<TargetFile> MakeFile(int64_t file, PlanFindings& findings) const override;

 private:
  // Returns an extra file by its number, or null.
  const ExtraFile* Find(int64_t file) const {
    const bool is_extra = file >= ranks_.files() && file < files();
    return is_extra ? &extras_[static_cast<size_t>(file - ranks_.files())] : nullptr;
  }

  const Target& ranks_;
  const std::vector<ExtraFile> extras_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_STRATEGY_FILE_TARGET_H_
