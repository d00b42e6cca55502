// OpenFiles: registered source files. A bounded number is open at a time.
//
// A lease keeps its file open. Recently used files stay open, too, up to a limit. Others are closed
// and opened again on demand, and must be unchanged then. Thread-safe: files open and close outside
// the lock. Leases must not outlive their OpenFiles.
#ifndef RESHARD_SRC_IO_OPEN_FILES_H_
#define RESHARD_SRC_IO_OPEN_FILES_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reshard/encryption.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "src/io/decrypted_file.h"
#include "src/io/file_windows.h"
#include "src/os/byte_source.h"
#include "src/os/memory_usage.h"
#include "src/os/retries.h"

namespace reshard {

// Names a registered file within its OpenFiles; counts up from 0.
using FileId = uint32_t;

// How many files were reached how.
struct SourceAccessCounts {
  size_t mapped = 0;
  size_t read = 0;
};

// An open source file.
struct OpenFile {
  OpenFile(std::unique_ptr<const ByteSource> opened, WindowCache& cache)
      : owned(std::move(opened)), source(*owned), windows(cache, source) {}

  const std::unique_ptr<const ByteSource> owned;
  const ByteSource& source;  // not mapped if it is read, decrypted or empty
  FileWindows windows;
};

// Threads that ask a server for small things side by side: mostly they wait.
inline constexpr size_t kMostAsking = 16;
// The same of a disk.
inline constexpr size_t kMostWaiting = 8;
// Returns the number of threads that should read headers and other small pieces of files like the
// one at `path`, which it opens for a moment. This is `workers`, or kMostAsking if that is more and
// the file is on a network or FUSE file system.
size_t Askers(const std::string& path, size_t workers);

class OpenFiles {
 public:
  // Keeps one file open. Move-only.
  class Lease {
   public:
    Lease(Lease&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), id_(other.id_), file_(other.file_) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(id_, other.id_);
      std::swap(file_, other.file_);
      return *this;
    }
    ~Lease() {
      if (owner_ != nullptr) owner_->Release(id_);
    }

    OpenFile* operator->() const { return file_; }

   private:
    friend class OpenFiles;
    Lease(OpenFiles* owner, FileId id, OpenFile* file) : owner_(owner), id_(id), file_(file) {}

    OpenFiles* owner_;
    FileId id_;
    OpenFile* file_;
  };

  // Encrypted files are decrypted with `key`; without one they are read as they are. `windows`
  // outlives it.
  OpenFiles(size_t max_open, IoChoice::Source access, std::shared_ptr<const EncryptionKey> key,
            WindowCache& windows)
      : max_open_(max_open),
        access_(access),
        key_(std::move(key)),
        retries_(CurrentRetries()),
        windows_(windows) {}
  ~OpenFiles();
  OpenFiles(const OpenFiles&) = delete;
  OpenFiles& operator=(const OpenFiles&) = delete;

  // As in SourceFiles.
  FileId Add(const std::string& path);
  FileId Add(const std::string& path, const FileIdentity& identity);
  const std::string& path(FileId id) const;
  Status VerifyUnchanged() const;
  Status VerifyUnchanged(std::span<const FileId> ids) const;
  SourceAccessCounts access_counts() const;
  const std::shared_ptr<const EncryptionKey>& key() const { return key_; }

  // The identity of the file when it was first opened, if it was.
  std::optional<FileIdentity> PinnedIdentity(FileId id) const;
  // The bytes that are read of the file, if it was opened.
  std::optional<uint64_t> KnownSize(FileId id) const;

  // Opens the file unless it is open. Errors: as Storage::Open and EncryptedBlocks::Read; kChanged
  // if it differs from the file of the first opening.
  Result<Lease> Acquire(FileId id);

 private:
  struct Entry {
    std::string path;
    std::optional<FileIdentity> pinned;
    bool used = false;                        // opened at least once; then it is pinned
    std::unique_ptr<OpenFile> file;           // null while closed
    bool mapped = false;                      // when it was opened last
    uint64_t size = 0;                        // of the source, once used
    uint64_t addresses = 0;                   // that its map takes while it is open
    std::shared_ptr<EncryptedBlocks> blocks;  // of an encrypted file that was used
    bool changing = false;                    // a thread opens or closes it, outside the lock
    size_t leases = 0;
    std::list<FileId>::iterator use;  // place in uses_ while open
  };

  Status VerifyUnchanged(const std::vector<const Entry*>& used) const;
  void Release(FileId id);
  // `blocks` has the file's blocks if they are known, and is set if the file is encrypted.
  // `addresses` is set to the addresses that the map takes.
  Result<std::unique_ptr<OpenFile>> OpenPinned(const std::string& path,
                                               const std::optional<FileIdentity>& pinned, bool used,
                                               std::shared_ptr<EncryptedBlocks>& blocks,
                                               uint64_t& addresses);
  // Counts a map of this many bytes. Returns false if maps would take more than half of the
  // process's addresses, because buffers need addresses, too.
  bool TakeAddresses(uint64_t bytes);
  // Takes a map that could not be made off the count again.
  void GiveAddresses(uint64_t& addresses);
  // Closes the file that was not used for longest, if there are too many; gives up the lock
  // meanwhile.
  void CloseSurplus(std::unique_lock<std::mutex>& lock);

  // The page tables of a map stay as long as the map: 2 MiB for each GiB that was read through it.
  // So beyond kAlwaysOpen, files stay mapped only while all maps together are below kMostMapped.
  static constexpr size_t kAlwaysOpen = 64;
  static constexpr uint64_t kMostMapped = uint64_t{16} << 30;

  bool TooManyOpen() const {
    return open_ > max_open_ || (open_ > kAlwaysOpen && mapped_ > kMostMapped);
  }

  const size_t max_open_;
  const uint64_t most_addresses_ = AddressLimit() / 2;  // for maps
  const IoChoice::Source access_;
  const std::shared_ptr<const EncryptionKey> key_;  // null: none
  const std::shared_ptr<Retries> retries_;          // of the thread that made it; null: none
  WindowCache& windows_;
  mutable std::mutex mutex_;         // guards the members below
  std::condition_variable changed_;  // a file is no longer `changing`
  std::deque<Entry> entries_;        // by id; a deque, so that paths stay at their addresses
  std::unordered_map<std::string_view, FileId> by_path_;  // views of the paths in entries_
  std::list<FileId> uses_;  // the open files, the one used last at the end
  size_t open_ = 0;         // files open or being opened
  uint64_t mapped_ = 0;     // bytes of the files that are mapped or being mapped
};

}  // namespace reshard

#endif  // RESHARD_SRC_IO_OPEN_FILES_H_
