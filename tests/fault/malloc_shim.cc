// Preloaded into reshard by tests: memory runs out at one allocation.
//
//   RESHARD_SHIM_MALLOC=N     the N-th allocation after the beginning of main fails; 0: none does
//   RESHARD_SHIM_FOR_EVER=1   and every later one
//   RESHARD_SHIM_COUNT=FILE   the number of allocations is written to this file at the end
//
// What is allocated before main belongs to the C and C++ libraries. Any thread.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

// glibc's own malloc and the like, under the names by which it gives them away.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

using Main = int(int, char**, char**);

std::atomic<uint64_t> allocations{0};
std::atomic<bool> counting{false};
uint64_t failing = 0;
bool for_ever = false;
Main* real_main = nullptr;

bool Fails() {
  if (!counting.load(std::memory_order_relaxed)) return false;
  const uint64_t number = ++allocations;
  if (failing == 0 || number < failing || (number > failing && !for_ever)) return false;
  errno = ENOMEM;
  return true;
}

uint64_t Number(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

void WriteCount() {
  counting = false;
  const char* path = std::getenv("RESHARD_SHIM_COUNT");
  if (path == nullptr) return;
  char text[32];
  const int length = std::snprintf(text, sizeof text, "%llu\n",
                                   static_cast<unsigned long long>(allocations.load()));
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (write(fd, text, static_cast<size_t>(length)) != length) _exit(99);
}

int CountedMain(int argc, char** argv, char** environment) {
  failing = Number("RESHARD_SHIM_MALLOC");
  for_ever = Number("RESHARD_SHIM_FOR_EVER") != 0;
  std::atexit(WriteCount);
  counting = true;
  return real_main(argc, argv, environment);
}

}  // namespace

extern "C" {

int __libc_start_main(Main* main, int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*loader_fini)(), void* stack_end) {
  static auto* const next =
      reinterpret_cast<decltype(&__libc_start_main)>(dlsym(RTLD_NEXT, "__libc_start_main"));
  real_main = main;
  return next(CountedMain, argc, argv, init, fini, loader_fini, stack_end);
}

void* malloc(size_t size) { return Fails() ? nullptr : __libc_malloc(size); }

void* calloc(size_t count, size_t size) { return Fails() ? nullptr : __libc_calloc(count, size); }

void* realloc(void* block, size_t size) { return Fails() ? nullptr : __libc_realloc(block, size); }

void* memalign(size_t alignment, size_t size) {
  return Fails() ? nullptr : __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void** block, size_t alignment, size_t size) {
  void* const made = memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}

}  // extern "C"
