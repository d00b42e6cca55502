#include "src/os/memory_usage.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/out_of_memory.h"
#include "src/os/file_pages.h"
#include "src/os/system_call.h"

namespace reshard {
namespace {

// Sanitizers use additional anonymous memory for each byte, and keep freed memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

// The text of a small file of the kernel; empty if it cannot be read. One call reads most of them,
// but a list of control groups may be long.
std::string ReadSmall(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return {};
  std::string text;
  std::array<char, 4096> piece;
  ssize_t size = 0;
  do {
    size = read(file.get(), piece.data(), piece.size());
    text.append(piece.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
  } while (size == ssize_t{piece.size()});
  return text;
}

// The number at the beginning of a text; no value for "max" and the like.
std::optional<uint64_t> ParsedNumber(std::string_view text) {
  uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

// The lowest limit of the control group at `path` and the groups above it. `path` is as in a line
// of /proc/self/cgroup. If the process sees only a part of the groups, `path` may not exist below
// `root`; then the limit of `root` counts.
uint64_t LimitOfGroup(const std::string& root, std::string path, const char* file) {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  while (true) {
    const std::string folder = path == "/" ? root : root + path;
    least = std::min(least, ParsedNumber(ReadSmall(folder + "/" + file)).value_or(least));
    if (path.size() <= 1) return least;
    path.erase(std::max<size_t>(path.find_last_of('/'), 1));
  }
}

uint64_t LimitOfGroups() {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  const std::string groups = ReadSmall("/proc/self/cgroup");
  for (size_t begin = 0; begin < groups.size();) {
    const size_t end = std::min(groups.find('\n', begin), groups.size());
    const std::string_view line = std::string_view{groups}.substr(begin, end - begin);
    begin = end + 1;
    const size_t path = line.find('/');
    if (path == std::string_view::npos) continue;
    if (line.starts_with("0::")) {
      least = std::min(
          least, LimitOfGroup("/sys/fs/cgroup", std::string(line.substr(path)), "memory.max"));
    } else if (line.find(":memory:") != std::string_view::npos) {
      least = std::min(least, LimitOfGroup("/sys/fs/cgroup/memory", std::string(line.substr(path)),
                                           "memory.limit_in_bytes"));
    }
  }
  return least;
}

uint64_t BeyondProgram(uint64_t anonymous) {
  return anonymous - std::min(anonymous, MemoryMeter::kProgram);
}

constexpr size_t kHugePage = size_t{2} << 20;  // on most machines; elsewhere it is just alignment

}  // namespace

uint64_t MemoryOfHost() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const uint64_t host =
      pages > 0 ? static_cast<uint64_t>(pages) * PageSize() : std::numeric_limits<uint64_t>::max();
  return std::min({host, LimitOfGroups(), AddressLimit()});
}

uint64_t AddressLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0) return std::numeric_limits<uint64_t>::max();
  return limit.rlim_cur;  // RLIM_INFINITY is the greatest number of its type
}

uint64_t AnonymousMemory() {
  if (kSanitized) return 0;
  // Pages: all, resident, resident pages of files; and more.
  const std::string text = ReadSmall("/proc/self/statm");
  const size_t second = text.find(' ') + 1;
  const size_t third = text.find(' ', second) + 1;
  if (second == 0 || third == 0) return 0;
  const uint64_t resident = ParsedNumber(std::string_view{text}.substr(second)).value_or(0);
  const uint64_t of_files = ParsedNumber(std::string_view{text}.substr(third)).value_or(0);
  return resident > of_files ? (resident - of_files) * PageSize() : 0;
}

void ReturnFreeMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

MemoryMeter::MemoryMeter() {
  ReturnFreeMemory();  // or it would be taken again without being seen
  before_ = BeyondProgram(AnonymousMemory());
}

uint64_t MemoryMeter::Look() {
  const uint64_t now = AnonymousMemory();
  uint64_t before = anonymous_peak_;
  while (before < now && !anonymous_peak_.compare_exchange_weak(before, now)) {
  }
  return Growth(now);
}

Result<ReservedMemory> ReservedMemory::Make(size_t size) {
  void* const found = mmap(nullptr, size + kHugePage, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return OutOfMemoryError();
  // Commits in huge pages cost hardly any page faults.
  auto* const begin = static_cast<std::byte*>(found);
  const size_t before = -reinterpret_cast<uintptr_t>(found) & (kHugePage - 1);
  if (before > 0) munmap(begin, before);
  munmap(begin + before + size, kHugePage - before);
  madvise(begin + before, size, MADV_HUGEPAGE);
  return ReservedMemory(begin + before, size);
}

ReservedMemory::~ReservedMemory() {
  if (data_ != nullptr) munmap(data_, size_);
}

Status ReservedMemory::Commit(size_t offset, size_t length) {
  if (mprotect(data_ + offset, length, PROT_READ | PROT_WRITE) != 0) return OutOfMemoryError();
  return {};
}

}  // namespace reshard
