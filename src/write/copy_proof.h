// The proof that a target file holds what its sources held.
#ifndef RESHARD_SRC_WRITE_COPY_PROOF_H_
#define RESHARD_SRC_WRITE_COPY_PROOF_H_

#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/write/target_digest.h"

namespace reshard {

// Compares what was taken with what was written. A source that somebody writes to may have been
// read twice with different bytes: then that is what is said. Errors: those of
// TargetDigest::Compare; kChanged.
Status Prove(const TargetDigest& digest, const SourceFiles& sources);

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_COPY_PROOF_H_
