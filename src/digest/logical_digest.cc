#include "src/digest/logical_digest.h"

#include "src/digest/gf128.h"

namespace reshard {
namespace {

using BitPowers = std::array<Digest128, 64>;

// base^(8 * 2^k) for each k.
constexpr BitPowers MakeBitPowers(Digest128 base) {
  for (int i = 0; i < 3; ++i) base = FieldMultiply(base, base);
  BitPowers powers{};
  for (Digest128& power : powers) {
    power = base;
    base = FieldMultiply(base, base);
  }
  return powers;
}

constexpr BitPowers kForward = MakeBitPowers({.low = 2, .high = 0});
constexpr BitPowers kBackward = MakeBitPowers(kFieldInverseX);

// x^(8 distance); a distance of 2^63 and more is a negative one.
Digest128 StridePower(const LogicalKernel& kernel, uint64_t distance) {
  const bool backward = distance >> 63 != 0;
  const BitPowers& powers = backward ? kBackward : kForward;
  Digest128 product = kFieldOne;
  uint64_t bits = backward ? ~distance + 1 : distance;
  for (size_t k = 0; bits != 0; ++k, bits >>= 1) {
    if ((bits & 1) != 0) product = kernel.multiply(product, powers[k]);
  }
  return product;
}

}  // namespace

LogicalHasher::LogicalHasher() : LogicalHasher(*LogicalKernels().front()) {}

LogicalHasher::LogicalHasher(const LogicalKernel& kernel) : kernel_(&kernel) {}

void LogicalHasher::Add(Digest128& sum, const std::byte* bytes, uint64_t size, uint64_t position) {
  // The bytes are read, which may fault, before anything of the hasher changes.
  const Digest128 value = kernel_->reduce(bytes, size);
  sum ^= kernel_->multiply(value, Power(position));
}

void LogicalHasher::AddRuns(Digest128& sum, const LogicalRuns& runs) {
  for (uint64_t i = 0; i < runs.count; ++i) {
    Add(sum, runs.bytes + i * runs.bytes_stride, runs.size,
        runs.position + i * runs.position_stride);
  }
}

Digest128 LogicalHasher::Power(uint64_t position) {
  const uint64_t distance = position - position_;
  if (distance == 0) return power_;
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  Stride& stride = strides_[distance * kGolden >> 60];
  if (stride.distance != distance) {
    stride = {.distance = distance, .power = StridePower(*kernel_, distance)};
  }
  power_ = kernel_->multiply(power_, stride.power);
  position_ = position;
  return power_;
}

}  // namespace reshard
