// The Status of running out of memory, which has to be made without any.
#ifndef RESHARD_SRC_BASE_OUT_OF_MEMORY_H_
#define RESHARD_SRC_BASE_OUT_OF_MEMORY_H_

#include "reshard/status.h"

namespace reshard {

// Returns kResourceExhausted with advice, or with a message so short that a string holds it in
// itself where there is no memory for more. Any thread.
Status OutOfMemoryError() noexcept;

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_OUT_OF_MEMORY_H_
