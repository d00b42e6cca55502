// What SourceFiles reads, as text.
#ifndef RESHARD_TESTS_SUPPORT_SOURCE_CONTENT_H_
#define RESHARD_TESTS_SUPPORT_SOURCE_CONTENT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "reshard/status.h"
#include "src/io/source_files.h"

namespace reshard {

// Returns what a window holds, or the words of its failure.
std::string Content(const Window& window);
std::string Content(const Result<Window>& window);

// The same by SourceFiles::Read.
std::string Copied(SourceFiles& files, FileId id, uint64_t offset, size_t length);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_SOURCE_CONTENT_H_
