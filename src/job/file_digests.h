// Reads target files back for their digests, and for the CRC-32 that a file states.
//
// No state. Any thread. Errors of all functions: as SourceFiles; kCancelled.
#ifndef RESHARD_SRC_JOB_FILE_DIGESTS_H_
#define RESHARD_SRC_JOB_FILE_DIGESTS_H_

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "format/container/container.h"
#include "reshard/encryption.h"
#include "reshard/status.h"
#include "src/record/part_record.h"

namespace reshard {

// Reads the whole file at `path` and compares its size and its digest, 32 hexadecimal digits. With
// `key`, the decrypted bytes count. `key` may be null.
Result<bool> IsAsRecorded(const std::string& path, uint64_t expected_size,
                          const std::string& expected_digest,
                          const std::shared_ptr<const EncryptionKey>& key,
                          const std::stop_token& stop);

// Reads the whole file at `path` in its order.
Result<FileDigests> DigestFile(const std::string& path, const std::stop_token& stop);

// The CRC-32 of a file that was encoded with FileMetadata::states_crc.
struct CrcOfFile {
  CrcText text;         // to be written over the number in the file
  FileDigests without;  // of the file with the number 0
  FileDigests with;     // of the file with this one
};

// Reads the whole file at `path`, twice if it states its CRC before its contents. The number in its
// place does not matter. More errors: kCorrupt for a file that has no place for a CRC.
Result<CrcOfFile> FindCrc(const std::string& path, const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_FILE_DIGESTS_H_
