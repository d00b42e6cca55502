// A whole file, mapped. The owner of the map keeps it, even after the file is closed.
//
// Any thread.
#ifndef RESHARD_SRC_OS_MAPPED_FILE_H_
#define RESHARD_SRC_OS_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "reshard/status.h"

namespace reshard {

// The allowed access to the bytes of a map.
enum class MapAccess {
  kRead,
  // Written to as well: pages that are become this process's own, and the file stays as it is. No
  // memory is set aside for them beforehand.
  kPrivate,
};

// Maps the `size` bytes, which are not none, of an open file, and returns the first one, which
// keeps the map; `path` is for messages. The kernel reads ahead as it does for any map, unless
// AdviseRandom (file_pages.h) tells it not to.
// Errors: kResourceExhausted, for lack of address space; kIo if its file system has no maps.
Result<std::shared_ptr<std::byte>> MapFile(int descriptor, uint64_t size, const std::string& path,
                                           MapAccess access);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_MAPPED_FILE_H_
