#include "src/verify/parameter_comparison.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "src/base/status_macros.h"
#include "src/io/shared_work.h"
#include "src/plan/make_copies.h"
#include "src/tensor/block_copy.h"
#include "src/tensor/float_bits.h"
#include "src/verify/copied_bytes.h"

namespace reshard {
namespace {

double ToDouble(DType dtype, uint16_t bits) {
  return dtype == DType::kFloat16 ? Float16ToFloat(bits) : BFloat16ToFloat(bits);
}
double ToDouble(DType, uint32_t bits) { return std::bit_cast<float>(bits); }
double ToDouble(DType, uint64_t bits) { return std::bit_cast<double>(bits); }

template <typename Bits>
void CompareBits(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
                 DiffReport::ValueDifference& difference) {
  for (size_t i = 0; i + sizeof(Bits) <= a.size(); i += sizeof(Bits)) {
    Bits bits_a;
    Bits bits_b;
    std::memcpy(&bits_a, a.data() + i, sizeof(Bits));
    std::memcpy(&bits_b, b.data() + i, sizeof(Bits));
    if (bits_a == bits_b) continue;
    const double value_a = ToDouble(dtype, bits_a);
    const double value_b = ToDouble(dtype, bits_b);
    if (std::isnan(value_a) && std::isnan(value_b)) {
      ++difference.nan_against_nan;
    } else if (std::isnan(value_a) || std::isnan(value_b)) {
      ++difference.nan_against_number;
    } else {
      ++difference.numbers;
      difference.greatest = std::max(difference.greatest, std::fabs(value_a - value_b));
    }
  }
}

// Compares pieces of a pair. Used by one thread.
class PairReader {
 public:
  PairReader(const Source& a, const Source& b, const ParameterPair& pair, bool with_values)
      : a_(a),
        b_(b),
        pair_(pair),
        dtype_(pair.a->dtype),
        with_values_(with_values && pair.a->kind == ArrayKind::kTensor &&
                     HasComparableValues(dtype_)) {}

  bool with_values() const { return with_values_; }

  Status Plan() {
    const Box box = Box::Whole(pair_.a->full_shape);
    RESHARD_ASSIGN_OR_RETURN(copies_a_, CopiesOf(a_, *pair_.a, box));
    RESHARD_ASSIGN_OR_RETURN(copies_b_, CopiesOf(b_, *pair_.b, box));
    return {};
  }

  // Adds how the logical bytes `part` differ.
  Status Compare(ByteRange part, PairDifference& difference) {
    const std::span<std::byte> bytes_a = Buffer(buffer_a_, part.length);
    RESHARD_RETURN_IF_ERROR(CollectBytes(a_.files(), copies_a_, part.offset, bytes_a));
    ByteDifference bytes;
    RESHARD_RETURN_IF_ERROR(CompareBytes(b_.files(), copies_b_, part.offset, bytes_a, bytes));
    if (bytes.count == 0) return {};
    difference.differs = true;
    if (!with_values_) return {};
    const std::span<std::byte> bytes_b = Buffer(buffer_b_, part.length);
    RESHARD_RETURN_IF_ERROR(CollectBytes(b_.files(), copies_b_, part.offset, bytes_b));
    CompareValues(dtype_, bytes_a, bytes_b, difference.values);
    return {};
  }

 private:
  static std::span<std::byte> Buffer(std::unique_ptr<std::byte[]>& buffer, uint64_t size) {
    if (!buffer) buffer = std::make_unique_for_overwrite<std::byte[]>(kComparisonStepBytes);
    return {buffer.get(), size};
  }

  const Source& a_;
  const Source& b_;
  const ParameterPair& pair_;
  const DType dtype_;
  const bool with_values_;
  std::vector<BlockCopy> copies_a_;
  std::vector<BlockCopy> copies_b_;
  std::unique_ptr<std::byte[]> buffer_a_;
  std::unique_ptr<std::byte[]> buffer_b_;
};

uint64_t BytesOfEach(const EqualContents& group) {
  uint64_t bytes = 0;
  for (const ByteRange& range : group.contents.front().ranges) bytes += range.length;
  return bytes;
}

}  // namespace

bool HasComparableValues(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

void CompareValues(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
                   DiffReport::ValueDifference& difference) {
  switch (ItemBytes(dtype)) {
    case 2:
      return CompareBits<uint16_t>(dtype, a, b, difference);
    case 4:
      return CompareBits<uint32_t>(dtype, a, b, difference);
    default:
      return CompareBits<uint64_t>(dtype, a, b, difference);
  }
}

void AddValues(const DiffReport::ValueDifference& other, DiffReport::ValueDifference& difference) {
  difference.numbers += other.numbers;
  difference.nan_against_number += other.nan_against_number;
  difference.nan_against_nan += other.nan_against_nan;
  difference.greatest = std::max(difference.greatest, other.greatest);
}

Result<std::vector<PairDifference>> CompareParameters(const Source& a, const Source& b,
                                                      const std::vector<ParameterPair>& pairs,
                                                      bool with_values, const SharedWork& work) {
  std::vector<uint64_t> sizes;
  sizes.reserve(pairs.size());
  for (const ParameterPair& pair : pairs) sizes.push_back(pair.a->Bytes());
  std::vector<PairDifference> differences(pairs.size());
  std::mutex mutex;  // guards differences
  const auto compare = [&](size_t index, ByteRange piece, const std::stop_token& stop) -> Status {
    PairReader reader(a, b, pairs[index], with_values);
    const auto is_known = [&] {  // the result is complete
      const std::scoped_lock lock(mutex);
      return differences[index].differs && !reader.with_values();
    };
    PairDifference found;
    if (!is_known()) RESHARD_RETURN_IF_ERROR(reader.Plan());
    const auto step = [&](ByteRange part) -> Status {
      if ((found.differs && !reader.with_values()) || is_known()) return {};
      return reader.Compare(part, found);
    };
    RESHARD_RETURN_IF_ERROR(InSteps(piece, kComparisonStepBytes, stop, work.progress, step));
    const std::scoped_lock lock(mutex);
    differences[index].differs |= found.differs;
    AddValues(found.values, differences[index].values);
    return {};
  };
  RESHARD_RETURN_IF_ERROR(ForEachPiece(sizes, kPieceBytes, work, compare));
  return differences;
}

uint64_t BytesToCompare(std::span<const EqualContents> groups) {
  uint64_t bytes = 0;
  for (const EqualContents& group : groups) bytes += BytesOfEach(group) * group.contents.size();
  return bytes;
}

Result<std::vector<ContentDifference>> CompareContents(SourceFiles& files,
                                                       std::span<const EqualContents> groups,
                                                       const SharedWork& work) {
  std::vector<uint64_t> sizes;
  for (const EqualContents& group : groups) sizes.push_back(BytesOfEach(group));
  std::mutex mutex;                                     // guards first
  std::map<std::pair<size_t, size_t>, uint64_t> first;  // offset by group and content
  const auto compare = [&](size_t index, ByteRange piece, const std::stop_token& stop) -> Status {
    const std::vector<StoredContent>& contents = groups[index].contents;
    std::vector<std::vector<BlockCopy>> copies;
    copies.reserve(contents.size());
    for (const StoredContent& content : contents) {
      copies.push_back(LayOut(content.file, content.ranges));
    }
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kComparisonStepBytes);
    const auto count = [&](uint64_t bytes) {
      if (work.progress) work.progress(bytes * contents.size());
    };
    return InSteps(piece, kComparisonStepBytes, stop, count, [&](ByteRange part) -> Status {
      const std::span<std::byte> expected(buffer.get(), part.length);
      RESHARD_RETURN_IF_ERROR(CollectBytes(files, copies[0], part.offset, expected));
      for (size_t i = 1; i < contents.size(); ++i) {
        ByteDifference found;
        RESHARD_RETURN_IF_ERROR(CompareBytes(files, copies[i], part.offset, expected, found));
        if (found.count == 0) continue;
        const std::scoped_lock lock(mutex);
        uint64_t& offset = first.try_emplace({index, i}, found.target).first->second;
        offset = std::min(offset, found.target);
      }
      return {};
    });
  };
  RESHARD_RETURN_IF_ERROR(ForEachPiece(sizes, kPieceBytes, work, compare));
  std::vector<ContentDifference> differences;
  differences.reserve(first.size());
  for (const auto& [place, offset] : first) {
    differences.push_back({place.first, place.second, offset});
  }
  return differences;
}

}  // namespace reshard
