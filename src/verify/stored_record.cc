#include "src/verify/stored_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/in_steps.h"

namespace reshard {
namespace {

constexpr uint64_t kFeedBytes = uint64_t{256} << 10;
// What the parser puts in front of its messages; the path stands beside them.
constexpr std::string_view kNoName = "record";

// How the head of a record disagrees with the manifest, or nothing.
std::optional<std::string> Disagreement(const PartRecordHead& head, const std::string& plan,
                                        const ManifestFile& file) {
  if (head.plan != plan) {
    return fmt::format("expected the plan {} of the manifest, found {}", plan, head.plan);
  }
  if (head.path != file.path) {
    return fmt::format("expected the record of {}, found that of {}", Quote(file.path),
                       Quote(head.path));
  }
  if (head.size != file.size) {
    return fmt::format("expected a file of {} bytes as in the manifest, found {}", file.size,
                       head.size);
  }
  if (head.digest != file.digest) {
    return fmt::format("expected the digest \"{}\" of the manifest, found \"{}\"", file.digest,
                       head.digest);
  }
  return std::nullopt;
}

}  // namespace

Status FeedStored(SourceFiles& files, FileId file, const std::stop_token& stop,
                  PartRecordParser& parser) {
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, files.Size(file));
  const auto buffer = std::make_unique_for_overwrite<char[]>(std::min(size, kFeedBytes));
  const auto feed = [&](ByteRange piece) -> Status {
    const std::span bytes(buffer.get(), piece.length);
    RESHARD_RETURN_IF_ERROR(files.Read(file, piece.offset, std::as_writable_bytes(bytes)));
    return parser.Feed({bytes.data(), bytes.size()});
  };
  RESHARD_RETURN_IF_ERROR(InSteps({0, size}, kFeedBytes, stop, {}, feed));
  return parser.Finish();
}

Result<std::optional<StoredRecord>> ReadStoredRecord(const StoredFolder& folder,
                                                     const std::string& plan,
                                                     const ManifestFile& file,
                                                     const std::stop_token& stop, Damage& damage) {
  const std::string path = RecordPath(file.path);
  const auto refuse = [&](const std::string& detail) {
    damage = {.path = path,
              .kind = DamageKind::kRecord,
              .detail = detail + "; its file was compared without it"};
    return std::optional<StoredRecord>();
  };
  RESHARD_ASSIGN_OR_RETURN(const std::optional<FileId> id, OpenStored(folder, path, damage));
  if (!id) return refuse(damage.detail);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, folder.files.Size(*id));
  if (size != file.record_size) {
    return refuse(fmt::format("expected {} bytes, found {}", file.record_size, size));
  }
  // With a sink, so that the Values are parsed: what is wrong with them is damage, too.
  PartRecordParser parser{std::string(kNoName), [](const RecordedValue& /*value*/) {}};
  const Status fed = FeedStored(folder.files, *id, stop, parser);
  RESHARD_RETURN_IF_ERROR(folder.files.VerifyUnchanged(std::span(&*id, 1)));
  // A manifest lists records of its own schema version only: another one is damage as well.
  if (fed.code() == StatusCode::kCorrupt || fed.code() == StatusCode::kUnsupported) {
    return refuse(fed.message().substr(kNoName.size() + 2));
  }
  RESHARD_RETURN_IF_ERROR(fed);
  if (parser.HexDigest() != file.record_digest) {
    return refuse(fmt::format("expected the digest {} of the manifest, found {}",
                              file.record_digest, parser.HexDigest()));
  }
  if (const auto wrong = Disagreement(*parser.head(), plan, file)) return refuse(*wrong);
  return std::optional(StoredRecord{*id, *parser.head()});
}

}  // namespace reshard
