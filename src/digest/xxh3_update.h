// XXH3_128bits_update of libxxhash, compiled for several kinds of processors.
//
// The library chooses its vectors at compile time, except in Debian's shared library. So the useful
// variants are compiled here from its header, for a choice at run time. All give the same results.
#ifndef RESHARD_SRC_DIGEST_XXH3_UPDATE_H_
#define RESHARD_SRC_DIGEST_XXH3_UPDATE_H_

#include <cstddef>
#include <span>

namespace reshard {

struct Xxh3Kernel {
  const char* name;
  // `state` is an XXH3_state_t of libxxhash. Keeps no state itself: any thread may call it.
  void (*update)(void* state, const void* bytes, size_t size);
};

// The kernels that this processor can run, the fastest first; the last is the library's.
std::span<const Xxh3Kernel* const> Xxh3Kernels();

extern const Xxh3Kernel kLibraryXxh3Kernel;
#if defined(__x86_64__)
extern const Xxh3Kernel kAvx2Xxh3Kernel;
extern const Xxh3Kernel kAvx512Xxh3Kernel;
#endif

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_XXH3_UPDATE_H_
