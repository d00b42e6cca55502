#include "src/record/record_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/record/strict_json.h"

namespace reshard {
namespace {

constexpr size_t kMaxFingerprint = 64;
constexpr size_t kMaxPath = 4095;

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Fault OrderFault(std::string_view path, std::string_view previous) {
  if (previous.empty() || previous < path) return std::nullopt;
  return fmt::format("path {} after {}, but paths are sorted and occur once", Quote(path),
                     Quote(previous));
}

// Where `digests` says that there is one, or that there is none.
Fault PresenceFault(const std::string& digest, bool digests) {
  if (digest.empty() == !digests) return std::nullopt;
  return digests ? "it has no digest, but the target file has one"
                 : "it has a digest, but the target file has none";
}

Fault BoxFault(const RecordedValue& value) {
  const Shape& shape = value.full_shape;
  const Box& box = value.box;
  if (shape.size() > kMaxDims) {
    return fmt::format("{} dims; a tensor has at most {}", shape.size(), kMaxDims);
  }
  if (box.begin.size() != shape.size() || box.extent.size() != shape.size()) {
    return fmt::format("a box of {} begins and {} extents in a tensor of {} dims", box.begin.size(),
                       box.extent.size(), shape.size());
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0 || box.begin[d] < 0 || box.extent[d] < 0 || box.begin[d] > shape[d] ||
        box.extent[d] > shape[d] - box.begin[d]) {
      return fmt::format("the box {} is not within the full shape {}", ToString(box),
                         ToString(shape));
    }
  }
  return std::nullopt;
}

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

Status SetDType(const std::string& name, DType& dtype) {
  const auto known = ParseDType(name);
  if (!known) return CorruptError(fmt::format("{} is not a dtype", Quote(name)));
  dtype = *known;
  return {};
}

}  // namespace

Fault FingerprintFault(std::string_view fingerprint) {
  if (!fingerprint.empty() && fingerprint.size() <= kMaxFingerprint && IsHex(fingerprint)) {
    return std::nullopt;
  }
  return fmt::format("expected 1 to {} lower-case hexadecimal digits, found {}", kMaxFingerprint,
                     Quote(fingerprint));
}

Fault DigestFault(std::string_view digest) {
  if (digest.size() == kDigestDigits && IsHex(digest)) return std::nullopt;
  return fmt::format("expected {} lower-case hexadecimal digits, found {}", kDigestDigits,
                     Quote(digest));
}

Fault RelativePathFault(std::string_view path) {
  if (path.empty()) return "it is empty";
  if (path.size() > kMaxPath) return fmt::format("it is longer than {} bytes", kMaxPath);
  if (path.front() == '/') return "it is absolute";
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view component = path.substr(begin, end - begin);
    if (component.empty()) return "it has an empty component";
    if (component == "." || component == "..") {
      return fmt::format("it has the component {}", Quote(component));
    }
    begin = end + 1;
  }
  return std::nullopt;
}

Fault FileFault(const ManifestFile& file, std::string_view previous) {
  if (const auto fault = TargetPathFault(file.path)) {
    return fmt::format("path {}: {}", Quote(file.path), *fault);
  }
  return OrderFault(file.path, previous);
}

Fault SourceFault(const ManifestSource& source, std::string_view previous) {
  if (const auto fault = RelativePathFault(source.path)) {
    return fmt::format("path {}: {}", Quote(source.path), *fault);
  }
  return OrderFault(source.path, previous);
}

Fault StampFault(const SourceStamp& stamp, std::string_view previous) {
  return OrderFault(stamp.path, previous);
}

Fault HeadFault(const PartRecordHead& head) {
  if (const auto fault = TargetPathFault(head.path)) {
    return fmt::format("path {}: {}", Quote(head.path), *fault);
  }
  const bool has_digests = !head.digest.empty();
  const uint64_t blocks =
      has_digests ? head.size / kDigestBlockBytes + (head.size % kDigestBlockBytes == 0 ? 0 : 1)
                  : 0;
  if (head.blocks.size() != blocks) {
    return fmt::format("{} digests of blocks, but a file of {} bytes {} has {}", head.blocks.size(),
                       head.size, has_digests ? "with a digest" : "without a digest", blocks);
  }
  for (const ManifestSource& source : head.sources) {
    if (const auto fault = PresenceFault(source.digest, has_digests)) {
      return fmt::format("source {}: {}", Quote(source.path), *fault);
    }
  }
  const LostValues* previous = nullptr;
  for (const LostValues& lost : head.lost) {
    if (lost.values == 0 && lost.zeros == 0)
      return fmt::format("parameter {} lost no values", Quote(lost.name));
    if (previous != nullptr && previous->name >= lost.name) {
      return fmt::format("values lost of {} after {}, but names are sorted and occur once",
                         Quote(lost.name), Quote(previous->name));
    }
    previous = &lost;
  }
  return std::nullopt;
}

Fault ValueFault(const RecordedValue& value, uint64_t end, uint64_t target_size, bool has_digests) {
  Fault fault = BoxFault(value);
  if (!fault) fault = PresenceFault(value.digest, has_digests);
  if (!fault && value.offset < end) {
    fault = fmt::format("its content begins at byte {}, but the Value before it ends at byte {}",
                        value.offset, end);
  }
  if (!fault && (value.offset > target_size || value.length > target_size - value.offset)) {
    fault = fmt::format("its content has {} bytes at byte {}, but the file has {}", value.length,
                        value.offset, target_size);
  }
  if (!fault) return std::nullopt;
  return fmt::format("parameter {}: {}", Quote(value.name), *fault);
}

Status TakeValueField(int field, const JsonValue& value, RecordedValue& out) {
  switch (field) {
    case kValueName:
      out.name = std::move(*value.text);
      return {};
    case kValueDType:
      return SetDType(*value.text, out.dtype);
    case kValueCastFrom:
      return SetDType(*value.text, out.cast_from.emplace());
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

Status CheckSchemaVersion(const JsonValue& value, uint64_t known) {
  if (value.number == known) return {};
  return UnsupportedError(fmt::format(
      "{}, but this reshard knows {}; use the version that wrote it", value.number, known));
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

void AppendValueAsJson(const RecordedValue& value, std::string& json) {
  json += R"({"name":)";
  AppendBytesAsJson(value.name, json);
  // Room for all pieces, so that each is only copied.
  constexpr size_t kMostWords = 256;
  constexpr size_t kMostOfNumber = std::numeric_limits<uint64_t>::digits10 + 2;  // and a comma
  const Box& box = value.box;
  const size_t numbers = value.full_shape.size() + box.begin.size() + box.extent.size() + 2;
  const size_t begin = json.size();
  json.resize(begin + kMostWords + numbers * kMostOfNumber + value.digest.size());
  char* to = json.data() + begin;
  const auto put = [&to](std::string_view text) { to = std::copy(text.begin(), text.end(), to); };
  const auto put_number = [&to](auto number) {
    to = std::to_chars(to, to + kMostOfNumber, number).ptr;
  };
  const auto put_numbers = [&](const std::vector<int64_t>& list) {
    for (const int64_t& number : list) {
      if (&number != list.data()) *to++ = ',';
      put_number(number);
    }
  };
  put(R"(,"dtype":")");
  put(DTypeName(value.dtype));
  put(R"(","full_shape":[)");
  put_numbers(value.full_shape);
  put(R"(],"box":{"begin":[)");
  put_numbers(box.begin);
  put(R"(],"extent":[)");
  put_numbers(box.extent);
  put(R"(]},"offset":)");
  put_number(value.offset);
  put(R"(,"length":)");
  put_number(value.length);
  put(R"(,"digest":)");
  if (value.digest.empty()) {
    put("null");
  } else {
    *to++ = '"';
    put(value.digest);
    *to++ = '"';
  }
  if (value.cast_from) {
    put(R"(,"cast_from":")");
    put(DTypeName(*value.cast_from));
    *to++ = '"';
  }
  *to++ = '}';
  json.resize(static_cast<size_t>(to - json.data()));
}

std::string DigestOrNull(const std::string& digest) {
  return digest.empty() ? "null" : '"' + digest + '"';
}

Fault OptionalDigestFault(const std::string& digest) {
  return digest.empty() ? std::nullopt : DigestFault(digest);
}

}  // namespace reshard
