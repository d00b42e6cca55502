#include "src/verify/find_damage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "reshard/byte_range.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/digest/logical_digest.h"
#include "src/io/shared_work.h"
#include "src/io/source_files.h"
#include "src/os/threads.h"
#include "src/record/part_record.h"
#include "src/tensor/block_copy.h"
#include "src/tensor/byte_box.h"
#include "src/verify/copied_bytes.h"
#include "src/verify/shared_digests.h"

namespace reshard {
namespace {

constexpr size_t kMostNamed = 20;

// A damaged target file, and its part record, which is whole.
struct DamagedFile {
  FileId file = 0;
  FileId record = 0;
  uint64_t size = 0;                   // bytes that there are
  std::vector<ByteRange> blocks = {};  // the bad ones, in file order; they may end beyond `size`
};

// Parameters by name; one may have several Values, side by side.
struct DamagedNames {
  std::vector<std::string> first;
  uint64_t count = 0;
  std::string last;

  void Add(const std::string& name) {
    if (count > 0 && name == last) return;
    last = name;
    if (++count <= kMostNamed) first.push_back(name);
  }
};

class ParameterFinder {
 public:
  ParameterFinder(SourceFiles& files, const DamagedFile& damaged, const std::stop_token& stop)
      : files_(files), damaged_(damaged), stop_(stop) {}

  // Takes each Value, in file order.
  void Take(const RecordedValue& value) {
    in_box_ = value.name == name_ ? in_box_ + length_ : 0;
    name_ = value.name;
    length_ = value.length;
    if (!status_.ok()) return;
    if (IsBad({end_, value.offset - end_})) headers_.Add(name_);
    end_ = value.offset + value.length;
    if (!IsBad({value.offset, value.length})) return;
    const Result<bool> whole = HasDigest(value);
    if (!whole.ok()) {
      status_ = whole.status();
    } else if (!*whole) {
      contents_.Add(name_);
    }
  }

  Status NameIn(DamageReport::Damage& damage) {
    RESHARD_RETURN_IF_ERROR(status_);
    DamagedNames& names = contents_.count > 0 ? contents_ : headers_;
    damage.parameters = std::move(names.first);
    damage.parameter_count = names.count;
    return {};
  }

 private:
  // Whether a byte of `range` lies in a bad block.
  bool IsBad(ByteRange range) const {
    const auto block =
        std::upper_bound(damaged_.blocks.begin(), damaged_.blocks.end(), range.offset,
                         [](uint64_t at, ByteRange other) { return at < other.end(); });
    return range.length > 0 && block != damaged_.blocks.end() && block->offset < range.end();
  }

  // Whether the content of `value` is there and has its digest.
  Result<bool> HasDigest(const RecordedValue& value) {
    const std::optional<uint64_t> bytes = TensorBytes(value.full_shape, value.dtype);
    if (!bytes || end_ > damaged_.size) return false;
    const uint64_t box_bytes = Volume(value.box) * ItemBytes(value.dtype);
    if (in_box_ > box_bytes || value.length > box_bytes - in_box_) return false;
    if (in_box_ > value.offset) return false;
    const Box box = ToByteBox(value.box, value.dtype);
    BlockCopy copy =
        MakeBlockCopy({box.begin, box.extent, static_cast<int64_t>(value.offset - in_box_)},
                      ToByteShape(value.full_shape, value.dtype));
    copy.source = damaged_.file;
    const CopyRows rows(copy);
    Digest128 sum;
    const auto add = [&](ByteRange part) {
      return rows.ForEach(files_, part, [&](const CopyRow& row) { AddRow(row, hasher_, sum); });
    };
    RESHARD_RETURN_IF_ERROR(InSteps({value.offset, value.length}, kWindowBytes, stop_, {}, add));
    return ToHex(sum) == value.digest;
  }

  SourceFiles& files_;
  const DamagedFile& damaged_;
  const std::stop_token& stop_;
  LogicalHasher hasher_;
  Status status_;          // of reading
  std::string name_;       // of the last Value
  uint64_t length_ = 0;    // of its content
  uint64_t in_box_ = 0;    // bytes of its box that earlier Values hold
  uint64_t end_ = 0;       // of its content
  DamagedNames contents_;  // the damaged ones
  DamagedNames headers_;   // the perhaps damaged ones
};

// Adds parameters to `damage`: those with content in a bad block and another logical digest. If all
// digests fit, the damage is between the contents; then it adds parameters with a header in a bad
// block. Errors: as SourceFiles; kCorrupt if the record's Values cannot be read; kCancelled.
Status NameParameters(SourceFiles& files, const DamagedFile& damaged, const std::stop_token& stop,
                      DamageReport::Damage& damage) {
  ParameterFinder finder(files, damaged, stop);
  PartRecordParser parser("the part record",
                          [&finder](const RecordedValue& value) { finder.Take(value); });
  RESHARD_RETURN_IF_ERROR(FeedStored(files, damaged.record, stop, parser));
  return finder.NameIn(damage);
}

// A file to compare, and the result.
struct FileTask {
  const std::string* plan;
  const ManifestFile* file;
  std::vector<DamageReport::Damage> damages = {};
  uint64_t bytes = 0;  // that were read
};

// The blocks of a file of file.size bytes whose digests are not in `found`. If `size` bytes were
// read, the last digest of `found` covers an incomplete block.
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
  FileComparison(const StoredFolder& folder, SharedDigests& digests, const SharedWork& work,
                 const std::stop_token& stop, FileTask& task)
      : folder_(folder), digests_(digests), work_(work), stop_(stop), task_(task) {}
  ~FileComparison() { digests_.FileDone(); }
  FileComparison(const FileComparison&) = delete;
  FileComparison& operator=(const FileComparison&) = delete;

  Status Compare() {
    const ManifestFile& file = *task_.file;
    DamageReport::Damage damage;
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
    // The bytes that could not be read.
    if (work_.progress && task_.bytes < file.size) work_.progress(file.size - task_.bytes);
    if (work_.file_done) work_.file_done();
    return {};
  }

 private:
  Status CompareBytes(FileId id, const std::optional<StoredRecord>& record,
                      DamageReport::Damage& damage) {
    const ManifestFile& file = *task_.file;
    RESHARD_ASSIGN_OR_RETURN(const uint64_t size, folder_.files.Size(id));
    if (size != file.size) {
      damage = {.path = file.path,
                .kind = DamageReport::Damage::Kind::kSize,
                .detail = fmt::format("expected {} bytes, found {}", file.size, size)};
    }
    // A file without a byte has no block.
    if (file.encryption && file.size > 0 && damage.path.empty()) {
      RESHARD_ASSIGN_OR_RETURN(const SourceReader reader, folder_.files.OpenReader(id));
      if (reader.decryption() == Decryption::kNone) {
        damage = {.path = file.path,
                  .kind = DamageReport::Damage::Kind::kContent,
                  .detail = fmt::format("expected a file encrypted by {}, found one that is not "
                                        "encrypted",
                                        EncryptionModeName(*file.encryption))};
      }
    }
    if (file.digest.empty()) return {};
    const uint64_t common = std::min(size, file.size);
    RESHARD_ASSIGN_OR_RETURN(const StoredDigests found, digests_.Digest(id, common, stop_));
    task_.bytes = common;
    if (damage.path.empty() && found.file != file.digest) {
      damage = {.path = file.path,
                .kind = DamageReport::Damage::Kind::kContent,
                .detail = fmt::format("expected the digest {}, found {}", file.digest, found.file)};
    }
    return record ? Locate(*record, id, found, common, damage) : Status();
  }

  // Adds the bad blocks to `damage`, which may be none so far.
  Status Locate(const StoredRecord& record, FileId id, const StoredDigests& found, uint64_t size,
                DamageReport::Damage& damage) {
    const auto bad = BadBlocks(record.head, found.blocks, size);
    if (bad.empty()) return {};
    if (damage.path.empty()) {
      damage = {.path = record.head.path,
                .kind = DamageReport::Damage::Kind::kContent,
                .detail = "the file matches its digest, but its blocks do not match theirs"};
    }
    damage.block = {.index = bad.front().first, .range = bad.front().second};
    damage.bad_blocks = bad.size();
    DamagedFile damaged{.file = id, .record = record.file, .size = size};
    for (const auto& [index, range] : bad) damaged.blocks.push_back(range);
    Status named = NameParameters(folder_.files, damaged, stop_, damage);
    if (named.code() != StatusCode::kCorrupt) return named;
    damage.detail += "; " + named.message();
    return {};
  }

  const StoredFolder& folder_;
  SharedDigests& digests_;
  const SharedWork& work_;
  const std::stop_token& stop_;
  FileTask& task_;
};

}  // namespace

Result<DamageReport> FindDamage(const ManifestSet& set,
                                const std::shared_ptr<const EncryptionKey>& key,
                                const SharedWork& work) {
  DamageReport report{.manifests = set.names, .damages = set.damages, .notes = set.notes};
  std::vector<FileTask> tasks;
  for (const Manifest& manifest : set.manifests) {
    for (const ManifestFile& file : manifest.files) {
      if (file.encryption && key == nullptr) {
        return UnsupportedError(fmt::format(
            "{}: is encrypted ({}), and its digests are of the plain bytes; give its key (`key`)",
            Escape(file.path), EncryptionModeName(*file.encryption)));
      }
      tasks.push_back({.plan = &manifest.plan, .file = &file});
      if (file.digest.empty()) ++report.files_without_digest;
    }
  }
  report.files = tasks.size();

  // For each worker a target file, and the part record that names its parameters. Each byte is read
  // once; a window that is read ahead may lie in two.
  SourceFiles files({.max_open = 2 * work.workers,
                     .window_budget = 4 * work.workers * kWindowBytes,
                     .stop = work.stop,
                     .key = key});
  const StoredFolder folder{set.root, files};
  SharedDigests digests(files, tasks.size(), work.progress);
  // Further workers, behind those for files, help with files that others are digesting.
  const uint64_t helpers = std::min<uint64_t>(work.workers - 1, set.bytes() / kWindowBytes);
  RESHARD_RETURN_IF_ERROR(RunWorkers(
      work.workers, tasks.size() + helpers,
      [&](size_t i, const std::stop_token& stop) -> Status {
        if (i < tasks.size()) {
          return FileComparison(folder, digests, work, stop, tasks[i]).Compare();
        }
        digests.Help(stop);
        return {};
      },
      work.stop));
  for (FileTask& task : tasks) {
    report.bytes += task.bytes;
    std::move(task.damages.begin(), task.damages.end(), std::back_inserter(report.damages));
  }
  return report;
}

}  // namespace reshard
