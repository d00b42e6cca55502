// XXH3_128bits_update of libxxhash's header, compiled for a target. The including source sets
// XXH_VECTOR and the target of the functions below. They have internal linkage, so that each source
// has its own.
#ifndef RESHARD_SRC_DIGEST_XXH3_LOOP_H_
#define RESHARD_SRC_DIGEST_XXH3_LOOP_H_

// NOLINTNEXTLINE(readability-identifier-naming): the library reads it.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>

namespace reshard {
namespace {

inline void UpdateXxh3(void* state, const void* bytes, size_t size) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state), bytes, size);
}

}  // namespace
}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_XXH3_LOOP_H_
