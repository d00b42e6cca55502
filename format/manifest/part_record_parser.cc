#include <fmt/format.h>

#include <utility>

#include "format/manifest/manifest_check.h"
#include "format/manifest/part_record.h"
#include "format/manifest/record_fields.h"
#include "format/manifest/strict_json.h"
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
  kDigest,
  kBlockBytes,
  kBlock,
  kSourcePath,
  kSourceSize,
  kSourceDigest,
  kSource,
  kHeadOther,
};

using enum JsonKind;

constexpr JsonShape kBlockElement[] = {{nullptr, kString, kBlock}};
constexpr JsonShape kSourceMembers[] = {{"path", kBytes, kSourcePath},
                                        {"size", kUnsigned, kSourceSize},
                                        {"digest", kStringOrNull, kSourceDigest}};
constexpr JsonShape kSourceElement[] = {{nullptr, kObject, kSource, kSourceMembers}};
constexpr JsonShape kHeadMembers[] = {
    {"schema_version", kUnsigned, kSchemaVersion},
    {"plan", kString, kPlan},
    {"path", kBytes, kPath},
    {"size", kUnsigned, kSize},
    {"digest", kStringOrNull, kDigest},
    {"block_bytes", kUnsigned, kBlockBytes},
    {"blocks", kArray, kHeadOther, kBlockElement},
    {"sources", kArray, kHeadOther, kSourceElement},
};
constexpr JsonShape kHeadShape = {nullptr, kObject, kHead, kHeadMembers};

constexpr JsonShape kValueShape = {nullptr, kObject, kValueObject, kValueMembers};

class HeadReader {
 public:
  Status Take(int field, const JsonValue& value) {
    switch (static_cast<HeadField>(field)) {
      case kSchemaVersion:
        return CheckSchemaVersion(value);
      case kPlan:
        head_.plan = std::move(*value.text);
        return CorruptIf(FingerprintFault(head_.plan));
      case kPath:
        head_.path = std::move(*value.text);
        return CorruptIf(TargetPathFault(head_.path));
      case kSize:
        head_.size = value.number;
        return {};
      case kDigest:
        return SetDigest(value, head_.digest);
      case kBlockBytes:
        return CheckBlockBytes(value);
      case kBlock:
        RESHARD_RETURN_IF_ERROR(CorruptIf(DigestFault(*value.text)));
        head_.blocks.push_back(std::move(*value.text));
        return {};
      case kSourcePath:
        source_.path = std::move(*value.text);
        return CorruptIf(SourceFault(
            source_, head_.sources.empty() ? std::string_view() : head_.sources.back().path));
      case kSourceSize:
        source_.size = value.number;
        return {};
      case kSourceDigest:
        return SetDigest(value, source_.digest);
      case kSource:
        head_.sources.push_back(std::exchange(source_, {}));
        return {};
      case kHead:
        return CorruptIf(HeadFault(head_));
      case kHeadOther:
        return {};
    }
    return {};
  }

  PartRecordHead TakeHead() { return std::move(head_); }

 private:
  PartRecordHead head_;
  ManifestSource source_;  // the one being read
};

}  // namespace

PartRecordParser::PartRecordParser(std::string path, ValueSink on_value)
    : on_value_(std::move(on_value)), lines_(std::move(path)) {}

Status PartRecordParser::Feed(std::string_view bytes) {
  return lines_.Feed(bytes, [this](std::string_view line, const std::string& where) {
    return head_ ? TakeValue(line, where) : TakeHead(line, where);
  });
}

Status PartRecordParser::TakeHead(std::string_view line, const std::string& where) {
  HeadReader reader;
  RESHARD_RETURN_IF_ERROR(
      ReadRecordLine(line, where, kHeadShape,
                     [&](int field, const JsonValue& value) { return reader.Take(field, value); }));
  head_ = reader.TakeHead();
  return {};
}

Status PartRecordParser::TakeValue(std::string_view line, const std::string& where) {
  RecordedValue value;
  RESHARD_RETURN_IF_ERROR(ReadRecordLine(
      line, where, kValueShape,
      [&](int field, const JsonValue& part) { return TakeValueField(field, part, value); }));
  if (const auto fault = ValueFault(value, end_, head_->size, !head_->digest.empty())) {
    return CorruptError(fmt::format("{}: {}; {}", Escape(where), *fault, kManifestAdvice));
  }
  end_ = value.offset + value.length;
  if (on_value_) on_value_(value);
  return {};
}

Status PartRecordParser::Finish() const { return lines_.Finish(); }

}  // namespace reshard
