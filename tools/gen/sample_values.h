// SampleValues: the content of a sample parameter, computed and never stored.
//
// A value is a function of the parameter's name, the element's index in the full tensor and the
// dtype. So any shard of any layout can be made, or checked, by itself. Immutable: any number of
// threads may use one.
#ifndef RESHARD_TOOLS_GEN_SAMPLE_VALUES_H_
#define RESHARD_TOOLS_GEN_SAMPLE_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "reshard/tensor.h"

namespace reshard {

class SampleValues {
 public:
  // `dtype` is Float32, Float16 or BFloat16. Magnitudes lie in [2^-8, 1). Values of adam_v., a mean
  // of squares, are positive.
  SampleValues(std::string_view name, DType dtype);

  // Fills `out` with the bytes of the full tensor from `offset` on (row-major, little-endian).
  void Fill(uint64_t offset, std::span<std::byte> out) const;

 private:
  // The bytes [8 * index, 8 * index + 8) of the full tensor.
  uint64_t Word(uint64_t index) const;

  uint64_t seed_;
  uint64_t mask_;  // of the random bits: sign, the three lowest bits of the exponent, mantissa
  uint64_t base_;  // the least exponent
};

}  // namespace reshard

#endif  // RESHARD_TOOLS_GEN_SAMPLE_VALUES_H_
