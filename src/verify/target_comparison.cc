#include "src/verify/target_comparison.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "format/container/container.h"
#include "src/base/status_macros.h"
#include "src/cast/cast.h"
#include "src/io/shared_work.h"
#include "src/io/storage.h"
#include "src/source/indexed_file.h"
#include "src/verify/copied_bytes.h"
#include "src/verify/crc_check.h"

namespace reshard {
namespace {

constexpr uint64_t kTargetPieceBytes = uint64_t{64} << 20;
// Enough to keep any number of threads busy, of files and of bytes.
constexpr size_t kMostPending = 64;
constexpr uint64_t kMostPendingBytes = uint64_t{4} << 30;
constexpr size_t kListedParameters = 20;
// Less than this is never asked for ahead, but at the end of a piece.
constexpr uint64_t kLeastAhead = 2 * kComparisonStepBytes;

// Returns the name of the parameter whose Value has the segment; "" in the header of an empty one.
std::string_view ParameterOf(const TargetPlan& plan, size_t segment) {
  if (std::holds_alternative<Literal>(plan.segments[segment])) ++segment;
  const auto* content =
      segment < plan.segments.size() ? std::get_if<Content>(&plan.segments[segment]) : nullptr;
  return content == nullptr ? std::string_view() : content->target_name;
}

// Returns the first segment that ends behind `offset`.
std::vector<Segment>::const_iterator SegmentAt(const std::vector<Segment>& segments,
                                               uint64_t offset) {
  return std::partition_point(segments.begin(), segments.end(), [&](const Segment& candidate) {
    return TargetRange(candidate).end() <= offset;
  });
}

// Adds the differences between the literal and `found`, the target's bytes from `offset` on.
void CompareLiteral(const Literal& literal, uint64_t offset, std::span<const std::byte> found,
                    ByteDifference& difference) {
  for (size_t i = 0; i < found.size(); ++i) {
    const auto expected = static_cast<std::byte>(literal.bytes[offset - literal.offset + i]);
    if (expected != found[i]) difference.Add({1, offset + i, 0, 0, expected, found[i]});
  }
}

// Sets the source of the byte at `offset` of the content's image.
void SetSource(const Content& content, uint64_t offset, ByteDifference& difference) {
  for (const BlockCopy& copy : content.copies) {
    const ByteRange first = Overlap(copy.TargetSpan(), {offset, 1});
    if (first.length == 0) continue;
    const RunCursor at(copy, first);
    if (at.done()) continue;
    difference.file = copy.source;
    difference.source = at.run().source_offset;
    return;
  }
}

// As CompareBytes, of a content that was cast: casts once more.
Status CompareCast(SourceFiles& sources, const Content& content, uint64_t offset,
                   std::span<const std::byte> found, ByteDifference& difference) {
  constexpr size_t kStep = size_t{64} << 10;  // so little that it stays in the core's cache
  const uint64_t item = ItemBytes(content.target_dtype());
  std::vector<std::byte> image;
  std::vector<std::byte> expected;
  while (!found.empty()) {
    const uint64_t before = (offset - content.target.offset + content.box_offset) % item;
    const std::span<const std::byte> part = found.first(std::min(found.size(), kStep - before));
    const ByteRange range = content.ImageRange({offset, part.size()});
    image.resize(range.length);
    RESHARD_RETURN_IF_ERROR(CollectBytes(sources, content.copies, range.offset, image));
    expected.resize(range.length / ItemBytes(content.dtype) * item);
    Cast(content.dtype, content.target_dtype(), image, expected);
    for (size_t i = 0; i < part.size(); ++i) {
      if (part[i] == expected[before + i]) continue;
      ByteDifference one{1, offset + i, 0, 0, expected[before + i], part[i]};
      if (difference.count == 0) {
        SetSource(content, content.ImageRange({offset + i, 1}).offset, one);
      }
      difference.Add(one);
    }
    offset += part.size();
    found = found.subspan(part.size());
  }
  return {};
}

}  // namespace

// The differences in a file, collected from the threads that read its pieces.
class TargetComparison::Findings {
 public:
  void Add(size_t segment, const ByteDifference& difference) {
    const std::scoped_lock lock(mutex_);
    segments_.insert(segment);
    bytes_.Add(difference);
  }

  bool none() const { return segments_.empty(); }

  // Only when no thread adds any more.
  AgainstReport::FileDifference Report(const TargetPlan& plan, const SourceFiles& sources) const {
    AgainstReport::FileDifference report;
    report.path = plan.path;
    report.expected_size = plan.size;
    report.differing_bytes = bytes_.count;
    std::optional<std::string_view> last;
    for (const size_t segment : segments_) {
      const std::string_view name = ParameterOf(plan, segment);
      if (last == name) continue;  // its header, or another of its Values
      last = name;
      ++report.parameter_count;
      if (report.parameters.size() < kListedParameters) report.parameters.emplace_back(name);
    }
    if (!none()) report.first = First(plan, sources);
    return report;
  }

 private:
  AgainstReport::FileDifference::First First(const TargetPlan& plan,
                                             const SourceFiles& sources) const {
    AgainstReport::FileDifference::First first;
    first.offset = bytes_.target;
    first.parameter = ParameterOf(plan, *segments_.begin());
    first.expected = static_cast<uint8_t>(bytes_.expected);
    first.found = static_cast<uint8_t>(bytes_.found);
    if (const auto* content = std::get_if<Content>(&plan.segments[*segments_.begin()])) {
      first.shard_offset = content->box_offset + (bytes_.target - content->target.offset);
      first.source_path = sources.path(bytes_.file);
      first.source_offset = bytes_.source;
    } else {
      first.in_header = true;
    }
    return first;
  }

  std::mutex mutex_;           // guards the members below
  std::set<size_t> segments_;  // the differing segments of the plan
  ByteDifference bytes_;
};

TargetComparison::TargetComparison(SourceFiles& sources, const std::string& folder,
                                   const std::shared_ptr<const EncryptionKey>& key, SharedWork work)
    : sources_(sources),
      folder_(folder),
      work_(std::move(work)),
      targets_({.stop = work_.stop, .key = key}) {}

Status TargetComparison::Add(PlanHandle plan) {
  const std::string path = folder_ + "/" + plan->path;
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, Storage::Of(path).KindOf(path));
  if (kind == PathKind::kMissing) {
    // In its place among the others.
    RESHARD_RETURN_IF_ERROR(CompareAll());
    differences_.push_back({plan->path, plan->size, std::nullopt, std::nullopt, 0, {}, 0});
    return {};
  }
  const FileId file = targets_.Add(path);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, targets_.Size(file));
  ++found_;
  if (plan->crc != nullptr) {
    RESHARD_ASSIGN_OR_RETURN(plan, PlanCrc(file, size, std::move(plan)));
  }
  pending_bytes_ += std::min(size, plan->size);
  pending_.push_back({std::move(plan), file, size});
  if (pending_.size() < kMostPending && pending_bytes_ < kMostPendingBytes) return {};
  return CompareAll();
}

Result<PlanHandle> TargetComparison::PlanCrc(FileId file, uint64_t size, PlanHandle plan) {
  const Result<IndexedFile> index = ReadFileTable(targets_, file);
  if (index.status().code() == StatusCode::kCorrupt || (index.ok() && !index->crc())) return plan;
  RESHARD_RETURN_IF_ERROR(index.status());
  const Status fits = CheckCrc(targets_, *index, {}, work_.stop);
  if (fits.code() == StatusCode::kCorrupt) return plan;
  RESHARD_RETURN_IF_ERROR(fits);
  std::vector<std::byte> head(std::min<uint64_t>(size, kCrcHeadBytes));
  RESHARD_RETURN_IF_ERROR(targets_.Read(file, 0, head));
  const auto number = static_cast<uint32_t>(index->crc()->value);
  const Result<CrcText> text = plan->crc->text(head, size, number);
  if (!text.ok()) return plan;
  TargetPlan stated = *plan;
  const auto segment = std::find_if(
      stated.segments.begin(), stated.segments.end(),
      [&](const Segment& candidate) { return TargetRange(candidate).end() > text->offset; });
  if (segment == stated.segments.end()) return plan;
  auto* const literal = std::get_if<Literal>(&*segment);
  if (literal == nullptr || text->offset < literal->offset) return plan;
  const uint64_t place = text->offset - literal->offset;
  if (place + text->bytes.size() > literal->bytes.size()) return plan;
  literal->bytes.replace(place, text->bytes.size(), text->bytes);
  return std::make_shared<const TargetPlan>(std::move(stated));
}

Status TargetComparison::Finish() {
  RESHARD_RETURN_IF_ERROR(CompareAll());
  return targets_.VerifyUnchanged();
}

Status TargetComparison::CompareAll() {
  std::vector<uint64_t> sizes;
  for (const Pending& pending : pending_)
    sizes.push_back(std::min(pending.size, pending.plan->size));
  std::vector<Findings> findings(pending_.size());
  const auto compare = [&](size_t index, ByteRange piece, const std::stop_token& stop) {
    return ComparePiece(pending_[index], piece, stop, findings[index]);
  };
  RESHARD_RETURN_IF_ERROR(ForEachPiece(sizes, kTargetPieceBytes, work_, compare));
  for (size_t i = 0; i < pending_.size(); ++i) {
    const Pending& pending = pending_[i];
    if (findings[i].none() && pending.size == pending.plan->size) continue;
    differences_.push_back(findings[i].Report(*pending.plan, sources_));
    differences_.back().found_size = pending.size;
  }
  pending_.clear();
  pending_bytes_ = 0;
  return {};
}

// Asks for all bytes ahead that comparing `part` of the target reads.
Status TargetComparison::ReadAhead(const Pending& pending, ByteRange part) {
  if (part.length == 0) return {};
  RESHARD_RETURN_IF_ERROR(targets_.Prefetch(pending.file, part.offset, part.length));
  CopyReadAhead ahead(sources_);
  const std::vector<Segment>& segments = pending.plan->segments;
  for (auto segment = SegmentAt(segments, part.offset);
       segment != segments.end() && TargetRange(*segment).offset < part.end(); ++segment) {
    const auto* content = std::get_if<Content>(&*segment);
    if (content == nullptr) continue;
    RESHARD_RETURN_IF_ERROR(
        ahead.Add(content->copies, content->ImageRange(Overlap(content->target, part))));
  }
  return ahead.Finish();
}

Status TargetComparison::ComparePiece(const Pending& pending, ByteRange piece,
                                      const std::stop_token& stop, Findings& findings) {
  const std::vector<Segment>& segments = pending.plan->segments;
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kComparisonStepBytes);
  uint64_t asked = piece.offset;  // the end of the bytes that were requested ahead
  const auto step = [&](ByteRange part) -> Status {
    if (asked < std::min(part.end() + kLeastAhead, piece.end())) {
      const uint64_t begin = std::exchange(
          asked, std::min(ToLargePage(std::max(asked, part.end()) + kWindowBytes), piece.end()));
      RESHARD_RETURN_IF_ERROR(ReadAhead(pending, {begin, asked - begin}));
    }
    const std::span<std::byte> found(buffer.get(), part.length);
    RESHARD_RETURN_IF_ERROR(CollectBytes(
        targets_, std::vector<BlockCopy>{{pending.file, part.offset, part.offset, part.length, {}}},
        part.offset, found));
    auto segment = SegmentAt(segments, part.offset);
    for (uint64_t offset = part.offset; offset < part.end(); ++segment) {
      const uint64_t end = std::min(part.end(), TargetRange(*segment).end());
      const std::span<const std::byte> bytes = found.subspan(offset - part.offset, end - offset);
      ByteDifference difference;
      if (const auto* literal = std::get_if<Literal>(&*segment)) {
        CompareLiteral(*literal, offset, bytes, difference);
      } else {
        const auto& content = std::get<Content>(*segment);
        RESHARD_RETURN_IF_ERROR(
            content.is_cast() ? CompareCast(sources_, content, offset, bytes, difference)
                              : CompareBytes(sources_, content.copies, offset, bytes, difference));
      }
      if (difference.count > 0) {
        findings.Add(static_cast<size_t>(segment - segments.begin()), difference);
      }
      offset = end;
    }
    return {};
  };
  return InSteps(piece, kComparisonStepBytes, stop, work_.progress, step);
}

}  // namespace reshard
