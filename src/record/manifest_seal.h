// The end of a manifest: its last member, the digest of all bytes before it.
#ifndef RESHARD_SRC_RECORD_MANIFEST_SEAL_H_
#define RESHARD_SRC_RECORD_MANIFEST_SEAL_H_

#include <string>
#include <string_view>

#include "src/digest/xxh3.h"

namespace reshard {

inline constexpr std::string_view kSealBegin = ",\n  \"digest\": \"";
inline constexpr std::string_view kSealEnd = "\"\n}\n";

// Returns what closes a manifest that begins with `bytes`.
inline std::string ManifestSeal(std::string_view bytes) {
  Xxh3 digest;
  digest.Update(bytes);
  return std::string(kSealBegin) + digest.HexDigest() + std::string(kSealEnd);
}

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_MANIFEST_SEAL_H_
