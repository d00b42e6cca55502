#include "src/digest/logical_digest.h"

#include <algorithm>
#include <tuple>

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

// Runs of this many rings are folded. Reducing the remaining bytes costs about as much as one ring.
constexpr uint64_t kMinRings = 2;

}  // namespace

LogicalHasher::LogicalHasher() : LogicalHasher(*LogicalKernels().front()) {}

LogicalHasher::LogicalHasher(const LogicalKernel& kernel) : kernel_(&kernel) {}

// Only calls of the kernel, and AddLong, read the bytes, which may fault. The hasher is in a valid
// state during these calls.
void LogicalHasher::Add(Digest128& sum, const std::byte* bytes, uint64_t size, uint64_t position) {
  if (size >= kMinRings * kernel_->ring_bytes) return AddLong(sum, bytes, size, position);
  AddAt(sum, {.bytes = bytes, .size = size, .stride = 0, .count = 1}, &kFieldOne, position);
}

void LogicalHasher::AddRuns(Digest128& sum, const LogicalRuns& runs) {
  if (runs.size >= kMinRings * kernel_->ring_bytes) {
    for (uint64_t i = 0; i < runs.count; ++i) {
      AddLong(sum, runs.bytes + i * runs.bytes_stride, runs.size,
              runs.position + i * runs.position_stride);
    }
    return;
  }
  constexpr uint64_t kMaxCount = std::tuple_size_v<decltype(RunPowers::powers)>;
  for (uint64_t i = 0; i < runs.count;) {
    const uint64_t count = std::min(runs.count - i, kMaxCount);
    AddAt(sum,
          {.bytes = runs.bytes + i * runs.bytes_stride,
           .size = runs.size,
           .stride = runs.bytes_stride,
           .count = count},
          PowersOfRuns(runs.position_stride, count), runs.position + i * runs.position_stride);
    i += count;
  }
}

void LogicalHasher::AddLong(Digest128& sum, const std::byte* bytes, uint64_t size,
                            uint64_t position) {
  alignas(kRingAlignment) std::array<std::byte, kMaxRingBytes> ring;
  const uint64_t rings = size / kernel_->ring_bytes;
  const uint64_t folded = rings * kernel_->ring_bytes;
  kernel_->fold_ring(bytes, rings, ring.data());
  // The ring has the position of the bytes that were not folded.
  for (uint64_t i = 0; i < size - folded; ++i) ring[i] ^= bytes[folded + i];
  AddAt(sum, {.bytes = ring.data(), .size = kernel_->ring_bytes, .stride = 0, .count = 1},
        &kFieldOne, position + folded);
}

void LogicalHasher::AddAt(Digest128& sum, const KernelRuns& runs, const Digest128* run_powers,
                          uint64_t position) {
  const Digest128& step = StepPower(position - position_);
  kernel_->add_runs(runs, run_powers, step, power_, sum);
  position_ = position;
}

const Digest128& LogicalHasher::StepPower(uint64_t distance) {
  for (const Step& step : steps_) {
    if (step.distance == distance) return step.power;
  }
  const bool backward = distance >> 63 != 0;
  const BitPowers& powers = backward ? kBackward : kForward;
  Digest128 product = kFieldOne;
  uint64_t bits = backward ? ~distance + 1 : distance;
  for (size_t k = 0; bits != 0; ++k, bits >>= 1) {
    if ((bits & 1) != 0) product = kernel_->multiply(product, powers[k]);
  }
  Step& step = steps_[next_step_++ % steps_.size()];
  step = {.distance = distance, .power = product};
  return step.power;
}

const Digest128* LogicalHasher::PowersOfRuns(uint64_t distance, size_t count) {
  auto found = std::find_if(run_powers_.begin(), run_powers_.end(),
                            [&](const RunPowers& powers) { return powers.distance == distance; });
  if (found == run_powers_.end()) {
    found = run_powers_.begin() + next_run_powers_++ % run_powers_.size();
    found->distance = distance;
    found->count = 1;
  }
  if (found->count < count) {
    const Digest128 power = StepPower(distance);
    for (; found->count < count; ++found->count) {
      found->powers[found->count] = kernel_->multiply(found->powers[found->count - 1], power);
    }
  }
  return found->powers.data();
}

}  // namespace reshard
