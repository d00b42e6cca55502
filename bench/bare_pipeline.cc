// The practical limit that reshard is held against: the same bytes moved with nothing around it, by
// the simplest programs that do so. Which of them is the fastest depends on the machine.
//
//   bare_pipeline SHAPE LIST DST      LIST as bench/copy_list.cc prints it
//
// SHAPE is one of
//
//   map            one thread gathers from mapped windows of 4 MiB, which are populated, read ahead
//   by one
//                  and dropped; another one writes
//   cached:N       N threads, each takes a chunk of 4 MiB, reads what it needs by pread, and writes
//   it direct:N       the same, the sources read past the page cache ring:N         one thread,
//   io_uring, N chunks in flight, sources through the page cache; buffers are
//                  registered where the system allows
//   ring_direct:N  the same, past the page cache
//
// All write chunks of 4 MiB from aligned buffers past the page cache, the space allocated before,
// fsync after. No index, no plan, no checks, no digests, no commit, no bound on memory, and no code
// of reshard. Errors end it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <semaphore>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#ifdef RESHARD_LIBURING
#include <liburing.h>
#endif

namespace {

constexpr uint64_t kChunk = uint64_t{4} << 20;
constexpr uint64_t kAlignment = uint64_t{64} << 10;  // of direct writes and windows: any page size
constexpr uint64_t kPage = 4096;                     // of direct reads

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
  int file = -1;
  std::atomic<uint64_t> left = 0;  // bytes to be written
};

struct List {
  std::vector<std::string> sources;
  std::deque<Target> targets;
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
      target.left = target.size;
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

// At most 4 MiB of a target.
struct Chunk {
  Target* target;
  size_t first;  // copies before it end before `begin`
  uint64_t begin;
  uint64_t end;
};

std::vector<Chunk> ChunksOf(List& list) {
  std::vector<Chunk> chunks;
  for (Target& target : list.targets) {
    size_t first = 0;
    for (uint64_t begin = 0; begin < target.size; begin += kChunk) {
      while (first < target.copies.size() && target.copies[first].end() <= begin) ++first;
      chunks.push_back({&target, first, begin, std::min(begin + kChunk, target.size)});
    }
  }
  return chunks;
}

// Calls `visit(copy, from, to, length)` for each run of the chunk: offsets in source (or literal)
// and target.
template <typename Visit>
void ForEachRun(const Chunk& chunk, const Visit& visit) {
  const std::vector<Copy>& copies = chunk.target->copies;
  for (size_t i = chunk.first; i < copies.size() && copies[i].to < chunk.end; ++i) {
    const Copy& copy = copies[i];
    uint64_t run =
        copy.count > 1 && chunk.begin > copy.to ? (chunk.begin - copy.to) / copy.to_stride : 0;
    for (; run < copy.count; ++run) {
      const uint64_t to = copy.to + run * copy.to_stride;
      if (to >= chunk.end) break;
      const uint64_t low = std::max(to, chunk.begin);
      const uint64_t high = std::min(to + copy.run, chunk.end);
      if (low < high) {
        visit(copy, copy.from + run * copy.from_stride + (low - to), low, high - low);
      }
    }
  }
}

// `At(source, offset, length)` returns the byte there and sets how many follow it.
template <typename At>
void Gather(const Chunk& chunk, char* out, const At& at) {
  ForEachRun(chunk, [&](const Copy& copy, uint64_t from, uint64_t to, uint64_t length) {
    if (!copy.literal.empty()) {
      std::memcpy(out + (to - chunk.begin), copy.literal.data() + from, length);
      return;
    }
    while (length > 0) {
      uint64_t present = 0;
      const char* bytes = at(copy.source, from, present);
      present = std::min(present, length);
      std::memcpy(out + (to - chunk.begin), bytes, present);
      from += present;
      to += present;
      length -= present;
    }
  });
}

struct Free {
  void operator()(char* bytes) const { std::free(bytes); }
};
using Buffer = std::unique_ptr<char, Free>;

Buffer NewBuffer(uint64_t size) {
  const uint64_t whole = (size + kAlignment - 1) / kAlignment * kAlignment;
  return Buffer(static_cast<char*>(std::aligned_alloc(kAlignment, whole)));
}

void Create(Target& target, const std::string& folder) {
  const std::string path = folder + "/" + target.path;
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  target.file = open(path.c_str(), flags | O_DIRECT, 0644);
  if (target.file < 0) target.file = open(path.c_str(), flags, 0644);
  if (target.file < 0) Fail(path);
  if (fallocate(target.file, 0, 0, static_cast<off_t>(target.size)) != 0) Fail(path);
}

// The last buffer of a file is written as whole pages and cut after.
uint64_t WholePages(const Chunk& chunk) {
  return (chunk.end - chunk.begin + kAlignment - 1) / kAlignment * kAlignment;
}

void Finish(const Chunk& chunk) {
  Target& target = *chunk.target;
  const uint64_t length = chunk.end - chunk.begin;
  if (target.left.fetch_sub(length) != length) return;
  if (ftruncate(target.file, static_cast<off_t>(target.size)) != 0 || fsync(target.file) != 0) {
    Fail("fsync");
  }
  close(target.file);
}

void Write(const Chunk& chunk, const char* bytes) {
  const uint64_t length = WholePages(chunk);
  for (uint64_t done = 0; done < length;) {
    const ssize_t written = pwrite(chunk.target->file, bytes + done, length - done,
                                   static_cast<off_t>(chunk.begin + done));
    if (written <= 0) Fail("write");
    done += static_cast<uint64_t>(written);
  }
  Finish(chunk);
}

// --- map

// A mapped file, of which one window at a time is present.
class MappedSource {
 public:
  explicit MappedSource(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about = {};
    if (descriptor < 0 || fstat(descriptor, &about) != 0) Fail(path);
    size_ = static_cast<uint64_t>(about.st_size);
    void* map = mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
    if (map == MAP_FAILED) Fail(path);
    map_ = static_cast<char*>(map);
    close(descriptor);
  }

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

// What the gathering thread hands to the writing one.
struct Handover {
  Buffer bytes = NewBuffer(kChunk);
  const Chunk* chunk = nullptr;  // null: there is no more
  std::binary_semaphore is_free{1};
  std::binary_semaphore is_full{0};
};

void ByMap(const List& list, const std::vector<Chunk>& chunks) {
  std::vector<MappedSource> sources(list.sources.begin(), list.sources.end());
  Handover handovers[2];
  std::thread writer([&] {
    for (int turn = 0;; turn ^= 1) {
      Handover& handover = handovers[turn];
      handover.is_full.acquire();
      if (handover.chunk == nullptr) return;
      Write(*handover.chunk, handover.bytes.get());
      handover.is_free.release();
    }
  });
  int turn = 0;
  const auto hand_over = [&](const Chunk* chunk) {
    Handover& handover = handovers[turn];
    handover.is_free.acquire();
    handover.chunk = chunk;
    if (chunk != nullptr) {
      Gather(*chunk, handover.bytes.get(), [&](uint64_t source, uint64_t offset, uint64_t& length) {
        return sources[source].At(offset, length);
      });
    }
    handover.is_full.release();
    turn ^= 1;
  };
  for (const Chunk& chunk : chunks) hand_over(&chunk);
  hand_over(nullptr);
  writer.join();
}

// --- cached, direct

std::vector<int> OpenSources(const List& list, bool is_direct) {
  std::vector<int> files;
  for (const std::string& path : list.sources) {
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | (is_direct ? O_DIRECT : 0));
    if (file < 0) file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) Fail(path);
    files.push_back(file);
  }
  return files;
}

// Where the last byte lies that a chunk needs of each source, and the first.
struct Span {
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
};

std::vector<Span> SpansOf(const Chunk& chunk, size_t sources) {
  std::vector<Span> spans(sources);
  ForEachRun(chunk, [&](const Copy& copy, uint64_t from, uint64_t, uint64_t length) {
    if (!copy.literal.empty()) return;
    Span& span = spans[copy.source];
    span.begin = std::min(span.begin, from);
    span.end = std::max(span.end, from + length);
  });
  for (Span& span : spans) {
    if (span.end > 0) span.begin = span.begin / kPage * kPage;
  }
  return spans;
}

void ByPread(const List& list, const std::vector<Chunk>& chunks, bool is_direct, size_t threads) {
  const std::vector<int> files = OpenSources(list, is_direct);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    struct Window {
      Buffer bytes;
      uint64_t begin = 0;
      uint64_t end = 0;
    };
    const Buffer out = NewBuffer(kChunk);
    std::vector<Window> windows(files.size());
    for (size_t i = next++; i < chunks.size(); i = next++) {
      const std::vector<Span> spans = SpansOf(chunks[i], files.size());
      for (Window& window : windows) window.begin = window.end = 0;
      Gather(chunks[i], out.get(), [&](uint64_t source, uint64_t offset, uint64_t& length) {
        Window& window = windows[source];
        if (offset < window.begin || offset >= window.end) {
          if (!window.bytes) window.bytes = NewBuffer(kChunk);
          window.begin = offset / kPage * kPage;
          const uint64_t wanted =
              std::min(kChunk, (spans[source].end - window.begin + kPage - 1) / kPage * kPage);
          uint64_t got = 0;
          while (window.begin + got <= offset || got < wanted) {
            const ssize_t read = pread(files[source], window.bytes.get() + got, wanted - got,
                                       static_cast<off_t>(window.begin + got));
            if (read < 0) Fail("read");
            if (read == 0) break;
            got += static_cast<uint64_t>(read);
          }
          window.end = window.begin + got;
          if (window.end <= offset) Fail("read: the file ends early");
        }
        length = window.end - offset;
        return window.bytes.get() + (offset - window.begin);
      });
      Write(chunks[i], out.get());
    }
  };
  std::vector<std::thread> workers;
  for (size_t i = 0; i < threads; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
}

// --- ring, ring_direct

#ifdef RESHARD_LIBURING

// A buffer of 4 MiB; its number in the ring's registered buffers.
struct Block {
  Buffer bytes = NewBuffer(kChunk);
  int number = 0;
};

class Ring {
 public:
  Ring(const List& list, const std::vector<Chunk>& chunks, bool is_direct, size_t depth)
      : files_(OpenSources(list, is_direct)), chunks_(chunks), slots_(depth) {
    if (io_uring_queue_init(kEntries, &ring_, 0) != 0) Fail("io_uring_queue_init");
    std::vector<iovec> vectors;
    blocks_.resize(depth * kBlocksOfSlot);
    for (Block& block : blocks_) {
      block.number = static_cast<int>(vectors.size());
      vectors.push_back({block.bytes.get(), kChunk});
      free_.push_back(&block);
    }
    is_registered_ = io_uring_register_buffers(&ring_, vectors.data(),
                                               static_cast<unsigned>(vectors.size())) == 0;
  }
  ~Ring() { io_uring_queue_exit(&ring_); }

  void Run() {
    for (Slot& slot : slots_) Start(slot);
    while (at_work_ > 0) {
      io_uring_submit_and_wait(&ring_, 1);
      io_uring_cqe* entry = nullptr;
      while (io_uring_peek_cqe(&ring_, &entry) == 0) {
        auto* request = static_cast<Request*>(io_uring_cqe_get_data(entry));
        const int result = entry->res;
        io_uring_cqe_seen(&ring_, entry);
        Complete(*request, result);
      }
    }
  }

 private:
  static constexpr unsigned kEntries = 4096;
  static constexpr size_t kBlocksOfSlot = 24;

  struct Slot;
  struct Request {
    Slot* slot;
    int file;
    Block* block;
    uint64_t source;
    uint64_t begin;
    uint64_t length;
    uint64_t
        needed;  // bytes of it that there have to be; what follows may lie behind the file's end
    uint64_t done = 0;
    bool is_write = false;
  };
  // A chunk on its way: its reads, then its write.
  struct Slot {
    const Chunk* chunk = nullptr;
    std::deque<Request> reads;
    size_t reading = 0;
    Block* out = nullptr;
    Request write;
  };

  void Submit(Request& request) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) {
      io_uring_submit(&ring_);
      entry = io_uring_get_sqe(&ring_);
    }
    char* at = request.block->bytes.get() + request.done;
    const auto length = static_cast<unsigned>(request.length - request.done);
    const uint64_t offset = request.begin + request.done;
    if (request.is_write) {
      is_registered_ ? io_uring_prep_write_fixed(entry, request.file, at, length, offset,
                                                 request.block->number)
                     : io_uring_prep_write(entry, request.file, at, length, offset);
    } else {
      is_registered_
          ? io_uring_prep_read_fixed(entry, request.file, at, length, offset, request.block->number)
          : io_uring_prep_read(entry, request.file, at, length, offset);
    }
    io_uring_sqe_set_data(entry, &request);
  }

  Block* Take() {
    if (free_.empty()) Fail("ring: a chunk that lies too far apart");
    Block* block = free_.back();
    free_.pop_back();
    return block;
  }

  void Start(Slot& slot) {
    slot.chunk = nullptr;
    if (next_ == chunks_.size()) return;
    slot.chunk = &chunks_[next_++];
    ++at_work_;
    slot.out = Take();
    slot.reads.clear();
    const std::vector<Span> spans = SpansOf(*slot.chunk, files_.size());
    for (uint64_t source = 0; source < spans.size(); ++source) {
      const Span& span = spans[source];
      for (uint64_t begin = span.begin; begin < span.end; begin += kChunk) {
        const uint64_t length = std::min(kChunk, (span.end - begin + kPage - 1) / kPage * kPage);
        slot.reads.push_back({&slot, files_[source], Take(), source, begin, length,
                              std::min(length, span.end - begin)});
      }
    }
    slot.reading = slot.reads.size();
    for (Request& request : slot.reads) Submit(request);
    if (slot.reading == 0) GatherAndWrite(slot);
  }

  void GatherAndWrite(Slot& slot) {
    Gather(*slot.chunk, slot.out->bytes.get(),
           [&](uint64_t source, uint64_t offset, uint64_t& length) -> const char* {
             for (const Request& read : slot.reads) {
               if (read.source != source || offset < read.begin ||
                   offset >= read.begin + read.length) {
                 continue;
               }
               length = read.begin + read.length - offset;
               return read.block->bytes.get() + (offset - read.begin);
             }
             Fail("ring: nothing was read there");
           });
    for (const Request& read : slot.reads) free_.push_back(read.block);
    const uint64_t length = WholePages(*slot.chunk);
    slot.write = {&slot, slot.chunk->target->file, slot.out, 0, slot.chunk->begin, length, length};
    slot.write.is_write = true;
    Submit(slot.write);
  }

  void Complete(Request& request, int result) {
    if (result < 0) {
      errno = -result;
      Fail(request.is_write ? "write" : "read");
    }
    request.done += static_cast<uint64_t>(result);
    if (request.done < request.needed) {
      if (result == 0) Fail("read: the file ends early");
      return Submit(request);
    }
    Slot& slot = *request.slot;
    if (!request.is_write) {
      if (--slot.reading == 0) GatherAndWrite(slot);
      return;
    }
    Finish(*slot.chunk);
    free_.push_back(slot.out);
    --at_work_;
    Start(slot);
  }

  io_uring ring_ = {};
  bool is_registered_ = false;
  std::vector<int> files_;
  const std::vector<Chunk>& chunks_;
  size_t next_ = 0;
  size_t at_work_ = 0;
  std::deque<Block> blocks_;
  std::vector<Block*> free_;
  std::deque<Slot> slots_;
};

bool HasRing() {
  io_uring ring = {};
  if (io_uring_queue_init(1, &ring, 0) != 0) return false;
  io_uring_queue_exit(&ring);
  return true;
}

void ByRing(const List& list, const std::vector<Chunk>& chunks, bool is_direct, size_t depth) {
  Ring(list, chunks, is_direct, depth).Run();
}

#else

bool HasRing() { return false; }

void ByRing(const List&, const std::vector<Chunk>&, bool, size_t) {
  std::cerr << "bare_pipeline: built without liburing\n";
  std::exit(2);
}

#endif

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: bare_pipeline map|cached:N|direct:N"
              << (HasRing() ? "|ring:N|ring_direct:N" : "") << " LIST DST\n";
    return 2;
  }
  const std::string shape = argv[1];
  const std::string kind = shape.substr(0, shape.find(':'));
  const size_t count = kind.size() == shape.size() ? 0 : std::stoul(shape.substr(kind.size() + 1));
  List list = ReadList(argv[2]);
  for (Target& target : list.targets) {
    std::filesystem::create_directories(
        (std::filesystem::path(argv[3]) / target.path).parent_path());
    Create(target, argv[3]);
  }
  const std::vector<Chunk> chunks = ChunksOf(list);
  if (kind == "map") {
    ByMap(list, chunks);
  } else if (kind == "cached" || kind == "direct") {
    ByPread(list, chunks, kind == "direct", count);
  } else if (kind == "ring" || kind == "ring_direct") {
    ByRing(list, chunks, kind == "ring_direct", count);
  } else {
    std::cerr << "bare_pipeline: no shape " << shape << "\n";
    return 2;
  }
  return 0;
}
