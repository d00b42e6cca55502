// Walking block copies in the order of their sources, against naive loops over their runs.
#include "src/verify/copied_bytes.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/pick.h"
#include "tests/support/temporary_folder.h"

namespace reshard::copied_bytes_property_test {
namespace {

constexpr uint64_t kFileBytes = uint64_t{12} << 20;  // three windows

template <typename T>
T OneOf(const std::vector<T>& choices) {
  return choices[Pick<size_t>(0, choices.size())];
}

// Loops around runs, with gaps on both sides between nothing and more than is read for nothing.
BlockCopy AnyCopy() {
  BlockCopy copy;
  copy.run_length = OneOf<uint64_t>({1, 2, 3, 4, 64, 1000, 70000, 1 << 20, 5 << 20});
  uint64_t source = copy.run_length;
  uint64_t target = copy.run_length;
  for (auto dims = Pick(0, 4); dims > 0; --dims) {
    const auto count = Pick<uint64_t>(1, 9);
    const uint64_t source_stride = source + OneOf<uint64_t>({0, 1, 500, 1 << 16, (1 << 16) + 1});
    const uint64_t target_stride = target + OneOf<uint64_t>({0, 1, 40000});
    if (source_stride * count > kFileBytes / 2) break;
    copy.dims.insert(copy.dims.begin(), {count, source_stride, target_stride});
    source = (count - 1) * source_stride + source;
    target = (count - 1) * target_stride + target;
  }
  copy.source_offset = Pick<uint64_t>(0, kFileBytes - source + 1);
  copy.target_offset = Pick<uint64_t>(0, 10000);
  return copy;
}

struct Move {
  uint64_t source = 0;
  uint64_t target = 0;
  uint64_t length = 0;
};

void NaiveRuns(const BlockCopy& copy, size_t dim, Move run, std::vector<Move>& runs) {
  if (dim == copy.dims.size()) {
    runs.push_back(run);
    return;
  }
  for (uint64_t i = 0; i < copy.dims[dim].count; ++i) {
    NaiveRuns(copy, dim + 1, run, runs);
    run.source += copy.dims[dim].source_stride;
    run.target += copy.dims[dim].target_stride;
  }
}

class CopyRowsProperty : public testing::Test {
 protected:
  CopyRowsProperty() : bytes_(kFileBytes, '\0') {
    uint64_t state = 1;
    for (char& byte : bytes_) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      byte = static_cast<char>(state >> 56);
    }
    file_ = files_.Add(folder_.Write("file", bytes_));
  }

  const TemporaryFolder folder_{MemoryFolder()};
  std::string bytes_;
  SourceFiles files_{4};
  FileId file_ = 0;
};

RC_GTEST_FIXTURE_PROP(CopyRowsProperty, RowsAreTheRunsOfARange, ()) {
  BlockCopy copy = AnyCopy();
  copy.source = file_;
  std::vector<Move> runs;
  NaiveRuns(copy, 0, {copy.source_offset, copy.target_offset, copy.run_length}, runs);
  const uint64_t size = runs.back().target + copy.run_length;
  const auto begin = PickBool() ? 0 : Pick<uint64_t>(0, size + 1);
  const auto end = PickBool() ? size : Pick<uint64_t>(begin, size + 1);

  std::string expected(size, '\0');
  for (const Move& run : runs) {
    for (uint64_t i = 0; i < run.length; ++i) {
      const uint64_t to = run.target + i;
      if (to >= begin && to < end) expected[to] = bytes_[run.source + i];
    }
  }

  std::string found(size, '\0');
  uint64_t last_source = 0;
  uint64_t moved = 0;
  bool ascending = true;
  const CopyRows rows(copy);
  const Status status =
      rows.ForEach(files_, rows.SourceOf({begin, end - begin}), [&](const CopyRow& row) {
        for (uint64_t i = 0; i < row.count; ++i) {
          ascending = ascending && row.source + i * row.source_stride >= last_source;
          last_source = row.source + i * row.source_stride + row.length;
          moved += row.length;
          std::copy_n(reinterpret_cast<const char*>(row.bytes) + i * row.source_stride, row.length,
                      found.data() + row.target + i * row.target_stride);
        }
      });
  if (!status.ok()) RC_FAIL(status.message());
  RC_ASSERT(ascending);
  RC_ASSERT(found == expected);
  uint64_t wanted = 0;
  for (const Move& run : runs) {
    const uint64_t from = std::max(begin, run.target);
    const uint64_t to = std::min(end, run.target + run.length);
    wanted += to > from ? to - from : 0;
  }
  RC_ASSERT(moved == wanted);
}

TEST_F(CopyRowsProperty, RunsFarApartDoNotReadWhatLiesBetween) {
  // Eight bytes at the begin and at the end of a file whose middle does not exist.
  const FileId sparse = files_.Add(
      folder_.WriteSparse("sparse", uint64_t{1} << 40, (uint64_t{1} << 40) - 8, "12345678"));
  const CopyRows rows({sparse, 0, 0, 8, {{2, (uint64_t{1} << 40) - 8, 8}}});
  std::string found(16, '?');
  const Status status = rows.ForEach(files_, rows.SourceOf({0, 16}), [&](const CopyRow& row) {
    std::copy_n(reinterpret_cast<const char*>(row.bytes), row.length, found.data() + row.target);
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(found, std::string(8, '\0') + "12345678");
}

TEST_F(CopyRowsProperty, AFileThatIsTooShortIsAnError) {
  const CopyRows rows({file_, kFileBytes - 4, 0, 8, {}});
  const Status status = rows.ForEach(files_, rows.SourceOf({0, 8}), [](const CopyRow&) {});
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
}

}  // namespace
}  // namespace reshard::copied_bytes_property_test
