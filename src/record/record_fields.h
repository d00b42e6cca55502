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

// Speak of paths. `previous` is the entry before, null for the first.
Fault FileFault(const ManifestFile& file, const ManifestFile* previous);
Fault SourceFault(const ManifestSource& source, const ManifestSource* previous);
Fault StampFault(const SourceStamp& stamp, const SourceStamp* previous);

// The rules that tie the members of a head to each other; each of its sources has passed
// SourceFault.
Fault HeadFault(const PartRecordHead& head);
// `end` is the first byte of the target file that no earlier Value has.
Fault ValueFault(const RecordedValue& value, uint64_t end, uint64_t target_size, bool has_digests);

Status CheckSchemaVersion(uint64_t found, uint64_t known);
Status CheckBlockBytes(uint64_t found);

// The codecs of members.

struct AsUnsigned {
  static constexpr JsonKind kKind = JsonKind::kUnsigned;
  template <std::integral Number>
  static Status Take(JsonValue& value, Number& number) {
    number = static_cast<Number>(value.number);
    return {};
  }
  template <std::integral Number>
  static void Put(Number number, JsonText& text) {
    text.Number(static_cast<uint64_t>(number));
  }
};

struct AsBytes {
  static constexpr JsonKind kKind = JsonKind::kBytes;
  static Status Take(JsonValue& value, std::string& bytes);
  static void Put(const std::string& bytes, JsonText& text) { text.Bytes(bytes); }
};

struct AsTargetPath {
  static constexpr JsonKind kKind = JsonKind::kBytes;
  static Status Take(JsonValue& value, std::string& path);
  static void Put(const std::string& path, JsonText& text);
};

struct AsFingerprint {
  static constexpr JsonKind kKind = JsonKind::kString;
  static Status Take(JsonValue& value, std::string& fingerprint);
  static void Put(const std::string& fingerprint, JsonText& text);
};

struct AsDigest {
  static constexpr JsonKind kKind = JsonKind::kString;
  static Status Take(JsonValue& value, std::string& digest);
  static void Put(const std::string& digest, JsonText& text);
};

// Null for an empty one.
struct AsDigestOrNull {
  static constexpr JsonKind kKind = JsonKind::kStringOrNull;
  static Status Take(JsonValue& value, std::string& digest);
  static void Put(const std::string& digest, JsonText& text);
};

struct AsListedDigest {
  static constexpr JsonKind kKind = JsonKind::kString;
  static Status Take(JsonValue& value, std::vector<std::string>& digests) {
    return AsDigest::Take(value, digests.emplace_back());
  }
  static void Put(const std::string& digest, JsonText& text) { AsDigest::Put(digest, text); }
};

struct AsDType {
  static constexpr JsonKind kKind = JsonKind::kString;
  static Status Take(JsonValue& value, DType& dtype);
  static Status Take(JsonValue& value, std::optional<DType>& dtype) {
    return Take(value, dtype.emplace());
  }
  static void Put(std::optional<DType> dtype, JsonText& text) { text.Word(DTypeName(*dtype)); }
};

struct AsListedDim {
  static constexpr JsonKind kKind = JsonKind::kUnsigned;
  static Status Take(JsonValue& value, std::vector<int64_t>& dims);
  static void Put(int64_t dim, JsonText& text) { AsUnsigned::Put(dim, text); }
};

// Another one is kUnsupported.
template <uint64_t kKnown>
struct SchemaVersion {
  static constexpr JsonKind kKind = JsonKind::kUnsigned;
  template <typename Object>
  static Status Take(JsonValue& value, Object& /*object*/) {
    return CheckSchemaVersion(value.number, kKnown);
  }
  template <typename Object>
  static void Put(const Object& /*object*/, JsonText& text) {
    text.Number(kKnown);
  }
};

struct BlockBytes {
  static constexpr JsonKind kKind = JsonKind::kUnsigned;
  template <typename Object>
  static Status Take(JsonValue& value, Object& /*object*/) {
    return CheckBlockBytes(value.number);
  }
  template <typename Object>
  static void Put(const Object& /*object*/, JsonText& text) {
    text.Number(kDigestBlockBytes);
  }
};

inline constexpr JsonTable kSourceTable{
    JsonField<&ManifestSource::path, AsBytes>("path").CheckedBy<SourceFault>(),
    JsonField<&ManifestSource::size, AsUnsigned>("size"),
    JsonField<&ManifestSource::digest, AsDigestOrNull>("digest"),
};

inline constexpr JsonTable kBoxTable{
    JsonValues<&Box::begin, AsListedDim>("begin"),
    JsonValues<&Box::extent, AsListedDim>("extent"),
};
inline constexpr JsonTable kValueTable{
    JsonField<&RecordedValue::name, AsBytes>("name"),
    JsonField<&RecordedValue::dtype, AsDType>("dtype"),
    JsonValues<&RecordedValue::full_shape, AsListedDim>("full_shape"),
    JsonObject<&RecordedValue::box, kBoxTable>("box"),
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
