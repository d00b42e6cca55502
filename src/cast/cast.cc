#include "src/cast/cast.h"

#include <cassert>

#include "src/cast/cast_kernel.h"

namespace reshard {

bool IsFloat(DType dtype) {
  switch (dtype) {
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kHiFloat8:
    case DType::kFloat8E8M0:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat6E2M3:
    case DType::kFloat6E3M2:
    case DType::kFloat4E2M1:
      return true;
    default:
      return IsCastSource(dtype);
  }
}

bool IsCastSource(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

bool IsCastTarget(DType dtype) {
  return IsCastSource(dtype) || dtype == DType::kFloat8E4M3FN || dtype == DType::kFloat8E5M2;
}

CastLoss Cast(DType from, DType to, std::span<const std::byte> values, std::span<std::byte> out) {
  static const CastKernel& kernel = *CastKernels().front();
  assert(IsCastSource(from) && IsCastTarget(to));
  const size_t count = values.size() / ItemBytes(from);
  assert(out.size() == count * ItemBytes(to));
  return kernel.cast(from, to, values.data(), count, out.data());
}

}  // namespace reshard
