// What manifests and part records may hold. Encoders refuse the same as parsers: each function
// returns why not, or nothing. Pure; any thread.
#ifndef RESHARD_SRC_RECORD_MANIFEST_CHECK_H_
#define RESHARD_SRC_RECORD_MANIFEST_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"

namespace reshard {

inline constexpr uint64_t kManifestSchema = 2;
inline constexpr size_t kDigestDigits = 32;  // of a digest in hexadecimal
inline constexpr std::string_view kManifestTool = "reshard";

// What to do about a damaged manifest or record.
inline constexpr const char* kManifestAdvice = "restore it from a copy, or convert again";

using Fault = std::optional<std::string>;

Fault FingerprintFault(std::string_view fingerprint);
Fault DigestFault(std::string_view digest);  // an empty one is a fault
// Not absolute, no empty component, none that is "." or "..", not too long.
Fault RelativePathFault(std::string_view path);
Fault TargetPathFault(std::string_view path);

// `previous` is the path of the entry before, empty for the first.
Fault FileFault(const ManifestFile& file, std::string_view previous);
Fault SourceFault(const ManifestSource& source, std::string_view previous);

// The rules that tie the members of a head to each other; each of its sources has passed
// SourceFault.
Fault HeadFault(const PartRecordHead& head);
// `end` is the first byte of the target file that no earlier Value has.
Fault ValueFault(const RecordedValue& value, uint64_t end, uint64_t target_size, bool has_digests);

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_MANIFEST_CHECK_H_
