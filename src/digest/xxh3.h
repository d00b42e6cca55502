// Xxh3: the 128-bit XXH3 digest of a stream of bytes. It guards against accidents, not malice.
//
// Runs on the widest vectors that the processor has, chosen at run time.
// Move-only. One thread at a time.
#ifndef RESHARD_SRC_DIGEST_XXH3_H_
#define RESHARD_SRC_DIGEST_XXH3_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "src/digest/digest128.h"

struct XXH3_state_s;

namespace reshard {

class Xxh3 {
 public:
  Xxh3();

  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view bytes);
  // The digest of all bytes so far; more may follow.
  Digest128 Digest() const;
  // Its form in `xxhsum -H128`: 32 hexadecimal digits.
  std::string HexDigest() const;
  // Forgets all bytes.
  void Reset();

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_XXH3_H_
