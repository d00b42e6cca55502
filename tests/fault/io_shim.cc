// Preloaded into reshard by tests: transfers and maps that behave as they may anywhere, but hardly
// ever do on the machine of a test. Environment variables say how:
//
//   RESHARD_SHIM_SHORT=N      reads and writes of files transfer at most N bytes at a time, or, for
//                             N = 0, now and then any number, or are interrupted (EINTR)
//   RESHARD_SHIM_SEED=S       for that choice
//   RESHARD_SHIM_NO_MAP=1     files cannot be mapped
//   RESHARD_SHIM_LOCAL=1      every file system says that it is ext4, network ones and FUSE too
//
// Standard input, output and error are left alone. No state but the random numbers; any thread.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace {

template <typename Function>
Function* Next(Function* /*own*/, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int64_t Variable(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

uint64_t Random() {
  static std::atomic<uint64_t> state{static_cast<uint64_t>(Variable("RESHARD_SHIM_SEED", 1))};
  uint64_t z = state += 0x9e3779b97f4a7c15;  // splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Returns how many of `size` bytes are to be transferred; 0 for an interruption.
size_t Share(int fd, size_t size) {
  static const int64_t kMost = Variable("RESHARD_SHIM_SHORT", -1);
  if (kMost < 0 || fd <= STDERR_FILENO || size == 0) return size;
  if (kMost > 0) return std::min(size, static_cast<size_t>(kMost));
  switch (Random() % 4) {
    case 0:
      return 0;
    case 1:
      return 1 + Random() % size;
    case 2:
      return std::min<size_t>(size, 7);
    default:
      return size;
  }
}

// Calls `transfer` with as many of the `size` bytes as are to be transferred.
template <typename Transfer>
ssize_t Shortened(int fd, size_t size, Transfer transfer) {
  const size_t share = Share(fd, size);
  if (share == 0 && size > 0) {
    errno = EINTR;
    return -1;
  }
  return transfer(share);
}

// As Shortened, for the pieces of a vector: only the first is transferred, which is short enough.
template <typename Transfer>
ssize_t ShortenedVector(int fd, const iovec* pieces, int count, Transfer transfer) {
  size_t size = 0;
  for (int i = 0; i < count; ++i) size += pieces[i].iov_len;
  const size_t share = Share(fd, size);
  if (share == size) return transfer(pieces, count);
  for (int i = 0; i < count; ++i) {
    if (pieces[i].iov_len == 0) continue;
    return Shortened(fd, std::min(share, pieces[i].iov_len), [&](size_t length) {
      const iovec piece{pieces[i].iov_base, length};
      return transfer(&piece, 1);
    });
  }
  return 0;
}

}  // namespace

extern "C" {

ssize_t read(int fd, void* bytes, size_t size) {
  static auto* const next = Next(&read, "read");
  return Shortened(fd, size, [&](size_t share) { return next(fd, bytes, share); });
}

ssize_t write(int fd, const void* bytes, size_t size) {
  static auto* const next = Next(&write, "write");
  return Shortened(fd, size, [&](size_t share) { return next(fd, bytes, share); });
}

ssize_t pread(int fd, void* bytes, size_t size, off_t offset) {
  static auto* const next = Next(&pread, "pread");
  return Shortened(fd, size, [&](size_t share) { return next(fd, bytes, share, offset); });
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  static auto* const next = Next(&pwrite, "pwrite");
  return Shortened(fd, size, [&](size_t share) { return next(fd, bytes, share, offset); });
}

ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) {
  static auto* const next = Next(&pwritev, "pwritev");
  return ShortenedVector(fd, pieces, count, [&](const iovec* vector, int length) {
    return next(fd, vector, length, offset);
  });
}

ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) {
  static auto* const next = Next(&preadv, "preadv");
  return ShortenedVector(fd, pieces, count, [&](const iovec* vector, int length) {
    return next(fd, vector, length, offset);
  });
}

void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  static auto* const next = Next(&mmap, "mmap");
  static const bool kNoMap = Variable("RESHARD_SHIM_NO_MAP", 0) != 0;
  if (kNoMap && fd >= 0) {
    errno = ENODEV;
    return MAP_FAILED;
  }
  return next(address, size, protection, flags, fd, offset);
}

int fstatfs(int fd, struct statfs* status) noexcept {
  static auto* const next = Next(&fstatfs, "fstatfs");
  static const bool kLocal = Variable("RESHARD_SHIM_LOCAL", 0) != 0;
  constexpr long kExt4 = 0xEF53;
  const int result = next(fd, status);
  if (result == 0 && kLocal) status->f_type = kExt4;
  return result;
}

}  // extern "C"
