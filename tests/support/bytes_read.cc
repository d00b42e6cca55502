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

}  // namespace reshard
