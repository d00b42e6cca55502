// TemporaryFolder: a folder of a test's own, removed with all it holds when the object goes.
#ifndef RESHARD_TESTS_SUPPORT_TEMPORARY_FOLDER_H_
#define RESHARD_TESTS_SUPPORT_TEMPORARY_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace reshard {

class TemporaryFolder {
 public:
  TemporaryFolder() : TemporaryFolder(std::filesystem::temp_directory_path()) {}
  // Makes the folder in `parent`. Throws when that fails.
  explicit TemporaryFolder(const std::filesystem::path& parent);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Writes a file, and the folders above it; `name` is relative. Returns its path. Throws.
  std::string Write(const std::string& name, std::string_view bytes) const;
  // Makes a file of `size` bytes without any, then writes `bytes` at `offset`, as often as it is
  // called. Returns its path. Throws.
  std::string WriteSparse(const std::string& name, uint64_t size, uint64_t offset,
                          std::string_view bytes) const;

 private:
  std::filesystem::path path_;
};

// Returns a folder for temporary ones that is in memory, where fsync costs nothing, if there is
// one.
std::filesystem::path MemoryFolder();

// Returns all bytes of a file. Throws.
std::string ReadFile(const std::filesystem::path& path);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_TEMPORARY_FOLDER_H_
