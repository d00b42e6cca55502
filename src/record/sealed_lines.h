// SealedLines: a record of lines, the last of which is their digest and how many followed the
// first.
//
// Holds no more than one line. Move-only; one thread at a time.
#ifndef RESHARD_SRC_RECORD_SEALED_LINES_H_
#define RESHARD_SRC_RECORD_SEALED_LINES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "reshard/status.h"
#include "src/digest/xxh3.h"

namespace reshard {

class SealedLines {
 public:
  // Takes a line without its end; `where` names it in messages.
  using LineSink = std::function<Status(std::string_view line, const std::string& where)>;

  // `path` names the record in messages.
  explicit SealedLines(std::string path) : path_(std::move(path)) {}

  // Takes the record's next bytes, cut anywhere, and hands each line but the last to `on_line`.
  // After an error nothing more may be fed. Errors: kCorrupt; those of `on_line`.
  Status Feed(std::string_view bytes, const LineSink& on_line);

  // After the last bytes. Any byte that is not as it was written is noticed by now.
  // Errors: kCorrupt.
  Status Finish() const;

  // Of all bytes fed.
  uint64_t size() const { return size_; }
  std::string HexDigest() const { return whole_.HexDigest(); }

 private:
  Status TakeLine(std::string_view line, const LineSink& on_line);  // without its end

  std::string path_;
  Xxh3 whole_;
  uint64_t size_ = 0;
  std::string unfinished_;  // the line whose end has not come
  uint64_t lines_ = 0;
  Xxh3 sealed_;  // of the lines so far
  bool closed_ = false;
};

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_SEALED_LINES_H_
