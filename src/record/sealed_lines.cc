#include "src/record/sealed_lines.h"

#include <fmt/format.h>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/record/manifest_check.h"
#include "src/record/part_record.h"
#include "src/record/part_record_seal.h"

namespace reshard {

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
  const std::string where = fmt::format("{}: line {}", path_, lines_);
  if (closed_) {
    return CorruptError(
        fmt::format("{}: expected the end of the file after the digest, found {}; {}",
                    Escape(where), Quote(line), kManifestAdvice));
  }
  if (lines_ > 1 && line.starts_with(kRecordSealBegin)) {
    std::string expected = PartRecordSeal(sealed_, lines_ - 2);  // neither the first nor this one
    expected.pop_back();                                         // its end
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
  return CorruptError(fmt::format(
      "{}: line {}: cut off at byte {}: expected a last line with the digest of those before it; "
      "{}",
      Escape(path_), lines_ + 1, size_, kManifestAdvice));
}

}  // namespace reshard
