#include "src/digest/xxh3.h"

#ifdef RESHARD_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include <new>

namespace reshard {
namespace {

void UpdateState(XXH3_state_t* state, const void* bytes, size_t size) {
#ifdef RESHARD_XXH_DISPATCH
  XXH3_128bits_update_dispatch(state, bytes, size);
#else
  XXH3_128bits_update(state, bytes, size);
#endif
}

}  // namespace

void Xxh3::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

Xxh3::Xxh3() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  Reset();
}

void Xxh3::Update(std::span<const std::byte> bytes) {
  UpdateState(state_.get(), bytes.data(), bytes.size());
}

void Xxh3::Update(std::string_view bytes) { UpdateState(state_.get(), bytes.data(), bytes.size()); }

Digest128 Xxh3::Digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return {.low = hash.low64, .high = hash.high64};
}

std::string Xxh3::HexDigest() const { return ToHex(Digest()); }

void Xxh3::Reset() { XXH3_128bits_reset(state_.get()); }

}  // namespace reshard
