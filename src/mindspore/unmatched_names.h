// Whether the names in the files are those of the strategies.
//
// A tensor of several elements that a strategy of several devices has no layout for is *unmatched*:
// it is copied as if one rank had all of it. Few such tensors are ordinary, MindSpore copies them
// too; these checks find those that are there because the names do not fit. Pure; any thread.
#ifndef RESHARD_SRC_MINDSPORE_UNMATCHED_NAMES_H_
#define RESHARD_SRC_MINDSPORE_UNMATCHED_NAMES_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "reshard/status.h"
#include "src/mindspore/conversion_rule.h"
#include "src/plan/plan_findings.h"
#include "src/source/placement.h"

namespace reshard {

// Takes what was planned for the target ranks `ranks`: `findings`, unmatched parameters copied, and
// the `bytes` of content that are copied. Fails with kMismatch, the message ended by `way_out`,
// - where one change of prefix, such as layers. and model.layers., makes at least half of the
//   unmatched names those of a strategy that no file has (an optimizer's prefix, or a first
//   component that both have, may stand before it);
// - where unmatched tensors hold more than half of the bytes, and the strategy has none of the
//   files' names, or they are ten or more.
inline constexpr std::string_view kUnmatchedAllowed =
    "`unmatched=copy` converts anyway, `exclude` leaves parameters out";
Status CheckNames(const ConversionRule& rule, std::span<const int64_t> ranks,
                  const PlanFindings& findings, uint64_t bytes, std::string_view way_out);

// Whether there is a tensor that is unmatched: where none is, CheckNames finds nothing.
bool HasUnmatched(const ConversionRule& rule, std::span<const SourceTensor> tensors);

// As CheckNames, where each parameter of a checkpoint that is only read has been noted once, in
// full.
Status CheckNames(const ConversionRule& rule, const PlanFindings& findings);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_UNMATCHED_NAMES_H_
