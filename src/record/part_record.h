// Part record: the content of a target file, with the digests that prove it (SPEC.md). Also sums up
// the bytes that part records took from each source.
//
// Encoder and parser stream: they hold the head and a single line. Move-only; one thread at a time.
// Digests are 32 lower-case hexadecimal digits, or empty. Either all digests of a record are
// present or none.
#ifndef RESHARD_SRC_RECORD_PART_RECORD_H_
#define RESHARD_SRC_RECORD_PART_RECORD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/digest/xxh3.h"
#include "src/record/manifest_codec.h"

namespace reshard {

// The bytes of a target file that have a digest of their own; its last block may be shorter.
inline constexpr uint64_t kDigestBlockBytes = uint64_t{64} << 20;

// The most bytes of a line, with its end.
inline constexpr uint64_t kMaxRecordLineBytes = uint64_t{64} << 20;

// How many values of a parameter casts changed beyond rounding in a target file.
struct LostValues {
  std::string name;
  uint64_t values = 0;  // finite ones that became infinite or NaN
  uint64_t zeros = 0;   // others than zero that became zero

  friend bool operator==(const LostValues&, const LostValues&) = default;
};

// The digests of a file's bytes, each 32 hexadecimal digits.
struct FileDigests {
  std::string file;
  std::vector<std::string> blocks;  // of each kDigestBlockBytes
};

struct PartRecordHead {
  std::string plan = {};  // the plan's fingerprint
  std::string path;       // of the target file, relative to the target folder
  uint64_t size = 0;
  std::string digest = {};                   // of the target file
  std::vector<std::string> blocks = {};      // digests of its blocks, in file order
  std::vector<ManifestSource> sources = {};  // that something was taken from, sorted by path
  std::vector<LostValues> lost = {};         // sorted by name

  friend bool operator==(const PartRecordHead&, const PartRecordHead&) = default;
};

// The content of a Value of the target file.
struct RecordedValue {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape full_shape = {};
  Box box = {};         // of the parameter on this rank; the Value may be a part of the box
  uint64_t offset = 0;  // bytes of the target file
  uint64_t length = 0;
  std::string digest = {};              // partial logical digest of these bytes
  std::optional<DType> cast_from = {};  // the sources' dtype, if it differs

  friend bool operator==(const RecordedValue&, const RecordedValue&) = default;
};

// The last line of a record: the digest of all lines before it, and the number of lines after the
// first. No other line has this beginning.
inline constexpr std::string_view kRecordSealBegin = "{\"digest\":";

// Returns the line, its end included, that follows `lines`.
std::string PartRecordSeal(const Xxh3& lines, uint64_t values);

// SealedLines: a record of lines whose last line is such a seal. Holds at most a line.
class SealedLines {
 public:
  // Takes a line without its end; `where` names it in messages.
  using LineSink = std::function<Status(std::string_view line, const std::string& where)>;

  // `path` names the record in messages.
  explicit SealedLines(std::string path) : path_(std::move(path)) {}

  // Takes the record's next bytes, cut anywhere, and passes each line but the last to `on_line`. Do
  // not call it again after an error. Errors: kCorrupt; as `on_line`.
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
  std::string unfinished_;  // the line whose end is missing
  uint64_t lines_ = 0;
  Xxh3 sealed_;  // of the lines so far
  bool closed_ = false;
};

class PartRecordEncoder {
 public:
  // Takes the record's bytes, piece by piece.
  using Sink = std::function<Status(std::string_view bytes)>;

  explicit PartRecordEncoder(Sink sink);

  // First the head, then each Value in file order, then Finish. Errors: the sink's;
  // kInvalidArgument for values that a part record cannot hold.
  Status WriteHead(const PartRecordHead& head);
  Status WriteValue(const RecordedValue& value);
  Status Finish();

  // The size and digest of the finished record, for the manifest.
  uint64_t size() const { return size_; }
  std::string HexDigest() const { return whole_.HexDigest(); }

 private:
  Status Write(const std::string& line);

  Sink sink_;
  Xxh3 whole_;
  uint64_t size_ = 0;
  uint64_t values_ = 0;
  std::string path_;  // the members below belong to the head
  uint64_t target_size_ = 0;
  bool has_digests_ = false;
  uint64_t end_ = 0;  // of the last Value's content
  std::string line_;  // of a Value: one buffer for all Values
};

class PartRecordParser {
 public:
  using ValueSink = std::function<void(const RecordedValue& value)>;

  // `path` names the record in messages. `on_value` gets each Value as it is read. The Values are
  // valid only if Finish is ok. If `on_value` is empty, the lines of Values are not parsed, and the
  // digest in the last line proves them.
  explicit PartRecordParser(std::string path, ValueSink on_value = {});

  // Takes the record's next bytes, cut anywhere. Do not call it again after an error. Errors:
  // kCorrupt; kUnsupported for another schema_version.
  Status Feed(std::string_view bytes);

  // After the last bytes. Any byte that is not as it was written is noticed by now.
  // Errors: kCorrupt.
  Status Finish() const;

  // There once the first Value came, or the record is finished.
  const std::optional<PartRecordHead>& head() const { return head_; }
  // Of all bytes fed.
  uint64_t size() const { return lines_.size(); }
  std::string HexDigest() const { return lines_.HexDigest(); }

 private:
  Status TakeHead(std::string_view line, const std::string& where);
  Status TakeValue(std::string_view line, const std::string& where);

  ValueSink on_value_;
  SealedLines lines_;
  std::optional<PartRecordHead> head_;
  uint64_t end_ = 0;  // of the last Value's content
};

// Sets `line` to the begin of the line that states a parameter of which bytes were taken from a
// source. The logical digest of these bytes ends it.
void SetTakenParameter(std::string_view name, DType dtype, const Shape& full_shape,
                       std::string& line);

// The digests of the bytes that all target files of a manifest took from each source file.
class SourceSummary {
 public:
  // Adds the facts of a part record about its sources. Records come sorted by target path. Errors:
  // kMismatch if records disagree on a source's size.
  Status Add(const PartRecordHead& head);

  // Returns the sources, sorted by path; one without digests in a record has none.
  std::vector<ManifestSource> Sources() const;

 private:
  struct Source {
    uint64_t size = 0;
    bool has_digest = true;
    std::string few;  // lines, as long as they take less memory than their digest's state
    std::optional<Xxh3> lines;
  };
  std::map<std::string, Source> sources_;  // by path
};

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_PART_RECORD_H_
