// ChoiceFindings: what a ParameterChoice came to, once everything is planned.
#ifndef RESHARD_SRC_MINDSPORE_CHOICE_FINDINGS_H_
#define RESHARD_SRC_MINDSPORE_CHOICE_FINDINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/mindspore/conversion_rule.h"
#include "src/plan/parameter_choice.h"
#include "src/plan/plan_findings.h"

namespace reshard {

struct ChoiceFindings {
  std::vector<Warning> warnings;  // patterns and renames that no parameter fits
  uint64_t left_out = 0;          // parameters
  uint64_t renamed = 0;
};

// Returns them from the findings of all that was planned with `choice`. A parameter is what the
// files that were looked at hold, or a strategy of `rule` names. Errors: kInvalidArgument when
// nothing is left to be written, on no rank.
Result<ChoiceFindings> FindingsOf(const ParameterChoice& choice, const ConversionRule& rule,
                                  const PlanFindings& findings);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_CHOICE_FINDINGS_H_
