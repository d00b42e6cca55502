#include "src/verify/stored_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/shared_work.h"
#include "src/os/job_lock.h"
#include "src/os/output_directory.h"

namespace reshard {
namespace {

// Without the path that the message begins with.
std::string DetailOf(const Status& status, const std::string& path) {
  const std::string prefix = Escape(path) + ": ";
  return status.message().substr(status.message().starts_with(prefix) ? prefix.size() : 0);
}

// Parses the manifest of this name, or appends its damage.
Result<std::optional<Manifest>> ReadManifest(const OutputDirectory& root, const std::string& name,
                                             std::vector<DamageReport::Damage>& damages) {
  const std::string path = root.PathOf(name);
  RESHARD_ASSIGN_OR_RETURN(const auto entry, root.Look(name));
  if (entry && entry->type != OutputDirectory::EntryType::kFile) {
    damages.push_back({.path = name,
                       .kind = DamageReport::Damage::Kind::kManifest,
                       .detail = fmt::format("expected a file, found {}; restore it from a copy, "
                                             "or convert again",
                                             DescribeType(entry->type))});
    return std::optional<Manifest>();
  }
  const auto bytes = root.ReadFile(name, kMaxManifestBytes);
  Status status = bytes.status();
  if (bytes.ok()) {
    Result<Manifest> manifest = ParseManifest(*bytes, path);
    if (manifest.ok()) return std::optional(std::move(*manifest));
    status = manifest.status();
  }
  if (status.code() != StatusCode::kCorrupt) return status;
  damages.push_back({.path = name,
                     .kind = DamageReport::Damage::Kind::kManifest,
                     .detail = DetailOf(status, path)});
  return std::optional<Manifest>();
}

// Compares the list of checksums beside the manifest of this name with the manifest.
Status CheckChecksums(const std::string& manifest_name, const Manifest& manifest,
                      ManifestSet& set) {
  const std::string name = ChecksumsName(manifest_name);
  const std::string expected = EncodeChecksums(manifest);
  const auto found = set.root.ReadFile(name, kMaxManifestBytes);
  if (found.status().code() == StatusCode::kNotFound) {
    if (expected.empty()) return {};
    set.notes.push_back(
        fmt::format("{}: missing; only `xxhsum -c` needs it", Escape(set.root.PathOf(name))));
    return {};
  }
  if (found.status().code() == StatusCode::kIo) return found.status();
  if (found.ok() && *found == expected) return {};
  const std::string detail =
      found.ok() ? fmt::format(
                       "other than {} from byte {} on", manifest_name,
                       std::mismatch(found->begin(), found->end(), expected.begin(), expected.end())
                               .first -
                           found->begin())
                 : DetailOf(found.status(), set.root.PathOf(name));
  set.damages.push_back(
      {.path = name, .kind = DamageReport::Damage::Kind::kContent, .detail = detail});
  return {};
}

using Entry = OutputDirectory::Entry;
using EntryType = OutputDirectory::EntryType;

constexpr uint64_t kFeedBytes = uint64_t{256} << 10;
// The parser's prefix for its messages. Reports have the path in another field.
constexpr std::string_view kNoName = "record";

// The contradiction between the head of a record and the manifest; no value if there is none.
std::optional<std::string> Disagreement(const PartRecordHead& head, const std::string& plan,
                                        const ManifestFile& file) {
  if (head.plan != plan) {
    return fmt::format("expected the plan {} of the manifest, found {}", plan, head.plan);
  }
  if (head.path != file.path) {
    return fmt::format("expected the record of {}, found the record of {}", Quote(file.path),
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

Result<ManifestSet> ManifestSet::Open(const std::string& path) {
  RESHARD_ASSIGN_OR_RETURN(OutputDirectory root, OutputDirectory::Open(path));
  RESHARD_ASSIGN_OR_RETURN(std::vector<std::string> names, root.Names());
  std::erase_if(names, [](const std::string& name) { return !IsManifestName(name); });
  RESHARD_ASSIGN_OR_RETURN(const auto staging, root.Look(JobLock::kFolderName));
  if (names.empty() && staging) return NotFoundError(UnfinishedTarget(path));
  if (names.empty()) {
    return NotFoundError(
        fmt::format("{}: no manifest.json: the set is unfinished, or reshard did not write it; run "
                    "the same conversion again to finish it, or compare it with its sources by "
                    "`VerifyAgainst`",
                    Escape(path)));
  }
  ManifestSet set{.root = std::move(root), .names = std::move(names), .manifests = {}};
  if (staging) set.notes.push_back(UnfinishedTarget(path));
  for (const std::string& name : set.names) {
    RESHARD_ASSIGN_OR_RETURN(std::optional<Manifest> manifest,
                             ReadManifest(set.root, name, set.damages));
    if (!manifest) continue;
    RESHARD_RETURN_IF_ERROR(CheckChecksums(name, *manifest, set));
    set.manifests.push_back(std::move(*manifest));
  }
  return set;
}

uint64_t ManifestSet::files() const {
  uint64_t files = 0;
  for (const Manifest& manifest : manifests) files += manifest.files.size();
  return files;
}

uint64_t ManifestSet::bytes() const {
  uint64_t sum = 0;
  for (const Manifest& manifest : manifests) {
    for (const ManifestFile& file : manifest.files) {
      sum = SaturatingAdd(sum, file.size);
    }
  }
  return sum;
}

Result<std::optional<FileId>> OpenStored(const StoredFolder& folder, const std::string& path,
                                         DamageReport::Damage& damage) {
  const auto refuse = [&](DamageReport::Damage::Kind kind, std::string detail) {
    damage = {.path = path, .kind = kind, .detail = std::move(detail)};
    return std::optional<FileId>();
  };
  const auto found = LookAt(folder.root, path);
  if (found.status().code() == StatusCode::kAlreadyExists) {
    return refuse(DamageReport::Damage::Kind::kNoFile,
                  "expected a folder on the way to it, found something else; symbolic links are "
                  "not followed");
  }
  if (!found.ok()) return found.status();
  const std::optional<Entry>& entry = *found;
  if (!entry) return refuse(DamageReport::Damage::Kind::kMissing, "missing");
  if (entry->type != EntryType::kFile) {
    return refuse(DamageReport::Damage::Kind::kNoFile,
                  std::string("expected a file, found ").append(DescribeType(entry->type)));
  }
  // SourceFiles follows links, but the opened file has to lie in the folder itself.
  const FileId file = folder.files.Add(folder.root.path() + '/' + path);
  RESHARD_ASSIGN_OR_RETURN(const FileIdentity identity, folder.files.Identity(file));
  if (identity.key() != entry->identity.key()) {
    return refuse(DamageReport::Damage::Kind::kNoFile, "it was replaced while it was opened");
  }
  return std::optional(file);
}

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
                                                     const std::stop_token& stop,
                                                     DamageReport::Damage& damage) {
  const std::string path = RecordPath(file.path);
  const auto refuse = [&](const std::string& detail) {
    damage = {.path = path,
              .kind = DamageReport::Damage::Kind::kRecord,
              .detail = detail + "; its file was compared without it"};
    return std::optional<StoredRecord>();
  };
  RESHARD_ASSIGN_OR_RETURN(const std::optional<FileId> id, OpenStored(folder, path, damage));
  if (!id) return refuse(damage.detail);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, folder.files.Size(*id));
  if (size != file.record_size) {
    return refuse(fmt::format("expected {} bytes, found {}", file.record_size, size));
  }
  // If the digests fit, the record is as written, so its Values are not parsed.
  PartRecordParser parser{std::string(kNoName)};
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
