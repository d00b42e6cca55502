// A file system for tests: the files of a folder, read-only, of which a part cannot be read, or
// which is slow.
//
//   fault_fs SOURCE MOUNTPOINT BEGIN END [MILLISECONDS LOG [rounds]]
//
// Reads that meet bytes BEGIN to END of any file fail with EIO. Each read takes MILLISECONDS
// unless who waits for it gets a signal, and LOG gets a line "PATH OFFSET LENGTH BUSY" for it, with
// the number of reads that are being served. With `rounds` all reads are answered together,
// MILLISECONDS after the last one of them came; then the line ends with the number of the round,
// from 0 on: who waits for one answer before it asks for the next takes a round for each.
// Variables of the environment change the failures:
//   FAULT_FS_ERROR=ESTALE      they are this error, or ETIMEDOUT
//   FAULT_FS_FAILURES=N        only the first N reads of the bytes fail
//   FAULT_FS_FAILED_OPENS=N    the first N times that a file is opened fail, too
//   FAULT_FS_TOUCH=1           a failed read changes the time of its file
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
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

namespace {

std::string source;
int64_t bad_begin = 0;
int64_t bad_end = 0;
std::chrono::milliseconds delay{0};
std::FILE* log_file = nullptr;
std::atomic<int> busy = 0;
int error = EIO;
std::atomic<int64_t> failures = INT64_MAX;
std::atomic<int64_t> failed_opens = 0;
bool touches = false;

bool in_rounds = false;
std::mutex mutex;  // guards what follows, and log_file
std::condition_variable answered;
int round_number = 0;
std::chrono::steady_clock::time_point round_end;

std::string Below(const char* path) { return source + path; }

void* Begin(fuse_conn_info* connection, fuse_config* configuration) {
  configuration->intr = 1;
  if (touches) configuration->attr_timeout = 0;
  // The kernel lets so many reads go out that it does not wait for; 12 unless told.
  connection->max_background = 64;
  connection->congestion_threshold = 64;
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

// Waits until the round ends in which this read came. Returns its number.
int AwaitRound() {
  std::unique_lock lock(mutex);
  const int mine = round_number;
  round_end = std::chrono::steady_clock::now() + delay;
  while (mine == round_number) {
    if (std::chrono::steady_clock::now() >= round_end) {
      ++round_number;
      answered.notify_all();
    } else {
      answered.wait_until(lock, round_end);
    }
  }
  return mine;
}

int Open(const char* /*path*/, fuse_file_info* /*file*/) {
  return failed_opens > 0 && failed_opens-- > 0 ? -error : 0;
}

int Read(const char* path, char* bytes, size_t size, off_t offset, fuse_file_info* /*file*/) {
  const int now_busy = ++busy;
  bool interrupted = false;
  if (in_rounds) {
    const int round = AwaitRound();
    const std::scoped_lock lock(mutex);
    std::fprintf(log_file, "%s %lld %zu %d\n", path, static_cast<long long>(offset), size, round);
    std::fflush(log_file);
  } else if (log_file != nullptr) {
    std::fprintf(log_file, "%s %lld %zu %d\n", path, static_cast<long long>(offset), size,
                 now_busy);
    std::fflush(log_file);
    interrupted = Delay();
  }
  --busy;
  if (interrupted) return -EINTR;
  if (offset < bad_end && offset + static_cast<int64_t>(size) > bad_begin && failures > 0 &&
      failures-- > 0) {
    if (touches) utimensat(AT_FDCWD, Below(path).c_str(), nullptr, 0);
    return -error;
  }
  const int file = open(Below(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return -errno;
  const ssize_t got = pread(file, bytes, size, offset);
  const int result = got < 0 ? -errno : static_cast<int>(got);
  close(file);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 7 && (argc != 8 || std::string(argv[7]) != "rounds")) {
    std::fputs("usage: fault_fs SOURCE MOUNTPOINT BEGIN END [MILLISECONDS LOG [rounds]]\n", stderr);
    return 2;
  }
  const auto number = [](const char* name, int64_t usual) {
    const char* const text = std::getenv(name);
    return text == nullptr ? usual : std::atoll(text);
  };
  if (const char* const name = std::getenv("FAULT_FS_ERROR")) {
    error = std::string(name) == "ESTALE" ? ESTALE : ETIMEDOUT;
  }
  failures = number("FAULT_FS_FAILURES", INT64_MAX);
  failed_opens = number("FAULT_FS_FAILED_OPENS", 0);
  touches = number("FAULT_FS_TOUCH", 0) != 0;
  source = argv[1];
  bad_begin = std::atoll(argv[3]);
  bad_end = std::atoll(argv[4]);
  in_rounds = argc == 8;
  if (argc >= 7) {
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
  operations.open = Open;
  operations.read = Read;
  char foreground[] = "-f";
  char single[] = "-s";
  char option[] = "-o";
  char threads[] = "max_threads=64,max_idle_threads=64";
  if (log_file == nullptr) {
    char* arguments[] = {argv[0], foreground, argv[2], single, nullptr};
    return fuse_main(4, arguments, &operations, nullptr);
  }
  char* arguments[] = {argv[0], foreground, argv[2], option, threads, nullptr};
  return fuse_main(5, arguments, &operations, nullptr);
}
