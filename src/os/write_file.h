// Writing one small file whole or not at all. No state; any thread.
#ifndef RESHARD_SRC_OS_WRITE_FILE_H_
#define RESHARD_SRC_OS_WRITE_FILE_H_

#include <string>
#include <string_view>

#include "reshard/status.h"

namespace reshard {

// Returns ok when there is nothing at `path`, or a file and `replace`.
// Errors: kInvalidArgument where `path` is no name of a file; kAlreadyExists; kIo.
Status CheckWritable(const std::string& path, bool replace);

// Makes `path` a file of these bytes, durable when it returns; its folder is made where there is
// none. The bytes stand under a name of their own (PATH.reshard) until they are whole. Errors:
// kAlreadyExists when there is something at `path` and not `replace`, or when another run is
// writing it; kIo.
Status WriteFile(const std::string& path, std::string_view bytes, bool replace);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_WRITE_FILE_H_
