#include <fmt/format.h>

#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/record/block_record.h"
#include "src/record/block_record_check.h"
#include "src/record/record_fields.h"
#include "src/record/sealed_lines.h"

namespace reshard {
namespace {

enum BlockHeadField : int {
  kPartOffset = kAfterHeadFields,
  kPartLength,
};

enum TakenField : int {
  kTakenSource = kAfterValueFields,
  kTakenDigest,
  kTaken,
  kLine,
};

using enum JsonKind;

constexpr JsonShape kPartMembers[] = {{"offset", kUnsigned, kPartOffset},
                                      {"length", kUnsigned, kPartLength}};
constexpr JsonShape kSourceMembers[] = {{"path", kBytes, kHeadSourcePath},
                                        {"size", kUnsigned, kHeadSourceSize}};
constexpr JsonShape kSourceElement[] = {{nullptr, kObject, kHeadSource, kSourceMembers}};
constexpr JsonShape kHeadMembers[] = {
    {"schema_version", kUnsigned, kHeadSchemaVersion},
    {"plan", kString, kHeadPlan},
    {"path", kBytes, kHeadPath},
    {"size", kUnsigned, kHeadSize},
    {"part", kObject, kHeadOther, kPartMembers},
    {"block_bytes", kUnsigned, kHeadBlockBytes},
    {"blocks", kArray, kHeadOther, kHeadBlockElement},
    {"sources", kArray, kHeadOther, kSourceElement},
};
constexpr JsonShape kHeadShape = {nullptr, kObject, kHead, kHeadMembers};

constexpr JsonShape kTakenMembers[] = {{"source", kUnsigned, kTakenSource},
                                       {"digest", kStringOrNull, kTakenDigest}};
constexpr JsonShape kTakenElement[] = {{nullptr, kObject, kTaken, kTakenMembers}};
constexpr JsonShape kLineMembers[] = {{"value", kObject, kValueObject, kValueMembers},
                                      {"taken", kArray, kValueOther, kTakenElement}};
constexpr JsonShape kLineShape = {nullptr, kObject, kLine, kLineMembers};

Status TakeHead(int field, const JsonValue& value, BlockRecord& record, ManifestSource& source) {
  switch (field) {
    case kPartOffset:
      record.part.offset = value.number;
      return {};
    case kPartLength:
      record.part.length = value.number;
      return {};
    case kHead:
      return CorruptIf(BlockHeadFault(record));
    default:
      return TakeHeadField(field, value, record, source);
  }
}

Status TakeField(int field, const JsonValue& value, PartialValue& partial, TakenDigest& taken) {
  switch (field) {
    case kTakenSource:
      taken.source = value.number;
      return {};
    case kTakenDigest:
      return SetDigest(value, taken.digest);
    case kTaken:
      partial.taken.push_back(std::exchange(taken, {}));
      return {};
    default:
      return TakeValueField(field, value, partial.value);
  }
}

}  // namespace

Result<BlockRecord> ParseBlockRecord(std::string_view bytes, const std::string& path) {
  BlockRecord record;
  bool has_head = false;
  uint64_t end = 0;
  const auto take = [&](std::string_view line, const std::string& where) -> Status {
    if (!has_head) {
      has_head = true;
      ManifestSource source;
      return ReadWithAdvice(line, where, kHeadShape, [&](int field, const JsonValue& value) {
        return TakeHead(field, value, record, source);
      });
    }
    PartialValue partial;
    TakenDigest taken;
    RESHARD_RETURN_IF_ERROR(
        ReadWithAdvice(line, where, kLineShape, [&](int field, const JsonValue& value) {
          return TakeField(field, value, partial, taken);
        }));
    if (const auto fault = PartialValueFault(partial, end, record)) {
      return CorruptError(fmt::format("{}: {}; {}", Escape(where), *fault, kManifestAdvice));
    }
    end = partial.value.offset + partial.value.length;
    record.values.push_back(std::move(partial));
    return {};
  };
  SealedLines lines(path);
  RESHARD_RETURN_IF_ERROR(lines.Feed(bytes, take));
  RESHARD_RETURN_IF_ERROR(lines.Finish());
  return record;
}

}  // namespace reshard
