#include "format/mindspore_checkpoint/mindspore_container.h"

#include <utility>

#include "format/mindspore_checkpoint/checkpoint_encoder.h"
#include "format/mindspore_checkpoint/checkpoint_reader.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

Likeness LikenessOf(std::span<const std::byte> /*head*/) { return Likeness::kPossible; }

bool CanHold(ArrayKind kind, DType dtype) {
  return kind != ArrayKind::kPacked && (kind != ArrayKind::kTensor || IsMindSporeType(dtype));
}

MindSporeLoads LoadsOf(DType dtype, const Shape& shape) {
  switch (dtype) {
    case DType::kComplex64:
    case DType::kComplex128:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kHiFloat8:
      return MindSporeLoads::kNot;
    default:
      return shape == Shape{0} ? MindSporeLoads::kAsScalar : MindSporeLoads::kAsWritten;
  }
}

Status Encode(const FileMetadata& metadata, size_t arrays, const ArrayHeaderAt& header_at,
              const TakeLiteral& take_literal, const TakeFrames& take) {
  RESHARD_RETURN_IF_ERROR(EncodeMindSpore(arrays, header_at, take));
  return metadata.states_crc ? take_literal(EncodeCrcTrailer(0)) : Status();
}

Result<CrcText> TextOfCrc(std::span<const std::byte> /*head*/, uint64_t file_size, uint32_t crc) {
  std::string bytes = EncodeCrcTrailer(crc);
  if (file_size >= bytes.size()) return CrcText{file_size - bytes.size(), std::move(bytes)};
  return CorruptError("there is no place in it that states a CRC-32");
}

}  // namespace

constinit const Container kMindSporeContainer = {
    .name = "ckpt",
    .kind = "a MindSpore checkpoint (weights)",
    .extension = ".ckpt",
    .may_be_encrypted = true,
    .may_be_one_stage = true,
    .crc = {CrcPlace::kBehind, TextOfCrc},
    .likeness = LikenessOf,
    .read_table = ReadMindSporeTable,
    .covered_by_crc = CoveredByTrailer,
    .waits_for_headers = WaitsForHeaders,
    .can_hold = CanHold,
    .loads = LoadsOf,
    .encode = Encode,
};

}  // namespace reshard
