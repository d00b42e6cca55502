#include "src/write/source_digests.h"

namespace reshard {

void SourceDigests::Add(const RecordedValue& value, uint64_t source, const Digest128& sum) {
  if (value.name != parameter_.name) {
    EndParameter();
    parameter_ = value;
  }
  sums_[source] ^= sum;
}

std::string SourceDigests::HexDigest(uint64_t source) {
  EndParameter();
  return digests_[source].HexDigest();
}

void SourceDigests::EndParameter() {
  for (const auto& [source, sum] : sums_) {
    digests_[source].Add(parameter_.name, parameter_.dtype, parameter_.full_shape, ToHex(sum));
  }
  sums_.clear();
}

}  // namespace reshard
