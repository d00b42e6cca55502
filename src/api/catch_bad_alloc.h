// The one place where running out of memory becomes a Status.
#ifndef RESHARD_SRC_API_CATCH_BAD_ALLOC_H_
#define RESHARD_SRC_API_CATCH_BAD_ALLOC_H_

#include <new>
#include <type_traits>

#include "reshard/status.h"
#include "src/base/out_of_memory.h"

namespace reshard {

// Returns body(), which returns a Status or a Result, or kResourceExhausted.
template <typename Body>
std::invoke_result_t<Body> CatchBadAlloc(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError();
  }
}

}  // namespace reshard

#endif  // RESHARD_SRC_API_CATCH_BAD_ALLOC_H_
