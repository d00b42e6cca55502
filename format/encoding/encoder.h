// Encoding of checkpoint files: the one place that knows all containers that are written.
#ifndef RESHARD_FORMAT_ENCODING_ENCODER_H_
#define RESHARD_FORMAT_ENCODING_ENCODER_H_

#include <cstddef>

#include "format/container/container.h"
#include "reshard/status.h"

namespace reshard {

// Says what a file of `arrays` arrays consists of, in file order: calls `take` for one array after
// the other, so that what is said of very many need not be in memory together. All sizes are known
// before a byte of content is read. An array may be asked for more than once, as where one header
// stands before all contents. Errors: those of `header_at` and `take`.
Status Encode(Container container, size_t arrays, const ArrayHeaderAt& header_at,
              const TakeFrames& take);

}  // namespace reshard

#endif  // RESHARD_FORMAT_ENCODING_ENCODER_H_
