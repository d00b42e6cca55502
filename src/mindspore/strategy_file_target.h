// StrategyFileTarget: the files of ranks, and then the strategy that cuts them.
//
// Thread-safe; the other target must outlive it.
#ifndef RESHARD_SRC_MINDSPORE_STRATEGY_FILE_TARGET_H_
#define RESHARD_SRC_MINDSPORE_STRATEGY_FILE_TARGET_H_

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "reshard/status.h"
#include "src/plan/plan_findings.h"
#include "src/plan/target.h"
#include "src/plan/target_file.h"

namespace reshard {

// No other file is in its folder. So the folder can be passed as a strategy.
inline constexpr std::string_view kStrategyFilePath = "strategy/strategy.ckpt";

class StrategyFileTarget final : public Target {
 public:
  StrategyFileTarget(const Target& ranks, std::string strategy)
      : Target(ranks.source(), ranks.choice()), ranks_(ranks), strategy_(std::move(strategy)) {}

  int64_t files() const override { return ranks_.files() + 1; }
  int64_t rank_files() const override { return ranks_.files(); }
  std::string PathOf(int64_t file) const override {
    return IsStrategy(file) ? std::string(kStrategyFilePath) : ranks_.PathOf(file);
  }
  int64_t StageOf(int64_t file) const override {
    return ranks_.StageOf(IsStrategy(file) ? file - 1 : file);
  }
  int64_t RankOf(int64_t file) const override { return IsStrategy(file) ? 0 : ranks_.RankOf(file); }
  using Target::IndexSources;
  void IndexSources(std::span<const int64_t> files, const Indexers& indexers,
                    const std::stop_token& stop) const override;
  Result<TargetFile> MakeFile(int64_t file, PlanFindings& findings) const override;

 private:
  bool IsStrategy(int64_t file) const { return file == ranks_.files(); }

  const Target& ranks_;
  const std::string strategy_;  // the bytes of its file
};

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_STRATEGY_FILE_TARGET_H_
