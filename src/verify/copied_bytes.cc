#include "src/verify/copied_bytes.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

namespace reshard {
namespace {

// The largest gap between two runs that is read to save another window.
constexpr uint64_t kMaxGap = uint64_t{64} << 10;

// Calls visit(copy, row) for all runs that `copies` move to `target`, under the fault guard.
template <typename Visit>
Status ForEachRow(SourceFiles& files, std::span<const BlockCopy> copies, ByteRange target,
                  Visit visit) {
  uint64_t bytes = 0;
  for (const BlockCopy& copy : copies) {
    const ByteRange span = copy.TargetSpan();
    if (span.offset >= target.end()) break;
    if (span.end() <= target.offset) continue;
    const CopyRows rows(copy);
    RESHARD_RETURN_IF_ERROR(rows.ForEach(files, rows.SourceOf(target), [&](const CopyRow& row) {
      bytes += row.length * row.count;
      visit(copy, row);
    }));
  }
  if (bytes != target.length) {
    return InternalError(fmt::format("the copies move {} of the {} bytes at target offset {}",
                                     bytes, target.length, target.offset));
  }
  return {};
}

// Calls visit(length), with a constant for the common short lengths (a cut last dimension). For
// these, calls of memcpy and memcmp would cost more than their work.
template <typename Visit>
void WithLength(uint64_t length, Visit visit) {
  switch (length) {
    case 2:
      return visit(std::integral_constant<uint64_t, 2>{});
    case 4:
      return visit(std::integral_constant<uint64_t, 4>{});
    case 8:
      return visit(std::integral_constant<uint64_t, 8>{});
    case 16:
      return visit(std::integral_constant<uint64_t, 16>{});
    default:
      return visit(length);
  }
}

}  // namespace

CopyRows::CopyRows(const BlockCopy& copy)
    : copy_(copy), inner_{1, copy.run_length, copy.run_length}, loops_(copy) {
  if (!loops_.dims.empty()) {
    inner_ = loops_.dims.back();
    loops_.dims.pop_back();
  }
  std::swap(loops_.source_offset, loops_.target_offset);
  for (CopyDim& dim : loops_.dims) std::swap(dim.source_stride, dim.target_stride);
  loops_.run_length = (inner_.count - 1) * inner_.source_stride + copy.run_length;

  blocks_ = loops_;
  if (inner_.count > 1 && inner_.source_stride - copy.run_length > kMaxGap) {
    blocks_.dims.push_back({inner_.count, inner_.target_stride, inner_.source_stride});
    blocks_.run_length = copy.run_length;
    return;
  }
  while (!blocks_.dims.empty() &&
         blocks_.dims.back().target_stride - blocks_.run_length <= kMaxGap) {
    blocks_.run_length += (blocks_.dims.back().count - 1) * blocks_.dims.back().target_stride;
    blocks_.dims.pop_back();
  }
}

ByteRange CopyRows::SourceOf(ByteRange target) const {
  const uint64_t begin = SourceFrom(target.offset);
  return {begin, SourceFrom(target.end()) - begin};
}

uint64_t CopyRows::SourceFrom(uint64_t target) const {
  const uint64_t end = copy_.TargetSpan().end();
  const RunCursor next(copy_, {target, end > target ? end - target : 0});
  return next.done() ? copy_.SourceSpan().end() : next.run().source_offset;
}

Status CopyReadAhead::Add(std::span<const BlockCopy> copies, ByteRange part) {
  Status status;
  for (const BlockCopy& copy : copies) {
    const ByteRange span = copy.TargetSpan();
    if (span.offset >= part.end()) break;
    if (span.end() <= part.offset) continue;
    const CopyRows rows(copy);
    rows.ForEachBlock(rows.SourceOf(part), [&](ByteRange range) {
      if (status.ok()) status = Ask(copy.source, range);
    });
  }
  return status;
}

Status CopyReadAhead::Ask(FileId file, ByteRange range) {
  const auto [place, is_new] = pending_.try_emplace(file, range);
  if (is_new) return {};
  ByteRange& pending = place->second;
  if (range.offset >= pending.end() && range.offset - pending.end() <= kMaxGap) {
    pending.length = range.end() - pending.offset;
    return {};
  }
  const ByteRange asked = std::exchange(pending, range);
  return files_.Prefetch(file, asked.offset, asked.length);
}

Status CopyReadAhead::Finish() {
  for (const auto& [file, range] : pending_) {
    RESHARD_RETURN_IF_ERROR(files_.Prefetch(file, range.offset, range.length));
  }
  pending_.clear();
  return {};
}

Status CollectBytes(SourceFiles& files, std::span<const BlockCopy> copies, uint64_t offset,
                    std::span<std::byte> out) {
  const auto collect = [offset, to = out.data()](const BlockCopy&, const CopyRow& row) {
    WithLength(row.length, [&](auto length) {
      for (uint64_t i = 0; i < row.count; ++i) {
        std::memcpy(to + (row.target - offset) + i * row.target_stride,
                    row.bytes + i * row.source_stride, length);
      }
    });
  };
  return ForEachRow(files, copies, {offset, out.size()}, collect);
}

void ByteDifference::Add(const ByteDifference& other) {
  const uint64_t sum = count + other.count;
  if (count == 0 || (other.count > 0 && other.target < target)) *this = other;
  count = sum;
}

Status CompareBytes(SourceFiles& files, std::span<const BlockCopy> copies, uint64_t offset,
                    std::span<const std::byte> found, ByteDifference& difference) {
  // Examines a run that differs, byte by byte; this is rare.
  const auto examine = [&difference](FileId file, const std::byte* expected, uint64_t source,
                                     const std::byte* there, uint64_t target, uint64_t length) {
    for (uint64_t i = 0; i < length; ++i) {
      if (expected[i] != there[i]) {
        difference.Add({1, target + i, file, source + i, expected[i], there[i]});
      }
    }
  };
  const auto compare = [&, offset, data = found.data()](const BlockCopy& copy, const CopyRow& row) {
    WithLength(row.length, [&](auto length) {
      for (uint64_t i = 0; i < row.count; ++i) {
        const std::byte* expected = row.bytes + i * row.source_stride;
        const uint64_t target = row.target + i * row.target_stride;
        const std::byte* there = data + (target - offset);
        if (std::memcmp(expected, there, length) != 0) {
          examine(copy.source, expected, row.source + i * row.source_stride, there, target, length);
        }
      }
    });
  };
  return ForEachRow(files, copies, {offset, found.size()}, compare);
}

Result<std::optional<ByteDifference>> FirstDifference(SourceFiles& files,
                                                      std::span<const BlockCopy> expected,
                                                      std::span<const BlockCopy> found,
                                                      uint64_t size, const std::stop_token& stop) {
  const uint64_t step = std::min(kComparisonStepBytes, size);
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(step);
  for (uint64_t offset = 0; offset < size; offset += step) {
    if (stop.stop_requested()) return CancelledError("stopped while comparing replicas");
    const std::span<std::byte> bytes(buffer.get(), std::min(step, size - offset));
    RESHARD_RETURN_IF_ERROR(CollectBytes(files, found, offset, bytes));
    ByteDifference difference;
    RESHARD_RETURN_IF_ERROR(CompareBytes(files, expected, offset, bytes, difference));
    if (difference.count > 0) return std::optional(difference);
  }
  return std::optional<ByteDifference>();
}

void AddRow(const CopyRow& row, LogicalHasher& hasher, Digest128& sum) {
  hasher.AddRuns(sum, {.bytes = row.bytes,
                       .size = row.length,
                       .position = row.target,
                       .count = row.count,
                       .bytes_stride = row.source_stride,
                       .position_stride = row.target_stride});
}

Status AddCopied(SourceFiles& files, const std::vector<BlockCopy>& copies, ByteRange part,
                 LogicalHasher& hasher, Digest128& sum) {
  return ForEachRow(files, copies, part,
                    [&](const BlockCopy&, const CopyRow& row) { AddRow(row, hasher, sum); });
}

}  // namespace reshard
