// Whether the names in the files are those of the strategies.
//
// A tensor of several elements that a strategy of several devices has no layout for is *unmatched*:
// it is copied as if one rank had all of it, as MindSpore does. Such tensors are ordinary: an
// inference strategy has no optimizer states. These checks find those that are unmatched because
// the names do not fit. Pure; any thread.
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

// How conversions allow what CheckNames refuses.
inline constexpr std::string_view kUnmatchedAllowed =
    "`unmatched=copy` converts anyway, `exclude` leaves parameters out";

// Takes what was planned for the target ranks `ranks`: `findings`, unmatched parameters copied.
// Fails with kMismatch, the message ended by `way_out`, if one substitution makes at least half of
// the unmatched names those of a strategy that no file has. It replaces, adds or removes words of a
// name, such as attn for attention; numbers in it stay. Copies PREFIX.NAME of a parameter, such as
// optimizer states, do not count. A replaced part that pairs a single name counts only if it is one
// component of three or more, not the last one.
Status CheckNames(const ConversionRule& rule, std::span<const int64_t> ranks,
                  const PlanFindings& findings, std::string_view way_out);

// Returns the unmatched tensors of two dimensions or more, copies and accumulated gradients left
// out, sorted. If ranks hold different ones, the strategy is most likely another checkpoint's.
std::vector<std::string> UnmatchedMatrices(const ConversionRule& rule,
                                           std::span<const int64_t> ranks,
                                           const PlanFindings& findings);

// Takes out of `findings` the copies PREFIX.NAME of parameters that have a layout, and returns a
// warning about those of each strategy.
std::vector<Warning> TakeCopies(const ConversionRule& rule, std::span<const int64_t> ranks,
                                PlanFindings& findings);

// Whether there is a tensor that is unmatched: where none is, CheckNames finds nothing.
bool HasUnmatched(const ConversionRule& rule, std::span<const SourceTensor> tensors);

// As CheckNames, where each parameter of a checkpoint that is only read has been noted once, in
// full.
Status CheckNames(const ConversionRule& rule, const PlanFindings& findings);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_UNMATCHED_NAMES_H_
