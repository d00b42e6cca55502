// ConversionRule: which parameters a target rank gets, and from which source stages and ranks.
//
// The rule of MindSpore's transform_checkpoints for every combination of strategies and pipelines
// (docs/reference/layouts.md, "Which parameters a target rank gets"). Pure; holds the two
// strategies by pointer, which must outlive it. Immutable, so any number of threads may read it.
#ifndef RESHARD_SRC_MINDSPORE_CONVERSION_RULE_H_
#define RESHARD_SRC_MINDSPORE_CONVERSION_RULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/strategy.h"
#include "src/mindspore/holder_groups.h"

namespace reshard {

class ConversionRule {
 public:
  enum class Fate {
    kConvert,  // cut anew, from the layouts on both sides
    kCopy,     // taken as it stands from one source rank
    kDrop,     // belongs to another target stage
  };

  // Null stands for no strategy on that side. `groups` says which source ranks hold the same.
  // `may_be_alone`: whether one stage of a pipeline may be converted by itself, as MindSpore does
  // with .ckpt files only.
  ConversionRule(const Strategy* source, const Strategy* target, HolderGroups groups = {},
                 bool may_be_alone = true);

  const Strategy* source() const { return source_; }
  const Strategy* target() const { return target_; }
  const HolderGroups& groups() const { return groups_; }

  // Ranks that are written: 0 .. target_ranks() - 1.
  int64_t target_ranks() const { return target_ == nullptr ? 1 : target_->ranks(); }
  int64_t source_devices() const { return source_ == nullptr ? 1 : source_->devices_per_stage(); }
  int64_t target_devices() const { return target_ == nullptr ? 1 : target_->devices_per_stage(); }
  int64_t source_stages() const;

  // The number of the single source stage that is converted alone, if that rule applies.
  std::optional<int64_t> stage_alone() const { return stage_alone_; }

  // Returns the rank with the folder of local rank `local` of source stage `stage`.
  int64_t SourceRank(int64_t stage, int64_t local) const {
    return (stage_alone_.value_or(stage)) * source_devices() + local;
  }

  int64_t TargetStage(int64_t rank) const { return rank / target_devices(); }
  int64_t TargetLocalRank(int64_t rank) const { return rank % target_devices(); }
  // The local source rank from which a target rank copies parameters that no layout cuts.
  int64_t CopyRank(int64_t rank) const { return TargetLocalRank(rank) % source_devices(); }

  // Returns the source stages with files that target stage `stage` needs, ascending.
  std::vector<int64_t> NeededSourceStages(int64_t stage) const;

  // Returns the fate of a parameter of the needed files on target stage `stage`.
  Fate FateOf(std::string_view name, int64_t stage) const;

  // Returns the lowest source stage with a layout for `name`. The source strategy has to have the
  // name.
  int64_t LowestSourceStage(std::string_view name) const;

  // True when exactly one of two given strategies has `name`.
  bool Unmatched(std::string_view name) const;

 private:
  // The parameter's side of the test: null strategies pass every parameter.
  bool InSource(std::string_view name, int64_t target_stage) const;
  bool InTarget(std::string_view name, int64_t target_stage) const;

  const Strategy* source_ = nullptr;
  const Strategy* target_ = nullptr;
  HolderGroups groups_;
  std::optional<int64_t> stage_alone_;
};

// Returns a hint for a source strategy that does not fit, or "". The hint is that the two
// strategies may be swapped. It is given if the `count` existing ranks, from `first` to `last`, are
// exactly those of the target strategy.
std::string SwapHint(const ConversionRule& rule, int64_t first, int64_t last, uint64_t count);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_CONVERSION_RULE_H_
