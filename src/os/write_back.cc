#include "src/os/write_back.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "src/base/status_macros.h"
#include "src/os/errno_status.h"

namespace reshard {

Status WriteBack::Sync(const Piece& piece, unsigned flags) {
  while (works_ && sync_file_range(piece.fd, static_cast<off_t>(piece.range.offset),
                                   static_cast<off_t>(piece.range.length), flags) != 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    works_ = false;
    if (error == ENOSYS || error == EINVAL || error == EOPNOTSUPP) return {};
    return ErrnoStatus(
        error,
        fmt::format("write back the bytes {} to {} of", piece.range.offset, piece.range.end()),
        piece.path);
  }
  return {};
}

Status WriteBack::Add(int fd, const std::string& path, ByteRange range) {
  if (range.length == 0 || !works_) return {};
  std::list<Piece> added;
  added.push_back({fd, path, range});
  RESHARD_RETURN_IF_ERROR(Sync(added.front(), SYNC_FILE_RANGE_WRITE));
  {
    const std::scoped_lock lock(mutex_);
    pieces_.splice(pieces_.end(), added);
    bytes_ += range.length;
    peak_ = std::max(peak_, bytes_);
  }
  return WaitFor(budget_);
}

Status WriteBack::WaitFor(uint64_t most) {
  std::unique_lock lock(mutex_);
  while (bytes_ > most) {
    const auto oldest = std::find_if(pieces_.begin(), pieces_.end(),
                                     [](const Piece& piece) { return !piece.busy; });
    if (oldest == pieces_.end()) {  // other threads wait for all that is left
      changed_.wait(lock);
      continue;
    }
    oldest->busy = true;
    lock.unlock();
    Status status = Sync(
        *oldest, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    // Advice: whether it is taken does not matter.
    static_cast<void>(posix_fadvise(oldest->fd, static_cast<off_t>(oldest->range.offset),
                                    static_cast<off_t>(oldest->range.length), POSIX_FADV_DONTNEED));
    lock.lock();
    bytes_ -= oldest->range.length;
    pieces_.erase(oldest);
    changed_.notify_all();
    RESHARD_RETURN_IF_ERROR(status);
  }
  return {};
}

void WriteBack::Forget(int fd) {
  std::unique_lock lock(mutex_);
  // Those that a thread waits for keep their descriptor until it is done.
  changed_.wait(lock, [&] {
    return std::none_of(pieces_.begin(), pieces_.end(),
                        [fd](const Piece& piece) { return piece.fd == fd && piece.busy; });
  });
  std::erase_if(pieces_, [&](const Piece& piece) {
    if (piece.fd != fd) return false;
    bytes_ -= piece.range.length;
    return true;
  });
}

uint64_t WriteBack::peak() const {
  const std::scoped_lock lock(mutex_);
  return peak_;
}

uint64_t WriteBack::bytes() const {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

}  // namespace reshard
