#include "src/record/part_record.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "src/base/number_text.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/record/record_fields.h"
#include "src/record/strict_json.h"

namespace reshard {
namespace {

Status Refuse(const std::string& path, const std::string& fault) {
  return InvalidArgumentError(
      fmt::format("a part record of {} cannot hold this: {}", Quote(path), fault));
}

enum PartHeadField : int {
  kPartDigest = kAfterHeadFields,
  kPartSourceDigest,
  kPartLost,
  kPartLostName,
  kPartLostValues,
  kPartLostZeros,
};

using enum JsonKind;

constexpr JsonShape kPartSourceMembers[] = {{"path", kBytes, kHeadSourcePath},
                                            {"size", kUnsigned, kHeadSourceSize},
                                            {"digest", kStringOrNull, kPartSourceDigest}};
constexpr JsonShape kPartSourceElement[] = {{nullptr, kObject, kHeadSource, kPartSourceMembers}};
constexpr JsonShape kPartLostMembers[] = {{"name", kBytes, kPartLostName},
                                          {"values", kUnsigned, kPartLostValues},
                                          {"zeros", kUnsigned, kPartLostZeros, {}, true}};
constexpr JsonShape kPartLostElement[] = {{nullptr, kObject, kPartLost, kPartLostMembers}};
constexpr JsonShape kPartHeadMembers[] = {
    {"schema_version", kUnsigned, kHeadSchemaVersion},
    {"plan", kString, kHeadPlan},
    {"path", kBytes, kHeadPath},
    {"size", kUnsigned, kHeadSize},
    {"digest", kStringOrNull, kPartDigest},
    {"block_bytes", kUnsigned, kHeadBlockBytes},
    {"blocks", kArray, kHeadOther, kHeadBlockElement},
    {"sources", kArray, kHeadOther, kPartSourceElement},
    {"lost", kArray, kHeadOther, kPartLostElement, true},
};
constexpr JsonShape kPartHeadShape = {nullptr, kObject, kHead, kPartHeadMembers};

constexpr JsonShape kValueShape = {nullptr, kObject, kValueObject, kValueMembers};

Status TakeField(int field, const JsonValue& value, PartRecordHead& head, ManifestSource& source,
                 LostValues& lost) {
  switch (field) {
    case kPartLost:
      head.lost.push_back(std::exchange(lost, {}));
      return {};
    case kPartLostName:
      lost.name = std::move(*value.text);
      return {};
    case kPartLostValues:
      lost.values = value.number;
      return {};
    case kPartLostZeros:
      lost.zeros = value.number;
      return {};
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

constexpr size_t kMostText = 512;  // of a few lines

}  // namespace

std::string PartRecordSeal(const Xxh3& lines, uint64_t values) {
  return fmt::format("{}\"{}\",\"values\":{}}}\n", kRecordSealBegin, lines.HexDigest(), values);
}

Status SealedLines::Feed(std::string_view bytes, const LineSink& on_line) {
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
      RESHARD_RETURN_IF_ERROR(TakeLine(piece, on_line));
    } else {
      unfinished_ += piece;
      RESHARD_RETURN_IF_ERROR(TakeLine(std::exchange(unfinished_, {}), on_line));
    }
  }
  return {};
}

Status SealedLines::TakeLine(std::string_view line, const LineSink& on_line) {
  ++lines_;
  std::string where = path_ + ": line ";
  AppendNumber(where, lines_);
  if (closed_) {
    return CorruptError(
        fmt::format("{}: expected the end of the file after the digest, found {}; {}",
                    Escape(where), Quote(line), kManifestAdvice));
  }
  if (lines_ > 1 && line.starts_with(kRecordSealBegin)) {
    // without the first line and this one
    std::string expected = PartRecordSeal(sealed_, lines_ - 2);
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
  return on_line(line, where);
}

Status SealedLines::Finish() const {
  if (closed_ && unfinished_.empty()) return {};
  if (closed_) {
    return CorruptError(
        fmt::format("{}: line {}: expected the end of the file after the digest, found {}; {}",
                    Escape(path_), lines_ + 1, Quote(unfinished_), kManifestAdvice));
  }
  return CorruptError(
      fmt::format("{}: line {}: cut off at byte {}: expected a last line with the digest of the "
                  "lines before it; {}",
                  Escape(path_), lines_ + 1, size_, kManifestAdvice));
}

PartRecordEncoder::PartRecordEncoder(Sink sink) : sink_(std::move(sink)) {}

Status PartRecordEncoder::WriteHead(const PartRecordHead& head) {
  path_ = head.path;
  target_size_ = head.size;
  has_digests_ = !head.digest.empty();
  Fault fault = FingerprintFault(head.plan);
  if (!fault) fault = OptionalDigestFault(head.digest);
  if (!fault) fault = HeadFault(head);
  if (fault) return Refuse(path_, *fault);
  std::string line = fmt::format(
      R"({{"schema_version":{},"plan":"{}","path":{},"size":{},"digest":{},"block_bytes":{},"blocks":[)",
      kRecordSchema, head.plan, BytesAsJson(head.path), head.size, DigestOrNull(head.digest),
      kDigestBlockBytes);
  for (const std::string& block : head.blocks) {
    if (const auto wrong = DigestFault(block)) return Refuse(path_, *wrong);
    fmt::format_to(std::back_inserter(line), "{}\"{}\"", &block == head.blocks.data() ? "" : ",",
                   block);
  }
  line += R"(],"sources":[)";
  std::string_view previous;
  for (const ManifestSource& source : head.sources) {
    fault = SourceFault(source, previous);
    if (!fault) fault = OptionalDigestFault(source.digest);
    if (fault) return Refuse(path_, *fault);
    fmt::format_to(std::back_inserter(line), R"({}{{"path":{},"size":{},"digest":{}}})",
                   previous.empty() ? "" : ",", BytesAsJson(source.path), source.size,
                   DigestOrNull(source.digest));
    previous = source.path;
  }
  line += ']';
  if (!head.lost.empty()) line += R"(,"lost":[)";
  for (const LostValues& lost : head.lost) {
    fmt::format_to(std::back_inserter(line), R"({}{{"name":{},"values":{})",
                   &lost == head.lost.data() ? "" : ",", BytesAsJson(lost.name), lost.values);
    if (lost.zeros > 0) line += fmt::format(R"(,"zeros":{})", lost.zeros);
    line += '}';
  }
  if (!head.lost.empty()) line += ']';
  return Write(line + "}\n");
}

Status PartRecordEncoder::WriteValue(const RecordedValue& value) {
  Fault fault = ValueFault(value, end_, target_size_, has_digests_);
  if (!fault) fault = OptionalDigestFault(value.digest);
  if (fault) return Refuse(path_, *fault);
  end_ = value.offset + value.length;
  ++values_;
  line_.clear();
  AppendValueAsJson(value, line_);
  line_ += '\n';
  return Write(line_);
}

Status PartRecordEncoder::Finish() { return Write(PartRecordSeal(whole_, values_)); }

Status PartRecordEncoder::Write(const std::string& line) {
  if (line.size() > kMaxRecordLineBytes) {
    return Refuse(path_, fmt::format("a line of {} bytes; it has at most {}", line.size(),
                                     kMaxRecordLineBytes));
  }
  RESHARD_RETURN_IF_ERROR(sink_(line));
  whole_.Update(line);
  size_ += line.size();
  return {};
}

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
  LostValues lost;
  RESHARD_RETURN_IF_ERROR(
      ReadWithAdvice(line, where, kPartHeadShape, [&](int field, const JsonValue& value) {
        return TakeField(field, value, head, source, lost);
      }));
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

void SetTakenParameter(std::string_view name, DType dtype, const Shape& full_shape,
                       std::string& line) {
  line.clear();
  AppendBytesAsJson(name, line);
  line.erase(0, 1);  // the quotes
  line.back() = '\t';
  line += DTypeName(dtype);
  line += "\t[";
  AppendNumbers(line, full_shape);
  line += "]\t";
}

void SourceDigest::Add(std::string_view parameter, std::string_view digest) {
  line_.assign(parameter);
  line_ += digest;
  line_ += '\n';
  lines_.Update(line_);
}

Status SourceSummary::Add(const PartRecordHead& head) {
  for (const ManifestSource& taken : head.sources) {
    const auto known = sources_.find(taken.path);
    if (known == sources_.end() || known->second.size == taken.size) continue;
    return MismatchError(fmt::format(
        "the part record of {} says that the source {} has {} bytes, an earlier one {}; convert "
        "from one source only",
        Quote(head.path), Quote(taken.path), taken.size, known->second.size));
  }
  for (const ManifestSource& taken : head.sources) {
    Source& source = sources_[taken.path];
    source.size = taken.size;
    if (taken.digest.empty()) source.has_digest = false;
    const std::string line = fmt::format("{}\t{}\n", head.path, taken.digest);
    if (!source.lines && source.few.size() + line.size() > kMostText) {
      source.lines.emplace().Update(source.few);
      std::string().swap(source.few);
    }
    if (source.lines) {
      source.lines->Update(line);
    } else {
      source.few += line;
    }
  }
  return {};
}

std::vector<ManifestSource> SourceSummary::Sources() const {
  std::vector<ManifestSource> sources;
  sources.reserve(sources_.size());
  for (const auto& [path, source] : sources_) {
    sources.push_back({.path = path, .size = source.size});
    if (!source.has_digest) continue;
    if (source.lines) {
      sources.back().digest = source.lines->HexDigest();
    } else {
      Xxh3 lines;
      lines.Update(source.few);
      sources.back().digest = lines.HexDigest();
    }
  }
  return sources;
}

}  // namespace reshard
