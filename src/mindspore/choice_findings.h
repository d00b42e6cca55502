// ChoiceFindings: the results of a ParameterChoice, once everything is planned.
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

// Returns them from the findings of all plans with `choice`. Parameters are those in the examined
// files, and the names in a strategy of `rule`. Errors: kInvalidArgument if no rank gets a
// parameter.
Result<ChoiceFindings> FindingsOf(const ParameterChoice& choice, const ConversionRule& rule,
                                  const PlanFindings& findings);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_CHOICE_FINDINGS_H_
