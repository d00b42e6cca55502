// MemoryFile: a file without a folder, for tests that open very many.
#ifndef RESHARD_TESTS_SUPPORT_MEMORY_FILE_H_
#define RESHARD_TESTS_SUPPORT_MEMORY_FILE_H_

#include <string>
#include <string_view>

#include "src/os/system_call.h"

namespace reshard {

// Move-only; the file goes with the object.
class MemoryFile {
 public:
  // Throws where the system has none to give.
  MemoryFile();

  // Replaces the file's bytes. Throws.
  void Set(std::string_view bytes);
  // By which the file can be opened, in this process.
  const std::string& path() const { return path_; }

 private:
  FileDescriptor descriptor_;
  std::string path_;
};

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_MEMORY_FILE_H_
