// Running out of memory, as a Status.
#ifndef RESHARD_SRC_BASE_OUT_OF_MEMORY_H_
#define RESHARD_SRC_BASE_OUT_OF_MEMORY_H_

#include <new>
#include <type_traits>

#include "reshard/status.h"

namespace reshard {

// Returns the status of a MemoryRefused. Otherwise, returns kResourceExhausted with advice, or with
// a message so short that a string needs no further memory for it. Any thread.
Status OutOfMemoryError(const std::bad_alloc& error = {}) noexcept;

// Returns body(), which returns a Status or a Result, or OutOfMemoryError(). Used in places that no
// exception may leave: at the end of the API and of each thread, and in code that others wait for.
// A template, because a std::function might take memory outside of the try block.
template <typename Body>
std::invoke_result_t<const Body&> CatchOutOfMemory(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc& error) {
    return OutOfMemoryError(error);
  }
}

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_OUT_OF_MEMORY_H_
