#include "tests/support/temporary_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>

namespace reshard {
namespace {

std::fstream OpenOrThrow(const std::filesystem::path& path, std::ios::openmode mode) {
  std::fstream file;
  file.exceptions(std::ios::badbit | std::ios::failbit);
  file.open(path, mode | std::ios::binary);
  return file;
}

}  // namespace

TemporaryFolder::TemporaryFolder(const std::filesystem::path& parent) {
  std::string name = parent / "reshard-XXXXXX";
  if (mkdtemp(name.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::Write(const std::string& name, std::string_view bytes) const {
  const std::filesystem::path path = path_ / name;
  std::filesystem::create_directories(path.parent_path());
  OpenOrThrow(path, std::ios::out | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

std::string TemporaryFolder::WriteSparse(const std::string& name, uint64_t size, uint64_t offset,
                                         std::string_view bytes) const {
  const std::filesystem::path path = path_ / name;
  if (!std::filesystem::exists(path)) Write(name, "");
  if (std::filesystem::file_size(path) != size) std::filesystem::resize_file(path, size);
  OpenOrThrow(path, std::ios::in | std::ios::out)
      .seekp(static_cast<std::streamoff>(offset))
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

std::filesystem::path MemoryFolder() {
  const std::filesystem::path memory = "/dev/shm";
  return access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
}

std::string ReadFile(const std::filesystem::path& path) {
  std::fstream file = OpenOrThrow(path, std::ios::in);
  std::string bytes(std::filesystem::file_size(path), '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

}  // namespace reshard
