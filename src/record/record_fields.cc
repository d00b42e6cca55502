#include "src/record/record_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/base/quote.h"
#include "src/record/strict_json.h"

namespace reshard {
namespace {

constexpr size_t kMaxFingerprint = 64;
constexpr size_t kMaxPath = 4095;

// Without branches on digits, which nothing predicts.
bool IsHex(std::string_view text) {
  bool is_hex = true;
  for (const char c : text) {
    const bool is_number = static_cast<unsigned char>(c - '0') < 10;
    const bool is_letter = static_cast<unsigned char>(c - 'a') < 6;
    is_hex = is_hex & (is_number | is_letter);
  }
  return is_hex;
}

template <typename Entry>
Fault OrderFault(const Entry& entry, const Entry* previous) {
  if (previous == nullptr || previous->path < entry.path) return std::nullopt;
  return fmt::format("path {} after {}, but paths are sorted and occur once", Quote(entry.path),
                     Quote(previous->path));
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

Fault FileFault(const ManifestFile& file, const ManifestFile* previous) {
  if (const auto fault = TargetPathFault(file.path)) {
    return fmt::format("path {}: {}", Quote(file.path), *fault);
  }
  return OrderFault(file, previous);
}

Fault SourceFault(const ManifestSource& source, const ManifestSource* previous) {
  if (const auto fault = RelativePathFault(source.path)) {
    return fmt::format("path {}: {}", Quote(source.path), *fault);
  }
  return OrderFault(source, previous);
}

Fault StampFault(const SourceStamp& stamp, const SourceStamp* previous) {
  return OrderFault(stamp, previous);
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

Status SchemaError(uint64_t found, uint64_t known) {
  return UnsupportedError(
      fmt::format("{}, but this reshard knows {}; use the version that wrote it", found, known));
}

Status BlockBytesError(uint64_t found, uint64_t known) {
  return CorruptError(fmt::format("expected {}, found {}", known, found));
}

Status AsDType::Take(JsonValue& value, DType& dtype) {
  const auto known = ParseDType(*value.text);
  if (!known) return CorruptError(fmt::format("{} is not a dtype", Quote(*value.text)));
  dtype = *known;
  return {};
}

Status AsDim::CheckRoom(size_t items) {
  return items < kMaxDims ? Status() : CorruptError(fmt::format("more than {} dims", kMaxDims));
}

Status AsDim::Take(JsonValue& value, int64_t& dim) {
  if (!std::in_range<int64_t>(value.number)) {
    return CorruptError(fmt::format("{} is no size of a dim: 2^63 or more", value.number));
  }
  dim = static_cast<int64_t>(value.number);
  return {};
}

Status WithAdvice(const Status& status) {
  if (status.code() != StatusCode::kCorrupt) return status;
  return CorruptError(fmt::format("{}; {}", status.message(), kManifestAdvice));
}

}  // namespace reshard
