#include "src/io/open_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <stop_token>
#include <vector>

#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/os/local_file.h"
#include "src/os/threads.h"

namespace reshard {
namespace {

constexpr std::string_view kAdvice = "start again when no program writes to the sources";

// Returns the change of a file in words, if it has changed. `now` is the present identity, or an
// error. Only the errors for a missing or replaced file count as a change; others are returned.
Result<std::optional<std::string>> Compare(const FileIdentity& pinned,
                                           const Result<FileIdentity>& now) {
  std::optional<std::string> change;
  if (now.ok()) {
    if (*now != pinned) change = DescribeChange(pinned, *now);
  } else if (now.status().code() == StatusCode::kNotFound) {
    change = "it is gone";
  } else if (now.status().code() == StatusCode::kCorrupt) {
    change = "it is no longer a regular file";
  } else {
    return now.status();
  }
  return change;
}

Result<FileIdentity> IdentityIn(const Result<std::unique_ptr<ByteSource>>& source) {
  if (!source.ok()) return source.status();
  return (*source)->identity();
}

}  // namespace

size_t Askers(const std::string& path, size_t workers) {
  const Result<std::unique_ptr<ByteSource>> file = Storage::Of(path).Open(path);
  return file.ok() && (*file)->IsRemote() ? std::max(workers, kMostAsking) : workers;
}

OpenFiles::~OpenFiles() {
  for ([[maybe_unused]] const Entry& entry : entries_) assert(entry.leases == 0);
}

FileId OpenFiles::Add(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_path_.find(path); found != by_path_.end()) return found->second;
  const auto id = static_cast<FileId>(entries_.size());
  Entry& entry = entries_.emplace_back();
  entry.path = path;
  by_path_.emplace(entry.path, id);
  return id;
}

const std::string& OpenFiles::path(FileId id) const {
  const std::lock_guard lock(mutex_);
  return entries_[id].path;
}

FileId OpenFiles::Add(const std::string& path, const FileIdentity& identity) {
  const FileId id = Add(path);
  const std::lock_guard lock(mutex_);
  if (!entries_[id].pinned) entries_[id].pinned = identity;
  return id;
}

std::optional<FileIdentity> OpenFiles::PinnedIdentity(FileId id) const {
  const std::lock_guard lock(mutex_);
  return entries_[id].used ? entries_[id].pinned : std::nullopt;
}

std::optional<uint64_t> OpenFiles::KnownSize(FileId id) const {
  const std::lock_guard lock(mutex_);
  return entries_[id].used ? std::optional(entries_[id].size) : std::nullopt;
}

SourceAccessCounts OpenFiles::access_counts() const {
  const std::lock_guard lock(mutex_);
  SourceAccessCounts counts;
  for (const Entry& entry : entries_) {
    if (entry.used) ++(entry.mapped ? counts.mapped : counts.read);
  }
  return counts;
}

// Opens and maps a file. If there is a pinned identity the file has to match it. If the file was
// not `used` before, a failure to open it does not count as a change.
Result<std::unique_ptr<OpenFile>> OpenFiles::OpenPinned(const std::string& path,
                                                        const std::optional<FileIdentity>& pinned,
                                                        bool used,
                                                        std::shared_ptr<EncryptedBlocks>& blocks,
                                                        uint64_t& addresses) {
  const RetryScope scope(retries_);  // any thread may read a view of a target
  Result<std::unique_ptr<ByteSource>> opened = Storage::Of(path).Open(path);
  if (pinned && (used || opened.ok())) {
    RESHARD_ASSIGN_OR_RETURN(const std::optional<std::string> change,
                             Compare(*pinned, IdentityIn(opened)));
    if (change) {
      return ChangedError(fmt::format("{}: the file changed while it was in use: {}; {}",
                                      Escape(path), *change, kAdvice));
    }
  }
  if (!opened.ok()) return opened.status();
  std::unique_ptr<ByteSource> source = *std::move(opened);
  if (key_ != nullptr && blocks == nullptr) {
    RESHARD_ASSIGN_OR_RETURN(const std::optional<TargetSpec::EncryptionMode> mode,
                             EncryptionModeOf(*source));
    if (mode) {
      RESHARD_ASSIGN_OR_RETURN(blocks, EncryptedBlocks::Read(*source, *mode, key_));
    }
  }
  const bool wants_map = access_ == IoChoice::Source::kMap ||
                         (access_ == IoChoice::Source::kAuto && !source->IsRemote());
  // If there is no map, for lack of address space or of support in the storage, reads serve.
  LocalFile* const pages = source->pages();
  if (pages != nullptr && source->size() > 0 && wants_map && TakeAddresses(source->size())) {
    addresses = source->size();
    // Windows read all of their pages at once, and no other pages. A decrypting reader also touches
    // bytes that windows do not need.
    const Status mapped =
        pages->Map(blocks == nullptr ? LocalFile::MapPages::kLarge : LocalFile::MapPages::kSmall);
    if (!mapped.ok()) {
      GiveAddresses(addresses);
      if (access_ == IoChoice::Source::kMap) return mapped;
    }
  }
  if (blocks != nullptr) {
    source = std::make_unique<DecryptedFile>(std::move(source), blocks);
  }
  return std::make_unique<OpenFile>(std::move(source), windows_);
}

bool OpenFiles::TakeAddresses(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const uint64_t left = most_addresses_ - std::min(most_addresses_, mapped_);
  if (access_ != IoChoice::Source::kMap && bytes > left) return false;
  mapped_ += bytes;
  return true;
}

void OpenFiles::GiveAddresses(uint64_t& addresses) {
  const std::lock_guard lock(mutex_);
  mapped_ -= std::exchange(addresses, 0);
}

Result<OpenFiles::Lease> OpenFiles::Acquire(FileId id) {
  std::unique_lock lock(mutex_);
  Entry& entry = entries_[id];
  changed_.wait(lock, [&entry] { return !entry.changing; });
  if (entry.file == nullptr) {
    std::list<FileId> use(1, id);
    // The place is taken before opening, so that threads that open at the same time stay within the
    // limit together. The code below must not throw, because others wait for its end.
    entry.changing = true;
    ++open_;
    CloseSurplus(lock);
    const std::optional<FileIdentity> pinned = entry.pinned;
    const bool used = entry.used;
    lock.unlock();
    Result<std::unique_ptr<OpenFile>> file = CatchOutOfMemory(
        [&] { return OpenPinned(entry.path, pinned, used, entry.blocks, entry.addresses); });
    lock.lock();
    if (!file.ok()) mapped_ -= std::exchange(entry.addresses, 0);
    entry.changing = false;
    changed_.notify_all();
    if (!file.ok()) {
      --open_;
      return file.status();
    }
    entry.file = std::move(*file);
    if (!entry.pinned) entry.pinned = entry.file->source.identity();
    entry.used = true;
    entry.mapped = entry.addresses > 0;
    entry.size = entry.file->source.size();
    entry.use = use.begin();
    uses_.splice(uses_.end(), use);
  }
  ++entry.leases;
  uses_.splice(uses_.end(), uses_, entry.use);
  return Lease(this, id, entry.file.get());
}

void OpenFiles::Release(FileId id) {
  std::unique_lock lock(mutex_);
  --entries_[id].leases;
  CloseSurplus(lock);
}

void OpenFiles::CloseSurplus(std::unique_lock<std::mutex>& lock) {
  if (!TooManyOpen()) return;
  for (auto use = uses_.begin(); use != uses_.end(); ++use) {
    Entry& entry = entries_[*use];
    if (entry.leases > 0) continue;
    uses_.erase(use);
    --open_;
    mapped_ -= std::exchange(entry.addresses, 0);
    // Other threads must not open the file before its windows have gone. Otherwise they would treat
    // pages that are about to leave the page cache as cached by others.
    entry.changing = true;
    std::unique_ptr<OpenFile> file = std::move(entry.file);
    lock.unlock();
    file.reset();
    lock.lock();
    entry.changing = false;
    changed_.notify_all();
    return;
  }
}

Status OpenFiles::VerifyUnchanged() const {
  std::vector<const Entry*> used;
  {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.used) used.push_back(&entry);
    }
  }
  return VerifyUnchanged(used);
}

Status OpenFiles::VerifyUnchanged(std::span<const FileId> ids) const {
  std::vector<const Entry*> used;
  {
    const std::lock_guard lock(mutex_);
    for (const FileId id : ids) {
      if (entries_[id].used) used.push_back(&entries_[id]);
    }
  }
  return VerifyUnchanged(used);
}

Status OpenFiles::VerifyUnchanged(const std::vector<const Entry*>& used) const {
  std::vector<std::optional<std::string>> changes(used.size());
  const auto compare = [&](size_t i, const std::stop_token& /*stop*/) -> Status {
    // The path and the identity of a used file are never written again, so no lock is needed.
    const Storage& storage = Storage::Of(used[i]->path);
    RESHARD_ASSIGN_OR_RETURN(changes[i], Compare(*used[i]->pinned, storage.Stat(used[i]->path)));
    return {};
  };
  const size_t workers = used.size() < 2 ? 1 : Askers(used.front()->path, 1);
  RESHARD_RETURN_IF_ERROR(RunWorkers(workers, used.size(), compare, std::stop_token()));
  FirstFew changed;
  for (size_t i = 0; i < used.size(); ++i) {
    if (changes[i]) changed.Add(fmt::format("{}: {}", Escape(used[i]->path), *changes[i]));
  }
  if (changed.count() == 0) return {};
  return ChangedError(fmt::format("{} of {} source files changed while they were in use; {}:{}",
                                  changed.count(), used.size(), kAdvice, changed.Lines()));
}

}  // namespace reshard
