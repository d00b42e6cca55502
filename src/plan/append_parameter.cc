#include "src/plan/append_parameter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "format/mindspore_checkpoint/value_header.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/plan/make_copies.h"
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

Status AppendHeader(std::string_view name, std::string bytes, TargetPlan& plan) {
  Literal header{plan.size, std::move(bytes)};
  RESHARD_RETURN_IF_ERROR(Extend(plan, name, header.bytes.size()));
  plan.segments.emplace_back(std::move(header));
  return {};
}

struct KeptNames {
  std::string_view source;
  std::string_view target;
};

// Most parameters keep their names.
KeptNames KeepNames(std::string_view source, std::string_view target, TargetPlan& plan) {
  const std::string_view kept = plan.names.Keep(source);
  return {kept, target == source ? kept : plan.names.Keep(target)};
}

// Bytes of a source file, and what is written before them.
struct Piece {
  std::string header;
  ByteRange bytes;
};

std::vector<Piece> PiecesAsTheyStand(const StoredArray& parameter) {
  std::vector<Piece> pieces;
  for (const ByteRange& value : parameter.framed) pieces.push_back({"", value});
  return pieces;
}

std::vector<Piece> RenamedPieces(const StoredArray& parameter, const std::string& name) {
  std::vector<Piece> pieces;
  if (parameter.kind == ArrayKind::kMapTensor) {
    const std::span<const MapTensorPart> parts(parameter.map_tensor);
    for (size_t first = 0; first < parts.size(); first += kMapTensors) {
      const auto value = parts.subspan(first).first<kMapTensors>();
      auto headers = EncodeMapTensorHeaders(name, value);
      for (size_t i = 0; i < kMapTensors; ++i) {
        pieces.push_back({std::move(headers[i]), value[i].content});
      }
    }
  } else {
    for (const ByteRange& content : parameter.content) {
      pieces.push_back(
          {EncodeValueHeader(name, parameter.dtype, parameter.shape, content.length), content});
    }
  }
  return pieces;
}

}  // namespace

Status AppendTensor(const SourceTensor& tensor, const std::string& target_name,
                    const std::vector<PlacedPiece>& shards, const Box& box, const Shape& dims,
                    TargetPlan& plan) {
  const uint64_t bytes = Volume(ToByteBox(box, tensor.dtype));
  const KeptNames names = KeepNames(tensor.name, target_name, plan);
  uint64_t begin = 0;
  do {
    const uint64_t length = std::min(bytes - begin, kValueContentBytes);
    RESHARD_RETURN_IF_ERROR(AppendHeader(
        tensor.name, EncodeValueHeader(target_name, tensor.dtype, dims, length), plan));
    if (length != 0) {
      const uint64_t offset = plan.size;
      RESHARD_RETURN_IF_ERROR(Extend(plan, tensor.name, length));
      RESHARD_ASSIGN_OR_RETURN(ShardCopies made,
                               MakeCopies(tensor, shards, box, {begin, length}, offset));
      plan.segments.emplace_back(Content{.source_name = names.source,
                                         .target_name = names.target,
                                         .dtype = tensor.dtype,
                                         .geometry = {tensor.full_shape, box, made.shards},
                                         .box_offset = begin,
                                         .target = {offset, length},
                                         .copies = std::move(made.copies)});
    }
    begin += length;
  } while (begin < bytes);
  ++plan.parameters;
  for (const PlacedPiece& shard : shards) plan.sources.push_back(shard.file);
  return {};
}

Status AppendWholeValues(const StoredArray& parameter, const std::string& target_name, FileId file,
                         TargetPlan& plan) {
  std::vector<Piece> pieces = parameter.name == target_name ? PiecesAsTheyStand(parameter)
                                                            : RenamedPieces(parameter, target_name);
  uint64_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.bytes.length;
  const Shape shape = {static_cast<int64_t>(bytes)};
  const Box box = Box::Whole(shape);
  const KeptNames names = KeepNames(parameter.name, target_name, plan);
  uint64_t begin = 0;
  for (auto& [header, source] : pieces) {
    if (!header.empty()) {
      RESHARD_RETURN_IF_ERROR(AppendHeader(parameter.name, std::move(header), plan));
    }
    if (source.length == 0) continue;
    const ByteRange target = {plan.size, source.length};
    RESHARD_RETURN_IF_ERROR(Extend(plan, parameter.name, source.length));
    const auto place = static_cast<int64_t>(source.offset) - static_cast<int64_t>(begin);
    plan.segments.emplace_back(
        Content{.source_name = names.source,
                .target_name = names.target,
                .dtype = DType::kUInt8,
                .geometry = {shape, box, {{box, place}}},
                .box_offset = begin,
                .target = target,
                .copies = {{file, source.offset, target.offset, source.length, {}}}});
    begin += source.length;
  }
  ++plan.parameters;
  plan.sources.push_back(file);
  return {};
}

}  // namespace reshard
