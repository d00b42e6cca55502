#include "src/os/descriptor_limit.h"

#include <sys/resource.h>

#include <climits>

namespace reshard {

size_t DescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return _POSIX_OPEN_MAX;
  return limit.rlim_cur;  // RLIM_INFINITY is the greatest number of its type
}

}  // namespace reshard
