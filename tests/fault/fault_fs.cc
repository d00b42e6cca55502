// A file system for tests: the files of a folder, read-only, of which a part cannot be read, or
// which is slow.
//
//   fault_fs SOURCE MOUNTPOINT BEGIN END [MILLISECONDS LOG]
//
// Reads that meet bytes BEGIN to END of any file fail with EIO. Each read takes MILLISECONDS
// unless who waits for it gets a signal, and LOG gets a line "PATH OFFSET LENGTH BUSY" for it, with
// the number of reads that are being served.
// It stays in the foreground, serves one call at a time unless it is slow, and ends when it is
// unmounted or gets SIGTERM.
#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

std::string source;
int64_t bad_begin = 0;
int64_t bad_end = 0;
std::chrono::milliseconds delay{0};
std::FILE* log_file = nullptr;
std::atomic<int> busy = 0;

std::string Below(const char* path) { return source + path; }

void* Begin(fuse_conn_info* /*connection*/, fuse_config* configuration) {
  configuration->intr = 1;
  return nullptr;
}

int GetAttributes(const char* path, struct stat* status, fuse_file_info* /*file*/) {
  return stat(Below(path).c_str(), status) == 0 ? 0 : -errno;
}

int ReadFolder(const char* path, void* names, fuse_fill_dir_t add, off_t /*offset*/,
               fuse_file_info* /*file*/, fuse_readdir_flags /*flags*/) {
  DIR* const folder = opendir(Below(path).c_str());
  if (folder == nullptr) return -errno;
  while (const dirent* const entry = readdir(folder)) {
    add(names, entry->d_name, nullptr, 0, fuse_fill_dir_flags{});
  }
  closedir(folder);
  return 0;
}

// Returns whether the read was interrupted. The kernel asks for that when the process gets a
// signal, and lets it not even be killed before it is answered.
bool Delay() {
  constexpr std::chrono::milliseconds kStep{10};
  const auto end = std::chrono::steady_clock::now() + delay;
  while (std::chrono::steady_clock::now() < end) {
    if (fuse_interrupted() != 0) return true;
    std::this_thread::sleep_for(std::min(kStep, delay));
  }
  return false;
}

int Read(const char* path, char* bytes, size_t size, off_t offset, fuse_file_info* /*file*/) {
  const int now_busy = ++busy;
  bool interrupted = false;
  if (log_file != nullptr) {
    std::fprintf(log_file, "%s %lld %zu %d\n", path, static_cast<long long>(offset), size,
                 now_busy);
    std::fflush(log_file);
    interrupted = Delay();
  }
  --busy;
  if (interrupted) return -EINTR;
  if (offset < bad_end && offset + static_cast<int64_t>(size) > bad_begin) return -EIO;
  const int file = open(Below(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return -errno;
  const ssize_t got = pread(file, bytes, size, offset);
  const int result = got < 0 ? -errno : static_cast<int>(got);
  close(file);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 7) {
    std::fputs("usage: fault_fs SOURCE MOUNTPOINT BEGIN END [MILLISECONDS LOG]\n", stderr);
    return 2;
  }
  source = argv[1];
  bad_begin = std::atoll(argv[3]);
  bad_end = std::atoll(argv[4]);
  if (argc == 7) {
    delay = std::chrono::milliseconds(std::atoi(argv[5]));
    log_file = std::fopen(argv[6], "we");
    if (log_file == nullptr) {
      std::perror(argv[6]);
      return 2;
    }
  }
  fuse_operations operations{};
  operations.init = Begin;
  operations.getattr = GetAttributes;
  operations.readdir = ReadFolder;
  operations.read = Read;
  char foreground[] = "-f";
  char single[] = "-s";
  char* arguments[] = {argv[0], foreground, argv[2], log_file == nullptr ? single : nullptr,
                       nullptr};
  return fuse_main(log_file == nullptr ? 4 : 3, arguments, &operations, nullptr);
}
