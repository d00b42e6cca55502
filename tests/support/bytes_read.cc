#include "tests/support/bytes_read.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace reshard {

uint64_t BytesRead() {
  std::ifstream io("/proc/self/io");
  std::string name;
  uint64_t bytes = 0;
  io >> name >> bytes;
  EXPECT_EQ(name, "rchar:");
  return bytes;
}

uint64_t BytesFromDisk() {
  std::ifstream io("/proc/self/io");
  uint64_t bytes = 0;
  for (std::string name; io >> name >> bytes;) {
    if (name == "read_bytes:") return bytes;
  }
  ADD_FAILURE() << "no read_bytes in /proc/self/io";
  return 0;
}

}  // namespace reshard
