// CheckNoZeroByte: for parsers of JSON that take a zero byte for the end, whatever follows.
//
// A pure function, for any thread.
#ifndef RESHARD_SRC_BASE_ZERO_BYTE_H_
#define RESHARD_SRC_BASE_ZERO_BYTE_H_

#include <string>
#include <string_view>

#include "reshard/status.h"

namespace reshard {

// `bytes` are those of the file `path`. Errors: kCorrupt.
Status CheckNoZeroByte(const std::string& path, std::string_view bytes);

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_ZERO_BYTE_H_
