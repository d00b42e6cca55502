// ReferenceCheck: full shapes, held against those of a full checkpoint of the same model.
#ifndef RESHARD_SRC_CONVERT_REFERENCE_CHECK_H_
#define RESHARD_SRC_CONVERT_REFERENCE_CHECK_H_

#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/plan/plan_notes.h"

namespace reshard {

// Compares dtype and full shape of everything that `notes` say is written with those in `file`,
// which holds full tensors under the names of the source. Only its headers are read. Adds a warning
// where it does not have all of them. Errors: kMismatch, naming the first 20 that differ; those of
// ReadFileTable.
Status CheckReference(const std::string& file, const PlanNotes& notes,
                      std::vector<std::string>& warnings);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_REFERENCE_CHECK_H_
