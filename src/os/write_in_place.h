// A small file that is written again and again, for others to read.
#ifndef RESHARD_SRC_OS_WRITE_IN_PLACE_H_
#define RESHARD_SRC_OS_WRITE_IN_PLACE_H_

#include <string>
#include <string_view>

#include "reshard/status.h"
#include "src/os/output_directory.h"

namespace reshard {

// Writes `bytes` over the beginning of the file `name` in `folder`, and makes it if there is none;
// not durable. The bytes are sent to the server of a network file system. Errors: kNotFound, kIo.
Status WriteInPlace(const OutputDirectory& folder, const std::string& name, std::string_view bytes);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_WRITE_IN_PLACE_H_
