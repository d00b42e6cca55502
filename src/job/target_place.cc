#include "src/job/target_place.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/digest/xxh3.h"
#include "src/io/shared_work.h"
#include "src/io/source_files.h"
#include "src/os/output_directory.h"
#include "src/record/part_record.h"

namespace reshard {
namespace {

constexpr const char* kProbe = ".reshard_probe";

// The folders of `files` and of their part records, those above them included: each path ends with
// a slash, but for the target folder's, which is empty and comes first.
std::set<std::string> FoldersOf(const std::vector<ManifestFile>& files) {
  std::set<std::string> folders = {""};
  for (const ManifestFile& file : files) {
    for (const std::string& path : {file.path, RecordPath(file.path)}) {
      for (size_t slash = path.find('/'); slash != std::string::npos;
           slash = path.find('/', slash + 1)) {
        folders.insert(path.substr(0, slash + 1));
      }
    }
  }
  return folders;
}

// Removes the probe from the folders in `parent`.
Status RemoveProbesBelow(const OutputDirectory& parent) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, parent.Names());
  for (const std::string& name : names) {
    const auto folder = parent.OpenFolder(name);
    if (folder.ok()) RESHARD_RETURN_IF_ERROR(folder->RemoveFile(kProbe));
  }
  return {};
}

// Hands the bytes of a file to `take`, in order, under the fault guard; after each call to it comes
// one of `taken`, with the end of what was taken.
template <typename Take, typename Taken>
Status ReadInOrder(SourceFiles& files, FileId file, uint64_t size, const std::stop_token& stop,
                   const Take& take, const Taken& taken) {
  return InSteps({0, size}, kWindowBytes, stop, {}, [&](ByteRange part) -> Status {
    RESHARD_ASSIGN_OR_RETURN(const Window window, files.Open(file, part.offset, part.length));
    RESHARD_RETURN_IF_ERROR(
        window.Read([&](const std::byte* data) { take(std::span(data, part.length)); }));
    taken(part.end());
    return {};
  });
}

}  // namespace

Result<bool> IsWhole(const OutputDirectory& root, const ManifestFile& file) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<OutputDirectory::Entry> entry,
                           LookAt(root, file.path));
  return entry && entry->type == OutputDirectory::EntryType::kFile && entry->size == file.size;
}

bool ShareAny(const std::vector<ManifestFile>& a, const std::vector<ManifestFile>& b) {
  auto at_a = a.begin();
  auto at_b = b.begin();
  while (at_a != a.end() && at_b != b.end()) {
    if (at_a->path == at_b->path) return true;
    ++(at_a->path < at_b->path ? at_a : at_b);
  }
  return false;
}

void AddFolders(std::string_view path, std::set<std::string>& folders) {
  for (size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    folders.emplace(path.substr(0, slash));
  }
}

Status SyncFolders(const OutputDirectory& root, const std::set<std::string>& folders) {
  for (const std::string& folder : folders) {
    RESHARD_ASSIGN_OR_RETURN(const std::optional<TargetPlace> place, FindPlace(root, folder + "/"));
    if (place) RESHARD_RETURN_IF_ERROR(place->folder.Sync());
  }
  return {};
}

Result<std::string> ReadFileAt(const OutputDirectory& root, const std::string& path,
                               uint64_t max_bytes) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<TargetPlace> place, FindPlace(root, path));
  if (!place)
    return NotFoundError(fmt::format("{}/{}: no such file", Escape(root.path()), Escape(path)));
  return place->folder.ReadFile(place->name, max_bytes);
}

Status ProveMoves(const OutputDirectory& staging, const OutputDirectory& target,
                  const std::vector<ManifestFile>& files) {
  RESHARD_RETURN_IF_ERROR(staging.MakeFile(kProbe));
  std::optional<OutputDirectory> last;  // where the probe is; nothing: in `staging`
  for (const std::string& path : FoldersOf(files)) {
    RESHARD_ASSIGN_OR_RETURN(std::optional<TargetPlace> place, FindPlace(target, path + kProbe));
    if (!place) continue;
    const OutputDirectory& from = last ? *last : staging;
    if (Status moved = from.Rename(kProbe, place->folder, kProbe); !moved.ok()) {
      (void)from.RemoveFile(kProbe);
      return {moved.code(),
              fmt::format("{}: staged files cannot be moved there: {}; nothing was replaced",
                          Escape(place->folder.path()), moved.message())};
    }
    last = std::move(place->folder);
  }
  return last->RemoveFile(kProbe);
}

Status RemoveProbes(const OutputDirectory& target) {
  RESHARD_RETURN_IF_ERROR(target.RemoveFile(kProbe));
  RESHARD_RETURN_IF_ERROR(RemoveProbesBelow(target));
  const auto records = target.OpenFolder(std::string(kRecordFolder));
  return records.ok() ? RemoveProbesBelow(*records) : Status();
}

Result<bool> IsAsRecorded(const std::string& path, uint64_t expected_size,
                          const std::string& expected_digest, const std::stop_token& stop) {
  SourceFiles files(1);
  const FileId file = files.Add(path);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, files.Size(file));
  if (size != expected_size) return false;
  Xxh3 digest;
  RESHARD_RETURN_IF_ERROR(ReadInOrder(
      files, file, size, stop, [&](std::span<const std::byte> part) { digest.Update(part); },
      [](uint64_t) {}));
  return digest.HexDigest() == expected_digest;
}

Result<FileDigests> DigestFile(const std::string& path, const std::stop_token& stop) {
  static_assert(kDigestBlockBytes % kWindowBytes == 0);
  SourceFiles files(1);
  const FileId file = files.Add(path);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t size, files.Size(file));
  FileDigests digests;
  Xxh3 whole;
  Xxh3 block;
  const auto take = [&](std::span<const std::byte> part) {
    whole.Update(part);
    block.Update(part);
  };
  const auto taken = [&](uint64_t end) {
    if (end % kDigestBlockBytes != 0 && end != size) return;
    digests.blocks.push_back(block.HexDigest());
    block.Reset();
  };
  RESHARD_RETURN_IF_ERROR(ReadInOrder(files, file, size, stop, take, taken));
  digests.file = whole.HexDigest();
  return digests;
}

}  // namespace reshard
