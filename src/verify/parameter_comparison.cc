#include "src/verify/parameter_comparison.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>

#include "src/base/status_macros.h"
#include "src/io/in_steps.h"
#include "src/verify/copied_bytes.h"
#include "src/verify/value_comparison.h"

namespace reshard {
namespace {

// Compares pieces of one pair. Used by one thread.
class PairReader {
 public:
  PairReader(const ComparedCheckpoint& a, const ComparedCheckpoint& b, const ParameterPair& pair,
             bool with_values)
      : a_(a),
        b_(b),
        pair_(pair),
        dtype_(pair.a->tensor.dtype),
        with_values_(with_values && pair.a->tensor.kind == ArrayKind::kTensor &&
                     HasComparableValues(dtype_)) {}

  bool with_values() const { return with_values_; }

  Status Plan() {
    const Box box = Box::Whole(pair_.a->tensor.full_shape);
    RESHARD_ASSIGN_OR_RETURN(copies_a_, CopiesOf(a_.shards, *pair_.a, box));
    RESHARD_ASSIGN_OR_RETURN(copies_b_, CopiesOf(b_.shards, *pair_.b, box));
    return {};
  }

  // Adds how the logical bytes `part` differ.
  Status Compare(ByteRange part, PairDifference& difference) {
    const std::span<std::byte> bytes_a = Buffer(buffer_a_, part.length);
    RESHARD_RETURN_IF_ERROR(CollectBytes(a_.files, copies_a_, part.offset, bytes_a));
    ByteDifference bytes;
    RESHARD_RETURN_IF_ERROR(CompareBytes(b_.files, copies_b_, part.offset, bytes_a, bytes));
    if (bytes.count == 0) return {};
    difference.differs = true;
    if (!with_values_) return {};
    const std::span<std::byte> bytes_b = Buffer(buffer_b_, part.length);
    RESHARD_RETURN_IF_ERROR(CollectBytes(b_.files, copies_b_, part.offset, bytes_b));
    CompareValues(dtype_, bytes_a, bytes_b, difference.values);
    return {};
  }

 private:
  static std::span<std::byte> Buffer(std::unique_ptr<std::byte[]>& buffer, uint64_t size) {
    if (!buffer) buffer = std::make_unique_for_overwrite<std::byte[]>(kComparisonStepBytes);
    return {buffer.get(), size};
  }

  const ComparedCheckpoint& a_;
  const ComparedCheckpoint& b_;
  const ParameterPair& pair_;
  const DType dtype_;
  const bool with_values_;
  std::vector<BlockCopy> copies_a_;
  std::vector<BlockCopy> copies_b_;
  std::unique_ptr<std::byte[]> buffer_a_;
  std::unique_ptr<std::byte[]> buffer_b_;
};

}  // namespace

Result<std::vector<PairDifference>> CompareParameters(const ComparedCheckpoint& a,
                                                      const ComparedCheckpoint& b,
                                                      const std::vector<ParameterPair>& pairs,
                                                      bool with_values, const SharedWork& work) {
  std::vector<uint64_t> sizes;
  sizes.reserve(pairs.size());
  for (const ParameterPair& pair : pairs) sizes.push_back(pair.a->bytes);
  std::vector<PairDifference> differences(pairs.size());
  std::mutex mutex;  // guards differences
  const auto compare = [&](size_t index, ByteRange piece, const std::stop_token& stop) -> Status {
    PairReader reader(a, b, pairs[index], with_values);
    const auto is_known = [&] {  // all that there is to know
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

}  // namespace reshard
