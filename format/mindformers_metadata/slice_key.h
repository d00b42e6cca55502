// The keys of storage_data in metadata.json of MindFormers 2.0 (SPEC.md): Python's text of a name
// and the number of a slice.
//
// Pure; any thread.
#ifndef RESHARD_FORMAT_MINDFORMERS_METADATA_SLICE_KEY_H_
#define RESHARD_FORMAT_MINDFORMERS_METADATA_SLICE_KEY_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace reshard {

// Returns Python's str((name, (slice,))): "('w', (3,))". `name` is UTF-8.
std::string SliceKey(std::string_view name, int64_t slice);

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDFORMERS_METADATA_SLICE_KEY_H_
