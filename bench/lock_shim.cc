// Preloaded into reshard by bench/lock_counts.py: counts who locks what.
//
//   RESHARD_LOCKS=FILE   gets, when the program ends, a line "place NAME ADDRESS LOCKED WAITED" for
//                        each place in the program that locks a mutex: its address in the program
//                        or library of this name; how often it locked one, also after waiting for
//                        a condition, and how often another thread had it; and a line "mutex
//                        NANOSECONDS LOCKED" for each address of a mutex: how long it was held.
//
// Locks of libraries that do not call pthread_mutex_lock by its name, malloc's above all, are not
// seen. Any thread.
#include <dlfcn.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

struct Place {
  std::atomic<void*> address = nullptr;
  std::atomic<uint64_t> locked = 0;
  std::atomic<uint64_t> waited = 0;
};

struct Mutex {
  std::atomic<void*> address = nullptr;
  std::atomic<uint64_t> locked = 0;
  std::atomic<uint64_t> nanoseconds = 0;
  std::chrono::steady_clock::time_point since;  // of who has it
};

std::array<Place, 4096> places;  // hashed; there are fewer
std::array<Mutex, 65536> mutexes;

template <typename Table>
auto& EntryOf(Table& table, void* address) {
  for (size_t i = reinterpret_cast<uintptr_t>(address) * 0x9e3779b97f4a7c15U >> 40;; ++i) {
    auto& entry = table[i % table.size()];
    void* found = entry.address;
    if (found == nullptr && entry.address.compare_exchange_strong(found, address)) return entry;
    if (found == address) return entry;
  }
}

// By who has locked it.
void Take(void* address) {
  Mutex& mutex = EntryOf(mutexes, address);
  mutex.locked.fetch_add(1, std::memory_order_relaxed);
  mutex.since = std::chrono::steady_clock::now();
}
void Give(void* address) {
  Mutex& mutex = EntryOf(mutexes, address);
  const auto held = std::chrono::steady_clock::now() - mutex.since;
  mutex.nanoseconds.fetch_add(
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(held).count()),
      std::memory_order_relaxed);
}

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Of glibc's two versions of the functions for conditions, the one that programs get today.
template <typename Function>
Function* RealCondition(const char* name) {
  void* const found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
  return found != nullptr ? reinterpret_cast<Function*>(found) : Real<Function>(name);
}

__attribute__((destructor)) void WriteCounts() {
  const char* const path = std::getenv("RESHARD_LOCKS");
  std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "we");
  if (file == nullptr) return;
  for (const Place& place : places) {
    void* const address = place.address;
    if (address == nullptr) continue;
    Dl_info info{};
    const bool known = dladdr(address, &info) != 0;
    // The call, and not what it returns to.
    const uintptr_t offset = reinterpret_cast<uintptr_t>(address) - 1 -
                             (known ? reinterpret_cast<uintptr_t>(info.dli_fbase) : 0);
    std::fprintf(file, "place %s 0x%zx %llu %llu\n", known ? info.dli_fname : "?", offset,
                 static_cast<unsigned long long>(place.locked),
                 static_cast<unsigned long long>(place.waited));
  }
  for (const Mutex& mutex : mutexes) {
    if (mutex.address.load() == nullptr) continue;
    std::fprintf(file, "mutex %llu %llu\n", static_cast<unsigned long long>(mutex.nanoseconds),
                 static_cast<unsigned long long>(mutex.locked));
  }
  std::fclose(file);
}

}  // namespace

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static auto* const real = Real<int(pthread_mutex_t*)>("pthread_mutex_lock");
  static auto* const tried = Real<int(pthread_mutex_t*)>("pthread_mutex_trylock");
  Place& place = EntryOf(places, __builtin_return_address(0));
  place.locked.fetch_add(1, std::memory_order_relaxed);
  int error = tried(mutex);
  if (error != 0) {
    place.waited.fetch_add(1, std::memory_order_relaxed);
    error = real(mutex);
  }
  if (error == 0) Take(mutex);
  return error;
}

extern "C" int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  static auto* const real = Real<int(pthread_mutex_t*)>("pthread_mutex_unlock");
  Give(mutex);
  return real(mutex);
}

extern "C" int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  static auto* const real =
      RealCondition<int(pthread_cond_t*, pthread_mutex_t*)>("pthread_cond_wait");
  EntryOf(places, __builtin_return_address(0)).locked.fetch_add(1, std::memory_order_relaxed);
  Give(mutex);
  const int error = real(condition, mutex);
  Take(mutex);
  return error;
}
