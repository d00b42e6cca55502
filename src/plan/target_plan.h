// TargetPlan: the parts of a target file, and the source of each byte.
//
// Pure arithmetic, made without touching content. It can be printed, compared and tested without a
// disk. A plain value.
#ifndef RESHARD_SRC_PLAN_TARGET_PLAN_H_
#define RESHARD_SRC_PLAN_TARGET_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "format/container/container.h"
#include "reshard/byte_range.h"
#include "reshard/tensor.h"
#include "src/base/name_arena.h"
#include "src/io/source_files.h"
#include "src/plan/content_geometry.h"
#include "src/tensor/block_copy.h"

namespace reshard {

// Encoded bytes of the target file: headers.
struct Literal {
  uint64_t offset = 0;  // in the target file
  std::string bytes;
};

// The content of a Value of the target file.
struct Content {
  std::string_view source_name;  // kept by the plan
  std::string_view target_name;
  DType dtype = DType::kFloat32;      // in the sources
  std::optional<DType> cast_to = {};  // the gathered bytes are cast to another dtype
  ContentGeometry geometry;
  // The offset of this Value's content in the row-major bytes of the box of the whole parameter, in
  // the target's dtype.
  uint64_t box_offset = 0;
  ByteRange target;  // in the target file
  // Disjoint; together they write exactly ImageRange(target), ordered by first byte there.
  std::vector<BlockCopy> copies;

  bool is_cast() const { return cast_to.has_value(); }
  DType target_dtype() const { return cast_to.value_or(dtype); }
  // Returns the range of the image from which the bytes `range` of the target file are made. The
  // image of a content has the elements before a cast, in the sources' dtype, and is not a part of
  // the file. It begins where `target` does, with the first element that has a byte there. Without
  // a cast the image is `target`.
  ByteRange ImageRange(ByteRange range) const;
};

using Segment = std::variant<Literal, Content>;

struct TargetPlan {
  int64_t rank = 0;
  std::string path;  // relative to the target folder: "rank_3/checkpoint_3.ckpt"
  uint64_t size = 0;
  std::vector<Segment> segments;  // in file order, without gaps
  bool is_whole = true;           // false: they were given to a visitor, one after the other
  uint64_t parameters = 0;
  std::vector<FileId> sources;  // files that the plan reads, ascending
  NameArena names;              // that contents refer to
  // How the file states its CRC-32, whose place has 0 in the plan; null if it states none.
  const CrcStatement* crc = nullptr;
  uint64_t making_bytes = 0;  // about the additional memory for making it

  bool StatesCrc(CrcPlace place) const { return crc != nullptr && crc->place == place; }
};

// A plan with several owners, which must not change.
using PlanHandle = std::shared_ptr<const TargetPlan>;

// About the bytes of memory that a segment holds.
size_t MemoryBytes(const Segment& segment);

// Returns the target file's bytes that `segment` stands for.
ByteRange TargetRange(const Segment& segment);

// Return the places in the full tensor of the bytes that a copy of a content reads, and of the
// content's bytes in the target file or in its image.
LogicalMap SourceMapOf(const Content& content, size_t copy);
LogicalMap TargetMapOf(const Content& content);
LogicalMap ImageMapOf(const Content& content);

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_TARGET_PLAN_H_
