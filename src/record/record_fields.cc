#include "src/record/record_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/record/byte_text.h"

namespace reshard {
namespace {

Status AddDim(uint64_t number, std::vector<int64_t>& dims) {
  if (dims.size() == kMaxDims) {
    return CorruptError(fmt::format("more than {} dims", kMaxDims));
  }
  if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return CorruptError(fmt::format("{} is no size of a dim: 2^63 or more", number));
  }
  dims.push_back(static_cast<int64_t>(number));
  return {};
}

}  // namespace

Status TakeValueField(int field, const JsonValue& value, RecordedValue& out) {
  switch (field) {
    case kValueName:
      out.name = std::move(*value.text);
      return {};
    case kValueDType: {
      const auto dtype = ParseDType(*value.text);
      if (!dtype) return CorruptError(fmt::format("{} is no dtype", Quote(*value.text)));
      out.dtype = *dtype;
      return {};
    }
    case kValueFullShape:
      return AddDim(value.number, out.full_shape);
    case kValueBoxBegin:
      return AddDim(value.number, out.box.begin);
    case kValueBoxExtent:
      return AddDim(value.number, out.box.extent);
    case kValueOffset:
      out.offset = value.number;
      return {};
    case kValueLength:
      out.length = value.number;
      return {};
    case kValueDigest:
      return SetDigest(value, out.digest);
    default:
      return {};
  }
}

Status CorruptIf(const Fault& fault) {
  if (fault) return CorruptError(*fault);
  return {};
}

Status SetDigest(const JsonValue& value, std::string& digest) {
  digest.clear();
  if (value.text == nullptr) return {};
  RESHARD_RETURN_IF_ERROR(CorruptIf(DigestFault(*value.text)));
  digest = std::move(*value.text);
  return {};
}

Status CheckSchemaVersion(const JsonValue& value) {
  if (value.number == kManifestSchema) return {};
  return UnsupportedError(
      fmt::format("{}, but this reshard knows {}; use the version that wrote it", value.number,
                  kManifestSchema));
}

Status CheckBlockBytes(const JsonValue& value) {
  if (value.number == kDigestBlockBytes) return {};
  return CorruptError(fmt::format("expected {}, found {}", kDigestBlockBytes, value.number));
}

Status ReadWithAdvice(std::string_view text, const std::string& where, const JsonShape& shape,
                      const JsonSink& sink) {
  Status status = ReadStrictJson(text, where, shape, sink);
  if (status.code() != StatusCode::kCorrupt) return status;
  return CorruptError(fmt::format("{}; {}", status.message(), kManifestAdvice));
}

std::string ValueAsJson(const RecordedValue& value) {
  return fmt::format(
      R"({{"name":{},"dtype":"{}","full_shape":[{}],"box":{{"begin":[{}],"extent":[{}]}},"offset":{},"length":{},"digest":{}}})",
      BytesAsJson(value.name), DTypeName(value.dtype), fmt::join(value.full_shape, ","),
      fmt::join(value.box.begin, ","), fmt::join(value.box.extent, ","), value.offset, value.length,
      DigestOrNull(value.digest));
}

std::string DigestOrNull(const std::string& digest) {
  return digest.empty() ? "null" : '"' + digest + '"';
}

Fault OptionalDigestFault(const std::string& digest) {
  return digest.empty() ? std::nullopt : DigestFault(digest);
}

}  // namespace reshard
