#include "src/verify/find_damage.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "src/base/status_macros.h"
#include "src/os/worker_pool.h"
#include "src/record/part_record.h"
#include "src/verify/damaged_parameters.h"
#include "src/verify/stored_file.h"
#include "src/verify/stored_record.h"

namespace reshard {
namespace {

// A file to compare, and what came of it.
struct FileTask {
  const std::string* plan;
  const ManifestFile* file;
  std::vector<Damage> damages = {};
  uint64_t bytes = 0;  // that were read
};

// The blocks of a file of file.size bytes whose digests are not among the first of `found`, of
// which the last is of fewer bytes when `size` bytes were read.
std::vector<std::pair<uint64_t, ByteRange>> BadBlocks(const PartRecordHead& head,
                                                      const std::vector<std::string>& found,
                                                      uint64_t size) {
  std::vector<std::pair<uint64_t, ByteRange>> bad;
  for (uint64_t i = 0; i < head.blocks.size(); ++i) {
    const uint64_t offset = i * kDigestBlockBytes;
    const ByteRange range{offset, std::min(kDigestBlockBytes, head.size - offset)};
    if (range.end() > size || found[i] != head.blocks[i]) bad.emplace_back(i, range);
  }
  return bad;
}

class FileComparison {
 public:
  FileComparison(const StoredFolder& folder, const SharedWork& work, const std::stop_token& stop,
                 FileTask& task)
      : folder_(folder), work_(work), stop_(stop), task_(task) {}

  Status Compare() {
    const ManifestFile& file = *task_.file;
    Damage damage;
    RESHARD_ASSIGN_OR_RETURN(const std::optional<StoredRecord> record,
                             ReadStoredRecord(folder_, *task_.plan, file, stop_, damage));
    if (!record) task_.damages.push_back(std::exchange(damage, {}));
    RESHARD_ASSIGN_OR_RETURN(const std::optional<FileId> id,
                             OpenStored(folder_, file.path, damage));
    if (id) {
      RESHARD_RETURN_IF_ERROR(CompareBytes(*id, record, damage));
      RESHARD_RETURN_IF_ERROR(folder_.files.VerifyUnchanged(std::span(&*id, 1)));
    }
    if (!damage.path.empty()) task_.damages.push_back(std::move(damage));
    // What there was nothing to read of.
    if (work_.progress && task_.bytes < file.size) work_.progress(file.size - task_.bytes);
    return {};
  }

 private:
  Status CompareBytes(FileId id, const std::optional<StoredRecord>& record, Damage& damage) {
    const ManifestFile& file = *task_.file;
    RESHARD_ASSIGN_OR_RETURN(const uint64_t size, folder_.files.Size(id));
    if (size != file.size) {
      damage = {.path = file.path,
                .kind = DamageKind::kSize,
                .detail = fmt::format("expected {} bytes, found {}", file.size, size)};
    }
    if (file.digest.empty()) return {};
    const uint64_t common = std::min(size, file.size);
    RESHARD_ASSIGN_OR_RETURN(const StoredDigests found,
                             DigestStored(folder_.files, id, common, stop_, work_.progress));
    task_.bytes = common;
    if (damage.path.empty() && found.file != file.digest) {
      damage = {.path = file.path,
                .kind = DamageKind::kContent,
                .detail = fmt::format("expected the digest {}, found {}", file.digest, found.file)};
    }
    return record ? Locate(*record, id, found, common, damage) : Status();
  }

  // Adds the bad blocks to `damage`, which may be none so far.
  Status Locate(const StoredRecord& record, FileId id, const StoredDigests& found, uint64_t size,
                Damage& damage) {
    const auto bad = BadBlocks(record.head, found.blocks, size);
    if (bad.empty()) return {};
    if (damage.path.empty()) {
      damage = {.path = record.head.path,
                .kind = DamageKind::kContent,
                .detail = "the file has its digest, but its blocks have not"};
    }
    damage.block = {.index = bad.front().first, .range = bad.front().second};
    damage.bad_blocks = bad.size();
    DamagedFile damaged{.file = id, .record = record.file, .size = size};
    for (const auto& [index, range] : bad) damaged.blocks.push_back(range);
    return NameParameters(folder_.files, damaged, stop_, damage);
  }

  const StoredFolder& folder_;
  const SharedWork& work_;
  const std::stop_token& stop_;
  FileTask& task_;
};

}  // namespace

Result<DamageReport> FindDamage(const ManifestSet& set, const SharedWork& work) {
  DamageReport report{.manifests = set.names, .damages = set.damages, .notes = set.notes};
  std::vector<FileTask> tasks;
  for (const Manifest& manifest : set.manifests) {
    for (const ManifestFile& file : manifest.files) {
      tasks.push_back({.plan = &manifest.plan, .file = &file});
      if (file.digest.empty()) ++report.files_without_digest;
    }
  }
  report.files = tasks.size();

  // For each worker a target file, and the part record that names its parameters. Each byte is read
  // once; a window that is read ahead may lie in two.
  SourceFiles files({.max_open = 2 * work.workers,
                     .window_budget = 4 * work.workers * kWindowBytes,
                     .stop = work.stop});
  const StoredFolder folder{set.root, files};
  RESHARD_RETURN_IF_ERROR(RunWorkers(
      work.workers, tasks.size(),
      [&](size_t i, const std::stop_token& stop) {
        return FileComparison(folder, work, stop, tasks[i]).Compare();
      },
      work.stop));
  for (FileTask& task : tasks) {
    report.bytes += task.bytes;
    std::move(task.damages.begin(), task.damages.end(), std::back_inserter(report.damages));
  }
  return report;
}

}  // namespace reshard
