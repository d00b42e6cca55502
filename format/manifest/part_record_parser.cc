#include <fmt/format.h>

#include <limits>
#include <utility>

#include "format/manifest/manifest_check.h"
#include "format/manifest/part_record.h"
#include "format/manifest/part_record_seal.h"
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

enum ValueField : int {
  kValue,
  kName,
  kDType,
  kFullShape,
  kBoxBegin,
  kBoxExtent,
  kOffset,
  kLength,
  kValueDigest,
  kValueOther,
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

constexpr JsonShape kDimElement[] = {{nullptr, kUnsigned, kFullShape}};
constexpr JsonShape kBeginElement[] = {{nullptr, kUnsigned, kBoxBegin}};
constexpr JsonShape kExtentElement[] = {{nullptr, kUnsigned, kBoxExtent}};
constexpr JsonShape kBoxMembers[] = {{"begin", kArray, kValueOther, kBeginElement},
                                     {"extent", kArray, kValueOther, kExtentElement}};
constexpr JsonShape kValueMembers[] = {
    {"name", kBytes, kName},
    {"dtype", kString, kDType},
    {"full_shape", kArray, kValueOther, kDimElement},
    {"box", kObject, kValueOther, kBoxMembers},
    {"offset", kUnsigned, kOffset},
    {"length", kUnsigned, kLength},
    {"digest", kStringOrNull, kValueDigest},
};
constexpr JsonShape kValueShape = {nullptr, kObject, kValue, kValueMembers};

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

class HeadReader {
 public:
  Status Take(int field, const JsonValue& value) {
    switch (static_cast<HeadField>(field)) {
      case kSchemaVersion:
        if (value.number == kManifestSchema) return {};
        return UnsupportedError(
            fmt::format("{}, but this reshard knows {}; use the version that wrote it",
                        value.number, kManifestSchema));
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
        if (value.number == kDigestBlockBytes) return {};
        return CorruptError(fmt::format("expected {}, found {}", kDigestBlockBytes, value.number));
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

Status TakeValueField(int field, const JsonValue& value, RecordedValue& out) {
  switch (static_cast<ValueField>(field)) {
    case kName:
      out.name = std::move(*value.text);
      return {};
    case kDType: {
      const auto dtype = ParseDType(*value.text);
      if (!dtype) return CorruptError(fmt::format("{} is no dtype", Quote(*value.text)));
      out.dtype = *dtype;
      return {};
    }
    case kFullShape:
      return AddDim(value.number, out.full_shape);
    case kBoxBegin:
      return AddDim(value.number, out.box.begin);
    case kBoxExtent:
      return AddDim(value.number, out.box.extent);
    case kOffset:
      out.offset = value.number;
      return {};
    case kLength:
      out.length = value.number;
      return {};
    case kValueDigest:
      return SetDigest(value, out.digest);
    case kValue:
    case kValueOther:
      return {};
  }
  return {};
}

// Reads a line that is one object.
Status ReadLine(std::string_view line, const std::string& where, const JsonShape& shape,
                const JsonSink& sink) {
  Status status = ReadStrictJson(line, where, shape, sink);
  if (status.code() != StatusCode::kCorrupt) return status;
  return CorruptError(fmt::format("{}; {}", status.message(), kManifestAdvice));
}

}  // namespace

PartRecordParser::PartRecordParser(std::string path, ValueSink on_value)
    : path_(std::move(path)), on_value_(std::move(on_value)) {}

Status PartRecordParser::Feed(std::string_view bytes) {
  whole_.Update(bytes);
  size_ += bytes.size();
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (piece.size() >= kMaxRecordLineBytes - unfinished_.size()) {
      return CorruptError(fmt::format("{}: line {}: longer than {} bytes; {}", Escape(path_),
                                      lines_ + 1, kMaxRecordLineBytes, kManifestAdvice));
    }
    if (end == std::string_view::npos) {
      unfinished_ += piece;
      return {};
    }
    bytes.remove_prefix(end + 1);
    if (unfinished_.empty()) {
      RESHARD_RETURN_IF_ERROR(TakeLine(piece));
    } else {
      unfinished_ += piece;
      RESHARD_RETURN_IF_ERROR(TakeLine(std::exchange(unfinished_, {})));
    }
  }
  return {};
}

Status PartRecordParser::TakeLine(std::string_view line) {
  ++lines_;
  const std::string where = fmt::format("{}: line {}", path_, lines_);
  if (closed_) {
    return CorruptError(
        fmt::format("{}: expected the end of the file after the digest, found {}; {}",
                    Escape(where), Quote(line), kManifestAdvice));
  }
  if (head_ && line.starts_with(kRecordSealBegin)) {
    std::string expected = PartRecordSeal(sealed_, values_);
    expected.pop_back();  // its end
    if (line != expected) {
      return CorruptError(
          fmt::format("{}: damaged: for the lines before it expected {}, found {}; {}",
                      Escape(where), expected, Escape(line), kManifestAdvice));
    }
    closed_ = true;
    return {};
  }
  sealed_.Update(line);
  sealed_.Update("\n");
  return head_ ? TakeValue(line, where) : TakeHead(line, where);
}

Status PartRecordParser::TakeHead(std::string_view line, const std::string& where) {
  HeadReader reader;
  RESHARD_RETURN_IF_ERROR(ReadLine(line, where, kHeadShape, [&](int field, const JsonValue& value) {
    return reader.Take(field, value);
  }));
  head_ = reader.TakeHead();
  return {};
}

Status PartRecordParser::TakeValue(std::string_view line, const std::string& where) {
  RecordedValue value;
  RESHARD_RETURN_IF_ERROR(ReadStrictJson(
      line, where, kValueShape,
      [&](int field, const JsonValue& part) { return TakeValueField(field, part, value); }));
  if (const auto fault = ValueFault(value, end_, head_->size, !head_->digest.empty())) {
    return CorruptError(fmt::format("{}: {}; {}", Escape(where), *fault, kManifestAdvice));
  }
  end_ = value.offset + value.length;
  ++values_;
  if (on_value_) on_value_(value);
  return {};
}

Status PartRecordParser::Finish() const {
  if (closed_ && unfinished_.empty()) return {};
  if (closed_) {
    return CorruptError(
        fmt::format("{}: line {}: expected the end of the file after the digest, found {}; {}",
                    Escape(path_), lines_ + 1, Quote(unfinished_), kManifestAdvice));
  }
  return CorruptError(fmt::format(
      "{}: line {}: cut off at byte {}: expected a last line with the digest of those before it; "
      "{}",
      Escape(path_), lines_ + 1, size_, kManifestAdvice));
}

}  // namespace reshard
