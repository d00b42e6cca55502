#include "reshard/dtype.h"

#include <array>
#include <cstddef>

namespace reshard {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  uint64_t item_bytes;
};

// In the order of the enumeration, so that a dtype is its own row number.
constexpr std::array<DTypeRow, 20> kRows = {{
    {DType::kInt8, "Int8", 1},
    {DType::kUInt8, "UInt8", 1},
    {DType::kInt16, "Int16", 2},
    {DType::kUInt16, "UInt16", 2},
    {DType::kInt32, "Int32", 4},
    {DType::kUInt32, "UInt32", 4},
    {DType::kInt64, "Int64", 8},
    {DType::kUInt64, "UInt64", 8},
    {DType::kFloat16, "Float16", 2},
    {DType::kFloat32, "Float32", 4},
    {DType::kFloat64, "Float64", 8},
    {DType::kBFloat16, "BFloat16", 2},
    {DType::kBool, "Bool", 1},
    {DType::kComplex64, "Complex64", 8},
    {DType::kComplex128, "Complex128", 16},
    {DType::kInt4, "Int4", 1},
    {DType::kFloat8E4M3FN, "Float8E4M3FN", 1},
    {DType::kFloat8E5M2, "Float8E5M2", 1},
    {DType::kHiFloat8, "HiFloat8", 1},
    {DType::kString, "str", 4},
}};

constexpr bool RowsAreInOrder() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].dtype) != i) return false;
  }
  return true;
}
static_assert(RowsAreInOrder());

}  // namespace

std::string_view DTypeName(DType dtype) { return kRows[static_cast<size_t>(dtype)].name; }

std::optional<DType> ParseDType(std::string_view name) {
  for (const DTypeRow& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

uint64_t ItemBytes(DType dtype) { return kRows[static_cast<size_t>(dtype)].item_bytes; }

}  // namespace reshard
