// The logical digest in plain C++. x^128 has so few terms that no table is needed for long runs.
#include "src/digest/fold_ring.h"
#include "src/digest/gf128.h"
#include "src/digest/logical_kernel.h"

namespace reshard {
namespace {

uint64_t LoadLittleEndian(const std::byte* bytes, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  return value;
}

Digest128 LoadWord(const std::byte* bytes) {
  return {.low = LoadLittleEndian(bytes, 8), .high = LoadLittleEndian(bytes + 8, 8)};
}

Digest128 LoadPart(const std::byte* bytes, size_t size) {
  if (size <= 8) return {.low = LoadLittleEndian(bytes, size), .high = 0};
  return {.low = LoadLittleEndian(bytes, 8), .high = LoadLittleEndian(bytes + 8, size - 8)};
}

Digest128 Reduce(const std::byte* bytes, uint64_t size) {
  // By Horner's rule from the end.
  const std::byte* word = bytes + size - size % 16;
  Digest128 sum = LoadPart(word, size % 16);
  while (word != bytes) {
    word -= 16;
    sum = TimesX128(sum) ^ LoadWord(word);
  }
  return sum;
}

Digest128 ReduceRuns(const std::byte* bytes, uint64_t size, uint64_t stride,
                     const Digest128* powers, size_t count) {
  Digest128 sum;
  for (size_t i = 0; i < count; ++i) {
    // The shorter factor second: the multiplication takes as many steps as it has digits.
    sum ^= FieldMultiply(powers[i], Reduce(bytes + i * stride, size));
  }
  return sum;
}

}  // namespace

const LogicalKernel kPortableLogicalKernel{.name = "portable",
                                           .multiply = FieldMultiply,
                                           .reduce = Reduce,
                                           .reduce_runs = ReduceRuns,
                                           .fold_ring = FoldRing<16>,
                                           .ring_bytes = kRingUnits * 16};

}  // namespace reshard
