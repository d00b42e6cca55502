// The `operator new` of programs with a memory limit. It asks MemoryWatch before it takes memory.
// `operator delete` is the C++ library's, which gives malloc's memory back.
#include <cstddef>
#include <cstdlib>
#include <new>

#include "src/base/memory_watch.h"

void* operator new(size_t size) {
  reshard::MemoryWatch::BeforeTaking(size, size);
  void* const block = std::malloc(size == 0 ? 1 : size);
  if (block == nullptr) throw std::bad_alloc();
  if (size >= reshard::MemoryWatch::kLargeBlock && reshard::MemoryWatch::IsWatched()) {
    constexpr size_t kSmallestPage = 4096;
    auto* const bytes = static_cast<volatile char*>(block);
    for (size_t i = 0; i < size; i += kSmallestPage) bytes[i] = 0;
  }
  return block;
}
