// FileMap: a whole file mapped for reading.
//
// Owns the map, move-only; the file may be closed meanwhile. Touch its bytes under the fault guard
// (fault_guard.h), because a file that shrinks takes its pages away. In the last page, bytes beyond
// the new end read as zeros without a sign: only the identity tells. The kernel reads ahead as it
// does for any map, unless map_advice.h tells it not to.
#ifndef RESHARD_SRC_OS_FILE_MAP_H_
#define RESHARD_SRC_OS_FILE_MAP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "reshard/status.h"

namespace boost::interprocess {
class mapped_region;
}  // namespace boost::interprocess

namespace reshard {

class FileMap {
 public:
  // Maps the first `size` bytes, which are not none, of an open file; `path` is for messages.
  // Errors: kIo, for want of address space or because its file system has no maps.
  static Result<FileMap> Make(int descriptor, uint64_t size, const std::string& path);

  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;
  ~FileMap();

  const std::byte* data() const;
  uint64_t size() const;

 private:
  explicit FileMap(std::unique_ptr<boost::interprocess::mapped_region> region);

  std::unique_ptr<boost::interprocess::mapped_region> region_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_FILE_MAP_H_
