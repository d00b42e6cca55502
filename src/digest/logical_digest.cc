#include "src/digest/logical_digest.h"

#include <algorithm>

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

// Runs from this many rings on are folded: closing the ring costs about as much as one of them.
constexpr uint64_t kMinRings = 2;

}  // namespace

LogicalHasher::LogicalHasher() : LogicalHasher(*LogicalKernels().front()) {}

LogicalHasher::LogicalHasher(const LogicalKernel& kernel) : kernel_(&kernel) {}

// Here and below, bytes are read, which may fault, in calls of the kernel only, between which the
// hasher is whole.
void LogicalHasher::Add(Digest128& sum, const std::byte* bytes, uint64_t size, uint64_t position) {
  if (size >= kMinRings * kernel_->ring_bytes) return AddLong(sum, bytes, size, position);
  const Digest128 value = kernel_->reduce(bytes, size);
  sum ^= kernel_->multiply(Power(position), value);
}

void LogicalHasher::AddLong(Digest128& sum, const std::byte* bytes, uint64_t size,
                            uint64_t position) {
  alignas(kRingAlignment) std::array<std::byte, kMaxRingBytes> ring;
  const uint64_t rings = size / kernel_->ring_bytes;
  const uint64_t folded = rings * kernel_->ring_bytes;
  kernel_->fold_ring(bytes, rings, ring.data());
  // The ring lies where the bytes that were not folded do.
  for (uint64_t i = 0; i < size - folded; ++i) ring[i] ^= bytes[folded + i];
  const Digest128 value = kernel_->reduce(ring.data(), kernel_->ring_bytes);
  sum ^= kernel_->multiply(Power(position + folded), value);
}

void LogicalHasher::AddRuns(Digest128& sum, const LogicalRuns& runs) {
  if (runs.size >= kMinRings * kernel_->ring_bytes) {
    for (uint64_t i = 0; i < runs.count; ++i) {
      AddLong(sum, runs.bytes + i * runs.bytes_stride, runs.size,
              runs.position + i * runs.position_stride);
    }
    return;
  }
  for (uint64_t i = 0; i < runs.count;) {
    const size_t count = std::min<uint64_t>(runs.count - i, run_powers_.size());
    const Digest128 value =
        kernel_->reduce_runs(runs.bytes + i * runs.bytes_stride, runs.size, runs.bytes_stride,
                             RunPowers(runs.position_stride, count), count);
    sum ^= kernel_->multiply(Power(runs.position + i * runs.position_stride), value);
    i += count;
  }
}

Digest128 LogicalHasher::Power(uint64_t position) {
  if (position != position_) {
    power_ = kernel_->multiply(power_, StridePower(position - position_));
    position_ = position;
  }
  return power_;
}

Digest128 LogicalHasher::StridePower(uint64_t distance) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  Stride& stride = strides_[distance * kGolden >> 60];
  if (stride.distance == distance) return stride.power;

  const bool backward = distance >> 63 != 0;
  const BitPowers& powers = backward ? kBackward : kForward;
  Digest128 product = kFieldOne;
  uint64_t bits = backward ? ~distance + 1 : distance;
  for (size_t k = 0; bits != 0; ++k, bits >>= 1) {
    if ((bits & 1) != 0) product = kernel_->multiply(product, powers[k]);
  }
  stride = {.distance = distance, .power = product};
  return product;
}

const Digest128* LogicalHasher::RunPowers(uint64_t stride, size_t count) {
  if (stride != run_stride_) {
    run_stride_ = stride;
    run_count_ = 1;
  }
  if (run_count_ < count) {
    const Digest128 power = StridePower(stride);
    for (; run_count_ < count; ++run_count_) {
      run_powers_[run_count_] = kernel_->multiply(run_powers_[run_count_ - 1], power);
    }
  }
  return run_powers_.data();
}

}  // namespace reshard
