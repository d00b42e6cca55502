// A file that is open and mapped.
#ifndef RESHARD_TESTS_SUPPORT_MAPPED_SOURCE_H_
#define RESHARD_TESTS_SUPPORT_MAPPED_SOURCE_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "src/os/local_file.h"

namespace reshard {

// Fails the test where it cannot be mapped.
inline LocalFile MappedSource(const std::string& path,
                              LocalFile::MapPages pages = LocalFile::MapPages::kSmall) {
  Result<LocalFile> source = LocalFile::Open(path);
  const Status status = source.ok() ? source->Map(pages) : source.status();
  EXPECT_TRUE(status.ok()) << status.message();
  return std::move(*source);
}

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_MAPPED_SOURCE_H_
