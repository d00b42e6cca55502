#include "src/plan/make_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "format/container/container.h"
#include "src/base/memory_check.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/cast/cast.h"
#include "src/plan/make_copies.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// Bytes that are held for an array while a header of all arrays is made, besides its text, twice.
constexpr uint64_t kOfHeaderEntry = 192;

// Bytes that are held for a piece of a shard while its copies are made.
constexpr size_t kOfPiece = 512;

// Each array adds its files: so many are sorted out at a time.
constexpr size_t kSourcesOfPlan = 1024;

void KeepEachOnce(std::vector<FileId>& files) {
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
}

struct KeptNames {
  std::string_view source;
  std::string_view target;
};

// A piece of the array that is being added.
struct CoveredPiece {
  const SourceTensor& tensor;
  const Box& box;
  KeptNames names;
  ByteRange range;  // in the array's bytes
  std::vector<PlacedPiece> shards;
};

// If two tensors have equal keys, their copies differ only in offsets and names.
struct CutKey {
  std::optional<int64_t> rank;  // as in SourceTensor
  FileId file = 0;              // of a tensor with a rank
  uint64_t table = 0;           // of a tensor without a rank
  int64_t stage = 0;
  SharedGrid grid;
  DType dtype = DType::kFloat32;
  DType target_dtype = DType::kFloat32;
  Shape full_shape;
  Shape shard_shape;
  Box box;

  bool Fits(const SourceTensor& tensor, DType target, const Box& wanted) const {
    const bool alike = rank ? rank == tensor.rank && file == tensor.file
                            : !tensor.rank && table == tensor.table && grid == tensor.grid;
    return alike && stage == tensor.stage && dtype == tensor.dtype && target_dtype == target &&
           full_shape == tensor.full_shape && shard_shape == tensor.shard_shape && box == wanted;
  }
};

// How a tensor in one Value was cut for a Value of the target. Models repeat these in every layer.
struct KnownCut {
  CutKey key;
  uint64_t source_offset = 0;  // of the content of the tensor that was cut so last
  Segment segment;             // its content in the target
};

// So many are remembered, of so many copies each at most.
constexpr size_t kMostCuts = 32;
constexpr size_t kMostCopiesOfCut = 32;

// Whether a piece lies behind `begin` bytes of the array, without gaps.
bool Follows(const Piece& piece, const TargetArray& array, ByteRange range) {
  if (piece.place.extent == array.shape) return range.offset == 0;
  if (range.length == 0) return true;
  const std::vector<Box> boxes =
      BoxesOfRange(ToByteBox(Box::Whole(array.shape), array.dtype), range);
  return boxes.size() == 1 && boxes.front() == ToByteBox(piece.place, array.dtype);
}

class PlanMaker {
 public:
  PlanMaker(const Source& source, const TargetFile& file, const SegmentVisitor& visit,
            uint64_t most_kept)
      : source_(source), file_(file), visit_(visit), most_kept_(most_kept), keeps_(!visit) {
    plan_.rank = file.rank;
    plan_.path = file.path;
    plan_.parameters = file.arrays;
    const bool is_whole = !file.literal.empty() || file.copied;
    if (file.metadata.states_crc && !is_whole) plan_.crc = &file.container->crc;
    if (most_kept > file.arrays * sizeof(Segment) * 2) keeps_ = true;
    // Mostly a content each, and a header before it or one for all.
    const bool has_one_header = file.container == nullptr || file.container->has_one_header;
    if (keeps_) plan_.segments.reserve(has_one_header ? file.arrays + 1 : 2 * file.arrays);
  }

  // Answers the encoder's questions.
  Result<ArrayHeader> HeaderOf(size_t array) {
    RESHARD_RETURN_IF_ERROR(file_.make(array, array_));
    const auto* const opaque = std::get_if<Opaque>(&array_.content);
    return ArrayHeader{array_.name, array_.dtype, &array_.shape,
                       TensorBytes(array_.shape, array_.dtype).value_or(0),
                       opaque == nullptr ? nullptr : opaque->array.get()};
  }

  Status AddHeader(std::string literal) {
    encoding_ = 2 * literal.size() + file_.arrays * kOfHeaderEntry;
    RESHARD_RETURN_IF_ERROR(AddLiteral("", literal));
    return Flush();
  }

  // The copy is one array of bytes, under the name of the file.
  Status AddCopy(const CopiedFile& copied) {
    if (copied.size == 0) return {};
    array_.name = file_.path;
    Frame all{{}, {0, copied.size}};
    RESHARD_RETURN_IF_ERROR(AddBytes(file_.path, copied.file, {&all, 1}));
    return Flush();
  }

  // Adds the frames that the encoder gives for an array.
  Status Add(std::span<Frame> frames) {
    if (const auto* const opaque = std::get_if<Opaque>(&array_.content)) {
      RESHARD_RETURN_IF_ERROR(AddBytes(opaque->array->name, opaque->file, frames));
    } else {
      RESHARD_RETURN_IF_ERROR(AddTensors(std::get<Pieces>(array_.content), frames));
    }
    return Flush();
  }

  TargetPlan Take() {
    plan_.is_whole = keeps_;
    KeepEachOnce(plan_.sources);
    for (const KnownCut& cut : cuts_) {
      plan_.making_bytes += sizeof(KnownCut) + MemoryBytes(cut.segment);
    }
    plan_.making_bytes += encoding_ + file_.making_bytes;
    return std::move(plan_);
  }

 private:
  // Makes room for `bytes` more of the file.
  Status Extend(std::string_view name, uint64_t bytes) {
    constexpr uint64_t kLargestFile = std::numeric_limits<int64_t>::max();
    if (bytes > kLargestFile - plan_.size) {
      return MismatchError(
          fmt::format("{}: parameter {} of {} bytes makes the file larger than a file can be",
                      plan_.path, Quote(name), bytes));
    }
    plan_.size += bytes;
    return {};
  }

  Status AddLiteral(std::string_view name, std::string& bytes) {
    if (bytes.empty()) return {};
    Literal literal{plan_.size, std::move(bytes)};
    RESHARD_RETURN_IF_ERROR(Extend(name, literal.bytes.size()));
    plan_.segments.emplace_back(std::move(literal));
    return {};
  }

  // Most arrays keep their names.
  KeptNames KeepNames(std::string_view source) {
    const std::string_view kept = plan_.names.Keep(source);
    return {kept, array_.name == source ? kept : plan_.names.Keep(array_.name)};
  }

  Status NotFilled() const {
    return MismatchError(fmt::format("parameter {}: its pieces do not fill it one after the other",
                                     Quote(array_.name)));
  }

  Result<std::vector<CoveredPiece>> Cover(const Pieces& pieces) {
    std::vector<CoveredPiece> covered;
    covered.reserve(pieces.pieces.size());
    uint64_t begin = 0;
    for (const Piece& piece : pieces.pieces) {
      const SourceTensor& tensor = pieces.tensors[piece.tensor];
      const ByteRange range = {begin, Volume(piece.box) * ItemBytes(array_.dtype)};
      if (array_.dtype != tensor.dtype &&
          !(IsCastSource(tensor.dtype) && IsCastTarget(array_.dtype))) {
        return MismatchError(fmt::format("parameter {}: cannot cast {} to {}", Quote(array_.name),
                                         DTypeName(tensor.dtype), DTypeName(array_.dtype)));
      }
      if (Volume(piece.place) != Volume(piece.box) || !Follows(piece, array_, range)) {
        return NotFilled();
      }
      begin += range.length;
      RESHARD_ASSIGN_OR_RETURN(std::vector<PlacedPiece> shards,
                               source_.Cover(tensor, piece.box, file_.near));
      covered.push_back({tensor, piece.box, KeepNames(tensor.name), range, std::move(shards)});
    }
    if (begin != TensorBytes(array_.shape, array_.dtype)) return NotFilled();
    return covered;
  }

  // Counts the memory held while copies are made.
  Status CheckMaking(const CoveredPiece& piece) {
    size_t pieces = 0;
    for (const PlacedPiece& shard : piece.shards) pieces += 1 + shard.content.size();
    const uint64_t making = pieces * kOfPiece;
    if (pieces >= kMemoryCheckInterval) {
      RESHARD_RETURN_IF_ERROR(CheckMemory(source_.memory(), making));
    }
    plan_.making_bytes = std::max(plan_.making_bytes, making);
    return {};
  }

  Status AddTensors(const Pieces& pieces, std::span<Frame> frames) {
    if (KnownCut* const cut = FindCut(pieces, frames)) {
      return AddAlike(*cut, pieces.tensors.front(), frames.front());
    }
    RESHARD_ASSIGN_OR_RETURN(const std::vector<CoveredPiece> covered, Cover(pieces));
    for (const CoveredPiece& piece : covered) RESHARD_RETURN_IF_ERROR(CheckMaking(piece));
    const std::string& name = covered.empty() ? array_.name : covered.front().tensor.name;
    for (Frame& frame : frames) {
      RESHARD_RETURN_IF_ERROR(AddLiteral(name, frame.literal));
      for (const CoveredPiece& piece : covered) {
        const uint64_t begin = std::max(frame.content.offset, piece.range.offset);
        const uint64_t end = std::min(frame.content.end(), piece.range.end());
        if (begin >= end) continue;
        RESHARD_RETURN_IF_ERROR(AddContent(piece, {begin - piece.range.offset, end - begin}));
      }
    }
    for (const CoveredPiece& piece : covered) {
      for (const PlacedPiece& shard : piece.shards) plan_.sources.push_back(shard.file);
    }
    if (IsSimple(pieces, frames)) KeepCut(covered.front());
    return {};
  }

  // Whether the array is a single box of a single tensor, with a single Value.
  bool IsSimple(const Pieces& pieces, std::span<const Frame> frames) const {
    return pieces.pieces.size() == 1 && frames.size() == 1 && frames.front().content.length > 0 &&
           pieces.tensors.front().content.size() == 1 &&
           pieces.pieces.front().place.extent == array_.shape &&
           pieces.pieces.front().box.extent == array_.shape;
  }

  KnownCut* FindCut(const Pieces& pieces, std::span<const Frame> frames) {
    if (cuts_.empty() || !IsSimple(pieces, frames)) return nullptr;
    const SourceTensor& tensor = pieces.tensors.front();
    const auto found = std::find_if(cuts_.begin(), cuts_.end(), [&](const KnownCut& cut) {
      return cut.key.Fits(tensor, array_.dtype, pieces.pieces.front().box);
    });
    return found == cuts_.end() ? nullptr : &*found;
  }

  // Remembers the last content, unless it depends on more than the key.
  void KeepCut(const CoveredPiece& piece) {
    const auto& content = std::get<Content>(plan_.segments.back());
    const SourceTensor& tensor = piece.tensor;
    if (content.copies.size() > kMostCopiesOfCut ||
        !std::all_of(piece.shards.begin(), piece.shards.end(),
                     [](const PlacedPiece& shard) { return shard.as_told; })) {
      return;
    }
    if (cuts_.size() < kMostCuts) cuts_.emplace_back();
    KnownCut& cut = cuts_[next_cut_++ % kMostCuts];
    cut.key = {tensor.rank,  tensor.file,  tensor.table,      tensor.stage,       tensor.grid,
               tensor.dtype, array_.dtype, tensor.full_shape, tensor.shard_shape, piece.box};
    cut.source_offset = tensor.content.front().offset;
    cut.segment = content;
  }

  // Adds a tensor that is cut as another one was, which has been proved, from the same files.
  Status AddAlike(KnownCut& cut, const SourceTensor& tensor, Frame& frame) {
    RESHARD_RETURN_IF_ERROR(AddLiteral(tensor.name, frame.literal));
    const uint64_t offset = plan_.size;
    RESHARD_RETURN_IF_ERROR(Extend(tensor.name, frame.content.length));
    auto& content = std::get<Content>(cut.segment);
    // Unsigned numbers wrap around: both may move to and fro.
    const uint64_t in_source = tensor.content.front().offset -
                               std::exchange(cut.source_offset, tensor.content.front().offset);
    const uint64_t in_target = offset - content.target.offset;
    content.geometry.MoveShards(static_cast<int64_t>(in_source));
    content.target.offset += in_target;
    for (BlockCopy& copy : content.copies) {
      copy.source_offset += in_source;
      copy.target_offset += in_target;
    }
    if (!keeps_) {
      RESHARD_RETURN_IF_ERROR(Flush());
      content.source_name = tensor.name;
      content.target_name = array_.name;
      made_ += content.copies.size();
      visit_(cut.segment);
      return {};
    }
    const KeptNames names = KeepNames(tensor.name);
    content.source_name = names.source;
    content.target_name = names.target;
    plan_.segments.push_back(cut.segment);
    return {};
  }

  // Adds bytes of a piece.
  Status AddContent(const CoveredPiece& piece, ByteRange part) {
    const SourceTensor& tensor = piece.tensor;
    const uint64_t offset = plan_.size;
    RESHARD_RETURN_IF_ERROR(Extend(tensor.name, part.length));
    Content content{.source_name = piece.names.source,
                    .target_name = piece.names.target,
                    .dtype = tensor.dtype,
                    .cast_to = {},
                    .geometry = {},
                    .box_offset = part.offset,
                    .target = {offset, part.length},
                    .copies = {}};
    if (array_.dtype != tensor.dtype) content.cast_to = array_.dtype;
    // Elements that another Value has bytes of are gathered for both.
    const uint64_t first = part.offset / ItemBytes(array_.dtype) * ItemBytes(tensor.dtype);
    const ByteRange image = {content.is_cast() ? first : part.offset,
                             content.ImageRange(content.target).length};
    RESHARD_ASSIGN_OR_RETURN(ShardCopies made,
                             MakeCopies(tensor, piece.shards, piece.box, image, offset));
    content.geometry = {tensor.full_shape, piece.box, made.shards};
    content.copies = std::move(made.copies);
    plan_.segments.emplace_back(std::move(content));
    return {};
  }

  // The pieces belong to one tensor of bytes.
  Status AddBytes(std::string_view name, FileId file, std::span<Frame> frames) {
    uint64_t bytes = 0;
    for (const Frame& frame : frames) bytes += frame.content.length;
    const Shape shape = {static_cast<int64_t>(bytes)};
    const Box box = Box::Whole(shape);
    const KeptNames names = KeepNames(name);
    uint64_t begin = 0;
    for (Frame& frame : frames) {
      RESHARD_RETURN_IF_ERROR(AddLiteral(name, frame.literal));
      const ByteRange& source = frame.content;
      if (source.length == 0) continue;
      const ByteRange target = {plan_.size, source.length};
      RESHARD_RETURN_IF_ERROR(Extend(name, source.length));
      const auto place = static_cast<int64_t>(source.offset) - static_cast<int64_t>(begin);
      plan_.segments.emplace_back(
          Content{.source_name = names.source,
                  .target_name = names.target,
                  .dtype = DType::kUInt8,
                  .cast_to = {},
                  .geometry = {shape, box, {{box, place}}},
                  .box_offset = begin,
                  .target = target,
                  .copies = {{file, source.offset, target.offset, source.length, {}}}});
      begin += source.length;
    }
    plan_.sources.push_back(file);
    return {};
  }

  // Passes on finished segments, and checks the memory now and then.
  Status Flush() {
    for (; seen_ < plan_.segments.size(); ++seen_) {
      const auto* const content = std::get_if<Content>(&plan_.segments[seen_]);
      made_ += content == nullptr ? 1 : content->copies.size();
      if (!visit_) continue;
      visit_(plan_.segments[seen_]);
      if (keeps_) kept_ += MemoryBytes(plan_.segments[seen_]);
    }
    if (visit_ && keeps_ && kept_ > most_kept_) {
      keeps_ = false;
      std::vector<Segment>().swap(plan_.segments);
    }
    if (!keeps_) {
      plan_.segments.clear();
      plan_.names.Clear();
      seen_ = 0;
    }
    if (plan_.sources.size() > most_sources_) {
      KeepEachOnce(plan_.sources);
      most_sources_ = 2 * plan_.sources.size() + kSourcesOfPlan;
    }
    if (made_ - checked_ < kMemoryCheckInterval) return {};
    checked_ = made_;
    return CheckMemory(source_.memory());
  }

  const Source& source_;
  const TargetFile& file_;
  const SegmentVisitor& visit_;
  const uint64_t most_kept_;  // bytes, with a visitor
  bool keeps_;                // segments, up to now
  uint64_t kept_ = 0;         // bytes of the kept segments
  uint64_t encoding_ = 0;     // bytes that making a header of all arrays takes
  TargetPlan plan_;
  TargetArray array_;  // that the encoder asked for last
  std::vector<KnownCut> cuts_;
  size_t next_cut_ = 0;
  size_t seen_ = 0;       // segments
  uint64_t checked_ = 0;  // copies and segments, when the memory was checked
  uint64_t made_ = 0;
  size_t most_sources_ = kSourcesOfPlan;
};

}  // namespace

Result<TargetPlan> MakePlan(const Source& source, const TargetFile& file,
                            const SegmentVisitor& visit, uint64_t most_kept) {
  PlanMaker maker(source, file, visit, most_kept);
  if (!file.literal.empty()) {
    RESHARD_RETURN_IF_ERROR(maker.AddHeader(file.literal));
    return maker.Take();
  }
  if (file.copied) {
    RESHARD_RETURN_IF_ERROR(maker.AddCopy(*file.copied));
    return maker.Take();
  }
  RESHARD_RETURN_IF_ERROR(file.container->encode(
      file.metadata, file.arrays, [&](size_t array) { return maker.HeaderOf(array); },
      [&](std::string literal) { return maker.AddHeader(std::move(literal)); },
      [&](std::span<Frame> frames) { return maker.Add(frames); }));
  return maker.Take();
}

}  // namespace reshard
