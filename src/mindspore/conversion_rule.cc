#include "src/mindspore/conversion_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/quote.h"

namespace reshard {
namespace {

// True when the target strategy has every parameter of the source strategy and some more, the
// optimizer's and the accumulated gradients left aside.
bool IsProperSubset(const Strategy& source, const Strategy& target) {
  const auto left_aside = [](std::string_view name) {
    constexpr std::array<std::string_view, 3> kPrefixes = {"accu_grads", "adam_v", "adam_m"};
    return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                       [name](std::string_view prefix) { return name.starts_with(prefix); });
  };
  size_t source_count = 0;
  for (const Strategy::Entry layout : source.stages()[0]) {
    if (left_aside(layout.name)) continue;
    if (!target.Contains(layout.name)) return false;
    ++source_count;
  }
  const auto& target_layouts = target.stages()[0];
  const auto target_count =
      std::count_if(target_layouts.begin(), target_layouts.end(),
                    [&](const Strategy::Entry& layout) { return !left_aside(layout.name); });
  return source_count < static_cast<size_t>(target_count);
}

}  // namespace

ConversionRule::ConversionRule(const Strategy* source, const Strategy* target, HolderGroups groups,
                               bool may_be_alone)
    : source_(source), target_(target), groups_(std::move(groups)) {
  if (may_be_alone && source != nullptr && target != nullptr && source->stages().size() == 1 &&
      target->stages().size() == 1 && IsProperSubset(*source, *target)) {
    stage_alone_ = source->own_stage();
  }
}

int64_t ConversionRule::source_stages() const {
  return source_ == nullptr ? 1 : static_cast<int64_t>(source_->stages().size());
}

bool ConversionRule::InTarget(std::string_view name, int64_t target_stage) const {
  return target_ == nullptr ||
         target_->stages()[static_cast<size_t>(target_stage)].Find(name) != nullptr;
}

bool ConversionRule::InSource(std::string_view name, int64_t target_stage) const {
  if (source_ == nullptr) return true;
  if (!source_->Contains(name)) return false;
  return target_ == nullptr || InTarget(name, target_stage) || !target_->Contains(name);
}

std::vector<int64_t> ConversionRule::NeededSourceStages(int64_t stage) const {
  if (source_ == nullptr) return {0};
  std::vector<int64_t> needed;
  for (size_t s = 0; s < source_->stages().size(); ++s) {
    const auto& layouts = source_->stages()[s];
    if (std::any_of(layouts.begin(), layouts.end(),
                    [&](const Strategy::Entry& layout) { return InSource(layout.name, stage); })) {
      needed.push_back(static_cast<int64_t>(s));
    }
  }
  return needed;
}

ConversionRule::Fate ConversionRule::FateOf(std::string_view name, int64_t stage) const {
  // As InSource, but each strategy is asked once for the name.
  const bool in_target = InTarget(name, stage);
  const bool elsewhere_in_target = !in_target && target_->Contains(name);
  const bool source_has = source_ == nullptr || source_->Contains(name);
  const bool in_source = source_has && (source_ == nullptr || !elsewhere_in_target);
  if (in_source && in_target) return Fate::kConvert;
  const bool source_drops = source_ == nullptr || (source_has && !in_source);
  const bool target_drops = target_ == nullptr || elsewhere_in_target;
  return source_drops && target_drops ? Fate::kDrop : Fate::kCopy;
}

int64_t ConversionRule::LowestSourceStage(std::string_view name) const {
  return source_->LowestStage(name).value_or(0);
}

bool ConversionRule::Unmatched(std::string_view name) const {
  return source_ != nullptr && target_ != nullptr &&
         source_->Contains(name) != target_->Contains(name);
}

std::string SwapHint(const ConversionRule& rule, int64_t first, int64_t last, uint64_t count) {
  if (rule.source() == nullptr || rule.target() == nullptr) return {};
  const int64_t ranks = rule.target_ranks();
  const bool fits = first == 0 && last == ranks - 1 && static_cast<int64_t>(count) == ranks;
  if (!fits) return {};
  return fmt::format(
      "the target strategy {} is for just the {} rank{} that {} there: are the two "
      "strategies swapped?",
      Escape(rule.target()->path()), ranks, ranks == 1 ? "" : "s", ranks == 1 ? "is" : "are");
}

}  // namespace reshard
