// The fingerprint of a plan: equal for runs that would write the same files from the same sources,
// whichever of the target ranks each of them does.
#ifndef RESHARD_SRC_CONVERT_PLAN_FINGERPRINT_H_
#define RESHARD_SRC_CONVERT_PLAN_FINGERPRINT_H_

#include <string>
#include <vector>

#include "src/convert/conversion_spec.h"
#include "src/convert/opened_source.h"

namespace reshard {

// Returns 32 hexadecimal digits over the strategies' layouts, the training step where file names
// tell it, and what else changes the outputs. Which ranks' files are there does not count:
// hosts that each hold the files that their target ranks need do one plan together.
std::string PlanFingerprint(const OpenedSource& source, const std::string& prefix,
                            const Selection& selection);

// Returns the XXH3-128 digest of a strategy's layouts, whatever files they came from.
std::string StrategyDigest(const Strategy& strategy);

// Returns a line for each chosen file that tells whether it is still the same one on this host.
std::vector<std::string> IdentityLines(const OpenedSource& source);

// As IdentityLines, but equal on all hosts that share the file, which call its file system and the
// file by numbers of their own.
std::vector<std::string> SharedIdentityLines(const OpenedSource& source);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_PLAN_FINGERPRINT_H_
