#include "format/mindspore_checkpoint/checkpoint_encoder.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "format/mindspore_checkpoint/value_header.h"
#include "format/mindspore_checkpoint/value_parser.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

std::vector<Frame> FramesOfTensor(const ArrayHeader& tensor) {
  std::vector<Frame> frames;
  uint64_t begin = 0;
  do {
    const uint64_t length = std::min(tensor.bytes - begin, kValueContentBytes);
    frames.push_back(
        {EncodeValueHeader(tensor.name, tensor.dtype, *tensor.shape, length), {begin, length}});
    begin += length;
  } while (begin < tensor.bytes);
  return frames;
}

std::vector<Frame> RenamedFrames(const StoredArray& stored, std::string_view name) {
  std::vector<Frame> frames;
  if (stored.kind == ArrayKind::kMapTensor) {
    const std::span<const MapTensorPart> parts(stored.map_tensor);
    frames.reserve(parts.size());
    for (size_t first = 0; first < parts.size(); first += kMapTensors) {
      const auto value = parts.subspan(first).first<kMapTensors>();
      auto headers = EncodeMapTensorHeaders(name, value);
      for (size_t i = 0; i < kMapTensors; ++i) {
        frames.push_back({std::move(headers[i]), value[i].content});
      }
    }
    return frames;
  }
  frames.reserve(stored.content.size());
  for (const ByteRange& content : stored.content) {
    frames.push_back(
        {EncodeValueHeader(name, stored.dtype, stored.shape, content.length), content});
  }
  return frames;
}

std::vector<Frame> FramesOf(const ArrayHeader& array) {
  if (array.opaque == nullptr) return FramesOfTensor(array);
  if (array.opaque->name != array.name) return RenamedFrames(*array.opaque, array.name);
  std::vector<Frame> frames;
  frames.reserve(array.opaque->framed.size());
  for (const ByteRange& value : array.opaque->framed) frames.push_back({"", value});
  return frames;
}

}  // namespace

Status EncodeMindSpore(size_t arrays, const ArrayHeaderAt& header_at, const TakeFrames& take) {
  for (size_t i = 0; i < arrays; ++i) {
    RESHARD_ASSIGN_OR_RETURN(const ArrayHeader array, header_at(i));
    RESHARD_RETURN_IF_ERROR(take(FramesOf(array)));
  }
  return {};
}

}  // namespace reshard
