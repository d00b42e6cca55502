#include "src/write/copy_proof.h"

#include "src/base/status_macros.h"

namespace reshard {

Status Prove(const TargetDigest& digest, const SourceFiles& sources) {
  Status proof = digest.Compare();
  if (!proof.ok()) RESHARD_RETURN_IF_ERROR(sources.VerifyUnchanged());
  return proof;
}

}  // namespace reshard
