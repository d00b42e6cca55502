// What part records and block records have in common: the Value, and how its members are read.
//
// Pure functions; any thread.
#ifndef RESHARD_FORMAT_MANIFEST_RECORD_FIELDS_H_
#define RESHARD_FORMAT_MANIFEST_RECORD_FIELDS_H_

#include <string>
#include <string_view>

#include "format/manifest/manifest_check.h"
#include "format/manifest/part_record.h"
#include "format/manifest/strict_json.h"
#include "reshard/status.h"

namespace reshard {

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
};

// Takes a member of a Value into `out`. Errors: kCorrupt.
Status TakeValueField(int field, const JsonValue& value, RecordedValue& out);

Status CorruptIf(const Fault& fault);
// Takes a digest, or none. Errors: kCorrupt.
Status SetDigest(const JsonValue& value, std::string& digest);
// Errors: kUnsupported for any but ours.
Status CheckSchemaVersion(const JsonValue& value);
Status CheckBlockBytes(const JsonValue& value);

// Reads a line that is one object. Errors: those of ReadStrictJson, with what to do.
Status ReadRecordLine(std::string_view line, const std::string& where, const JsonShape& shape,
                      const JsonSink& sink);

// Returns the object of a Value, one line without its end.
std::string ValueAsJson(const RecordedValue& value);
std::string DigestOrNull(const std::string& digest);
// Ok for none.
Fault OptionalDigestFault(const std::string& digest);

}  // namespace reshard

#endif  // RESHARD_FORMAT_MANIFEST_RECORD_FIELDS_H_
