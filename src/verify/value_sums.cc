#include "src/verify/value_sums.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#include "src/base/status_macros.h"
#include "src/io/shared_work.h"
#include "src/plan/make_copies.h"
#include "src/tensor/float_bits.h"
#include "src/verify/copied_bytes.h"

namespace reshard {
namespace {

// Independent sums side by side, which compilers make vectors of.
constexpr size_t kLanes = 16;
// Values that are decoded at a time; whole rows of lanes.
constexpr size_t kBlock = 512;

template <typename Lane>
using Lanes = std::array<Lane, kLanes>;

template <typename Lane>
Lanes<Lane> Filled(Lane value) {
  Lanes<Lane> lanes;
  lanes.fill(value);
  return lanes;
}

// Calls add(value, lane) for each value, lanes taking turns.
template <typename Value, typename Add>
void ForEachInLanes(const Value* values, size_t count, const Add& add) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) add(values[i + lane], lane);
  }
  for (size_t lane = 0; i < count; ++i, ++lane) add(values[i], lane);
}

template <typename Float>
class FloatSums {
  // As wide as the floats, and wide enough for the values of a stretch.
  using Count = std::conditional_t<sizeof(Float) == 4, uint32_t, uint64_t>;

 public:
  void Add(const Float* values, size_t count) {
    ForEachInLanes(values, count, [this](auto value, size_t lane) { AddOne(value, lane); });
    count_ += count;
  }

  ValueSums Result() const {
    ValueSums sums{.values = count_, .least = double{least_[0]}, .greatest = double{greatest_[0]}};
    for (size_t lane = 0; lane < kLanes; ++lane) {
      sums.nans += nans_[lane];
      sums.infinities += not_finite_[lane] - nans_[lane];
      sums.least = std::min(std::get<double>(sums.least), static_cast<double>(least_[lane]));
      sums.greatest =
          std::max(std::get<double>(sums.greatest), static_cast<double>(greatest_[lane]));
      sums.sum += sum_[lane];
    }
    return sums;
  }

 private:
  void AddOne(Float value, size_t lane) {
    const bool finite = std::fabs(value) <= std::numeric_limits<Float>::max();
    sum_[lane] += static_cast<double>(finite ? value : Float{0});
    least_[lane] = finite && value < least_[lane] ? value : least_[lane];
    greatest_[lane] = finite && value > greatest_[lane] ? value : greatest_[lane];
    not_finite_[lane] += static_cast<Count>(!finite);
    nans_[lane] += static_cast<Count>(std::isnan(value));
  }

  size_t count_ = 0;
  Lanes<Float> least_ = Filled(std::numeric_limits<Float>::max());
  Lanes<Float> greatest_ = Filled(std::numeric_limits<Float>::lowest());
  Lanes<double> sum_ = Filled(0.0);
  Lanes<Count> not_finite_ = Filled(Count{0});
  Lanes<Count> nans_ = Filled(Count{0});
};

template <typename Integer>
class IntegerSums {
  // Exact for all types but 64-bit ones, whose sum does not fit an integer.
  using Sum = std::conditional_t<sizeof(Integer) == 8, double, int64_t>;
  using Wide = std::conditional_t<std::is_signed_v<Integer>, int64_t, uint64_t>;

 public:
  void Add(const Integer* values, size_t count) {
    ForEachInLanes(values, count, [this](auto value, size_t lane) { AddOne(value, lane); });
    count_ += count;
  }

  ValueSums Result() const {
    Sum sum = 0;
    for (const Sum lane : sum_) sum += lane;
    return {.values = count_,
            .least = Wide{*std::min_element(least_.begin(), least_.end())},
            .greatest = Wide{*std::max_element(greatest_.begin(), greatest_.end())},
            .sum = static_cast<double>(sum)};
  }

 private:
  void AddOne(Integer value, size_t lane) {
    sum_[lane] += static_cast<Sum>(value);
    least_[lane] = std::min(least_[lane], value);
    greatest_[lane] = std::max(greatest_[lane], value);
  }

  size_t count_ = 0;
  Lanes<Integer> least_ = Filled(std::numeric_limits<Integer>::max());
  Lanes<Integer> greatest_ = Filled(std::numeric_limits<Integer>::min());
  Lanes<Sum> sum_ = Filled(Sum{0});
};

// Decodes a block of items after the other and adds up their values: decode(items, count, values)
// returns how many there are.
template <typename Item, typename Sums, typename Value, size_t kValuesOfItem = 1, typename Decode>
ValueSums SumBlocks(std::span<const std::byte> bytes, Decode decode) {
  std::array<Item, kBlock> items;
  std::array<Value, kBlock * kValuesOfItem> values;
  Sums sums;
  for (size_t begin = 0; begin < bytes.size(); begin += sizeof(items)) {
    const size_t length = std::min(sizeof(items), bytes.size() - begin);
    std::memcpy(items.data(), bytes.data() + begin, length);
    const size_t count = length / sizeof(Item);
    for (size_t i = 0; i < count; ++i) decode(items[i], &values[i * kValuesOfItem]);
    sums.Add(values.data(), count * kValuesOfItem);
  }
  return sums.Result();
}

template <typename Float>
ValueSums SumFloats(std::span<const std::byte> bytes) {
  return SumBlocks<Float, FloatSums<Float>, Float>(bytes,
                                                   [](Float item, Float* value) { *value = item; });
}

template <typename Integer>
ValueSums SumIntegers(std::span<const std::byte> bytes) {
  return SumBlocks<Integer, IntegerSums<Integer>, Integer>(
      bytes, [](Integer item, Integer* value) { *value = item; });
}

template <typename Bits, float (*kToFloat)(Bits)>
ValueSums SumDecoded(std::span<const std::byte> bytes) {
  return SumBlocks<Bits, FloatSums<float>, float>(
      bytes, [](Bits item, float* value) { *value = kToFloat(item); });
}

ValueSums SumNibbles(std::span<const std::byte> bytes) {
  return SumBlocks<int8_t, IntegerSums<int8_t>, int8_t, 2>(bytes, [](int8_t item, int8_t* values) {
    const auto low = static_cast<int8_t>(static_cast<uint8_t>(item) << 4);
    values[0] = static_cast<int8_t>(low >> 4);
    values[1] = static_cast<int8_t>(item >> 4);
  });
}

ValueSums SumFloat4(std::span<const std::byte> bytes) {
  return SumBlocks<uint8_t, FloatSums<float>, float, 2>(bytes, [](uint8_t item, float* values) {
    values[0] = Float4E2M1ToFloat(item & 0xfU);
    values[1] = Float4E2M1ToFloat(static_cast<uint32_t>(item) >> 4);
  });
}

// Four elements in three bytes, from the lowest bit on.
template <float (*kToFloat)(uint32_t)>
ValueSums SumFloat6(std::span<const std::byte> bytes) {
  using Item = std::array<uint8_t, 3>;
  return SumBlocks<Item, FloatSums<float>, float, 4>(bytes, [](const Item& item, float* values) {
    const uint32_t bits =
        item[0] | static_cast<uint32_t>(item[1]) << 8 | static_cast<uint32_t>(item[2]) << 16;
    for (size_t i = 0; i < 4; ++i) values[i] = kToFloat(bits >> (6 * i) & 0x3fU);
  });
}

}  // namespace

void ValueSums::Add(const ValueSums& other) {
  if (finite() == 0) {
    least = other.least;
    greatest = other.greatest;
  } else if (other.finite() > 0) {
    least = std::min(least, other.least);
    greatest = std::max(greatest, other.greatest);
  }
  values += other.values;
  nans += other.nans;
  infinities += other.infinities;
  sum += other.sum;
}

bool HasSums(DType dtype) { return dtype != DType::kHiFloat8 && dtype != DType::kString; }

ValueSums SumValues(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::kInt8:
      return SumIntegers<int8_t>(bytes);
    case DType::kUInt8:
    case DType::kBool:
      return SumIntegers<uint8_t>(bytes);
    case DType::kInt16:
      return SumIntegers<int16_t>(bytes);
    case DType::kUInt16:
      return SumIntegers<uint16_t>(bytes);
    case DType::kInt32:
      return SumIntegers<int32_t>(bytes);
    case DType::kUInt32:
      return SumIntegers<uint32_t>(bytes);
    case DType::kInt64:
      return SumIntegers<int64_t>(bytes);
    case DType::kUInt64:
      return SumIntegers<uint64_t>(bytes);
    case DType::kFloat32:
    case DType::kComplex64:
      return SumFloats<float>(bytes);
    case DType::kFloat64:
    case DType::kComplex128:
      return SumFloats<double>(bytes);
    case DType::kFloat16:
      return SumDecoded<uint16_t, Float16ToFloat>(bytes);
    case DType::kBFloat16:
      return SumDecoded<uint16_t, BFloat16ToFloat>(bytes);
    case DType::kFloat8E4M3FN:
      return SumDecoded<uint8_t, Float8E4M3FnToFloat>(bytes);
    case DType::kFloat8E5M2:
      return SumDecoded<uint8_t, Float8E5M2ToFloat>(bytes);
    case DType::kInt4:
      return SumNibbles(bytes);
    case DType::kFloat8E8M0:
      return SumDecoded<uint8_t, Float8E8M0ToFloat>(bytes);
    case DType::kFloat8E4M3FNUZ:
      return SumDecoded<uint8_t, Float8E4M3FnuzToFloat>(bytes);
    case DType::kFloat8E5M2FNUZ:
      return SumDecoded<uint8_t, Float8E5M2FnuzToFloat>(bytes);
    case DType::kFloat6E2M3:
      return SumFloat6<Float6E2M3ToFloat>(bytes);
    case DType::kFloat6E3M2:
      return SumFloat6<Float6E3M2ToFloat>(bytes);
    case DType::kFloat4E2M1:
      return SumFloat4(bytes);
    case DType::kHiFloat8:
    case DType::kString:
      break;
  }
  return {};
}

bool HasValues(const SourceTensor& parameter) {
  return (parameter.kind == ArrayKind::kTensor || parameter.kind == ArrayKind::kPacked) &&
         HasSums(parameter.dtype);
}

Result<std::vector<std::optional<ValueSums>>> SumParameters(
    const Source& source, const std::vector<SourceTensor>& parameters, const SharedWork& work) {
  std::vector<uint64_t> sizes;
  std::vector<std::vector<ValueSums>> pieces;  // of each parameter; each written by one thread
  for (const SourceTensor& parameter : parameters) {
    sizes.push_back(HasValues(parameter) ? parameter.Bytes() : 0);
    pieces.emplace_back((sizes.back() + kPieceBytes - 1) / kPieceBytes);
  }
  const auto add = [&](size_t index, ByteRange piece, const std::stop_token& stop) -> Status {
    const SourceTensor& parameter = parameters[index];
    RESHARD_ASSIGN_OR_RETURN(const std::vector<BlockCopy> copies,
                             CopiesOf(source, parameter, Box::Whole(parameter.full_shape)));
    const uint64_t item = ItemBytes(parameter.dtype);
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kMostSummedBytes + item);
    // An item of three bytes may cross the end of a stretch. It counts in the stretch of its first
    // byte.
    const auto next_item = [item](uint64_t offset) { return (offset + item - 1) / item * item; };
    ValueSums& sums = pieces[index][piece.offset / kPieceBytes];
    return InSteps(piece, kMostSummedBytes, stop, work.progress, [&](ByteRange part) -> Status {
      const uint64_t begin = next_item(part.offset);
      const std::span<std::byte> bytes(buffer.get(), next_item(part.end()) - begin);
      RESHARD_RETURN_IF_ERROR(CollectBytes(source.files(), copies, begin, bytes));
      sums.Add(SumValues(parameter.dtype, bytes));
      return {};
    });
  };
  RESHARD_RETURN_IF_ERROR(ForEachPiece(sizes, kPieceBytes, work, add));
  std::vector<std::optional<ValueSums>> all;
  for (size_t i = 0; i < parameters.size(); ++i) {
    all.emplace_back();
    if (!HasValues(parameters[i])) continue;
    all.back().emplace();
    for (const ValueSums& piece : pieces[i]) all.back()->Add(piece);
  }
  return all;
}

}  // namespace reshard
