// Shares of any files: disjoint, complete, cut where they may be, and about equally large.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "src/job/file_shares.h"
#include "src/record/part_record.h"

namespace reshard::file_shares_property_test {
namespace {

std::vector<ManifestFile> AnyFiles() {
  const uint64_t blocks = *rc::gen::inRange<uint64_t>(1, 40);
  const int count = *rc::gen::inRange(0, 30);
  std::vector<ManifestFile> files;
  for (int i = 0; i < count; ++i) {
    const uint64_t size = *rc::gen::inRange<uint64_t>(0, 3) * kDigestBlockBytes *
                              *rc::gen::inRange<uint64_t>(0, blocks) +
                          *rc::gen::inRange<uint64_t>(0, kDigestBlockBytes);
    files.push_back({"rank_" + std::to_string(i), *rc::gen::arbitrary<bool>() ? size : size % 7});
  }
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

RC_GTEST_PROP(ShardShareProperty, SharesCoverEachFileOnceAndAreBalanced, ()) {
  const std::vector<ManifestFile> files = AnyFiles();
  const uint64_t shards = *rc::gen::inRange<uint64_t>(1, 50);
  uint64_t total = 0;
  for (const ManifestFile& file : files) total += file.size;
  const uint64_t fair = total / shards;
  uint64_t largest_whole = 0;
  for (const ManifestFile& file : files) {
    if (file.size <= fair) largest_whole = std::max(largest_whole, file.size);
  }

  std::vector<std::vector<ByteRange>> parts(files.size());
  for (uint64_t i = 0; i < shards; ++i) {
    uint64_t bytes = 0;
    for (const FilePart& part : ShareOf(files, {i, shards})) {
      bytes += part.range.length;
      parts[part.file].push_back(part.range);
    }
    RC_ASSERT(bytes <= fair + 1 + std::max(largest_whole, kDigestBlockBytes));
  }
  RC_ASSERT(parts == PartsOf(files, shards));
  for (size_t file = 0; file < files.size(); ++file) {
    uint64_t end = 0;
    for (const ByteRange& range : parts[file]) {
      RC_ASSERT(range.offset == end);
      RC_ASSERT(range.offset % kDigestBlockBytes == 0U);
      end = range.end();
    }
    RC_ASSERT(end == files[file].size);
    RC_ASSERT(!parts[file].empty());
    RC_ASSERT(parts[file].size() == 1 || files[file].size > fair);
  }
}

}  // namespace
}  // namespace reshard::file_shares_property_test
