// SourceDigests: the digests of what one target file took from each of its sources.
//
// One thread at a time.
#ifndef RESHARD_SRC_WRITE_SOURCE_DIGESTS_H_
#define RESHARD_SRC_WRITE_SOURCE_DIGESTS_H_

#include <cstdint>
#include <map>
#include <string>

#include "src/digest/digest128.h"
#include "src/record/part_record.h"
#include "src/record/source_digest.h"

namespace reshard {

class SourceDigests {
 public:
  // Adds what `source`, by whatever number the caller gives it, gave to a Value: the sum of its
  // logical digests. In the order of the target file, where the Values of a parameter lie side by
  // side.
  void Add(const RecordedValue& value, uint64_t source, const Digest128& sum);

  // After the last Value. Returns the digest of what was taken from `source`, if only nothing.
  std::string HexDigest(uint64_t source);

 private:
  void EndParameter();

  RecordedValue parameter_;             // the last one added
  std::map<uint64_t, Digest128> sums_;  // of it, by source
  std::map<uint64_t, SourceDigest> digests_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_SOURCE_DIGESTS_H_
