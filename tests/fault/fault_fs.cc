// A file system for tests: the files of a folder, read-only, of which a part cannot be read.
//
//   fault_fs SOURCE MOUNTPOINT BEGIN END
//
// Reads that meet bytes BEGIN to END of any file fail with EIO. It stays in the foreground, serves
// one call at a time, and ends when it is unmounted or gets SIGTERM.
#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

std::string source;
int64_t bad_begin = 0;
int64_t bad_end = 0;

std::string Below(const char* path) { return source + path; }

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

int Read(const char* path, char* bytes, size_t size, off_t offset, fuse_file_info* /*file*/) {
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
  if (argc != 5) {
    std::fputs("usage: fault_fs SOURCE MOUNTPOINT BEGIN END\n", stderr);
    return 2;
  }
  source = argv[1];
  bad_begin = std::atoll(argv[3]);
  bad_end = std::atoll(argv[4]);
  fuse_operations operations{};
  operations.getattr = GetAttributes;
  operations.readdir = ReadFolder;
  operations.read = Read;
  char foreground[] = "-f";
  char single[] = "-s";
  char* arguments[] = {argv[0], foreground, single, argv[2], nullptr};
  return fuse_main(4, arguments, &operations, nullptr);
}
