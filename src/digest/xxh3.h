// Xxh3: the 128-bit XXH3 digest of a stream of bytes. It guards against accidents, not malice.
//
// Move-only. One thread at a time.
#ifndef RESHARD_SRC_DIGEST_XXH3_H_
#define RESHARD_SRC_DIGEST_XXH3_H_

#include <memory>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace reshard {

class Xxh3 {
 public:
  Xxh3();

  void Update(std::string_view bytes);
  // Returns the digest of all bytes so far as 32 hexadecimal digits, the form of `xxhsum -H128`.
  std::string HexDigest() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_DIGEST_XXH3_H_
