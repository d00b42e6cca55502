// The common parts of manifests, part records and block records: their limits, the codecs of their
// members, and the tables that several of them have. Pure functions; any thread.
#ifndef RESHARD_SRC_RECORD_RECORD_FIELDS_H_
#define RESHARD_SRC_RECORD_RECORD_FIELDS_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "reshard/tensor.h"
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

Fault FingerprintFault(std::string_view fingerprint);
Fault DigestFault(std::string_view digest);  // an empty one is a fault
// Not absolute, no empty component, none that is "." or "..", not too long.
Fault RelativePathFault(std::string_view path);
Fault TargetPathFault(std::string_view path);

// They check paths. `previous` is the entry before, null for the first.
Fault FileFault(const ManifestFile& file, const ManifestFile* previous);
Fault SourceFault(const ManifestSource& source, const ManifestSource* previous);
Fault StampFault(const SourceStamp& stamp, const SourceStamp* previous);

// The rules that tie the members of a head to each other; each of its sources has passed
// SourceFault.
Fault HeadFault(const PartRecordHead& head);
// `end` is the first byte of the target file that no earlier Value has.
Fault ValueFault(const RecordedValue& value, uint64_t end, uint64_t target_size, bool has_digests);

// The codecs of members.

// Signed numbers are modulo 2^64.
struct AsUnsigned {
  static constexpr JsonKind kKind = JsonKind::kUnsigned;

  template <std::integral Number>
  static Status Take(JsonValue& value, Number& number) {
    number = static_cast<Number>(value.number);
    return {};
  }
  static void Put(std::integral auto number, JsonText& text) {
    text.Number(static_cast<uint64_t>(number));
  }
};

// A string without the faults that `kFault` finds.
template <JsonKind kTextKind, Fault (*kFault)(std::string_view)>
struct AsText {
  using Value = std::string;
  static constexpr JsonKind kKind = kTextKind;

  static Status Take(JsonValue& value, std::string& out) {
    out = std::move(*value.text);
    if (const auto fault = kFault(out)) return CorruptError(*fault);
    return {};
  }
  static void Put(const std::string& value, JsonText& text) {
    text.Refuse(kFault(value));
    if (kKind == JsonKind::kBytes) {
      text.Bytes(value);
    } else {
      text.Word(value);
    }
  }
};

inline Fault NoFault(std::string_view /*text*/) { return std::nullopt; }
using AsBytes = AsText<JsonKind::kBytes, NoFault>;
using AsTargetPath = AsText<JsonKind::kBytes, TargetPathFault>;
using AsFingerprint = AsText<JsonKind::kString, FingerprintFault>;
using AsDigest = AsText<JsonKind::kString, DigestFault>;

// Null for an empty one.
struct AsDigestOrNull {
  static constexpr JsonKind kKind = JsonKind::kStringOrNull;

  static Status Take(JsonValue& value, std::string& digest) {
    return value.text == nullptr ? Status() : AsDigest::Take(value, digest);
  }
  static void Put(const std::string& digest, JsonText& text) {
    if (digest.empty()) {
      text.Null();
    } else {
      AsDigest::Put(digest, text);
    }
  }
};

struct AsDType {
  static constexpr JsonKind kKind = JsonKind::kString;

  static Status Take(JsonValue& value, DType& dtype);
  static Status Take(JsonValue& value, std::optional<DType>& dtype) {
    return Take(value, dtype.emplace());
  }
  static void Put(std::optional<DType> dtype, JsonText& text) { text.Word(DTypeName(*dtype)); }
};

struct AsDim {
  using Value = int64_t;
  static constexpr JsonKind kKind = JsonKind::kUnsigned;

  static Status CheckRoom(size_t items);
  static Status Take(JsonValue& value, int64_t& dim);
  static void Put(int64_t dim, JsonText& text) { AsUnsigned::Put(dim, text); }
};

// A number that is the same in all records; `kError(other one, number)`.
template <uint64_t kNumber, Status (*kError)(uint64_t, uint64_t)>
struct AsConstant {
  static constexpr JsonKind kKind = JsonKind::kUnsigned;

  static Status Take(JsonValue& value, const auto& /*object*/) {
    return value.number == kNumber ? Status() : kError(value.number, kNumber);
  }
  static void Put(const auto& /*object*/, JsonText& text) { text.Number(kNumber); }
};

Status SchemaError(uint64_t found, uint64_t known);
Status BlockBytesError(uint64_t found, uint64_t known);

template <uint64_t kNumber>
using SchemaVersion = AsConstant<kNumber, SchemaError>;
using BlockBytes = AsConstant<kDigestBlockBytes, BlockBytesError>;

inline constexpr JsonTable kSourceTable{
    JsonField<&ManifestSource::path, AsBytes>("path").CheckedBy<SourceFault>(),
    JsonField<&ManifestSource::size, AsUnsigned>("size"),
    JsonField<&ManifestSource::digest, AsDigestOrNull>("digest"),
};

inline constexpr JsonTable kBoxTable{
    JsonField<&Box::begin, AsList<AsDim>>("begin"),
    JsonField<&Box::extent, AsList<AsDim>>("extent"),
};
inline constexpr JsonTable kValueTable{
    JsonField<&RecordedValue::name, AsBytes>("name"),
    JsonField<&RecordedValue::dtype, AsDType>("dtype"),
    JsonField<&RecordedValue::full_shape, AsList<AsDim>>("full_shape"),
    JsonField<&RecordedValue::box, AsObject<kBoxTable>>("box"),
    JsonField<&RecordedValue::offset, AsUnsigned>("offset"),
    JsonField<&RecordedValue::length, AsUnsigned>("length"),
    JsonField<&RecordedValue::digest, AsDigestOrNull>("digest"),
    JsonField<&RecordedValue::cast_from, AsDType>("cast_from").OrNone(),
};

// Adds what to do about a damaged manifest or record.
Status WithAdvice(const Status& status);

// Reads a manifest, or a line of a record. Errors: as ReadStrictJson, with advice.
template <typename Table, typename Object>
Status ReadWithAdvice(std::string_view text, const std::string& where, const Table& table,
                      Object& object) {
  return WithAdvice(ReadStrictJson(text, where, table, object));
}

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_RECORD_FIELDS_H_
