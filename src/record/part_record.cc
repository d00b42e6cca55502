#include "src/record/part_record.h"

#include <fmt/format.h>

#include <utility>

#include "src/base/number_text.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/record/record_fields.h"
#include "src/record/strict_json.h"

namespace reshard {
namespace {

Status RefusePart(const std::string& path, const std::string& fault) {
  return InvalidArgumentError(
      fmt::format("a part record of {} cannot hold this: {}", Quote(path), fault));
}

constexpr JsonTable kLostTable{
    JsonField<&LostValues::name, AsBytes>("name"),
    JsonField<&LostValues::values, AsUnsigned>("values"),
    JsonField<&LostValues::zeros, AsUnsigned>("zeros").OrNone(),
};
constexpr JsonTable kPartHeadTable =
    JsonTable{
        JsonFact<PartRecordHead, SchemaVersion<kRecordSchema>>("schema_version"),
        JsonField<&PartRecordHead::plan, AsFingerprint>("plan"),
        JsonField<&PartRecordHead::path, AsTargetPath>("path"),
        JsonField<&PartRecordHead::size, AsUnsigned>("size"),
        JsonField<&PartRecordHead::digest, AsDigestOrNull>("digest"),
        JsonFact<PartRecordHead, BlockBytes>("block_bytes"),
        JsonField<&PartRecordHead::blocks, AsList<AsDigest>>("blocks"),
        JsonField<&PartRecordHead::sources, AsList<AsObject<kSourceTable>>>("sources"),
        JsonField<&PartRecordHead::lost, AsList<AsObject<kLostTable>>>("lost").OrNone(),
    }
        .CheckedBy<HeadFault>();

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
  std::string line;
  Fault fault = HeadFault(head);
  if (!fault) fault = AppendJson(kPartHeadTable, head, JsonText::Style::kLine, line);
  if (fault) return RefusePart(path_, *fault);
  return Write(line + '\n');
}

Status PartRecordEncoder::WriteValue(const RecordedValue& value) {
  line_.clear();
  Fault fault = ValueFault(value, end_, target_size_, has_digests_);
  if (!fault) fault = AppendJson(kValueTable, value, JsonText::Style::kLine, line_);
  if (fault) return RefusePart(path_, *fault);
  end_ = value.offset + value.length;
  ++values_;
  line_ += '\n';
  return Write(line_);
}

Status PartRecordEncoder::Finish() { return Write(PartRecordSeal(whole_, values_)); }

Status PartRecordEncoder::Write(const std::string& line) {
  if (line.size() > kMaxRecordLineBytes) {
    return RefusePart(path_, fmt::format("a line of {} bytes; it has at most {}", line.size(),
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
  RESHARD_RETURN_IF_ERROR(ReadWithAdvice(line, where, kPartHeadTable, head));
  head_ = std::move(head);
  return {};
}

Status PartRecordParser::TakeValue(std::string_view line, const std::string& where) {
  RecordedValue value;
  RESHARD_RETURN_IF_ERROR(ReadWithAdvice(line, where, kValueTable, value));
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
