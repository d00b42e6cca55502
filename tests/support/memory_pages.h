// Which pages of a file are in memory.
#ifndef RESHARD_TESTS_SUPPORT_MEMORY_PAGES_H_
#define RESHARD_TESTS_SUPPORT_MEMORY_PAGES_H_

#include <cstddef>
#include <string>
#include <vector>

namespace reshard {

// Returns for each of a file's pages whether it is in the page cache, as mincore tells the owner of
// the file.
std::vector<bool> PagesInCache(const std::string& path);

// Whether the kernel tells programs which pages are still being read, by cachestat (Linux 6.5).
bool KernelTellsOfPagesBeingRead();

// Returns the number of a file's pages in the page cache.
size_t CachedPages(const std::string& path);

// Takes a file's pages out of memory, where its file system has a disk to read them from again.
// Throws.
void DropPages(const std::string& path);

// Returns the number of pages present in this process's maps of a file.
size_t MappedPages(const std::string& path);

// Returns the bytes of a file that are present in this process's maps of it as large pages.
size_t BytesInLargePages(const std::string& path);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_MEMORY_PAGES_H_
