#include "src/base/out_of_memory.h"

#include <new>

namespace reshard {

Status OutOfMemoryError() noexcept {
  try {
    return ResourceExhaustedError("out of memory; use fewer jobs, or raise the memory limit");
  } catch (const std::bad_alloc&) {
    return ResourceExhaustedError("out of memory");
  }
}

}  // namespace reshard
