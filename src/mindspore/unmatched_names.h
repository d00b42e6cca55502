// Checks that the names in the files are those of the strategies.
//
// A tensor of several elements is *unmatched* if a strategy of several devices has no layout for
// it. It is copied as if one rank had the full tensor, as MindSpore does. Such tensors are
// ordinary: an inference strategy has no optimizer states. These checks find tensors that are
// unmatched because the names do not fit. Pure; any thread.
#ifndef RESHARD_SRC_MINDSPORE_UNMATCHED_NAMES_H_
#define RESHARD_SRC_MINDSPORE_UNMATCHED_NAMES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/mindspore/conversion_rule.h"
#include "src/plan/plan_findings.h"
#include "src/source/placement.h"

namespace reshard {

// The ways to allow conversions that CheckNames refuses.
inline constexpr std::string_view kUnmatchedAllowed =
    "`unmatched=copy` converts anyway, `exclude` leaves parameters out";

// Takes the plan for the target ranks `ranks`: `findings`, with unmatched parameters copied. Fails
// with kMismatch if a single substitution turns at least half of the unmatched names into names of
// a strategy that no file has. `way_out` ends the message.
//
// A substitution replaces, adds or removes words of a name, such as attn for attention; its numbers
// stay. Copies PREFIX.NAME of a parameter, such as optimizer states, do not count. If a replacement
// matches a single name, it counts only if it is one component of three or more, and not the last
// one.
Status CheckNames(const ConversionRule& rule, std::span<const int64_t> ranks,
                  const PlanFindings& findings, std::string_view way_out);

// Returns the unmatched tensors of two dimensions or more, copies and accumulated gradients left
// out, sorted. If ranks hold different ones, the strategy is most likely another checkpoint's.
std::vector<std::string> UnmatchedMatrices(const ConversionRule& rule,
                                           std::span<const int64_t> ranks,
                                           const PlanFindings& findings);

// Removes the copies PREFIX.NAME of parameters with a layout from `findings`, and returns a warning
// about them for each strategy.
std::vector<Warning> TakeCopies(const ConversionRule& rule, std::span<const int64_t> ranks,
                                PlanFindings& findings);

// Whether there is an unmatched tensor; without any, CheckNames has no errors.
bool HasUnmatched(const ConversionRule& rule, std::span<const SourceTensor> tensors);

// As CheckNames, for a checkpoint that is only read. Each parameter has been noted once, in full.
Status CheckNames(const ConversionRule& rule, const PlanFindings& findings);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_UNMATCHED_NAMES_H_
