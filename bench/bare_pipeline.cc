// The practical limit that reshard is held against: the same bytes moved with nothing around it.
//
//   bare_pipeline LIST DST        LIST as bench/copy_list.cc prints it
//
// One thread gathers from mapped sources, in windows of 4 MiB that are populated, read ahead by one
// and dropped, into two aligned buffers of 4 MiB; another writes these past the page cache, the
// space allocated before, fsync after. No index, no plan, no checks, no digests, no commit, and no
// code of reshard. Errors end it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <semaphore>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr uint64_t kChunk = uint64_t{4} << 20;
constexpr uint64_t kAlignment = uint64_t{64} << 10;  // of direct writes and windows: any page size

[[noreturn]] void Fail(const std::string& what) {
  std::perror(("bare_pipeline: " + what).c_str());
  std::exit(1);
}

// Runs of a source, or the bytes of a literal.
struct Copy {
  uint64_t source = 0;
  uint64_t from = 0;
  uint64_t to = 0;
  uint64_t run = 0;
  uint64_t count = 1;
  uint64_t from_stride = 0;
  uint64_t to_stride = 0;
  std::string literal;  // its bytes; then there is no source

  uint64_t end() const { return to + (count - 1) * to_stride + run; }
};

struct Target {
  uint64_t size = 0;
  std::string path;
  std::vector<Copy> copies;
};

struct List {
  std::vector<std::string> sources;
  std::vector<Target> targets;
};

std::string FromHex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes(hex.size() / 2, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
  }
  return bytes;
}

List ReadList(const char* path) {
  std::ifstream file(path);
  if (!file) Fail(path);
  List list;
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string kind;
    in >> kind;
    if (kind == "source") {
      std::getline(in >> std::ws, list.sources.emplace_back());
    } else if (kind == "target") {
      Target& target = list.targets.emplace_back();
      in >> target.size;
      std::getline(in >> std::ws, target.path);
    } else {
      Copy& copy = list.targets.back().copies.emplace_back();
      if (kind == "bytes") {
        std::string hex;
        in >> copy.to >> hex;
        copy.literal = FromHex(hex);
        copy.run = copy.literal.size();
      } else {
        in >> copy.source >> copy.from >> copy.to >> copy.run >> copy.count >> copy.from_stride >>
            copy.to_stride;
      }
    }
  }
  return list;
}

// A mapped file, of which one window at a time is present.
class Source {
 public:
  explicit Source(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about = {};
    if (descriptor < 0 || fstat(descriptor, &about) != 0) Fail(path);
    size_ = static_cast<uint64_t>(about.st_size);
    void* map = mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
    if (map == MAP_FAILED) Fail(path);
    map_ = static_cast<char*>(map);
    close(descriptor);
  }

  // Returns the byte at `offset` and sets `length` to those that may be read there.
  const char* At(uint64_t offset, uint64_t& length) {
    if (offset < begin_ || offset >= end_) {
      if (end_ > begin_) madvise(map_ + begin_, end_ - begin_, MADV_DONTNEED);
      begin_ = offset / kAlignment * kAlignment;
      end_ = std::min(begin_ + kChunk, size_);
      madvise(map_ + begin_, end_ - begin_, MADV_POPULATE_READ);
      madvise(map_ + end_, std::min(kChunk, size_ - end_), MADV_WILLNEED);
    }
    length = end_ - offset;
    return map_ + offset;
  }

 private:
  char* map_;
  uint64_t size_;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

void Read(std::vector<Source>& sources, const Copy& copy, uint64_t run, uint64_t skip, char* out,
          uint64_t length) {
  if (!copy.literal.empty()) {
    std::memcpy(out, copy.literal.data() + skip, length);
    return;
  }
  uint64_t from = copy.from + run * copy.from_stride + skip;
  while (length > 0) {
    uint64_t present = 0;
    const char* bytes = sources[copy.source].At(from, present);
    present = std::min(present, length);
    std::memcpy(out, bytes, present);
    from += present;
    out += present;
    length -= present;
  }
}

// Fills the target's bytes from `begin` to `end`. Copies before `first` end before them.
void Gather(std::vector<Source>& sources, const Target& target, size_t& first, uint64_t begin,
            uint64_t end, char* out) {
  while (first < target.copies.size() && target.copies[first].end() <= begin) ++first;
  for (size_t i = first; i < target.copies.size() && target.copies[i].to < end; ++i) {
    const Copy& copy = target.copies[i];
    uint64_t run = copy.count > 1 && begin > copy.to ? (begin - copy.to) / copy.to_stride : 0;
    for (; run < copy.count; ++run) {
      const uint64_t to = copy.to + run * copy.to_stride;
      if (to >= end) break;
      const uint64_t low = std::max(to, begin);
      const uint64_t high = std::min(to + copy.run, end);
      if (low < high) Read(sources, copy, run, low - to, out + (low - begin), high - low);
    }
  }
}

// What the gathering thread hands to the writing one.
struct Buffer {
  ~Buffer() { std::free(bytes); }

  char* bytes = static_cast<char*>(std::aligned_alloc(kAlignment, kChunk));
  const Target* target = nullptr;  // null: there is no more
  uint64_t begin = 0;
  uint64_t length = 0;
  std::binary_semaphore is_free{1};
  std::binary_semaphore is_full{0};
};

int Create(const std::string& path, uint64_t size) {
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  int file = open(path.c_str(), flags | O_DIRECT, 0644);
  if (file < 0) file = open(path.c_str(), flags, 0644);
  if (file < 0) Fail(path);
  if (fallocate(file, 0, 0, static_cast<off_t>(size)) != 0) Fail(path);
  return file;
}

void WriteAll(int file, const char* bytes, uint64_t length, uint64_t offset) {
  while (length > 0) {
    const ssize_t written = pwrite(file, bytes, length, static_cast<off_t>(offset));
    if (written <= 0) Fail("write");
    bytes += written;
    length -= static_cast<uint64_t>(written);
    offset += static_cast<uint64_t>(written);
  }
}

void WriteBuffers(Buffer (&buffers)[2], const std::string& folder) {
  int file = -1;
  for (int turn = 0;; turn ^= 1) {
    Buffer& buffer = buffers[turn];
    buffer.is_full.acquire();
    const Target* target = buffer.target;
    if (target == nullptr) return;
    if (buffer.begin == 0) file = Create(folder + "/" + target->path, target->size);
    // The last buffer of a file is written as whole pages and cut after.
    const uint64_t whole = (buffer.length + kAlignment - 1) / kAlignment * kAlignment;
    WriteAll(file, buffer.bytes, whole, buffer.begin);
    const bool is_last = buffer.begin + buffer.length == target->size;
    buffer.is_free.release();
    if (!is_last) continue;
    if (ftruncate(file, static_cast<off_t>(target->size)) != 0 || fsync(file) != 0) Fail("fsync");
    close(file);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: bare_pipeline LIST DST\n";
    return 2;
  }
  const List list = ReadList(argv[1]);
  for (const Target& target : list.targets) {
    std::filesystem::create_directories(
        (std::filesystem::path(argv[2]) / target.path).parent_path());
  }
  std::vector<Source> sources(list.sources.begin(), list.sources.end());
  Buffer buffers[2];
  std::thread writer([&] { WriteBuffers(buffers, argv[2]); });
  int turn = 0;
  for (const Target& target : list.targets) {
    size_t first = 0;
    for (uint64_t begin = 0; begin < target.size; begin += kChunk, turn ^= 1) {
      Buffer& buffer = buffers[turn];
      buffer.is_free.acquire();
      buffer.target = &target;
      buffer.begin = begin;
      buffer.length = std::min(kChunk, target.size - begin);
      Gather(sources, target, first, begin, begin + buffer.length, buffer.bytes);
      buffer.is_full.release();
    }
  }
  buffers[turn].is_free.acquire();
  buffers[turn].target = nullptr;
  buffers[turn].is_full.release();
  writer.join();
  return 0;
}
