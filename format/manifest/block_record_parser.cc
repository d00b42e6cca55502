#include <fmt/format.h>

#include <utility>

#include "format/manifest/block_record.h"
#include "format/manifest/block_record_check.h"
#include "format/manifest/record_fields.h"
#include "format/manifest/sealed_lines.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

enum HeadField : int {
  kHead,
  kSchemaVersion,
  kPlan,
  kPath,
  kSize,
  kPartOffset,
  kPartLength,
  kBlockBytes,
  kBlock,
  kSourcePath,
  kSourceSize,
  kSource,
  kHeadOther,
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
constexpr JsonShape kBlockElement[] = {{nullptr, kString, kBlock}};
constexpr JsonShape kSourceMembers[] = {{"path", kBytes, kSourcePath},
                                        {"size", kUnsigned, kSourceSize}};
constexpr JsonShape kSourceElement[] = {{nullptr, kObject, kSource, kSourceMembers}};
constexpr JsonShape kHeadMembers[] = {
    {"schema_version", kUnsigned, kSchemaVersion},
    {"plan", kString, kPlan},
    {"path", kBytes, kPath},
    {"size", kUnsigned, kSize},
    {"part", kObject, kHeadOther, kPartMembers},
    {"block_bytes", kUnsigned, kBlockBytes},
    {"blocks", kArray, kHeadOther, kBlockElement},
    {"sources", kArray, kHeadOther, kSourceElement},
};
constexpr JsonShape kHeadShape = {nullptr, kObject, kHead, kHeadMembers};

constexpr JsonShape kTakenMembers[] = {{"source", kUnsigned, kTakenSource},
                                       {"digest", kStringOrNull, kTakenDigest}};
constexpr JsonShape kTakenElement[] = {{nullptr, kObject, kTaken, kTakenMembers}};
constexpr JsonShape kLineMembers[] = {{"value", kObject, kValueObject, kValueMembers},
                                      {"taken", kArray, kValueOther, kTakenElement}};
constexpr JsonShape kLineShape = {nullptr, kObject, kLine, kLineMembers};

class HeadReader {
 public:
  explicit HeadReader(BlockRecord& record) : record_(record) {}

  Status Take(int field, const JsonValue& value) {
    switch (static_cast<HeadField>(field)) {
      case kSchemaVersion:
        return CheckSchemaVersion(value);
      case kPlan:
        record_.plan = std::move(*value.text);
        return CorruptIf(FingerprintFault(record_.plan));
      case kPath:
        record_.path = std::move(*value.text);
        return CorruptIf(TargetPathFault(record_.path));
      case kSize:
        record_.size = value.number;
        return {};
      case kPartOffset:
        record_.part.offset = value.number;
        return {};
      case kPartLength:
        record_.part.length = value.number;
        return {};
      case kBlockBytes:
        return CheckBlockBytes(value);
      case kBlock:
        RESHARD_RETURN_IF_ERROR(CorruptIf(DigestFault(*value.text)));
        record_.blocks.push_back(std::move(*value.text));
        return {};
      case kSourcePath:
        source_.path = std::move(*value.text);
        return CorruptIf(SourceFault(
            source_, record_.sources.empty() ? std::string_view() : record_.sources.back().path));
      case kSourceSize:
        source_.size = value.number;
        return {};
      case kSource:
        record_.sources.push_back(std::exchange(source_, {}));
        return {};
      case kHead:
        return CorruptIf(BlockHeadFault(record_));
      case kHeadOther:
        return {};
    }
    return {};
  }

 private:
  BlockRecord& record_;
  ManifestSource source_;  // the one being read
};

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
      HeadReader reader(record);
      return ReadRecordLine(line, where, kHeadShape, [&](int field, const JsonValue& value) {
        return reader.Take(field, value);
      });
    }
    PartialValue partial;
    TakenDigest taken;
    RESHARD_RETURN_IF_ERROR(
        ReadRecordLine(line, where, kLineShape, [&](int field, const JsonValue& value) {
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
