#include "src/verify/stored_file.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "src/base/status_macros.h"
#include "src/digest/xxh3.h"
#include "src/io/in_steps.h"
#include "src/os/output_place.h"
#include "src/record/part_record.h"

namespace reshard {
namespace {

using Entry = OutputDirectory::Entry;
using EntryType = OutputDirectory::EntryType;

// Small enough to stay in the first cache of a core between the two digests.
constexpr uint64_t kSliceBytes = uint64_t{32} << 10;

static_assert(kDigestBlockBytes % kWindowBytes == 0, "no window lies in two blocks");

}  // namespace

Result<std::optional<FileId>> OpenStored(const StoredFolder& folder, const std::string& path,
                                         Damage& damage) {
  const auto refuse = [&](DamageKind kind, std::string detail) {
    damage = {.path = path, .kind = kind, .detail = std::move(detail)};
    return std::optional<FileId>();
  };
  const auto found = LookAt(folder.root, path);
  if (found.status().code() == StatusCode::kAlreadyExists) {
    return refuse(DamageKind::kNoFile,
                  "expected a folder on the way to it, found something else; symbolic links are "
                  "not followed");
  }
  if (!found.ok()) return found.status();
  const std::optional<Entry>& entry = *found;
  if (!entry) return refuse(DamageKind::kMissing, "missing");
  if (entry->type != EntryType::kFile) {
    return refuse(DamageKind::kNoFile,
                  std::string("expected a file, found ").append(DescribeType(entry->type)));
  }
  // SourceFiles follows links: what it opens has to be what lies in the folder itself.
  const FileId file = folder.files.Add(folder.root.path() + '/' + path);
  RESHARD_ASSIGN_OR_RETURN(const FileIdentity identity, folder.files.Identity(file));
  if (identity.device != entry->device || identity.inode != entry->inode) {
    return refuse(DamageKind::kNoFile, "it was replaced while it was opened");
  }
  return std::optional(file);
}

Result<StoredDigests> DigestStored(SourceFiles& files, FileId file, uint64_t size,
                                   const std::stop_token& stop,
                                   const std::function<void(uint64_t bytes)>& progress) {
  Xxh3 whole;
  Xxh3 block;
  StoredDigests digests;
  const auto take = [&](ByteRange range) -> Status {
    RESHARD_ASSIGN_OR_RETURN(const Window window, files.Open(file, range.offset, range.length));
    RESHARD_RETURN_IF_ERROR(files.Prefetch(file, range.end(), kWindowBytes));
    RESHARD_RETURN_IF_ERROR(window.Read([&whole, &block, &range](const std::byte* data) {
      for (uint64_t at = 0; at < range.length; at += kSliceBytes) {
        const std::span slice(data + at, std::min(kSliceBytes, range.length - at));
        whole.Update(slice);
        block.Update(slice);
      }
    }));
    if (range.end() % kDigestBlockBytes == 0 || range.end() == size) {
      digests.blocks.push_back(block.HexDigest());
      block.Reset();
    }
    return {};
  };
  RESHARD_RETURN_IF_ERROR(InSteps({0, size}, kWindowBytes, stop, progress, take));
  digests.file = whole.HexDigest();
  return digests;
}

}  // namespace reshard
