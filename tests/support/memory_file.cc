#include "tests/support/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace reshard {
namespace {

void CheckCall(bool ok) {
  if (!ok) throw std::system_error(errno, std::generic_category(), "a file in memory");
}

}  // namespace

MemoryFile::MemoryFile() : descriptor_(memfd_create("reshard", MFD_CLOEXEC)) {
  CheckCall(descriptor_.valid());
  path_ = "/proc/self/fd/" + std::to_string(descriptor_.get());
}

void MemoryFile::Set(std::string_view bytes) {
  CheckCall(ftruncate(descriptor_.get(), 0) == 0);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = pwrite(descriptor_.get(), bytes.data() + done, bytes.size() - done,
                               static_cast<off_t>(done));
    CheckCall(put >= 0);
    done += static_cast<size_t>(put);
  }
}

}  // namespace reshard
