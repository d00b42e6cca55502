// FindDamage: a target folder, held against its own manifests.
//
// One call starts and joins the threads that share the files. Nothing is written.
#ifndef RESHARD_SRC_VERIFY_FIND_DAMAGE_H_
#define RESHARD_SRC_VERIFY_FIND_DAMAGE_H_

#include <memory>

#include "reshard/compare.h"
#include "reshard/encryption.h"
#include "reshard/status.h"
#include "src/io/shared_work.h"
#include "src/verify/stored_set.h"

namespace reshard {

// Compares all files that the manifests list; work.progress learns of set.bytes() bytes. `key` is
// that of encrypted files, or null. Errors: kUnsupported for these without it; kChanged when files
// changed meanwhile; kIo; kCancelled.
Result<DamageReport> FindDamage(const ManifestSet& set,
                                const std::shared_ptr<const EncryptionKey>& key,
                                const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_FIND_DAMAGE_H_
