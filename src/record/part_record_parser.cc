#include <fmt/format.h>

#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/record/manifest_check.h"
#include "src/record/part_record.h"
#include "src/record/record_fields.h"
#include "src/record/strict_json.h"

namespace reshard {
namespace {

enum PartHeadField : int {
  kPartDigest = kAfterHeadFields,
  kPartSourceDigest,
};

using enum JsonKind;

constexpr JsonShape kPartSourceMembers[] = {{"path", kBytes, kHeadSourcePath},
                                            {"size", kUnsigned, kHeadSourceSize},
                                            {"digest", kStringOrNull, kPartSourceDigest}};
constexpr JsonShape kPartSourceElement[] = {{nullptr, kObject, kHeadSource, kPartSourceMembers}};
constexpr JsonShape kPartHeadMembers[] = {
    {"schema_version", kUnsigned, kHeadSchemaVersion},
    {"plan", kString, kHeadPlan},
    {"path", kBytes, kHeadPath},
    {"size", kUnsigned, kHeadSize},
    {"digest", kStringOrNull, kPartDigest},
    {"block_bytes", kUnsigned, kHeadBlockBytes},
    {"blocks", kArray, kHeadOther, kHeadBlockElement},
    {"sources", kArray, kHeadOther, kPartSourceElement},
};
constexpr JsonShape kPartHeadShape = {nullptr, kObject, kHead, kPartHeadMembers};

constexpr JsonShape kValueShape = {nullptr, kObject, kValueObject, kValueMembers};

Status TakeField(int field, const JsonValue& value, PartRecordHead& head, ManifestSource& source) {
  switch (field) {
    case kPartDigest:
      return SetDigest(value, head.digest);
    case kPartSourceDigest:
      return SetDigest(value, source.digest);
    case kHead:
      return CorruptIf(HeadFault(head));
    default:
      return TakeHeadField(field, value, head, source);
  }
}

}  // namespace

PartRecordParser::PartRecordParser(std::string path, ValueSink on_value)
    : on_value_(std::move(on_value)), lines_(std::move(path)) {}

Status PartRecordParser::Feed(std::string_view bytes) {
  return lines_.Feed(bytes, [this](std::string_view line, const std::string& where) {
    if (!head_) return TakeHead(line, where);
    return on_value_ ? TakeValue(line, where) : Status();
  });
}

Status PartRecordParser::TakeHead(std::string_view line, const std::string& where) {
  PartRecordHead head;
  ManifestSource source;
  RESHARD_RETURN_IF_ERROR(ReadWithAdvice(
      line, where, kPartHeadShape,
      [&](int field, const JsonValue& value) { return TakeField(field, value, head, source); }));
  head_ = std::move(head);
  return {};
}

Status PartRecordParser::TakeValue(std::string_view line, const std::string& where) {
  RecordedValue value;
  RESHARD_RETURN_IF_ERROR(ReadWithAdvice(
      line, where, kValueShape,
      [&](int field, const JsonValue& part) { return TakeValueField(field, part, value); }));
  if (const auto fault = ValueFault(value, end_, head_->size, !head_->digest.empty())) {
    return CorruptError(fmt::format("{}: {}; {}", Escape(where), *fault, kManifestAdvice));
  }
  end_ = value.offset + value.length;
  on_value_(value);
  return {};
}

Status PartRecordParser::Finish() const { return lines_.Finish(); }

}  // namespace reshard
