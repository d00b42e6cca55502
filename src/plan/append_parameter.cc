#include "src/plan/append_parameter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "format/mindspore_checkpoint/value_header.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/plan/planner.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// Makes room for `bytes` more of the target file.
Status Extend(TargetPlan& plan, std::string_view name, uint64_t bytes) {
  constexpr uint64_t kLargestFile = std::numeric_limits<int64_t>::max();
  if (bytes > kLargestFile - plan.size) {
    return MismatchError(
        fmt::format("{}: parameter {} of {} bytes makes the file larger than a file can be",
                    plan.path, Quote(name), bytes));
  }
  plan.size += bytes;
  return {};
}

}  // namespace

Status AppendTensor(const SourceTensor& tensor, const std::vector<SourceShard>& shards,
                    const Box& box, const Shape& dims, TargetPlan& plan) {
  const uint64_t bytes = Volume(ToByteBox(box, tensor.dtype));
  uint64_t begin = 0;
  do {
    const uint64_t length = std::min(bytes - begin, kValueContentBytes);
    Literal header{plan.size, EncodeValueHeader(tensor.name, tensor.dtype, dims, length)};
    RESHARD_RETURN_IF_ERROR(Extend(plan, tensor.name, header.bytes.size()));
    plan.segments.emplace_back(std::move(header));
    if (length != 0) {
      const uint64_t offset = plan.size;
      RESHARD_RETURN_IF_ERROR(Extend(plan, tensor.name, length));
      RESHARD_ASSIGN_OR_RETURN(ShardCopies made,
                               MakeCopies(tensor, shards, box, {begin, length}, offset));
      plan.segments.emplace_back(Content{.source_name = tensor.name,
                                         .target_name = tensor.name,
                                         .dtype = tensor.dtype,
                                         .full_shape = tensor.full_shape,
                                         .target_box = box,
                                         .box_offset = begin,
                                         .target = {offset, length},
                                         .copies = std::move(made.copies),
                                         .shards = std::move(made.shards)});
    }
    begin += length;
  } while (begin < bytes);
  ++plan.parameters;
  for (const SourceShard& shard : shards) plan.sources.push_back(shard.file);
  return {};
}

Status AppendWholeValues(const ParameterInfo& parameter, FileId file, TargetPlan& plan) {
  uint64_t bytes = 0;
  for (const ByteRange& value : parameter.values) bytes += value.length;
  const Shape shape = {static_cast<int64_t>(bytes)};
  const Box box = Box::Whole(shape);
  uint64_t begin = 0;
  for (const ByteRange& value : parameter.values) {
    const ByteRange target = {plan.size, value.length};
    RESHARD_RETURN_IF_ERROR(Extend(plan, parameter.name, value.length));
    const auto place = static_cast<int64_t>(value.offset) - static_cast<int64_t>(begin);
    plan.segments.emplace_back(
        Content{.source_name = parameter.name,
                .target_name = parameter.name,
                .dtype = DType::kUInt8,
                .full_shape = shape,
                .target_box = box,
                .box_offset = begin,
                .target = target,
                .copies = {{file, value.offset, target.offset, value.length, {}}},
                .shards = {{box, place}}});
    begin += value.length;
  }
  ++plan.parameters;
  plan.sources.push_back(file);
  return {};
}

}  // namespace reshard
