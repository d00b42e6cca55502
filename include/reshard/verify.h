// Verify compares the files of a finished target folder with its manifests. VerifyAgainst compares
// the outputs of a conversion with its sources, without a manifest. Another program, such as
// MindSpore, may have written these outputs.
//
// Any number of calls may run at once; each uses its own threads and state. They do not print, and
// write no files.
//
// Implemented in src/verify (the reports, plain values) and src/api.
#ifndef RESHARD_VERIFY_H_
#define RESHARD_VERIFY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reshard/compare.h"
#include "reshard/encryption.h"
#include "reshard/findings.h"
#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {
inline namespace v0_1 {

// Reads every file that the manifests of the folder `target` list. Compares its size, its digest
// and the digests of its blocks. Compares part records and manifests with their digests. Other
// files are ignored. If files are damaged, the call succeeds and the report lists the damage. `key`
// is for encrypted files.
// Errors:
//   kNotFound: there is no manifest, so the set is unfinished
//   kUnsupported: a manifest of another version, or an encrypted file without its key
//   kChanged: a file changed meanwhile
//   kIo, kCancelled
Result<DamageReport> Verify(const std::string& target,
                            const std::shared_ptr<const EncryptionKey>& key = nullptr,
                            const RunOptions& run = {});

struct AgainstReport : Findings {
  // A target file that the sources contradict.
  struct FileDifference {
    // The first byte of a target file that the sources contradict.
    struct First {
      uint64_t offset = 0;  // in the target file
      // The parameter that owns the byte; "" in the header of an empty tensor.
      std::string parameter;
      bool in_header = false;
      // If the byte is content: its place in the shard, and in the source.
      uint64_t shard_offset = 0;  // in the row-major bytes of the target's shard
      std::string source_path;
      uint64_t source_offset = 0;
      uint8_t expected = 0;
      uint8_t found = 0;
    };

    std::string path;  // relative to the target folder
    uint64_t expected_size = 0;
    std::optional<uint64_t> found_size;   // no value: the file does not exist
    std::optional<First> first;           // within the smaller size
    uint64_t differing_bytes = 0;         // likewise
    std::vector<std::string> parameters;  // the first 20 that differ, in file order
    uint64_t parameter_count = 0;         // of all that differ
  };

  uint64_t files = 0;                       // target files expected
  uint64_t bytes = 0;                       // their planned sizes
  std::vector<std::string> from_origin;     // options that were taken from origin.jsonl
  std::vector<FileDifference> differences;  // by rank
  ReplicaReport replicas;                   // of the source stages that these files are made from

  bool equal() const { return differences.empty() && replicas.differing == 0; }
};

// Plans a conversion and compares the size and every byte of each file in its target folder with
// the plan. Members of `spec` with default values are taken from the last run in the folder's
// origin.jsonl, except `source.path` and `source.files`. Also compares the replicas of the sources.
// Source files with a CRC trailer are checked first. Errors: as Plan, and
//   kCorrupt: a file does not fit its trailer
//   kNotFound: all target files are missing
//   kChanged: sources or targets changed meanwhile
//   kCancelled
Result<AgainstReport> VerifyAgainst(const ConversionSpec& spec, const RunOptions& run = {});

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_VERIFY_H_
