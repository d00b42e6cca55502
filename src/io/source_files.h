// SourceFiles: the one way to the bytes of checkpoint files.
//
// Files are named by path. They are opened when they are first needed and closed again when too
// many are open, so thousands of ranks need few descriptors and little address space. The identity
// of a file (device, inode, size, mtime, ctime) is pinned at the first opening, and compared at
// each reopening and by VerifyUnchanged. Files are mapped. If mapping fails, and on network and
// FUSE file systems, windows are filled by pread. Sources are never opened for writing.
//
// Windows stay for other readers of the same bytes (window_cache.h). When they go, the pages that
// they brought into the page cache leave it, and so do the pages of headers.
//
// Thread-safe. Windows must not outlive their SourceFiles.
#ifndef RESHARD_SRC_IO_SOURCE_FILES_H_
#define RESHARD_SRC_IO_SOURCE_FILES_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

#include "reshard/byte_range.h"
#include "reshard/encryption.h"
#include "reshard/status.h"
#include "src/io/file_windows.h"
#include "src/io/open_files.h"
#include "src/os/fault_guard.h"
#include "src/os/file_pages.h"
#include "src/os/system_call.h"
#include "src/os/used_files.h"

namespace reshard {

// Window: some bytes of a source file, in memory while it lives.
//
// A part of a map, or a buffer if there is no map. Keeps its file open. Move-only; any number of
// threads may read it.
class Window {
 public:
  Window(Window&& other) noexcept = default;
  Window& operator=(Window&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(pins_, other.pins_);
    std::swap(offset_, other.offset_);
    std::swap(size_, other.size_);
    std::swap(buffer_, other.buffer_);
    std::swap(data_, other.data_);
    return *this;
  }

  uint64_t size() const { return size_; }

  // Calls reader(const std::byte* data) with the window's first byte, under the fault guard.
  // `reader` must not make objects with destructors, take locks or allocate: a fault abandons it
  // midway.
  // Errors: kChanged when the file shrank, kIo when a page could not be read.
  template <typename Reader>
  Status Read(Reader reader) const {
    if (size_ == 0 || file_->windows.map() == nullptr) {
      reader(data_);
      return {};
    }
    const std::optional<size_t> fault = Guarded(data_, size_, [this, &reader] { reader(data_); });
    return fault ? ExplainFault(*fault) : Status();
  }

 private:
  friend class SourceFiles;
  // As SourceFiles::Open.
  static Result<Window> Make(OpenFiles::Lease file, uint64_t offset, uint64_t length);
  Window(OpenFiles::Lease file, uint64_t offset, uint64_t size)
      : file_(std::move(file)), offset_(offset), size_(size) {}
  // Why byte `fault` of the window cannot be read.
  Status ExplainFault(size_t fault) const;

  OpenFiles::Lease file_;
  std::array<FileWindows::Pin, 2> pins_;  // a range may lie in two of the file's windows
  uint64_t offset_;
  uint64_t size_;
  std::unique_ptr<std::byte[]> buffer_;  // only without a map
  const std::byte* data_ = nullptr;      // in the buffer or the map
};

// A source file for reading headers, one after the other. It stays open, so that no read has to
// look it up. Move-only; must not outlive its SourceFiles. One thread at a time.
class SourceReader {
 public:
  uint64_t size() const { return file_->source.size(); }
  // As ByteSource::IsRemote.
  bool IsRemote() const { return is_remote_; }
  Decryption decryption() const { return file_->source.decryption(); }

  // Copies exactly `destination.size()` bytes at `offset`; touches only their pages, without
  // read-ahead. For remote files, a read that takes the kernel several requests goes past the page
  // cache if that takes fewer.
  // Errors: kCorrupt if the range ends beyond the file; kChanged; kIo; kCancelled.
  Status Read(uint64_t offset, std::span<std::byte> destination);

  // Starts reading headers ahead, as SourceFiles::Prefetch does windows. Errors: kCancelled.
  Status Prefetch(ByteRange range) const;
  // As WindowCache::BytesAhead, when it was opened.
  uint64_t BytesAhead() const { return bytes_ahead_; }

 private:
  friend class SourceFiles;
  SourceReader(OpenFiles::Lease file, std::stop_token stop, uint64_t bytes_ahead)
      : file_(std::move(file)),
        stop_(std::move(stop)),
        is_remote_(file_->source.IsRemote()),
        bytes_ahead_(bytes_ahead) {}

  bool ReadPastCache(uint64_t offset, std::span<std::byte> destination);

  OpenFiles::Lease file_;
  std::stop_token stop_;
  bool is_remote_;
  uint64_t bytes_ahead_;
  // once it was wanted; owns no descriptor if opening failed
  std::optional<FileDescriptor> past_cache_;
};

class SourceFiles {
 public:
  // The value of max_open for any number of files: 1,024, or fewer if `ulimit -n` leaves less room
  // beside the other open files. OpenFiles keeps fewer if large files are mapped.
  static size_t DefaultMaxOpen();

  struct Options {
    size_t max_open = DefaultMaxOpen();  // files open at a time, besides the files of windows
    // Bytes of windows, and of pages that were brought into the page cache, that are kept; besides
    // windows in use.
    uint64_t window_budget = uint64_t{64} << 20;
    uint64_t header_budget = 0;  // the same for windows that only headers were read from
    IoChoice::Source access = IoChoice::Source::kAuto;
    std::stop_token stop = {};  // after a request, calls that want a file fail: kCancelled
    std::shared_ptr<const EncryptionKey> key = {};  // of encrypted files; null: none is decrypted
    // Counts the bytes of pages that are held, for others to read at any time; null: it need not.
    std::shared_ptr<std::atomic<uint64_t>> pages = {};
  };
  explicit SourceFiles(const Options& options)
      : windows_(options.window_budget, options.header_budget),
        files_(options.max_open, options.access, options.key, windows_),
        stop_(options.stop) {
    if (options.key != nullptr) NoteKeyFile(options.key->file());
    if (options.pages) windows_.CountPagesIn(options.pages);
  }
  explicit SourceFiles(size_t max_open) : SourceFiles(Options{.max_open = max_open}) {}

  // Names a file; no system call. The same path gives the same id.
  FileId Add(const std::string& path) { return files_.Add(path); }
  // As above; the first opening, too, has to find the file of this identity.
  FileId Add(const std::string& path, const FileIdentity& identity) {
    return files_.Add(path, identity);
  }
  const std::string& path(FileId id) const { return files_.path(id); }

  // Returns the file's size in bytes. Opens the file and pins its identity when it is the first
  // use.
  // Errors: kNotFound, kCorrupt (not a regular file), kIo, kChanged; kCancelled.
  Result<uint64_t> Size(FileId id);

  // Returns the identity that is pinned; opens the file when it is the first use. Errors: as Size.
  Result<FileIdentity> Identity(FileId id);

  // Returns the file, for reading headers; it stays open meanwhile. Errors: as Size.
  Result<SourceReader> OpenReader(FileId id);

  // As SourceReader::Read, of a file that is open only for that. Errors: as Size and there.
  Status Read(FileId id, uint64_t offset, std::span<std::byte> destination);

  // As SourceReader::Prefetch, of a file that is open only for that. Errors: as Size and there.
  Status PrefetchPages(FileId id, ByteRange range);

  // Returns a window of `length` <= kWindowBytes bytes at `offset`, its pages present. It is
  // cheapest if it does not cross a multiple of kWindowBytes. Errors: as Read.
  Result<Window> Open(FileId id, uint64_t offset, uint64_t length);

  // Starts reading bytes whose windows will be opened soon, without waiting. The range may end
  // beyond the file. Bytes without room are left out (FileWindows::Prefetch). Errors: as Size.
  Status Prefetch(FileId id, uint64_t offset, uint64_t length);

  // As WindowCache::HasReadFiles.
  bool HasReadFiles() const { return windows_.HasReadFiles(); }
  // As WindowCache::BytesAhead.
  uint64_t BytesAhead() const { return windows_.BytesAhead(); }
  // Returns how many of `left` bytes at `offset` a sequential reader should request ahead at a
  // time: a window and the rest of the large page at its end. With a server, which takes a while to
  // answer: all.
  uint64_t BytesToAskAhead(uint64_t offset, uint64_t left) const {
    return HasReadFiles() ? left : std::min(left, ToLargePage(offset + kWindowBytes) - offset);
  }

  // Replaces Options::window_budget and header_budget.
  void SetWindowBudget(uint64_t bytes, uint64_t headers) { windows_.SetBudget(bytes, headers); }

  // As WindowCache::KeepPages.
  void KeepPages() { windows_.KeepPages(); }

  // As WindowCache::GiveBack.
  void GiveWindowsBack() { windows_.GiveBack(); }

  // The most bytes of windows and pages that were held at a time, and the bytes held now.
  uint64_t HeldPeak() const { return windows_.HeldPeak(); }
  uint64_t Held() const { return windows_.Held(); }
  // As WindowCache::PagesPeak and Pages.
  uint64_t PagesPeak() const { return windows_.PagesPeak(); }
  uint64_t Pages() const { return windows_.Pages(); }
  // As WindowCache::HeldForHeaders.
  uint64_t HeldForHeaders() const { return windows_.HeldForHeaders(); }
  // As WindowCache::Buffered.
  uint64_t Buffered() const { return windows_.Buffered(); }
  // The bytes that were brought into windows so far.
  uint64_t FilledBytes() const { return windows_.Filled(); }
  // How the files that were opened are reached.
  SourceAccessCounts access_counts() const { return files_.access_counts(); }
  // As in Options.
  const std::shared_ptr<const EncryptionKey>& key() const { return files_.key(); }

  // Compares every used file with its pinned identity. Only this check notices bytes that were
  // overwritten, or that the end of a file's last page became zeros.
  // Errors: kChanged, naming the files and their changes; kIo.
  Status VerifyUnchanged() const { return files_.VerifyUnchanged(); }
  // As above, for the used files in `ids`.
  Status VerifyUnchanged(std::span<const FileId> ids) const { return files_.VerifyUnchanged(ids); }

 private:
  Result<OpenFiles::Lease> Acquire(FileId id);

  WindowCache windows_;
  OpenFiles files_;
  const std::stop_token stop_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_IO_SOURCE_FILES_H_
