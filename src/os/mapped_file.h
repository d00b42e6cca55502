// A whole file mapped for somebody else, who keeps it as long as he wants.
//
// Any thread.
#ifndef RESHARD_SRC_OS_MAPPED_FILE_H_
#define RESHARD_SRC_OS_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "reshard/status.h"
#include "src/os/paths.h"

namespace reshard {

// What may be done with the bytes of a map.
enum class MapAccess {
  kRead,
  // Written to as well: pages that are become this process's own, and the file stays as it is. No
  // memory is set aside for them beforehand.
  kPrivate,
};

struct WholeMap {
  std::shared_ptr<std::byte> data;  // the first byte; keeps the map
  FileIdentity identity;            // its size is the map's
};

// Maps the file at `path`, which must not be empty; it is not kept open. Errors: as LocalFile::Open
// and Map.
Result<WholeMap> MapWhole(const std::string& path, MapAccess access);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_MAPPED_FILE_H_
