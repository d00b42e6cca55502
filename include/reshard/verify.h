// Verify compares the files of a finished target folder with its manifests. VerifyAgainst compares
// the outputs of a conversion with its sources, without a manifest, whoever wrote them: MindSpore,
// for example.
//
// Any number of calls may run at once; each uses its own threads and state. They print nothing and
// write nothing.
//
// Implemented in src/api.
#ifndef RESHARD_VERIFY_H_
#define RESHARD_VERIFY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/compare.h"
#include "reshard/findings.h"
#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {
inline namespace v0_1 {

struct VerifyOptions {
  std::string target;                             // a folder that Convert has finished
  std::shared_ptr<const EncryptionKey> key = {};  // of its files, where they are encrypted
  RunOptions run = {};
};

// Reads every file that the folder's manifests list, and compares its size, its digest and those of
// its blocks; part records and manifests are compared with their digests. Other files are ignored.
// Damage is no error: the report says what is wrong.
// Errors: kNotFound when there is no manifest, so that the set is unfinished; kUnsupported for
// manifests of another version, and for encrypted files without their key; kChanged when files
// changed meanwhile; kIo; kCancelled.
Result<DamageReport> Verify(const VerifyOptions& options);

// A conversion, and the folder to compare with what it gives. Options that have their usual values
// are those of the last run that the folder's origin.jsonl tells of, but for `source.path` and
// `source.files`.
struct AgainstOptions : ConversionSpec {
  RunOptions run;
};

struct AgainstReport : Findings {
  uint64_t files = 0;                       // target files expected
  uint64_t bytes = 0;                       // their planned sizes
  std::vector<std::string> from_origin;     // options that were taken from origin.jsonl
  std::vector<FileDifference> differences;  // by rank
  ReplicaReport replicas;                   // of the source stages that these files are made from

  bool equal() const { return differences.empty() && replicas.differing == 0; }
};

// Plans the conversion and compares each target file, its size and every byte, with the plan. Also
// compares the replicas of the sources. Source files with a CRC trailer are checked first.
// Errors: as Plan; kCorrupt for a file that its trailer does not fit; kNotFound when none of the
// target files is there; kChanged when sources or targets changed meanwhile; kCancelled.
Result<AgainstReport> VerifyAgainst(const AgainstOptions& options);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_VERIFY_H_
