// FindDamage: compares a target folder with its own manifests.
//
// One call starts and joins the threads that share the files. No file is written.
#ifndef RESHARD_SRC_VERIFY_FIND_DAMAGE_H_
#define RESHARD_SRC_VERIFY_FIND_DAMAGE_H_

#include <memory>

#include "reshard/compare.h"
#include "reshard/encryption.h"
#include "reshard/status.h"
#include "src/io/shared_work.h"
#include "src/verify/stored_set.h"

namespace reshard {

// Compares all files that the manifests list. work.progress counts up to set.bytes(). `key`
// decrypts encrypted files, and may be null. Errors: kUnsupported for an encrypted file without a
// key; kChanged if files changed meanwhile; kIo; kCancelled.
Result<DamageReport> FindDamage(const ManifestSet& set,
                                const std::shared_ptr<const EncryptionKey>& key,
                                const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_FIND_DAMAGE_H_
