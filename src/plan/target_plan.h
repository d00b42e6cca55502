// TargetPlan: what one target file consists of, and where each byte comes from.
//
// Pure arithmetic, made without touching content; it can be printed, compared and tested without a
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

// The content of one Value of the target file.
struct Content {
  std::string_view source_name;  // kept by the plan
  std::string_view target_name;
  DType dtype = DType::kFloat32;      // in the sources
  std::optional<DType> cast_to = {};  // what is gathered is cast to another dtype
  ContentGeometry geometry;
  // Where this Value's content begins in the row-major bytes of the box of the whole parameter, as
  // the target file has them.
  uint64_t box_offset = 0;
  ByteRange target;  // in the target file
  // Disjoint; together they write exactly ImageRange(target), ordered by first byte there.
  std::vector<BlockCopy> copies;

  bool is_cast() const { return cast_to.has_value(); }
  DType target_dtype() const { return cast_to.value_or(dtype); }
  // Returns where the elements, in the sources' dtype, lie that the bytes `range` of the target
  // file are made of: the image of a content, which is gathered before it is cast. It begins where
  // `target` does, with the first element that has a byte there, and is no part of the file.
  // Without a cast it is `target`.
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
  std::vector<FileId> sources;  // files whose bytes it reads, ascending
  NameArena names;              // that contents refer to
  // How the file states its CRC-32, in whose place 0 is planned; null if it states none.
  const CrcStatement* crc = nullptr;
  uint64_t making_bytes = 0;  // of memory, about, that was held besides to make it

  bool StatesCrc(CrcPlace place) const { return crc != nullptr && crc->place == place; }
};

// A plan that several hold, which nobody changes.
using PlanHandle = std::shared_ptr<const TargetPlan>;

// About the bytes of memory that a segment holds.
size_t MemoryBytes(const Segment& segment);

// Returns the target file's bytes that `segment` stands for.
ByteRange TargetRange(const Segment& segment);

// Return where the bytes that a copy of a content reads, and those of the content in the target
// file or in its image, belong in the full tensor.
LogicalMap SourceMapOf(const Content& content, size_t copy);
LogicalMap TargetMapOf(const Content& content);
LogicalMap ImageMapOf(const Content& content);

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_TARGET_PLAN_H_
