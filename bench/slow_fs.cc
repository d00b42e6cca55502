// A file system for bench/slow_source.py: the files of a folder, read-only, as a network or a hard
// disk would deliver them.
//
//   slow_fs SOURCE MOUNTPOINT network|disk MICROSECONDS MIB_PER_SECOND REQUESTS LOG
//
// Serves up to REQUESTS reads at a time, in the order in which they came, of a disk before all
// others one that begins where the last one ended, as systems sort what a disk is to do. Each waits
// MICROSECONDS, of a disk only one that does not begin there; then its bytes take their turn on a
// line of MIB_PER_SECOND. Folders, attributes and openings do not wait. LOG gets a line for each
// request, when it is answered: "ARRIVED ANSWERED LENGTH BUSY WHAT OFFSET PATH": microseconds since
// the start, bytes, the reads that had arrived and were not answered; WHAT is read, open, stat or
// list, of which only a read has LENGTH, BUSY and OFFSET. Stays in the foreground until it is
// unmounted or gets SIGTERM.
#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

std::string source;
bool is_disk = false;
std::chrono::microseconds latency{0};
double bytes_per_second = 0;
int most_served = 1;
std::FILE* log_file = nullptr;
const Clock::time_point start = Clock::now();
std::atomic<int> busy = 0;

std::mutex mutex;  // guards what follows
std::condition_variable changed;
struct Waiting {
  std::string path;
  off_t offset = 0;
};
std::list<Waiting> queue;  // reads that are not served yet, in the order in which they came
int served = 0;
Clock::time_point line_free = start;
std::string last_path;
off_t last_end = 0;

long long Now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
}

// A request that does not wait.
void LogAtOnce(const char* what, const char* path) {
  const long long now = Now();
  const std::scoped_lock lock(mutex);
  std::fprintf(log_file, "%lld %lld 0 0 %s 0 %s\n", now, now, what, path);
}

std::string Below(const char* path) { return source + path; }

void* Begin(fuse_conn_info* connection, fuse_config* /*configuration*/) {
  // The kernel lets so many reads go out that it does not wait for; 12 unless told.
  connection->max_background = 64;
  connection->congestion_threshold = 64;
  return nullptr;
}

int GetAttributes(const char* path, struct stat* status, fuse_file_info* /*file*/) {
  LogAtOnce("stat", path);
  return stat(Below(path).c_str(), status) == 0 ? 0 : -errno;
}

int ReadFolder(const char* path, void* names, fuse_fill_dir_t add, off_t /*offset*/,
               fuse_file_info* /*file*/, fuse_readdir_flags /*flags*/) {
  LogAtOnce("list", path);
  DIR* const folder = opendir(Below(path).c_str());
  if (folder == nullptr) return -errno;
  while (const dirent* const entry = readdir(folder)) {
    add(names, entry->d_name, nullptr, 0, fuse_fill_dir_flags{});
  }
  closedir(folder);
  return 0;
}

int Open(const char* path, fuse_file_info* file) {
  LogAtOnce("open", path);
  const int descriptor = open(Below(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return -errno;
  file->fh = static_cast<uint64_t>(descriptor);
  file->keep_cache = 1;  // as long as the file does not change, as NFS does
  return 0;
}

int Release(const char* /*path*/, fuse_file_info* file) {
  close(static_cast<int>(file->fh));
  return 0;
}

// Whether a read goes on where the last one ended.
bool GoesOn(const Waiting& read) {
  return is_disk && read.path == last_path && read.offset == last_end;
}

// Returns the read to serve next.
std::list<Waiting>::const_iterator Next() {
  const auto next = std::find_if(queue.begin(), queue.end(), GoesOn);
  return next == queue.end() ? queue.begin() : next;
}

int Read(const char* path, char* bytes, size_t size, off_t offset, fuse_file_info* file) {
  const int now_busy = ++busy;
  const long long arrived = Now();
  std::unique_lock lock(mutex);
  const auto place = queue.insert(queue.end(), {path, offset});
  lock.unlock();
  const ssize_t got = pread(static_cast<int>(file->fh), bytes, size, offset);
  lock.lock();
  changed.wait(lock, [place] { return served < most_served && Next() == place; });
  const bool waits = !is_disk || !GoesOn(*place);
  queue.erase(place);
  ++served;
  last_path = path;
  last_end = offset + static_cast<off_t>(size);
  changed.notify_all();
  lock.unlock();
  if (waits) std::this_thread::sleep_for(latency);
  lock.lock();
  const std::chrono::duration<double> transfer(static_cast<double>(std::max<ssize_t>(got, 0)) /
                                               bytes_per_second);
  line_free =
      std::max(line_free, Clock::now()) + std::chrono::duration_cast<Clock::duration>(transfer);
  const Clock::time_point end = line_free;
  lock.unlock();
  std::this_thread::sleep_until(end);
  lock.lock();
  --served;
  --busy;
  std::fprintf(log_file, "%lld %lld %zu %d read %lld %s\n", arrived, Now(), size, now_busy,
               static_cast<long long>(offset), path);
  changed.notify_all();
  return got < 0 ? -EIO : static_cast<int>(got);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fputs(
        "usage: slow_fs SOURCE MOUNTPOINT network|disk MICROSECONDS MIB_PER_SECOND REQUESTS LOG\n",
        stderr);
    return 2;
  }
  source = argv[1];
  is_disk = std::string(argv[3]) == "disk";
  latency = std::chrono::microseconds(std::atoi(argv[4]));
  bytes_per_second = std::atof(argv[5]) * (1 << 20);
  most_served = std::max(1, std::atoi(argv[6]));
  log_file = std::fopen(argv[7], "we");
  if (log_file == nullptr || bytes_per_second <= 0) {
    std::fputs("slow_fs: cannot write LOG, or no bandwidth\n", stderr);
    return 2;
  }
  fuse_operations operations{};
  operations.init = Begin;
  operations.getattr = GetAttributes;
  operations.readdir = ReadFolder;
  operations.open = Open;
  operations.release = Release;
  operations.read = Read;
  char foreground[] = "-f";
  char option[] = "-o";
  char threads[] = "max_threads=64,max_idle_threads=64";
  std::array<char*, 6> arguments{argv[0], foreground, option, threads, argv[2], nullptr};
  const int result = fuse_main(5, arguments.data(), &operations, nullptr);
  std::fclose(log_file);
  return result;
}
