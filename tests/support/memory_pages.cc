#include "tests/support/memory_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace reshard {

std::vector<bool> PagesInCache(const std::string& path) {
  const size_t size = std::filesystem::file_size(path);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), path);
  void* map = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (map == MAP_FAILED) throw std::system_error(errno, std::generic_category(), path);
  std::vector<unsigned char> pages((size + page - 1) / page);
  const int failed = mincore(map, size, pages.data());
  munmap(map, size);
  if (failed != 0) throw std::system_error(errno, std::generic_category(), path);
  std::vector<bool> cached;
  cached.reserve(pages.size());
  for (const unsigned char flags : pages) cached.push_back((flags & 1) != 0);
  return cached;
}

bool KernelTellsOfPagesBeingRead() {
  constexpr long kCachestat = 451;
  return syscall(kCachestat, -1, nullptr, nullptr, 0) != 0 && errno == EBADF;
}

void DropPages(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), path);
  const bool done = fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
  close(fd);
  if (!done) throw std::system_error(errno, std::generic_category(), path);
}

size_t CachedPages(const std::string& path) {
  const std::vector<bool> cached = PagesInCache(path);
  return static_cast<size_t>(std::count(cached.begin(), cached.end(), true));
}

namespace {

// Adds up what a line like "Rss:       12 kB" says of this process's maps of a file.
size_t BytesInMaps(const std::string& path, std::string_view field) {
  // Each map has a line that ends with the path, then such lines.
  std::ifstream maps("/proc/self/smaps");
  bool ours = false;
  size_t kilobytes = 0;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (!first.ends_with(':')) {
      ours = line.ends_with(" " + path);
    } else if (size_t value = 0; ours && first == field && words >> value) {
      kilobytes += value;
    }
  }
  return kilobytes * 1024;
}

}  // namespace

size_t MappedPages(const std::string& path) {
  return BytesInMaps(path, "Rss:") / static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t BytesInLargePages(const std::string& path) { return BytesInMaps(path, "FilePmdMapped:"); }

}  // namespace reshard
