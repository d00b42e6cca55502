// The common parts of manifests, part records and block records: their limits, the head of a
// record, the Value, and the reading of members. Pure functions; any thread.
#ifndef RESHARD_SRC_RECORD_RECORD_FIELDS_H_
#define RESHARD_SRC_RECORD_RECORD_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"
#include "src/record/strict_json.h"

namespace reshard {

inline constexpr uint64_t kManifestSchema = 3;
inline constexpr uint64_t kRecordSchema = 2;  // of part records and block records
inline constexpr size_t kDigestDigits = 32;   // of a digest in hexadecimal
inline constexpr std::string_view kManifestTool = "reshard";

// What to do about a damaged manifest or record.
inline constexpr const char* kManifestAdvice = "restore it from a copy, or convert again";

// The reason why a manifest or record is invalid; no value if it is valid. Encoders and parsers
// refuse the same values.
using Fault = std::optional<std::string>;

Fault FingerprintFault(std::string_view fingerprint);
Fault DigestFault(std::string_view digest);  // an empty one is a fault
// Not absolute, no empty component, none that is "." or "..", not too long.
Fault RelativePathFault(std::string_view path);
Fault TargetPathFault(std::string_view path);

// `previous` is the path of the entry before, empty for the first.
Fault FileFault(const ManifestFile& file, std::string_view previous);
Fault SourceFault(const ManifestSource& source, std::string_view previous);
Fault StampFault(const SourceStamp& stamp, std::string_view previous);

// The rules that tie the members of a head to each other; each of its sources has passed
// SourceFault.
Fault HeadFault(const PartRecordHead& head);
// `end` is the first byte of the target file that no earlier Value has.
Fault ValueFault(const RecordedValue& value, uint64_t end, uint64_t target_size, bool has_digests);

// The members of a Value. Fields of other shapes in the same document begin at kAfterValueFields.
enum ValueField : int {
  kValueObject,
  kValueName,
  kValueDType,
  kValueFullShape,
  kValueBoxBegin,
  kValueBoxExtent,
  kValueOffset,
  kValueLength,
  kValueDigest,
  kValueCastFrom,
  kValueOther,
  kAfterValueFields,
};

inline constexpr JsonShape kValueDimElement[] = {{nullptr, JsonKind::kUnsigned, kValueFullShape}};
inline constexpr JsonShape kValueBeginElement[] = {{nullptr, JsonKind::kUnsigned, kValueBoxBegin}};
inline constexpr JsonShape kValueExtentElement[] = {
    {nullptr, JsonKind::kUnsigned, kValueBoxExtent}};
inline constexpr JsonShape kValueBoxMembers[] = {
    {"begin", JsonKind::kArray, kValueOther, kValueBeginElement},
    {"extent", JsonKind::kArray, kValueOther, kValueExtentElement}};
inline constexpr JsonShape kValueMembers[] = {
    {"name", JsonKind::kBytes, kValueName},
    {"dtype", JsonKind::kString, kValueDType},
    {"full_shape", JsonKind::kArray, kValueOther, kValueDimElement},
    {"box", JsonKind::kObject, kValueOther, kValueBoxMembers},
    {"offset", JsonKind::kUnsigned, kValueOffset},
    {"length", JsonKind::kUnsigned, kValueLength},
    {"digest", JsonKind::kStringOrNull, kValueDigest},
    {"cast_from", JsonKind::kString, kValueCastFrom, {}, true},
};

// Takes a member of a Value into `out`. Errors: kCorrupt.
Status TakeValueField(int field, const JsonValue& value, RecordedValue& out);

// The members of a head that all records have. Other members' fields begin at kAfterHeadFields.
enum HeadField : int {
  kHead,
  kHeadSchemaVersion,
  kHeadPlan,
  kHeadPath,
  kHeadSize,
  kHeadBlockBytes,
  kHeadBlock,
  kHeadSourcePath,
  kHeadSourceSize,
  kHeadSource,
  kHeadOther,
  kAfterHeadFields,
};

inline constexpr JsonShape kHeadBlockElement[] = {{nullptr, JsonKind::kString, kHeadBlock}};

// Takes a member of a head into `out`, a PartRecordHead or a BlockRecord; `source` is the one that
// is being read. Errors: kCorrupt; kUnsupported for another schema_version.
template <typename Head>
Status TakeHeadField(int field, const JsonValue& value, Head& out, ManifestSource& source);

Status CorruptIf(const Fault& fault);
// Takes a digest, or none. Errors: kCorrupt.
Status SetDigest(const JsonValue& value, std::string& digest);
// Errors: kUnsupported for any but `known`.
Status CheckSchemaVersion(const JsonValue& value, uint64_t known);
Status CheckBlockBytes(const JsonValue& value);
// Of the last one read, which the next has to follow; empty before the first.
template <typename Entry>
std::string_view LastPath(const std::vector<Entry>& entries) {
  return entries.empty() ? std::string_view() : entries.back().path;
}

// Reads a manifest, or a line of a record. Errors: as ReadStrictJson, with advice.
Status ReadWithAdvice(std::string_view text, const std::string& where, const JsonShape& shape,
                      const JsonSink& sink);

// Appends the object of a Value, one line without its end.
void AppendValueAsJson(const RecordedValue& value, std::string& json);
std::string DigestOrNull(const std::string& digest);
// Ok for none.
Fault OptionalDigestFault(const std::string& digest);

template <typename Head>
Status TakeHeadField(int field, const JsonValue& value, Head& out, ManifestSource& source) {
  switch (field) {
    case kHeadSchemaVersion:
      return CheckSchemaVersion(value, kRecordSchema);
    case kHeadPlan:
      out.plan = std::move(*value.text);
      return CorruptIf(FingerprintFault(out.plan));
    case kHeadPath:
      out.path = std::move(*value.text);
      return CorruptIf(TargetPathFault(out.path));
    case kHeadSize:
      out.size = value.number;
      return {};
    case kHeadBlockBytes:
      return CheckBlockBytes(value);
    case kHeadBlock:
      out.blocks.emplace_back();
      return SetDigest(value, out.blocks.back());
    case kHeadSourcePath:
      source.path = std::move(*value.text);
      return CorruptIf(SourceFault(source, LastPath(out.sources)));
    case kHeadSourceSize:
      source.size = value.number;
      return {};
    case kHeadSource:
      out.sources.push_back(std::exchange(source, {}));
      return {};
    default:
      return {};
  }
}

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_RECORD_FIELDS_H_
